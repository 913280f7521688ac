//! Two threads that execute programs at the same time: they begin together, know when the partner has
//! done its part, and are woken when the trial is cancelled.
use crate::error::Result;
use crate::threads::barriers::Barrier;
use crate::threads::workers;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// How often a cancelled trial is noticed.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// How often a side that is prepared looks whether its partner is.
const PREPARED_INTERVAL: Duration = Duration::from_micros(200);

/// What the two sides share.
pub struct Pair {
    pub session: Session,
    start: Barrier,
    prepared: AtomicUsize,
    /// When each side had done its part; 0 before.
    done_ns: [AtomicU64; 2],
    /// The threads of the sides; 0 once they have ended.
    threads: [AtomicI32; 2],
    running: AtomicUsize,
    failed: AtomicBool,
}

impl Pair {
    pub fn new(session: Session) -> Self {
        Self {
            session,
            start: Barrier::new(session, 2),
            prepared: AtomicUsize::new(0),
            done_ns: [AtomicU64::new(0), AtomicU64::new(0)],
            threads: [AtomicI32::new(0), AtomicI32::new(0)],
            running: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Does the work of both sides, each on a thread of its own. Where one fails, the other is waited
    /// for.
    pub fn run<S: Send>(
        &self,
        sides: &mut [S; 2],
        work: impl Fn(&mut S, usize) -> Result<()> + Sync,
    ) -> Result<()> {
        let (work, waiting) = (&work, std::thread::current());
        std::thread::scope(|scope| {
            let mut started = Vec::new();
            for (place, side) in sides.iter_mut().enumerate() {
                let waiting = waiting.clone();
                self.running.fetch_add(1, Ordering::AcqRel);
                let on_thread = move || {
                    // SAFETY: asks for the number of this thread.
                    self.threads[place].store(unsafe { libc::gettid() }, Ordering::Release);
                    let outcome = work(side, place);
                    self.end(place, outcome.is_err());
                    waiting.unpark();
                    outcome
                };
                let worker = workers::start(scope, None, on_thread);
                started.push(worker.inspect_err(|_| self.end(place, true)));
            }
            self.wait();
            let outcomes: Vec<Result<()>> = started
                .into_iter()
                .map(|worker| worker.and_then(workers::JoinedWorker::join))
                .collect();
            outcomes.into_iter().collect()
        })
    }

    /// Waits until both sides are prepared: asleep, because a preparation may take long, then at the
    /// barrier. `false` when one of them failed or the trial was cancelled.
    pub fn start_together(&self) -> bool {
        self.prepared.fetch_add(1, Ordering::AcqRel);
        while self.prepared.load(Ordering::Acquire) < 2 {
            if self.has_failed() || self.session.is_cancelled() {
                return false;
            }
            std::thread::sleep(PREPARED_INTERVAL);
        }
        self.start.wait()
    }

    /// This side has done its part; returns when.
    pub fn done(&self, place: usize) -> u64 {
        let now_ns = clock::monotonic_ns();
        self.done_ns[place].store(now_ns, Ordering::Release);
        now_ns
    }

    /// Whether the partner of this side still does its part.
    pub fn partner_is_busy(&self, place: usize) -> bool {
        self.done_ns[1 - place].load(Ordering::Acquire) == 0 && !self.has_failed()
    }

    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    fn end(&self, place: usize, is_failure: bool) {
        if is_failure {
            self.failed.store(true, Ordering::Relaxed);
            self.start.give_up();
        }
        self.threads[place].store(0, Ordering::Release);
        self.running.fetch_sub(1, Ordering::AcqRel);
    }

    /// Waits for both sides. A signal that cancels the trial reaches one thread: those that wait
    /// for their program are woken, so that they end it.
    fn wait(&self) {
        while self.running.load(Ordering::Acquire) > 0 {
            std::thread::park_timeout(CHECK_INTERVAL);
            if self.session.is_cancelled() {
                for thread in &self.threads {
                    let thread = thread.load(Ordering::Acquire);
                    if thread != 0 {
                        // SAFETY: a thread of this process; the handler of this signal is set.
                        unsafe {
                            libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, libc::SIGTERM)
                        };
                    }
                }
            }
        }
    }
}
