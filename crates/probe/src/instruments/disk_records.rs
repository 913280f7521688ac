//! # What it measures
//! Bandwidth, records per second and record latency of writing, rewriting, reading and rereading
//! whole files, and of random reads and writes, by record size (the work of `IOzone`). Metrics are
//! named `disk_...` if the bytes moved to or from the disk within the time, else `cached_...`:
//! those measure memory and the file system's code.
//!
//! # How
//! For each record size each thread has an unnamed scratch file of whole records. The chosen
//! operations run in a fixed order: `write` fills the empty file, `rewrite` overwrites it, `read`
//! and `reread` read it, `randread` and `randwrite` visit each record once in random order. One
//! `pread` or `pwrite` at a time; all threads start together, and the time is from the first start
//! to the last end. The file is reopened before each operation; `include_fsync` and `include_close`
//! add the `fsync` of a write and the closing to the time. Written files are synced outside the
//! time, so that no operation pays for an earlier one. `cold` drops the file's cached pages before
//! each operation and disables read-ahead for random reads. Without `write` the file is filled
//! before. Each written sector has a new mark.
//!
//! Metrics are `disk_...` with `direct`; for reads with `cold`; for writes with `include_fsync`;
//! and if the files are at least twice the memory that this process may use.
//!
//! # Known truth
//! The histogram has one value per record. With `direct`, and for cold reads and synced writes, the
//! bytes that the kernel accounts to the process are those of the passes; warm reads read nothing
//! from the disk. The rate of a block-layer throttle is reported within 5 %.
//!
//! # Cross-check
//! `iozone -i 0 -i 1 -i 2 -r 4k -s 100m -t N`, with `-e` for `include_fsync`, `-c` for
//! `include_close` and `-I` for `direct`.
//!
//! # Overhead
//! Moves `file_bytes` for each thread, operation and record size. Nothing stays on the disk, even
//! after SIGKILL (without `O_TMPFILE`: except between creating and unlinking).
//!
//! # Caveats
//! A pass over a small file is short and sensitive to kernel activity. One operation in flight per
//! thread: use `disk.io` for a steady rate with more, `disk.sync` for durable small writes. A cold
//! read may come from the host's cache.
use crate::disk::memory::reaches_disk;
use crate::disk::passes::{self, DiskPass, Passed};
use crate::disk::scratch::Scratch;
use crate::disk::{errors, place};
use crate::error::{ProbeError, Result};
use crate::threads::team;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::{Factors, Trial};
use nephoscope_wire::spec::{Metric, Param, RequestLoop, Resource, Spec};
use serde::Deserialize;
use std::path::Path;

/// Every operation, in the order in which they go over a file.
const OPERATIONS: [&str; 6] = ["write", "rewrite", "read", "reread", "randread", "randwrite"];

pub const SPEC: Spec = Spec {
    id: "disk.records",
    summary: "Bandwidth of writing, rewriting, reading and rereading whole files by record size",
    params: &[
        Param::text("directory", "")
            .doc("Directory of the scratch files; empty takes $TMPDIR, else /var/tmp."),
        Param::choices("operations", &OPERATIONS)
            .doc("Operations to measure; an empty list takes all."),
        Param::ints("record_bytes", &[4 << 10, 64 << 10, 1 << 20, 16 << 20], 512..=64 << 20)
            .doc("Record sizes; direct I/O needs multiples of 512."),
        Param::int("file_bytes", 32 << 20, 4096..=1 << 44)
            .doc("Size of each thread's file, rounded down to whole records."),
        Param::count("threads", 1, 1..=256).doc("Number of threads, each with its own file."),
        Param::switch("direct", false).doc("Bypass the page cache of this machine."),
        Param::switch("cold", false).doc("Drop the file's cached pages before each operation."),
        Param::switch("include_fsync", false)
            .doc("Include the fsync of a written file in the time."),
        Param::switch("include_close", false).doc("Include closing the file in the time."),
        Param::seed().doc("Random seed of offsets and data; 0 takes the clock."),
    ],
    metrics: &[
        Metric::higher("disk_bytes_per_s").headline().doc("Bytes per second of the disk."),
        Metric::higher("disk_operations_per_s")
            .doc("Records per second of the disk, including fsync and close if requested."),
        Metric::lower("disk_operation_ns").doc(
            "Mean time of a thread's record on the disk, including fsync and close if requested.",
        ),
        Metric::lower("disk_latency_ns").histogram().doc("Time of each record on the disk."),
        Metric::higher("cached_bytes_per_s")
            .headline()
            .doc("Bytes per second if the page cache may hold the file."),
        Metric::higher("cached_operations_per_s")
            .doc("Records per second if the page cache may hold the file."),
        Metric::lower("cached_operation_ns").doc("The same if the page cache may hold the file."),
        Metric::lower("cached_latency_ns")
            .histogram()
            .doc("Time of each record if the page cache may hold the file."),
    ],
    overhead: "moves file_bytes for each thread, operation and record size",
    source: "Norcott and Capps, IOzone filesystem benchmark (write, rewrite, read, reread, random)",
    request_loop: RequestLoop::Closed,
    ..Spec::about(Resource::Disk)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings = DiskRecordSettings::of(trial)?;
    let place = place::directory(trial.params.text("directory"));
    let all_bytes = settings.file_bytes.saturating_mul(settings.threads as u64);
    place::check_space(&place, all_bytes)?;
    // The notes about a cache measurement are for those who get one.
    let large = settings.always_disk() || reaches_disk(trial, &place, all_bytes)?;
    let in_memory = place::in_memory(&place)?;
    for record_bytes in settings.record_bytes.clone() {
        let files = settings.files(trial.session, &place)?;
        let records = settings.file_bytes / record_bytes as u64;
        if !settings.operations.iter().any(|operation| operation == "write") {
            fill(&files, records * record_bytes as u64, settings.seed)?;
        }
        for operation in &settings.operations {
            if settings.cold {
                files.iter().for_each(Scratch::drop_cache);
            }
            let pass = settings.pass(operation, record_bytes, records);
            let passed = passes::run(pass, &files, || trial.prepared())?;
            if pass.write {
                files.iter().try_for_each(Scratch::sync)?;
            }
            if settings.direct {
                files.iter().try_for_each(Scratch::check_bypassed)?;
            }
            let disk = !in_memory && (large || settings.reaches_disk(pass));
            let factors = factors! {"operation": operation, "record_bytes": record_bytes};
            report(trial, &passed, pass, settings.threads, disk, &factors)?;
        }
    }
    Ok(())
}

/// Parameters that depend on each other, checked.
#[derive(Deserialize)]
struct DiskRecordSettings {
    operations: Vec<String>,
    /// In ascending order.
    record_bytes: Vec<usize>,
    file_bytes: u64,
    threads: usize,
    direct: bool,
    cold: bool,
    include_fsync: bool,
    include_close: bool,
    seed: u64,
}

impl DiskRecordSettings {
    fn of(trial: &Trial) -> Result<Self> {
        let params = &trial.params;
        let mut settings: Self = parameters::fields(params);
        let chosen = params.words(trial.spec(), "operations");
        let in_order =
            OPERATIONS.iter().filter(|word| chosen.iter().any(|operation| operation == *word));
        settings.operations = in_order.map(|word| (*word).to_owned()).collect();
        settings.record_bytes.sort_unstable();
        settings.record_bytes.dedup();
        settings.seed = parameters::seed(params);
        settings.check().map(|()| settings)
    }

    fn check(&self) -> Result<()> {
        let usage = |message: String, hint: &str| Err(ProbeError::usage(message, hint));
        let Some(largest) = self.record_bytes.last() else {
            let message = "disk.records: record_bytes is an empty list.".to_owned();
            return usage(message, "Name at least one size.");
        };
        if self.direct {
            self.record_bytes
                .iter()
                .try_for_each(|size| errors::check_sectors("disk.records", *size))?;
        }
        if (*largest as u64) > self.file_bytes {
            let bytes = self.file_bytes;
            return usage(
                format!("disk.records: file_bytes {bytes} holds no record of {largest} bytes."),
                "Set a larger `file_bytes`, or smaller `record_bytes`.",
            );
        }
        if self.threads > 1 {
            team::check_can_start_threads()?;
        }
        Ok(())
    }

    fn files(&self, session: Session, place: &Path) -> Result<Vec<Scratch>> {
        let file = |_| {
            let scratch = Scratch::open(session, place, 0)?;
            if self.direct {
                scratch.make_direct()?;
            }
            Ok(scratch)
        };
        (0..self.threads).map(file).collect()
    }

    fn pass(&self, operation: &str, record_bytes: usize, records: u64) -> DiskPass {
        DiskPass {
            write: operation.ends_with("write"),
            random: operation.starts_with("rand"),
            record_bytes,
            records,
            fsync: self.include_fsync,
            close: self.include_close,
            seed: self.seed,
        }
    }

    /// Whether the bytes of that pass move to or from the disk within its time.
    fn reaches_disk(&self, pass: DiskPass) -> bool {
        self.direct || if pass.write { self.include_fsync } else { self.cold }
    }

    /// Whether those of every pass do.
    fn always_disk(&self) -> bool {
        let passes = self.operations.iter().map(|operation| self.pass(operation, 512, 1));
        passes.into_iter().all(|pass| self.reaches_disk(pass))
    }
}

/// Fills the files and waits until they are safe, each with data of its own.
fn fill(files: &[Scratch], bytes: u64, seed: u64) -> Result<()> {
    (files.iter().zip(0u64..)).try_for_each(|(file, number)| file.fill(bytes, seed ^ number << 32))
}

fn report(
    trial: &mut Trial,
    passed: &Passed,
    pass: DiskPass,
    threads: usize,
    disk: bool,
    factors: &Factors,
) -> Result<()> {
    let names = if disk {
        ["disk_bytes_per_s", "disk_operations_per_s", "disk_operation_ns", "disk_latency_ns"]
    } else {
        [
            "cached_bytes_per_s",
            "cached_operations_per_s",
            "cached_operation_ns",
            "cached_latency_ns",
        ]
    };
    let rate = passed.operations as f64 * 1e9 / passed.elapsed_ns as f64;
    let [bytes, operations, operation_ns, latency] = names;
    trial.out.emit(bytes, rate * pass.record_bytes as f64, factors.clone())?;
    trial.out.emit(operations, rate, factors.clone())?;
    trial.out.emit(operation_ns, threads as f64 * 1e9 / rate, factors.clone())?;
    trial.emit_histogram(latency, &passed.latency, factors)
}
