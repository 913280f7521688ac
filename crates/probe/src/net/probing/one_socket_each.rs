//! Probes with a socket each: TCP connections, and datagrams whose answers carry no number.
use super::icmp_socket::unreachable;
use super::Prober;
use crate::error::{FailureKind, ProbeError, Result};
use crate::net::round_trips::Arrival;
use crate::net::set_option;
use crate::net::udp::socket_address::to_storage;
use nephoscope_linux::clock;
use std::collections::BTreeMap;
use std::io::Error;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Probes under way at once; beyond it the oldest is given up, since each takes a descriptor.
const OPEN_MAX: usize = 900;
const EVENTS: usize = 64;

/// What a probe does, and what answers it.
#[derive(Clone, Debug)]
pub enum ProbeExchange {
    /// A TCP connection that is established, and reset at once.
    Connect,
    /// A datagram, answered by any datagram that begins with `answer`.
    Datagram { question: Vec<u8>, answer: Vec<u8> },
}

pub struct OneSocketEach {
    to: SocketAddr,
    exchange: ProbeExchange,
    epoll: OwnedFd,
    open: BTreeMap<u64, OwnedFd>,
    /// Probes that the far side refused.
    pub refused: u64,
    answered: u64,
}

impl OneSocketEach {
    pub fn new(to: SocketAddr, exchange: ProbeExchange) -> Result<Self> {
        // SAFETY: a plain system call that returns a new descriptor or -1.
        let epoll = match unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) } {
            -1 => return Err(ProbeError::os("epoll_create1", &Error::last_os_error())),
            // SAFETY: nobody else has the new descriptor.
            fd => unsafe { OwnedFd::from_raw_fd(fd) },
        };
        Ok(Self { to, exchange, epoll, open: BTreeMap::new(), refused: 0, answered: 0 })
    }

    /// A new socket that waits for no call and leaves nothing behind when it is closed.
    fn socket(&self) -> Result<OwnedFd, Error> {
        let family = if self.to.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
        let is_tcp = matches!(self.exchange, ProbeExchange::Connect);
        let kind = if is_tcp { libc::SOCK_STREAM } else { libc::SOCK_DGRAM };
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a plain system call that returns a new descriptor or -1.
        let fd = match unsafe { libc::socket(family, kind | flags, 0) } {
            -1 => return Err(Error::last_os_error()),
            // SAFETY: nobody else has the new descriptor.
            fd => unsafe { OwnedFd::from_raw_fd(fd) },
        };
        if is_tcp {
            // A thousand connections a second would use up the ports with what waits for its end.
            let reset = libc::linger { l_onoff: 1, l_linger: 0 };
            set_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, reset)?;
        }
        let (storage, length) = to_storage(self.to);
        // SAFETY: an address of the stated length.
        let rc = unsafe { libc::connect(fd.as_raw_fd(), (&raw const storage).cast(), length) };
        let error = Error::last_os_error();
        if rc == 0 || error.raw_os_error() == Some(libc::EINPROGRESS) {
            return Ok(fd);
        }
        Err(error)
    }

    fn watch(&self, fd: &OwnedFd, sequence: u64) -> Result<(), Error> {
        let ready = match self.exchange {
            ProbeExchange::Connect => libc::EPOLLOUT,
            ProbeExchange::Datagram { .. } => libc::EPOLLIN,
        };
        let mut event = libc::epoll_event { events: ready as u32, u64: sequence };
        let (epoll, fd) = (self.epoll.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: two descriptors that are open, and an event that outlives the call.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Ends a probe that is ready; whether it was answered.
    fn finish(&mut self, sequence: u64) -> Result<bool> {
        let Some(fd) = self.open.remove(&sequence) else { return Ok(false) };
        let is_answered = match &self.exchange {
            ProbeExchange::Connect => take_error(&fd).is_none(),
            ProbeExchange::Datagram { answer, .. } => {
                receive_datagram(&fd).is_some_and(|datagram| datagram.starts_with(answer))
            }
        };
        if is_answered {
            self.answered += 1;
            return Ok(true);
        }
        self.refused += 1;
        if self.answered == 0 {
            return Err(self.closed());
        }
        Ok(false)
    }

    fn closed(&self) -> ProbeError {
        ProbeError::new(
            FailureKind::Failed,
            "closed_port",
            format!("Port {} of {} is closed: it refused the probe.", self.to.port(), self.to.ip()),
            "Start the server there, or set the port on which it listens.",
        )
    }
}

impl Prober for OneSocketEach {
    fn send(&mut self, sequence: u64) -> Result<bool> {
        while self.open.len() >= OPEN_MAX {
            self.open.pop_first();
        }
        let sent = self.socket().and_then(|fd| {
            self.watch(&fd, sequence)?;
            if let ProbeExchange::Datagram { question, .. } = &self.exchange {
                send_datagram(&fd, question)?;
            }
            Ok(fd)
        });
        match sent {
            Ok(fd) => {
                self.open.insert(sequence, fd);
                Ok(true)
            }
            // A refusal may be there before the call returns.
            Err(error) if error.raw_os_error() == Some(libc::ECONNREFUSED) => Err(self.closed()),
            Err(error) => Err(unreachable(self.to.ip(), &error)),
        }
    }

    fn receive(&mut self, until_ns: u64, answers: &mut Vec<(u64, Arrival)>) -> Result<()> {
        if !super::wait_readable(self.epoll.as_raw_fd(), until_ns) {
            return Ok(());
        }
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        // SAFETY: room for as many events as are asked for; it does not wait.
        let got = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), EVENTS as i32, 0)
        };
        let now_ns = clock::monotonic_ns();
        for event in &events[..usize::try_from(got).unwrap_or(0)] {
            let sequence = event.u64;
            if self.finish(sequence)? {
                answers.push((sequence, Arrival { now_ns, kernel_wall_ns: None }));
            }
        }
        Ok(())
    }
}

/// The error that a socket met, if it met one.
fn take_error(fd: &OwnedFd) -> Option<Error> {
    let mut bytes = [0u8; 4];
    crate::net::read_option(fd.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR, &mut bytes)?;
    Some(i32::from_ne_bytes(bytes)).filter(|code| *code != 0).map(Error::from_raw_os_error)
}

fn send_datagram(fd: &OwnedFd, datagram: &[u8]) -> Result<(), Error> {
    // SAFETY: the datagram is readable for its length.
    let sent = unsafe { libc::send(fd.as_raw_fd(), datagram.as_ptr().cast(), datagram.len(), 0) };
    if sent < 0 {
        return Err(Error::last_os_error());
    }
    Ok(())
}

fn receive_datagram(fd: &OwnedFd) -> Option<Vec<u8>> {
    let mut buffer = vec![0u8; 2048];
    // SAFETY: the buffer is writable for its length.
    let got = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    buffer.truncate(usize::try_from(got).ok()?);
    Some(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, UdpSocket};

    fn local(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    #[test]
    fn a_connection_is_an_answer_and_a_closed_port_a_sentence() {
        let listener = TcpListener::bind(local(0)).unwrap();
        let address = listener.local_addr().unwrap();
        let mut prober = OneSocketEach::new(address, ProbeExchange::Connect).unwrap();
        let mut answers = Vec::new();
        assert!(prober.send(7).unwrap());
        while answers.is_empty() {
            prober.receive(clock::monotonic_ns() + 1_000_000, &mut answers).unwrap();
        }
        assert_eq!(answers[0].0, 7);
        drop(listener);
        let mut closed = OneSocketEach::new(address, ProbeExchange::Connect).unwrap();
        let refused = loop {
            let sent = closed.send(0).map(|_| ());
            let received =
                sent.and_then(|()| closed.receive(clock::monotonic_ns() + 1_000_000, &mut answers));
            if let Err(error) = received {
                break error;
            }
        };
        assert_eq!(refused.name, "closed_port");
    }

    #[test]
    fn a_datagram_is_answered_by_one_that_begins_as_it_should() {
        let far = UdpSocket::bind(local(0)).unwrap();
        let exchange =
            ProbeExchange::Datagram { question: b"ask".to_vec(), answer: b"yes".to_vec() };
        let mut prober = OneSocketEach::new(far.local_addr().unwrap(), exchange).unwrap();
        let mut answers = Vec::new();
        let mut buffer = [0u8; 10];
        for (sequence, reply) in [(0, b"yes!"), (1, b"nope")] {
            assert!(prober.send(sequence).unwrap());
            let (bytes, from) = far.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..bytes], b"ask");
            far.send_to(reply, from).unwrap();
            while prober.open.contains_key(&sequence) {
                prober.receive(clock::monotonic_ns() + 1_000_000, &mut answers).unwrap();
            }
        }
        assert_eq!((answers.len(), answers[0].0, prober.refused), (1, 0, 1));
    }
}
