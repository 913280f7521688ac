//! What travels on stdout: one JSON object a line, a sample each, then one `done` or one `error`;
//! and the one record that travels on stdin, where the far side is.
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
    /// Nanoseconds since the measured part began.
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
    /// Wall clock when the measured part began (nanoseconds since the epoch): what the start skew
    /// of several probes is computed from.
    pub started_wall_ns: u64,
    /// Time from then to the end.
    pub elapsed_ns: u64,
    /// Sample lines printed before this one.
    pub samples: u64,
    /// Counters of the machine over the trial (steal, pressure, throttling, faults, clock step);
    /// a counter that this machine hides is null, never 0.
    pub beside: Value,
    /// Plain sentences about this trial that a reader has to know (a fallback that was taken).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the far side of a two-sided benchmark counted; absent everywhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<Value>,
}

/// Where the far side of a two-sided benchmark listens, and the token it wants to see.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its address.
    pub address: std::net::IpAddr,
    /// Its TCP port.
    pub port: u16,
    /// What it is convinced by.
    pub token: String,
}

/// The token stays out of every log.
impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peer({}:{})", self.address, self.port)
    }
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
