//! Sockets, cores, threads, NUMA nodes, and which CPUs this process may use.
use super::Section;
use nephoscope_linux::affinity;
use nephoscope_linux::files::{Fact, Files};
use nephoscope_linux::proc;
use serde_json::{json, Value};
use std::collections::BTreeSet;

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// CPUs that the kernel has online.
pub fn online(files: &Files) -> Fact<Vec<usize>> {
    list(files, &format!("{CPUS}/online"))
}

fn list(files: &Files, path: &str) -> Fact<Vec<usize>> {
    let line = files.line(path)?;
    proc::cpu_list(&line).ok_or_else(|| format!("{path} is no CPU list: '{line}'"))
}

/// (sockets, cores) among the online CPUs.
fn sockets_and_cores(files: &Files, cpus: &[usize]) -> Fact<(usize, usize)> {
    let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
    for cpu in cpus {
        let folder = format!("{CPUS}/cpu{cpu}/topology");
        // -1 on machines that do not tell; all CPUs then count as one socket.
        sockets.insert(files.number::<i64>(format!("{folder}/physical_package_id"))?);
        let siblings = files
            .line(format!("{folder}/core_cpus_list"))
            .or_else(|_| files.line(format!("{folder}/thread_siblings_list")))?;
        cores.insert(siblings);
    }
    if cores.is_empty() {
        return Err(format!("{CPUS}/online lists no CPU"));
    }
    Ok((sockets.len(), cores.len()))
}

fn numa(files: &Files) -> Fact<Vec<Value>> {
    let nodes = list(files, &format!("{NODES}/online"))?;
    nodes
        .into_iter()
        .map(|node| {
            let folder = format!("{NODES}/node{node}");
            let memory = files.text(format!("{folder}/meminfo")).ok();
            let memory = memory.and_then(|text| node_memory(&text, node));
            let cpus = files.text(format!("{folder}/cpulist"))?;
            Ok(json!({"node": node, "cpus": proc::cpu_list(&cpus), "memory_bytes": memory}))
        })
        .collect()
}

/// Bytes of the `Node 0 MemTotal: 123 kB` line.
fn node_memory(text: &str, node: usize) -> Option<u64> {
    proc::kib_field(text, &format!("Node {node} MemTotal"))
}

pub fn section(files: &Files) -> Section {
    let online = online(files);
    let counts = online.clone().and_then(|cpus| sockets_and_cores(files, &cpus));
    let mut section = Section::new("topology");
    section.put("sockets", counts.clone().map(|(sockets, _)| sockets));
    section.put("cores", counts.clone().map(|(_, cores)| cores));
    let threads = counts.and_then(|(_, cores)| Ok(online.clone()?.len() as f64 / cores as f64));
    section.put("threads_per_core", threads);
    section.put("online_cpus", online);
    section.set("allowed_cpus", affinity::allowed());
    section.put("isolated_cpus", isolated(files));
    section.put("numa_nodes", numa(files));
    section.put("smt", files.line(format!("{CPUS}/smt/control")));
    section
}

/// CPUs kept out of scheduling; an empty file is an empty list and not a missing fact.
fn isolated(files: &Files) -> Fact<Vec<usize>> {
    let path = format!("{CPUS}/isolated");
    let text = files.text(&path)?;
    proc::cpu_list(&text).ok_or_else(|| format!("{path} is no CPU list: '{}'", text.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    #[test]
    fn two_sockets_with_two_threads_a_core() {
        let mut texts = vec![
            (format!("{CPUS}/online"), "0-7".to_owned()),
            (format!("{NODES}/online"), "0-1".to_owned()),
            (format!("{NODES}/node0/cpulist"), "0-3".to_owned()),
            (format!("{NODES}/node1/cpulist"), "4-7".to_owned()),
            (format!("{NODES}/node0/meminfo"), "Node 0 MemTotal:    1024 kB\n".to_owned()),
        ];
        for cpu in 0..8 {
            let folder = format!("{CPUS}/cpu{cpu}/topology");
            texts.push((format!("{folder}/physical_package_id"), (cpu / 4).to_string()));
            let core = cpu / 2 * 2;
            texts.push((format!("{folder}/thread_siblings_list"), format!("{core}-{}", core + 1)));
        }
        let texts: Vec<_> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let facts = section(&Captured::new(&texts).files()).into_parts().0;
        assert_eq!((&facts["sockets"], &facts["cores"]), (&json!(2), &json!(4)));
        assert_eq!(facts["threads_per_core"], 2.0);
        assert_eq!(facts["numa_nodes"][0]["memory_bytes"], 1 << 20);
        assert!(facts["numa_nodes"][1]["memory_bytes"].is_null());
        assert_eq!(facts["numa_nodes"][1]["cpus"], json!([4, 5, 6, 7]));
    }

    #[test]
    fn the_allowed_cpus_are_those_of_the_status_file() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let allowed = proc::cpu_list(proc::field(&status, "Cpus_allowed_list").unwrap()).unwrap();
        let facts = section(&Files::machine()).into_parts().0;
        assert_eq!(facts["allowed_cpus"], json!(allowed));
    }
}
