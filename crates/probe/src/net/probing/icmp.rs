//! ICMP echo requests as probes.
use super::icmp_socket::{unreachable, IcmpSocket, HEADER_BYTES};
use super::{wait_readable, Prober};
use crate::error::Result;
use crate::net::round_trips::Arrival;
use nephoscope_linux::clock;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

/// Longest packet that comes back: what was sent, and the header of IP.
const RECEIVED_BYTES: usize = 66_000;
/// Of the payload: a number that other programs do not know, and that of the probe.
const MARK_BYTES: usize = 8;
const PAYLOAD_BYTES: usize = MARK_BYTES + 8;

pub struct IcmpProber {
    socket: IcmpSocket,
    to: IpAddr,
    mark: [u8; MARK_BYTES],
    packet: Vec<u8>,
    buffer: Vec<u8>,
    /// A probe has left since the last look for answers.
    has_sent: bool,
}

impl IcmpProber {
    /// Probes of `payload_bytes` to `to`.
    pub fn open(to: IpAddr, payload_bytes: usize) -> Result<Self> {
        Ok(Self {
            socket: IcmpSocket::open(to)?,
            to,
            mark: crate::net::random_bytes()?,
            packet: vec![0; HEADER_BYTES + payload_bytes.max(PAYLOAD_BYTES)],
            buffer: vec![0; RECEIVED_BYTES],
            has_sent: false,
        })
    }
}

impl Prober for IcmpProber {
    fn prepare(&mut self, sequence: u64) {
        let payload = &mut self.packet[HEADER_BYTES..];
        payload[..MARK_BYTES].copy_from_slice(&self.mark);
        payload[MARK_BYTES..PAYLOAD_BYTES].copy_from_slice(&sequence.to_be_bytes());
        self.socket.write_header(&mut self.packet, sequence as u16);
    }

    fn send(&mut self, _sequence: u64) -> Result<bool> {
        match self.socket.send(&self.packet) {
            Ok(()) => {
                self.has_sent = true;
                Ok(true)
            }
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(false),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(unreachable(self.to, &error)),
        }
    }

    fn receive(&mut self, until_ns: u64, answers: &mut Vec<(u64, Arrival)>) -> Result<()> {
        // A near host answers while the probe is sent: its answer is there without a wait. Without an
        // answer the wait ends when the next probe is due, and there is nothing to receive.
        let is_there = std::mem::take(&mut self.has_sent);
        if !is_there && !wait_readable(self.socket.as_raw_fd(), until_ns) {
            return Ok(());
        }
        // A router's word on an earlier probe is an error here: that probe is lost, no more.
        let Ok(Some(reply)) = self.socket.receive(&mut self.buffer) else { return Ok(()) };
        let now_ns = clock::monotonic_ns();
        let payload = self.buffer[..reply.bytes].split_first_chunk::<MARK_BYTES>();
        let Some((mark, rest)) = payload else { return Ok(()) };
        if let Some(sequence) = rest.first_chunk().filter(|_| *mark == self.mark) {
            let arrival = Arrival { now_ns, kernel_wall_ns: reply.kernel_wall_ns };
            answers.push((u64::from_be_bytes(*sequence), arrival));
        }
        Ok(())
    }
}
