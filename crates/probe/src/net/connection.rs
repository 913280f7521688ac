//! Both ends of a TCP connection on 127.0.0.1, with no stranger in between.
use super::random_bytes;
use crate::clock;
use crate::error::{Kind, ProbeError};
use crate::session::Session;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

/// A blocked call comes back this often and looks whether it is to end.
const LOOK_AROUND: Duration = Duration::from_millis(200);
/// No sound connection stands still this long.
const STALLED_NS: u64 = 5_000_000_000;
/// Between two machines a far side may have to wait for its start.
const PATIENT_NS: u64 = 86_400_000_000_000;
/// Bytes of the secret that the connecting side presents.
const NONCE_BYTES: usize = 16;

/// A connected pair of sockets of this process.
#[derive(Debug)]
pub struct Pair {
    /// The connecting side.
    pub near: End,
    /// The accepting side.
    pub far: End,
}

impl Pair {
    /// Connects to a listener of our own on a free port. The accepting side takes only the peer that
    /// has our own address and presents a fresh random secret, so that no other program of the
    /// machine can get in.
    pub fn connect(session: Session) -> Result<Self, ProbeError> {
        let mut nonce = [0u8; NONCE_BYTES];
        random_bytes(&mut nonce)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| no_loopback(&e))?;
        let address = listener.local_addr().map_err(|e| no_loopback(&e))?;
        bound_waiting(&listener)?;
        let near = TcpStream::connect(address).map_err(|e| no_loopback(&e))?;
        let near_address = near.local_addr().map_err(|e| no_loopback(&e))?;
        let mut near = End::of(session, near)?;
        near.write_all(&nonce)?;
        let far = accept_own(session, &listener, near_address, &nonce)?;
        Ok(Self { near, far })
    }
}

/// Accepts until the peer is the one at `address` that presents `nonce`; others are hung up on.
fn accept_own(
    session: Session,
    listener: &TcpListener,
    address: SocketAddr,
    nonce: &[u8; NONCE_BYTES],
) -> Result<End, ProbeError> {
    let started_ns = clock::monotonic_ns();
    while clock::monotonic_ns() - started_ns < STALLED_NS {
        session.check()?;
        match listener.accept() {
            Ok((stream, peer)) if peer == address => {
                let mut far = End::of(session, stream)?;
                if far.presents(nonce)? {
                    return Ok(far);
                }
            }
            Ok(_) => {} // A stranger; dropping the stream closes it.
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(no_loopback(&error)),
        }
    }
    Err(stalled("Accepting our own connection", "127.0.0.1", STALLED_NS))
}

/// One end of a connection: blocking calls that a cancellation ends, and that never wait for ever.
#[derive(Debug)]
pub struct End {
    session: Session,
    stream: TcpStream,
    /// A call that makes no progress for this long fails.
    patience_ns: u64,
}

impl End {
    /// A connected socket, with its time limits set.
    pub(super) fn of(session: Session, stream: TcpStream) -> Result<Self, ProbeError> {
        let set = || {
            // Small messages go out at once; large writes fill segments anyway.
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(LOOK_AROUND))?;
            stream.set_write_timeout(Some(LOOK_AROUND))
        };
        set().map_err(|error| ProbeError::os("Setting up a socket", &error))?;
        Ok(Self { session, stream, patience_ns: STALLED_NS })
    }

    /// A connection on which nothing may come for long: the far side waits for its start, or the
    /// way is slow. A trial's deadline bounds it all the same.
    pub fn patient(self) -> Self {
        Self { patience_ns: PATIENT_NS, ..self }
    }

    fn presents(&mut self, nonce: &[u8; NONCE_BYTES]) -> Result<bool, ProbeError> {
        let mut given = [0u8; NONCE_BYTES];
        let complete = self.read_exact(&mut given)?;
        // All bytes are looked at, so that the time tells nothing about where they differ.
        let differences = given.iter().zip(nonce).fold(0, |sum, (a, b)| sum | (a ^ b));
        Ok(complete && differences == 0)
    }

    /// Reads what has come, at least one byte; 0 when the other side has ended.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ProbeError> {
        match self.stream.read(buffer) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.again("Receiving", error, |stream| stream.read(buffer)),
        }
    }

    /// As [`Self::read`], without a limit on waiting; `None` when it was told to stop first.
    pub fn read_or_stop(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ProbeError> {
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
        let message = format!("{what}, toward {}, failed: {error}.", self.far());
        ProbeError::new(
            Kind::Failed,
            "connection_broken",
            message,
            "See whether the program at the other end still runs, then run it again.",
        )
    }

    /// The other end, for sentences.
    fn far(&self) -> String {
        self.stream
            .peer_addr()
            .map_or_else(|_| "the far side".to_owned(), |far| far.ip().to_string())
    }

    /// What may end the trial that it belongs to.
    pub fn session(&self) -> Session {
        self.session
    }

    /// The address of the other end; an unspecified one when it has gone.
    pub fn far_address(&self) -> IpAddr {
        self.stream.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |far| far.ip())
    }

    /// The descriptor, for `poll` and for its options.
    pub fn descriptor(&self) -> RawFd {
        self.stream.as_raw_fd()
    }

    /// As [`Self::read`], and leaves what it read where it is.
    pub fn peek(&mut self, buffer: &mut [u8]) -> Result<usize, ProbeError> {
        match self.stream.peek(buffer) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.again("Receiving", error, |stream| stream.peek(buffer)),
        }
    }

    /// Reads what comes before a time on the monotonic clock; `None` when nothing did or the
    /// connection broke.
    pub(super) fn read_until(&mut self, buffer: &mut [u8], until_ns: u64) -> Option<usize> {
        loop {
            match self.stream.read(buffer) {
                Ok(bytes) => return Some(bytes),
                Err(error) if is_wait(&error) && !self.session.is_cancelled() => {
                    if clock::monotonic_ns() > until_ns {
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
    }

    /// Writes some of `data`, at least one byte.
    #[inline]
    pub fn write(&mut self, data: &[u8]) -> Result<usize, ProbeError> {
        match self.stream.write(data) {
            Ok(bytes) => Ok(bytes),
            Err(error) => self.again("Sending", error, |stream| stream.write(data)),
        }
    }

    /// Reads until `buffer` is full; false when the other side ended first.
    #[inline]
    pub fn read_exact(&mut self, buffer: &mut [u8]) -> Result<bool, ProbeError> {
        let mut done = 0;
        while done < buffer.len() {
            match self.read(&mut buffer[done..])? {
                0 => return Ok(false),
                bytes => done += bytes,
            }
        }
        Ok(true)
    }

    /// Writes all of `data`.
    #[inline]
    pub fn write_all(&mut self, data: &[u8]) -> Result<(), ProbeError> {
        let mut done = 0;
        while done < data.len() {
            done += self.write(&data[done..])?;
        }
        Ok(())
    }

    /// Tells the other side that nothing more comes.
    pub fn end(&self) -> Result<(), ProbeError> {
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
    ) -> Result<usize, ProbeError> {
        let started_ns = clock::monotonic_ns();
        loop {
            self.session.check()?;
            if !is_wait(&error) {
                return Err(self.broken(what, &error));
            }
            if clock::monotonic_ns() - started_ns > self.patience_ns {
                return Err(stalled(what, &self.far(), self.patience_ns));
            }
            match call(&mut self.stream) {
                Ok(bytes) => return Ok(bytes),
                Err(next) => error = next,
            }
        }
    }
}

/// Whether something has come on a descriptor, in `timeout_ms` at most.
pub fn readable(descriptor: RawFd, timeout_ms: libc::c_int) -> bool {
    let mut poll = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry.
    unsafe { libc::poll(&raw mut poll, 1, timeout_ms) > 0 && poll.revents != 0 }
}

/// Makes `accept` come back now and then.
pub(super) fn bound_waiting(listener: &TcpListener) -> Result<(), ProbeError> {
    let micros = i64::from(LOOK_AROUND.subsec_micros());
    let time = libc::timeval { tv_sec: 0, tv_usec: micros };
    // SAFETY: the option's value is a timeval of the stated size.
    let rc = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_RCVTIMEO,
            (&raw const time).cast(),
            size_of::<libc::timeval>() as libc::socklen_t,
        )
    };
    if rc == 0 {
        return Ok(());
    }
    Err(ProbeError::os("Setting up a socket", &Error::last_os_error()))
}

/// Whether a call only has to be made again.
pub(super) fn is_wait(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// The sentence for a loopback that does not work.
pub(super) fn no_loopback(error: &Error) -> ProbeError {
    ProbeError::new(
        Kind::Lacks,
        "no_loopback",
        format!("A TCP connection over 127.0.0.1 cannot be made: {error}."),
        "Bring the loopback interface up (ip link set lo up) and let a firewall pass it.",
    )
}

fn stalled(what: &str, far: &str, patience_ns: u64) -> ProbeError {
    ProbeError::new(
        Kind::Failed,
        "stalled",
        format!("{what}, toward {far}, made no progress for {} s.", patience_ns / 1_000_000_000),
        "See whether a firewall drops packets on the way, then run it again.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_at_one_end_comes_out_at_the_other() {
        let mut pair = Pair::connect(Session::detached()).unwrap();
        pair.near.write_all(b"there").unwrap();
        let mut five = [0u8; 5];
        assert!(pair.far.read_exact(&mut five).unwrap());
        assert_eq!(&five, b"there");
        pair.near.end().unwrap();
        assert_eq!(pair.far.read(&mut five).unwrap(), 0);
        assert!(!pair.far.read_exact(&mut five).unwrap());
    }

    #[test]
    fn a_stranger_who_comes_first_is_hung_up_on() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        bound_waiting(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let nonce = [7u8; NONCE_BYTES];
        let mut stranger =
            End::of(Session::detached(), TcpStream::connect(address).unwrap()).unwrap();
        stranger.write_all(&nonce).unwrap();
        let near = TcpStream::connect(address).unwrap();
        let near_address = near.local_addr().unwrap();
        let mut near = End::of(Session::detached(), near).unwrap();
        near.write_all(&nonce).unwrap();
        let far = accept_own(Session::detached(), &listener, near_address, &nonce).unwrap();
        assert_eq!(far.stream.peer_addr().unwrap(), near_address);
        // Closed with its bytes unread: end of stream, or a reset.
        let hung_up = stranger.stream.read(&mut [0u8; 1]);
        assert!(!matches!(hung_up, Ok(1..)), "{hung_up:?}");
    }

    #[test]
    fn a_wrong_secret_is_not_let_in() {
        let mut pair = Pair::connect(Session::detached()).unwrap();
        pair.near.write_all(&[1u8; NONCE_BYTES]).unwrap();
        assert!(!pair.far.presents(&[2u8; NONCE_BYTES]).unwrap());
        pair.near.write_all(&[1u8; 3]).unwrap();
        pair.near.end().unwrap();
        assert!(!pair.far.presents(&[1u8; NONCE_BYTES]).unwrap());
    }
}
