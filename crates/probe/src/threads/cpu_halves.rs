//! Two sets of CPUs of equal size and kind, for two programs that run at the same time.
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::affinity;
use nephoscope_linux::files::Files;
use nephoscope_linux::proc;
use std::collections::BTreeMap;

const CPUS: &str = "/sys/devices/system/cpu";

/// Two sets of CPUs that no CPU belongs to both of.
#[derive(Debug, PartialEq, Eq)]
pub struct CpuHalves {
    pub sets: [Vec<usize>; 2],
    /// CPUs of this process that are in no set, because they have no counterpart.
    pub unused: Vec<usize>,
    /// Whether each core has CPUs of both sets, so that the programs slow each other.
    pub share_cores: bool,
}

/// The CPUs of one core that this process may use.
#[derive(Debug)]
struct Core {
    cpus: Vec<usize>,
}

/// What makes two cores equal: how many threads each runs, and how fast the kernel says they are.
type Kind = (usize, String, bool);

impl CpuHalves {
    /// Those of this process. An error where no two CPUs are equal.
    pub fn of_this_process() -> Result<Self> {
        let allowed = affinity::allowed();
        Self::split(&Files::machine(), &allowed).ok_or_else(|| {
            let message = match allowed.as_slice() {
                [_] => "A duet takes two CPUs, one for each command, and this process may use one."
                    .to_owned(),
                _ => format!(
                    "A duet takes two equal CPUs, and CPUs {allowed:?} are of different kinds."
                ),
            };
            let hint = "Let it use more CPUs, or measure the commands alternately \
                        (--command instead of --duet).";
            ProbeError::new(FailureKind::Lacks, "no_two_cpus", message, hint)
        })
    }

    /// Whole cores of one kind go to both sets in equal numbers. A single core of its kind is left
    /// out, unless there is no other: then its CPUs are divided.
    fn split(files: &Files, allowed: &[usize]) -> Option<Self> {
        let mut kinds: BTreeMap<Kind, Vec<Core>> = BTreeMap::new();
        for core in cores(files, allowed) {
            kinds.entry(kind(files, &core)).or_default().push(core);
        }
        let mut halves = Self { sets: [vec![], vec![]], unused: vec![], share_cores: false };
        for cores in kinds.values() {
            let half = cores.len() / 2;
            for (number, core) in cores.iter().enumerate() {
                // Neighbouring cores, which share a cache or a memory node, belong together.
                let set = match number / half.max(1) {
                    side @ (0 | 1) if half > 0 => &mut halves.sets[side],
                    _ => &mut halves.unused,
                };
                set.extend(&core.cpus);
            }
        }
        if halves.sets[0].is_empty() {
            let cores = kinds.into_values().flatten();
            let core =
                cores.max_by_key(|core| core.cpus.len()).filter(|core| core.cpus.len() > 1)?;
            let half = core.cpus.len() / 2;
            halves.sets = [core.cpus[..half].to_vec(), core.cpus[half..2 * half].to_vec()];
            halves.share_cores = true;
            halves.unused.retain(|cpu| !halves.sets.concat().contains(cpu));
        }
        halves.unused.sort_unstable();
        Some(halves)
    }
}

/// The cores in the order of their first CPU; each CPU is one where the machine does not tell.
fn cores(files: &Files, allowed: &[usize]) -> Vec<Core> {
    let mut cores: Vec<Core> = Vec::new();
    for cpu in allowed {
        let siblings = siblings(files, *cpu).unwrap_or_else(|| vec![*cpu]);
        match cores.iter_mut().find(|core| siblings.contains(&core.cpus[0])) {
            Some(core) => core.cpus.push(*cpu),
            None => cores.push(Core { cpus: vec![*cpu] }),
        }
    }
    cores
}

fn siblings(files: &Files, cpu: usize) -> Option<Vec<usize>> {
    let folder = format!("{CPUS}/cpu{cpu}/topology");
    let list = files
        .line(format!("{folder}/core_cpus_list"))
        .or_else(|_| files.line(format!("{folder}/thread_siblings_list")));
    proc::cpu_list(&list.ok()?)
}

fn kind(files: &Files, core: &Core) -> Kind {
    let cpu = core.cpus[0];
    let capacity = files.line(format!("{CPUS}/cpu{cpu}/cpu_capacity")).unwrap_or_default();
    // Hybrid CPUs of Intel list their efficient cores.
    let efficient = files.line("/sys/devices/cpu_atom/cpus").ok();
    let efficient = efficient.and_then(|list| proc::cpu_list(&list)).unwrap_or_default();
    (core.cpus.len(), capacity, efficient.contains(&cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    fn split(siblings: &[&str], more: &[(&str, &str)], allowed: &[usize]) -> Option<CpuHalves> {
        let mut texts: Vec<(String, String)> = siblings
            .iter()
            .enumerate()
            .map(|(cpu, list)| {
                (format!("{CPUS}/cpu{cpu}/topology/core_cpus_list"), (*list).to_owned())
            })
            .collect();
        texts.extend(more.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())));
        let texts: Vec<_> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        CpuHalves::split(&Captured::new(&texts).files(), allowed)
    }

    fn sets(first: &[usize], second: &[usize], unused: &[usize], share_cores: bool) -> CpuHalves {
        CpuHalves { sets: [first.to_vec(), second.to_vec()], unused: unused.to_vec(), share_cores }
    }

    #[test]
    fn whole_cores_are_divided_and_an_odd_one_is_left_out() {
        let threads = ["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"];
        let all: Vec<usize> = (0..8).collect();
        assert_eq!(
            split(&threads, &[], &all),
            Some(sets(&[0, 4, 1, 5], &[2, 6, 3, 7], &[], false))
        );
        // Two CPUs of different cores: one each. Three cores: the last is left out.
        assert_eq!(split(&threads, &[], &[0, 1]), Some(sets(&[0], &[1], &[], false)));
        assert_eq!(split(&threads, &[], &[0, 1, 2]), Some(sets(&[0], &[1], &[2], false)));
        // A core with both threads allowed is another kind than two with one.
        assert_eq!(split(&threads, &[], &[0, 4, 1, 2]), Some(sets(&[1], &[2], &[0, 4], false)));
    }

    #[test]
    fn siblings_are_divided_only_where_there_is_nothing_else() {
        assert_eq!(split(&["0-1", "0-1"], &[], &[0, 1]), Some(sets(&[0], &[1], &[], true)));
        assert_eq!(split(&["0"], &[], &[0]), None);
        // A machine that does not tell: each CPU is a core.
        assert_eq!(split(&[], &[], &[2, 3]), Some(sets(&[2], &[3], &[], false)));
    }

    #[test]
    fn fast_and_slow_cores_are_divided_by_themselves() {
        let apart = ["0", "1", "2", "3"];
        let slow = [("/sys/devices/cpu_atom/cpus", "2-3")];
        assert_eq!(split(&apart, &slow, &[0, 1, 2, 3]), Some(sets(&[0, 2], &[1, 3], &[], false)));
        assert_eq!(split(&apart, &slow, &[0, 2]), None);
        let capacity = ("/sys/devices/system/cpu/cpu1/cpu_capacity", "512");
        assert_eq!(split(&apart, &[capacity], &[0, 1, 2]), Some(sets(&[0], &[2], &[1], false)));
    }
}
