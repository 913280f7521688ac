//! Pages that a timed section will use, faulted in before it: a fault inside would be timed as work.
use std::sync::Once;

const PAGE_BYTES: usize = 4096;
/// Of the stack a timed section grows into no more than this.
const STACK_BYTES: usize = 128 << 10;

/// The code of this program, once, and this thread's stack.
pub fn own_pages() {
    static CODE: Once = Once::new();
    CODE.call_once(code);
    stack();
}

#[inline(never)]
fn stack() {
    let mut pages = [0u8; STACK_BYTES];
    for at in (0..pages.len()).step_by(PAGE_BYTES) {
        // SAFETY: `at` is inside the array; volatile, so that the touch is not optimised away.
        unsafe { pages.as_mut_ptr().add(at).write_volatile(1) };
    }
    std::hint::black_box(&mut pages);
}

/// Code and constants are mapped from a file, and a fault maps only those pages around it that are
/// in the page cache and not just being written: a program that was built a moment ago, or read a
/// moment ago, would fault at its first call of a function.
fn code() {
    // Without the list they fault in when they are used, as with any other program.
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    for (start, end) in maps.lines().filter_map(file_mapping) {
        for page in (start..end).step_by(PAGE_BYTES) {
            // SAFETY: the kernel says that this page is mapped and may be read, and what is mapped
            // from a program's file stays so while it runs; volatile, so that it is really read.
            std::hint::black_box(unsafe { (page as *const u8).read_volatile() });
        }
    }
}

/// Start and end of a mapping of the program's own file that is only read or run.
fn file_mapping(line: &str) -> Option<(usize, usize)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    let path = words.nth(3)?;
    if !(rights.starts_with("r--") || rights.starts_with("r-x")) || !path.starts_with('/') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    Some((usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_a_file_is_taken_and_others_are_not() {
        let line = "55d0c0a00000-55d0c0a21000 r-xp 00002000 fe:00 1442 /usr/bin/it's (deleted)";
        assert_eq!(file_mapping(line), Some((0x55d0_c0a0_0000, 0x55d0_c0a2_1000)));
        for line in [
            "7ffd1000-7ffd2000 rw-p 00000000 00:00 0 [stack]",
            "7ffd1000-7ffd2000 r-xp 00000000 00:00 0 [vdso]",
            "55d0c0a00000-55d0c0a21000 rw-p 00002000 fe:00 1442 /usr/bin/it",
            "55d0c0a00000-55d0c0a21000 ---p 00002000 fe:00 1442 /usr/bin/it",
            "7f00-7f01 r--p 00000000 00:00 0",
            "",
        ] {
            assert_eq!(file_mapping(line), None, "{line}");
        }
    }

    #[test]
    fn own_pages_are_in_memory_afterwards() {
        own_pages();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let code = maps.lines().filter(|line| line.contains("r-xp")).find_map(file_mapping);
        let (start, end) = code.expect("a program has code");
        let mut resident = vec![0u8; (end - start) / PAGE_BYTES];
        // SAFETY: asks about a mapped range; one byte a page is written to a vector of that length.
        let rc = unsafe { libc::mincore(start as *mut _, end - start, resident.as_mut_ptr()) };
        assert_eq!(rc, 0);
        assert!(resident.iter().all(|page| page & 1 == 1));
    }
}
