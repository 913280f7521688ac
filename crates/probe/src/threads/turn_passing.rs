//! Two threads that hand a turn to each other and sleep in between: each handover on one CPU is a
//! context switch.
use crate::error::{ProbeError, Result};
use crate::threads::gaps::cause::Switches;
use crate::threads::workers;
use crate::trial::affinity;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use serde::Deserialize;
use std::io::{Error, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::os::unix::thread::JoinHandleExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    Pipe,
    /// A word in memory, and the kernel's waiting on it.
    Futex,
}

impl Method {
    pub const NAMES: &'static [&'static str] = &["pipe", "futex"];
}

#[derive(Debug)]
struct SharedTurn {
    session: Session,
    method: Method,
    /// Of each side, (where it reads its turn, where the other writes it).
    pipes: [(PipeReader, PipeWriter); 2],
    active_side: AtomicU32,
    over: AtomicBool,
}

impl SharedTurn {
    fn new(session: Session, method: Method) -> Result<Arc<Self>> {
        let pipe = || std::io::pipe().map_err(|error| ProbeError::os("A pipe", &error));
        let pipes = [pipe()?, pipe()?];
        let (active_side, over) = (AtomicU32::new(0), AtomicBool::new(false));
        Ok(Arc::new(Self { session, method, pipes, active_side, over }))
    }

    #[inline]
    fn pass(&self, side: usize) -> Result<()> {
        match self.method {
            Method::Pipe => {
                let fd = self.pipes[side].1.as_raw_fd();
                // SAFETY: one byte of our own; the pipe never holds more than two.
                if unsafe { libc::write(fd, [1u8].as_ptr().cast(), 1) } != 1 {
                    return Err(self.failed("Writing to a pipe"));
                }
            }
            Method::Futex => {
                self.active_side.store(side as u32, Ordering::Release);
                // SAFETY: wakes whoever sleeps on our own word.
                unsafe {
                    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
                    libc::syscall(libc::SYS_futex, self.active_side.as_ptr(), operation, 1);
                }
            }
        }
        Ok(())
    }

    /// Sleeps until a side has the turn; false when it is over.
    #[inline]
    fn wait(&self, side: usize) -> Result<bool> {
        match self.method {
            Method::Pipe => self.read(side)?,
            Method::Futex => {
                let waiting_side = 1 - side as u32;
                while self.active_side.load(Ordering::Acquire) == waiting_side {
                    self.session.check()?;
                    // SAFETY: sleeps on our own word as long as it says that it is the other's turn.
                    unsafe {
                        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
                        let no_limit = std::ptr::null::<libc::timespec>();
                        let word = self.active_side.as_ptr();
                        libc::syscall(libc::SYS_futex, word, operation, waiting_side, no_limit);
                    }
                }
            }
        }
        Ok(!self.over.load(Ordering::Relaxed))
    }

    /// Hands every turn back until it is over; what the kernel accounted meanwhile.
    fn serve(&self) -> Result<Option<Switches>> {
        let mut before = None;
        while self.wait(1)? {
            before = before.or_else(Switches::read);
            self.pass(0)?;
        }
        Ok(Switches::since(before))
    }

    #[cold]
    fn failed(&self, what: &str) -> ProbeError {
        let error = Error::last_os_error();
        self.session.check().err().unwrap_or_else(|| ProbeError::os(what, &error))
    }

    fn read(&self, side: usize) -> Result<()> {
        let (fd, mut byte) = (self.pipes[side].0.as_raw_fd(), [0u8; 1]);
        // SAFETY: one byte of our own.
        while unsafe { libc::read(fd, byte.as_mut_ptr().cast(), 1) } != 1 {
            self.session.check()?;
            if Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
                return Err(self.failed("Reading from a pipe"));
            }
        }
        Ok(())
    }
}

/// The thread at the other end: it hands every turn back at once.
pub struct Partner {
    shared: Arc<SharedTurn>,
    thread: Option<JoinHandle<Result<Option<Switches>>>>,
    clock: Option<libc::clockid_t>,
}

impl Partner {
    /// Starts it, pinned to `cpu`; it has had the turn once when this returns.
    pub fn start(session: Session, method: Method, cpu: usize) -> Result<Self> {
        let shared = SharedTurn::new(session, method)?;
        let partner_turn = Arc::clone(&shared);
        let serve = move || {
            let served = affinity::pin(cpu).and_then(|()| partner_turn.serve());
            if served.is_err() {
                // Nobody waits for a turn that will not come back.
                partner_turn.over.store(true, Ordering::Relaxed);
                let _ = partner_turn.pass(0);
            }
            served
        };
        let thread = workers::start_owned("partner", serve)?;
        // A pointer in some C libraries and a number in others.
        #[allow(clippy::unnecessary_cast)]
        let pthread = thread.as_pthread_t() as libc::pthread_t;
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the thread has not been joined.
        let rc = unsafe { libc::pthread_getcpuclockid(pthread, &raw mut clock) };
        let partner = Self { shared, thread: Some(thread), clock: (rc == 0).then_some(clock) };
        partner.round_trip()?;
        Ok(partner)
    }

    /// Hands the turn over and sleeps until it comes back.
    #[inline]
    pub fn round_trip(&self) -> Result<()> {
        self.shared.pass(1)?;
        if self.shared.wait(0)? {
            return Ok(());
        }
        Err(self.shared.failed("Handing over"))
    }

    /// CPU time that it has used; 0 where the kernel does not tell.
    pub fn cpu_ns(&self) -> u64 {
        self.clock.map_or(0, clock::read_ns)
    }

    /// Ends it; what the kernel accounted to it since its first turn.
    pub fn end(mut self) -> Result<Option<Switches>> {
        self.join()
    }

    fn join(&mut self) -> Result<Option<Switches>> {
        let Some(thread) = self.thread.take() else { return Ok(None) };
        self.shared.over.store(true, Ordering::Relaxed);
        self.shared.pass(1)?;
        thread.join().expect("a partner does not panic")
    }
}

impl Drop for Partner {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_one_cpu_each_handover_is_a_switch() {
        const ROUNDS: i64 = 2000;
        let cpu = affinity::allowed()[0];
        for method in [Method::Pipe, Method::Futex] {
            let switches = std::thread::spawn(move || {
                affinity::pin(cpu).unwrap();
                let partner = Partner::start(Session::detached(), method, cpu).unwrap();
                let before = Switches::read();
                (0..ROUNDS).for_each(|_| partner.round_trip().unwrap());
                let own_switches = Switches::since(before).unwrap();
                assert!(partner.cpu_ns() > 0);
                let partner_switches = partner.end().unwrap().unwrap();
                own_switches.voluntary
                    + own_switches.involuntary
                    + partner_switches.voluntary
                    + partner_switches.involuntary
            });
            let switches = switches.join().unwrap();
            // Others of this machine take the CPU now and then.
            assert!((2 * ROUNDS..3 * ROUNDS).contains(&switches), "{method:?}: {switches}");
        }
    }

    #[test]
    fn a_partner_that_is_dropped_ends() {
        for method in [Method::Pipe, Method::Futex] {
            let partner =
                Partner::start(Session::detached(), method, affinity::allowed()[0]).unwrap();
            let shared = Arc::downgrade(&partner.shared);
            drop(partner);
            assert!(shared.upgrade().is_none());
        }
    }
}
