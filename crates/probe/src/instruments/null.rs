//! # What it measures
//! Nothing. It yields given values, so that everything behind a benchmark (runner, store,
//! statistics, report) can be tested against a known truth.
//!
//! # How
//! It waits `wait_ns`, then yields `samples` values of `value * (1 + noise_ratio * z)`, z standard
//! normal from a seeded generator (SplitMix64, Box-Muller); a seed of 0 takes the clock. `failure`
//! makes it fail in each of the ways in which a benchmark can fail. Its far side (`serve`) echoes
//! what its peer sends and reports the number of bytes: the smallest two-sided benchmark. A trial
//! with a far side sends it 17 bytes first, and fails if they do not come back.
//!
//! # Known truth
//! With `noise_ratio` 0 each sample equals `value`, and the histogram has `samples` values.
//!
//! # Cross-check
//! The median of many samples approaches `value`, their coefficient of variation `noise_ratio`.
//!
//! # Overhead
//! One process start.
//!
//! # Caveats
//! It says nothing about the machine.
use crate::error::{FailureKind, ProbeError, Result};
use crate::net::client::reach;
use crate::net::server::accept_peer;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::{ListenConfig, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::lines::Peer;
use nephoscope_wire::random::Random;
pub use nephoscope_wire::specs::null::SPEC;
use serde_json::{json, Value};

pub fn run(trial: &mut Trial) -> Result<()> {
    let value = trial.params.float("value");
    let noise = trial.params.float("noise_ratio");
    let mut random = Random::new(parameters::seed(&trial.params));
    trial.prepared()?;
    let session = trial.session;
    if let Some(peer) = trial.take_peer() {
        check_echo(session, &peer)?;
    }
    wait(session, trial.params.u64("wait_ns"))?;
    let mut histogram = hdrhistogram::Histogram::new(3).expect("3 digits are allowed");
    for _ in 0..trial.params.int("samples") {
        session.check()?;
        let time = (value * (1.0 + noise * random.normal())).max(value * 1e-3);
        trial.out.emit("null_ns", time, factors! {})?;
        let rate = (value * (1.0 + noise * random.normal())).max(value * 1e-3);
        trial.out.emit("null_per_s", rate, factors! {})?;
        histogram.record(time.round() as u64).expect("a histogram without bound grows");
    }
    trial.emit_histogram("null_latency_ns", &histogram, &factors! {})?;
    let failure = trial.params.text("failure").to_owned();
    fail(trial, &failure)
}

/// The far side: an echo for the peer that presents the token.
pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value> {
    let mut echoed_bytes = 0u64;
    if let Some(mut peer) = accept_peer(trial, listen)? {
        let mut buffer = vec![0u8; 64 << 10];
        while let Some(bytes @ 1..) = peer.read_or_stop(&mut buffer)? {
            peer.write_all(&buffer[..bytes])?;
            echoed_bytes += bytes as u64;
        }
    }
    Ok(json!({ "bytes": echoed_bytes }))
}

/// Says something to the far side, which has to say it back.
fn check_echo(session: Session, peer: &Peer) -> Result<()> {
    const WORDS: &[u8] = b"is anybody there?";
    let mut far = reach(session, peer)?;
    far.write_all(WORDS)?;
    let mut answer = [0u8; WORDS.len()];
    let whole = far.read_exact(&mut answer)?;
    far.end()?;
    if whole && answer == WORDS {
        return Ok(());
    }
    let message = format!("The far side at {} did not echo the message.", peer.address);
    Err(ProbeError::new(FailureKind::Failed, "no_echo", message, "Start a server of null there."))
}

fn fail(trial: &mut Trial, how: &str) -> Result<()> {
    let failure = |kind, name| {
        Err(ProbeError::new(kind, name, "null was told to fail.", "Set failure to none."))
    };
    match how {
        "error" => failure(FailureKind::Failed, "told_to_fail"),
        "lacks" => failure(FailureKind::Lacks, "told_to_lack"),
        "exit" => {
            trial.out.flush()?;
            std::process::exit(7)
        }
        "hang" => {
            trial.out.flush()?;
            loop {
                // Deaf to the flag on purpose: only the second alarm ends this.
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        "garbage" => {
            trial.out.line(&serde_json::json!("this is no sample line"))?;
            trial.out.flush()
        }
        "truncated" => {
            trial.out.flush()?;
            std::process::exit(0)
        }
        "nan" => trial.out.emit("null_ns", f64::NAN, factors! {}),
        _ => Ok(()),
    }
}

fn wait(session: Session, wait_ns: u64) -> Result<()> {
    let end = clock::monotonic_ns() + wait_ns;
    loop {
        session.check()?;
        let left = end.saturating_sub(clock::monotonic_ns());
        if left == 0 {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_nanos(left.min(20_000_000)));
    }
}
