//! One execution of one benchmark: parameters checked, counters read before and after, samples
//! printed as JSON lines.
//!
//! A trial has a gate: the instrument prepares (allocates, fills, connects), calls
//! [`Trial::prepared`], and only then measures. The trial's clock and the machine's counters start
//! there. With a control channel the gate opens when the caller says so.
use crate::beside::Counters;
use crate::error::ProbeError;
use crate::instruments::Instrument;
use crate::spare::Spare;
use crate::{affinity, clock, control, window};
use hdrhistogram::Histogram;
use nephoscope_wire::lines::{Done, SampleLine};
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Shape, Spec};
use serde_json::{json, Map, Value};
use std::io::{BufWriter, Stdout, Write};
use std::net::IpAddr;

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

/// The counters are read so many times earlier than a set start as reading them has just taken:
/// others that start at the same moment read theirs on the same CPUs.
const COUNTERS_LEAD: u64 = 4;
/// And by no less and no more than this.
const COUNTERS_LEAD_NS: std::ops::RangeInclusive<u64> = 5_000_000..=50_000_000;

/// What an instrument talks to: its parameters, and where its samples go.
pub struct Trial {
    /// Checked parameters.
    pub params: Params,
    spec: &'static Spec,
    out: BufWriter<Stdout>,
    started_ns: u64,
    /// Of the moment when the gate opened: the wall clock, and the machine's counters.
    opened: Option<(u64, Counters)>,
    /// What watches a CPU that the benchmark leaves free; made ready at the gate.
    spare: Spare,
    /// The CPUs at the beginning, before anything was pinned; `None` where no meter is wanted.
    watchable: Option<Vec<usize>>,
    samples: u64,
    notes: Vec<String>,
}

/// Where a server listens, and what lets a peer in.
pub struct Door {
    /// The address.
    pub bind: IpAddr,
    /// What the one peer presents.
    pub token: String,
}

/// Runs `instrument` once and prints its lines. gap_meter: whether one runs on a CPU that the
/// benchmark leaves free (never beside a load, which is not what is measured).
pub fn run(
    instrument: &Instrument,
    given: &Map<String, Value>,
    gap_meter: bool,
) -> Result<(), ProbeError> {
    let mut trial = Trial::new(instrument, given)?;
    if instrument.spec.load {
        control::stop_ends_in_order();
    } else if gap_meter {
        trial.watchable = Some(affinity::allowed());
    }
    (instrument.run)(&mut trial)?;
    trial.done(None)
}

/// Serves the far side of a two-sided benchmark.
pub fn serve(
    instrument: &Instrument,
    given: &Map<String, Value>,
    door: &Door,
) -> Result<(), ProbeError> {
    let Some(serve) = instrument.serve else {
        return Err(ProbeError::usage(
            format!("{} has one side only; there is nothing to serve.", instrument.spec.id),
            "Use `run`.",
        ));
    };
    let mut trial = Trial::new(instrument, given)?;
    control::stop_ends_in_order();
    // A server begins to serve at once; what it is told from now on is to stop.
    control::start_listening();
    trial.open(Counters::read());
    let served = serve(&mut trial, door)?;
    trial.done(Some(served))
}

impl Trial {
    fn new(instrument: &Instrument, given: &Map<String, Value>) -> Result<Self, ProbeError> {
        Ok(Self {
            params: Params::check(instrument.spec, given)?,
            spec: instrument.spec,
            out: BufWriter::with_capacity(1 << 16, std::io::stdout()),
            started_ns: clock::monotonic_ns(),
            opened: None,
            spare: Spare::missing("no gap meter was asked for"),
            watchable: None,
            samples: 0,
            notes: Vec::new(),
        })
    }

    /// The gate: called by every instrument when all is prepared, just before its first timed
    /// section. Only the first call does something. With a control channel it says that the probe
    /// is ready and waits for the start.
    ///
    /// # Errors
    /// The caller cancelled, stopped or went away instead.
    pub fn prepared(&mut self) -> Result<(), ProbeError> {
        if self.opened.is_some() {
            return Ok(());
        }
        let (mut start_at_ns, mut lead_ns) = (None, 0);
        if let Some(cpus) = &self.watchable {
            self.spare = Spare::prepare(self.spec, &self.params, cpus);
        }
        if control::active() {
            let began_ns = clock::monotonic_ns();
            std::hint::black_box(Counters::read());
            lead_ns = COUNTERS_LEAD * (clock::monotonic_ns() - began_ns);
            let ready = json!({"pid": std::process::id(), "wall_ns": clock::realtime_ns()});
            self.line(&json!({ "ready": ready }))?;
            self.flush()?;
            start_at_ns = control::wait_for_go()?;
        }
        // Read as late as possible, so that they tell of the measured part and not of the waiting;
        // but before a start that was set for a moment, so that reading them does not delay it.
        if let Some(wall_ns) = start_at_ns {
            let lead_ns = lead_ns.clamp(*COUNTERS_LEAD_NS.start(), *COUNTERS_LEAD_NS.end());
            control::wait_until(wall_ns.saturating_sub(lead_ns))?;
        }
        let counters = Counters::read();
        if let Some(wall_ns) = start_at_ns {
            control::wait_until(wall_ns)?;
        }
        self.open(counters);
        Ok(())
    }

    fn open(&mut self, counters: Counters) {
        self.spare.begin();
        self.started_ns = clock::monotonic_ns();
        self.opened = Some((clock::realtime_ns(), counters));
    }

    /// What the machine's counters did since the measured part began.
    pub fn beside(&self) -> Value {
        let (_, before) = self.opened.as_ref().expect("every instrument says when it is prepared");
        let mut beside = Counters::read().since(before);
        if let Some(keys) = beside.as_object_mut() {
            keys.extend(self.spare.report());
        }
        beside
    }

    /// Prints the last line.
    fn done(&mut self, served: Option<Value>) -> Result<(), ProbeError> {
        let elapsed_ns = self.at_ns();
        let beside = self.beside();
        self.spare.end();
        let done = Done {
            started_wall_ns: self.opened.as_ref().map_or(0, |(wall_ns, _)| *wall_ns),
            elapsed_ns,
            samples: self.samples,
            beside,
            notes: std::mem::take(&mut self.notes),
            served,
        };
        self.line(&json!({ "done": done }))?;
        self.flush()
    }

    /// The spec of the benchmark that runs.
    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// When the measured part began, on the monotonic clock.
    pub fn started_ns(&self) -> u64 {
        self.started_ns
    }

    /// Nanoseconds since the measured part began; 0 before that.
    pub fn at_ns(&self) -> u64 {
        self.opened.as_ref().map_or(0, |_| clock::monotonic_ns().saturating_sub(self.started_ns))
    }

    /// One value, observed now.
    pub fn emit(&mut self, metric: &str, value: f64, factors: Factors) -> Result<(), ProbeError> {
        let at_ns = self.at_ns();
        self.emit_at(metric, value, 1, at_ns, factors)
    }

    /// One value, observed `count` times, at a given time since the measured part began. A value that is
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

    /// A histogram, as (value, count) pairs.
    pub fn emit_histogram(
        &mut self,
        metric: &str,
        histogram: &Histogram<u64>,
        factors: &Factors,
    ) -> Result<(), ProbeError> {
        self.emit_pairs(metric, &window::pairs(histogram), factors)
    }

    /// A histogram that is pairs already.
    pub fn emit_pairs(
        &mut self,
        metric: &str,
        pairs: &[(f64, u64)],
        factors: &Factors,
    ) -> Result<(), ProbeError> {
        debug_assert!(self.spec.metric(metric).is_some_and(|m| m.shape == Shape::Histogram));
        let at_ns = self.at_ns();
        for (value, count) in pairs {
            self.emit_at(metric, *value, *count, at_ns, factors.clone())?;
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
        debug_assert!(self.opened.is_some(), "{} before the trial was prepared", line.metric);
        self.samples += 1;
        serde_json::to_writer(&mut self.out, line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(|error| ProbeError::output(&error))
    }
}
