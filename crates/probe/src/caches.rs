//! Sizes of caches and of usable memory, from which the memory benchmarks choose their working sets.
use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::Path;

/// Taken when neither sysfs nor the CPU tells (common on virtual aarch64): as large as the
/// last-level cache of most servers, so that four times it is memory almost everywhere.
const ASSUMED_LLC_BYTES: usize = 32 << 20;

/// What is known about the last-level cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLevel {
    /// Bytes; with several caches (sockets, core complexes) their sum.
    pub bytes: usize,
    /// Whether the machine told it; otherwise it is an assumption and has to be said.
    pub known: bool,
}

/// The last-level caches that `cpus` reach, each instance counted once.
pub fn last_level(cpus: &[usize]) -> LastLevel {
    let mut instances = BTreeMap::new();
    for cpu in cpus {
        let root = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
        if let Some((bytes, shared)) = last_level_in(Path::new(&root)) {
            instances.insert(shared, bytes);
        }
    }
    let sum: usize = instances.values().sum();
    match if sum > 0 { Some(sum) } else { from_cpuid() } {
        Some(bytes) => LastLevel { bytes, known: true },
        None => LastLevel { bytes: ASSUMED_LLC_BYTES, known: false },
    }
}

impl LastLevel {
    /// The sentence for the trial's notes where the size is an assumption.
    pub fn note(&self) -> Option<String> {
        (!self.known).then(|| {
            format!(
                "This machine does not tell the size of its caches; {} MiB were assumed for the \
                 last level.",
                self.bytes >> 20
            )
        })
    }
}

/// Size and sharers of the highest level below `root`, a CPU's `cache` folder in sysfs.
fn last_level_in(root: &Path) -> Option<(usize, String)> {
    let mut best: Option<(u32, usize, String)> = None;
    for entry in std::fs::read_dir(root).ok()?.flatten() {
        let read = |name| read_to_string(entry.path().join(name)).ok();
        let Some(level) = read("level").and_then(|text| text.trim().parse().ok()) else { continue };
        let Some(bytes) = read("size").and_then(|text| size(text.trim())) else { continue };
        if best.as_ref().is_none_or(|(known, ..)| level > *known) {
            let shared = read("shared_cpu_list").unwrap_or_default();
            best = Some((level, bytes, shared));
        }
    }
    best.map(|(_, bytes, shared)| (bytes, shared))
}

/// `32K`, `36608K`, `2M` in bytes.
fn size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

fn from_cpuid() -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        let caches = raw_cpuid::CpuId::new().get_cache_parameters()?;
        let (_, bytes) = caches
            .map(|cache| {
                let ways = cache.associativity() * cache.physical_line_partitions();
                (cache.level(), ways * cache.coherency_line_size() * cache.sets())
            })
            .max()?;
        Some(bytes).filter(|bytes| *bytes > 0)
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Bytes that this process can take without swapping or being killed: what the kernel calls
/// available, bounded by every memory cgroup above us.
pub fn available_memory() -> usize {
    let group = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let host = read_to_string("/proc/meminfo").ok().as_deref().and_then(mem_available);
    let host = host.unwrap_or_else(free_pages);
    cgroup_headroom(&group, Path::new("/sys/fs/cgroup")).map_or(host, |room| room.min(host))
}

fn mem_available(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// Free pages by the C library, for machines that hide `/proc`.
fn free_pages() -> usize {
    // SAFETY: sysconf only reads.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_AVPHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    usize::try_from(pages.max(0) * size.max(0)).unwrap_or(0)
}

/// The smallest limit minus use along the cgroup path, for version 1 and 2; page cache counts as
/// free, since the kernel takes it back before it kills.
fn cgroup_headroom(groups: &str, mount: &Path) -> Option<usize> {
    let mut least = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, limit, used) = match controllers {
            "" => (mount.to_owned(), "memory.max", "memory.current"),
            list if list.split(',').any(|name| name == "memory") => {
                (mount.join("memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        // A container often sees the path of its host but only its own folder: the ancestors' loop
        // ends at the mount point, which is then our own group.
        for folder in Path::new(path.trim_start_matches('/')).ancestors() {
            let folder = root.join(folder);
            let number =
                |name| read_to_string(folder.join(name)).ok()?.trim().parse::<usize>().ok();
            let (Some(limit), Some(used)) = (number(limit), number(used)) else { continue };
            let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let room = limit.saturating_sub(used.saturating_sub(file_cache(&stat)));
            least = Some(least.map_or(room, |known: usize| known.min(room)));
        }
    }
    least
}

fn file_cache(stat: &str) -> usize {
    let wanted = ["inactive_file", "active_file"];
    let pairs = stat.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter(|(name, _)| wanted.contains(name))
        .filter_map(|(_, value)| value.parse::<usize>().ok())
        .sum()
}

/// Vector lengths from 1 KiB to `max_bytes`: powers of two, with two points per octave also the
/// point 1.5 times above each, and `max_bytes` itself as the last.
pub fn ladder(max_bytes: usize, points_per_octave: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut length = 1 << 10;
    while length < max_bytes {
        lengths.push(length);
        let between = length + length / 2;
        if points_per_octave > 1 && between < max_bytes {
            lengths.push(between);
        }
        length *= 2;
    }
    // A last step of a few per cent would be the same point measured twice.
    while lengths.last().is_some_and(|last| *last * 10 > max_bytes * 9) {
        lengths.pop();
    }
    lengths.push(max_bytes);
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_sysfs_writes_them() {
        assert_eq!(size("32K"), Some(32 << 10));
        assert_eq!(size("36608K"), Some(36608 << 10));
        assert_eq!(size("2M"), Some(2 << 20));
        for nonsense in ["", "K", "12X", "-1K", "0K"] {
            assert_eq!(size(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn the_last_level_is_the_highest_one() {
        let root = std::env::temp_dir().join(format!("nephoscope-caches-{}", std::process::id()));
        for (index, level, size) in
            [("index0", "1", "32K"), ("index3", "3", "8M"), ("index2", "2", "1M")]
        {
            std::fs::create_dir_all(root.join(index)).unwrap();
            for (name, text) in [("level", level), ("size", size), ("shared_cpu_list", "0-3")] {
                std::fs::write(root.join(index).join(name), format!("{text}\n")).unwrap();
            }
        }
        let found = last_level_in(&root);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, Some((8 << 20, "0-3\n".to_owned())));
        assert_eq!(last_level_in(&root), None);
    }

    #[test]
    fn two_cpus_on_one_cache_count_it_once() {
        let one = last_level(&[0]);
        assert!(one.bytes >= 1 << 20, "{one:?}");
        assert_eq!(last_level(&[0, 0]), one);
    }

    #[test]
    fn the_tightest_cgroup_bounds_and_page_cache_is_free() {
        let root = std::env::temp_dir().join(format!("nephoscope-groups-{}", std::process::id()));
        let inner = root.join("memory/outer/inner");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |at: &Path, limit: &str, used: &str, cache: &str| {
            std::fs::write(at.join("memory.limit_in_bytes"), limit).unwrap();
            std::fs::write(at.join("memory.usage_in_bytes"), used).unwrap();
            std::fs::write(at.join("memory.stat"), format!("cache 7\ninactive_file {cache}\n"))
                .unwrap();
        };
        write(&inner, "1000\n", "900\n", "300");
        write(&root.join("memory/outer"), "500\n", "200\n", "50");
        let room = cgroup_headroom("4:cpu:/x\n3:memory:/outer/inner\n0::/\n", &root);
        std::fs::remove_dir_all(&root).unwrap();
        // 1000 - (900 - 300) = 400 inside, 500 - (200 - 50) = 350 outside.
        assert_eq!(room, Some(350));
        assert_eq!(cgroup_headroom("", &root), None);
    }

    #[test]
    fn meminfo_is_in_kib() {
        assert_eq!(mem_available("MemTotal: 9 kB\nMemAvailable:   12 kB\n"), Some(12 << 10));
        assert_eq!(mem_available("MemTotal: 9 kB\n"), None);
        assert!(available_memory() > 0);
    }

    #[test]
    fn the_ladder_has_powers_of_two_the_points_between_and_its_end() {
        assert_eq!(ladder(4 << 10, 1), [1024, 2048, 4096]);
        assert_eq!(ladder(5 << 10, 2), [1024, 1536, 2048, 3072, 4096, 5120]);
        // 6144 is within a tenth of 6200, so the end replaces it.
        assert_eq!(ladder(6200, 2), [1024, 1536, 2048, 3072, 4096, 6200]);
        assert_eq!(ladder(100, 2), [100]);
    }
}
