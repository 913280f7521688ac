//! # What it measures
//! Nothing. It yields values that the caller sets, so that everything behind a benchmark (runner,
//! store, statistics, report) can be tested against a truth.
//!
//! # How
//! It waits `wait_ns`, then yields `samples` values of `value * (1 + noise_ratio * z)`, where z is
//! drawn from a standard normal distribution by a seeded generator (xorshift64*, Box-Muller); a seed
//! of 0 takes the clock. `failure` makes it fail in each of the ways in which a benchmark can fail.
//!
//! Its far side (`serve`) sends back whatever its one peer sends, until the peer ends, and tells how
//! many bytes that were: the smallest thing that a two-sided benchmark can be. A trial that was told
//! of a far side sends it 17 bytes first, and fails when they do not come back.
//!
//! # Known truth
//! With `noise_ratio` 0 each sample equals `value` exactly, and the histogram holds `samples` values.
//! The tests count them.
//!
//! # Cross-check
//! The median of many samples approaches `value`; their coefficient of variation `noise_ratio`.
//!
//! # Overhead
//! One process start; no load on the machine.
//!
//! # Caveats
//! It says nothing about the machine.
use crate::error::{Kind, ProbeError};
use crate::net::client::reach;
use crate::net::server::accept_peer;
use crate::trial::{Door, Trial};
use crate::{cancel, clock, control, factors};
use nephoscope_wire::lines::Peer;
pub use nephoscope_wire::specs::null::SPEC;
use serde_json::{json, Value};

/// One trial.
pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let value = trial.params.float("value");
    let noise = trial.params.float("noise_ratio");
    let seed = trial.params.int("seed").cast_unsigned();
    let mut random = Normal::new(if seed == 0 { clock::realtime_ns() } else { seed });
    trial.prepared()?;
    if let Some(peer) = control::peer_if_named() {
        greet(&peer)?;
    }
    wait(trial.params.int("wait_ns").cast_unsigned())?;
    let mut histogram = hdrhistogram::Histogram::new(3).expect("3 digits are allowed");
    for _ in 0..trial.params.int("samples") {
        cancel::check()?;
        let time = (value * (1.0 + noise * random.next())).max(value * 1e-3);
        trial.emit("null_ns", time, factors! {})?;
        let rate = (value * (1.0 + noise * random.next())).max(value * 1e-3);
        trial.emit("null_per_s", rate, factors! {})?;
        histogram.record(time.round() as u64).expect("a histogram without bound grows");
    }
    trial.emit_histogram("null_latency_ns", &histogram, &factors! {})?;
    let failure = trial.params.text("failure").to_owned();
    fail(trial, &failure)
}

/// The far side: an echo for the peer that presents the token.
pub fn serve(trial: &mut Trial, door: &Door) -> Result<Value, ProbeError> {
    let mut echoed_bytes = 0u64;
    if let Some(mut peer) = accept_peer(trial, door)? {
        let mut buffer = vec![0u8; 64 << 10];
        while let Some(bytes @ 1..) = peer.read_or_stop(&mut buffer)? {
            peer.write_all(&buffer[..bytes])?;
            echoed_bytes += bytes as u64;
        }
    }
    Ok(json!({ "bytes": echoed_bytes }))
}

/// Says something to the far side, which has to say it back.
fn greet(peer: &Peer) -> Result<(), ProbeError> {
    const WORDS: &[u8] = b"is anybody there?";
    let mut far = reach(peer)?;
    far.write_all(WORDS)?;
    let mut answer = [0u8; WORDS.len()];
    let whole = far.read_exact(&mut answer)?;
    far.end()?;
    if whole && answer == WORDS {
        return Ok(());
    }
    let message = format!("The far side at {} did not say back what it was told.", peer.address);
    Err(ProbeError::new(Kind::Failed, "no_echo", message, "Start a server of null there."))
}

fn fail(trial: &mut Trial, how: &str) -> Result<(), ProbeError> {
    let told = |kind, name| {
        Err(ProbeError::new(kind, name, "null was told to fail.", "Set failure to none."))
    };
    match how {
        "error" => told(Kind::Failed, "told_to_fail"),
        "lacks" => told(Kind::Lacks, "told_to_lack"),
        "exit" => {
            trial.flush()?;
            std::process::exit(7)
        }
        "hang" => {
            trial.flush()?;
            loop {
                // Deaf to the flag on purpose: only the second alarm ends this.
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
        "garbage" => {
            trial.line(&serde_json::json!("this is no sample line"))?;
            trial.flush()
        }
        "truncated" => {
            trial.flush()?;
            std::process::exit(0)
        }
        "nan" => trial.emit("null_ns", f64::NAN, factors! {}),
        _ => Ok(()),
    }
}

fn wait(wait_ns: u64) -> Result<(), ProbeError> {
    let end = clock::monotonic_ns() + wait_ns;
    loop {
        cancel::check()?;
        let left = end.saturating_sub(clock::monotonic_ns());
        if left == 0 {
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_nanos(left.min(20_000_000)));
    }
}

/// Standard normal numbers: xorshift64* and the Box-Muller transform.
struct Normal(u64);

impl Normal {
    fn new(seed: u64) -> Self {
        // A few rounds mix small seeds; zero is the one state the generator cannot leave.
        let mut normal = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        for _ in 0..8 {
            normal.uniform();
        }
        normal
    }

    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        (bits as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn next(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::Normal;

    #[test]
    fn the_noise_is_standard_normal() {
        let mut normal = Normal::new(7);
        let values: Vec<f64> = (0..100_000).map(|_| normal.next()).collect();
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        // Five standard errors: 1/sqrt(n) for the mean, sqrt(2/n) for the variance.
        assert!(mean.abs() < 5.0 / n.sqrt(), "{mean}");
        assert!((variance - 1.0).abs() < 5.0 * (2.0 / n).sqrt(), "{variance}");
    }
}
