//! How much memory this process may use: the machine's, or less where a cgroup says so.
use std::fs::read_to_string;
use std::path::Path;

/// The smallest of `MemTotal` and every memory limit of this process's cgroups (versions 1 and 2,
/// up to their roots); `None` where `/proc` is hidden and nothing else is known.
pub fn usable_bytes() -> Option<u64> {
    let total = read_to_string("/proc/meminfo").ok().and_then(|text| mem_total(&text));
    let groups = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = groups.lines().flat_map(limit_files).filter_map(|path| {
        // "max" (version 2) is no number and so no limit; version 1 says 2^63 less a page.
        read_to_string(path).ok()?.trim().parse::<u64>().ok()
    });
    limits.chain(total).min()
}

fn mem_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The limit files of one line of `/proc/self/cgroup`, from the group up to its root.
fn limit_files(line: &str) -> Vec<String> {
    let mut parts = line.splitn(3, ':');
    let (_, Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (mount, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        list if list.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    // Inside a container the path may be the host's while the mount shows only the container's own
    // group: its root file then holds the limit, and the other names do not exist.
    let up = Path::new(path).ancestors().map(Path::to_string_lossy);
    up.map(|group| format!("{mount}{}/{file}", group.trim_end_matches('/'))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_read_in_bytes() {
        assert_eq!(mem_total("MemTotal:        2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(mem_total("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn limits_are_looked_for_up_to_the_root() {
        assert_eq!(
            limit_files("0::/a/b"),
            [
                "/sys/fs/cgroup/a/b/memory.max",
                "/sys/fs/cgroup/a/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            limit_files("4:memory:/job"),
            [
                "/sys/fs/cgroup/memory/job/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes"
            ]
        );
        assert!(limit_files("3:cpu,cpuacct:/job").is_empty());
    }

    #[test]
    fn a_machine_has_memory() {
        // The smallest machine that could run this test at all has more than 16 MiB.
        assert!(usable_bytes().is_some_and(|bytes| bytes > 16 << 20));
    }
}
