//! A TCP socket that never blocks.
use crate::net::{read_option, set_option};
use std::io::{Error, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub struct Socket(OwnedFd);

impl Socket {
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
        let rc = match to {
            SocketAddr::V4(to) => {
                let address = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: to.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(to.ip().octets()) },
                    sin_zero: [0; 8],
                };
                socket.connect_to(&address)
            }
            SocketAddr::V6(to) => {
                let address = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: to.port().to_be(),
                    sin6_flowinfo: to.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: to.ip().octets() },
                    sin6_scope_id: to.scope_id(),
                };
                socket.connect_to(&address)
            }
        };
        match rc {
            0 => Ok(socket),
            _ => match Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINPROGRESS) => Ok(socket),
                error => Err(error),
            },
        }
    }

    fn connect_to<T>(&self, address: &T) -> libc::c_int {
        // SAFETY: the address is of the stated size.
        unsafe {
            let pointer = std::ptr::from_ref(address).cast();
            libc::connect(self.fd(), pointer, size_of::<T>() as libc::socklen_t)
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
