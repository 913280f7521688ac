//! # What it measures
//! How many records a second a file takes or gives, how many bytes that is, and how long each record
//! takes: reading or writing, in order or at random places, with 1 to 256 operations in flight.
//! With `direct` the page cache of this machine is bypassed and the figures are named `disk_...`.
//! Without it they are named `disk_...` only if the file is at least twice as large as the memory
//! that this process may use, else `cached_...`: they then tell of memory and not of a disk.
//!
//! # How
//! A scratch file without a name (`O_TMPFILE`, else created and unlinked at once) is filled with
//! incompressible data and synced, so that reads find written extents. Then `queue_depth` operations
//! are kept in flight, closed loop: each completion starts the next operation at once, each in a
//! submission of its own. Latency counts from just before an operation is submitted until its
//! completion is seen. A first tenth of `duration_ns` on top of it warms up and is not counted; the
//! count starts with a completion, so that n operations belong to n intervals. At the first one at
//! least `duration_ns` later nothing new starts, and with `io_uring` what is then under way still
//! counts, time and all: leaving it out would leave out just the operations that take long. Random places are drawn by a seeded SplitMix64 and a
//! multiply-shift (bias under 1e-10); each sector that is written carries a new mark, so that nothing
//! can be recognised. The engine is `io_uring` (entries, buffers and files not registered, no polling
//! thread); where the kernel or a sandbox forbids it, `pread` and `pwrite` in one thread for each
//! operation in flight. The factor `engine` says which one it was.
//!
//! Whether a direct file really stayed out of the page cache is looked up afterwards (`mincore`); a
//! file system that only pretends is refused. A direct file may be small (64 MiB), because the page
//! cache has no part in it; make it larger where the device below has a cache of its own.
//!
//! # Known truth
//! Under a throttle of the block layer (cgroup `blkio`, root) the throttle's rate is reported within
//! 5 %. The bytes that the kernel accounts to the process equal those counted, within the warm-up and
//! the queue. Little's law: rate times mean latency is `queue_depth` within 10 %; a trial in which a
//! stall at the edge of the counted time breaks it carries a note.
//!
//! # Cross-check
//! `benchmarks/disk_io_vs_fio.py` runs fio with `io_uring` beside it, interleaved: 4 KiB random reads,
//! direct, depth 1 and 32.
//!
//! # Overhead
//! Writes `file_bytes` once before each trial; loads the disk fully and part of a CPU for 1.1 times
//! `duration_ns`. Memory: the records in flight, at most 1 GiB. Nothing stays on the disk, even after
//! SIGKILL (where `O_TMPFILE` is missing: but for a kill in the microsecond before the unlink).
//!
//! # Caveats
//! The load is a closed loop: latency is that at saturation for this depth, not at a set rate. The
//! host's own cache cannot be seen from inside a guest, and direct I/O does not bypass it; nor does it
//! the ARC of ZFS before 2.3. Writes are not flushed: `disk.sync` measures durable ones. A disk with
//! a burst allowance shows its burst here. On thin provisioning the first write of a block is dear;
//! filling pays for it, not the trial.
use crate::closed_loop::Outcome;
use crate::disk::job::Job;
use crate::disk::memory::reaches_disk;
use crate::disk::scratch::Scratch;
use crate::disk::settings::Settings;
use crate::disk::{engine_ring, engine_sync, place};
use crate::error::{Kind, ProbeError};
use crate::trial::{Factors, Trial};
use crate::{clock, trial::factors};
use nephoscope_wire::spec::{Metric, Param, Spec};
use std::path::Path;

pub const SPEC: Spec = Spec {
    id: "disk.io",
    summary: "Reads or writes of a file: operations and bytes a second, latency",
    params: &[
        Param::text("directory", "")
            .doc("Where the scratch file goes; empty takes $TMPDIR, else /var/tmp."),
        Param::int("file_bytes", 64 << 20, 4096..=1 << 44)
            .doc("Size of the scratch file, cut to whole records."),
        Param::int("record_bytes", 4096, 512..=64 << 20)
            .doc("Bytes of one operation; direct I/O needs whole sectors."),
        Param::choice("operation", "randread", &["read", "write", "randread", "randwrite"])
            .doc("Reading or writing, in order or at random places, in fio's words."),
        Param::count("queue_depth", 1, 1..=256).doc("Operations in flight at any time."),
        Param::switch("direct", true).doc("Bypass the page cache of this machine."),
        Param::int("duration_ns", 500_000_000, 1_000_000..=3_600_000_000_000)
            .doc("How long completions are counted, after a warm-up of a tenth of it."),
        Param::choice("engine", "auto", &["auto", "io_uring", "sync"])
            .doc("How operations are submitted; auto takes io_uring where it is allowed."),
        Param::seed().doc("Seed of the places and the data; 0 takes the clock."),
    ],
    metrics: &[
        Metric::higher("disk_operations_per_s")
            .headline()
            .doc("Operations completed a second, by the disk."),
        Metric::higher("disk_bytes_per_s").headline().doc("Bytes moved a second, by the disk."),
        Metric::lower("disk_latency_ns")
            .histogram()
            .doc("Time from submitting an operation to the disk until its completion is seen."),
        Metric::higher("cached_operations_per_s")
            .headline()
            .doc("Operations completed a second, where the page cache may hold the whole file."),
        Metric::higher("cached_bytes_per_s")
            .headline()
            .doc("Bytes moved a second, where the page cache may hold the whole file."),
        Metric::lower("cached_latency_ns")
            .histogram()
            .doc("Time of an operation, where the page cache may hold the whole file."),
    ],
    overhead: "writes file_bytes once; the disk at 100 % for 1.1 times duration_ns",
    source: "fio's closed loop with iodepth; Axboe, Efficient IO with io_uring, 2019",
    ..Spec::EMPTY
};

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let settings = Settings::of(&trial.params)?;
    let file_bytes = settings.file_bytes();
    let directory = place::directory(trial.params.text("directory"));
    let disk = settings.direct || reaches_disk(trial, &directory, file_bytes)?;
    place::check_space(&directory, file_bytes)?;
    let scratch = prepare(trial, &settings, &directory, disk)?;
    let Settings { write, random, record_bytes, records, depth, seed, .. } = settings;
    let duration_ns = trial.params.u64("duration_ns");
    let job = Job {
        random,
        depth,
        duration_ns,
        ..Job::new(&scratch, write, record_bytes, records, seed)
    };
    let (outcome, engine) = measure(trial, &job)?;
    note_littles_law(trial, &outcome, job.depth);
    if settings.direct {
        scratch.check_bypassed()?;
    }
    let factors = factors! {"engine": engine, "direct": settings.direct};
    report(trial, &outcome, disk, job.record_bytes, &factors)
}

fn prepare(
    trial: &mut Trial,
    settings: &Settings,
    directory: &Path,
    disk: bool,
) -> Result<Scratch, ProbeError> {
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
fn measure(trial: &mut Trial, job: &Job<'_>) -> Result<(Outcome, &'static str), ProbeError> {
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
            Kind::Lacks,
            "no_io_uring",
            format!("io_uring cannot be used here: {error}."),
            "Set `engine` to auto or sync, or allow it (sysctl kernel.io_uring_disabled=0).",
        )),
    }
}

/// Rate times mean latency is what was in flight, but for the operations that the edges of the counted
/// time cut. A stall there is the disk's own doing, so the trial counts, and says so.
fn note_littles_law(trial: &mut Trial, outcome: &Outcome, depth: usize) {
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
    outcome: &Outcome,
    disk: bool,
    record_bytes: usize,
    factors: &Factors,
) -> Result<(), ProbeError> {
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
