//! # What it measures
//! Bandwidth of one CPU to its caches and to memory: bytes per second read, written, and modified,
//! over vectors from 1 KiB to four times the last-level cache.
//!
//! # How
//! One pinned thread walks a vector repeatedly in the widest registers of the CPU (AVX-512, AVX2,
//! SSE2), unrolled over 512 bytes: reading adds every 8-byte word to one of several sums, writing
//! stores a value, modifying adds one to every word. A modified byte counts twice; the line fetched
//! before a store is not counted. All vectors are the start of one mapping on transparent huge
//! pages (so that steps are those of caches and not of address translation), touched before.
//!
//! Each point is the median of five timed passes. A short vector is walked many times per pass; one
//! that takes longer than a pass's share of `time_per_point_ns` is walked in fifths, each pass
//! resuming where the last one ended. Up to twice the last-level cache an untimed walk comes first;
//! beyond that nothing of a vector is cached when the walk returns, and passes may be shorter. One
//! operation covers all lengths before the next, so that no read pays for lines that a write left
//! dirty. A trial is one repetition.
//!
//! # Known truth
//! The buffer holds ones when read, so that the sum is the number of words read, compared with the
//! byte count of each pass. Written words must hold the pass's value, and after all modifying
//! passes the sum of the buffer must have grown by the words walked. Any difference fails the
//! trial.
//!
//! # Cross-check
//! `likwid-bench -t load_avx512 -w N:32kB:1` and its store kernels at the same length.
//!
//! # Overhead
//! One CPU at 100 %; maps four times the last-level cache, and evicts what neighbours have in it.
//!
//! # Caveats
//! Without huge pages (see the notes) steps near 6 MiB may be those of address translation. A
//! virtual machine shares the last level: its step is lower and less steep. The shortest lengths
//! include loop overhead.
use crate::error::{wrong_value, ProbeError, Result};
use crate::memory::buffer::{Buffer, Pages};
use crate::memory::ladder::{self, Ladder, PASSES};
use crate::memory::pages;
use crate::memory::simd;
use crate::memory::simd::Level;
use crate::memory::walks::{walk, WalkOperation, OPERATIONS, TURN_BYTES};
use crate::timing::closed_loop::median;
use crate::timing::timed;
use crate::timing::touch;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "mem.cache",
    summary: "Read, write and modify bandwidth of each cache level and of memory",
    params: &[
        ladder::LENGTHS,
        ladder::POINTS_PER_OCTAVE,
        ladder::MAX_BYTES,
        ladder::CACHE_MULTIPLE,
        Param::choices("operations", &["read", "write", "read_modify_write"])
            .doc("Operations to measure; an empty list takes all."),
        ladder::TIME_PER_POINT_NS,
        ladder::CPU,
        Param::choice("pages", "huge", pages::WORDS)
            .doc("Pages of the vector: huge (madvise), small (huge pages off), system default, or mergeable (small, offered to KSM)."),
    ],
    metrics: &[Metric::higher("cache_bytes_per_s")
        .headline()
        .doc("Bytes per second, median of five passes, by vector_bytes and operation.")],
    overhead: "one CPU at 100 %; maps four times the last-level cache",
    source: "Hollander & Bolotoff, RAMspeed; Mucci, London & Thurman, CacheBench, 1998",
    ..Spec::about(Resource::Cache)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let ladder = ladder::choose(trial)?;
    let words = trial.params.words(&SPEC, "operations");
    let wanted = |operation: &WalkOperation| words.iter().any(|word| word == operation.name());
    let level: Pages = parameters::choice(&trial.params, "pages");
    let time_ns = trial.params.size("time_per_point_ns");
    let mut vector = Vector::map(trial.session, &ladder, level)?;
    if level == Pages::Huge && vector.buffer.bytes() > 4 << 20 && !pages::is_huge(&vector.buffer) {
        trial.out.note(format!("{}; small pages were used.", pages::NO_HUGE));
    }
    trial.prepared()?;
    // In the fixed order: reading and modifying need the ones that the buffer was filled with.
    for operation in OPERATIONS.into_iter().filter(wanted) {
        vector.begin(operation);
        for length in &ladder.lengths {
            let value = vector.point(operation, *length, time_ns)?;
            let factors = factors! {"vector_bytes": length, "operation": operation.name()};
            trial.out.emit("cache_bytes_per_s", value, factors)?;
        }
        vector.end(operation)?;
    }
    Ok(())
}

/// The mapping whose beginnings are the vectors.
struct Vector {
    session: Session,
    buffer: Buffer,
    longest: usize,
    llc_bytes: usize,
    level: Level,
    /// Where the last walk beyond the cache ended.
    position: usize,
    /// Whether this operation has filled the last-level cache with its own lines.
    warm: bool,
    /// What the last write stored.
    value: u64,
    /// Words modified so far.
    modified_words: u64,
}

/// Longest untimed or unchecked walk between two looks for cancellation.
const CHUNK_BYTES: usize = 64 << 20;

impl Vector {
    fn map(session: Session, ladder: &Ladder, pages: Pages) -> Result<Self> {
        let longest = ladder.lengths.last().copied().unwrap_or(TURN_BYTES);
        let mut vector = Self {
            session,
            buffer: Buffer::map(longest, pages)?,
            longest,
            llc_bytes: ladder.llc_bytes,
            level: simd::widest(),
            position: 0,
            warm: false,
            value: 1,
            modified_words: 0,
        };
        vector.whole(WalkOperation::Write, longest)?;
        touch::own_pages();
        Ok(vector)
    }

    /// Prepares for the ladder of one operation.
    fn begin(&mut self, operation: WalkOperation) {
        (self.position, self.warm) = (0, false);
        if operation == WalkOperation::ReadModifyWrite {
            (self.value, self.modified_words) = (1, 0);
        }
    }

    /// Checks what only the whole ladder shows: that every word was modified as often as walked.
    fn end(&mut self, operation: WalkOperation) -> Result<()> {
        if operation != WalkOperation::ReadModifyWrite {
            return Ok(());
        }
        let sum = self.whole(WalkOperation::Read, self.longest)?;
        if sum == (self.longest / 8) as u64 + self.modified_words {
            return Ok(());
        }
        Err(wrong(operation, self.longest))
    }

    /// Bytes per second over a vector of `length` bytes.
    fn point(&mut self, op: WalkOperation, length: usize, time_ns: usize) -> Result<f64> {
        let share_ns = time_ns as f64 / PASSES as f64;
        let beyond = length > 2 * self.llc_bytes;
        if !beyond {
            self.whole(op, length)?;
            self.position = 0;
        } else if !self.warm {
            // The lines that earlier operations left dirty have to be gone.
            self.position = whole_turns(2 * self.llc_bytes);
            self.whole(op, self.position)?;
        }
        self.warm |= length > self.llc_bytes;
        let (piece, times) = self.calibrate(op, length, share_ns, beyond)?;
        let mut values = [0.0; PASSES];
        for value in &mut values {
            *value = self.pass(op, length, piece, times)?;
        }
        Ok(median(&mut values))
    }

    /// How much of the vector a pass walks, and how often: whole vectors many times, or pieces.
    fn calibrate(
        &mut self,
        op: WalkOperation,
        length: usize,
        share_ns: f64,
        beyond: bool,
    ) -> Result<(usize, usize)> {
        let fifth = whole_turns(length / PASSES);
        // A few hundred KiB tell the speed of a long vector well enough to choose a piece.
        let probe = fifth.min(if beyond { 512 << 10 } else { 4 << 20 });
        let mut times = 1;
        loop {
            let per_ns = self.pass(op, length, probe, times)? / op.crossings() as f64 / 1e9;
            let took_ns = (probe * times) as f64 / per_ns;
            // Below a tenth of the share the clock and the first round weigh too much.
            if took_ns < share_ns / 10.0 && probe * times < length * 16 {
                times *= 4;
                continue;
            }
            let share_bytes = share_ns * per_ns;
            if share_bytes >= length as f64 {
                return Ok((length, (share_bytes / length as f64) as usize));
            }
            let piece = if beyond { (share_bytes as usize).min(fifth) } else { fifth };
            return Ok((whole_turns(piece), 1));
        }
    }

    /// One timed and checked pass: bytes per second.
    fn pass(
        &mut self,
        op: WalkOperation,
        length: usize,
        piece: usize,
        times: usize,
    ) -> Result<f64> {
        self.session.check()?;
        if self.position + piece > length {
            self.position = 0;
        }
        let start = self.position;
        if op == WalkOperation::Write {
            self.value = self.value.wrapping_add(1);
        }
        let section = timed::start();
        let sum = self.raw(op, start, piece, times);
        let took_ns = section.stop().max(1);
        self.position = start + piece;
        self.check(op, start, piece, times, sum)?;
        Ok((piece * times * op.crossings()) as f64 * 1e9 / took_ns as f64)
    }

    /// The walk's own count of bytes against ours.
    fn check(
        &mut self,
        op: WalkOperation,
        start: usize,
        piece: usize,
        times: usize,
        sum: u64,
    ) -> Result<()> {
        let right = match op {
            WalkOperation::Read => sum == (piece / 8 * times) as u64,
            WalkOperation::Write => {
                // Both ends and a word of every fourth page; the tests look at all.
                let places = (start..start + piece).step_by(16 << 10).chain([start + piece - 8]);
                // SAFETY: inside the mapping; this thread alone uses it.
                let word = |at| unsafe { self.buffer.as_ptr().add(at).cast::<u64>().read() };
                times == 0 || places.into_iter().all(|at| word(at) == self.value)
            }
            WalkOperation::ReadModifyWrite => {
                self.modified_words += (piece / 8 * times) as u64;
                true
            }
        };
        if right {
            Ok(())
        } else {
            Err(wrong(op, piece))
        }
    }

    /// An untimed walk over the first `length` bytes: the sum of what it read.
    fn whole(&mut self, op: WalkOperation, length: usize) -> Result<u64> {
        let mut sum: u64 = 0;
        for start in (0..length).step_by(CHUNK_BYTES) {
            self.session.check()?;
            let piece = CHUNK_BYTES.min(length - start);
            sum = sum.wrapping_add(self.raw(op, start, piece, 1));
        }
        if op == WalkOperation::ReadModifyWrite {
            self.modified_words += (length / 8) as u64;
        }
        Ok(sum)
    }

    #[inline]
    fn raw(&mut self, op: WalkOperation, start: usize, piece: usize, times: usize) -> u64 {
        assert!(start + piece <= self.buffer.bytes());
        // SAFETY: inside the mapping, at multiples of 512 bytes from its page-aligned start; `&mut`
        // keeps others away; the level is the CPU's own.
        unsafe { walk(op, self.level, self.buffer.as_ptr().add(start), piece, times, self.value) }
    }
}

/// `bytes` rounded down to whole turns of the loop, at least one.
fn whole_turns(bytes: usize) -> usize {
    (bytes - bytes % TURN_BYTES).max(TURN_BYTES)
}

fn wrong(op: WalkOperation, bytes: usize) -> ProbeError {
    let name = op.name();
    wrong_value(format!("mem.cache: the words of {bytes} bytes are not what the {name} walk left."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::buffer::Pages;

    fn vector(longest: usize, llc_bytes: usize) -> Vector {
        let ladder = Ladder { lengths: vec![longest], llc_bytes };
        Vector::map(Session::detached(), &ladder, Pages::Huge).unwrap()
    }

    #[test]
    fn pieces_of_all_sizes_are_checked_and_a_walk_comes_round() {
        // A "last level" of 64 KiB makes the long vectors beyond it cheap.
        let mut vector = vector(1 << 20, 64 << 10);
        for operation in OPERATIONS {
            vector.begin(operation);
            for length in [1024, 1536, 96 << 10, 128 << 10, 192 << 10, 1 << 20] {
                let value = vector.point(operation, length, 50_000).unwrap();
                assert!(value > 0.0 && vector.position <= length);
            }
            vector.end(operation).unwrap();
        }
    }

    #[test]
    fn a_foreign_word_is_found() {
        let mut vector = vector(64 << 10, 1 << 20);
        let word = |vector: &Vector| vector.buffer.as_ptr().cast::<u64>();
        // SAFETY: the first word of the mapping; only this thread uses it.
        unsafe { *word(&vector) += 1 };
        let error = vector.pass(WalkOperation::Read, 64 << 10, 64 << 10, 1).unwrap_err();
        assert_eq!(error.name, "wrong_value");
        vector.begin(WalkOperation::ReadModifyWrite);
        vector.point(WalkOperation::ReadModifyWrite, 64 << 10, 50_000).unwrap();
        assert_eq!(vector.end(WalkOperation::ReadModifyWrite).unwrap_err().name, "wrong_value");
    }
}
