//! What the other programs of this machine did meanwhile: what slows a trial from inside, which
//! is no neighbour's doing.
//!
//! "This machine" is what shares its PID and its network namespace with the process. Where these
//! are the kernel's first ones it is the whole kernel: all CPU time and all pages to and from
//! disks, less its own. In a container, or in a host of a lab, it is the sum over the processes of
//! that container or host; what others on the same kernel do is then not ours.
use nephoscope_linux::files::Files;
use nephoscope_linux::proc::{self, CpuTimes};

/// The PID namespace that the kernel starts with has this fixed number.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Cumulative; `None` where the machine hides it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherProgramUse {
    /// CPU time of all others, in ticks.
    pub ticks: Option<i64>,
    /// Bytes that all others read from and wrote to disks.
    pub io_bytes: Option<i64>,
}

impl OtherProgramUse {
    /// Reads what is to be seen. whole: as `whole_kernel`. own_ticks: CPU time of this process and its children.
    pub fn read(
        files: &Files,
        whole: Option<bool>,
        cpu: Option<&CpuTimes>,
        vmstat: &str,
        own_ticks: Option<i64>,
    ) -> Self {
        match whole {
            Some(true) => Self::of_the_kernel(files, cpu, vmstat, own_ticks),
            Some(false) => Self::in_sight(files, namespace(files, "self/ns/net").as_deref()),
            None => Self::default(),
        }
    }

    fn of_the_kernel(
        files: &Files,
        cpu: Option<&CpuTimes>,
        vmstat: &str,
        own_ticks: Option<i64>,
    ) -> Self {
        let ticks = cpu.zip(own_ticks).map(|(times, own)| times.busy - own);
        let kib = proc::keyed(vmstat, "pgpgin").zip(proc::keyed(vmstat, "pgpgout"));
        let own = files.text("/proc/self/io").ok().and_then(|text| moved(&text));
        let io_bytes =
            kib.zip(own).map(|((read, written), own)| ((read + written) << 10).cast_signed() - own);
        Self { ticks, io_bytes }
    }

    fn in_sight(files: &Files, network: Option<&str>) -> Self {
        let Ok(names) = files.names("/proc") else { return Self::default() };
        let own = std::process::id().to_string();
        let pids = names.iter().filter(|name| **name != own && name.parse::<u32>().is_ok());
        let (mut ticks, mut io_bytes) = (0, Some(0));
        for pid in pids {
            if files.link_name(format!("/proc/{pid}/ns/net")).ok().as_deref() != network {
                continue;
            }
            // One that has ended meanwhile is counted by the parent that waited for it.
            let Ok(stat) = files.text(format!("/proc/{pid}/stat")) else { continue };
            ticks += used(&stat).unwrap_or(0);
            let io = files.text(format!("/proc/{pid}/io")).ok().and_then(|text| moved(&text));
            io_bytes = io_bytes.zip(io).map(|(sum, bytes)| sum + bytes);
        }
        Self { ticks: Some(ticks), io_bytes }
    }
}

/// Whether this process sees all that its kernel serves: whether its PID and network namespaces
/// are the kernel's first ones. `None` where that is hidden.
pub fn whole_kernel(files: &Files) -> Option<bool> {
    let pids = namespace(files, "self/ns/pid")?;
    // That of process 1 may be hidden even from root; process 2, the kernel's own, has the same
    // one. Where both are hidden it is taken for ours.
    let first = namespace(files, "1/ns/net").or_else(|| namespace(files, "2/ns/net"));
    let network = namespace(files, "self/ns/net");
    Some(pids == FIRST_PID_NAMESPACE && first.is_none_or(|first| Some(first) == network))
}

fn namespace(files: &Files, of: &str) -> Option<String> {
    files.link_name(format!("/proc/{of}")).ok()
}

/// Ticks of a process and of the children it waited for: fields 14 to 17 of its `stat`.
fn used(stat: &str) -> Option<i64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let times: Vec<i64> =
        rest.split_whitespace().skip(11).take(4).map_while(|word| word.parse().ok()).collect();
    (times.len() == 4).then(|| times.iter().sum())
}

/// Bytes of a process's `io` that went to or came from a disk.
fn moved(io: &str) -> Option<i64> {
    let bytes = |key| proc::field(io, key)?.parse::<i64>().ok();
    Some(bytes("read_bytes")? + bytes("write_bytes")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    fn read(
        captured: &Captured,
        cpu: Option<&CpuTimes>,
        vmstat: &str,
        own: Option<i64>,
    ) -> OtherProgramUse {
        let files = captured.files();
        OtherProgramUse::read(&files, whole_kernel(&files), cpu, vmstat, own)
    }

    const IO: &str = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 1024\ncancelled_write_bytes: 0\n";

    #[test]
    fn with_everything_in_sight_it_is_the_kernels_sum_less_our_own() {
        let captured = Captured::new(&[("/proc/self/io", IO)]);
        captured.link("/proc/self/ns/pid", FIRST_PID_NAMESPACE);
        let cpu = CpuTimes { busy: 500, idle: 0, steal: None };
        let vmstat = "pgpgin 10\npgpgout 5\n";
        let usage = read(&captured, Some(&cpu), vmstat, Some(120));
        let wanted = OtherProgramUse { ticks: Some(380), io_bytes: Some(15 * 1024 - 5120) };
        assert_eq!(usage, wanted);
    }

    #[test]
    fn in_a_container_it_is_the_sum_over_what_is_in_sight() {
        let stat = "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 30 12 5 3 20 0 1 0 0 0\n";
        let captured = Captured::new(&[
            ("/proc/7/stat", stat),
            ("/proc/7/io", IO),
            ("/proc/8/stat", &stat.replace("30 12", "1 1")),
            ("/proc/8/io", IO),
            ("/proc/loadavg", "0"),
        ]);
        captured.link("/proc/self/ns/pid", "pid:[4026532000]");
        let usage = read(&captured, None, "", None);
        assert_eq!(usage, OtherProgramUse { ticks: Some(50 + 10), io_bytes: Some(2 * 5120) });
    }

    #[test]
    fn in_a_host_of_a_lab_it_is_what_shares_its_network() {
        let stat = "7 (a) S 1 1 1 0 -1 0 0 0 0 0 30 12 5 3 20 0 1 0 0 0\n";
        let captured = Captured::new(&[
            ("/proc/7/stat", stat),
            ("/proc/7/io", IO),
            ("/proc/8/stat", stat),
            ("/proc/8/io", IO),
        ]);
        captured.link("/proc/self/ns/pid", FIRST_PID_NAMESPACE);
        // Process 1 hides its own.
        for (path, network) in [("self", 5), ("7", 5), ("8", 6), ("2", 1)] {
            captured.link(&format!("/proc/{path}/ns/net"), &format!("net:[{network}]"));
        }
        let cpu = CpuTimes { busy: 500, idle: 0, steal: None };
        let usage = read(&captured, Some(&cpu), "", Some(1));
        assert_eq!(usage, OtherProgramUse { ticks: Some(50), io_bytes: Some(5120) });
    }

    #[test]
    fn what_is_hidden_is_none() {
        let captured = Captured::new(&[]);
        assert_eq!(read(&captured, None, "", Some(1)), OtherProgramUse::default());
    }
}
