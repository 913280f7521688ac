//! What a benchmark says about itself: the one place from which the catalogue, the plan check, the
//! units in the store, the reference page and the default chart follow.
use serde::Serialize;
use serde_json::{json, Value};

/// Unit of a metric or a parameter. The name of a metric ends in the same unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Bytes (powers of two are said as such: KiB, MiB, GiB).
    Bytes,
    /// Bytes per second.
    BytesPerS,
    /// Bits per second; only line rates of network ports.
    BitsPerS,
    /// Operations, requests, digits or events per second.
    PerS,
    /// A ratio from 0 to 1, or a quotient of two like quantities; never percent.
    Ratio,
    /// A number of CPUs (1.5 is one and a half).
    Cpus,
    /// A plain count.
    Count,
    /// No unit: switches, names, texts.
    None,
}

/// Which direction is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: the metric describes.
    None,
}

/// How the samples of one trial are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One value a trial (or a few, of which the trial's median stands for the trial).
    Scalar,
    /// Events or readings in time: `at_ns` carries the meaning.
    Series,
    /// (value, count) pairs of an HDR histogram with 3 significant digits.
    Histogram,
    /// A JSON document, such as a fingerprint; `value` is absent.
    Document,
}

/// One quantity that a benchmark yields.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Metric {
    /// Name: quantity and unit (`latency_ns`).
    pub id: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Which direction is good.
    pub better: Better,
    /// How to read the samples.
    pub shape: Shape,
    /// Whether repetition stops on this metric and the report leads with it.
    pub headline: bool,
    /// One sentence: what it means.
    pub doc: &'static str,
}

/// Type, default and bounds of a parameter.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Whole number; bytes and nanoseconds too.
    Int {
        /// Value when the caller says nothing.
        default: i64,
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// Real number.
    Float {
        /// Value when the caller says nothing.
        default: f64,
        /// Smallest allowed.
        min: f64,
        /// Largest allowed.
        max: f64,
    },
    /// Switch.
    Bool {
        /// Value when the caller says nothing.
        default: bool,
    },
    /// One word of a list.
    Choice {
        /// Value when the caller says nothing.
        default: &'static str,
        /// The allowed words.
        choices: &'static [&'static str],
    },
    /// Free text, such as a path; an empty default means "not given".
    Text {
        /// Value when the caller says nothing.
        default: &'static str,
    },
    /// List of whole numbers; an empty list means "all" or "choose", as the doc says.
    IntList {
        /// Value when the caller says nothing.
        default: &'static [i64],
        /// Smallest allowed item.
        min: i64,
        /// Largest allowed item.
        max: i64,
    },
    /// List of words out of `choices`; an empty list means all of them.
    ChoiceList {
        /// Value when the caller says nothing.
        default: &'static [&'static str],
        /// The allowed words.
        choices: &'static [&'static str],
    },
}

/// One parameter of a benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name, with its unit where it has one (`duration_ns`).
    pub id: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Type, default, bounds.
    pub kind: Kind,
    /// One sentence: what it changes.
    pub doc: &'static str,
}

impl Param {
    /// The parameter as it stands in `contracts/benchmarks.json`.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut out = match self.kind {
            Kind::Int { default, min, max } => {
                json!({"type": "int", "default": default, "min": min, "max": max})
            }
            Kind::Float { default, min, max } => {
                json!({"type": "float", "default": default, "min": min, "max": max})
            }
            Kind::Bool { default } => json!({"type": "bool", "default": default}),
            Kind::Choice { default, choices } => {
                json!({"type": "choice", "default": default, "choices": choices})
            }
            Kind::Text { default } => json!({"type": "text", "default": default}),
            Kind::IntList { default, min, max } => {
                json!({"type": "int_list", "default": default, "min": min, "max": max})
            }
            Kind::ChoiceList { default, choices } => {
                json!({"type": "choice_list", "default": default, "choices": choices})
            }
        };
        out["id"] = json!(self.id);
        out["unit"] = json!(self.unit);
        out["doc"] = json!(self.doc);
        out
    }
}

/// A benchmark's declaration.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Name: room and quantity (`mem.latency`).
    pub id: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// What the caller may set.
    pub params: &'static [Param],
    /// What it yields.
    pub metrics: &'static [Metric],
    /// What running it costs the machine.
    pub overhead: &'static str,
    /// Where the method comes from.
    pub source: &'static str,
    /// Whether it has a far side (`serve`).
    pub two_sided: bool,
    /// Whether it can be a background load: with `duration_ns` 0 it runs until it is told to stop.
    pub load: bool,
}

impl Spec {
    /// The metric of that name.
    #[must_use]
    pub fn metric(&self, id: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.id == id)
    }

    /// The declaration as it stands in `contracts/benchmarks.json`; `page` is its manual page.
    #[must_use]
    pub fn to_json(&self, page: &str) -> Value {
        json!({
            "id": self.id,
            "summary": self.summary,
            "params": self.params.iter().map(Param::to_json).collect::<Vec<_>>(),
            "metrics": self.metrics,
            "overhead": self.overhead,
            "source": self.source,
            "two_sided": self.two_sided,
            "load": self.load,
            "page": page,
        })
    }
}

/// What a program can do, as its `describe` prints it: each spec, and the source text whose `//!`
/// lines are its manual page.
#[must_use]
pub fn describe<'a>(
    version: &str,
    benchmarks: impl IntoIterator<Item = (&'a Spec, &'a str)>,
) -> Value {
    let one = |(spec, source): (&Spec, &str)| spec.to_json(&page(source));
    json!({
        "probe": version,
        "protocol": crate::PROTOCOL,
        "benchmarks": benchmarks.into_iter().map(one).collect::<Vec<_>>(),
    })
}

/// The `//!` lines at the head of a source file, without their marks.
#[must_use]
pub fn page(source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n")
}
