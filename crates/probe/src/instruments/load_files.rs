//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. Each thread writes and reads
//! large files in turn, like `dd` and `cat` in a shell loop, and counts the bytes, so that its
//! presence is verified.
//!
//! # How
//! Each thread has two unnamed scratch files: one filled with incompressible data and synced before
//! the load starts, one empty. A round truncates the second, writes `file_bytes` to it in blocks
//! through the page cache, calls `fsync`, and reads the first file from start to end. `drop_cache`
//! drops the pages of both files, so that the next round reads from the disk again. Each written
//! sector has a new mark. A thread works `intensity_ratio` of each period by the wall clock; excess
//! is deducted from the next periods. It ends after `duration_ns` or when stopped, with all samples
//! in both cases.
//!
//! # Known truth
//! Bytes read and written equal those that the kernel accounts to the process, within a read-ahead
//! and the current file. Written and read bytes add up to the total. The share of time at work is
//! `intensity_ratio` within 3 points.
//!
//! # Cross-check
//! `dd if=/dev/zero of=w bs=1M count=50 conv=fsync; cat r >/dev/null` in a loop.
//!
//! # Overhead
//! Writes `file_bytes` once per thread, takes twice that on the disk, then the chosen load. Nothing
//! stays on the disk, even after SIGKILL (without `O_TMPFILE`: except between creating and
//! unlinking).
//!
//! # Caveats
//! Writing and reading alternate: short intervals have more of one or the other, and threads need
//! not stay in step. Without `fsync` a file may be truncated before its data reached the disk, and
//! without `drop_cache` reads come from memory. Use `load.disk` for one kind of operation.
use crate::disk::job::DiskJob;
use crate::disk::mover::Mover;
use crate::disk::place;
use crate::disk::scratch::Scratch;
use crate::error::{ProbeError, Result};
use crate::load::load_threads::{self, CounterRate, LoadSettings, LoadTarget, Work, PARTS};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, LOAD_CPUS, PERIOD};
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use std::path::Path;

pub const SPEC: Spec = Spec {
    id: "load.files",
    summary: "Verified disk load: writes and reads large files in turn",
    params: &[
        Param::text("directory", "")
            .doc("Directory of the scratch files; empty takes $TMPDIR, else /var/tmp."),
        Param::int("file_bytes", 50 << 20, 4096..=1 << 44)
            .doc("Size of a file, rounded down to whole blocks; each thread has two."),
        Param::int("block_bytes", 1 << 20, 512..=64 << 20).doc("Bytes per write or read."),
        Param::count("threads", 1, 1..=256).doc("Number of threads, each with its own files."),
        CPUS.doc("CPUs to pin the threads to, round robin; an empty list pins none."),
        Param::switch("fsync", true).doc("Call fsync after each written file."),
        Param::switch("drop_cache", true).doc("Drop the cached pages after each file."),
        INTENSITY
            .doc("Load level: share of each period in which each thread works; 0 is an idle load."),
        PERIOD,
        INTERVAL,
        DURATION,
        Param::seed().doc("Random seed of the data; 0 takes the clock."),
    ],
    metrics: &[
        Metric::neutral("load_bytes_per_s")
            .headline()
            .doc("Bytes written and read per second, all threads."),
        Metric::neutral("load_written_bytes_per_s").doc("Bytes written per second, all threads."),
        Metric::neutral("load_read_bytes_per_s").doc("Bytes read per second, all threads."),
        LOAD_CPUS,
        load::intensity("Share of time in which a thread works, mean of the threads.").share(),
        Metric::neutral("interval_bytes_per_s")
            .series()
            .doc("Bytes written and read per second in each interval, at its end."),
        Metric::neutral("interval_written_bytes_per_s")
            .series()
            .doc("Bytes written per second in each interval, at its end."),
        Metric::neutral("interval_read_bytes_per_s")
            .series()
            .doc("Bytes read per second in each interval, at its end."),
        load::interval_intensity("Load level reached in each interval, at its end.").share(),
    ],
    overhead: "writes file_bytes once per thread; then the chosen share of the disk",
    source: "the loop of dd and cat of Delgado's disk experiments (2010, 3.5.3)",
    load: true,
    ..Spec::about(Resource::Disk)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings = LoadSettings::of(trial, LoadTarget::Time)?;
    let params = &trial.params;
    let (threads, block_bytes) = (params.size("threads"), params.size("block_bytes"));
    let (fsync, drop_cache) = (params.bool("fsync"), params.bool("drop_cache"));
    let blocks = blocks(trial)?;
    let places = load::places(trial, threads)?;
    let seed = parameters::seed(params);
    let file_bytes = blocks * block_bytes as u64;
    let directory = place::directory(params.text("directory"));
    place::check_space(&directory, file_bytes.saturating_mul(2 * threads as u64))?;
    if place::in_memory(&directory)? {
        trial.out.note("The directory is a tmpfs: this loads memory, and no disk.");
    } else if !fsync {
        trial.out.note("Nothing is synced: data may be given up before they reach the disk.");
    }
    let files: Result<Vec<_>, _> = (0..threads as u64)
        .map(|n| LoadFiles::open(trial.session, &directory, file_bytes, seed ^ n << 32))
        .collect();
    let files = files?;
    let job = |scratch, write, number: usize| {
        DiskJob::new(scratch, write, block_bytes, blocks, seed ^ (number as u64) << 32)
    };
    let jobs: Vec<_> = (files.iter().enumerate())
        .map(|(n, files)| (job(&files.written, true, n), job(&files.read, false, n)))
        .collect();
    let rates =
        [CounterRate { total: "load_bytes_per_s", interval: "interval_bytes_per_s", each: 1.0 }];
    load_threads::run(trial, &settings, &places, &rates, |thread| {
        let (written, read) = &jobs[thread];
        Ok(Loop {
            writer: Mover::new(written, thread as u64)?,
            reader: Mover::new(read, thread as u64)?,
            file: written.scratch,
            source: read.scratch,
            blocks,
            block_bytes: block_bytes as u64,
            fsync,
            drop_cache,
            step: 0,
            counted: [0; PARTS],
        })
    })
}

/// Whole blocks of a file.
fn blocks(trial: &Trial) -> Result<u64> {
    let params = &trial.params;
    let file_bytes = params.u64("file_bytes");
    let block_bytes = params.size("block_bytes");
    match file_bytes / block_bytes as u64 {
        0 => Err(ProbeError::usage(
            format!(
                "{}: file_bytes {file_bytes} holds no block of {block_bytes} bytes.",
                trial.spec().id
            ),
            "Set a larger `file_bytes` or a smaller `block_bytes`.",
        )),
        blocks => Ok(blocks),
    }
}

struct LoadFiles {
    written: Scratch,
    read: Scratch,
}

impl LoadFiles {
    fn open(session: Session, directory: &Path, bytes: u64, seed: u64) -> Result<Self> {
        let files = Self {
            written: Scratch::open(session, directory, 0)?,
            read: Scratch::open(session, directory, 0)?,
        };
        files.read.fill(bytes, seed)?;
        files.read.drop_cache();
        Ok(files)
    }
}

/// The rounds of one thread: `blocks` writes, a sync, `blocks` reads.
struct Loop<'a> {
    writer: Mover<'a>,
    reader: Mover<'a>,
    file: &'a Scratch,
    source: &'a Scratch,
    blocks: u64,
    block_bytes: u64,
    fsync: bool,
    drop_cache: bool,
    /// Of this round.
    step: u64,
    counted: [u64; PARTS],
}

impl Work for Loop<'_> {
    const PARTS: &'static [CounterRate] = &[
        CounterRate {
            total: "load_written_bytes_per_s",
            interval: "interval_written_bytes_per_s",
            each: 1.0,
        },
        CounterRate {
            total: "load_read_bytes_per_s",
            interval: "interval_read_bytes_per_s",
            each: 1.0,
        },
    ];

    fn bit(&mut self) -> Result<u64> {
        let step = self.step;
        self.step = (step + 1) % (2 * self.blocks + 1);
        if step == self.blocks {
            return self.finish_writing().map(|()| 0);
        }
        let part = usize::from(step > self.blocks);
        if part == 0 {
            if step == 0 {
                let emptied = self.file.file.set_len(0);
                emptied.map_err(|error| self.file.named("Emptying the file", &error))?;
            }
            self.writer.move_next()?;
        } else {
            self.reader.move_next()?;
            if self.step == 0 && self.drop_cache {
                self.source.drop_cache();
            }
        }
        self.counted[part] += self.block_bytes;
        Ok(self.block_bytes)
    }

    fn parts(&self) -> [u64; PARTS] {
        self.counted
    }
}

impl Loop<'_> {
    fn finish_writing(&self) -> Result<()> {
        if self.fsync {
            self.file.sync()?;
        }
        if self.drop_cache {
            self.file.drop_cache();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const BLOCK: usize = 16 << 10;
    const BLOCKS: u64 = 8;

    fn rounds(count: u64) -> (LoadFiles, [u64; PARTS], u64) {
        let bytes = BLOCKS * BLOCK as u64;
        let files = LoadFiles::open(Session::detached(), &place::directory(""), bytes, 5).unwrap();
        let job = |scratch, write| DiskJob::new(scratch, write, BLOCK, BLOCKS, 3);
        let (written, read) = (job(&files.written, true), job(&files.read, false));
        let mut work = Loop {
            writer: Mover::new(&written, 0).unwrap(),
            reader: Mover::new(&read, 0).unwrap(),
            file: &files.written,
            source: &files.read,
            blocks: BLOCKS,
            block_bytes: BLOCK as u64,
            fsync: true,
            drop_cache: true,
            step: 0,
            counted: [0; PARTS],
        };
        let counted = (0..count * (2 * BLOCKS + 1)).map(|_| work.bit().unwrap()).sum();
        let parts = work.parts();
        drop(work);
        (files, parts, counted)
    }

    #[test]
    fn a_round_writes_and_reads_a_whole_file_and_counts_both() {
        let (files, parts, counted) = rounds(3);
        let bytes = BLOCKS * BLOCK as u64;
        assert_eq!(parts, [3 * bytes, 3 * bytes]);
        assert_eq!(counted, 6 * bytes);
        assert_eq!(files.written.file.metadata().unwrap().len(), bytes);
        let mut block = [0u8; BLOCK];
        for at in 0..BLOCKS {
            files.written.file.read_exact_at(&mut block, at * BLOCK as u64).unwrap();
            let zeros = block.iter().filter(|byte| **byte == 0).count();
            assert!(zeros < BLOCK / 32, "block {at} has {zeros} zeros");
        }
    }

    #[test]
    fn nothing_of_a_round_stays_in_the_cache() {
        let (files, _, _) = rounds(1);
        assert!(files.written.cached_ratio().unwrap() < 0.1);
        assert!(files.read.cached_ratio().unwrap() < 0.1);
    }
}
