//! Readiness of many sockets at once: `epoll`, level-triggered, with waits shorter than a millisecond.
use nephoscope_linux::clock;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Events taken from the kernel at once.
const EVENTS: usize = 512;
/// The same number on every architecture; Linux 5.11 and newer.
const SYS_EPOLL_PWAIT2: libc::c_long = 441;
/// Whether the kernel, or a sandbox, has refused that call.
static NO_PWAIT2: AtomicBool = AtomicBool::new(false);

/// What a socket is watched for, besides errors and the end of its input.
pub const READ: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP) as u32;
pub const WRITE: u32 = libc::EPOLLOUT as u32;

pub struct Epoll {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
}

impl Epoll {
    pub fn new() -> Result<Self, Error> {
        // SAFETY: a plain system call; the descriptor is new and owned here alone.
        let epoll = unsafe {
            match libc::epoll_create1(libc::EPOLL_CLOEXEC) {
                -1 => return Err(Error::last_os_error()),
                fd => OwnedFd::from_raw_fd(fd),
            }
        };
        Ok(Self { epoll, events: vec![libc::epoll_event { events: 0, u64: 0 }; EVENTS] })
    }

    /// Watches a new socket; closing it ends that. `token` comes back with its events.
    pub fn add(&self, socket: RawFd, interest: u32, token: u32) -> Result<(), Error> {
        self.control(libc::EPOLL_CTL_ADD, socket, interest, token)
    }

    pub fn change(&self, socket: RawFd, interest: u32, token: u32) -> Result<(), Error> {
        self.control(libc::EPOLL_CTL_MOD, socket, interest, token)
    }

    fn control(&self, call: i32, socket: RawFd, interest: u32, token: u32) -> Result<(), Error> {
        let mut event = libc::epoll_event { events: interest, u64: u64::from(token) };
        // SAFETY: reads one plain struct.
        let rc = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), call, socket, &raw mut event) };
        if rc == 0 {
            Ok(())
        } else {
            Err(Error::last_os_error())
        }
    }

    /// Waits at most so long; returns the number of events, 0 after a signal.
    pub fn wait(&mut self, timeout_ns: u64) -> Result<usize, Error> {
        let ready = if NO_PWAIT2.load(Ordering::Relaxed) {
            // Rounded down: the rest is spent asking again.
            self.wait_ms((timeout_ns / 1_000_000) as libc::c_int)
        } else {
            self.wait_ns(timeout_ns)
        };
        if let Ok(count) = usize::try_from(ready) {
            return Ok(count);
        }
        let error = Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            Some(libc::ENOSYS | libc::EPERM) if !NO_PWAIT2.swap(true, Ordering::Relaxed) => Ok(0),
            _ => Err(error),
        }
    }

    fn wait_ms(&mut self, timeout_ms: libc::c_int) -> libc::c_long {
        let (fd, room) = (self.epoll.as_raw_fd(), EVENTS as libc::c_int);
        // SAFETY: the kernel writes at most as many events as there is room for.
        unsafe { libc::epoll_wait(fd, self.events.as_mut_ptr(), room, timeout_ms).into() }
    }

    fn wait_ns(&mut self, timeout_ns: u64) -> libc::c_long {
        let timeout = clock::timespec(timeout_ns);
        let no_mask = std::ptr::null::<libc::sigset_t>();
        // SAFETY: the kernel writes at most as many events as there is room for, and reads a struct.
        unsafe {
            libc::syscall(
                SYS_EPOLL_PWAIT2,
                self.epoll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as libc::c_int,
                &raw const timeout,
                no_mask,
                0usize,
            )
        }
    }

    /// Returns the token and the readiness of an event of the last wait.
    #[inline]
    pub fn event(&self, index: usize) -> (u32, u32) {
        let event = self.events[index];
        (event.u64 as u32, event.events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn both_ways_of_waiting_report_the_same_event() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut epoll = Epoll::new().unwrap();
        epoll.add(near.as_raw_fd(), READ, 7).unwrap();
        assert_eq!(epoll.wait(0).unwrap(), 0);
        far.write_all(b"x").unwrap();
        assert_eq!(epoll.wait_ms(1000), 1);
        assert_eq!(epoll.event(0), (7, libc::EPOLLIN as u32));
        // An old kernel refuses the finer call, and the next one is the other.
        let count = epoll.wait(1_000_000_000).unwrap().max(epoll.wait(1_000_000_000).unwrap());
        assert_eq!((count, epoll.event(0).0), (1, 7));
        drop(far);
        epoll.wait(1_000_000_000).unwrap();
        assert!(epoll.event(0).1 & READ != 0);
    }
}
