//! Which pages a range really got: asking for huge ones is not getting them.
use crate::memory::buffer::Buffer;

/// The words that benchmarks take for the pages of their working set.
pub const WORDS: &[&str] = &["huge", "small", "default", "mergeable"];

/// Bytes of `buffer` that lie on transparent huge pages once it was touched; `None` where the kernel
/// does not tell.
pub fn huge_bytes(buffer: &Buffer) -> Option<usize> {
    let start = buffer.as_ptr() as usize;
    let smaps = std::fs::read_to_string("/proc/self/smaps").ok()?;
    huge_bytes_in(&smaps, start, start + buffer.bytes())
}

/// Whether nine tenths of `buffer` lie on huge pages: the rest may be its unaligned ends.
pub fn is_huge(buffer: &Buffer) -> bool {
    huge_bytes(buffer).is_some_and(|bytes| bytes * 10 >= buffer.bytes() * 9)
}

/// The sentence for the trial's notes when huge pages were asked for and not given.
pub const NO_HUGE: &str = "The kernel gave no huge pages for the working set although they were \
    asked for (see /sys/kernel/mm/transparent_hugepage/enabled)";

/// Sum of `AnonHugePages` over the mappings inside `start..end`.
fn huge_bytes_in(smaps: &str, start: usize, end: usize) -> Option<usize> {
    let mut inside = false;
    let mut range_bytes = None;
    for line in smaps.lines() {
        if let Some((from, to)) = mapping(line) {
            inside = from < end && to > start;
        } else if let Some(rest) = line.strip_prefix("AnonHugePages:").filter(|_| inside) {
            let kib: usize = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
            *range_bytes.get_or_insert(0) += kib << 10;
        }
    }
    range_bytes
}

/// Start and end of a mapping, from the head line of its entry.
fn mapping(line: &str) -> Option<(usize, usize)> {
    let (from, to) = line.split_whitespace().next()?.split_once('-')?;
    Some((usize::from_str_radix(from, 16).ok()?, usize::from_str_radix(to, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::buffer::Pages;

    #[test]
    fn smaps_is_read_for_the_range_only() {
        let smaps = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
AnonHugePages:      2048 kB
7f0000800000-7f0000c00000 rw-p 00000000 00:00 0 [anon]
AnonHugePages:      4096 kB
";
        assert_eq!(huge_bytes_in(smaps, 0x7f00_0000_0000, 0x7f00_0040_0000), Some(2 << 20));
        assert_eq!(huge_bytes_in(smaps, 0x7f00_0080_0000, 0x7f00_0080_1000), Some(4 << 20));
        assert_eq!(huge_bytes_in(smaps, 0x1000, 0x2000), None);
        assert_eq!(huge_bytes_in("7f00-7f10 rw-p\nSize: 4 kB\n", 0x7f00, 0x7f10), None);
    }

    #[test]
    fn small_pages_are_never_huge() {
        let mut buffer = Buffer::map(8 << 20, Pages::Small).unwrap();
        buffer.touch(0..8 << 20);
        assert_eq!(huge_bytes(&buffer), Some(0));
        assert!(!is_huge(&buffer));
    }

    #[test]
    fn huge_pages_are_seen_where_the_kernel_allows_them() {
        let mut buffer = Buffer::map(8 << 20, Pages::Huge).unwrap();
        buffer.touch(0..8 << 20);
        let path = "/sys/kernel/mm/transparent_hugepage/enabled";
        let policy = std::fs::read_to_string(path).unwrap_or_default();
        if policy.contains("[never]") || policy.is_empty() {
            assert!(!is_huge(&buffer), "huge pages under the policy '{policy}'");
        } else if !is_huge(&buffer) {
            // Allowed is not owed: memory may be too fragmented for them.
            eprintln!("the kernel gave {:?} huge bytes of {}", huge_bytes(&buffer), buffer.bytes());
        }
    }
}
