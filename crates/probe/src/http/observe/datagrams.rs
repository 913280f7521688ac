//! Probes by datagrams: an ICMP echo request, a DNS query.
use super::failure::{addresses, Deadline, ProbeFailure};
use crate::error::{ProbeError, Result};
use crate::net::probing::icmp_socket::{IcmpSocket, HEADER_BYTES};
use crate::net::random_bytes;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

const TOKEN_BYTES: usize = 16;
const ANSWER_BYTES: usize = 4096;
const DNS_HEADER_BYTES: usize = 12;

pub struct DatagramProbe {
    host: String,
    /// Port of a DNS server and the query without its number; an echo request without them.
    query: Option<(u16, Vec<u8>)>,
}

impl DatagramProbe {
    pub fn icmp(host: String) -> Result<Self> {
        match IcmpSocket::open(Ipv4Addr::LOCALHOST.into()) {
            // What is not permitted toward one address is to none.
            Err(error) if error.name == "icmp_not_permitted" => Err(error),
            _ => Ok(Self { host, query: None }),
        }
    }

    /// name: in ASCII.
    pub fn dns(host: String, port: u16, name: &str) -> Result<Self> {
        // Recursion desired, one question.
        let mut query = vec![1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.trim_end_matches('.').split('.') {
            let length = u8::try_from(label.len()).unwrap_or(u8::MAX);
            if !(1..=63).contains(&length) || name.len() > 253 {
                return Err(ProbeError::usage(
                    format!("'{name}' is no name of the DNS."),
                    "Its parts have 1 to 63 characters, and all of it at most 253.",
                ));
            }
            query.push(length);
            query.extend_from_slice(label.as_bytes());
        }
        // The root; an address (record A); the Internet.
        query.extend_from_slice(&[0, 0, 1, 0, 1]);
        Ok(Self { host, query: Some((port, query)) })
    }

    pub fn run(&self, deadline: Deadline) -> Result<(), ProbeFailure> {
        let port = self.query.as_ref().map_or(0, |(port, _)| *port);
        let to = addresses(&self.host, port, deadline)?[0];
        match &self.query {
            None => echo(to.ip(), deadline),
            Some((_, query)) => resolve(to, query, deadline),
        }
    }
}

fn echo(to: IpAddr, deadline: Deadline) -> Result<(), ProbeFailure> {
    let failed = |error: Error| ProbeFailure::of(&error, deadline);
    let socket = IcmpSocket::open(to).map_err(|error| match error.name {
        "unreachable" => ProbeFailure::NoAnswer(error.message),
        _ => ProbeFailure::Observer(error),
    })?;
    let token: [u8; TOKEN_BYTES] = random_bytes().map_err(ProbeFailure::Observer)?;
    let mut packet = [0; HEADER_BYTES + TOKEN_BYTES];
    packet[HEADER_BYTES..].copy_from_slice(&token);
    socket.write_header(&mut packet, 1);
    socket.send(&packet).map_err(failed)?;
    let mut buffer = [0; ANSWER_BYTES];
    loop {
        wait_readable(&socket, deadline.left()?).map_err(failed)?;
        if let Some(reply) = socket.receive(&mut buffer).map_err(failed)? {
            if buffer[..reply.bytes] == token {
                return Ok(());
            }
        }
    }
}

/// Waits until there is something to read, or the time is over.
pub fn wait_readable(file: &impl AsRawFd, left: Duration) -> Result<(), Error> {
    let mut entry = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // Rounded up: a wait of 0 ms would spin.
    let left_ms = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
    // SAFETY: one entry of our own.
    if unsafe { libc::poll(&raw mut entry, 1, left_ms) } < 0 {
        let error = Error::last_os_error();
        if error.kind() != ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(())
}

fn resolve(to: SocketAddr, query: &[u8], deadline: Deadline) -> Result<(), ProbeFailure> {
    let failed = |error: Error| ProbeFailure::of(&error, deadline);
    let any: IpAddr =
        if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).map_err(failed)?;
    socket.connect(to).map_err(failed)?;
    let number: [u8; 2] = random_bytes().map_err(ProbeFailure::Observer)?;
    socket.send(&[&number, query].concat()).map_err(failed)?;
    let mut answer = [0; ANSWER_BYTES];
    loop {
        socket.set_read_timeout(Some(deadline.left()?)).map_err(failed)?;
        let bytes = match socket.recv(&mut answer) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(error)),
        };
        if bytes >= DNS_HEADER_BYTES && answer[..2] == number {
            break;
        }
    }
    let code = answer[3] & 15;
    if code != 0 {
        return Err(ProbeFailure::Answer(format!("DNS response code {code}")));
    }
    if answer[6..8] == [0, 0] {
        return Err(ProbeFailure::Answer("the DNS answer is empty".to_owned()));
    }
    Ok(())
}
