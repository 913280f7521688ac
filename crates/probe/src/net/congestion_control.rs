//! The congestion control of a connection, by the kernel's name for it.
use super::connection::End;
use crate::error::{FailureKind, ProbeError, Result};
use serde::{Deserialize, Serialize};
use std::io::Error;
use std::os::fd::AsRawFd;

/// Room for a name in the kernel, with the zero at its end.
const NAME_BYTES: usize = 16;

/// A name such as `bbr`; all zero for the kernel's default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CongestionControl([u8; NAME_BYTES]);

impl CongestionControl {
    /// `None` if no kernel can have such a name.
    pub fn named(name: &str) -> Option<Self> {
        let mut bytes = [0u8; NAME_BYTES];
        bytes[..NAME_BYTES - 1].get_mut(..name.len())?.copy_from_slice(name.as_bytes());
        Some(Self(bytes))
    }

    fn name(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }

    /// Sets it for what a connection sends.
    pub fn set(&self, end: &End) -> Result<()> {
        if *self == Self::default() {
            return Ok(());
        }
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
        let name = self.name();
        // SAFETY: the name is readable and of the stated length.
        let rc = unsafe {
            let length = name.len() as libc::socklen_t;
            libc::setsockopt(end.as_raw_fd(), level, option, name.as_ptr().cast(), length)
        };
        if rc == 0 {
            return Ok(());
        }
        Err(refused(&name, &Error::last_os_error()))
    }
}

/// The sentence for a name that no kernel can have.
pub fn unknown(name: &str) -> ProbeError {
    refused(name, &Error::from_raw_os_error(libc::ENOENT))
}

/// The sentence for a name that the kernel refuses.
fn refused(name: &str, error: &Error) -> ProbeError {
    let (file, reason) = match error.raw_os_error() {
        Some(libc::EPERM) => ("allowed", "does not allow this user"),
        _ => ("available", "does not have"),
    };
    let path = format!("/proc/sys/net/ipv4/tcp_{file}_congestion_control");
    let names = std::fs::read_to_string(path).unwrap_or_default();
    let names = names.split_whitespace().collect::<Vec<_>>().join(", ");
    ProbeError::new(
        FailureKind::Lacks,
        "no_such_congestion_control",
        format!("The kernel {reason} the congestion control '{name}'; {file}: {names}."),
        format!("Choose one of these, or load its module (modprobe tcp_{name})."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_or_are_refused() {
        assert_eq!(CongestionControl::named("bbr").unwrap().name(), "bbr");
        assert_eq!(CongestionControl::named(""), Some(CongestionControl::default()));
        assert!(CongestionControl::named("fifteen-letters").is_some());
        assert_eq!(CongestionControl::named("sixteen-letters-"), None);
    }

    #[test]
    fn a_refusal_names_what_there_is() {
        let error = refused("vegas2", &Error::from_raw_os_error(libc::ENOENT));
        assert!(error.message.contains("does not have the congestion control 'vegas2'"));
    }
}
