//! # What it measures
//! Operations per second, bandwidth and latency of a file: sequential or random reads or writes
//! with 1 to 256 operations in flight. With `direct` the page cache is bypassed and metrics are
//! named `disk_...`. Without it they are `disk_...` only if the file is at least twice the memory
//! that this process may use, else `cached_...`: those measure memory.
//!
//! # How
//! An unnamed scratch file (`O_TMPFILE`, else created and unlinked) is filled with incompressible
//! data and synced. `queue_depth` operations are kept in flight, closed loop: each completion
//! submits the next operation. Latency is the time from just before submission to the observed
//! completion. A warm-up of a tenth of `duration_ns` is not counted; counting starts with a
//! completion and ends at the first one at least `duration_ns` later. With `io_uring` the
//! operations then in flight still count: dropping them would drop the slow ones. Random offsets
//! come from a seeded SplitMix64; each written sector has a new mark, so that nothing can be
//! deduplicated. The engine is `io_uring` (no registered entries, buffers or files, no polling
//! thread) or, if the kernel or a sandbox forbids it, `pread` and `pwrite` in one thread per
//! operation in flight; the factor `engine` states which.
//!
//! A direct file must have stayed out of the page cache (`mincore`), or the trial fails. A small
//! direct file (64 MiB) is sufficient unless the device has a cache of its own.
//!
//! # Known truth
//! The rate of a block-layer throttle (cgroup `blkio`, root) is reported within 5 %. Bytes equal
//! those that the kernel accounts to the process, within warm-up and queue. By Little's law rate
//! times mean latency is `queue_depth` within 10 %; a trial in which a stall at the edge of the
//! window breaks it has a note.
//!
//! # Cross-check
//! `benchmarks/disk_io_vs_fio.py` alternates with fio and `io_uring`: 4 KiB random reads, direct,
//! depth 1 and 32.
//!
//! # Overhead
//! Writes `file_bytes` once before each trial; the disk at 100 % and part of a CPU for 1.1 times
//! `duration_ns`; memory of the records in flight, at most 1 GiB. Nothing stays on the disk, even
//! after SIGKILL (without `O_TMPFILE`: except between creating and unlinking).
//!
//! # Caveats
//! Closed loop: latency is that at saturation for this depth. The host's cache is invisible to a
//! guest and not bypassed by direct I/O, nor is the ARC of ZFS before 2.3. Writes are not flushed:
//! see `disk.sync`. Burst allowances show as bursts. Thin provisioning makes the first write of a
//! block slow; filling pays for it.
use crate::disk::job::DiskJob;
use crate::disk::memory::reaches_disk;
use crate::disk::scratch::Scratch;
use crate::disk::{engine_ring, engine_sync, errors, place};
use crate::error::{FailureKind, ProbeError, Result};
use crate::timing::closed_loop::ClosedLoopResult;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::{Factors, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::meaning::{ClosedLoop, Contended, Headline, Literal, Victim};
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Metric, Param, RequestLoop, Resource, Spec};
use std::path::Path;

pub const SPEC: Spec = Spec {
    id: "disk.io",
    summary: "I/O operations per second, bandwidth and latency of reads or writes of a file",
    params: &[
        Param::text("directory", "")
            .doc("Directory of the scratch file; empty takes $TMPDIR, else /var/tmp."),
        Param::int("file_bytes", 64 << 20, 4096..=1 << 44)
            .doc("Size of the scratch file, rounded down to whole records."),
        Param::int("record_bytes", 4096, 512..=64 << 20)
            .doc("Bytes per operation; direct I/O needs a multiple of 512."),
        Param::choice("operation", "randread", &["read", "write", "randread", "randwrite"])
            .doc("Sequential or random reads or writes, named as in fio."),
        Param::count("queue_depth", 1, 1..=256).doc("Number of operations in flight."),
        Param::switch("direct", true).doc("Bypass the page cache of this machine."),
        Param::int("duration_ns", 500_000_000, 1_000_000..=3_600_000_000_000)
            .doc("Measured time, after a warm-up of a tenth of it."),
        Param::choice("engine", "auto", &["auto", "io_uring", "sync"])
            .doc("I/O engine; auto takes io_uring if it is available."),
        Param::seed().doc("Random seed of offsets and data; 0 takes the clock."),
    ],
    metrics: &[
        Metric::higher("disk_operations_per_s")
            .headline()
            .in_summary(
                Headline::of("Random read IOPS")
                    .prefer(&[
                        ("operation", Literal::Text("randread")),
                        ("record_bytes", Literal::Text("minimum")),
                        ("queue_depth", Literal::Text("maximum")),
                    ])
                    .without(&["operation", "engine", "direct"]),
            )
            .doc("Operations per second of the disk."),
        Metric::higher("disk_bytes_per_s").headline().doc("Bytes per second of the disk."),
        Metric::lower("disk_latency_ns")
            .histogram()
            .doc("Time from submission to completion of an operation of the disk."),
        Metric::higher("cached_operations_per_s")
            .headline()
            .doc("Operations per second if the page cache may hold the file."),
        Metric::higher("cached_bytes_per_s")
            .headline()
            .doc("Bytes per second if the page cache may hold the file."),
        Metric::lower("cached_latency_ns")
            .histogram()
            .doc("Time of an operation if the page cache may hold the file."),
    ],
    overhead: "writes file_bytes once; the disk at 100 % for 1.1 times duration_ns",
    source: "fio's closed loop with iodepth; Axboe, Efficient IO with io_uring, 2019",
    request_loop: RequestLoop::Closed,
    closed_loops: &[
        ClosedLoop {
            rate: "disk_operations_per_s",
            latency: "disk_latency_ns",
            depth: "queue_depth",
        },
        ClosedLoop {
            rate: "cached_operations_per_s",
            latency: "cached_latency_ns",
            depth: "queue_depth",
        },
    ],
    victim_for: &[
        Victim {
            resource: Contended::DiskRead,
            metric: "disk_operations_per_s",
            params: &[
                ("operation", Literal::Text("randread")),
                ("duration_ns", Literal::Int(200_000_000)),
            ],
        },
        Victim {
            resource: Contended::DiskWrite,
            metric: "disk_operations_per_s",
            params: &[
                ("operation", Literal::Text("randwrite")),
                ("duration_ns", Literal::Int(200_000_000)),
            ],
        },
    ],
    ..Spec::about(Resource::Disk)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings = DiskIoSettings::of(&trial.params)?;
    let file_bytes = settings.file_bytes();
    let directory = place::directory(trial.params.text("directory"));
    let disk = settings.direct || reaches_disk(trial, &directory, file_bytes)?;
    place::check_space(&directory, file_bytes)?;
    let scratch = prepare(trial, &settings, &directory, disk)?;
    let DiskIoSettings { write, random, record_bytes, records, depth, seed, .. } = settings;
    let duration_ns = trial.params.u64("duration_ns");
    let job = DiskJob {
        random,
        depth,
        duration_ns,
        ..DiskJob::new(&scratch, write, record_bytes, records, seed)
    };
    let (outcome, engine) = measure(trial, &job)?;
    note_littles_law(trial, &outcome, job.depth);
    if settings.direct {
        scratch.check_bypassed()?;
    }
    let factors = factors! {"engine": engine, "direct": settings.direct};
    report(trial, &outcome, disk, job.record_bytes, &factors)
}

/// Parameters that depend on each other, checked.
struct DiskIoSettings {
    record_bytes: usize,
    records: u64,
    depth: usize,
    direct: bool,
    write: bool,
    random: bool,
    seed: u64,
}

impl DiskIoSettings {
    /// Records in flight are held in memory at once.
    const IN_FLIGHT_BYTES: usize = 1 << 30;

    fn of(params: &Params) -> Result<Self> {
        let (record_bytes, depth) = (params.size("record_bytes"), params.size("queue_depth"));
        let direct = params.bool("direct");
        let file_bytes = params.u64("file_bytes");
        let usage = |message: String, hint: &str| Err(ProbeError::usage(message, hint));
        if direct {
            errors::check_sectors("disk.io", record_bytes)?;
        }
        if record_bytes * depth > Self::IN_FLIGHT_BYTES {
            return usage(
                format!("disk.io: {depth} records of {record_bytes} bytes in flight exceed 1 GiB."),
                "Set a smaller `queue_depth` or `record_bytes`.",
            );
        }
        let records = file_bytes / record_bytes as u64;
        if records < depth as u64 {
            return usage(
                format!(
                    "disk.io: file_bytes {file_bytes} holds {records} records of {record_bytes} \
                     bytes, fewer than the {depth} in flight."
                ),
                "Set a larger `file_bytes`.",
            );
        }
        let operation = params.text("operation");
        let (write, random) = (operation.ends_with("write"), operation.starts_with("rand"));
        let seed = parameters::seed(params);
        Ok(Self { record_bytes, records, depth, direct, write, random, seed })
    }

    fn file_bytes(&self) -> u64 {
        self.records * self.record_bytes as u64
    }
}

fn prepare(
    trial: &mut Trial,
    settings: &DiskIoSettings,
    directory: &Path,
    disk: bool,
) -> Result<Scratch> {
    let scratch = Scratch::open(trial.session, directory, 0)?;
    if settings.direct {
        scratch.make_direct()?;
    }
    let started_ns = clock::monotonic_ns();
    scratch.fill(settings.file_bytes(), settings.seed)?;
    let seconds = (clock::monotonic_ns() - started_ns) as f64 / 1e9;
    if seconds > 5.0 {
        trial.out.note(format!("Filling the scratch file took {seconds:.1} s."));
    }
    if disk && !settings.direct {
        // The end of the file is still in the cache; a measurement of the disk starts without it.
        scratch.drop_cache();
    }
    Ok(scratch)
}

/// Runs the job on the engine that was asked for, and says which one it was.
fn measure(trial: &mut Trial, job: &DiskJob<'_>) -> Result<(ClosedLoopResult, &'static str)> {
    let wanted = trial.params.text("engine").to_owned();
    if wanted == "sync" {
        return Ok((engine_sync::run(job, || trial.prepared())?, "sync"));
    }
    match engine_ring::ring(job.depth) {
        Ok(mut ring) => Ok((engine_ring::run(job, &mut ring, || trial.prepared())?, "io_uring")),
        Err(error) if wanted == "auto" => {
            trial.out.note(format!(
                "io_uring cannot be used here ({error}); the synchronous engine ran instead, one \
                 thread for each operation in flight."
            ));
            Ok((engine_sync::run(job, || trial.prepared())?, "sync"))
        }
        Err(error) => Err(ProbeError::new(
            FailureKind::Lacks,
            "no_io_uring",
            format!("io_uring cannot be used here: {error}."),
            "Set `engine` to auto or sync, or allow it (sysctl kernel.io_uring_disabled=0).",
        )),
    }
}

/// Rate times mean latency is what was in flight, but for the operations that the edges of the counted
/// time cut. A stall there is the disk's own doing, so the trial counts, and says so.
fn note_littles_law(trial: &mut Trial, outcome: &ClosedLoopResult, depth: usize) {
    let in_flight = outcome.operations_per_s * outcome.latency.mean() / 1e9;
    if (in_flight / depth as f64 - 1.0).abs() > 0.1 {
        trial.out.note(format!(
            "Rate times mean latency is {in_flight:.2} where {depth} were in flight: the disk stalled \
             at the edge of the counted time, or it held too few operations."
        ));
    }
}

fn report(
    trial: &mut Trial,
    outcome: &ClosedLoopResult,
    disk: bool,
    record_bytes: usize,
    factors: &Factors,
) -> Result<()> {
    let (operations, bytes, latency) = if disk {
        ("disk_operations_per_s", "disk_bytes_per_s", "disk_latency_ns")
    } else {
        ("cached_operations_per_s", "cached_bytes_per_s", "cached_latency_ns")
    };
    let rate = outcome.operations_per_s;
    trial.out.emit(operations, rate, factors.clone())?;
    trial.out.emit(bytes, rate * record_bytes as f64, factors.clone())?;
    trial.emit_histogram(latency, &outcome.latency, factors)
}
