//! How much memory this process may use: the machine's, or less where a cgroup says so.
use super::place;
use crate::error::Result;
use crate::trial::Trial;
use nephoscope_linux::cgroup::Cgroups;
use nephoscope_linux::files::Files;
use nephoscope_linux::proc;
use std::path::Path;

/// `MemTotal`, or the smallest limit of this process's cgroups below it; `None` where `/proc` hides
/// how much there is. A limit that cannot be seen only makes this too large, and so a file of a
/// given size less likely to count as larger than memory.
pub fn usable_bytes(files: &Files) -> Option<u64> {
    let total = proc::kib_field(&files.text("/proc/meminfo").ok()?, "MemTotal")?;
    let limit = Cgroups::find(files).memory_limit(files).ok().flatten();
    Some(limit.map_or(total, |limit| limit.value.min(total)))
}

/// Whether a file of that size tells of the disk although the page cache takes part. If not, a note
/// says why.
pub fn reaches_disk(trial: &mut Trial, place: &Path, bytes: u64) -> Result<bool> {
    let why = match usable_bytes(&Files::machine()) {
        _ if place::in_memory(place)? => {
            "the directory is a tmpfs, its files live in memory".to_owned()
        }
        // Twice the memory, so that at most half of the operations can find their record in it.
        Some(memory) if bytes >= memory.saturating_mul(2) => return Ok(true),
        Some(memory) => format!(
            "the file of {bytes} bytes is smaller than twice the memory of {memory} bytes, and \
            direct I/O is off"
        ),
        None => "how much memory there is cannot be read (/proc is hidden), and direct I/O is off"
            .to_owned(),
    };
    trial.out.note(format!("A cache measurement: {why}."));
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_as_much_memory_as_the_kernel_says() {
        // SAFETY: fills a plain struct.
        let info = unsafe {
            let mut info: libc::sysinfo = std::mem::zeroed();
            assert_eq!(libc::sysinfo(&raw mut info), 0);
            info
        };
        let total = info.totalram * u64::from(info.mem_unit);
        let usable = usable_bytes(&Files::machine()).unwrap();
        assert!(usable <= total && usable > 0, "{usable} of {total}");
    }

    #[test]
    fn a_hidden_proc_gives_nothing_and_not_zero() {
        assert_eq!(usable_bytes(&Files::under("/nowhere")), None);
    }
}
