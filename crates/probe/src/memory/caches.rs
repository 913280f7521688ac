//! Sizes of caches and of usable memory, from which the memory benchmarks choose their working sets.
use crate::error::{FailureKind, ProbeError, Result};
use crate::machine::cpuid;
use nephoscope_linux::cgroup::Cgroups;
use nephoscope_linux::files::Files;
use nephoscope_linux::proc;
use std::collections::BTreeMap;

/// Taken when neither sysfs nor the CPU tells (common on virtual aarch64): as large as the
/// last-level cache of most servers, so that four times it is memory almost everywhere.
const ASSUMED_LLC_BYTES: usize = 32 << 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastLevel {
    /// Bytes; with several caches (sockets, core complexes) their sum.
    pub bytes: usize,
    /// Whether the machine told it; otherwise it is an assumption and has to be said.
    pub known: bool,
}

/// The last-level caches that `cpus` reach, each instance counted once.
pub fn last_level(cpus: &[usize]) -> LastLevel {
    let files = Files::machine();
    let mut instances = BTreeMap::new();
    for (bytes, shared) in cpus.iter().filter_map(|cpu| last_level_of(&files, *cpu)) {
        instances.insert(shared, bytes);
    }
    let sum = instances.values().sum();
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

/// Size and sharers of a CPU's highest cache, by sysfs.
fn last_level_of(files: &Files, cpu: usize) -> Option<(usize, String)> {
    let root = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let mut best: Option<(u32, usize, String)> = None;
    for name in files.names(&root).ok()? {
        let read = |file| files.line(format!("{root}/{name}/{file}")).ok();
        let Some(level) = read("level").and_then(|text| text.parse().ok()) else { continue };
        let bytes = read("size").and_then(|text| proc::cache_bytes(&text)?.try_into().ok());
        let Some(bytes) = bytes else { continue };
        if best.as_ref().is_none_or(|(known, ..)| level > *known) {
            best = Some((level, bytes, read("shared_cpu_list").unwrap_or_default()));
        }
    }
    best.map(|(_, bytes, shared)| (bytes, shared))
}

fn from_cpuid() -> Option<usize> {
    let caches = cpuid::read().ok()?.caches;
    let last = caches.iter().max_by_key(|cache| (cache.level, cache.size_bytes))?;
    usize::try_from(last.size_bytes).ok().filter(|bytes| *bytes > 0)
}

/// Bytes that this process can take without swapping or being killed: what the kernel calls
/// available, bounded by the tightest memory cgroup.
pub fn available_memory() -> usize {
    let files = Files::machine();
    let meminfo = files.text("/proc/meminfo").unwrap_or_default();
    let host = proc::kib_field(&meminfo, "MemAvailable").and_then(|bytes| bytes.try_into().ok());
    let host = host.unwrap_or_else(free_pages);
    cgroup_headroom(&files).map_or(host, |room| room.min(host))
}

/// Refuses a working set that exceeds the available memory.
pub fn check_memory(id: &str, bytes: usize, hint: &str) -> Result<()> {
    let available = available_memory();
    if bytes <= available {
        return Ok(());
    }
    let message = format!("{id}: {bytes} bytes exceed the {available} available.");
    Err(ProbeError::new(FailureKind::Lacks, "no_memory", message, hint))
}

/// Free pages by the C library, for machines that hide `/proc`.
fn free_pages() -> usize {
    // SAFETY: sysconf only reads.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_AVPHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    usize::try_from(pages.max(0) * size.max(0)).unwrap_or(0)
}

/// Limit minus use of the cgroup that bounds our memory; its page cache counts as free, since the
/// kernel takes that back before it kills.
fn cgroup_headroom(files: &Files) -> Option<usize> {
    let limit = Cgroups::find(files).memory_limit(files).ok()??;
    let used = ["memory.current", "memory.usage_in_bytes"]
        .iter()
        .find_map(|name| files.number::<u64>(limit.path.join(name)).ok())?;
    let stat = files.text(limit.path.join("memory.stat")).unwrap_or_default();
    let cached: u64 =
        ["inactive_file", "active_file"].iter().filter_map(|key| proc::keyed(&stat, key)).sum();
    usize::try_from(limit.value.saturating_sub(used.saturating_sub(cached))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    #[test]
    fn the_last_level_is_the_highest_one() {
        let captured = Captured::new(&[
            ("/sys/devices/system/cpu/cpu7/cache/index0/level", "1\n"),
            ("/sys/devices/system/cpu/cpu7/cache/index0/size", "32K\n"),
            ("/sys/devices/system/cpu/cpu7/cache/index1/level", "3\n"),
            ("/sys/devices/system/cpu/cpu7/cache/index1/size", "8M\n"),
            ("/sys/devices/system/cpu/cpu7/cache/index1/shared_cpu_list", "0-7\n"),
            ("/sys/devices/system/cpu/cpu7/cache/index2/level", "2\n"),
            ("/sys/devices/system/cpu/cpu7/cache/index2/size", "1M\n"),
        ]);
        let files = captured.files();
        assert_eq!(last_level_of(&files, 7), Some((8 << 20, "0-7".to_owned())));
        assert_eq!(last_level_of(&files, 8), None);
    }

    #[test]
    fn two_cpus_on_one_cache_count_it_once() {
        let single = last_level(&[0]);
        assert!(single.bytes >= 1 << 20, "{single:?}");
        assert_eq!(last_level(&[0, 0]), single);
    }

    #[test]
    fn a_cgroup_bounds_and_its_page_cache_is_free() {
        let group = "/sys/fs/cgroup/memory/outer";
        let captured = Captured::new(&[
            ("/proc/self/cgroup", "3:memory:/outer\n"),
            (
                "/proc/self/mountinfo",
                "30 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
            ),
            (&format!("{group}/memory.limit_in_bytes"), "1000\n"),
            (&format!("{group}/memory.usage_in_bytes"), "900\n"),
            (&format!("{group}/memory.stat"), "cache 9\ninactive_file 250\nactive_file 50\n"),
        ]);
        // 1000 - (900 - 300)
        assert_eq!(cgroup_headroom(&captured.files()), Some(400));
        assert_eq!(cgroup_headroom(&Captured::new(&[]).files()), None);
    }

    #[test]
    fn some_memory_is_available() {
        assert!(available_memory() > 0);
    }
}
