//! Many datagrams by one system call.
//!
//! The calls are made directly: musl's `sendmmsg` sends one at a time.
use crate::error::ProbeError;
use crate::net::{read_option, set_option};
use crate::session::Session;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams of one call.
pub const SLOTS: usize = 64;

/// Room for datagrams and their addresses.
pub struct Batch {
    session: Session,
    slot_bytes: usize,
    data: Vec<u8>,
    addresses: Vec<libc::sockaddr_storage>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
}

// SAFETY: the pointers inside lead into the batch's own vectors, whose contents stay where they are.
unsafe impl Send for Batch {}

impl Batch {
    /// Room for [`SLOTS`] datagrams of at most `slot_bytes`.
    pub fn new(session: Session, slot_bytes: usize) -> Self {
        // SAFETY: plain C structs, for which all zero is valid.
        let (address, header) = unsafe {
            (std::mem::zeroed::<libc::sockaddr_storage>(), std::mem::zeroed::<libc::mmsghdr>())
        };
        let mut batch = Self {
            session,
            slot_bytes,
            // Not zero: a padding that compresses would be another load.
            data: (0..SLOTS * slot_bytes)
                .map(|at| (at.wrapping_mul(0x9E37_79B1) >> 13) as u8)
                .collect(),
            addresses: vec![address; SLOTS],
            vectors: Vec::with_capacity(SLOTS),
            headers: vec![header; SLOTS],
        };
        for slot in 0..SLOTS {
            let base = batch.data[slot * slot_bytes..].as_mut_ptr();
            batch.vectors.push(libc::iovec { iov_base: base.cast(), iov_len: slot_bytes });
        }
        for slot in 0..SLOTS {
            let header = &mut batch.headers[slot].msg_hdr;
            header.msg_iov = &raw mut batch.vectors[slot];
            header.msg_iovlen = 1;
            header.msg_name = (&raw mut batch.addresses[slot]).cast();
        }
        batch
    }

    #[inline]
    pub fn slot(&mut self, slot: usize) -> &mut [u8] {
        &mut self.data[slot * self.slot_bytes..(slot + 1) * self.slot_bytes]
    }

    /// The datagram that was received into a slot.
    #[inline]
    pub fn received(&self, slot: usize) -> &[u8] {
        let bytes = (self.headers[slot].msg_len as usize).min(self.slot_bytes);
        &self.data[slot * self.slot_bytes..slot * self.slot_bytes + bytes]
    }

    #[inline]
    pub fn source(&self, slot: usize) -> Option<SocketAddr> {
        from_storage(&self.addresses[slot])
    }

    /// Makes slot `to` the answer to slot `from`: its bytes, its address.
    #[inline]
    pub fn answer(&mut self, from: usize, to: usize) {
        let bytes = self.headers[from].msg_len as usize;
        if from != to {
            let (start, end) = (from * self.slot_bytes, from * self.slot_bytes + bytes);
            self.data.copy_within(start..end, to * self.slot_bytes);
            self.addresses[to] = self.addresses[from];
            self.headers[to].msg_hdr.msg_namelen = self.headers[from].msg_hdr.msg_namelen;
        }
        self.vectors[to].iov_len = bytes;
    }

    /// Addresses all slots to `to`, each of `bytes`.
    pub fn address(&mut self, to: SocketAddr, bytes: usize) {
        let (storage, length) = to_storage(to);
        for slot in 0..SLOTS {
            self.addresses[slot] = storage;
            self.headers[slot].msg_hdr.msg_namelen = length;
            self.vectors[slot].iov_len = bytes.min(self.slot_bytes);
        }
    }

    /// Sends the first `count` slots; how many the kernel took. `WouldBlock` gives 0.
    #[inline]
    pub fn send(&mut self, socket: &UdpSocket, count: usize) -> Result<usize, ProbeError> {
        // SAFETY: the first `count` headers lead into our own vectors.
        let sent = unsafe {
            libc::syscall(
                libc::SYS_sendmmsg,
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                count,
                0,
            )
        };
        match usize::try_from(sent) {
            Ok(sent) => Ok(sent),
            Err(_) => nothing_now(self.session, "Sending datagrams"),
        }
    }

    /// Receives what is there, at least one datagram; 0 when none came in the socket's time limit.
    #[inline]
    pub fn receive(&mut self, socket: &UdpSocket) -> Result<usize, ProbeError> {
        for slot in 0..SLOTS {
            self.vectors[slot].iov_len = self.slot_bytes;
            self.headers[slot].msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
        }
        // SAFETY: all headers lead into our own vectors; the kernel writes inside the stated lengths.
        let got = unsafe {
            libc::syscall(
                libc::SYS_recvmmsg,
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                SLOTS,
                libc::MSG_WAITFORONE,
                std::ptr::null_mut::<libc::timespec>(),
            )
        };
        match usize::try_from(got) {
            Ok(got) => Ok(got),
            Err(_) => nothing_now(self.session, "Receiving datagrams"),
        }
    }
}

/// 0 for an error that only means: not now.
#[cold]
fn nothing_now(session: Session, what: &str) -> Result<usize, ProbeError> {
    let error = Error::last_os_error();
    session.check()?;
    let full = error.raw_os_error() == Some(libc::ENOBUFS);
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(0),
        // The far side's port closed a moment ago: what was sent there is lost, no more.
        ErrorKind::ConnectionRefused => Ok(0),
        _ if full => Ok(0),
        _ => Err(ProbeError::os(what, &error)),
    }
}

/// A socket with large buffers whose calls come back now and then.
pub fn socket(bind: SocketAddr) -> Result<UdpSocket, Error> {
    let socket = UdpSocket::bind(bind)?;
    socket.set_read_timeout(Some(std::time::Duration::from_millis(20)))?;
    socket.set_write_timeout(Some(std::time::Duration::from_millis(20)))?;
    let bytes: libc::c_int = 16 << 20;
    // Only root may go beyond the machine's limit; what is granted is used.
    if set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, bytes).is_err() {
        let _ = set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, bytes);
    }
    Ok(socket)
}

/// Datagrams that found the socket's buffer full; `None` where the kernel does not count them.
pub fn drops(socket: &UdpSocket) -> Option<u64> {
    const SO_MEMINFO: libc::c_int = 55;
    const DROPS: std::ops::Range<usize> = 32..36;
    let mut values = [0u8; 64];
    let length = read_option(socket.as_raw_fd(), libc::SOL_SOCKET, SO_MEMINFO, &mut values)?;
    let drops = values[..length].get(DROPS)?.try_into().expect("four bytes");
    Some(u64::from(u32::from_ne_bytes(drops)))
}

fn to_storage(address: SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: plain C structs, for which all zero is valid; the storage holds either.
    unsafe {
        let mut storage: libc::sockaddr_storage = std::mem::zeroed();
        let length = match address {
            SocketAddr::V4(v4) => {
                let place = &mut *(&raw mut storage).cast::<libc::sockaddr_in>();
                place.sin_family = libc::AF_INET as libc::sa_family_t;
                place.sin_port = v4.port().to_be();
                place.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
                size_of::<libc::sockaddr_in>()
            }
            SocketAddr::V6(v6) => {
                let place = &mut *(&raw mut storage).cast::<libc::sockaddr_in6>();
                place.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                place.sin6_port = v6.port().to_be();
                place.sin6_addr.s6_addr = v6.ip().octets();
                place.sin6_scope_id = v6.scope_id();
                size_of::<libc::sockaddr_in6>()
            }
        };
        (storage, length as libc::socklen_t)
    }
}

#[inline]
fn from_storage(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    // SAFETY: the kernel wrote an address of the family that it names.
    unsafe {
        match i32::from(storage.ss_family) {
            libc::AF_INET => {
                let place = &*(&raw const *storage).cast::<libc::sockaddr_in>();
                let ip = Ipv4Addr::from(u32::from_be(place.sin_addr.s_addr));
                Some(SocketAddr::new(ip.into(), u16::from_be(place.sin_port)))
            }
            libc::AF_INET6 => {
                let place = &*(&raw const *storage).cast::<libc::sockaddr_in6>();
                let ip = Ipv6Addr::from(place.sin6_addr.s6_addr);
                Some(SocketAddr::new(ip.into(), u16::from_be(place.sin6_port)))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_goes_through_and_comes_back() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (socket(any).unwrap(), socket(any).unwrap());
        let mut batch = Batch::new(Session::detached(), 100);
        batch.address(far.local_addr().unwrap(), 60);
        for slot in 0..5 {
            batch.slot(slot)[0] = slot as u8;
        }
        assert_eq!(batch.send(&near, 5).unwrap(), 5);
        let mut there = Batch::new(Session::detached(), 100);
        let mut seen = 0;
        while seen < 5 {
            let got = there.receive(&far).unwrap();
            for slot in 0..got {
                assert_eq!(there.source(slot), Some(near.local_addr().unwrap()));
                assert_eq!(there.received(slot).len(), 60);
                there.answer(slot, slot);
            }
            assert_eq!(there.send(&far, got).unwrap(), got);
            seen += got;
        }
        let got = batch.receive(&near).unwrap();
        assert!(got > 0);
        assert_eq!(batch.received(0)[0], 0);
        assert_eq!(drops(&near), Some(0));
    }

    #[test]
    fn addresses_survive_the_kernel_s_form() {
        for text in ["127.0.0.1:80", "[::1]:4242", "10.1.2.3:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(from_storage(&to_storage(address).0), Some(address));
        }
    }
}
