//! # What it measures
//! Nothing. It yields values that the caller sets, so that everything behind a simulation can be tested
//! against a known truth, like the probe's own `null`.
//!
//! # How
//! It waits `wait_ns` (of real time), then yields `samples` values of `value * (1 + noise_ratio * z)`, z
//! standard normal; a seed of 0 takes that of the trial. `failure` makes it fail in each of the ways in
//! which a benchmark can fail.
//!
//! # Known truth
//! With `noise_ratio` 0 each sample equals `value` exactly, and the histogram has `samples` values.
//!
//! # Cross-check
//! The probe's `null`, with the same declaration.
//!
//! # Overhead
//! One process start.
//!
//! # Caveats
//! It says nothing about any model, and has no far side here.
use crate::cli::trial::SimulationTrial;
use nephoscope_sim::random::RandomStream;
use nephoscope_wire::error::{Error, FailureKind};
pub use nephoscope_wire::specs::null::SPEC;
use nephoscope_wire::writer::Factors;
use rand_distr::StandardNormal;
use std::collections::BTreeMap;
use std::time::Duration;

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    let value = trial.params.float("value");
    let noise = trial.params.float("noise_ratio");
    let mut stream = RandomStream::new(trial.seed(), 0, 0);
    trial.start()?;
    std::thread::sleep(Duration::from_nanos(trial.params.size("wait_ns") as u64));
    let mut draw = || {
        let z: f64 = stream.draw(&StandardNormal);
        (value * (1.0 + noise * z)).max(value * 1e-3)
    };
    let mut counts = BTreeMap::new();
    for _ in 0..trial.params.int("samples") {
        let time = draw();
        trial.writer.emit("null_ns", time, Factors::new())?;
        trial.writer.emit("null_per_s", draw(), Factors::new())?;
        *counts.entry(time.round() as u64).or_insert(0u64) += 1;
    }
    let pairs = counts.into_iter().map(|(value, count)| (value as f64, count));
    trial.writer.emit_pairs("null_latency_ns", pairs, &Factors::new())?;
    let failure = trial.params.text("failure").to_owned();
    fail(trial, &failure)
}

fn fail(trial: &mut SimulationTrial, failure: &str) -> Result<(), Error> {
    let error =
        |kind, name| Err(Error::new(kind, name, "null was told to fail.", "Set failure to none."));
    match failure {
        "error" => error(FailureKind::Failed, "told_to_fail"),
        "lacks" => error(FailureKind::Lacks, "told_to_lack"),
        "exit" | "truncated" => {
            trial.writer.flush()?;
            std::process::exit(if failure == "exit" { 7 } else { 0 })
        }
        "hang" => {
            trial.writer.flush()?;
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        "garbage" => trial.writer.line(&serde_json::json!("this is no sample line")),
        "nan" => trial.writer.emit("null_ns", f64::NAN, Factors::new()),
        _ => Ok(()),
    }
}
