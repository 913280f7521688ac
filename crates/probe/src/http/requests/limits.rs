//! Limits of the generating machine: what they leave room for, and the sentence where they are met.
use super::failures::{Failure, NO_DESCRIPTOR, NO_PORT};
use crate::error::{os_result, FailureKind, ProbeError, Result};

/// Descriptors that are no connections: standard streams, event loops, files of the machine.
const OTHER_DESCRIPTORS: u64 = 64;

/// Raises the limit on open files to `wanted`, or as far as allowed; returns it.
pub fn raise_open_files(wanted: u64) -> Result<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: reads and writes a plain struct. A refusal to raise the limit shows in what it is then.
    let rc = unsafe {
        let rc = libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        if limit.rlim_cur < wanted {
            limit.rlim_cur = limit.rlim_max.min(wanted);
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
            libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        }
        rc
    };
    os_result("getrlimit", rc).map(|()| limit.rlim_cur)
}

/// Raises the limit on open files as far as allowed; refuses more connections than that.
pub fn allow_sockets(connections: usize) -> Result<()> {
    let needed = connections as u64 + OTHER_DESCRIPTORS;
    let possible = raise_open_files(needed)?;
    if possible >= needed {
        return Ok(());
    }
    Err(ProbeError::new(
        FailureKind::Lacks,
        "too_few_descriptors",
        format!(
            "{connections} connections need {needed} open files, and this process may have \
             {possible}."
        ),
        "Ask for fewer connections, or raise the hard limit on open files (ulimit -Hn).",
    ))
}

/// Returns the error for a failure that is a limit of the generating machine and ends the trial.
pub fn met_by(failure: Failure) -> Option<ProbeError> {
    let (name, message, hint) = match failure {
        NO_PORT => (
            "no_free_port",
            "Every local port toward the server is in use: this machine, and not the server, is the \
             limit.",
            "Keep connections alive, open fewer of them per second, or widen \
             net.ipv4.ip_local_port_range.",
        ),
        NO_DESCRIPTOR => (
            "no_free_descriptor",
            "This machine has no file descriptor or memory left for another socket: it, and not the \
             server, is the limit.",
            "Ask for fewer connections, or raise fs.file-max and the limit on open files.",
        ),
        _ => return None,
    };
    Some(ProbeError::new(FailureKind::Lacks, name, message, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_files_are_refused() {
        allow_sockets(1).unwrap();
        let error = allow_sockets(usize::MAX >> 8).unwrap_err();
        assert_eq!((error.name, error.kind), ("too_few_descriptors", FailureKind::Lacks));
    }
}
