use super::*;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::Unit;

/// Headings that every manual page has, in this order.
const HEADINGS: [&str; 6] =
    ["# What it measures", "# How", "# Known truth", "# Cross-check", "# Overhead", "# Caveats"];

#[test]
fn every_file_of_this_folder_is_in_the_table() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/cli/benchmarks");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| !["mod", "tests"].contains(&name.as_str()))
        .collect();
    files.sort();
    let mut listed: Vec<_> =
        ALL.iter().map(|benchmark| benchmark.spec.id.replace('.', "_")).collect();
    listed.sort();
    assert_eq!(files, listed);
}

#[test]
fn every_page_has_all_headings_in_order() {
    for benchmark in ALL {
        let page = spec::page(benchmark.source);
        let mut rest = page.as_str();
        for heading in HEADINGS {
            let at = rest.find(heading);
            rest = &rest[at.unwrap_or_else(|| panic!("{}: no '{heading}'", benchmark.spec.id))..];
        }
    }
}

#[test]
fn specs_are_complete() {
    for spec in ALL.iter().map(|benchmark| benchmark.spec) {
        for text in [spec.summary, spec.overhead, spec.source] {
            assert!(!text.is_empty(), "{} lacks a text", spec.id);
        }
        assert!(spec.metrics.iter().any(|metric| metric.headline), "{}: no headline", spec.id);
        for doc in spec.params.iter().map(|p| p.doc).chain(spec.metrics.iter().map(|m| m.doc)) {
            assert!(doc.ends_with('.'), "{}: '{doc}' is no sentence", spec.id);
        }
        for metric in spec.metrics {
            let suffix = match metric.unit {
                Unit::Ns => "_ns",
                Unit::Ratio => "_ratio",
                Unit::Cpus => "_cpus",
                Unit::PerS => "_per_s",
                _ => "",
            };
            assert!(metric.id.ends_with(suffix), "{}: {}", spec.id, metric.id);
        }
        assert!(Params::check(spec, &serde_json::Map::new()).is_ok());
    }
}

#[test]
fn every_built_in_scenario_is_json_under_the_name_that_it_bears() {
    for (id, known) in SCENARIOS {
        assert!(ALL.iter().any(|benchmark| benchmark.spec.id == *id), "{id}");
        for (name, text) in *known {
            let scenario: Value = serde_json::from_str(text).unwrap();
            assert_eq!(scenario["name"], **name, "{id}");
        }
    }
}
