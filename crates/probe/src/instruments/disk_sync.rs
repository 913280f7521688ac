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
use crate::disk::job::DiskJob;
use crate::disk::mover::Mover;
use crate::disk::scratch::Scratch;
use crate::disk::{errors, place};
use crate::error::Result;
use crate::timing::closed_loop::latency_histogram;
use crate::timing::timed;
use crate::trial::factors;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_wire::meaning::{Contended, Headline, Literal, Victim};
use nephoscope_wire::spec::{Metric, Param, RequestLoop, Resource, Spec};
use std::fs::File;
use std::io::Error;

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
            .in_summary(Headline::of("Synced write, median").statistic("p50"))
            .doc("Time of a write including the call that makes it durable."),
        Metric::higher("syncs_per_s").doc("Durable writes per second, one at a time."),
    ],
    overhead:
        "at most `operations` writes and flushes, during which other programs wait for the journal",
    source: "the commit path of databases: write, fsync, acknowledge (POSIX synchronized I/O)",
    request_loop: RequestLoop::Closed,
    victim_for: &[Victim {
        resource: Contended::Fsync,
        metric: "syncs_per_s",
        params: &[("operations", Literal::Int(100)), ("duration_ns", Literal::Int(300_000_000))],
    }],
    ..Spec::about(Resource::DiskWrite)
};

/// Records that overwriting goes round in: more than a device is likely to merge, quickly filled.
const OVERWRITTEN_RECORDS: u64 = 64;

pub fn run(trial: &mut Trial) -> Result<()> {
    let params = &trial.params;
    let (record_bytes, append) = (params.size("record_bytes"), params.bool("append"));
    let operations = params.u64("operations");
    let duration_ns = params.u64("duration_ns");
    let method = params.text("method");
    let flags = if method == "o_dsync" { libc::O_DSYNC } else { 0 };
    let sync: fn(&File) -> Result<(), Error> = match method {
        "fdatasync" => File::sync_data,
        "o_dsync" => |_| Ok(()),
        _ => File::sync_all,
    };
    let directory = place::directory(params.text("directory"));
    if place::in_memory(&directory)? {
        return Err(errors::no_disk(&directory));
    }
    let records = if append { operations + 1 } else { OVERWRITTEN_RECORDS };
    place::check_space(&directory, records * record_bytes as u64)?;
    let scratch = Scratch::open(trial.session, &directory, flags)?;
    let seed = clock::realtime_ns();
    if !append {
        scratch.fill(records * record_bytes as u64, seed)?;
    }
    let job = DiskJob::new(&scratch, true, record_bytes, records, seed);
    let mut mover = Mover::new(&job, 0)?;
    let mut write_and_sync = || {
        mover.move_next()?;
        let failed = |error: Error| scratch.named("Syncing a record", &error);
        sync(&scratch.file).map_err(|error| scratch.session.check().err().unwrap_or(failed(error)))
    };
    write_and_sync()?;

    let mut histogram = latency_histogram();
    trial.prepared()?;
    let section = timed::start();
    let mut started_ns = section.read_ns();
    let first_ns = started_ns;
    while histogram.len() < operations {
        trial.session.check()?;
        write_and_sync()?;
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
