//! Which CPU the meter may have, and whether the trial came there all the same.
use crate::trial::affinity;
use nephoscope_linux::cgroup::Cgroups;
use nephoscope_linux::files::Files;
use nephoscope_linux::scheduling;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::Spec;

/// A CPU that the trial leaves free: the last one that it neither pinned a thread to nor names.
pub fn free_cpu(spec: &Spec, params: &Params, allowed: &[usize]) -> Result<usize, String> {
    free_besides(affinity::pinned(), spec, params, allowed)
}

/// The same, told to which CPUs threads are pinned.
fn free_besides(
    mut used: Vec<usize>,
    spec: &Spec,
    params: &Params,
    allowed: &[usize],
) -> Result<usize, String> {
    if scheduling::is_reserved() {
        return Err("a task under SCHED_DEADLINE can create no thread".to_owned());
    }
    let files = Files::machine();
    if let Ok(Some(_)) = Cgroups::find(&files).cpu_quota(&files) {
        return Err("the control group has a CPU quota, of which it would take a part".to_owned());
    }
    if allowed.len() < 2 {
        return Err("the trial has one CPU, and uses it".to_owned());
    }
    let has = |id: &str| spec.params.iter().any(|param| param.id == id);
    if has("argv") {
        return Err("the program may use every CPU".to_owned());
    }
    if has("threads") {
        match params.size("threads") {
            0 => used.extend(allowed),
            threads => used.extend(allowed.iter().take(threads)),
        }
    }
    if has("cpus") {
        match params.ints("cpus").as_slice() {
            [] => used.extend(allowed),
            cpus => used.extend(cpus.iter().filter_map(|cpu| usize::try_from(*cpu).ok())),
        }
    }
    let free = allowed.iter().rev().find(|cpu| !used.contains(cpu));
    free.copied().ok_or_else(|| "the trial uses every CPU that it has".to_owned())
}

/// Whether a thread of the trial itself runs, or waits to run, on that CPU: an unpinned one may
/// have come there, and what it takes is no gap. Only asked when there is a gap.
pub fn own_thread_runs_on(cpu: usize, besides: i32) -> bool {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return false };
    let own_threads =
        threads.flatten().filter(|thread| *thread.file_name() != *besides.to_string());
    let stats =
        own_threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    stats.filter_map(|stat| place(&stat)).any(|(running, on)| running && on == cpu)
}

/// Of a thread's `stat`: whether it is runnable, and the CPU that it was last on (field 39).
fn place(stat: &str) -> Option<(bool, usize)> {
    // The name may hold anything, brackets too.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let running = fields.next()? == "R";
    Some((running, fields.nth(35)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments;

    fn free(id: &str, params: &str, allowed: &[usize]) -> Result<usize, String> {
        let spec = instruments::find(id).unwrap().spec;
        let parameters = serde_json::from_str(params).unwrap();
        // Other tests of this process pin threads too.
        free_besides(Vec::new(), spec, &Params::check(spec, &parameters).unwrap(), allowed)
    }

    #[test]
    fn the_spare_cpu_is_one_that_the_trial_does_not_name() {
        assert_eq!(free("cpu.pi", r#"{"threads": 1}"#, &[0, 1]), Ok(1));
        assert_eq!(free("cpu.pi", r#"{"threads": 2}"#, &[0, 1, 5]), Ok(5));
        assert_eq!(free("cpu.gaps", r#"{"cpus": [1]}"#, &[0, 1]), Ok(0));
        for (id, params) in [
            ("cpu.pi", r#"{"threads": 0}"#),
            ("cpu.pi", r#"{"threads": 3}"#),
            ("cpu.gaps", "{}"),
            ("cpu.gaps", r#"{"cpus": [0, 1]}"#),
        ] {
            assert!(free(id, params, &[0, 1]).unwrap_err().contains("every CPU"), "{id} {params}");
        }
        assert!(free("cpu.pi", r#"{"threads": 1}"#, &[3]).unwrap_err().contains("one CPU"));
    }

    #[test]
    fn the_place_of_a_thread_is_read_behind_any_name() {
        let stat = |state: &str| {
            let zeros = ["0"; 35].join(" ");
            format!("17 (a) R (b) {state} {zeros} 3 0 0 0")
        };
        assert_eq!(place(&stat("R")), Some((true, 3)));
        assert_eq!(place(&stat("S")), Some((false, 3)));
        assert_eq!(place("17 (x) R 0 0"), None);
        let own = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        assert!(place(&own).unwrap().0);
    }
}
