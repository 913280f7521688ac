//! Sleeping until a descriptor is ready or a moment has come.
use crate::error::{require, Result};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The descriptors waited on, and one timer.
#[derive(Debug)]
pub struct Waiting {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed_ns: Option<u64>,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

impl Waiting {
    /// Nothing to wait for yet but the timer.
    pub fn new() -> Result<Self> {
        // SAFETY: plain system calls; the descriptors returned are ours alone.
        let (epoll, timer) = unsafe {
            let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            let timer = libc::timerfd_create(libc::CLOCK_MONOTONIC, flags);
            require(epoll.min(timer), "Making a timer")?;
            (OwnedFd::from_raw_fd(epoll), OwnedFd::from_raw_fd(timer))
        };
        let timer_fd = timer.as_raw_fd();
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; 64];
        let waiting = Self { epoll, timer, armed_ns: None, events, ready: 0 };
        waiting.add(timer_fd)?;
        Ok(waiting)
    }

    /// Waits for this descriptor too, until it is closed.
    pub fn add(&self, fd: RawFd) -> Result<()> {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
        // SAFETY: open descriptors and a plain struct.
        let rc = unsafe {
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &raw mut event)
        };
        // A plain file is always ready and cannot be waited for; it has been read already.
        if rc != 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) {
            return Ok(());
        }
        require(rc, "Waiting for a descriptor")
    }

    /// Waits for this descriptor no longer.
    pub fn remove(&self, fd: RawFd) {
        // SAFETY: the kernel refuses what it does not know.
        unsafe {
            let none = std::ptr::null_mut();
            libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, none);
        }
    }

    /// Looks at the descriptors once, without sleeping.
    pub fn poll(&mut self) {
        self.wait(0);
    }

    /// Sleeps until a descriptor is ready or the clock shows `until_ns`; for ever without it.
    pub fn sleep(&mut self, until_ns: Option<u64>) {
        if self.armed_ns != until_ns {
            self.arm(until_ns);
        }
        self.wait(-1);
    }

    fn arm(&mut self, until_ns: Option<u64>) {
        self.armed_ns = until_ns;
        // Zero disarms; no release is at the moment the machine was started.
        let at = until_ns.unwrap_or(0).cast_signed();
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec { tv_sec: at / 1_000_000_000, tv_nsec: at % 1_000_000_000 };
        let times = libc::itimerspec { it_interval: none, it_value: value };
        // SAFETY: our own timer and a plain struct.
        unsafe {
            let fd = self.timer.as_raw_fd();
            libc::timerfd_settime(
                fd,
                libc::TFD_TIMER_ABSTIME,
                &raw const times,
                std::ptr::null_mut(),
            );
        }
    }

    fn wait(&mut self, timeout_ms: i32) {
        let room = self.events.len() as i32;
        // SAFETY: writes at most `room` events into the buffer.
        let count = unsafe {
            libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), room, timeout_ms)
        };
        self.ready = count.max(0) as usize;
        let timer = self.timer.as_raw_fd() as u64;
        if self.events[..self.ready].iter().any(|event| { event.u64 } == timer) {
            let mut expirations = [0u8; 8];
            // SAFETY: a timer descriptor gives eight bytes.
            unsafe { libc::read(self.timer.as_raw_fd(), expirations.as_mut_ptr().cast(), 8) };
            self.armed_ns = None;
        }
    }

    /// The descriptors that were ready at the last look.
    pub fn ready(&self) -> impl Iterator<Item = RawFd> + '_ {
        let timer = self.timer.as_raw_fd();
        self.events[..self.ready]
            .iter()
            .map(|event| event.u64 as RawFd)
            .filter(move |fd| *fd != timer)
    }
}
