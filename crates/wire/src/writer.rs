//! Writes the lines of a trial: `ready`, its samples, and the `done` at its end.
use crate::error::{Error, FailureKind};
use crate::lines::{Done, SampleLine};
use crate::spec::{Shape, Spec};
use serde::Serialize;
use serde_json::{json, Map, Value};
use std::io::Write;

/// Factors of a sample: what it depends on inside the trial.
pub type Factors = Map<String, Value>;

/// Builds [`Factors`]: `factors! {"cpu": 0, "op": "read"}`.
#[macro_export]
macro_rules! factors {
    ($($name:literal : $value:expr),* $(,)?) => {{
        #[allow(unused_mut)]
        let mut factors = $crate::writer::Factors::new();
        $(factors.insert($name.to_owned(), ::serde_json::json!($value));)*
        factors
    }};
}

/// Writes the lines of one trial. The clock is given: that of the machine for what is measured, a
/// constant for what is simulated.
pub struct TrialWriter<W: Write> {
    spec: &'static Spec,
    out: W,
    clock_ns: fn() -> u64,
    /// The clock at the start of the measured part.
    started_ns: Option<u64>,
    samples: u64,
    notes: Vec<String>,
}

impl<W: Write> TrialWriter<W> {
    /// A writer of the samples of `spec` to `out`, each with the time that `clock_ns` shows.
    pub fn new(spec: &'static Spec, out: W, clock_ns: fn() -> u64) -> Self {
        Self { spec, out, clock_ns, started_ns: None, samples: 0, notes: Vec::new() }
    }

    pub fn spec(&self) -> &'static Spec {
        self.spec
    }

    /// Begins the measured part: the times of samples count from here.
    pub fn start(&mut self) {
        self.started_ns = Some((self.clock_ns)());
    }

    /// The clock at the start of the measured part, once it has begun.
    pub fn started_ns(&self) -> Option<u64> {
        self.started_ns
    }

    /// Nanoseconds since the measured part began; 0 before that.
    pub fn at_ns(&self) -> u64 {
        self.started_ns.map_or(0, |started_ns| (self.clock_ns)().saturating_sub(started_ns))
    }

    /// Writes one value, observed now.
    pub fn emit(&mut self, metric: &str, value: f64, factors: Factors) -> Result<(), Error> {
        let at_ns = self.at_ns();
        self.emit_at(metric, value, 1, at_ns, factors)
    }

    /// Writes the values that are known: missing is not zero.
    pub fn emit_known(
        &mut self,
        values: &[(&str, Option<f64>)],
        factors: &Factors,
    ) -> Result<(), Error> {
        let known = values.iter().filter_map(|(metric, value)| Some((metric, (*value)?)));
        known.into_iter().try_for_each(|(metric, value)| self.emit(metric, value, factors.clone()))
    }

    /// Writes one value, observed `count` times, at a time since the measured part began. Refuses a
    /// value that is not finite: missing is neither zero nor NaN.
    pub fn emit_at(
        &mut self,
        metric: &str,
        value: f64,
        count: u64,
        at_ns: u64,
        factors: Factors,
    ) -> Result<(), Error> {
        debug_assert!(self.spec.metric(metric).is_some(), "{metric} is not in the spec");
        if !value.is_finite() {
            return Err(Error::new(
                FailureKind::Failed,
                "not_a_number",
                format!("{} yielded {metric} = {value}.", self.spec.id),
                "Report this with the parameters; the trial does not count.",
            ));
        }
        let value = Some(value);
        self.sample(&SampleLine { metric, value, count, at_ns, factors, document: None })
    }

    /// Writes a histogram, given as pairs of value and count.
    pub fn emit_pairs(
        &mut self,
        metric: &str,
        pairs: impl IntoIterator<Item = (f64, u64)>,
        factors: &Factors,
    ) -> Result<(), Error> {
        debug_assert!(self.has(metric, Shape::Histogram), "{metric} is no histogram");
        let at_ns = self.at_ns();
        for (value, count) in pairs {
            self.emit_at(metric, value, count, at_ns, factors.clone())?;
        }
        Ok(())
    }

    pub fn emit_document(&mut self, metric: &str, document: Value) -> Result<(), Error> {
        debug_assert!(self.has(metric, Shape::Document), "{metric} is no document");
        let (at_ns, factors) = (self.at_ns(), Factors::new());
        let document = Some(document);
        self.sample(&SampleLine { metric, value: None, count: 1, at_ns, factors, document })
    }

    /// Adds a plain sentence that a reader of this trial has to know.
    pub fn note(&mut self, sentence: impl Into<String>) {
        self.notes.push(sentence.into());
    }

    pub fn line(&mut self, object: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.out, object)
            .map_err(std::io::Error::from)
            .and_then(|()| self.out.write_all(b"\n"))
            .map_err(|error| Error::output(&error))
    }

    /// Writes the line that reports readiness, and hands it to the reader at once.
    pub fn ready(&mut self, ready: &impl Serialize) -> Result<(), Error> {
        self.line(&json!({ "ready": ready }))?;
        self.flush()
    }

    pub fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(|error| Error::output(&error))
    }

    /// Writes the last line of a successful trial, with the number of samples and the notes.
    pub fn done(&mut self, ending: Done) -> Result<(), Error> {
        let notes = std::mem::take(&mut self.notes);
        let done = Done { samples: self.samples, notes, ..ending };
        self.line(&json!({ "done": done }))?;
        self.flush()
    }

    fn has(&self, metric: &str, shape: Shape) -> bool {
        self.spec.metric(metric).is_some_and(|metric| metric.shape == shape)
    }

    fn sample(&mut self, line: &SampleLine) -> Result<(), Error> {
        debug_assert!(self.started_ns.is_some(), "{} before the start", line.metric);
        self.samples += 1;
        self.line(line)
    }
}

/// Writes the last line of a trial that failed, for programs on `out` and for people on standard
/// error; returns the exit code. A closed output is no reason to lose the sentence.
pub fn report_error(program: &str, error: &Error, mut out: impl Write) -> i32 {
    let line = format!("{}\n", json!({ "error": error }));
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    eprintln!("{program}: {error}");
    error.kind.exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Metric, Resource};

    const SPEC: Spec = Spec {
        metrics: &[
            Metric::lower("latency_ns").histogram(),
            Metric::higher("rate_per_s"),
            Metric::document("facts"),
        ],
        ..Spec::about(Resource::None)
    };

    fn lines(
        write: impl FnOnce(&mut TrialWriter<&mut Vec<u8>>) -> Result<(), Error>,
    ) -> Vec<Value> {
        let mut bytes = Vec::new();
        let mut writer = TrialWriter::new(&SPEC, &mut bytes, || 5);
        writer.start();
        write(&mut writer).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_trial_ends_with_the_number_of_its_samples() {
        let lines = lines(|writer| {
            writer.emit("rate_per_s", 2.0, factors! {"op": "read"})?;
            writer.emit_pairs("latency_ns", [(1.0, 3), (2.0, 4)], &Factors::new())?;
            writer.emit_document("facts", json!({"cpus": 2}))?;
            writer.note("A note.");
            let counters = json!({"steal_ratio": null});
            writer.done(Done { elapsed_ns: 7, counters, ..Done::default() })
        });
        assert_eq!(
            lines[0],
            json!({
                "metric": "rate_per_s", "value": 2.0, "count": 1, "at_ns": 0,
                "factors": {"op": "read"},
            })
        );
        assert_eq!((&lines[2]["value"], &lines[2]["count"]), (&json!(2.0), &json!(4)));
        assert_eq!(lines[3]["document"], json!({"cpus": 2}));
        let done = &lines[4]["done"];
        assert_eq!((&done["samples"], &done["elapsed_ns"]), (&json!(4), &json!(7)));
        assert_eq!(done["notes"], json!(["A note."]));
    }

    #[test]
    fn a_value_that_is_not_finite_is_refused() {
        let mut writer = TrialWriter::new(&SPEC, Vec::new(), || 0);
        writer.start();
        for value in [f64::NAN, f64::INFINITY] {
            let error = writer.emit("rate_per_s", value, Factors::new()).unwrap_err();
            assert_eq!(error.name, "not_a_number");
        }
    }
}
