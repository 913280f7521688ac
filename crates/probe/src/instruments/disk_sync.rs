//! # What it measures
//! Latency of durable small writes: a write and the call that makes it durable. Databases, message
//! queues and journals wait for it on each commit.
//!
//! # How
//! Each operation writes one record of an unnamed scratch file through the page cache and waits for
//! it: `pwrite` and `fsync`, `pwrite` and `fdatasync`, or `pwrite` to a file opened with `O_DSYNC`.
//! With `append` the file grows, so that its size is made durable too; otherwise records that were
//! written and synced before are overwritten in turn. The first operation is not counted. The trial
//! ends after `operations`, or after the first one that ends later than `duration_ns`.
//!
//! # Known truth
//! The histogram has one value per operation. Rate times mean latency is 1. Each sync reaches the
//! device: its flush or write counter rises by at least one per operation.
//!
//! # Cross-check
//! `fio --rw=write --fsync=1` reports the same as `sync` latency, without the write.
//!
//! # Overhead
//! At most `operations` records and syncs; other programs on the file system wait for its journal.
//!
//! # Caveats
//! A device or hypervisor that acknowledges flushes without performing them cannot be detected by
//! timing; latencies below about 20 µs are suspicious. Files in memory (tmpfs) are refused.
use crate::buffer::{Buffer, Pages};
use crate::closed_loop::latency_histogram;
use crate::disk::pattern;
use crate::disk::scratch::Scratch;
use crate::disk::{errors, place};
use crate::error::{ProbeError, Result};
use crate::session::Session;
use crate::trial::Trial;
use crate::{clock, timed, trial::factors};
use nephoscope_wire::random::Random;
use nephoscope_wire::spec::{Metric, Param, Spec};
use std::io::Error;
use std::os::fd::AsRawFd;

pub const SPEC: Spec = Spec {
    id: "disk.sync",
    summary: "Latency of durable small writes (fsync, fdatasync, O_DSYNC)",
    params: &[
        Param::text("directory", "")
            .doc("Directory of the scratch file; empty takes $TMPDIR, else /var/tmp."),
        Param::int("record_bytes", 4096, 1..=64 << 20).doc("Bytes per write."),
        Param::choice("method", "fsync", &["fsync", "fdatasync", "o_dsync"])
            .doc("System call or flag that makes a write durable."),
        Param::switch("append", true).doc("Append to the file instead of overwriting it."),
        Param::count("operations", 50, 1..=1_000_000).doc("Maximum number of writes."),
        Param::int("duration_ns", 1_000_000_000, 1_000_000..=3_600_000_000_000)
            .doc("Time after which no further write starts."),
    ],
    metrics: &[
        Metric::lower("sync_latency_ns")
            .histogram()
            .headline()
            .doc("Time of a write including the call that makes it durable."),
        Metric::higher("syncs_per_s").doc("Durable writes per second, one at a time."),
    ],
    overhead:
        "at most `operations` writes and flushes, during which other programs wait for the journal",
    source: "the commit path of databases: write, fsync, acknowledge (POSIX synchronized I/O)",
    ..Spec::EMPTY
};

/// Records that overwriting goes round in: more than a device is likely to merge, quickly filled.
const OVERWRITTEN_RECORDS: u64 = 64;

pub fn run(trial: &mut Trial) -> Result<()> {
    let params = &trial.params;
    let (record_bytes, append) = (params.size("record_bytes"), params.bool("append"));
    let operations = params.u64("operations");
    let duration_ns = params.u64("duration_ns");
    let method = Method::of(params.text("method"));
    let directory = place::directory(params.text("directory"));
    if place::in_memory(&directory)? {
        return Err(errors::no_disk(&directory));
    }
    let records = if append { operations + 1 } else { OVERWRITTEN_RECORDS };
    place::check_space(&directory, records * record_bytes as u64)?;
    let flags = if method == Method::ODsync { libc::O_DSYNC } else { 0 };
    let scratch = Scratch::open(trial.session, &directory, flags)?;
    let seed = clock::realtime_ns();
    if !append {
        scratch.fill(records * record_bytes as u64, seed)?;
    }
    let mut writer = Writer::new(&scratch, method, record_bytes, records, seed)?;
    writer.write_and_sync()?;

    let mut histogram = latency_histogram();
    trial.prepared()?;
    let section = timed::start();
    let mut started_ns = section.read_ns();
    let first_ns = started_ns;
    while histogram.len() < operations {
        trial.session.check()?;
        writer.write_and_sync()?;
        let now_ns = section.read_ns();
        histogram.saturating_record((now_ns - started_ns).max(1));
        started_ns = now_ns;
        if now_ns - first_ns >= duration_ns {
            break;
        }
    }
    section.stop_with_kernel_io();
    let elapsed_ns = started_ns - first_ns;
    let rate = histogram.len() as f64 * 1e9 / elapsed_ns as f64;
    trial.out.emit("syncs_per_s", rate, factors! {})?;
    trial.emit_histogram("sync_latency_ns", &histogram, &factors! {})
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Fsync,
    Fdatasync,
    ODsync,
}

impl Method {
    fn of(word: &str) -> Self {
        match word {
            "fdatasync" => Self::Fdatasync,
            "o_dsync" => Self::ODsync,
            _ => Self::Fsync,
        }
    }
}

/// Writes the records of a file in order, each made durable.
struct Writer<'a> {
    scratch: &'a Scratch,
    method: Method,
    buffer: Buffer,
    record_bytes: usize,
    records: u64,
    turn: u64,
}

impl<'a> Writer<'a> {
    fn new(
        scratch: &'a Scratch,
        method: Method,
        record_bytes: usize,
        records: u64,
        seed: u64,
    ) -> Result<Self> {
        let mut buffer = Buffer::map(record_bytes, Pages::Default)?;
        Random::new(seed).fill(buffer.as_mut_slice());
        Ok(Self { scratch, method, buffer, record_bytes, records, turn: 0 })
    }

    /// One record, safe on the disk when this returns.
    fn write_and_sync(&mut self) -> Result<()> {
        let fd = self.scratch.file.as_raw_fd();
        let at = (self.turn % self.records * self.record_bytes as u64).cast_signed();
        let data = &mut self.buffer.as_mut_slice()[..self.record_bytes];
        pattern::stamp(data, self.turn);
        self.turn += 1;
        // SAFETY: the buffer is as long as said, the descriptor is open.
        let done = through_interruptions(self.scratch.session, || unsafe {
            libc::pwrite(fd, data.as_ptr().cast(), data.len(), at)
        });
        match done.map(|done| usize::try_from(done).unwrap_or(0)) {
            Ok(done) if done == self.record_bytes => {}
            Ok(done) => {
                self.scratch.session.check()?;
                let place = &self.scratch.directory;
                return Err(errors::short_transfer(place, done, self.record_bytes));
            }
            Err(error) => return Err(self.failed("Writing a record", &error)),
        }
        let synced = through_interruptions(self.scratch.session, || {
            // SAFETY: the descriptor is open.
            let rc = unsafe {
                match self.method {
                    Method::Fsync => libc::fsync(fd),
                    Method::Fdatasync => libc::fdatasync(fd),
                    Method::ODsync => 0,
                }
            };
            rc as isize
        });
        synced.map(|_| ()).map_err(|error| self.failed("Syncing a record", &error))
    }

    fn failed(&self, what: &str, error: &Error) -> ProbeError {
        self.scratch.session.check().err().unwrap_or_else(|| self.scratch.named(what, error))
    }
}

/// Repeats a call that a signal interrupted, until the trial is told to end.
fn through_interruptions(
    session: Session,
    mut call: impl FnMut() -> isize,
) -> Result<isize, Error> {
    loop {
        let result = call();
        if result >= 0 {
            return Ok(result);
        }
        let error = Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted || session.is_cancelled() {
            return Err(error);
        }
    }
}
