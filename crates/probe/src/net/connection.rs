//! One end of a TCP connection: blocking calls that a cancellation ends, and that never wait for ever.
use super::{read_option, set_option};
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_linux::clock;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A blocked call comes back this often and looks whether it is to end.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// No sound connection stands still this long.
pub(super) const STALLED_NS: u64 = 5_000_000_000;
/// Between two machines a far side may have to wait for its start.
const PATIENT_NS: u64 = 86_400_000_000_000;
/// One end of a connection.
#[derive(Debug)]
pub struct End {
    session: Session,
    stream: TcpStream,
    /// A call that makes no progress for this long fails.
    patience_ns: u64,
}

impl End {
    /// A connected socket, with its time limits set.
    pub(super) fn of(session: Session, stream: TcpStream) -> Result<Self> {
        let set = || {
            // Small messages go out at once; large writes fill segments anyway.
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(CHECK_INTERVAL))?;
            stream.set_write_timeout(Some(CHECK_INTERVAL))
        };
        set().map_err(|error| ProbeError::os("Setting up a socket", &error))?;
        Ok(Self { session, stream, patience_ns: STALLED_NS })
    }

    /// A connection on which nothing may come for long: the far side waits for its start, or the
    /// way is slow. A trial's deadline bounds it all the same.
    pub fn patient(self) -> Self {
        Self { patience_ns: PATIENT_NS, ..self }
    }

    /// Sets the size of the receive buffer, which bounds the window; 0 leaves it to the kernel.
    pub fn set_receive_buffer(&self, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let size = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        set_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, size)
            .map_err(|error| ProbeError::os("Setting the receive buffer", &error))?;
        let mut size = [0; size_of::<libc::c_int>()];
        read_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &mut size);
        // The kernel doubles the size for its own bookkeeping, and lowers it to its limit in silence.
        let set = libc::c_int::from_ne_bytes(size) as usize / 2;
        if set >= bytes {
            return Ok(());
        }
        Err(ProbeError::new(
            FailureKind::Lacks,
            "receive_buffer_too_large",
            format!("This machine allows receive buffers of {set} bytes, not {bytes}."),
            "Set a smaller receive_buffer_bytes, or raise net.core.rmem_max.",
        ))
    }

    /// Reads what has come, at least one byte; 0 when the other side has ended.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self.stream.read(buffer) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.again("Receiving", error, |stream| stream.read(buffer)),
        }
    }

    /// As [`Self::read`], without a limit on waiting; `None` when it was told to stop first.
    pub fn read_or_stop(&mut self, buffer: &mut [u8]) -> Result<Option<usize>> {
        loop {
            self.session.check()?;
            match self.stream.read(buffer) {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(error) if is_wait(&error) => {
                    if self.session.is_stopped() {
                        return Ok(None);
                    }
                }
                Err(error) => return Err(self.broken("Receiving", &error)),
            }
        }
    }

    fn broken(&self, what: &str, error: &Error) -> ProbeError {
        let message = format!("{what}, toward {}, failed: {error}.", self.far_ip());
        ProbeError::new(
            FailureKind::Failed,
            "connection_broken",
            message,
            "See whether the program at the other end still runs, then run it again.",
        )
    }

    pub fn session(&self) -> Session {
        self.session
    }

    pub fn peer_address(&self) -> Result<SocketAddr, Error> {
        self.stream.peer_addr()
    }

    /// The address of the other end; an unspecified one when it has gone.
    pub fn far_ip(&self) -> IpAddr {
        self.peer_address().map_or(Ipv4Addr::UNSPECIFIED.into(), |far| far.ip())
    }

    /// As [`Self::read`], and leaves what it read where it is.
    pub fn peek(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match self.stream.peek(buffer) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.again("Receiving", error, |stream| stream.peek(buffer)),
        }
    }

    /// Writes some of `data`, at least one byte.
    #[inline]
    pub fn write(&mut self, data: &[u8]) -> Result<usize> {
        match self.stream.write(data) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.again("Sending", error, |stream| stream.write(data)),
        }
    }

    /// As [`Self::write`], of the first `bytes` of a file, which the kernel does not copy.
    pub fn send_file(&mut self, file: &impl AsRawFd, bytes: usize) -> Result<usize> {
        let call = |stream: &mut TcpStream| {
            let mut offset = 0;
            // SAFETY: two descriptors that are open, and an offset that outlives the call.
            let sent = unsafe {
                libc::sendfile(stream.as_raw_fd(), file.as_raw_fd(), &raw mut offset, bytes)
            };
            usize::try_from(sent).map_err(|_| Error::last_os_error())
        };
        match call(&mut self.stream) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.again("Sending", error, call),
        }
    }

    /// Reads until `buffer` is full; false when the other side ended first.
    #[inline]
    pub fn read_exact(&mut self, buffer: &mut [u8]) -> Result<bool> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read(&mut buffer[done..])? {
                0 => return Ok(false),
                bytes => done += bytes,
            }
        }
        Ok(true)
    }

    #[inline]
    pub fn write_all(&mut self, data: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            done += self.write(&data[done..])?;
        }
        Ok(())
    }

    /// Tells the other side that nothing more comes.
    pub fn end(&self) -> Result<()> {
        let ended = self.stream.shutdown(Shutdown::Write);
        ended.map_err(|error| self.broken("Ending a connection", &error))
    }

    /// The slow road of a call that did not get through at once.
    #[cold]
    fn again(
        &mut self,
        what: &str,
        mut error: Error,
        mut call: impl FnMut(&mut TcpStream) -> Result<usize, Error>,
    ) -> Result<usize> {
        let started_ns = clock::monotonic_ns();
        loop {
            self.session.check()?;
            if !is_wait(&error) {
                return Err(self.broken(what, &error));
            }
            if clock::monotonic_ns() - started_ns > self.patience_ns {
                return Err(stalled(what, &self.far_ip().to_string(), self.patience_ns));
            }
            match call(&mut self.stream) {
                Ok(bytes) => return Ok(bytes),
                Err(next) => error = next,
            }
        }
    }
}

impl AsRawFd for End {
    fn as_raw_fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}

/// Returns for each socket whether it has something to read, after at most `timeout_ms`.
pub fn readable<const N: usize>(sockets: [RawFd; N], timeout_ms: libc::c_int) -> [bool; N] {
    let mut polls = sockets.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    // SAFETY: N valid entries.
    let ready = unsafe { libc::poll(polls.as_mut_ptr(), N as libc::nfds_t, timeout_ms) };
    polls.map(|poll| ready > 0 && poll.revents != 0)
}

/// Makes `accept` return from time to time.
pub(super) fn bound_waiting(listener: &TcpListener) -> Result<()> {
    let time = libc::timeval { tv_sec: 0, tv_usec: i64::from(CHECK_INTERVAL.subsec_micros()) };
    set_option(listener.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVTIMEO, time)
        .map_err(|error| ProbeError::os("Setting up a socket", &error))
}

/// Whether a call only has to be made again.
pub(super) fn is_wait(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The sentence for a loopback that does not work.
pub(super) fn no_loopback(error: &Error) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_loopback",
        format!("A TCP connection over 127.0.0.1 cannot be made: {error}."),
        "Bring the loopback interface up (ip link set lo up) and let a firewall pass it.",
    )
}

pub(super) fn stalled(what: &str, far: &str, patience_ns: u64) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "stalled",
        format!("{what}, toward {far}, made no progress for {} s.", patience_ns / 1_000_000_000),
        "See whether a firewall drops packets on the way, then run it again.",
    )
}
