//! Limits of the generating machine: what they leave room for, and the sentence where they are met.
use super::failures::{Failure, NO_DESCRIPTOR, NO_PORT};
use crate::error::{Kind, ProbeError, Result};
use std::io::Error;

/// Descriptors that are no connections: standard streams, event loops, files of the machine.
const OTHER_DESCRIPTORS: u64 = 64;

/// Raises the limit on open files as far as allowed; refuses more connections than that.
pub fn allow_sockets(connections: usize) -> Result<()> {
    let needed = connections as u64 + OTHER_DESCRIPTORS;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills a plain struct.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(ProbeError::os("getrlimit", &Error::last_os_error()));
    }
    if limit.rlim_cur < needed {
        limit.rlim_cur = limit.rlim_max.min(needed);
        // SAFETY: reads a plain struct. A refusal shows in the check below.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
    if limit.rlim_cur >= needed {
        return Ok(());
    }
    Err(ProbeError::new(
        Kind::Lacks,
        "too_few_descriptors",
        format!(
            "{connections} connections need {needed} open files, and this process may have {}.",
            limit.rlim_max
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
    Some(ProbeError::new(Kind::Lacks, name, message, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_connections_than_files_are_refused() {
        allow_sockets(1).unwrap();
        let error = allow_sockets(usize::MAX >> 8).unwrap_err();
        assert_eq!((error.name, error.kind), ("too_few_descriptors", Kind::Lacks));
    }
}
