//! A socket for ICMP echo: the kernel's ping socket where it is allowed, else a raw one.
use crate::error::{FailureKind, ProbeError, Result};
use crate::net::udp::batch::{ask_for_kernel_times, wall_ns_of};
use crate::net::udp::socket_address::to_storage;
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Bytes of the header of an echo request.
pub const HEADER_BYTES: usize = 8;
const CONTROL_WORDS: usize = 32;

pub struct IcmpSocket {
    fd: OwnedFd,
    is_raw: bool,
    is_v6: bool,
    /// Tells our raw probes from those of other programs; the kernel sets its own on a ping socket.
    identifier: u16,
}

/// An echo reply.
pub struct EchoReply {
    pub sequence: u16,
    /// Payload, at the beginning of the buffer.
    pub bytes: usize,
    pub kernel_wall_ns: Option<u64>,
}

impl IcmpSocket {
    /// A connected socket toward `to`.
    pub fn open(to: IpAddr) -> Result<Self> {
        let is_v6 = to.is_ipv6();
        let (family, protocol) = match to {
            IpAddr::V4(_) => (libc::AF_INET, libc::IPPROTO_ICMP),
            IpAddr::V6(_) => (libc::AF_INET6, libc::IPPROTO_ICMPV6),
        };
        let create = |kind: libc::c_int| {
            // SAFETY: a plain system call that returns a new descriptor or -1.
            match unsafe { libc::socket(family, kind | libc::SOCK_CLOEXEC, protocol) } {
                -1 => Err(Error::last_os_error()),
                // SAFETY: nobody else has the new descriptor.
                fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
            }
        };
        let (fd, is_raw) = match create(libc::SOCK_DGRAM) {
            Ok(fd) => (fd, false),
            Err(_) => (create(libc::SOCK_RAW).map_err(|error| not_permitted(&error))?, true),
        };
        let identifier = u16::from_ne_bytes(crate::net::random_bytes()?);
        let socket = Self { fd, is_raw, is_v6, identifier };
        socket.connect(to)?;
        // Where the kernel has no times of arrival, those of the program are the only ones.
        let _ = ask_for_kernel_times(&socket);
        Ok(socket)
    }

    pub fn is_v6(&self) -> bool {
        self.is_v6
    }

    fn connect(&self, to: IpAddr) -> Result<()> {
        let (storage, length) = to_storage(SocketAddr::new(to, 0));
        let address = (&raw const storage).cast();
        // SAFETY: an address of the stated length.
        match unsafe { libc::connect(self.as_raw_fd(), address, length) } {
            0 => Ok(()),
            _ => Err(unreachable(to, &Error::last_os_error())),
        }
    }

    /// Writes the header of an echo request with the number `sequence`; its payload is the rest of
    /// `packet` behind it.
    pub fn write_header(&self, packet: &mut [u8], sequence: u16) {
        const ECHO_V4: u8 = 8;
        const ECHO_V6: u8 = 128;
        packet[..HEADER_BYTES].fill(0);
        packet[0] = if self.is_v6 { ECHO_V6 } else { ECHO_V4 };
        packet[4..6].copy_from_slice(&self.identifier.to_be_bytes());
        packet[6..8].copy_from_slice(&sequence.to_be_bytes());
        // The kernel computes that of version 6, which covers addresses.
        if !self.is_v6 {
            let sum = checksum(packet);
            packet[2..4].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// Sends an echo request.
    pub fn send(&self, packet: &[u8]) -> Result<(), Error> {
        // SAFETY: the packet is readable for its length.
        let sent = unsafe { libc::send(self.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0) };
        if sent < 0 {
            return Err(Error::last_os_error());
        }
        Ok(())
    }

    /// Receives an echo reply into `buffer`, payload first, without waiting; `None` when nothing is
    /// there. What is no reply to this socket is skipped.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<EchoReply>, Error> {
        loop {
            let mut control = [0u64; CONTROL_WORDS];
            let (bytes, message) = match self.receive_message(buffer, &mut control, 0) {
                Ok(received) => received,
                Err(error) => {
                    return match error.kind() {
                        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                        _ => Err(error),
                    }
                }
            };
            let start = if self.is_raw && !self.is_v6 { ip_header_bytes(buffer) } else { 0 };
            let packet = buffer.get(start..bytes).unwrap_or_default();
            if let Some(sequence) = self.reply_to(packet) {
                let payload = start + HEADER_BYTES;
                buffer.copy_within(payload..bytes, 0);
                let kernel_wall_ns = wall_ns_of(&message);
                return Ok(Some(EchoReply { sequence, bytes: bytes - payload, kernel_wall_ns }));
            }
        }
    }

    /// Receives what is there into `buffer`, and what the kernel adds to it into `control`. Returns the
    /// number of bytes, and the message for its control messages, which are valid as long as `control`.
    pub(super) fn receive_message(
        &self,
        buffer: &mut [u8],
        control: &mut [u64],
        flags: libc::c_int,
    ) -> Result<(usize, libc::msghdr), Error> {
        let mut vector =
            libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: a plain C struct, for which all zero is valid; its pointers outlive the call.
        let (bytes, message) = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = &raw mut vector;
            message.msg_iovlen = 1;
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = size_of_val(control) as _;
            let flags = flags | libc::MSG_DONTWAIT;
            (libc::recvmsg(self.as_raw_fd(), &raw mut message, flags), message)
        };
        let bytes = usize::try_from(bytes).map_err(|_| Error::last_os_error())?;
        Ok((bytes, message))
    }

    /// The number of the request that a packet answers.
    fn reply_to(&self, packet: &[u8]) -> Option<u16> {
        const REPLY_V4: u8 = 0;
        const REPLY_V6: u8 = 129;
        let reply = if self.is_v6 { REPLY_V6 } else { REPLY_V4 };
        self.own_sequence(packet).filter(|_| packet[0] == reply)
    }

    /// The number in the header of an echo request of this socket, or of what it answers. A raw socket
    /// receives those of other programs, too.
    pub(super) fn own_sequence(&self, packet: &[u8]) -> Option<u16> {
        let header = packet.first_chunk::<HEADER_BYTES>()?;
        let is_own = !self.is_raw || header[4..6] == self.identifier.to_be_bytes();
        is_own.then(|| u16::from_be_bytes([header[6], header[7]]))
    }
}

impl AsRawFd for IcmpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

fn ip_header_bytes(packet: &[u8]) -> usize {
    packet.first().map_or(0, |byte| usize::from(byte & 15) * 4)
}

/// RFC 1071, over a packet whose own checksum is zero.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|two| {
        u32::from(u16::from_be_bytes([two[0], two.get(1).copied().unwrap_or_default()]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

fn not_permitted(error: &Error) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "icmp_not_permitted",
        format!("This user may not send ICMP echo requests: {error}."),
        "Run it as root, or permit it: sysctl net.ipv4.ping_group_range='0 2147483647'.",
    )
}

/// The sentence for a host to which no packet can leave.
pub fn unreachable(to: IpAddr, error: &Error) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "unreachable",
        format!("No packet can be sent to {to}: {error}."),
        "See whether this host has a route there (ip route get).",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_makes_the_sum_all_ones() {
        // An echo request with identifier 0x1234, number 1, payload "abc".
        let packet = [8, 0, 0, 0, 0x12, 0x34, 0, 1, b'a', b'b', b'c'];
        let sum = checksum(&packet);
        let mut whole = packet;
        whole[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&whole), 0);
        assert_eq!(checksum(&[0xFF; 4]), 0);
    }

    #[test]
    fn packets_of_other_programs_are_told_apart_on_a_raw_socket() {
        let fd = || std::fs::File::open("/dev/null").unwrap().into();
        let raw = IcmpSocket { fd: fd(), is_raw: true, is_v6: false, identifier: 0x1234 };
        let ping = IcmpSocket { fd: fd(), is_raw: false, ..raw };
        let (own, strange) = ([0, 0, 0, 0, 0x12, 0x34, 1, 2], [0, 0, 0, 0, 0x12, 0x35, 1, 2]);
        assert_eq!((raw.reply_to(&own), raw.reply_to(&strange)), (Some(0x0102), None));
        assert_eq!((raw.own_sequence(&strange), raw.own_sequence(&own[..7])), (None, None));
        // The kernel sets its own identifier, and hands over nothing of others.
        assert_eq!(ping.own_sequence(&strange), Some(0x0102));
        assert_eq!(raw.reply_to(&[8, 0, 0, 0, 0x12, 0x34, 1, 2]), None);
    }

    #[test]
    fn a_header_of_ip_tells_its_length() {
        assert_eq!(ip_header_bytes(&[0x45, 0]), 20);
        assert_eq!(ip_header_bytes(&[0x4F]), 60);
        assert_eq!(ip_header_bytes(&[]), 0);
    }
}
