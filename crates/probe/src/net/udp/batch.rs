//! Many datagrams by one system call.
//!
//! The calls are made directly: musl's `sendmmsg` sends one at a time.
use super::socket_address::{from_storage, to_storage};
use crate::error::{FailureKind, ProbeError, Result};
use crate::net::{read_option, set_option};
use crate::trial::session::Session;
use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

/// Datagrams of one call.
pub const SLOTS: usize = 64;

/// Room for a `timespec` behind the header of a control message.
const CONTROL_WORDS: usize = 8;

/// Longest payload of a datagram.
pub const LONGEST_BYTES: usize = 65_507;

/// Options of `SOL_UDP` that the libc crate does not have for every C library.
const UDP_SEGMENT: libc::c_int = 103;
const UDP_GRO: libc::c_int = 104;

/// After so many datagrams that came one by one, more than one are asked for again.
const SINGLES_IN_A_ROW: usize = 16;

/// Room for datagrams and their addresses.
pub struct DatagramBatch {
    session: Session,
    slot_bytes: usize,
    data: Vec<u8>,
    addresses: Vec<libc::sockaddr_storage>,
    vectors: Vec<libc::iovec>,
    headers: Vec<libc::mmsghdr>,
    /// What the kernel adds to a datagram: its time of arrival, where it was asked for.
    controls: Vec<[u64; CONTROL_WORDS]>,
    /// The first so many slots were used since they were made ready to receive.
    used: usize,
    /// Calls that received one datagram, in a row.
    singles: usize,
}

// SAFETY: the pointers inside lead into the batch's own vectors, whose contents stay where they are.
unsafe impl Send for DatagramBatch {}

impl DatagramBatch {
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
            controls: vec![[0; CONTROL_WORDS]; SLOTS],
            used: SLOTS,
            singles: 0,
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

    /// The datagrams that were received into a slot: one, or those that the kernel has joined
    /// ([`join_received`]).
    #[inline]
    pub fn datagrams(&self, slot: usize) -> std::slice::Chunks<'_, u8> {
        let all = self.received(slot);
        let joined: Option<libc::c_int> =
            control_value(&self.headers[slot].msg_hdr, libc::SOL_UDP, UDP_GRO);
        let bytes = joined.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(all.len());
        all.chunks(bytes.max(1))
    }

    #[inline]
    pub fn source(&self, slot: usize) -> Option<SocketAddr> {
        from_storage(&self.addresses[slot])
    }

    /// When the kernel received the datagram of a slot, on the wall clock; `None` where it was not
    /// asked ([`ask_for_kernel_times`]) or does not tell.
    #[inline]
    pub fn kernel_wall_ns(&self, slot: usize) -> Option<u64> {
        wall_ns_of(&self.headers[slot].msg_hdr)
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
        self.send_without_control(to);
    }

    /// What was received with a datagram is nothing to be sent.
    #[inline]
    fn send_without_control(&mut self, slot: usize) {
        self.headers[slot].msg_hdr.msg_control = std::ptr::null_mut();
        self.headers[slot].msg_hdr.msg_controllen = 0;
    }

    /// Addresses all slots to `to`, each of `bytes`.
    pub fn address(&mut self, to: SocketAddr, bytes: usize) {
        let (storage, length) = to_storage(to);
        self.used = SLOTS;
        for slot in 0..SLOTS {
            self.addresses[slot] = storage;
            self.headers[slot].msg_hdr.msg_namelen = length;
            self.vectors[slot].iov_len = bytes.min(self.slot_bytes);
            self.send_without_control(slot);
        }
    }

    /// Sends all slots to where the socket is connected, without a look at their addresses.
    pub fn send_connected(&mut self) {
        for header in &mut self.headers {
            header.msg_hdr.msg_name = std::ptr::null_mut();
            header.msg_hdr.msg_namelen = 0;
        }
    }

    /// Joins neighbouring slots to messages as long as a datagram can be, for a socket with
    /// [`set_segment_bytes`]; returns their number, all but the last of the same size.
    pub fn join_slots(&mut self) -> usize {
        let most = (LONGEST_BYTES / self.slot_bytes).clamp(1, SLOTS);
        let messages = SLOTS.div_ceil(most);
        let slots = SLOTS.div_ceil(messages);
        for message in 0..messages {
            let (first, last) = (message * slots, ((message + 1) * slots).min(SLOTS));
            let data = &mut self.data[first * self.slot_bytes..last * self.slot_bytes];
            self.vectors[message] =
                libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
        }
        messages
    }

    /// Sends the first `count` slots; how many the kernel took. `WouldBlock` gives 0.
    #[inline]
    pub fn send(&mut self, socket: &UdpSocket, count: usize) -> Result<usize> {
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
    pub fn receive(&mut self, socket: &UdpSocket) -> Result<usize> {
        // Where datagrams come one by one, the kernel's look for a second one is part of their times.
        let is_single = !self.singles.is_multiple_of(SINGLES_IN_A_ROW);
        self.receive_up_to(socket, if is_single { 1 } else { SLOTS })
    }

    /// The same, `most` slots at most.
    #[inline]
    pub fn receive_up_to(&mut self, socket: &UdpSocket, most: usize) -> Result<usize> {
        for slot in 0..self.used {
            self.vectors[slot].iov_len = self.slot_bytes;
            let header = &mut self.headers[slot].msg_hdr;
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            header.msg_control = self.controls[slot].as_mut_ptr().cast();
            header.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
        }
        // SAFETY: all headers lead into our own vectors; the kernel writes inside the stated lengths.
        let got = unsafe {
            libc::syscall(
                libc::SYS_recvmmsg,
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                most.min(SLOTS),
                libc::MSG_WAITFORONE,
                std::ptr::null_mut::<libc::timespec>(),
            )
        };
        self.used = 1;
        match usize::try_from(got) {
            Ok(got) => {
                self.used = got;
                self.singles = if got == 1 { self.singles + 1 } else { 0 };
                Ok(got)
            }
            Err(_) => nothing_now(self.session, "Receiving datagrams"),
        }
    }
}

/// 0 for an error that only means: not now.
#[cold]
fn nothing_now(session: Session, what: &str) -> Result<usize> {
    is_not_now(session, what, &Error::last_os_error()).map(|()| 0)
}

/// Accepts an error that only means: not now.
#[cold]
pub fn is_not_now(session: Session, what: &str, error: &Error) -> Result<()> {
    session.check()?;
    let full = error.raw_os_error() == Some(libc::ENOBUFS);
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => Ok(()),
        // The far side's port closed a moment ago: what was sent there is lost, no more.
        ErrorKind::ConnectionRefused => Ok(()),
        _ if full => Ok(()),
        _ => Err(ProbeError::os(what, error)),
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

/// Asks for the time at which the kernel receives each datagram.
pub fn ask_for_kernel_times(socket: &impl AsRawFd) -> Result<(), Error> {
    set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1 as libc::c_int)
}

/// The kernel's time of arrival among the control messages of a received one.
pub fn wall_ns_of(message: &libc::msghdr) -> Option<u64> {
    let time: libc::timespec = control_value(message, libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS)?;
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
}

/// The value of a kind among the control messages of a received one.
fn control_value<T: PlainControl>(
    message: &libc::msghdr,
    level: libc::c_int,
    kind: libc::c_int,
) -> Option<T> {
    // SAFETY: the kernel wrote the control messages, and the macros stay inside their length; every
    // content is a value of a plain type.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = control.as_ref() {
            let is_whole = header.cmsg_len >= libc::CMSG_LEN(size_of::<T>() as u32) as _;
            if header.cmsg_level == level && header.cmsg_type == kind && is_whole {
                return Some(libc::CMSG_DATA(control).cast::<T>().read_unaligned());
            }
            control = libc::CMSG_NXTHDR(message, control);
        }
        None
    }
}

/// Types of control messages' contents.
trait PlainControl {}
impl PlainControl for libc::timespec {}
impl PlainControl for libc::c_int {}

/// Makes the kernel cut what is sent into datagrams of `bytes`.
pub fn set_segment_bytes(socket: &UdpSocket, bytes: usize) -> Result<()> {
    let bytes = bytes as libc::c_int;
    set_option(socket.as_raw_fd(), libc::SOL_UDP, UDP_SEGMENT, bytes).map_err(|error| {
        ProbeError::new(
            FailureKind::Lacks,
            "no_segmentation_offload",
            format!("This kernel cannot cut a message into datagrams (UDP_SEGMENT): {error}."),
            "Set segmentation_offload to false.",
        )
    })
}

/// Lets the kernel hand over datagrams joined to large messages where they came as such. Where it
/// cannot (before Linux 5.0), they come one by one.
pub fn join_received(socket: &UdpSocket) {
    let _ = set_option(socket.as_raw_fd(), libc::SOL_UDP, UDP_GRO, 1 as libc::c_int);
}

/// Datagrams that found the socket's buffer full; `None` where the kernel does not count them.
pub fn drops(socket: &UdpSocket) -> Option<u32> {
    const SO_MEMINFO: libc::c_int = 55;
    const DROPS: std::ops::Range<usize> = 32..36;
    let mut values = [0u8; 64];
    let length = read_option(socket.as_raw_fd(), libc::SOL_SOCKET, SO_MEMINFO, &mut values)?;
    let drops = values[..length].get(DROPS)?.try_into().expect("four bytes");
    Some(u32::from_ne_bytes(drops))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn a_batch_goes_through_and_comes_back() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (socket(any).unwrap(), socket(any).unwrap());
        let mut batch = DatagramBatch::new(Session::detached(), 100);
        batch.address(far.local_addr().unwrap(), 60);
        for slot in 0..5 {
            batch.slot(slot)[0] = slot as u8;
        }
        assert_eq!(batch.send(&near, 5).unwrap(), 5);
        let mut there = DatagramBatch::new(Session::detached(), 100);
        let mut received = 0;
        while received < 5 {
            let got = there.receive(&far).unwrap();
            for slot in 0..got {
                assert_eq!(there.source(slot), Some(near.local_addr().unwrap()));
                assert_eq!(there.received(slot).len(), 60);
                there.answer(slot, slot);
            }
            assert_eq!(there.send(&far, got).unwrap(), got);
            received += got;
        }
        ask_for_kernel_times(&near).unwrap();
        let got = batch.receive(&near).unwrap();
        assert!(got > 0);
        assert_eq!(batch.received(0)[0], 0);
        assert_eq!(drops(&near), Some(0));
    }

    /// Sends all slots as so many messages, and receives them joined or one by one.
    fn joined_slots_arrive(bytes: usize, messages: usize, joined: bool) {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let (near, far) = (socket(any).unwrap(), socket(any).unwrap());
        let mut batch = DatagramBatch::new(Session::detached(), bytes);
        batch.address(far.local_addr().unwrap(), bytes);
        (0..SLOTS).for_each(|slot| batch.slot(slot)[0] = slot as u8);
        set_segment_bytes(&near, bytes).unwrap();
        if joined {
            join_received(&far);
        }
        assert_eq!(batch.join_slots(), messages);
        assert_eq!(batch.send(&near, messages).unwrap(), messages);
        let mut there =
            DatagramBatch::new(Session::detached(), if joined { LONGEST_BYTES } else { 2000 });
        let mut received = Vec::new();
        while received.len() < SLOTS {
            for slot in 0..there.receive_up_to(&far, SLOTS).unwrap() {
                assert!(joined || there.received(slot).len() == bytes);
                for datagram in there.datagrams(slot) {
                    assert_eq!(datagram.len(), bytes);
                    received.push(usize::from(datagram[0]));
                }
            }
        }
        assert!(received.iter().copied().eq(0..SLOTS));
    }

    #[test]
    fn joined_slots_arrive_as_datagrams() {
        // 64 slots of 1400 bytes are two messages of 32.
        joined_slots_arrive(1400, 2, false);
    }

    #[test]
    fn joined_messages_are_taken_apart() {
        joined_slots_arrive(70, 1, true);
    }
}
