//! Ethernet frames through a packet socket: requests for an address (ARP), and what passes by.
use super::set_option;
use crate::error::{FailureKind, ProbeError, Result};
use nephoscope_linux::clock;
use std::ffi::CStr;
use std::io::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

type Station = [u8; 6];

const BROADCAST: Station = [0xFF; 6];
const ARP: u16 = 0x0806;
const VLAN: u16 = 0x8100;
const REPLY: u16 = 2;
/// Of an ARP packet for IPv4 over Ethernet.
const ARP_BYTES: usize = 28;
const HEADER_BYTES: usize = 14;
const FRAME_BYTES: usize = 2048;

/// A network interface, by the address that it has.
#[derive(Clone, Debug)]
pub struct Interface {
    index: u32,
    station: Station,
}

impl Interface {
    /// The Ethernet interface with this address; `None` where it is of another kind, as loopback is.
    pub fn with(address: Ipv4Addr) -> Result<Option<Self>> {
        let name = name_of(address)?;
        let folder = format!("/sys/class/net/{name}");
        let read =
            |file: &str| std::fs::read_to_string(format!("{folder}/{file}")).unwrap_or_default();
        const ETHERNET: &str = "1";
        if read("type").trim() != ETHERNET {
            return Ok(None);
        }
        let station = station_in(read("address").trim());
        let index = read("ifindex").trim().parse().ok();
        Ok(station.zip(index).map(|(station, index)| Self { index, station }))
    }
}

/// Reads "02:00:00:00:00:01".
fn station_in(text: &str) -> Option<Station> {
    let bytes: Option<Vec<u8>> =
        text.split(':').map(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    bytes?.try_into().ok()
}

/// The name of the interface that has an address.
fn name_of(address: Ipv4Addr) -> Result<String> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: it writes one pointer, to a list that is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(ProbeError::os("getifaddrs", &Error::last_os_error()));
    }
    let (mut entry, mut name) = (first, None);
    // SAFETY: entries of a list that the kernel's answer fills, until its end; an address is read as
    // the kind that its family states.
    unsafe {
        while let Some(interface) = entry.as_ref() {
            if let Some(family) = interface.ifa_addr.as_ref() {
                let is_v4 = i32::from(family.sa_family) == libc::AF_INET;
                let own = interface.ifa_addr.cast::<libc::sockaddr_in>();
                if is_v4 && Ipv4Addr::from(u32::from_be((*own).sin_addr.s_addr)) == address {
                    name = Some(CStr::from_ptr(interface.ifa_name).to_string_lossy().into_owned());
                }
            }
            entry = interface.ifa_next;
        }
        libc::freeifaddrs(first);
    }
    name.ok_or_else(|| {
        ProbeError::new(
            FailureKind::Failed,
            "no_interface",
            format!("No interface of this machine has the address {address}."),
            "See whether the interface went down during the measurement (ip address).",
        )
    })
}

/// Frames that passed by and were addressed to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ForeignFrames {
    /// To one station that is not this one.
    pub unicast: u64,
    /// To all stations, or to a group, from another station.
    pub broadcast: u64,
}

/// A socket that sends and receives whole frames of one interface.
pub struct FrameSocket {
    fd: OwnedFd,
    interface: Interface,
}

impl FrameSocket {
    pub fn open(interface: Interface) -> Result<Self> {
        let all = (libc::ETH_P_ALL as u16).to_be();
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: a plain system call that returns a new descriptor or -1.
        let fd = match unsafe { libc::socket(libc::AF_PACKET, kind, i32::from(all)) } {
            -1 => return Err(not_permitted(&Error::last_os_error())),
            // SAFETY: nobody else has the new descriptor.
            fd => unsafe { OwnedFd::from_raw_fd(fd) },
        };
        // SAFETY: a plain C struct, for which all zero is valid.
        let mut own: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        own.sll_family = libc::AF_PACKET as u16;
        own.sll_protocol = all;
        own.sll_ifindex = interface.index as i32;
        let length = size_of_val(&own) as libc::socklen_t;
        // SAFETY: an address of the stated length.
        if unsafe { libc::bind(fd.as_raw_fd(), (&raw const own).cast(), length) } != 0 {
            return Err(ProbeError::os("bind", &Error::last_os_error()));
        }
        Ok(Self { fd, interface })
    }

    /// Has the interface pass on frames to other stations, until the socket is closed.
    pub fn receive_all(&self) -> Result<()> {
        // SAFETY: a plain C struct, for which all zero is valid.
        let mut membership: libc::packet_mreq = unsafe { std::mem::zeroed() };
        membership.mr_ifindex = self.interface.index as i32;
        membership.mr_type = libc::PACKET_MR_PROMISC as u16;
        let (level, option) = (libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP);
        set_option(self.fd.as_raw_fd(), level, option, membership)
            .map_err(|error| ProbeError::os("PACKET_ADD_MEMBERSHIP", &error))
    }

    /// Forgets what came before now; on a busy interface, as much as its queue holds.
    pub fn discard_received(&self) {
        const QUEUE_FRAMES: usize = 10_000;
        let mut buffer = [0u8; FRAME_BYTES];
        for _ in 0..QUEUE_FRAMES {
            if self.receive(&mut buffer).is_none() {
                break;
            }
        }
    }

    /// Counts the frames of other stations that come until a time.
    pub fn count_foreign(&self, until_ns: u64, counts: &mut ForeignFrames) {
        let mut buffer = [0u8; FRAME_BYTES];
        while super::probing::wait_readable(self.fd.as_raw_fd(), until_ns) {
            match self.receive(&mut buffer) {
                Some((_, libc::PACKET_OTHERHOST)) => counts.unicast += 1,
                Some((_, libc::PACKET_BROADCAST | libc::PACKET_MULTICAST)) => counts.broadcast += 1,
                _ => {}
            }
            if clock::monotonic_ns() >= until_ns {
                break;
            }
        }
    }

    /// Asks for the station of an address and returns whether an answer came in time. sender: the
    /// address that the request names as its own. vlan: the VLAN by whose tag the frame leaves.
    pub fn resolve(
        &self,
        address: Ipv4Addr,
        sender: Ipv4Addr,
        vlan: Option<u16>,
        wait_ns: u64,
    ) -> Result<bool> {
        let mut buffer = [0u8; FRAME_BYTES];
        // What came before is no answer.
        self.discard_received();
        let frame = request_frame(self.interface.station, address, sender, vlan);
        // SAFETY: the frame is readable for its length.
        let sent =
            unsafe { libc::send(self.fd.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if sent < 0 {
            return Err(ProbeError::os("A frame", &Error::last_os_error()));
        }
        let until_ns = clock::monotonic_ns() + wait_ns;
        while super::probing::wait_readable(self.fd.as_raw_fd(), until_ns) {
            if let Some((bytes, libc::PACKET_HOST)) = self.receive(&mut buffer) {
                if is_reply(&buffer[..bytes], address, sender) {
                    return Ok(true);
                }
            }
            if clock::monotonic_ns() >= until_ns {
                break;
            }
        }
        Ok(false)
    }

    /// The length of the next frame, and how the kernel classes it (`PACKET_HOST` and others).
    fn receive(&self, buffer: &mut [u8]) -> Option<(usize, u8)> {
        // SAFETY: a plain C struct, for which all zero is valid.
        let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut length = size_of_val(&from) as libc::socklen_t;
        // SAFETY: the buffer and the address are writable for their lengths.
        let bytes = unsafe {
            libc::recvfrom(
                self.fd.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
                (&raw mut from).cast(),
                &raw mut length,
            )
        };
        usize::try_from(bytes).ok().map(|bytes| (bytes, from.sll_pkttype))
    }
}

fn not_permitted(error: &Error) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "packet_socket_not_permitted",
        format!("This user may not send and receive Ethernet frames: {error}."),
        "Run it as root, or with the capability CAP_NET_RAW.",
    )
}

fn request_frame(
    station: Station,
    address: Ipv4Addr,
    sender: Ipv4Addr,
    vlan: Option<u16>,
) -> Vec<u8> {
    let mut frame = [BROADCAST, station].concat();
    if let Some(vlan) = vlan {
        frame.extend(VLAN.to_be_bytes());
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend(ARP.to_be_bytes());
    // Ethernet, IPv4, lengths of both addresses, request.
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(station);
    frame.extend(sender.octets());
    frame.extend([0; 6]);
    frame.extend(address.octets());
    frame
}

/// Whether a frame, with a VLAN's tag or without, answers the request of `sender` for `address`.
fn is_reply(frame: &[u8], address: Ipv4Addr, sender: Ipv4Addr) -> bool {
    let is_tagged = frame.get(12..14) == Some(&VLAN.to_be_bytes());
    let start = if is_tagged { HEADER_BYTES + 4 } else { HEADER_BYTES };
    let Some(packet) = frame.get(start..start + ARP_BYTES) else { return false };
    frame[start - 2..start] == ARP.to_be_bytes()
        && packet[6..8] == REPLY.to_be_bytes()
        && packet[14..18] == address.octets()
        && packet[24..28] == sender.octets()
}

/// The address of this machine from which packets to `to` leave; `None` where no route leads there.
pub fn local_address(to: IpAddr) -> Option<IpAddr> {
    let any = if to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
    let socket = std::net::UdpSocket::bind(any).ok()?;
    // A datagram socket sends nothing when it connects; any port will do.
    socket.connect((to, 9)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Station = [2, 0, 0, 0, 0, 1];
    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
    const SENDER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    fn reply(vlan: Option<u16>) -> Vec<u8> {
        let mut frame = request_frame(OWN, SENDER, HOST, vlan);
        let operation = frame.len() - ARP_BYTES + 7;
        frame[operation] = 2;
        frame
    }

    #[test]
    fn only_the_reply_to_a_request_is_one() {
        assert!(is_reply(&reply(None), HOST, SENDER));
        assert!(is_reply(&reply(Some(7)), HOST, SENDER));
        assert!(!is_reply(&reply(None), HOST, Ipv4Addr::new(192, 0, 2, 9)));
        assert!(!is_reply(&reply(None), SENDER, SENDER));
        assert!(!is_reply(&request_frame(OWN, HOST, SENDER, None), HOST, SENDER));
        assert!(!is_reply(&reply(None)[..30], HOST, SENDER));
        assert!(!is_reply(&[], HOST, SENDER));
    }

    #[test]
    fn a_station_is_six_bytes() {
        assert_eq!(station_in("02:00:00:00:00:01"), Some(OWN));
        assert_eq!(station_in("02:00:00:00:00"), None);
        assert_eq!(station_in(""), None);
    }

    #[test]
    fn loopback_is_no_ethernet() {
        assert!(Interface::with(Ipv4Addr::LOCALHOST).unwrap().is_none());
        assert_eq!(Interface::with(HOST).unwrap_err().name, "no_interface");
        assert_eq!(local_address(Ipv4Addr::LOCALHOST.into()), Some(Ipv4Addr::LOCALHOST.into()));
    }
}
