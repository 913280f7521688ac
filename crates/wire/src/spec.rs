//! What a benchmark says about itself: the one place from which the catalogue, the plan check, the
//! units in the store, the reference page and the default chart follow.
use serde::Serialize;
use serde_json::{json, Value};
use std::ops::RangeInclusive;

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

impl Unit {
    /// Returns the unit that a name ends in (`latency_ns`); `None` where it ends in no unit.
    #[must_use]
    pub const fn of_name(name: &str) -> Self {
        // Longer endings first: `_bytes_per_s` ends in `_per_s` too.
        const ENDINGS: [(&str, Unit); 8] = [
            ("_bytes_per_s", Unit::BytesPerS),
            ("_bits_per_s", Unit::BitsPerS),
            ("_per_s", Unit::PerS),
            ("_bytes", Unit::Bytes),
            ("_ns", Unit::Ns),
            ("_ratio", Unit::Ratio),
            ("_cpus", Unit::Cpus),
            ("_count", Unit::Count),
        ];
        let mut index = 0;
        while index < ENDINGS.len() {
            if ends_with(name.as_bytes(), ENDINGS[index].0.as_bytes()) {
                return ENDINGS[index].1;
            }
            index += 1;
        }
        Self::None
    }
}

/// `[u8]::ends_with`, which cannot be called in a constant.
const fn ends_with(text: &[u8], ending: &[u8]) -> bool {
    let Some(offset) = text.len().checked_sub(ending.len()) else { return false };
    let mut index = 0;
    while index < ending.len() {
        if text[offset + index] != ending[index] {
            return false;
        }
        index += 1;
    }
    true
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

/// Builds a metric from its name, which tells its unit, and the sentence that says what it means. It
/// is a scalar and not a headline, unless a further call says otherwise.
impl Metric {
    /// A quantity of which more is better.
    #[must_use]
    pub const fn higher(id: &'static str, doc: &'static str) -> Self {
        Self { better: Better::Higher, ..Self::neutral(id, doc) }
    }

    /// A quantity of which less is better.
    #[must_use]
    pub const fn lower(id: &'static str, doc: &'static str) -> Self {
        Self { better: Better::Lower, ..Self::neutral(id, doc) }
    }

    /// A quantity that describes and is neither good nor bad.
    #[must_use]
    pub const fn neutral(id: &'static str, doc: &'static str) -> Self {
        let (unit, better) = (Unit::of_name(id), Better::None);
        Self { id, unit, better, shape: Shape::Scalar, headline: false, doc }
    }

    /// A JSON document.
    #[must_use]
    pub const fn document(id: &'static str, doc: &'static str) -> Self {
        Self { shape: Shape::Document, ..Self::neutral(id, doc) }
    }

    /// The same metric as the values of a histogram.
    #[must_use]
    pub const fn histogram(self) -> Self {
        Self { shape: Shape::Histogram, ..self }
    }

    /// The same metric as readings in time.
    #[must_use]
    pub const fn series(self) -> Self {
        Self { shape: Shape::Series, ..self }
    }

    /// The same metric as one that repetition stops on and the report leads with.
    #[must_use]
    pub const fn headline(self) -> Self {
        Self { headline: true, ..self }
    }

    /// The same metric in a unit that its name does not tell.
    #[must_use]
    pub const fn in_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }
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

/// Builds a parameter from its name, which tells its unit, its default, its bounds and the sentence
/// that says what it changes.
impl Param {
    const fn new(id: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { id, unit: Unit::of_name(id), kind, doc }
    }

    /// A whole number.
    #[must_use]
    pub const fn int(
        id: &'static str,
        default: i64,
        bounds: RangeInclusive<i64>,
        doc: &'static str,
    ) -> Self {
        let (min, max) = (*bounds.start(), *bounds.end());
        Self::new(id, Kind::Int { default, min, max }, doc)
    }

    /// A whole number of things that the name itself counts (`threads`).
    #[must_use]
    pub const fn count(
        id: &'static str,
        default: i64,
        bounds: RangeInclusive<i64>,
        doc: &'static str,
    ) -> Self {
        Self::int(id, default, bounds, doc).in_unit(Unit::Count)
    }

    /// The seed of a random generator; 0 stands for one that changes with every trial.
    #[must_use]
    pub const fn seed(doc: &'static str) -> Self {
        Self::int("seed", 0, 0..=i64::MAX, doc)
    }

    /// A real number.
    #[must_use]
    pub const fn float(
        id: &'static str,
        default: f64,
        bounds: RangeInclusive<f64>,
        doc: &'static str,
    ) -> Self {
        let (min, max) = (*bounds.start(), *bounds.end());
        Self::new(id, Kind::Float { default, min, max }, doc)
    }

    /// A switch.
    #[must_use]
    pub const fn switch(id: &'static str, default: bool, doc: &'static str) -> Self {
        Self::new(id, Kind::Bool { default }, doc)
    }

    /// One word out of `choices`.
    #[must_use]
    pub const fn choice(
        id: &'static str,
        default: &'static str,
        choices: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self::new(id, Kind::Choice { default, choices }, doc)
    }

    /// Any number of words out of `choices`; all of them where none is given.
    #[must_use]
    pub const fn choices(
        id: &'static str,
        choices: &'static [&'static str],
        doc: &'static str,
    ) -> Self {
        Self::new(id, Kind::ChoiceList { default: &[], choices }, doc)
    }

    /// Free text, such as a path.
    #[must_use]
    pub const fn text(id: &'static str, default: &'static str, doc: &'static str) -> Self {
        Self::new(id, Kind::Text { default }, doc)
    }

    /// A list of whole numbers.
    #[must_use]
    pub const fn ints(
        id: &'static str,
        default: &'static [i64],
        bounds: RangeInclusive<i64>,
        doc: &'static str,
    ) -> Self {
        let (min, max) = (*bounds.start(), *bounds.end());
        Self::new(id, Kind::IntList { default, min, max }, doc)
    }

    /// The same parameter in a unit that its name does not tell.
    #[must_use]
    pub const fn in_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    /// The same parameter with a sentence of its own.
    #[must_use]
    pub const fn documented(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
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
    /// A benchmark that has one side and ends by itself, unless fields are set otherwise.
    #[must_use]
    pub const fn new(id: &'static str, summary: &'static str) -> Self {
        Self {
            id,
            summary,
            params: &[],
            metrics: &[],
            overhead: "",
            source: "",
            two_sided: false,
            load: false,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_unit() {
        for (name, unit) in [
            ("copy_bytes_per_s", Unit::BytesPerS),
            ("nic_speed_bits_per_s", Unit::BitsPerS),
            ("operations_per_s", Unit::PerS),
            ("file_bytes", Unit::Bytes),
            ("bytes_per_array", Unit::None),
            ("latency_ns", Unit::Ns),
            ("cpus", Unit::None),
            ("load_cpus", Unit::Cpus),
            ("", Unit::None),
        ] {
            assert_eq!(Unit::of_name(name), unit, "{name}");
        }
    }

    #[test]
    fn built_declarations_are_those_of_their_fields() {
        const TIME: Metric = Metric::lower("latency_ns", "Time.").histogram().headline();
        assert_eq!((TIME.unit, TIME.better), (Unit::Ns, Better::Lower));
        assert_eq!((TIME.shape, TIME.headline), (Shape::Histogram, true));
        const THREADS: Param = Param::count("threads", 1, 0..=256, "Threads.");
        assert_eq!(
            THREADS.to_json(),
            json!({
                "type": "int", "default": 1, "min": 0, "max": 256,
                "id": "threads", "unit": "count", "doc": "Threads.",
            })
        );
    }
}
