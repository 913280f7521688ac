//! Pinned threads that start together: each prepares on its own CPU (so that first touch puts its
//! memory beside it), waits at a spinning barrier, and does its work in a timed section.
use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::barriers::{Barrier, Latch};
use crate::threads::workers::{self, JoinedWorker};
use crate::timing::timed;
use crate::timing::touch;
use crate::trial::affinity;
use crate::trial::factors;
use crate::trial::session::Session;
use crate::trial::{Factors, Trial};
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use nephoscope_wire::spec::Param;

pub const THREADS: Param = Param::count("threads", 0, 0..=1024)
    .doc("Number of threads, each pinned to a CPU; 0 takes all allowed CPUs.");

#[derive(Debug)]
pub struct Member<S, T> {
    /// Number of the thread, from 0.
    pub thread: usize,
    /// The CPU it was pinned to; `None` where it was left free.
    pub cpu: Option<usize>,
    pub started_ns: u64,
    pub ended_ns: u64,
    /// What it prepared, after the work.
    pub state: S,
    pub result: T,
}

impl<S, T> Member<S, T> {
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
pub struct ThreadPlacement {
    pub session: Session,
    /// The CPU of each thread; `None` is left free.
    pub cpus: Vec<Option<usize>>,
    /// Plain sentences for the trial's notes.
    pub notes: Vec<String>,
    /// Whether the calling thread does the work itself.
    on_caller: bool,
}

impl ThreadPlacement {
    /// One thread per allowed CPU (`threads` 0), or that many, round robin beyond the CPUs.
    ///
    /// Under `SCHED_DEADLINE` a thread can neither be created nor pinned: the calling thread then
    /// works alone and free.
    pub fn choose(session: Session, threads: usize) -> Result<Self> {
        let allowed = affinity::allowed().len();
        if scheduling::is_reserved() {
            return Self::under_deadline(session, threads);
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
        Ok(Self { session, cpus, notes, on_caller: false })
    }

    /// The seats of a trial by its parameter `threads`; its notes have what a reader has to know.
    pub fn of(trial: &mut Trial) -> Result<Self> {
        let placement = Self::choose(trial.session, trial.params.size("threads"))?;
        placement.notes.iter().for_each(|note| trial.out.note(note));
        Ok(placement)
    }

    /// That many threads, none of them pinned; under `SCHED_DEADLINE` the calling one.
    pub fn free(session: Session, threads: usize) -> Result<Self> {
        if scheduling::is_reserved() {
            return Self::under_deadline(session, threads);
        }
        Ok(Self { session, cpus: vec![None; threads], notes: Vec::new(), on_caller: false })
    }

    fn under_deadline(session: Session, threads: usize) -> Result<Self> {
        if threads > 1 {
            check_can_start_threads()?;
        }
        let note = "The probe runs under SCHED_DEADLINE, where threads can be neither created nor \
                    pinned: the one thread that was there did the work, unpinned.";
        Ok(Self { session, cpus: vec![None], notes: vec![note.to_owned()], on_caller: true })
    }

    pub fn threads(&self) -> usize {
        self.cpus.len()
    }
}

/// Refuses to start threads where the kernel would.
pub fn check_can_start_threads() -> Result<()> {
    if !scheduling::is_reserved() {
        return Ok(());
    }
    Err(ProbeError::new(
        FailureKind::Lacks,
        "no_threads_under_deadline",
        "The benchmark cannot start its threads: a task under SCHED_DEADLINE may not create any.",
        "Ask for one thread, or start the probe under another scheduling policy.",
    ))
}

/// Runs `work` once on every seat, all starting together.
///
/// `prepare` runs before the barrier on the thread's own CPU: allocate and touch everything there.
/// `work` is a timed section: debug builds assert that it neither allocates nor faults a page in.
/// Members come back in the order of their threads.
pub fn run<S: Send, T: Send>(
    placement: &ThreadPlacement,
    prepare: impl Fn(usize) -> Result<S> + Sync,
    work: impl Fn(usize, &mut S) -> Result<T> + Sync,
) -> Result<Vec<Member<S, T>>> {
    together(placement, None::<fn() -> _>, prepare, work)
}

/// As [`run`], and between the last thread's `prepare` and the first one's `work` the calling thread
/// calls `gate`: the threads sleep meanwhile.
pub fn run_behind<S: Send, T: Send>(
    gate: impl FnOnce() -> Result<()>,
    placement: &ThreadPlacement,
    prepare: impl Fn(usize) -> Result<S> + Sync,
    work: impl Fn(usize, &mut S) -> Result<T> + Sync,
) -> Result<Vec<Member<S, T>>> {
    together(placement, Some(gate), prepare, work)
}

fn together<S: Send, T: Send>(
    placement: &ThreadPlacement,
    gate: Option<impl FnOnce() -> Result<()>>,
    prepare: impl Fn(usize) -> Result<S> + Sync,
    work: impl Fn(usize, &mut S) -> Result<T> + Sync,
) -> Result<Vec<Member<S, T>>> {
    if placement.on_caller {
        let start = || gate.map_or(Ok(()), |gate| gate());
        return Ok(vec![serve(0, placement.cpus[0], start, prepare, work)?]);
    }
    let start = TeamStart {
        session: placement.session,
        barrier: Barrier::new(placement.session, placement.threads()),
        latch: gate.as_ref().map(|_| Latch::new(placement.session, placement.threads())),
    };
    let member = |thread: usize| {
        let _release = ReleaseOnPanic(&start);
        let outcome = serve(thread, placement.cpus[thread], || start.wait(), &prepare, &work);
        if outcome.is_err() {
            start.give_up();
        }
        outcome
    };
    let (opened, outcomes) = std::thread::scope(|scope| {
        let spawn = |thread| {
            let member = &member;
            workers::start(scope, None, move || member(thread)).inspect_err(|_| start.give_up())
        };
        let handles: Vec<_> = (0..placement.threads()).map(spawn).collect();
        let behind = start.latch.as_ref().zip(gate);
        let opened = behind.map_or(Ok(None), |(latch, gate)| latch.open_behind(gate));
        let join = |worker: Result<JoinedWorker<'_, _>, _>| worker.and_then(JoinedWorker::join);
        (opened, handles.into_iter().map(join).collect::<Vec<_>>())
    });
    opened?;
    placement.session.check()?;
    first_cause(outcomes)
}

/// All members, or the error that began it: members that left the barrier because another had
/// failed are not the cause.
fn first_cause<M>(outcomes: Vec<Result<M>>) -> Result<Vec<M>> {
    let is_cause =
        |outcome: &Result<M>| outcome.as_ref().is_err_and(|error| error.name != LEFT_ALONE);
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
    start: impl FnOnce() -> Result<()>,
    prepare: impl Fn(usize) -> Result<S>,
    work: impl Fn(usize, &mut S) -> Result<T>,
) -> Result<Member<S, T>> {
    if let Some(cpu) = cpu {
        affinity::pin(cpu)?;
    }
    let mut state = prepare(thread)?;
    touch::own_pages();
    start()?;
    let section = timed::start();
    let started_ns = clock::monotonic_ns();
    let result = work(thread, &mut state);
    let ended_ns = clock::monotonic_ns();
    // A failure may allocate its sentence; its times are not used.
    let result = result?;
    section.stop();
    Ok(Member { thread, cpu, started_ns, ended_ns, state, result })
}

/// What the threads of a team wait for: the gate, if there is one, then each other.
struct TeamStart {
    session: Session,
    latch: Option<Latch>,
    barrier: Barrier,
}

impl TeamStart {
    fn wait(&self) -> Result<()> {
        if self.latch.as_ref().is_none_or(Latch::wait) && self.barrier.wait() {
            return Ok(());
        }
        self.session.check()?;
        let message = "A thread could not start because another failed.";
        Err(ProbeError::new(FailureKind::Failed, LEFT_ALONE, message, "See the other error."))
    }

    fn give_up(&self) {
        self.barrier.give_up();
        self.latch.iter().for_each(Latch::give_up);
    }
}

/// Nobody waits for a thread whose assertion failed.
struct ReleaseOnPanic<'a>(&'a TeamStart);

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
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    fn failed(name: &'static str) -> ProbeError {
        ProbeError::new(FailureKind::Failed, name, "It failed.", "Nothing.")
    }

    #[test]
    fn every_thread_works_once_after_all_are_prepared() {
        let placement = ThreadPlacement::choose(Session::detached(), 5).unwrap();
        let prepared = AtomicUsize::new(0);
        let members = run(
            &placement,
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
        let placement = ThreadPlacement::choose(Session::detached(), 3).unwrap();
        let prepare = |thread| if thread == 2 { Err(failed("third")) } else { Ok(()) };
        let error = run(&placement, prepare, |_, ()| Ok(())).unwrap_err();
        assert_eq!(error.name, "third");
        let error = run(&placement, |_| Ok(()), |_, ()| -> Result<(), _> { Err(failed("work")) });
        assert_eq!(error.unwrap_err().name, "work");
    }

    #[test]
    fn the_gate_lies_between_the_last_preparation_and_the_first_work() {
        let placement = ThreadPlacement::choose(Session::detached(), 3).unwrap();
        let (prepared, open) = (AtomicUsize::new(0), AtomicBool::new(false));
        let members = run_behind(
            || {
                assert_eq!(prepared.load(Ordering::SeqCst), 3);
                open.store(true, Ordering::SeqCst);
                Ok(())
            },
            &placement,
            |_| Ok(prepared.fetch_add(1, Ordering::SeqCst)),
            |_, _| Ok(open.load(Ordering::SeqCst)),
        );
        assert!(members.unwrap().iter().all(|member| member.result));
        let shut = || Err(failed("gate"));
        let error = run_behind(shut, &placement, |_| Ok(()), |_, ()| Ok(())).unwrap_err();
        assert_eq!(error.name, "gate");
        let prepare = |thread| if thread == 1 { Err(failed("second")) } else { Ok(()) };
        let error =
            run_behind(|| panic!("opened"), &placement, prepare, |_, ()| Ok(())).unwrap_err();
        assert_eq!(error.name, "second");
    }

    #[test]
    fn zero_threads_means_every_allowed_cpu_and_too_many_are_noted() {
        let allowed = affinity::allowed();
        let placement = ThreadPlacement::choose(Session::detached(), 0).unwrap();
        assert_eq!(placement.cpus, allowed.iter().copied().map(Some).collect::<Vec<_>>());
        assert!(placement.notes.is_empty());
        assert_eq!(
            ThreadPlacement::choose(Session::detached(), allowed.len() + 1).unwrap().notes.len(),
            1
        );
    }
}
