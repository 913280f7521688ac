//! What a kernel did meanwhile for everyone whom it serves: what neighbours of a container, or of a
//! host of a lab, cannot hide from a victim that shares their kernel.
//!
//! Only where the process does not see its whole kernel (see `others`): a guest with a kernel of
//! its own would count itself, and call that a neighbour.
use nephoscope_linux::files::Files;
use nephoscope_linux::proc;

/// Cumulative; `None` where hidden, and where nobody else uses this kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelCounters {
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    /// Requests to write a disk's cache out.
    pub flushes: Option<u64>,
    /// Packets that came to any device of any network namespace.
    pub packets: Option<u64>,
    pub switches: Option<u64>,
}

impl KernelCounters {
    /// Reads the counters, given the texts that are read anyway.
    pub fn read(files: &Files, shared: bool, stat: &str, vmstat: &str) -> Self {
        if !shared {
            return Self::default();
        }
        let bytes = |key| proc::keyed(vmstat, key).map(|kib| kib << 10);
        Self {
            read_bytes: bytes("pgpgin"),
            written_bytes: bytes("pgpgout"),
            flushes: files.text("/proc/diskstats").ok().as_deref().and_then(flushes),
            packets: files.text("/proc/net/softnet_stat").ok().as_deref().and_then(packets),
            switches: proc::keyed(stat, "ctxt"),
        }
    }
}

/// Since Linux 5.5, the 16th figure behind a disk's name; `None` with an older kernel.
fn flushes(diskstats: &str) -> Option<u64> {
    let of = |line: &str| line.split_whitespace().nth(18)?.parse::<u64>().ok();
    let counts: Vec<u64> = diskstats.lines().filter_map(of).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// The first figure of each processor's line, hexadecimal.
fn packets(softnet: &str) -> Option<u64> {
    let of = |line: &str| u64::from_str_radix(line.split_whitespace().next()?, 16).ok();
    let counts: Vec<u64> = softnet.lines().filter_map(of).collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    const STAT: &str = "cpu  1 0 0 9 0 0 0 0 0 0\nctxt 512\n";
    const VMSTAT: &str = "pgpgin 3\npgpgout 5\n";

    #[test]
    fn every_counter_is_the_kernel_s() {
        let captured = Captured::new(&[
            (
                "/proc/diskstats",
                " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 40 17\n \
                 254 16 vdb 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 2 17\n",
            ),
            ("/proc/net/softnet_stat", "0000000a 0 0\n00000010 0 0\n"),
        ]);
        let counters = KernelCounters::read(&captured.files(), true, STAT, VMSTAT);
        let wanted = KernelCounters {
            read_bytes: Some(3 << 10),
            written_bytes: Some(5 << 10),
            flushes: Some(42),
            packets: Some(26),
            switches: Some(512),
        };
        assert_eq!(counters, wanted);
    }

    #[test]
    fn what_is_hidden_or_old_or_ours_alone_is_none() {
        let old = Captured::new(&[("/proc/diskstats", " 8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n")]);
        assert_eq!(KernelCounters::read(&old.files(), true, "", ""), KernelCounters::default());
        assert_eq!(
            KernelCounters::read(&old.files(), false, STAT, VMSTAT),
            KernelCounters::default()
        );
    }
}
