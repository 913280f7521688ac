//! What a benchmark says about itself: the one place from which the catalogue, the plan check, the
//! units in the store, the reference page and the default chart follow.
use crate::meaning::{Aggressor, ClosedLoop, Headline, Victim};
pub use crate::meaning::{Domain, RequestLoop, Resource};
use serde::Serialize;
use serde_json::{json, Value};
use std::ops::RangeInclusive;

/// Unit of a metric or a parameter. The name of a metric ends in the same unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    Ns,
    /// Powers of two are written as such: KiB, MiB, GiB.
    Bytes,
    BytesPerS,
    /// Bits per second; only line rates of network ports.
    BitsPerS,
    /// Operations, requests, digits or events per second.
    PerS,
    /// A ratio from 0 to 1, or a quotient of two like quantities; never percent.
    Ratio,
    /// A number of CPUs (1.5 is one and a half).
    Cpus,
    Count,
    /// No unit: switches, names, texts.
    None,
}

impl Unit {
    /// Returns the unit that a name ends in (`latency_ns`); `None` where it ends in no unit.
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
    Higher,
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

/// A quantity that a benchmark measures.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Metric {
    /// Quantity and unit (`latency_ns`).
    pub id: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub shape: Shape,
    /// Whether repetition stops on this metric and the report leads with it.
    pub headline: bool,
    /// One sentence: what it means.
    pub doc: &'static str,
    /// Whether it lies between 0 and 1 by its definition, as a part of a whole does. A ratio that
    /// may exceed 1, such as a speed-up, is none.
    pub share: bool,
    /// Whether it is the rate of all threads together, which N threads can raise N times at most.
    #[serde(skip_serializing_if = "is_false")]
    pub scales_with_threads: bool,
    /// How the summary of a report shows it; the metrics of a summary have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_summary: Option<Headline>,
}

/// Declares a metric by its name, whose ending states its unit. It is a scalar and not a headline
/// unless a further call changes that.
impl Metric {
    pub const fn higher(id: &'static str) -> Self {
        Self { better: Better::Higher, ..Self::neutral(id) }
    }

    pub const fn lower(id: &'static str) -> Self {
        Self { better: Better::Lower, ..Self::neutral(id) }
    }

    pub const fn neutral(id: &'static str) -> Self {
        Self {
            id,
            unit: Unit::of_name(id),
            better: Better::None,
            shape: Shape::Scalar,
            headline: false,
            doc: "",
            share: false,
            scales_with_threads: false,
            in_summary: None,
        }
    }

    pub const fn document(id: &'static str) -> Self {
        Self { shape: Shape::Document, ..Self::neutral(id) }
    }

    pub const fn histogram(self) -> Self {
        Self { shape: Shape::Histogram, ..self }
    }

    pub const fn series(self) -> Self {
        Self { shape: Shape::Series, ..self }
    }

    pub const fn headline(self) -> Self {
        Self { headline: true, ..self }
    }

    pub const fn scales_with_threads(self) -> Self {
        Self { scales_with_threads: true, ..self }
    }

    pub const fn in_summary(self, headline: Headline) -> Self {
        Self { in_summary: Some(headline), ..self }
    }

    pub const fn share(self) -> Self {
        assert!(matches!(self.unit, Unit::Ratio), "a share is a ratio");
        Self { share: true, ..self }
    }

    /// Sets a unit that the name does not state.
    pub const fn in_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    pub const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

/// Type, default and bounds of a parameter.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ParamKind {
    /// Whole number; also bytes and nanoseconds.
    Int {
        default: i64,
        min: i64,
        max: i64,
    },
    Float {
        default: f64,
        min: f64,
        max: f64,
    },
    Bool {
        default: bool,
    },
    Choice {
        default: &'static str,
        choices: &'static [&'static str],
    },
    /// Free text, such as a path; an empty default means "not given".
    Text {
        default: &'static str,
    },
    /// List of free texts, such as the arguments of a program; empty where none is given.
    TextList {
        default: &'static [&'static str],
    },
    /// List of whole numbers; an empty list means "all" or "choose", as the doc states.
    IntList {
        default: &'static [i64],
        min: i64,
        max: i64,
    },
    /// List of words out of `choices`; an empty list means all of them.
    ChoiceList {
        default: &'static [&'static str],
        choices: &'static [&'static str],
    },
}

/// A parameter of a benchmark.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Param {
    #[serde(flatten)]
    pub kind: ParamKind,
    /// Name, with its unit where it has one (`duration_ns`).
    pub id: &'static str,
    pub unit: Unit,
    /// One sentence: what it changes.
    pub doc: &'static str,
}

/// Declares a parameter by its name, whose ending states its unit.
impl Param {
    const fn new(id: &'static str, kind: ParamKind) -> Self {
        Self { kind, id, unit: Unit::of_name(id), doc: "" }
    }

    pub const fn int(id: &'static str, default: i64, bounds: RangeInclusive<i64>) -> Self {
        let (min, max) = (*bounds.start(), *bounds.end());
        Self::new(id, ParamKind::Int { default, min, max })
    }

    /// A whole number of things that the name itself counts (`threads`).
    pub const fn count(id: &'static str, default: i64, bounds: RangeInclusive<i64>) -> Self {
        Self::int(id, default, bounds).in_unit(Unit::Count)
    }

    /// The seed of a random generator; 0 stands for one that changes with every trial.
    pub const fn seed() -> Self {
        Self::int("seed", 0, 0..=i64::MAX)
    }

    pub const fn float(id: &'static str, default: f64, bounds: RangeInclusive<f64>) -> Self {
        let (min, max) = (*bounds.start(), *bounds.end());
        Self::new(id, ParamKind::Float { default, min, max })
    }

    pub const fn switch(id: &'static str, default: bool) -> Self {
        Self::new(id, ParamKind::Bool { default })
    }

    /// One word out of `choices`.
    pub const fn choice(
        id: &'static str,
        default: &'static str,
        choices: &'static [&'static str],
    ) -> Self {
        Self::new(id, ParamKind::Choice { default, choices })
    }

    /// Any number of words out of `choices`; all of them if none is given.
    pub const fn choices(id: &'static str, choices: &'static [&'static str]) -> Self {
        Self::new(id, ParamKind::ChoiceList { default: &[], choices })
    }

    pub const fn text(id: &'static str, default: &'static str) -> Self {
        Self::new(id, ParamKind::Text { default })
    }

    /// A list of texts; empty unless one is given.
    pub const fn texts(id: &'static str) -> Self {
        Self::new(id, ParamKind::TextList { default: &[] })
    }

    pub const fn ints(
        id: &'static str,
        default: &'static [i64],
        bounds: RangeInclusive<i64>,
    ) -> Self {
        let (min, max) = (*bounds.start(), *bounds.end());
        Self::new(id, ParamKind::IntList { default, min, max })
    }

    /// Returns whether a number lies in the bounds; false for a parameter that is no number.
    pub fn allows(&self, number: f64) -> bool {
        match self.kind {
            ParamKind::Int { min, max, .. } => (min as f64..=max as f64).contains(&number),
            ParamKind::Float { min, max, .. } => (min..=max).contains(&number),
            _ => false,
        }
    }

    /// Sets a unit that the name does not state.
    pub const fn in_unit(self, unit: Unit) -> Self {
        Self { unit, ..self }
    }

    pub const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }
}

/// Joins lists of declarations; `N` is their length altogether.
pub const fn joined<T: Copy, const N: usize>(lists: &[&[T]]) -> [T; N] {
    let mut all = [lists[0][0]; N];
    let (mut count, mut list) = (0, 0);
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            all[count] = lists[list][index];
            (count, index) = (count + 1, index + 1);
        }
        list += 1;
    }
    assert!(count == N, "the length is not that of the lists");
    all
}

/// A benchmark's declaration.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spec {
    /// Group and quantity (`mem.latency`).
    pub id: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    pub params: &'static [Param],
    pub metrics: &'static [Metric],
    /// What running it costs the machine.
    pub overhead: &'static str,
    /// Where the method comes from.
    pub source: &'static str,
    /// Whether it has a far side (`serve`).
    pub two_sided: bool,
    /// Whether it can be a background load: with `duration_ns` 0 it runs until it is stopped.
    pub load: bool,
    /// What its results depend on.
    pub resource: Resource,
    /// The kind of application that it is or loads.
    #[serde(skip_serializing_if = "is_domain_none")]
    pub domain: Domain,
    /// When it issues requests.
    #[serde(skip_serializing_if = "is_loop_none")]
    pub request_loop: RequestLoop,
    /// Its closed loops whose rate, latency and depth it reports.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub closed_loops: &'static [ClosedLoop],
    /// Of a server: the metric with the number of responses sent, over all kinds of requests.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub response_counter: &'static str,
    /// What it takes from neighbours.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub aggressor_for: &'static [Aggressor],
    /// What a neighbour can take from it.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub victim_for: &'static [Victim],
}

impl Spec {
    /// A benchmark about a resource, which has one side and ends by itself. There is no default
    /// resource: a declaration without one does not compile.
    pub const fn about(resource: Resource) -> Self {
        Self {
            id: "",
            summary: "",
            params: &[],
            metrics: &[],
            overhead: "",
            source: "",
            two_sided: false,
            load: false,
            resource,
            domain: Domain::None,
            request_loop: RequestLoop::None,
            closed_loops: &[],
            response_counter: "",
            aggressor_for: &[],
            victim_for: &[],
        }
    }

    pub fn metric(&self, id: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.id == id)
    }
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_domain_none(domain: &Domain) -> bool {
    *domain == Domain::None
}

fn is_loop_none(request_loop: &RequestLoop) -> bool {
    *request_loop == RequestLoop::None
}

/// What a program can do, as its `describe` prints it: each spec, and the source text whose `//!`
/// lines are its manual page.
pub fn describe<'a>(
    version: &str,
    benchmarks: impl IntoIterator<Item = (&'a Spec, &'a str)>,
) -> Value {
    let declaration = |(spec, source): (&Spec, &str)| {
        let mut declaration = json!(spec);
        declaration["page"] = json!(page(source));
        declaration
    };
    json!({
        "probe": version,
        "protocol": crate::PROTOCOL,
        "benchmarks": benchmarks.into_iter().map(declaration).collect::<Vec<_>>(),
    })
}

/// The `//!` lines at the head of a source file, without their marks.
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
        const TIME: Metric = Metric::lower("latency_ns").histogram().headline();
        assert_eq!((TIME.unit, TIME.better), (Unit::Ns, Better::Lower));
        assert_eq!((TIME.shape, TIME.headline), (Shape::Histogram, true));
        const LOSS: Metric = Metric::lower("loss_ratio").share();
        assert_eq!((json!(LOSS)["share"].clone(), TIME.share), (json!(true), false));
        const THREADS: Param = Param::count("threads", 1, 0..=256).doc("Threads.");
        assert_eq!(
            json!(THREADS),
            json!({
                "type": "int", "default": 1, "min": 0, "max": 256,
                "id": "threads", "unit": "count", "doc": "Threads.",
            })
        );
    }
}
