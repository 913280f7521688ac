//! What travels on stdout: one JSON object a line, a sample each, then one `done` or one `error`.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One observed value of a metric.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SampleLine {
    /// Name of the metric, as in the spec.
    pub metric: String,
    /// The value, in the metric's unit; absent for a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// How often it was observed (histograms), else 1.
    pub count: u64,
    /// Nanoseconds since the trial began.
    pub at_ns: u64,
    /// What the value depends on inside the trial (vector length, CPU, operation).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub factors: Map<String, Value>,
    /// The document, for metrics of that shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
}

/// The last line of a trial that went well.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Done {
    /// Wall time of the whole trial.
    pub elapsed_ns: u64,
    /// Sample lines printed before this one.
    pub samples: u64,
    /// Counters of the machine over the trial (steal, pressure, throttling, faults, clock step);
    /// a counter that this machine hides is null, never 0.
    pub beside: Value,
    /// Plain sentences about this trial that a reader has to know (a fallback that was taken).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The last line of a trial that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Stable name (`no_direct_io`), for programs.
    pub name: String,
    /// What and where, for people.
    pub message: String,
    /// What to do next.
    pub hint: String,
}
