//! What this machine is: facts for the fingerprint. A fact that is missing is null and has its
//! reason in `missing`; nothing here fails because a file is hidden.
use nephoscope_linux::cgroup::Cgroups;
use nephoscope_linux::files::Files;
use serde_json::{json, Map, Value};

pub mod abilities;
pub mod caches;
pub mod clocks;
pub mod cloud;
pub mod cpu;
pub mod cpuid;
pub mod disks;
pub mod hypervisor;
pub mod identity;
pub mod inconsistencies;
pub mod kernel;
pub mod limits;
pub mod memory;
pub mod nics;
mod section;
pub mod steal;
pub mod topology;

pub use section::Section;

/// Version of the document's structure; it changes when an old reader would misread a new one.
pub const SCHEMA: u32 = 1;

/// The whole document. `cloud` is the section that [`cloud::ask`] made, or [`cloud::not_requested`].
pub fn document(files: &Files, cloud: Section) -> Value {
    let cpuid = cpuid::read();
    let groups = Cgroups::find(files);
    let sections = [
        identity::section(files),
        cpu::section(files, &cpuid),
        caches::section(files, &cpuid),
        topology::section(files),
        hypervisor::section(files, &cpuid),
        clocks::section(files, &cpuid),
        kernel::kernel(files),
        kernel::mitigations(files),
        memory::section(files),
        disks::section(files),
        nics::section(files),
        limits::section(files, &groups),
        limits::counters(files),
        abilities::section(files),
        kernel::os(files),
        kernel::container(files),
        cloud,
    ];
    let mut document = Map::new();
    document.insert("schema".to_owned(), json!(SCHEMA));
    let mut missing = Vec::new();
    for section in sections {
        document.insert(section.name, Value::Object(section.facts));
        missing.extend(section.missing);
    }
    document.insert("missing".to_owned(), Value::Array(missing));
    Value::Object(document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    /// Top-level keys that readers rely on.
    const KEYS: [&str; 19] = [
        "schema",
        "identity",
        "cpu",
        "caches",
        "topology",
        "hypervisor",
        "clock",
        "kernel",
        "mitigations",
        "memory",
        "disks",
        "nics",
        "limits",
        "counters",
        "abilities",
        "os",
        "container",
        "cloud",
        "missing",
    ];

    fn keys(document: &Value) -> Vec<&str> {
        document.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_structure_is_stable_whatever_is_hidden() {
        let hidden = document(&Captured::new(&[]).files(), cloud::not_requested());
        let here = document(&Files::machine(), cloud::not_requested());
        assert_eq!(keys(&hidden), KEYS);
        assert_eq!(keys(&here), KEYS);
        // Mitigations have the kernel's own names; all others have fixed ones.
        for section in KEYS.iter().filter(|k| !["schema", "missing", "mitigations"].contains(k)) {
            assert_eq!(keys(&hidden[*section]), keys(&here[*section]), "{section}");
        }
    }

    #[test]
    fn every_null_has_its_reason() {
        for files in [Captured::new(&[]).files(), Files::machine()] {
            let document = document(&files, cloud::not_requested());
            let missing = document["missing"].as_array().unwrap();
            let named: Vec<&str> = missing.iter().map(|m| m["fact"].as_str().unwrap()).collect();
            for entry in missing {
                assert!(!entry["reason"].as_str().unwrap().is_empty(), "{entry}");
            }
            for (section, facts) in document.as_object().unwrap() {
                let Some(facts) = facts.as_object() else {
                    continue;
                };
                for fact in facts.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key) {
                    let name = format!("{section}.{fact}");
                    assert!(named.contains(&name.as_str()), "{name} has no reason");
                }
            }
        }
    }
}
