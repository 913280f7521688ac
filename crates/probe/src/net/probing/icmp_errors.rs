//! What routers say about packets that did not arrive, from the error queue of a socket.
use super::icmp_socket::IcmpSocket;
use crate::net::set_option;
use crate::net::udp::socket_address::from_storage;
use std::io::Error;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

const CONTROL_WORDS: usize = 64;
/// A router quotes at least the header of what it reports about.
const QUOTED_BYTES: usize = 128;

/// `sock_extended_err` of `linux/errqueue.h`; the address of who reported it follows.
#[repr(C)]
#[derive(Clone, Copy)]
struct ExtendedError {
    errno: u32,
    origin: u8,
    icmp_type: u8,
    icmp_code: u8,
    pad: u8,
    info: u32,
    data: u32,
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryFailure {
    /// Its hops were used up.
    HopsUsedUp,
    /// It is longer than the next link carries: so many bytes.
    TooLong {
        mtu_bytes: u64,
    },
    Unreachable,
}

/// A report about the request with a number; `None` where this host itself refused to send.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub sequence: Option<u16>,
    pub router: Option<IpAddr>,
    pub failure: DeliveryFailure,
}

impl IcmpSocket {
    /// Asks for reports, and lets packets leave whole or not at all, whatever was learned of the path
    /// before.
    pub fn ask_for_reports(&self) -> Result<(), Error> {
        let fd = self.as_raw_fd();
        if self.is_v6() {
            const IPV6_PMTUDISC_PROBE: libc::c_int = 3;
            let (level, discover) = (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER);
            set_option(fd, level, libc::IPV6_RECVERR, 1 as libc::c_int)?;
            return set_option(fd, level, discover, IPV6_PMTUDISC_PROBE);
        }
        let (level, discover) = (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER);
        set_option(fd, level, libc::IP_RECVERR, 1 as libc::c_int)?;
        set_option(fd, level, discover, libc::IP_PMTUDISC_PROBE)
    }

    pub fn set_hop_limit(&self, hops: u8) -> Result<(), Error> {
        let (level, option) = match self.is_v6() {
            true => (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS),
            false => (libc::IPPROTO_IP, libc::IP_TTL),
        };
        set_option(self.as_raw_fd(), level, option, libc::c_int::from(hops))
    }

    /// Returns the next report; `None` when there is none.
    pub fn next_report(&self) -> Option<Report> {
        let mut quoted = [0u8; QUOTED_BYTES];
        let mut control = [0u64; CONTROL_WORDS];
        let received = self.receive_message(&mut quoted, &mut control, libc::MSG_ERRQUEUE);
        let (bytes, message) = received.ok()?;
        let (error, router) = extended_error(&message)?;
        let is_local = error.origin == 1;
        let sequence = self.own_sequence(&quoted[..bytes.min(QUOTED_BYTES)]);
        Some(Report { sequence: sequence.filter(|_| !is_local), router, failure: failure(&error) })
    }
}

fn failure(error: &ExtendedError) -> DeliveryFailure {
    const ORIGIN_ICMP: u8 = 2;
    const ORIGIN_ICMP6: u8 = 3;
    if error.errno == libc::EMSGSIZE as u32 {
        return DeliveryFailure::TooLong { mtu_bytes: u64::from(error.info) };
    }
    match (error.origin, error.icmp_type) {
        (ORIGIN_ICMP, 11) | (ORIGIN_ICMP6, 3) => DeliveryFailure::HopsUsedUp,
        _ => DeliveryFailure::Unreachable,
    }
}

/// The error among the control messages of a received one, and who reported it.
fn extended_error(message: &libc::msghdr) -> Option<(ExtendedError, Option<IpAddr>)> {
    // SAFETY: the kernel wrote the control messages, and the macros stay inside their length; the
    // address follows the error in the same message.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = control.as_ref() {
            let kind = (header.cmsg_level, header.cmsg_type);
            if kind == (libc::IPPROTO_IP, libc::IP_RECVERR)
                || kind == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
            {
                let data = libc::CMSG_DATA(control);
                let error: ExtendedError = data.cast::<ExtendedError>().read_unaligned();
                let length: usize = header.cmsg_len as _;
                let end = (&raw const *header).cast::<u8>().add(length);
                let address = data.add(size_of::<ExtendedError>());
                let bytes = (end as usize).saturating_sub(address as usize);
                let mut storage: libc::sockaddr_storage = std::mem::zeroed();
                let room = bytes.min(size_of::<libc::sockaddr_storage>());
                std::ptr::copy_nonoverlapping(address, (&raw mut storage).cast(), room);
                return Some((error, from_storage(&storage).map(|address| address.ip())));
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_distinguished() {
        let report = |errno: i32, origin, icmp_type, info| ExtendedError {
            errno: errno as u32,
            origin,
            icmp_type,
            icmp_code: 0,
            pad: 0,
            info,
            data: 0,
        };
        let too_long = failure(&report(libc::EMSGSIZE, 2, 3, 1400));
        assert_eq!(too_long, DeliveryFailure::TooLong { mtu_bytes: 1400 });
        assert_eq!(failure(&report(libc::EHOSTUNREACH, 2, 11, 0)), DeliveryFailure::HopsUsedUp);
        assert_eq!(failure(&report(libc::EHOSTUNREACH, 3, 3, 0)), DeliveryFailure::HopsUsedUp);
        assert_eq!(failure(&report(libc::EHOSTUNREACH, 2, 3, 0)), DeliveryFailure::Unreachable);
    }
}
