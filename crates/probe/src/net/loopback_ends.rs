//! The two ends of a measured connection as threads, and the check that all went through.
use crate::error::{Kind, ProbeError};

/// The CPUs of the sending and of the receiving ends; `None` leaves them to the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Pins {
    /// Of the ends that send or ask.
    pub sender: Option<usize>,
    /// Of the ends that receive or answer.
    pub receiver: Option<usize>,
}

/// All that was sent has to arrive.
pub fn check_nothing_lost(what: &str, sent: u64, received: u64) -> Result<(), ProbeError> {
    if sent == received {
        return Ok(());
    }
    Err(ProbeError::new(
        Kind::Failed,
        "bytes_lost",
        format!("{sent} {what} were sent on 127.0.0.1 and {received} arrived."),
        "Run it again; if it happens again, look at the kernel's log (dmesg).",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_byte_is_noticed() {
        assert_eq!(check_nothing_lost("bytes", 2, 1).unwrap_err().name, "bytes_lost");
        assert!(check_nothing_lost("bytes", 2, 2).is_ok());
    }
}
