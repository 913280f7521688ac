//! Trials without a controller: those of a job run one after the other, and each batch of them is put
//! to a URL that was signed before. `nephoscope-probe unattended --job FILE`.
//!
//! The job says everything: which trials in which order, and where their output goes. Nothing here
//! decides, and nothing is asked of anybody. An address is a permission to write, so that it stands in no
//! message.
mod child;
mod job;
mod upload;

use crate::error::{FailureKind, ProbeError, Result};
use crate::http::requests::tls::system_authorities;
use child::Ended;
use job::{Batch, Job};
use nephoscope_linux::clock;
use serde_json::{json, Value};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use upload::Upload;

/// Time for what is not stored yet, and for the report, after the last trial.
const LAST_UPLOADS: Duration = Duration::from_secs(300);
/// For how long a batch is tried before the trials go on; it is tried again at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A batch that was measured.
struct Measured<'job> {
    batch: &'job Batch,
    content: Vec<u8>,
    sha256: String,
    trials: usize,
    failed: usize,
    /// None once it is stored.
    missing: Option<String>,
}

/// Runs the trials of a job and puts their output. The error is the first reason for which something is
/// not stored.
pub fn run(path: &Path) -> Result<()> {
    let job = Job::read(path)?;
    let uploads = Uploads { authorities: system_authorities() };
    // What cannot be uploaded need not be measured.
    for destination in job.destinations() {
        Upload::new(destination, &[], &uploads.authorities)?;
    }
    let end = Instant::now() + Duration::from_secs_f64(job.work_s);
    let mut measured = Vec::new();
    for batch in &job.batches {
        if Instant::now() >= end {
            break;
        }
        let mut whole = measure(&job, batch, end)?;
        uploads.store(&mut whole, Instant::now() + PATIENCE);
        say(&format!("batch {} {}", batch.name, state(&whole)));
        measured.push(whole);
    }
    let end = Instant::now() + LAST_UPLOADS;
    for whole in measured.iter_mut().filter(|whole| whole.missing.is_some()) {
        uploads.store(whole, end);
        say(&format!("batch {} {}", whole.batch.name, state(whole)));
    }
    let report = report(&job, &measured).to_string() + "\n";
    let stored = uploads.put(&job.report, report.as_bytes(), end);
    let missing = measured.iter().find_map(|whole| whole.missing.clone()).or(stored.err());
    match missing {
        None => Ok(()),
        Some(why) => Err(ProbeError::new(
            FailureKind::Failed,
            "not_stored",
            format!("Not everything was stored: {why}."),
            "See what arrived with `nephoscope cloud collect`.",
        )),
    }
}

struct Uploads {
    authorities: String,
}

impl Uploads {
    fn store(&self, whole: &mut Measured, end: Instant) {
        whole.missing = self.put(&whole.batch.to, &whole.content, end).err();
    }

    fn put(&self, to: &job::Destination, content: &[u8], end: Instant) -> Result<(), String> {
        Upload::new(to, content, &self.authorities).map_err(|error| error.message)?.repeat(end)
    }
}

/// Runs the trials of a batch, those that begin before the end.
fn measure<'job>(job: &Job, batch: &'job Batch, end: Instant) -> Result<Measured<'job>> {
    let (mut content, mut trials, mut failed) = (Vec::new(), 0, 0);
    for trial in &batch.trials {
        if Instant::now() >= end {
            break;
        }
        let started_at_s = wall_s();
        let ended = child::run(trial)?;
        trials += 1;
        failed += usize::from(ended.code != 0);
        append_trial(&mut content, &trial.name, started_at_s, &ended);
    }
    let sha256 = hex(&content);
    let line = json!({"batch": {
        "name": batch.name, "machine": job.machine, "trials": trials, "sent_at_s": wall_s(),
        "sha256": sha256,
    }});
    content.extend_from_slice(format!("{line}\n").as_bytes());
    let missing = Some("it was not tried".to_owned());
    Ok(Measured { batch, content, sha256, trials, failed, missing })
}

/// A line about the trial, and after it the bytes that the trial printed.
fn append_trial(content: &mut Vec<u8>, name: &str, started_at_s: f64, ended: &Ended) {
    let line = json!({"trial": {
        "name": name, "started_at_s": started_at_s, "elapsed_ns": ended.elapsed_ns,
        "code": ended.code, "why": ended.why, "output_bytes": ended.output.len(),
        "stderr_tail": ended.stderr_tail,
    }});
    content.extend_from_slice(format!("{line}\n").as_bytes());
    content.extend_from_slice(&ended.output);
}

/// What was planned, measured and stored: the last object of a machine.
fn report(job: &Job, measured: &[Measured]) -> Value {
    let planned: usize = job.batches.iter().map(|batch| batch.trials.len()).sum();
    let count = |of: fn(&Measured) -> usize| measured.iter().map(of).sum::<usize>();
    let batches: Vec<Value> = measured
        .iter()
        .map(|whole| {
            json!({
                "name": whole.batch.name, "trials": whole.trials, "bytes": whole.content.len(),
                "sha256": whole.sha256, "missing": whole.missing,
            })
        })
        .collect();
    json!({"report": {
        "machine": job.machine, "probe": env!("CARGO_PKG_VERSION"), "planned": planned,
        "run": count(|whole| whole.trials), "failed": count(|whole| whole.failed),
        "ended_at_s": wall_s(), "batches": batches,
    }})
}

fn state(whole: &Measured) -> String {
    match &whole.missing {
        None => format!("is stored ({} trials)", whole.trials),
        Some(why) => format!("is not stored: {why}"),
    }
}

/// A line for the machine's console, which is all that anybody sees of it.
fn say(sentence: &str) {
    let _ = writeln!(std::io::stdout(), "nephoscope: {sentence}");
}

fn hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[allow(clippy::cast_precision_loss)] // A microsecond is finer than anybody needs it.
fn wall_s() -> f64 {
    clock::realtime_ns() as f64 / 1e9
}
