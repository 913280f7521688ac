//! What `cpu.gaps` would say inside a simulated machine, by the library alone:
//! `look --params JSON --machine JSON --vm NAME --seed N`. One JSON object a sample.
use nephoscope_sim::scheduler::gaps::{self, Look};
use nephoscope_sim::scheduler::scenario::Scenario;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::Write;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let place = words.iter().position(|word| word == name)?;
        words.get(place + 1).map(String::as_str)
    };
    let seed = after("--seed").and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let given = after("--params").unwrap_or("{}");
    if let Err(why) = tell(after("--machine").unwrap_or("{}"), given, after("--vm"), seed) {
        eprintln!("{why}");
        std::process::exit(2);
    }
}

fn tell(
    machine: &str,
    given: &str,
    vm: Option<&str>,
    seed: u64,
) -> Result<(), Box<dyn std::error::Error>> {
    let given: Value = serde_json::from_str(given)?;
    let number = |name: &str, usual: u64| given[name].as_u64().unwrap_or(usual);
    let usual = Look::default();
    let look = Look {
        duration_ns: number("duration_ns", usual.duration_ns),
        threshold_ns: number("threshold_ns", usual.threshold_ns),
        cpus_max: number("cpus_max", 0) as usize,
        processes_per_cpu: number("processes_per_cpu", 1) as usize,
        events_max: number("events_max", 1000) as usize,
        sleep_ns: number("sleep_ns", 0),
        busy_ns: number("busy_ns", usual.busy_ns),
        ..usual
    };
    let scenario = Scenario::from_json(machine)?;
    let mut out = std::io::stdout().lock();
    let found = gaps::run(&scenario, vm, &look, seed)?;
    found.samples(&mut |metric, factors, value, count, at_ns| {
        let factors: BTreeMap<_, _> = factors.iter().cloned().collect();
        let line = json!({"metric": metric, "value": value, "count": count,
            "at_ns": at_ns, "factors": factors});
        // A reader that has seen enough closes the pipe.
        let _ = writeln!(out, "{line}");
    });
    Ok(())
}
