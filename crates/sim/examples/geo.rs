//! Requests per CPU second of sites and users; `benchmarks/` compares with peers.
//!
//! `geo` runs the grouped day of a micro-blogging service and the same day with 50 and 2,000
//! instances, an hour of single requests in bursts and as a stream; `geo day` the whole day of
//! single requests (65 million), to see its memory; `geo stream` and `geo bursts` an hour of them or as
//! many as are given, and `geo grouped` the grouped day, for a profiler.
use nephoscope_sim::geo::{run, scenario::Grouping, GeoScenario};
use nephoscope_sim::scenarios::{built_in, GEO};

fn timed(what: &str, scenario: &GeoScenario) {
    let began = cpu_s();
    let outcome = run(scenario, 1).expect("it can be run");
    let spent = cpu_s() - began;
    let requests = outcome.requests() as f64;
    eprintln!(
        "{what}: {spent:.3} CPU-s, {:.2} M requests and {:.2} M events a CPU-s, {} in flight, mean {:.3} ms, {:.0} MB",
        requests / spent / 1e6,
        outcome.events as f64 / spent / 1e6,
        outcome.in_flight,
        outcome.mean_ns(|_| true).unwrap_or(f64::NAN) / 1e6,
        peak_mb(),
    );
}

/// Seconds that this thread has run.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    ran.map_or(f64::NAN, |nanoseconds| nanoseconds / 1e9)
}

/// Most memory of this process so far.
fn peak_mb() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
}

fn sized(mut scenario: GeoScenario, instances: u32) -> GeoScenario {
    for (_, site) in &mut scenario.sites.0 {
        (site.instances, site.hosts) = (instances, instances);
    }
    scenario
}

fn main() {
    let single = Grouping { users: 1, requests: 1 };
    let day = built_in::<GeoScenario>(GEO, "twitter-2008-as-printed-two").expect("it is built in");
    let stream =
        built_in::<GeoScenario>(GEO, "twitter-2008-consistent-two").expect("it is built in");
    let bursts = GeoScenario { grouping: single, ..day.clone() };
    let stream = GeoScenario { grouping: single, ..stream };
    let given = std::env::args().nth(2).and_then(|hours| hours.parse().ok());
    let duration_h = given.unwrap_or(1.0);
    match std::env::args().nth(1).as_deref() {
        Some("day") => {
            timed("day of single requests, a stream", &stream);
            return timed("day of single requests, bursts", &bursts);
        }
        Some("stream") => return timed("a stream", &GeoScenario { duration_h, ..stream }),
        Some("bursts") => return timed("bursts", &GeoScenario { duration_h, ..bursts }),
        Some("grouped") => return timed("day, grouped", &day),
        _ => {}
    }
    timed("day, grouped", &day);
    for instances in [50, 2000] {
        timed(&format!("day, grouped, {instances} instances"), &sized(day.clone(), instances));
    }
    timed("1 h of single requests, bursts", &GeoScenario { duration_h: 1.0, ..bursts });
    for instances in [10, 50, 2000] {
        let hour = GeoScenario { duration_h: 1.0, ..sized(stream.clone(), instances) };
        timed(&format!("1 h of single requests, a stream, {instances} instances"), &hour);
    }
}
