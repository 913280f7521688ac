//! One replication: parameters checked, the gate, samples printed as JSON lines.
//!
//! `at_ns` of a sample is simulated time, 0 where a value is of the whole replication: nothing in a
//! sample depends on how fast this machine is, so that the same seed gives the same bytes.
use super::args::Wanted;
use super::benchmarks::Benchmark;
use super::error::{Kind, SimError};
use super::watch::{wall_ns, Watch};
use nephoscope_sim::scheduler::gaps;
use nephoscope_sim::tally::Emit;
use nephoscope_sim::Nanos;
use nephoscope_wire::lines::{Done, SampleLine};
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Shape, Spec};
use serde_json::{json, Map, Value};
use std::io::{BufWriter, Stdout, Write};
use std::time::Instant;

/// Factors of a sample: what it depends on inside the trial.
pub type Factors = Map<String, Value>;

/// What a benchmark talks to: its parameters, and where its samples go.
pub struct Trial {
    /// Checked parameters.
    pub params: Params,
    /// The simulated machine, where one was named.
    pub machine: Option<Value>,
    /// The virtual machine to look from, where one was named.
    pub vm: Option<String>,
    seed: u64,
    spec: &'static Spec,
    out: BufWriter<Stdout>,
    watch: Watch,
    control: bool,
    check: bool,
    begun: Option<(Instant, u64)>,
    samples: u64,
    notes: Vec<String>,
}

/// Runs a benchmark once and prints its lines; or only checks what it was given.
pub fn run(benchmark: &Benchmark, wanted: Wanted) -> Result<(), SimError> {
    let mut trial = Trial {
        params: Params::check(benchmark.spec, &wanted.params)?,
        spec: benchmark.spec,
        out: BufWriter::with_capacity(1 << 16, std::io::stdout()),
        watch: Watch::begin(&wanted),
        control: wanted.control,
        check: wanted.check,
        seed: wanted.seed,
        machine: wanted.machine,
        vm: wanted.vm,
        begun: None,
        samples: 0,
        notes: Vec::new(),
    };
    (benchmark.run)(&mut trial)?;
    trial.done()
}

impl Trial {
    /// The spec of the benchmark that runs.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Chance of this replication: the parameter `seed` where one is given, else `--seed`.
    pub fn seed(&self) -> u64 {
        let given = self.params.as_json().get("seed").and_then(Value::as_u64);
        given.filter(|seed| *seed != 0).unwrap_or(self.seed)
    }

    /// The gate: called when everything is checked, just before it is simulated. Only the first
    /// call does something. With a control channel it says `ready` and waits for `go`; of `check`
    /// it is the end.
    pub fn prepared(&mut self) -> Result<(), SimError> {
        if self.begun.is_some() {
            return Ok(());
        }
        if self.check {
            self.line(&json!({ "checked": self.spec.id }))?;
            self.flush()?;
            std::process::exit(0);
        }
        if self.control {
            let ready = json!({"pid": std::process::id(), "wall_ns": wall_ns()});
            self.line(&json!({ "ready": ready }))?;
            self.flush()?;
            self.watch.wait_for_go()?;
        }
        self.begun = Some((Instant::now(), wall_ns()));
        Ok(())
    }

    /// One value of the whole replication, seen `count` times.
    pub fn emit(
        &mut self,
        metric: &str,
        value: f64,
        count: u64,
        factors: Factors,
    ) -> Result<(), SimError> {
        self.emit_at(metric, value, count, 0, factors)
    }

    /// Every value that `tell` tells: metric, factors, value, count.
    pub fn emit_all(&mut self, tell: impl FnOnce(&mut Emit)) -> Result<(), SimError> {
        let mut first = Ok(());
        tell(&mut |metric, factors, value, count| {
            if first.is_ok() {
                let named = factors.iter().map(|(name, level)| ((*name).to_owned(), json!(level)));
                first = self.emit(metric, value, count, named.collect());
            }
        });
        first
    }

    /// As `emit_all`, of samples some of which have a moment.
    pub fn emit_all_at(&mut self, tell: impl FnOnce(gaps::Emit)) -> Result<(), SimError> {
        let mut first = Ok(());
        tell(&mut |metric, factors, value, count, at_ns| {
            if first.is_ok() {
                let named = factors.iter().map(|(name, level)| ((*name).to_owned(), level.clone()));
                first = self.emit_at(metric, value, count, at_ns.unwrap_or(0), named.collect());
            }
        });
        first
    }

    /// One value at a moment of simulated time. A value that is not finite is an error: missing is
    /// not zero and not NaN.
    pub fn emit_at(
        &mut self,
        metric: &str,
        value: f64,
        count: u64,
        at_ns: Nanos,
        factors: Factors,
    ) -> Result<(), SimError> {
        debug_assert!(self.spec.metric(metric).is_some(), "{metric} is not in the spec");
        if !value.is_finite() {
            return Err(SimError::new(
                Kind::Failed,
                "not_a_number",
                format!("{} yielded {metric} = {value}.", self.spec.id),
                "Report this with the parameters; the trial does not count.",
            ));
        }
        let metric = metric.to_owned();
        let line = SampleLine { metric, value: Some(value), count, at_ns, factors, document: None };
        self.sample(&line)
    }

    /// A JSON document.
    pub fn emit_document(&mut self, metric: &str, document: Value) -> Result<(), SimError> {
        debug_assert!(self.spec.metric(metric).is_some_and(|m| m.shape == Shape::Document));
        let metric = metric.to_owned();
        let (factors, document) = (Factors::new(), Some(document));
        self.sample(&SampleLine { metric, value: None, count: 1, at_ns: 0, factors, document })
    }

    /// A plain sentence that a reader of this trial has to know.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Prints any object as one line.
    pub fn line(&mut self, object: &Value) -> Result<(), SimError> {
        writeln!(self.out, "{object}").map_err(|error| SimError::output(&error))
    }

    /// Hands buffered lines to the reader.
    pub fn flush(&mut self) -> Result<(), SimError> {
        self.out.flush().map_err(|error| SimError::output(&error))
    }

    /// Prints the last line.
    fn done(mut self) -> Result<(), SimError> {
        self.prepared()?;
        let (began, started_wall_ns) = self.begun.expect("the gate was passed");
        let done = Done {
            started_wall_ns,
            elapsed_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
            samples: self.samples,
            // A simulated machine has no counters beside it; this one's would say nothing of it.
            beside: json!({}),
            notes: std::mem::take(&mut self.notes),
            served: None,
        };
        self.line(&json!({ "done": done }))?;
        self.flush()
    }

    fn sample(&mut self, line: &SampleLine) -> Result<(), SimError> {
        debug_assert!(self.begun.is_some(), "{} before the trial was prepared", line.metric);
        self.samples += 1;
        serde_json::to_writer(&mut self.out, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(|error| SimError::output(&error))
    }
}

/// A whole number above zero from an `int` parameter that the spec bounds so.
pub fn whole(params: &Params, id: &str) -> u64 {
    params.int(id).unsigned_abs()
}
