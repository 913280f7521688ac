//! How a probe ends without success, and until when it may take.
use crate::error::ProbeError;
use crate::http::requests::failures;
use crate::net::target::resolve;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub enum ProbeFailure {
    /// The service answered as none does that works.
    Answer(String),
    /// There was no answer, and it is known why.
    NoAnswer(String),
    Timeout,
    /// This machine could not probe it: nothing is known about the service.
    Observer(ProbeError),
}

impl ProbeFailure {
    /// The failure of a call on a socket.
    pub fn of(error: &Error, deadline: Deadline) -> Self {
        let is_late = matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
        if is_late && deadline.left().is_err() {
            return Self::Timeout;
        }
        match failures::of_error(error) {
            failures::NO_PORT | failures::NO_DESCRIPTOR => {
                Self::Observer(ProbeError::os("Opening a socket", error))
            }
            failures::SOCKET => Self::NoAnswer(error.to_string()),
            known => Self::NoAnswer(failures::words(known).to_owned()),
        }
    }
}

/// When a probe began, and how long it may take.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    start: Instant,
    timeout: Duration,
}

impl Deadline {
    pub fn after(timeout: Duration) -> Self {
        Self { start: Instant::now(), timeout }
    }

    pub fn elapsed(self) -> Duration {
        self.start.elapsed()
    }

    /// Time that is left; more than zero.
    pub fn left(self) -> Result<Duration, ProbeFailure> {
        let left = self.timeout.saturating_sub(self.elapsed());
        if left.is_zero() {
            Err(ProbeFailure::Timeout)
        } else {
            Ok(left)
        }
    }
}

/// Returns the addresses of a host, at least one. The resolver has time limits of its own, which may be
/// longer than the probe's.
pub fn addresses(
    host: &str,
    port: u16,
    deadline: Deadline,
) -> Result<Vec<SocketAddr>, ProbeFailure> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (sender, receiver) = mpsc::channel();
    let name = host.to_owned();
    let resolving = std::thread::Builder::new().spawn(move || {
        let _ = sender.send(resolve(&name, port));
    });
    resolving
        .map_err(|error| ProbeFailure::Observer(ProbeError::os("Starting a thread", &error)))?;
    match receiver.recv_timeout(deadline.left()?) {
        Ok(Ok(addresses)) => Ok(addresses),
        Ok(Err(error)) => Err(ProbeFailure::NoAnswer(error.message)),
        Err(_) => Err(ProbeFailure::Timeout),
    }
}
