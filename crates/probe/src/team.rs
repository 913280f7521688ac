//! Pinned threads that start together: each prepares on its own CPU (so that first touch puts its
//! memory beside it), waits at a spinning barrier, and does its work in a timed section.
use crate::error::{Kind, ProbeError};
use crate::trial::Factors;
use crate::{affinity, cancel, clock, factors, timed};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What one thread did, and when (monotonic clock).
#[derive(Debug)]
pub struct Member<S, T> {
    /// Number of the thread, from 0.
    pub thread: usize,
    /// The CPU it was pinned to; `None` where it was left free.
    pub cpu: Option<usize>,
    /// When its work began.
    pub started_ns: u64,
    /// When its work ended.
    pub ended_ns: u64,
    /// What it prepared, after the work.
    pub state: S,
    /// What the work gave.
    pub result: T,
}

impl<S, T> Member<S, T> {
    /// The factors of this thread's samples.
    pub fn factors(&self) -> Factors {
        match self.cpu {
            Some(cpu) => factors! {"thread": self.thread, "cpu": cpu},
            None => factors! {"thread": self.thread, "cpu": "any"},
        }
    }
}

/// From the first start to the last end: the time in which the whole team's work was done.
pub fn window_ns<S, T>(members: &[Member<S, T>]) -> u64 {
    let first = members.iter().map(|member| member.started_ns).min().unwrap_or(0);
    let last = members.iter().map(|member| member.ended_ns).max().unwrap_or(0);
    last.saturating_sub(first).max(1)
}

/// Which thread runs where, and what a reader has to know about that.
#[derive(Clone, Debug)]
pub struct Seats {
    /// The CPU of each thread; `None` is left free.
    pub cpus: Vec<Option<usize>>,
    /// Plain sentences for the trial's notes.
    pub notes: Vec<String>,
    /// Whether the calling thread does the work itself.
    on_caller: bool,
}

impl Seats {
    /// One thread per allowed CPU (`threads` 0), or that many, round robin beyond the CPUs.
    ///
    /// Under `SCHED_DEADLINE` a thread can neither be created nor pinned: the calling thread then
    /// works alone and free.
    ///
    /// # Errors
    /// More than one thread asked for under `SCHED_DEADLINE`.
    pub fn choose(threads: usize) -> Result<Self, ProbeError> {
        let allowed = affinity::allowed().len();
        if under_deadline() {
            return Self::under_deadline(threads);
        }
        let threads = if threads == 0 { allowed } else { threads };
        let cpus = affinity::spread(threads).into_iter().map(Some).collect();
        let notes = if threads > allowed {
            vec![format!(
                "{threads} threads share {allowed} allowed CPUs, round robin; their figures \
                 contain the time they waited for each other."
            )]
        } else {
            Vec::new()
        };
        Ok(Self { cpus, notes, on_caller: false })
    }

    /// That many threads, none of them pinned; under `SCHED_DEADLINE` the calling one.
    ///
    /// # Errors
    /// As [`Self::choose`].
    pub fn free(threads: usize) -> Result<Self, ProbeError> {
        if under_deadline() {
            return Self::under_deadline(threads);
        }
        Ok(Self { cpus: vec![None; threads], notes: Vec::new(), on_caller: false })
    }

    fn under_deadline(threads: usize) -> Result<Self, ProbeError> {
        if threads > 1 {
            return Err(ProbeError::new(
                Kind::Lacks,
                "no_threads_under_deadline",
                format!(
                    "{threads} threads cannot be started: a task under SCHED_DEADLINE may not \
                     create any."
                ),
                "Ask for one thread, or start the probe under another scheduling policy.",
            ));
        }
        let note = "The probe runs under SCHED_DEADLINE, where threads can be neither created nor \
                    pinned: the one thread that was there did the work, unpinned.";
        Ok(Self { cpus: vec![None], notes: vec![note.to_owned()], on_caller: true })
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.cpus.len()
    }
}

/// Whether the calling thread is under `SCHED_DEADLINE`.
pub fn under_deadline() -> bool {
    const SCHED_DEADLINE: libc::c_long = 6;
    // The C library's wrapper is a stub that fails in musl.
    // SAFETY: reads the calling thread's policy.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    // Bit 30 says that children get the normal policy; creation is still refused for threads.
    policy & !0x4000_0000 == SCHED_DEADLINE
}

/// Runs `work` once on every seat, all starting together.
///
/// `prepare` runs before the barrier on the thread's own CPU: allocate and touch everything there.
/// `work` is a timed section: debug builds assert that it neither allocates nor faults a page in.
/// Members come back in the order of their threads.
///
/// # Errors
/// The first error of any thread, in thread order; a cancelled trial.
pub fn run<S: Send, T: Send>(
    seats: &Seats,
    prepare: impl Fn(usize) -> Result<S, ProbeError> + Sync,
    work: impl Fn(usize, &mut S) -> Result<T, ProbeError> + Sync,
) -> Result<Vec<Member<S, T>>, ProbeError> {
    let barrier = Barrier::new(seats.threads());
    let member = |thread: usize| {
        let _release = ReleaseOnPanic(&barrier);
        let outcome = serve(thread, seats.cpus[thread], &barrier, &prepare, &work);
        if outcome.is_err() {
            barrier.give_up();
        }
        outcome
    };
    if seats.on_caller {
        return Ok(vec![member(0)?]);
    }
    let outcomes = std::thread::scope(|scope| {
        let start = |thread| {
            let member = &member;
            let name = format!("team-{thread}");
            let started =
                std::thread::Builder::new().name(name).spawn_scoped(scope, move || member(thread));
            started.map_err(|error| {
                barrier.give_up();
                ProbeError::os(&format!("Starting thread {}", thread + 1), &error)
            })
        };
        let handles: Vec<_> = (0..seats.threads()).map(start).collect();
        let join = |handle: Result<std::thread::ScopedJoinHandle<'_, _>, ProbeError>| {
            handle.and_then(|handle| {
                handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        };
        handles.into_iter().map(join).collect::<Vec<_>>()
    });
    cancel::check()?;
    first_cause(outcomes)
}

/// All members, or the error that began it: members that left the barrier because another had
/// failed are not the cause.
fn first_cause<M>(outcomes: Vec<Result<M, ProbeError>>) -> Result<Vec<M>, ProbeError> {
    let is_cause = |outcome: &Result<M, ProbeError>| {
        outcome.as_ref().is_err_and(|error| error.name != LEFT_ALONE)
    };
    if let Some(at) = outcomes.iter().position(is_cause) {
        let cause = outcomes.into_iter().nth(at);
        return Err(cause.and_then(Result::err).expect("it was just found to be an error"));
    }
    outcomes.into_iter().collect()
}

const LEFT_ALONE: &str = "another_thread_failed";

fn serve<S, T>(
    thread: usize,
    cpu: Option<usize>,
    barrier: &Barrier,
    prepare: impl Fn(usize) -> Result<S, ProbeError>,
    work: impl Fn(usize, &mut S) -> Result<T, ProbeError>,
) -> Result<Member<S, T>, ProbeError> {
    if let Some(cpu) = cpu {
        affinity::pin(cpu)?;
    }
    let mut state = prepare(thread)?;
    touch_stack();
    if !barrier.wait() {
        cancel::check()?;
        let message = "A thread could not start because another failed.";
        return Err(ProbeError::new(Kind::Failed, LEFT_ALONE, message, "See the other error."));
    }
    let section = timed::start();
    let started_ns = clock::monotonic_ns();
    let result = work(thread, &mut state);
    let ended_ns = clock::monotonic_ns();
    // A failure may allocate its sentence; its times are not used.
    let result = result?;
    section.stop();
    Ok(Member { thread, cpu, started_ns, ended_ns, state, result })
}

/// Faults in the part of the stack that a timed section may grow into.
#[inline(never)]
pub fn touch_stack() {
    let mut pages = [0u8; 128 << 10];
    for at in (0..pages.len()).step_by(4096) {
        // SAFETY: `at` is inside the array; volatile, so that the touch is not optimised away.
        unsafe { pages.as_mut_ptr().add(at).write_volatile(1) };
    }
    std::hint::black_box(&mut pages);
}

/// A barrier that spins: a sleeping one wakes its threads one by one, microseconds apart.
#[derive(Debug)]
pub struct Barrier {
    size: usize,
    arrived: AtomicUsize,
    given_up: AtomicBool,
}

impl Barrier {
    /// For `size` threads; can be passed again and again.
    pub fn new(size: usize) -> Self {
        Self { size, arrived: AtomicUsize::new(0), given_up: AtomicBool::new(false) }
    }

    /// Waits for the others. `false` when one of them failed or the trial was cancelled.
    pub fn wait(&self) -> bool {
        let ticket = self.arrived.fetch_add(1, Ordering::AcqRel);
        let goal = (ticket / self.size + 1) * self.size;
        let mut spins = 0u32;
        while self.arrived.load(Ordering::Acquire) < goal {
            if self.given_up.load(Ordering::Relaxed) || cancel::requested() {
                return false;
            }
            spins += 1;
            if spins.is_multiple_of(256) {
                // With more threads than CPUs the missing one may need this one's place.
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        true
    }

    /// Tells the others not to wait any longer.
    pub fn give_up(&self) {
        self.given_up.store(true, Ordering::Relaxed);
    }
}

/// Nobody waits for a thread whose assertion failed.
struct ReleaseOnPanic<'a>(&'a Barrier);

impl Drop for ReleaseOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(name: &'static str) -> ProbeError {
        ProbeError::new(Kind::Failed, name, "It failed.", "Nothing.")
    }

    #[test]
    fn every_thread_works_once_after_all_are_prepared() {
        let seats = Seats::choose(5).unwrap();
        let prepared = AtomicUsize::new(0);
        let members = run(
            &seats,
            |thread| {
                prepared.fetch_add(1, Ordering::SeqCst);
                Ok(thread * 10)
            },
            |_, state| {
                *state += 1;
                Ok(prepared.load(Ordering::SeqCst))
            },
        );
        let members = members.unwrap();
        assert_eq!(members.iter().map(|m| m.state).collect::<Vec<_>>(), [1, 11, 21, 31, 41]);
        assert!(members.iter().all(|m| m.result == 5 && m.ended_ns >= m.started_ns));
    }

    #[test]
    fn one_failure_ends_all_and_is_the_one_reported() {
        let seats = Seats::choose(3).unwrap();
        let prepare = |thread| if thread == 2 { Err(failed("third")) } else { Ok(()) };
        let error = run(&seats, prepare, |_, ()| Ok(())).unwrap_err();
        assert_eq!(error.name, "third");
        let error = run(&seats, |_| Ok(()), |_, ()| -> Result<(), _> { Err(failed("work")) });
        assert_eq!(error.unwrap_err().name, "work");
    }

    #[test]
    fn zero_threads_means_every_allowed_cpu_and_too_many_are_noted() {
        let allowed = affinity::allowed();
        let seats = Seats::choose(0).unwrap();
        assert_eq!(seats.cpus, allowed.iter().copied().map(Some).collect::<Vec<_>>());
        assert!(seats.notes.is_empty());
        assert_eq!(Seats::choose(allowed.len() + 1).unwrap().notes.len(), 1);
    }

    #[test]
    fn a_barrier_can_be_passed_again() {
        let barrier = Barrier::new(2);
        let rounds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..50 {
                        assert!(barrier.wait());
                        assert!(rounds.fetch_add(1, Ordering::SeqCst) / 2 == round);
                        assert!(barrier.wait());
                    }
                });
            }
        });
    }
}
