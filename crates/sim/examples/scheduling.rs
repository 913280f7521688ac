//! Scheduling events per CPU second of each policy.
//!
//! `scheduling [SECONDS [POLICY]]`: simulated seconds, 1000 as a rule, and which policy alone. Few
//! seconds of one are for a profiler that counts instructions.
use nephoscope_sim::scenarios;
use nephoscope_sim::scheduler::scenario::{run, SchedulerScenario};

/// Seconds that this thread has run.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    ran.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}

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
    let mut words = std::env::args().skip(1);
    let seconds: u32 = words.next().map_or(1000, |word| word.parse().expect("seconds"));
    let only = words.next();
    for (name, policy, settings) in [
        ("credit", "credit", ""),
        ("credit, capped", "credit", r#", "cap_percent": 60"#),
        ("sedf", "sedf", reserved),
        ("bvt", "bvt", ""),
        ("linux, weights", "linux", ""),
        ("linux, quotas", "linux", limited),
        ("linux, reservations", "linux", reserved),
    ] {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let text = format!(
            r#"{{"version": 1, "policy": "{policy}", "processors": 4, "duration_s": {seconds},
                "vms": {{{}}}}}"#,
            machine(settings)
        );
        let scenario: SchedulerScenario = scenarios::parse(&text).unwrap();
        let began = cpu_s();
        let outcome = run(&scenario, 1).unwrap();
        let spent = cpu_s() - began;
        let events = outcome.events as f64 / 1e6;
        eprintln!("{name}: {events:.4} M events, {:.2} M a CPU-s", events / spent);
    }
}
