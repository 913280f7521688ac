//! One execution of one benchmark: parameters checked, counters read before and after, samples
//! printed as JSON lines.
use crate::beside::Counters;
use crate::clock;
use crate::error::ProbeError;
use crate::instruments::Instrument;
use hdrhistogram::Histogram;
use nephoscope_wire::lines::{Done, SampleLine};
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Shape, Spec};
use serde_json::{json, Map, Value};
use std::io::{BufWriter, Stdout, Write};

/// Factors of a sample: what it depends on inside the trial.
pub type Factors = Map<String, Value>;

/// Builds [`Factors`]: `factors! {"cpu": 0, "op": "read"}`.
#[macro_export]
macro_rules! factors {
    ($($name:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut map = $crate::trial::Factors::new();
        $(map.insert($name.to_owned(), serde_json::json!($value));)*
        map
    }};
}

/// What an instrument talks to: its parameters, and where its samples go.
pub struct Trial {
    /// Checked parameters.
    pub params: Params,
    spec: &'static Spec,
    out: BufWriter<Stdout>,
    started_ns: u64,
    samples: u64,
    notes: Vec<String>,
}

/// Runs `instrument` once and prints its lines.
pub fn run(instrument: &Instrument, given: &Map<String, Value>) -> Result<(), ProbeError> {
    let mut trial = Trial::new(instrument, given)?;
    let before = Counters::read();
    let started_ns = clock::monotonic_ns();
    trial.started_ns = started_ns;
    (instrument.run)(&mut trial)?;
    let elapsed_ns = clock::monotonic_ns() - started_ns;
    let beside = Counters::read().since(&before);
    let done = Done { elapsed_ns, samples: trial.samples, beside, notes: trial.notes.clone() };
    trial.line(&json!({ "done": done }))?;
    trial.flush()
}

/// Serves the far side of a two-sided benchmark.
pub fn serve(
    instrument: &Instrument,
    given: &Map<String, Value>,
    token: &str,
) -> Result<(), ProbeError> {
    let Some(serve) = instrument.serve else {
        return Err(ProbeError::usage(
            format!("{} has one side only; there is nothing to serve.", instrument.spec.id),
            "Use `run`.",
        ));
    };
    serve(&mut Trial::new(instrument, given)?, token)
}

impl Trial {
    fn new(instrument: &Instrument, given: &Map<String, Value>) -> Result<Self, ProbeError> {
        Ok(Self {
            params: Params::check(instrument.spec, given)?,
            spec: instrument.spec,
            out: BufWriter::with_capacity(1 << 16, std::io::stdout()),
            started_ns: clock::monotonic_ns(),
            samples: 0,
            notes: Vec::new(),
        })
    }

    /// The spec of the benchmark that runs.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// When the trial began, on the monotonic clock.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Nanoseconds since the trial began.
    pub fn at_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_sub(self.started_ns)
    }

    /// One value, observed now.
    pub fn emit(&mut self, metric: &str, value: f64, factors: Factors) -> Result<(), ProbeError> {
        let at_ns = self.at_ns();
        self.emit_at(metric, value, 1, at_ns, factors)
    }

    /// One value, observed `count` times, at a given time since the trial began. A value that is
    /// not finite is an error: missing is not zero and not NaN.
    pub fn emit_at(
        &mut self,
        metric: &str,
        value: f64,
        count: u64,
        at_ns: u64,
        factors: Factors,
    ) -> Result<(), ProbeError> {
        debug_assert!(self.spec.metric(metric).is_some(), "{metric} is not in the spec");
        if !value.is_finite() {
            return Err(ProbeError::new(
                crate::error::Kind::Failed,
                "not_a_number",
                format!("{} measured {metric} = {value}.", self.spec.id),
                "Report this with the parameters; the trial does not count.",
            ));
        }
        let metric = metric.to_owned();
        let line = SampleLine { metric, value: Some(value), count, at_ns, factors, document: None };
        self.sample(&line)
    }

    /// A histogram, as (value, count) pairs. The value of a pair is the middle of its bucket.
    pub fn emit_histogram(
        &mut self,
        metric: &str,
        histogram: &Histogram<u64>,
        factors: &Factors,
    ) -> Result<(), ProbeError> {
        debug_assert!(self.spec.metric(metric).is_some_and(|m| m.shape == Shape::Histogram));
        let at_ns = self.at_ns();
        for bucket in histogram.iter_recorded() {
            let value = histogram.median_equivalent(bucket.value_iterated_to()) as f64;
            let count = bucket.count_since_last_iteration();
            self.emit_at(metric, value, count, at_ns, factors.clone())?;
        }
        Ok(())
    }

    /// A JSON document.
    pub fn emit_document(&mut self, metric: &str, document: Value) -> Result<(), ProbeError> {
        debug_assert!(self.spec.metric(metric).is_some_and(|m| m.shape == Shape::Document));
        let metric = metric.to_owned();
        let (at_ns, factors, document) = (self.at_ns(), Factors::new(), Some(document));
        self.sample(&SampleLine { metric, value: None, count: 1, at_ns, factors, document })
    }

    /// A plain sentence that a reader of this trial has to know.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    /// Prints any object as one line (`ready` of a server).
    pub fn line(&mut self, object: &Value) -> Result<(), ProbeError> {
        writeln!(self.out, "{object}").map_err(|error| ProbeError::output(&error))
    }

    /// Hands buffered lines to the reader.
    pub fn flush(&mut self) -> Result<(), ProbeError> {
        self.out.flush().map_err(|error| ProbeError::output(&error))
    }

    fn sample(&mut self, line: &SampleLine) -> Result<(), ProbeError> {
        self.samples += 1;
        serde_json::to_writer(&mut self.out, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(|error| ProbeError::output(&error))
    }
}
