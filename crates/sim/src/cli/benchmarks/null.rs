//! # What it measures
//! Nothing. It yields values that the caller sets, so that everything behind a simulation can be
//! tested against a truth, as with the probe's own `null`.
//!
//! # How
//! It waits `wait_ns` (of real time), then yields `samples` values of
//! `value * (1 + noise_ratio * z)`, z standard normal; a seed of 0 takes that of the round.
//! `failure` makes it fail in each of the ways in which a benchmark can fail.
//!
//! # Known truth
//! With `noise_ratio` 0 each sample equals `value` exactly, and the histogram holds `samples` values.
//!
//! # Cross-check
//! The probe's `null`, with the same declaration.
//!
//! # Overhead
//! One process start.
//!
//! # Caveats
//! It says nothing about any model, and has no far side here.
use super::SimError;
use crate::cli::error::Kind;
use crate::cli::trial::{Factors, Trial};
use nephoscope_sim::random::Stream;
pub use nephoscope_wire::specs::null::SPEC;
use rand_distr::StandardNormal;
use std::collections::BTreeMap;
use std::time::Duration;

/// One trial.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    let value = trial.params.float("value");
    let noise = trial.params.float("noise_ratio");
    let mut stream = Stream::of(trial.seed(), 0, 0);
    trial.prepared()?;
    std::thread::sleep(Duration::from_nanos(trial.params.int("wait_ns").unsigned_abs()));
    let mut drawn = || {
        let z: f64 = stream.draw(&StandardNormal);
        (value * (1.0 + noise * z)).max(value * 1e-3)
    };
    let mut seen = BTreeMap::new();
    for _ in 0..trial.params.int("samples") {
        let time = drawn();
        trial.emit("null_ns", time, 1, Factors::new())?;
        trial.emit("null_per_s", drawn(), 1, Factors::new())?;
        *seen.entry(time.round() as u64).or_insert(0u64) += 1;
    }
    for (length, count) in seen {
        trial.emit("null_latency_ns", length as f64, count, Factors::new())?;
    }
    let failure = trial.params.text("failure").to_owned();
    fail(trial, &failure)
}

fn fail(trial: &mut Trial, how: &str) -> Result<(), SimError> {
    let told = |code, name| {
        Err(SimError::new(code, name, "null was told to fail.", "Set failure to none."))
    };
    match how {
        "error" => told(Kind::Failed, "told_to_fail"),
        "lacks" => told(Kind::Lacks, "told_to_lack"),
        "exit" | "truncated" => {
            trial.flush()?;
            std::process::exit(if how == "exit" { 7 } else { 0 })
        }
        "hang" => {
            trial.flush()?;
            loop {
                std::thread::sleep(Duration::from_secs(1));
            }
        }
        "garbage" => trial.line(&serde_json::json!("this is no sample line")),
        "nan" => trial.emit("null_ns", f64::NAN, 1, Factors::new()),
        _ => Ok(()),
    }
}
