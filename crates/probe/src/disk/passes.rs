//! One pass over whole files: each thread moves all records of its own file once, and the pass is
//! from the first start to the last end.
use super::job::DiskJob;
use super::mover::Mover;
use super::pattern::RecordOrder;
use super::scratch::Scratch;
use crate::error::{ProbeError, Result};
use crate::threads::barriers::Latch;
use crate::threads::workers::{self, JoinedWorker};
use crate::timing::closed_loop::latency_histogram;
use crate::timing::timed;
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use nephoscope_wire::random::Random;

#[derive(Clone, Copy, Debug)]
pub struct DiskPass {
    pub write: bool,
    /// Each record once in a drawn order, or one after the other.
    pub random: bool,
    pub record_bytes: usize,
    pub records: u64,
    /// The time includes making the file safe on the disk.
    pub fsync: bool,
    /// The time includes closing the file.
    pub close: bool,
    pub seed: u64,
}

#[derive(Debug)]
pub struct Passed {
    /// From the first start to the last end.
    pub elapsed_ns: u64,
    pub operations: u64,
    /// Time of each record alone.
    pub latency: Histogram<u64>,
}

/// Runs the pass over `files`, one thread each; calls `gate` when all is prepared.
pub fn run(pass: DiskPass, files: &[Scratch], gate: impl FnOnce() -> Result<()>) -> Result<Passed> {
    // Opened anew, so that closing it is closing it.
    let handles: Result<Vec<_>, _> =
        files.iter().map(|file| file.again(pass.random && !pass.write)).collect();
    let handles = handles?;
    if let [handle] = handles.as_slice() {
        let thread = || {
            let ready = PreparedThread::new(pass, handle, 0)?;
            gate()?;
            ready.run()
        };
        return thread().map(|done| whole([done.closing(pass, handles)]));
    }
    let session = files[0].session;
    let latch = Latch::new(session, handles.len());
    let done: Result<Vec<PassResult>> = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(handles.len());
        for (number, handle) in handles.into_iter().enumerate() {
            let latch = &latch;
            let work = move || {
                let ready = PreparedThread::new(pass, &handle, number as u64);
                if ready.is_err() {
                    latch.give_up();
                }
                let ready = ready?;
                if !latch.wait() {
                    session.check()?;
                    return Ok(None);
                }
                let done = ready.run()?;
                Ok(Some(done.closing(pass, vec![handle])))
            };
            threads.push(workers::start(scope, None, work).inspect_err(|_| latch.give_up()));
        }
        let opened = latch.open_behind(gate);
        let join = |worker: Result<JoinedWorker<'_, _>, _>| worker.and_then(JoinedWorker::join);
        let ended: Result<Vec<Option<PassResult>>, _> = threads.into_iter().map(join).collect();
        opened.and(ended).map(|done| done.into_iter().flatten().collect())
    });
    Ok(whole(done?))
}

/// One thread, all of its buffers made.
struct PreparedThread<'a> {
    job: DiskJob<'a>,
    order: Vec<u32>,
    number: u64,
    pass: DiskPass,
}

impl<'a> PreparedThread<'a> {
    fn new(pass: DiskPass, scratch: &'a Scratch, number: u64) -> Result<Self> {
        let DiskPass { write, random, record_bytes, records, seed, .. } = pass;
        let job = DiskJob { random, ..DiskJob::new(scratch, write, record_bytes, records, seed) };
        let mut order = Vec::new();
        if random {
            let last = u32::try_from(records).map_err(|_| too_many(records))?;
            order = (0..last).collect();
            Random::new(seed ^ number).shuffle(&mut order);
        }
        Ok(Self { job, order, number, pass })
    }

    fn run(self) -> Result<PassResult> {
        let mut mover = match self.order.as_slice() {
            [] => Mover::new(&self.job, self.number)?,
            order => Mover::along(&self.job, self.number, RecordOrder::Listed(order.iter()))?,
        };
        let mut latency = latency_histogram();
        let section = timed::start();
        let started_ns = clock::monotonic_ns();
        let mut last_ns = started_ns;
        for _ in 0..self.pass.records {
            self.job.scratch.session.check()?;
            mover.move_next()?;
            let now_ns = clock::monotonic_ns();
            latency.saturating_record((now_ns - last_ns).max(1));
            last_ns = now_ns;
        }
        if self.pass.write && self.pass.fsync {
            self.job.scratch.sync()?;
        }
        let ended_ns = clock::monotonic_ns();
        section.stop_with_kernel_io();
        Ok(PassResult { started_ns, ended_ns, operations: self.pass.records, latency })
    }
}

struct PassResult {
    started_ns: u64,
    ended_ns: u64,
    operations: u64,
    latency: Histogram<u64>,
}

impl PassResult {
    /// Closes the file; inside the time where the pass says so.
    fn closing(mut self, pass: DiskPass, handles: Vec<Scratch>) -> Self {
        let before_ns = clock::monotonic_ns();
        drop(handles);
        if pass.close {
            self.ended_ns += clock::monotonic_ns() - before_ns;
        }
        self
    }
}

fn whole(done: impl IntoIterator<Item = PassResult>) -> Passed {
    let (mut first_ns, mut last_ns) = (u64::MAX, 0);
    let mut passed = Passed { elapsed_ns: 0, operations: 0, latency: latency_histogram() };
    for part in done {
        first_ns = first_ns.min(part.started_ns);
        last_ns = last_ns.max(part.ended_ns);
        passed.operations += part.operations;
        passed.latency.add(&part.latency).expect("all histograms have the same bounds");
    }
    passed.elapsed_ns = last_ns.saturating_sub(first_ns).max(1);
    passed
}

fn too_many(records: u64) -> ProbeError {
    ProbeError::usage(
        format!("A random pass over {records} records needs a list of them that is too long."),
        "Set a smaller `file_bytes` or a larger record.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::place;
    use crate::error::FailureKind;
    use std::os::unix::fs::FileExt;

    const RECORD: usize = 4096;
    const RECORDS: u64 = 64;

    fn pass(write: bool, random: bool) -> DiskPass {
        DiskPass {
            write,
            random,
            record_bytes: RECORD,
            records: RECORDS,
            fsync: true,
            close: true,
            seed: 9,
        }
    }

    fn files(count: usize) -> Vec<Scratch> {
        (0..count)
            .map(|_| {
                Scratch::open(crate::trial::session::Session::detached(), &place::directory(""), 0)
                    .unwrap()
            })
            .collect()
    }

    #[test]
    fn a_pass_moves_every_record_of_every_file_once() {
        for (threads, random) in [(1, false), (1, true), (3, false), (3, true)] {
            let files = files(threads);
            let passed = run(pass(true, random), &files, || Ok(())).unwrap();
            assert_eq!(passed.operations, threads as u64 * RECORDS);
            assert_eq!(passed.latency.len(), passed.operations);
            for file in &files {
                assert_eq!(file.file.metadata().unwrap().len(), RECORDS * RECORD as u64);
                let mut record = [0u8; RECORD];
                for at in 0..RECORDS {
                    file.file.read_exact_at(&mut record, at * RECORD as u64).unwrap();
                    assert!(record.iter().filter(|b| **b == 0).count() < 128, "hole at {at}");
                }
            }
            let read = run(pass(false, random), &files, || Ok(())).unwrap();
            assert_eq!(read.operations, passed.operations);
        }
    }

    #[test]
    fn reading_what_is_not_there_is_an_error_and_not_a_figure() {
        for threads in [1, 2] {
            let error = run(pass(false, false), &files(threads), || Ok(())).unwrap_err();
            assert_eq!(error.name, "short_transfer");
        }
    }

    #[test]
    fn a_gate_that_stays_shut_ends_all() {
        for threads in [1, 2] {
            let shut = || Err(ProbeError::new(FailureKind::Failed, "gate", "No.", "No."));
            let error = run(pass(true, false), &files(threads), shut).unwrap_err();
            assert_eq!(error.name, "gate");
        }
    }
}
