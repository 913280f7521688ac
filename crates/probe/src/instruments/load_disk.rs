//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It reads, writes or syncs a
//! file at full speed, for a share of the time or at a fixed rate, and counts its operations, so
//! that its presence is verified.
//!
//! # How
//! An unnamed scratch file is filled with incompressible data and synced before the load starts.
//! Each thread has one operation in flight: `read` and `write` move a record past the page cache
//! (`direct`), sequentially or at random; `fsync` writes a record through the page cache and syncs
//! it. Each written sector has a new mark. Without direct I/O each record is dropped from the page
//! cache after a read, or pushed to the disk after a write (`sync_file_range`; on an overlay by
//! syncing the file), so that the disk is loaded all the same; a note states so.
//!
//! With `operations_per_s` 0 a thread works `intensity_ratio` of each period by the wall clock;
//! excess is deducted from the next periods. Otherwise the threads start `intensity_ratio` times
//! `operations_per_s` operations per second at even intervals; operations late by more than
//! `interval_ns` are skipped. It ends after `duration_ns` or when stopped, with all samples in both
//! cases.
//!
//! # Known truth
//! Bytes equal those that the kernel accounts to the process. A fixed rate is kept within 2 % if
//! the disk can. The share of time with an operation in flight is `intensity_ratio` within 2
//! points, and half of it does about half of the operations. Each sync reaches the device.
//!
//! # Cross-check
//! `benchmarks/loads_vs_peers.py` alternates with fio at the same rate and at full speed.
//!
//! # Overhead
//! Writes `file_bytes` once, then the chosen load. Nothing stays on the disk, even after SIGKILL
//! (without `O_TMPFILE`: except between creating and unlinking).
//!
//! # Caveats
//! The share is of time, not of bandwidth: a parallel disk may do more than half in half of the
//! time. A host cache that holds the file is what is loaded; use a larger file. On tmpfs `fsync` is
//! refused, and a note states that the others load memory.
use crate::disk::job::DiskJob;
use crate::disk::mover::Mover;
use crate::disk::scratch::Scratch;
use crate::disk::{errors, place};
use crate::error::{ProbeError, Result};
use crate::load::load_threads::{self, CounterRate, LoadSettings, LoadTarget, Work};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, LOAD_CPUS, PERIOD};
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_wire::meaning::{Aggressor, Contended, Literal};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use std::os::fd::AsRawFd;
use std::path::Path;

pub const SPEC: Spec = Spec {
    id: "load.disk",
    summary: "Verified disk load: reads, writes or syncs a file",
    params: &[
        Param::text("directory", "")
            .doc("Directory of the scratch file; empty takes $TMPDIR, else /var/tmp."),
        Param::choice("operation", "write", &["read", "write", "fsync"])
            .doc("Read records, write them, or write and fsync each."),
        Param::choice("order", "random", &["random", "sequential"]).doc("Order of the records."),
        Param::int("file_bytes", 64 << 20, 4096..=1 << 44)
            .doc("Size of the scratch file, rounded down to whole records."),
        Param::int("record_bytes", 64 << 10, 512..=64 << 20)
            .doc("Bytes per operation; direct I/O needs a multiple of 512."),
        Param::count("threads", 4, 1..=256)
            .doc("Number of threads, each with one operation in flight."),
        CPUS.doc("CPUs to pin the threads to, round robin; an empty list pins none."),
        Param::switch("direct", true).doc("Bypass the page cache of this machine if possible."),
        Param::float("operations_per_s", 0.0, 0.0..=1e7)
            .doc("Operations per second of all threads; 0 for full speed."),
        INTENSITY
            .doc("Load level: share of each period, or of operations_per_s; 0 is an idle load."),
        PERIOD,
        INTERVAL,
        DURATION,
        Param::seed().doc("Random seed of offsets and data; 0 takes the clock."),
    ],
    metrics: &[
        Metric::neutral("load_operations_per_s")
            .headline()
            .doc("Operations completed per second, all threads."),
        Metric::neutral("load_bytes_per_s").doc("Bytes moved per second, all threads."),
        LOAD_CPUS,
        load::intensity("Share of the time with an operation in flight; or of operations_per_s."),
        Metric::neutral("interval_operations_per_s")
            .series()
            .doc("Operations completed per second in each interval, at its end."),
        Metric::neutral("interval_bytes_per_s")
            .series()
            .doc("Bytes moved per second in each interval, at its end."),
        load::interval_intensity("Load level reached in each interval, at its end."),
    ],
    overhead: "writes file_bytes once; then the chosen share of the disk",
    source: "duty-cycled and paced I/O (fio's thinktime and rate_iops)",
    load: true,
    aggressor_for: &[
        Aggressor {
            resource: Contended::DiskRead,
            params: &[("operation", Literal::Text("read"))],
        },
        Aggressor {
            resource: Contended::DiskWrite,
            params: &[("operation", Literal::Text("write"))],
        },
        Aggressor { resource: Contended::Fsync, params: &[("operation", Literal::Text("fsync"))] },
    ],
    ..Spec::about(Resource::Disk)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let per_s = trial.params.float("operations_per_s");
    let keeps = if per_s > 0.0 { LoadTarget::Rate(per_s) } else { LoadTarget::Time };
    let settings = LoadSettings::of(trial, keeps)?;
    let (threads, record_bytes) = (trial.params.size("threads"), trial.params.size("record_bytes"));
    let places = load::places(trial, threads)?;
    let seed = parameters::seed(&trial.params);
    let records = records(trial)?;
    let (scratch, direct) = prepare(trial, records * record_bytes as u64, seed)?;
    let write = trial.params.text("operation") != "read";
    let job = DiskJob {
        random: trial.params.text("order") == "random",
        depth: threads,
        ..DiskJob::new(&scratch, write, record_bytes, records, seed)
    };
    let after = match trial.params.text("operation") {
        "fsync" => After::Sync,
        _ if direct => After::Nothing,
        "read" => After::Drop,
        _ => written(&scratch.directory)?,
    };
    let rates = [
        CounterRate {
            total: "load_operations_per_s",
            interval: "interval_operations_per_s",
            each: 1.0,
        },
        CounterRate {
            total: "load_bytes_per_s",
            interval: "interval_bytes_per_s",
            each: record_bytes as f64,
        },
    ];
    load_threads::run(trial, &settings, &places, &rates, |thread| {
        Ok(Operator { mover: Mover::new(&job, thread as u64)?, job: &job, after })
    })
}

/// Whole records of the file.
fn records(trial: &Trial) -> Result<u64> {
    let params = &trial.params;
    let (record_bytes, threads) = (params.size("record_bytes"), params.size("threads"));
    let file_bytes = params.u64("file_bytes");
    let id = trial.spec().id;
    let past_cache = params.bool("direct") && params.text("operation") != "fsync";
    if past_cache {
        errors::check_sectors(id, record_bytes)?;
    }
    let records = file_bytes / record_bytes as u64;
    if records < threads as u64 {
        return Err(ProbeError::usage(
            format!(
                "{id}: file_bytes {file_bytes} holds {records} records of {record_bytes} bytes, \
                 fewer than the {threads} threads."
            ),
            "Set a larger `file_bytes`.",
        ));
    }
    Ok(records)
}

/// Makes the scratch file and fills it; whether it bypasses the page cache.
fn prepare(trial: &mut Trial, bytes: u64, seed: u64) -> Result<(Scratch, bool)> {
    let directory = place::directory(trial.params.text("directory"));
    let sync = trial.params.text("operation") == "fsync";
    let in_memory = place::in_memory(&directory)?;
    if in_memory && sync {
        return Err(errors::no_disk(&directory));
    }
    place::check_space(&directory, bytes)?;
    if trial.params.bool("direct") && !sync {
        match direct_file(trial.session, &directory, bytes, seed) {
            Err(error) if error.name == "no_direct_io" => trial.out.note(format!(
                "{} The load goes through the page cache instead, record by record.",
                error.message
            )),
            result => return result.map(|scratch| (scratch, true)),
        }
    }
    if in_memory {
        trial.out.note("The directory is a tmpfs: this loads memory, and no disk.");
    }
    buffered_file(trial.session, &directory, bytes, seed).map(|scratch| (scratch, false))
}

/// A filled file of which the page cache holds nothing yet.
fn buffered_file(session: Session, directory: &Path, bytes: u64, seed: u64) -> Result<Scratch> {
    let scratch = Scratch::open(session, directory, 0)?;
    scratch.fill(bytes, seed)?;
    // Nothing is read ahead: a record comes from the disk alone, and can be forgotten alone.
    scratch.advise(0, 0, libc::POSIX_FADV_RANDOM);
    scratch.drop_cache();
    Ok(scratch)
}

/// A filled file past the page cache. A file system may take the flag and cache all the same.
fn direct_file(session: Session, directory: &Path, bytes: u64, seed: u64) -> Result<Scratch> {
    let scratch = Scratch::open(session, directory, 0)?;
    scratch.make_direct()?;
    scratch.fill(bytes, seed)?;
    scratch.check_bypassed()?;
    Ok(scratch)
}

/// What is done with a record after it was moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Nothing,
    /// It is made safe on the disk.
    Sync,
    /// The page cache forgets it, so that the next time it comes from the disk.
    Drop,
    /// It is sent to the disk now, and then forgotten.
    Push,
    /// All of the file is made safe on the disk, and the record forgotten.
    PushAll,
}

/// What is done with a record that was written through the page cache.
fn written(directory: &Path) -> Result<After> {
    Ok(if place::on_overlay(directory)? { After::PushAll } else { After::Push })
}

struct Operator<'a> {
    job: &'a DiskJob<'a>,
    mover: Mover<'a>,
    after: After,
}

impl Work for Operator<'_> {
    fn bit(&mut self) -> Result<u64> {
        let at = self.mover.move_next()?;
        match self.after {
            After::Nothing => {}
            After::Sync => self.job.scratch.sync()?,
            After::Drop => self.forget(at),
            After::Push => {
                self.push(at)?;
                self.forget(at);
            }
            After::PushAll => {
                self.job.scratch.sync()?;
                self.forget(at);
            }
        }
        Ok(1)
    }
}

impl Operator<'_> {
    /// The record's whole pages: (start, length).
    fn pages(&self, at: u64) -> (i64, i64) {
        let (start, end) = (at / 4096 * 4096, at + self.job.record_bytes as u64);
        (start.cast_signed(), (end.next_multiple_of(4096) - start).cast_signed())
    }

    fn forget(&self, at: u64) {
        let (start, length) = self.pages(at);
        self.job.scratch.advise(start, length, libc::POSIX_FADV_DONTNEED);
    }

    fn push(&self, at: u64) -> Result<()> {
        let (start, length) = self.pages(at);
        let fd = self.job.scratch.file.as_raw_fd();
        let all = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: our own descriptor.
        if unsafe { libc::sync_file_range(fd, start, length, all) } == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(()),
            // A file system or a sandbox without the call.
            Some(libc::ENOSYS | libc::EINVAL | libc::ESPIPE) => self.job.scratch.sync(),
            _ => Err(self.job.scratch.named("Writing a record", &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn operated(operation: After, write: bool) -> (Scratch, u64) {
        let scratch =
            buffered_file(Session::detached(), &place::directory(""), 1 << 20, 5).unwrap();
        let job = DiskJob::new(&scratch, write, 16 << 10, 64, 3);
        let mut operator =
            Operator { job: &job, mover: Mover::new(&job, 0).unwrap(), after: operation };
        let done = (0..64).map(|_| operator.bit().unwrap()).sum();
        drop(operator);
        (scratch, done)
    }

    #[test]
    fn what_was_read_through_the_cache_is_not_found_there_again() {
        let (scratch, done) = operated(After::Drop, false);
        assert_eq!(done, 64);
        assert!(scratch.cached_ratio().unwrap() < 0.1);
    }

    #[test]
    fn what_is_written_changes_every_record_and_leaves_the_cache() {
        let before = buffered_file(Session::detached(), &place::directory(""), 1 << 20, 5).unwrap();
        let (scratch, done) = operated(written(&place::directory("")).unwrap(), true);
        assert_eq!(done, 64);
        assert!(scratch.cached_ratio().unwrap() < 0.1);
        for record in 0..64 {
            let (mut old, mut new) = ([0u8; 512], [0u8; 512]);
            before.file.read_exact_at(&mut old, record << 14).unwrap();
            scratch.file.read_exact_at(&mut new, record << 14).unwrap();
            assert_ne!(old, new, "record {record}");
        }
    }

    #[test]
    fn a_synced_record_is_counted_once() {
        assert_eq!(operated(After::Sync, true).1, 64);
    }
}
