//! What a trial has to obey while it runs: cancellation, its deadline, the control channel. A value
//! that is passed to whatever waits or loops.
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::signals::{self, Flags};
use nephoscope_linux::clock;
use nephoscope_wire::arguments::Limits;
use nephoscope_wire::lines::{ControlLine, Peer};
#[cfg(feature = "storage")]
use std::collections::BTreeMap;

/// A line that is longer is none of ours.
const LINE_BYTES: usize = 4096;
/// The last bit of waiting for a moment is spent reading the clock.
const SPIN_NS: u64 = 200_000;

/// Handle on what may end a trial from outside.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    flags: &'static Flags,
    has_control: bool,
}

#[derive(Debug, Default)]
pub struct Go {
    /// When to start, on the wall clock; at once where none was set.
    pub start_wall_ns: Option<u64>,
    /// The far side, where one was named before.
    pub peer: Option<Peer>,
}

impl Session {
    /// Installs the signal handlers and arms the deadline: the session of this process.
    pub fn begin(limits: &Limits) -> Result<Self> {
        signals::install(limits.deadline, limits.control, limits.with_parent)?;
        Ok(Self { flags: &signals::FLAGS, has_control: limits.control })
    }

    /// A session that nothing ends and nobody controls.
    #[cfg(test)]
    pub fn detached() -> Self {
        static UNTOUCHED: Flags = Flags::new();
        Self { flags: &UNTOUCHED, has_control: false }
    }

    pub fn has_control(self) -> bool {
        self.has_control
    }

    #[inline]
    pub fn is_cancelled(self) -> bool {
        self.flags.ending().is_some()
    }

    #[inline]
    pub fn is_stopped(self) -> bool {
        self.flags.stopped()
    }

    /// Refuses to go on where the trial was cancelled or its deadline passed; called wherever a loop
    /// comes round.
    pub fn check(self) -> Result<()> {
        match self.flags.ending() {
            None => Ok(()),
            Some(124) => Err(ProbeError::new(
                FailureKind::Deadline,
                "deadline",
                "The deadline passed before the benchmark was done.",
                "Give it more time, or smaller parameters.",
            )),
            Some(_) => Err(ProbeError::new(
                FailureKind::Cancelled,
                "cancelled",
                "The benchmark was cancelled.",
                "Run it again; nothing was left behind.",
            )),
        }
    }

    /// Lets `stop` end the trial in order, with its samples, instead of cancelling it.
    pub fn allow_orderly_stop(self) {
        signals::allow_orderly_stop();
    }

    /// Lets `stop` and the end of the input be noticed whatever the trial does, from now on.
    pub fn notice_stop(self) {
        if self.has_control {
            signals::read_control_lines();
        }
    }

    /// Waits for a moment on the wall clock: asleep at first, then reading the clock.
    pub fn wait_until(self, wall_ns: u64) -> Result<()> {
        loop {
            self.check()?;
            if self.is_stopped() {
                return Err(ended_before_start("It received `stop`"));
            }
            let left_ns = wall_ns.saturating_sub(clock::realtime_ns());
            match left_ns {
                0 => return Ok(()),
                1..=SPIN_NS => std::hint::spin_loop(),
                // Short sleeps: this one goes on through signals.
                _ => {
                    let nap_ns = (left_ns - SPIN_NS).min(20_000_000);
                    std::thread::sleep(std::time::Duration::from_nanos(nap_ns));
                }
            }
        }
    }

    /// Reads where the far side is, from the first control line.
    pub fn read_peer(self, benchmark: &str) -> Result<Peer> {
        let hint = "Start it with --control and make `peer {\"address\": …, \"port\": …, \
                    \"token\": …}` the first line of its standard input.";
        if !self.has_control {
            let message = format!("{benchmark} measures toward a far side, and none was named.");
            return Err(ProbeError::usage(message, hint));
        }
        match self.read_line()? {
            ControlLine::Peer(peer) => Ok(peer),
            _ => {
                Err(ProbeError::usage(format!("{benchmark}: the first line must be `peer`."), hint))
            }
        }
    }

    /// Reads the token of the one peer that is served, from the first control line.
    pub fn read_token(self) -> Result<String> {
        match self.read_line()? {
            ControlLine::Token(token) => Ok(token),
            _ => Err(ProbeError::usage(
                "The first line on standard input must be `token …`.",
                "A server serves only a peer that presents the token.",
            )),
        }
    }

    /// Reads what a service asks for, from the first control line.
    #[cfg(feature = "storage")]
    pub fn read_credentials(self) -> Result<BTreeMap<String, String>> {
        match self.read_line()? {
            ControlLine::Credentials(pairs) => Ok(pairs),
            _ => Err(ProbeError::usage(
                "A store over the network: the first line must be `credentials`.",
                "Send `credentials {}` where the environment or a file has them.",
            )),
        }
    }

    /// Time until the deadline.
    #[cfg(feature = "storage")]
    pub fn time_left(self) -> std::time::Duration {
        signals::time_left()
    }

    /// Waits for `go`. From then on `stop` and the end of the input are noticed whatever the trial
    /// does.
    pub fn wait_for_go(self) -> Result<Go> {
        let mut named = None;
        loop {
            match self.read_line()? {
                ControlLine::Go(start_wall_ns) => {
                    self.notice_stop();
                    self.check()?;
                    return Ok(Go { start_wall_ns, peer: named });
                }
                ControlLine::Stop => return Err(ended_before_start("It received `stop`")),
                ControlLine::Peer(peer) => named = Some(peer),
                ControlLine::Token(_) => return Err(ControlLine::unknown("token")),
                ControlLine::Credentials(_) => return Err(ControlLine::unknown("credentials")),
            }
        }
    }

    /// Reads the next line byte by byte: what follows belongs to a later reader.
    fn read_line(self) -> Result<ControlLine> {
        let mut line = Vec::new();
        loop {
            self.check()?;
            if !signals::input_is_readable(100) {
                continue;
            }
            let mut byte = 0u8;
            // SAFETY: reads one byte into our own.
            match unsafe { libc::read(0, (&raw mut byte).cast(), 1) } {
                0 => return Err(ended_before_start("Its standard input ended")),
                1 if byte == b'\n' => break,
                1 if line.len() < LINE_BYTES => line.push(byte),
                1 => return Err(ControlLine::unknown("a very long line")),
                _ => {
                    let error = std::io::Error::last_os_error();
                    if error.kind() != std::io::ErrorKind::Interrupted {
                        return Err(ProbeError::os("Reading the control channel", &error));
                    }
                }
            }
        }
        let text =
            String::from_utf8(line).map_err(|_| ControlLine::unknown("bytes that are no text"))?;
        ControlLine::parse(text.trim_end_matches('\r'))
    }
}

fn ended_before_start(why: &str) -> ProbeError {
    let message = format!("{why} before it began.");
    ProbeError::new(FailureKind::Cancelled, "cancelled", message, "Send `go` to start it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_that_has_passed_is_not_waited_for() {
        let session = Session::detached();
        session.wait_until(0).unwrap();
        let at_ns = clock::realtime_ns() + 3_000_000;
        session.wait_until(at_ns).unwrap();
        assert!(clock::realtime_ns() >= at_ns);
    }
}
