//! Readiness of many descriptors, with time limits in nanoseconds.
use crate::error::ProbeError;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub use libc::epoll_event as Event;

pub const READABLE: u32 = libc::EPOLLIN as u32;
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;

/// An event that stands for nothing yet.
pub const NO_EVENT: Event = Event { events: 0, u64: 0 };

#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
    /// Whether the kernel lacks `epoll_pwait2` (before 5.11): waits end on whole milliseconds.
    in_milliseconds: bool,
}

impl Epoll {
    pub fn new() -> Result<Self, ProbeError> {
        // SAFETY: makes a descriptor that nobody else owns.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(ProbeError::os("epoll_create1", &Error::last_os_error()));
        }
        // SAFETY: as above.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, in_milliseconds: false })
    }

    /// Watches a descriptor; `data` comes back with each of its events. Closing it ends that.
    pub fn add(&self, fd: RawFd, events: u32, data: u64) -> Result<(), Error> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, data)
    }

    pub fn modify(&self, fd: RawFd, events: u32, data: u64) -> Result<(), Error> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, data)
    }

    fn control(&self, what: libc::c_int, fd: RawFd, events: u32, data: u64) -> Result<(), Error> {
        let mut event = Event { events, u64: data };
        // SAFETY: reads a plain struct.
        match unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), what, fd, &raw mut event) } {
            0 => Ok(()),
            _ => Err(Error::last_os_error()),
        }
    }

    /// Waits at most `timeout_ns`; returns the number of events, 0 after a signal.
    pub fn wait(&mut self, events: &mut [Event], timeout_ns: u64) -> Result<usize, ProbeError> {
        let room = libc::c_int::try_from(events.len()).unwrap_or(libc::c_int::MAX);
        let (fd, first) = (self.fd.as_raw_fd(), events.as_mut_ptr());
        if !self.in_milliseconds {
            let time = libc::timespec {
                tv_sec: (timeout_ns / 1_000_000_000).cast_signed(),
                tv_nsec: (timeout_ns % 1_000_000_000).cast_signed(),
            };
            let no_mask = std::ptr::null::<libc::sigset_t>();
            let call = libc::SYS_epoll_pwait2;
            // SAFETY: the kernel writes at most `room` events, and reads a plain struct.
            let count =
                unsafe { libc::syscall(call, fd, first, room, &raw const time, no_mask, 0) };
            let error = Error::last_os_error();
            if count >= 0 || error.raw_os_error() != Some(libc::ENOSYS) {
                return number_of_events(count, &error);
            }
            self.in_milliseconds = true;
        }
        let milliseconds = timeout_ns.div_ceil(1_000_000).min(60_000) as libc::c_int;
        // SAFETY: the kernel writes at most `room` events.
        let count = unsafe { libc::epoll_wait(fd, first, room, milliseconds) };
        number_of_events(count.into(), &Error::last_os_error())
    }
}

fn number_of_events(count: libc::c_long, error: &Error) -> Result<usize, ProbeError> {
    match usize::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) if error.kind() == ErrorKind::Interrupted => Ok(0),
        Err(_) => Err(ProbeError::os("epoll_wait", error)),
    }
}
