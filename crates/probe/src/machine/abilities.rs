//! What this process may do here.
use super::Section;
use nephoscope_linux::files::{Fact, Files};
use nephoscope_linux::proc;

pub fn section(files: &Files) -> Section {
    let mut section = Section::new("abilities");
    // SAFETY: reads a number of our own process.
    section.set("root", unsafe { libc::geteuid() } == 0);
    let capabilities = files.text("/proc/self/status").and_then(|status| {
        let hex = proc::field(&status, "CapEff").map(str::to_owned);
        hex.ok_or_else(|| "/proc/self/status has no CapEff".to_owned())
    });
    section.put("capabilities_effective", capabilities);
    let ring = io_uring();
    section.set("io_uring", ring.is_ok());
    section.put("io_uring_entries", ring);
    section
}

/// Sets up a small ring and gives it back: the only sure way to know, as kernels, sandboxes and a
/// sysctl can each refuse it.
fn io_uring() -> Fact<u32> {
    let ring = io_uring::IoUring::new(4).map_err(|error| format!("io_uring_setup: {error}"))?;
    Ok(ring.params().sq_entries())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capabilities_are_those_of_the_kernel() {
        let facts = section(&Files::machine()).into_parts().0;
        #[repr(C)]
        struct Header {
            version: u32,
            pid: i32,
        }
        // _LINUX_CAPABILITY_VERSION_3: effective, permitted, inheritable, twice 32 bits.
        let header = Header { version: 0x2008_0522, pid: 0 };
        let mut data = [0u32; 6];
        // SAFETY: capget fills two structs of three words each for version 3.
        let rc = unsafe { libc::syscall(libc::SYS_capget, &raw const header, data.as_mut_ptr()) };
        assert_eq!(rc, 0);
        let truth = format!("{:016x}", u64::from(data[3]) << 32 | u64::from(data[0]));
        assert_eq!(facts["capabilities_effective"], truth);
    }
}
