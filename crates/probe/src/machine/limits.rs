//! What this process may use (control groups, resource limits), and which counters can be believed.
use super::{steal, Section};
use nephoscope_linux::affinity;
use nephoscope_linux::cgroup::{Cgroups, Limit};
use nephoscope_linux::files::{Fact, Files};
use nephoscope_linux::proc::{self, CpuTimes};
use serde::Serialize;

/// CPUs that this process can keep busy: those it may run on, or its quota where that is less.
pub fn available_cpus(files: &Files, groups: &Cgroups) -> f64 {
    let allowed = affinity::allowed().len() as f64;
    let quota = groups.cpu_quota(files).ok().flatten().map(|limit| limit.value);
    quota.map_or(allowed, |quota| quota.min(allowed))
}

/// The limits section. A limit that does not exist is null with the reason "no limit".
pub fn section(files: &Files, groups: &Cgroups) -> Section {
    let mut section = Section::new("limits");
    section.put("cgroup_version", groups.version());
    section.set("available_cpus", available_cpus(files, groups));
    limit(&mut section, "cpu_quota_cpus", "cpu_quota_path", groups.cpu_quota(files));
    limit(&mut section, "memory_limit_bytes", "memory_limit_path", groups.memory_limit(files));
    limit(&mut section, "cpuset", "cpuset_path", groups.cpuset(files).map(Some));
    section.put(
        "locked_memory_bytes",
        rlimit(|limit| {
            // SAFETY: fills a plain struct.
            unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, limit) }
        }),
    );
    section.put(
        "open_files",
        rlimit(|limit| {
            // SAFETY: fills a plain struct.
            unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, limit) }
        }),
    );
    section
}

fn limit<T: Serialize>(
    section: &mut Section,
    fact: &str,
    path: &str,
    limit: Fact<Option<Limit<T>>>,
) {
    let stated = limit.and_then(|limit| limit.ok_or_else(|| "no limit".to_owned()));
    let (value, from) = match stated {
        Ok(limit) => (Ok(limit.value), Ok(limit.path.display().to_string())),
        Err(reason) => (Err(reason.clone()), Err(reason)),
    };
    section.put(fact, value);
    section.put(path, from);
}

fn rlimit(read: impl FnOnce(*mut libc::rlimit) -> libc::c_int) -> Fact<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    match (read(&raw mut limit), limit.rlim_cur) {
        (0, libc::RLIM_INFINITY) => Err("no limit".to_owned()),
        (0, value) => Ok(value),
        _ => Err(format!("getrlimit failed: {}", std::io::Error::last_os_error())),
    }
}

/// The counters section: which of the counters beside a trial this machine shows.
pub fn counters(files: &Files) -> Section {
    let stat = files.text("/proc/stat");
    let cpu = stat.as_deref().ok().and_then(CpuTimes::parse);
    let hidden = steal::hidden_reason(cpu.as_ref());
    let mut section = Section::new("counters");
    section.set("steal", hidden.is_none());
    section.put(
        "steal_told_by_hypervisor",
        steal::reported().ok_or_else(|| "the hypervisor's interface does not say".to_owned()),
    );
    let since_boot = match (hidden, cpu) {
        (None, Some(CpuTimes { busy, idle, steal: Some(steal) })) if busy + idle + steal > 0 => {
            Ok(steal as f64 / (busy + idle + steal) as f64)
        }
        (reason, _) => Err(reason.unwrap_or("no tick was counted yet").to_owned()),
    };
    section.put("steal_since_boot_ratio", since_boot);
    for what in ["cpu", "memory", "io"] {
        let path = format!("/proc/pressure/{what}");
        let count = files.text(&path).and_then(|text| {
            proc::psi_total_us(&text, "some").ok_or_else(|| format!("{path} has no total"))
        });
        section.put(&format!("pressure_{what}"), count.map(|_| true));
    }
    section.put("throttling", Cgroups::find(files).throttled(files).map(|_| true));
    let paranoid = files.number::<i32>("/proc/sys/kernel/perf_event_paranoid");
    section.put("perf_event_paranoid", paranoid);
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;
    use serde_json::json;

    #[test]
    fn half_a_cpu_is_what_is_available() {
        let captured = Captured::new(&[
            ("/proc/self/cgroup", "0::/box\n"),
            ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/box/cpu.max", "50000 100000\n"),
        ]);
        let files = captured.files();
        let (facts, missing) = section(&files, &Cgroups::find(&files)).into_parts();
        assert_eq!(
            (&facts["available_cpus"], &facts["cpu_quota_cpus"]),
            (&json!(0.5), &json!(0.5))
        );
        assert_eq!(facts["cpu_quota_path"], "/sys/fs/cgroup/box");
        assert!(missing
            .iter()
            .any(|entry| entry["fact"] == "limits.memory_limit_bytes"
                && entry["reason"] == "no limit"));
    }

    #[test]
    fn without_a_quota_the_allowed_cpus_count() {
        let captured = Captured::new(&[]);
        let files = captured.files();
        let cpus = available_cpus(&files, &Cgroups::find(&files));
        // SAFETY: fills a plain bit set.
        let truth = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            assert_eq!(libc::sched_getaffinity(0, size_of_val(&set), &raw mut set), 0);
            libc::CPU_COUNT(&set)
        };
        assert!((cpus - f64::from(truth)).abs() < f64::EPSILON);
    }

    #[test]
    fn hidden_counters_are_named() {
        let (facts, missing) = counters(&Captured::new(&[]).files()).into_parts();
        assert_eq!(facts["steal"], false);
        assert!(facts["pressure_cpu"].is_null() && facts["throttling"].is_null());
        assert!(missing.iter().any(|entry| entry["fact"] == "counters.pressure_io"
            && entry["reason"] == "/proc/pressure/io does not exist"));
    }
}
