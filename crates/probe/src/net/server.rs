//! The serving side of a two-sided benchmark: a listener that prints its address and accepts only the
//! peer that presents the token.
use super::connection::{is_wait, no_loopback, End};
use super::udp::batch;
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use crate::trial::{ListenConfig, Trial};
use nephoscope_linux::clock;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;

/// A connection that has not presented the token by then is hung up on.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Connections that may wait at once; beyond it the one that waits longest is hung up on, since the
/// peer presents its token as soon as it is connected.
const WAITING_MAX: usize = 64;
/// The same for one address, so that one stranger cannot take all places.
const WAITING_PER_ADDRESS_MAX: usize = 8;
const CHECK_INTERVAL_MS: libc::c_int = 100;

/// Listens where `listen_at` says, on a free port.
pub fn bind_listener(listen: &ListenConfig) -> Result<TcpListener> {
    let listener = TcpListener::bind((listen.bind, 0)).map_err(|error| {
        if listen.bind.is_loopback() {
            return no_loopback(&error);
        }
        ProbeError::new(
            FailureKind::Lacks,
            "no_such_address",
            format!("Nothing can listen on {}: {error}.", listen.bind),
            "Name an address that this machine has (ip address).",
        )
    })?;
    listener
        .set_nonblocking(true)
        .map_err(|error| ProbeError::os("Setting up a socket", &error))?;
    Ok(listener)
}

/// A listener and a socket for datagrams on the same free port, where `listen_at` says.
pub fn listen_both(listen: &ListenConfig) -> Result<(TcpListener, UdpSocket, SocketAddr)> {
    let mut why = None;
    // The port that is free for one may be taken for the other.
    for _ in 0..16 {
        let listener = bind_listener(listen)?;
        let address = local_address(&listener)?;
        match batch::socket(address) {
            Ok(socket) => return Ok((listener, socket, address)),
            Err(error) => why = Some(error),
        }
    }
    let error = why.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(ProbeError::os("A socket for datagrams", &error))
}

/// Prints where it listens and waits for the one peer that presents the token. `None` when it was
/// stopped first. Ends by the deadline or a signal.
pub fn accept_peer(trial: &mut Trial, listen: &ListenConfig) -> Result<Option<End>> {
    let listener = bind_listener(listen)?;
    trial.listens_at(local_address(&listener)?)?;
    Reception::new(trial.session, &listener, &listen.token).next_peer(None)
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr> {
    listener.local_addr().map_err(|error| ProbeError::os("getsockname", &error))
}

/// A connection that has not presented the token yet.
struct UnauthenticatedPeer {
    stream: TcpStream,
    ip: IpAddr,
    until_ns: u64,
    presented: Vec<u8>,
}

/// Reads the tokens of all connections at once: one that is silent or slow delays nobody.
pub struct Reception<'a> {
    session: Session,
    listener: &'a TcpListener,
    /// The token and a line feed.
    expected: Vec<u8>,
    waiting: Vec<UnauthenticatedPeer>,
}

impl<'a> Reception<'a> {
    pub fn new(session: Session, listener: &'a TcpListener, token: &str) -> Self {
        let expected = format!("{token}\n").into_bytes();
        Self { session, listener, expected, waiting: Vec::new() }
    }

    /// Waits for the next connection that presents the token, `from` an address if one is named;
    /// others are hung up on. `None` when it was stopped first.
    pub fn next_peer(&mut self, from: Option<IpAddr>) -> Result<Option<End>> {
        loop {
            self.session.check()?;
            if self.session.is_stopped() {
                return Ok(None);
            }
            let ready = self.wait_for_input();
            if let Some(stream) = self.read_tokens(&ready) {
                let unset = stream.set_nonblocking(false);
                unset.map_err(|error| ProbeError::os("Setting up a socket", &error))?;
                return End::of(self.session, stream).map(Some);
            }
            if ready.first() == Some(&true) {
                self.accept(from)?;
            }
        }
    }

    /// Returns whether the listener, then each waiting connection, has something to read.
    fn wait_for_input(&self) -> Vec<bool> {
        let sockets = self.waiting.iter().map(|unauthenticated| unauthenticated.stream.as_raw_fd());
        let all = std::iter::once(self.listener.as_raw_fd()).chain(sockets);
        let mut polls: Vec<_> =
            all.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
        // SAFETY: as many valid entries as are counted.
        let ready = unsafe {
            libc::poll(polls.as_mut_ptr(), polls.len() as libc::nfds_t, CHECK_INTERVAL_MS)
        };
        polls.iter().map(|poll| ready > 0 && poll.revents != 0).collect()
    }

    /// Takes one connection in; `from` another address than a named one it is hung up on.
    fn accept(&mut self, from: Option<IpAddr>) -> Result<()> {
        let (stream, address) = match self.listener.accept() {
            Ok(accepted) => accepted,
            // The connection may be gone again, too.
            Err(error) if is_wait(&error) || error.kind() == ErrorKind::ConnectionAborted => {
                return Ok(());
            }
            Err(error) => return Err(ProbeError::os("Accepting a connection", &error)),
        };
        let ip = address.ip();
        if from.is_some_and(|wanted| wanted != ip) || stream.set_nonblocking(true).is_err() {
            return Ok(());
        }
        let of_address = |unauthenticated: &UnauthenticatedPeer| unauthenticated.ip == ip;
        if self.waiting.iter().filter(|peer| of_address(peer)).count() >= WAITING_PER_ADDRESS_MAX {
            self.waiting.iter().position(of_address).map(|first| self.waiting.remove(first));
        } else if self.waiting.len() >= WAITING_MAX {
            self.waiting.remove(0);
        }
        let until_ns = clock::monotonic_ns() + PATIENCE_NS;
        self.waiting.push(UnauthenticatedPeer { stream, ip, until_ns, presented: Vec::new() });
        Ok(())
    }

    /// Reads what the connections that are `ready` present, and returns the first that presented
    /// the token. Hangs up on those that presented something else or whose time is over.
    fn read_tokens(&mut self, ready: &[bool]) -> Option<TcpStream> {
        let now_ns = clock::monotonic_ns();
        let mut at = 0;
        // The listener is the first of `ready`.
        for is_ready in ready.iter().skip(1) {
            let unauthenticated = &mut self.waiting[at];
            let ended = *is_ready && !unauthenticated.read(self.expected.len());
            if unauthenticated.presented.len() == self.expected.len() {
                let unauthenticated = self.waiting.remove(at);
                if is_equal(&unauthenticated.presented, &self.expected) {
                    return Some(unauthenticated.stream);
                }
            } else if ended || now_ns > unauthenticated.until_ns {
                self.waiting.remove(at);
            } else {
                at += 1;
            }
        }
        None
    }
}

impl UnauthenticatedPeer {
    /// Reads what is there up to `wanted` bytes in all; false when nothing more comes.
    fn read(&mut self, wanted: usize) -> bool {
        let mut buffer = vec![0u8; wanted - self.presented.len()];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(bytes) => {
                self.presented.extend_from_slice(&buffer[..bytes]);
                true
            }
            Err(error) => is_wait(&error),
        }
    }
}

/// All bytes are looked at, so that the time does not reveal where they differ.
pub fn is_equal(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}
