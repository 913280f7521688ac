//! What an unattended machine has to do, as its file says it.
use crate::error::{ProbeError, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Longest job; one of 64 batches with signed addresses has 100 KB.
const JOB_BYTES: u64 = 16 << 20;
/// Longest time for a trial and for a whole job: as in plans.
const LONGEST_S: f64 = 30.0 * 86_400.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Name of the machine, for what it stores.
    pub machine: String,
    /// Seconds after which no further trial begins.
    pub work_s: f64,
    pub batches: Vec<Batch>,
    pub report: Destination,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    pub name: String,
    pub to: Destination,
    pub trials: Vec<TrialJob>,
}

/// Where an object is put. headers: those that are part of the signature.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destination {
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrialJob {
    pub name: String,
    pub benchmark: String,
    pub params: Map<String, Value>,
    pub timeout_s: f64,
    pub gap_meter: bool,
}

impl Job {
    pub fn read(path: &Path) -> Result<Self> {
        let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        if length > JOB_BYTES {
            return Err(refused(format!("it is longer than {} MiB", JOB_BYTES >> 20)));
        }
        let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        // The words of a JSON error have a place in the file and no value of it: addresses are secret.
        let job: Self = serde_json::from_slice(&bytes).map_err(|error| {
            refused(format!("line {}, column {} is none of a job", error.line(), error.column()))
        })?;
        let trials = job.batches.iter().flat_map(|batch| &batch.trials);
        let mut times = trials.map(|trial| trial.timeout_s).chain([job.work_s]);
        if !times.all(|seconds| (0.0..=LONGEST_S).contains(&seconds)) {
            return Err(refused("a time in it is no number of seconds up to 30 days".to_owned()));
        }
        Ok(job)
    }

    pub fn destinations(&self) -> impl Iterator<Item = &Destination> {
        self.batches.iter().map(|batch| &batch.to).chain([&self.report])
    }
}

fn refused(why: String) -> ProbeError {
    ProbeError::usage(
        format!("The job cannot be read: {why}."),
        "It is written by `nephoscope cloud fleet`.",
    )
}
