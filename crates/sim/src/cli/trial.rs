//! One replication: checked parameters, the start, samples as JSON lines.
//!
//! `at_ns` of a sample is simulated time, 0 for a value of the whole replication: no sample depends on
//! the speed of this machine, so that the same seed gives the same lines.
use super::benchmarks::Benchmark;
use super::control::{wall_ns, Control};
use super::TrialRequest;
use nephoscope_sim::samples::Sink;
use nephoscope_wire::error::Error;
use nephoscope_wire::lines::Done;
use nephoscope_wire::params::Params;
use nephoscope_wire::writer::{Factors, TrialWriter};
use serde_json::{json, Value};
use std::io::{BufWriter, Stdout};
use std::time::Instant;

pub struct SimulationTrial {
    pub request: TrialRequest,
    /// The parameters of the request, checked, with defaults.
    pub params: Params,
    pub writer: TrialWriter<BufWriter<Stdout>>,
    control: Control,
    started: Option<(Instant, u64)>,
}

/// Runs a benchmark once and prints its lines, or only checks its input.
pub fn run(benchmark: &Benchmark, request: TrialRequest) -> Result<(), Error> {
    let out = BufWriter::with_capacity(1 << 16, std::io::stdout());
    let mut trial = SimulationTrial {
        params: Params::check(benchmark.spec, &request.params)?,
        writer: TrialWriter::new(benchmark.spec, out, || 0),
        control: Control::start(&request.limits),
        request,
        started: None,
    };
    (benchmark.run)(&mut trial)?;
    trial.start()?;
    let (started, started_wall_ns) = trial.started.expect("it was started");
    let elapsed_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
    // A simulated machine has no system counters; those of this one would be misleading.
    trial.writer.done(Done { started_wall_ns, elapsed_ns, counters: json!({}), ..Done::default() })
}

impl SimulationTrial {
    /// Returns the random seed: the parameter `seed` if it is not 0, else `--seed`.
    pub fn seed(&self) -> u64 {
        let seed = self.params.as_json().get("seed").and_then(Value::as_u64);
        seed.filter(|seed| *seed != 0).unwrap_or(self.request.seed)
    }

    /// Starts the simulation, after everything is checked; only the first call has an effect. With a
    /// control channel it reports `ready` and waits for `go`; a check ends here.
    pub fn start(&mut self) -> Result<(), Error> {
        if self.started.is_some() {
            return Ok(());
        }
        if self.request.is_check {
            self.writer.line(&json!({ "checked": self.writer.spec().id }))?;
            self.writer.flush()?;
            std::process::exit(0);
        }
        if self.request.limits.control {
            let ready = json!({"pid": std::process::id(), "wall_ns": wall_ns()});
            self.writer.ready(&ready)?;
            self.control.wait_for_go()?;
        }
        self.writer.start();
        self.started = Some((Instant::now(), wall_ns()));
        Ok(())
    }

    /// Writes every sample that `emit` yields.
    pub fn emit_all(&mut self, emit: impl FnOnce(&mut Sink<'_>)) -> Result<(), Error> {
        let mut result = Ok(());
        emit(&mut Sink(&mut |metric, factors, value, count, time| {
            if result.is_ok() {
                let factors =
                    factors.iter().map(|(name, level)| ((*name).to_owned(), level.clone()));
                let factors: Factors = factors.collect();
                result = self.writer.emit_at(metric, value, count, time, factors);
            }
        }));
        result
    }
}
