//! A TCP socket that never blocks.
use crate::net::udp::socket_address::to_storage;
use crate::net::{read_option, set_option};
use std::io::{Error, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Whether a call that failed so only has to be made again.
pub fn is_wait(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

pub struct NonblockingSocket(OwnedFd);

impl NonblockingSocket {
    /// Begins to connect; the socket becomes writable when that has ended.
    pub fn connect(to: &SocketAddr) -> Result<Self, Error> {
        let family = if to.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: a plain system call; the descriptor is new and owned here alone.
        let socket = unsafe {
            match libc::socket(family, kind, 0) {
                -1 => return Err(Error::last_os_error()),
                fd => Self(OwnedFd::from_raw_fd(fd)),
            }
        };
        // Requests are written whole; waiting for more to send would only delay them.
        set_option(socket.fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, 1i32)?;
        let (address, length) = to_storage(*to);
        // SAFETY: the address is of the stated size.
        let rc = unsafe { libc::connect(socket.fd(), (&raw const address).cast(), length) };
        match rc {
            0 => Ok(socket),
            _ => match Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
                error => Err(error),
            },
        }
    }

    /// Returns how connecting ended.
    pub fn connected(&self) -> Result<(), Error> {
        let mut bytes = [0u8; 4];
        read_option(self.fd(), libc::SOL_SOCKET, libc::SO_ERROR, &mut bytes);
        match i32::from_ne_bytes(bytes) {
            0 => Ok(()),
            code => Err(Error::from_raw_os_error(code)),
        }
    }

    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        // SAFETY: writes at most as many bytes as the buffer has.
        let count = unsafe { libc::recv(self.fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        usize::try_from(count).map_err(|_| Error::last_os_error())
    }

    #[inline]
    pub fn write(&self, bytes: &[u8]) -> Result<usize, Error> {
        // SAFETY: reads as many bytes as the slice has.
        let count = unsafe {
            libc::send(self.fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL)
        };
        usize::try_from(count).map_err(|_| Error::last_os_error())
    }

    pub fn write_vectored(&self, parts: &[IoSlice]) -> Result<usize, Error> {
        // SAFETY: a message without an address is all zeros, but for its parts, which the kernel
        // reads; a slice of the standard library has the layout of the kernel's.
        let count = unsafe {
            let mut message: libc::msghdr = std::mem::zeroed();
            message.msg_iov = parts.as_ptr().cast_mut().cast();
            message.msg_iovlen = parts.len() as _;
            libc::sendmsg(self.fd(), &raw const message, libc::MSG_NOSIGNAL)
        };
        usize::try_from(count).map_err(|_| Error::last_os_error())
    }

    #[inline]
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}
