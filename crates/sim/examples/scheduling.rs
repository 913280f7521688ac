//! Scheduling events a CPU-second of each policy, for a quick look.
use nephoscope_sim::scheduler::scenario::{run, Scenario};

fn main() {
    let machine = |settings: &str| {
        let vm = |work: &str| format!(r#"{{"vcpus": 2, "workload": {work}{settings}}}"#);
        let bursty = r#"{"bursty": {"work_ms": 2, "sleep_ms": 5}}"#;
        let web = r#"{"web": {"requests_per_s": 300, "service_ms": 1}}"#;
        let periodic = r#"{"periodic": {"every_ms": 20, "work_ms": 3}}"#;
        let vms = [r#""spinning""#, bursty, web, periodic, bursty, web].map(vm);
        let named = vms.iter().enumerate().map(|(number, vm)| format!(r#""v{number}": {vm}"#));
        named.collect::<Vec<_>>().join(", ")
    };
    let reserved = r#", "reservation": {"slice_ms": 10, "period_ms": 40}"#;
    let limited = r#", "quota": {"cpus": 0.5, "period_ms": 50}"#;
    for (name, policy, settings) in [
        ("credit", "credit", ""),
        ("credit, capped", "credit", r#", "cap_percent": 60"#),
        ("sedf", "sedf", reserved),
        ("bvt", "bvt", ""),
        ("linux, weights", "linux", ""),
        ("linux, quotas", "linux", limited),
        ("linux, reservations", "linux", reserved),
    ] {
        let text = format!(
            r#"{{"version": 1, "policy": "{policy}", "processors": 4, "duration_s": 600,
                "vms": {{{}}}}}"#,
            machine(settings)
        );
        let scenario = Scenario::from_json(&text).unwrap();
        let began = std::time::Instant::now();
        let outcome = run(&scenario, 1).unwrap();
        let spent = began.elapsed().as_secs_f64();
        let events = outcome.events as f64 / 1e6;
        eprintln!("{name}: {events:.2} M events, {:.2} M/s", events / spent);
    }
}
