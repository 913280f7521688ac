//! The table of native benchmarks. docs/contributing/benchmark.md describes how to add one.
use crate::error::{ProbeError, Result};
use crate::trial::{ListenConfig, Trial};
use nephoscope_wire::spec::{self, Spec};
use serde_json::Value;

mod app_lzma;
mod command;
mod command_duet;
mod cpu_gaps;
mod cpu_hash;
mod cpu_pi;
mod cpu_switch;
mod disk_files;
mod disk_io;
mod disk_records;
mod disk_sync;
mod http_load;
mod http_serve;
mod kv_load;
mod load_cache;
mod load_cpu;
mod load_disk;
mod load_files;
mod load_memory;
mod load_merging;
mod load_net;
mod load_packets;
mod load_switches;
mod mem_cache;
mod mem_latency;
mod mem_stream;
mod net_collective;
mod net_loopback;
mod net_member;
mod net_path;
mod net_query;
mod net_reach;
mod net_rtt;
mod net_throughput;
mod null;
mod storage_durability;
mod storage_transfer;
mod sys_calls;
mod sys_fingerprint;
pub mod wrap;

type Run = fn(&mut Trial) -> Result<()>;
/// The far side of a two-sided benchmark, for the peer that presents the token; what it counted.
type Serve = fn(&mut Trial, &ListenConfig) -> Result<Value>;

pub struct Instrument {
    pub spec: &'static Spec,
    /// Source text of the file; its `//!` lines are the manual page.
    pub source: &'static str,
    pub run: Run,
    /// The far side, for benchmarks that have one.
    pub serve: Option<Serve>,
}

impl Instrument {
    /// Returns what serves the far side; an error for a benchmark with one side.
    pub fn far_side(&self) -> Result<Serve> {
        self.serve.ok_or_else(|| {
            ProbeError::usage(
                format!("{} has one side only; there is nothing to serve.", self.spec.id),
                "Use `run`.",
            )
        })
    }
}

macro_rules! instrument {
    ($module:ident) => {
        Instrument {
            spec: &$module::SPEC,
            source: include_str!(concat!(stringify!($module), ".rs")),
            run: $module::run,
            serve: None,
        }
    };
}

/// Every native benchmark, in the order of lists and pages.
pub const ALL: &[Instrument] = &[
    instrument!(sys_fingerprint),
    instrument!(cpu_gaps),
    instrument!(cpu_pi),
    instrument!(cpu_hash),
    instrument!(cpu_switch),
    instrument!(sys_calls),
    instrument!(app_lzma),
    instrument!(mem_stream),
    instrument!(mem_cache),
    instrument!(mem_latency),
    instrument!(disk_io),
    instrument!(disk_sync),
    instrument!(disk_records),
    instrument!(disk_files),
    instrument!(storage_durability),
    instrument!(storage_transfer),
    instrument!(net_loopback),
    Instrument { serve: Some(net_rtt::serve), ..instrument!(net_rtt) },
    Instrument { serve: Some(net_throughput::serve), ..instrument!(net_throughput) },
    Instrument { serve: Some(net_path::serve), ..instrument!(net_path) },
    Instrument { serve: Some(net_query::serve), ..instrument!(net_query) },
    instrument!(net_reach),
    instrument!(net_collective),
    instrument!(net_member),
    instrument!(http_load),
    Instrument { serve: Some(http_serve::serve), ..instrument!(http_serve) },
    instrument!(kv_load),
    instrument!(command),
    instrument!(command_duet),
    instrument!(load_cpu),
    instrument!(load_memory),
    instrument!(load_merging),
    instrument!(load_cache),
    instrument!(load_disk),
    instrument!(load_files),
    Instrument { serve: Some(load_net::serve), ..instrument!(load_net) },
    Instrument { serve: Some(load_packets::serve), ..instrument!(load_packets) },
    instrument!(load_switches),
    Instrument { serve: Some(null::serve), ..instrument!(null) },
];

pub fn find(id: &str) -> Result<&'static Instrument> {
    ALL.iter().find(|instrument| instrument.spec.id == id).ok_or_else(|| {
        let known: Vec<_> = ALL.iter().map(|instrument| instrument.spec.id).collect();
        ProbeError::usage(
            format!("There is no benchmark '{id}' in this probe."),
            format!("It has: {}.", known.join(", ")),
        )
    })
}

/// Everything this probe can do, as `contracts/benchmarks.json` has it.
pub fn describe() -> Value {
    let all = ALL.iter().map(|instrument| (instrument.spec, instrument.source));
    spec::describe(env!("CARGO_PKG_VERSION"), all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_wire::spec::{Better, Shape, Unit};

    /// Headings that every manual page has, in this order.
    const HEADINGS: [&str; 6] = [
        "# What it measures",
        "# How",
        "# Known truth",
        "# Cross-check",
        "# Overhead",
        "# Caveats",
    ];

    #[test]
    fn every_file_of_this_folder_is_in_the_table() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/instruments");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
            .filter(|name| name != "mod")
            .collect();
        files.sort();
        let mut listed: Vec<_> = ALL.iter().map(|i| i.spec.id.replace('.', "_")).collect();
        listed.sort();
        assert_eq!(files, listed);
    }

    #[test]
    fn every_page_has_all_headings_in_order() {
        for instrument in ALL {
            let page = spec::page(instrument.source);
            let mut rest = page.as_str();
            for heading in HEADINGS {
                let at = rest.find(heading);
                let at = at.unwrap_or_else(|| panic!("{}: no '{heading}'", instrument.spec.id));
                rest = &rest[at..];
            }
        }
    }

    #[test]
    fn names_end_in_their_unit() {
        for instrument in ALL {
            for metric in instrument.spec.metrics {
                let suffix = match metric.unit {
                    Unit::Ns => "_ns",
                    Unit::Bytes => "_bytes",
                    Unit::BytesPerS => "_bytes_per_s",
                    Unit::BitsPerS => "_bits_per_s",
                    Unit::PerS => "_per_s",
                    Unit::Ratio => "_ratio",
                    Unit::Cpus => "_cpus",
                    Unit::Count => "_count",
                    Unit::None => "",
                };
                let id = metric.id;
                assert!(
                    id.ends_with(suffix),
                    "{}: {id} should end in {suffix}",
                    instrument.spec.id
                );
                let describes = metric.shape == Shape::Document;
                assert!(!describes || metric.better == Better::None, "{id} describes only");
            }
        }
    }

    #[test]
    fn ids_are_unique_and_specs_are_complete() {
        let mut ids: Vec<_> = ALL.iter().map(|instrument| instrument.spec.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ALL.len());
        for spec in ALL.iter().map(|instrument| instrument.spec) {
            for text in [spec.summary, spec.overhead, spec.source] {
                assert!(!text.is_empty(), "{} lacks a text", spec.id);
            }
            assert!(!spec.two_sided || find(spec.id).unwrap().serve.is_some(), "{}", spec.id);
            assert!(spec.metrics.iter().any(|metric| metric.headline), "{}: no headline", spec.id);
            for doc in spec.params.iter().map(|p| p.doc).chain(spec.metrics.iter().map(|m| m.doc)) {
                assert!(doc.ends_with('.'), "{}: '{doc}' is no sentence", spec.id);
            }
            assert!(nephoscope_wire::params::Params::check(spec, &serde_json::Map::new()).is_ok());
        }
    }
}
