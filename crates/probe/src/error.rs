//! The one error of the probe: that of every program which runs trials.
pub use nephoscope_wire::error::{Error as ProbeError, FailureKind};

/// The outcome of what can end a trial; of other errors where one is named.
pub type Result<T, E = ProbeError> = std::result::Result<T, E>;

/// Returns the error of a system call that did not return 0.
pub fn os_result(what: &str, rc: libc::c_int) -> Result<()> {
    match rc {
        0 => Ok(()),
        _ => Err(ProbeError::os(what, &std::io::Error::last_os_error())),
    }
}

/// Returns the error of a machine that computes wrongly.
pub fn wrong_result(name: &'static str, message: impl Into<String>) -> ProbeError {
    let hint = "Do not trust any result of this machine; test its memory and its CPU.";
    ProbeError::new(FailureKind::Failed, name, message, hint)
}

/// Returns the error of a machine whose memory does not hold what was written.
pub fn wrong_value(message: impl Into<String>) -> ProbeError {
    let hint = "Test this machine's memory: the trial does not count.";
    ProbeError::new(FailureKind::Failed, "wrong_value", message, hint)
}
