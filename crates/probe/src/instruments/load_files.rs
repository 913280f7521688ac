//! # What it measures
//! Nothing about the machine by itself: it is a load, to be run beside other benchmarks. Each thread
//! writes a big file, then reads a big file, again and again, as `dd` and `cat` in a loop of a shell
//! do, and counts the bytes, so that it can be proved afterwards that the load was there all the time.
//!
//! # How
//! Each thread has two scratch files without a name: one that is filled with incompressible data
//! and synced before the load begins, and one that is empty. A round empties the second one (as `>`
//! does), writes `file_bytes` to it block by block through the page cache, syncs it (`fsync`), and
//! then reads the first one from its start to its end. With `drop_cache` the kernel is asked to
//! forget what was written and what was read, so that the next round reads from the disk again; the
//! caches of other programs are not touched. Each sector that is written carries a new mark. Of each
//! period a thread works `intensity_ratio`, by the clock on the wall; what a block or a sync took
//! beyond that is taken from the next periods. It ends after `duration_ns`, or when it is told to
//! stop, and in both cases with all its samples.
//!
//! # Known truth
//! The bytes that the kernel accounts to the process as read from and written to the disk are those
//! counted, within a read-ahead and the file that is under way. What was written and what was read
//! make the whole. The share of time at work is `intensity_ratio` within 3 points.
//!
//! # Cross-check
//! `dd if=/dev/zero of=w bs=1M count=50 conv=fsync; cat r >/dev/null` in a loop.
//!
//! # Overhead
//! Writes `file_bytes` once for each thread before it begins, and takes up to twice that on the disk;
//! then what it is told to be. Nothing stays on the disk, even after SIGKILL (where `O_TMPFILE` is
//! missing: but for a kill in the microsecond before the unlink).
//!
//! # Caveats
//! Writing and reading alternate: an interval shorter than a round has more of the one or of the
//! other, and threads that began together need not stay in step. Without `fsync` the next round may
//! empty a file before its data ever reached the disk, and without `drop_cache` reading comes from
//! memory: the load is then one of memory and of the file system's own work. For a load of one kind
//! of operation take `load.disk`.
use crate::clock;
use crate::disk::job::Job;
use crate::disk::mover::Mover;
use crate::disk::place;
use crate::disk::scratch::Scratch;
use crate::error::ProbeError;
use crate::load::load_threads::{self, LoadSettings, LoadTarget, Rate, Work, PARTS};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, LOAD_CPUS, PERIOD};
use crate::session::Session;
use crate::trial::Trial;
use nephoscope_wire::spec::{Metric, Param, Spec};
use std::path::Path;

pub const SPEC: Spec = Spec {
    id: "load.files",
    summary: "A load that writes and reads big files in turn, and proves it",
    params: &[
        Param::text("directory", "")
            .doc("Where the scratch files go; empty takes $TMPDIR, else /var/tmp."),
        Param::int("file_bytes", 50 << 20, 4096..=1 << 44)
            .doc("Size of a file, cut to whole blocks; each thread has two."),
        Param::int("block_bytes", 1 << 20, 512..=64 << 20).doc("Bytes of one write or read."),
        Param::count("threads", 1, 1..=256).doc("Threads, each with files of its own."),
        CPUS.doc("CPUs that the threads are pinned to, round robin; an empty list pins none."),
        Param::switch("fsync", true)
            .doc("Wait after each written file until it is safe on the disk."),
        Param::switch("drop_cache", true).doc("Forget what was written and read after each file."),
        INTENSITY.doc(
            "Share of each period that each thread works; it sleeps for the rest. 0 is a load \
                  that waits.",
        ),
        PERIOD,
        INTERVAL,
        DURATION,
        Param::seed().doc("Seed of the data; 0 takes the clock."),
    ],
    metrics: &[
        Metric::neutral("load_bytes_per_s")
            .headline()
            .doc("Bytes that all threads wrote and read a second."),
        Metric::neutral("load_written_bytes_per_s")
            .doc("Bytes that all threads wrote a second, over the whole time."),
        Metric::neutral("load_read_bytes_per_s")
            .doc("Bytes that all threads read a second, over the whole time."),
        LOAD_CPUS,
        load::intensity("Time of a thread at work over its time, mean of the threads."),
        Metric::neutral("interval_bytes_per_s")
            .series()
            .doc("Bytes written and read a second in each interval, at its end."),
        Metric::neutral("interval_written_bytes_per_s")
            .series()
            .doc("Bytes written a second in each interval, at its end."),
        Metric::neutral("interval_read_bytes_per_s")
            .series()
            .doc("Bytes read a second in each interval, at its end."),
        load::interval_intensity("The intensity in each interval, at its end."),
    ],
    overhead: "writes file_bytes once a thread; then the chosen share of the disk",
    source: "the loop of dd and cat of Delgado's disk experiments (2010, 3.5.3)",
    load: true,
    ..Spec::EMPTY
};

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let shift = LoadSettings::of(trial, LoadTarget::Time)?;
    let params = &trial.params;
    let (threads, block_bytes) = (params.size("threads"), params.size("block_bytes"));
    let (fsync, drop_cache) = (params.bool("fsync"), params.bool("drop_cache"));
    let blocks = blocks(trial)?;
    let places = load::places(trial, threads)?;
    let seed = clock::seed(params);
    let file_bytes = blocks * block_bytes as u64;
    let directory = place::directory(params.text("directory"));
    place::check_space(&directory, file_bytes.saturating_mul(2 * threads as u64))?;
    if place::in_memory(&directory)? {
        trial.out.note("The directory is a tmpfs: this loads memory, and no disk.");
    } else if !fsync {
        trial.out.note("Nothing is synced: data may be given up before they reach the disk.");
    }
    let files: Result<Vec<_>, _> = (0..threads as u64)
        .map(|n| Files::open(trial.session, &directory, file_bytes, seed ^ n << 32))
        .collect();
    let files = files?;
    let job = |scratch, write, number: usize| {
        Job::new(scratch, write, block_bytes, blocks, seed ^ (number as u64) << 32)
    };
    let jobs: Vec<_> = (files.iter().enumerate())
        .map(|(n, files)| (job(&files.written, true, n), job(&files.read, false, n)))
        .collect();
    let rates = [Rate { total: "load_bytes_per_s", interval: "interval_bytes_per_s", each: 1.0 }];
    load_threads::run(trial, &shift, &places, &rates, |thread| {
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
fn blocks(trial: &Trial) -> Result<u64, ProbeError> {
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

struct Files {
    written: Scratch,
    read: Scratch,
}

impl Files {
    fn open(session: Session, directory: &Path, bytes: u64, seed: u64) -> Result<Self, ProbeError> {
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
    const PARTS: &'static [Rate] = &[
        Rate {
            total: "load_written_bytes_per_s",
            interval: "interval_written_bytes_per_s",
            each: 1.0,
        },
        Rate { total: "load_read_bytes_per_s", interval: "interval_read_bytes_per_s", each: 1.0 },
    ];

    fn bit(&mut self) -> Result<u64, ProbeError> {
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
    fn finish_writing(&self) -> Result<(), ProbeError> {
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

    fn rounds(count: u64) -> (Files, [u64; PARTS], u64) {
        let bytes = BLOCKS * BLOCK as u64;
        let files = Files::open(Session::detached(), &place::directory(""), bytes, 5).unwrap();
        let job = |scratch, write| Job::new(scratch, write, BLOCK, BLOCKS, 3);
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
