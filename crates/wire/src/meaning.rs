//! What a benchmark is about: its resource, the kind of application that it stands for, how it issues
//! requests, and its part in experiments with neighbours. Everything that ranks, compares or
//! combines benchmarks reads these attributes, and no list of their names.
use serde::{Serialize, Serializer};

/// What of a machine mainly decides the results of a benchmark, or what a load occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Speed at which CPUs execute instructions: arithmetic, hashing, compression.
    Cpu,
    /// Caches of the CPUs.
    Cache,
    /// Bandwidth and latency of main memory.
    Memory,
    /// Files and disks: reads or writes, as the setting (`operation`) or the metric states.
    Disk,
    /// Files and disks: writes, with or without synchronisation.
    DiskWrite,
    /// The network and its stack: throughput, round trips, loss.
    Network,
    /// Allocation of CPU time: gaps, wake-ups, context switches, messages between tasks.
    Scheduler,
    /// Calls into the kernel: system calls, page faults, signals, creation of processes.
    Kernel,
    /// Several of these together, as in an index or a suite of applications.
    Several,
    /// None: facts about a machine, a program of the user, a simulation, a test of the software.
    None,
}

/// The kind of application that a benchmark is, or whose server it loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Domain {
    /// No application: it measures a resource by itself.
    None,
    /// Web servers (HTTP).
    Web,
    /// Stores of keys and values (Redis, memcached).
    KeyValue,
    /// Databases with tables and transactions.
    Database,
}

/// When the next request, operation or packet is issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestLoop {
    /// It issues no requests.
    None,
    /// After the response to the previous one; a stall of the server delays the following requests.
    Closed,
    /// At intended times, whether or not earlier requests have responses.
    Open,
    /// Closed or open, as its parameter `arrivals` states.
    Arrivals,
}

/// Metrics of a closed loop, between which Little's law holds: number in flight = rate x latency.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClosedLoop {
    pub rate: &'static str,
    pub latency: &'static str,
    /// The parameter with the number in flight; empty where it is always one.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub depth: &'static str,
}

/// What neighbours on one host can take from one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Contended {
    Cpu,
    Memory,
    Cache,
    DiskRead,
    DiskWrite,
    Fsync,
    NetSend,
    NetReceive,
    Packets,
    Switches,
}

/// The value of a parameter or a factor.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Literal {
    Int(i64),
    Float(f64),
    Text(&'static str),
    Texts(&'static [&'static str]),
    Ints(&'static [i64]),
}

/// Names with values.
pub type Setting = &'static [(&'static str, Literal)];

fn as_map<S: Serializer>(setting: &Setting, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(setting.iter().copied())
}

/// A resource that a load takes from its neighbours, with the parameters of one busy program.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Aggressor {
    pub resource: Contended,
    #[serde(serialize_with = "as_map")]
    pub params: Setting,
}

/// A resource whose loss a benchmark shows, by which metric, with the parameters of a trial that is
/// short enough for many rounds a minute (0.1 s to 0.5 s).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Victim {
    pub resource: Contended,
    pub metric: &'static str,
    #[serde(serialize_with = "as_map")]
    pub params: Setting,
}

/// Which settings of a metric stand in a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SummarySettings {
    /// The first one.
    First,
    /// The one with the fewest factors, which includes the others.
    Whole,
    /// All of them.
    Each,
}

/// The title of a metric in the summary of a report, and the setting that stands there.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Headline {
    pub title: &'static str,
    /// Of a histogram: the statistic to show (`p50`).
    #[serde(skip_serializing_if = "str::is_empty")]
    pub statistic: &'static str,
    /// Factor -> level to show where some setting has it; `minimum` or `maximum` of its levels.
    #[serde(serialize_with = "as_map", skip_serializing_if = "<[_]>::is_empty")]
    pub prefer: Setting,
    /// Factors that the title states already, or that few readers need there.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub without: &'static [&'static str],
    pub settings: SummarySettings,
}

impl Headline {
    pub const fn of(title: &'static str) -> Self {
        Self { title, statistic: "", prefer: &[], without: &[], settings: SummarySettings::First }
    }

    pub const fn statistic(self, statistic: &'static str) -> Self {
        Self { statistic, ..self }
    }

    pub const fn prefer(self, prefer: Setting) -> Self {
        Self { prefer, ..self }
    }

    pub const fn without(self, without: &'static [&'static str]) -> Self {
        Self { without, ..self }
    }

    pub const fn settings(self, settings: SummarySettings) -> Self {
        Self { settings, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_headline_states_only_what_it_has() {
        const TITLE: Headline = Headline::of("Random read IOPS")
            .prefer(&[("operation", Literal::Text("randread"))])
            .without(&["engine"]);
        assert_eq!(
            json!(TITLE),
            json!({
                "title": "Random read IOPS",
                "prefer": {"operation": "randread"},
                "without": ["engine"],
                "settings": "first",
            })
        );
        assert_eq!(
            json!(Headline::of("Saving").settings(SummarySettings::Whole)),
            json!({"title": "Saving", "settings": "whole"})
        );
    }

    #[test]
    fn parameters_of_a_victim_are_an_object() {
        const VICTIM: Victim = Victim {
            resource: Contended::Memory,
            metric: "stream_bytes_per_s",
            params: &[("threads", Literal::Int(1)), ("kernels", Literal::Texts(&["triad"]))],
        };
        assert_eq!(
            json!(VICTIM),
            json!({
                "resource": "memory",
                "metric": "stream_bytes_per_s",
                "params": {"threads": 1, "kernels": ["triad"]},
            })
        );
    }
}
