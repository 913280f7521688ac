//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It moves bytes between memory
//! and CPUs at full speed or for a share of the time, and counts them, so that its presence is
//! verified.
//!
//! # How
//! Each thread is pinned and walks its own buffer in pieces of 64 KiB with the widest loads and
//! stores of the CPU: `update` adds to every word in place (counted twice: read and written),
//! `read` sums the words, `write` stores them, `copy` copies one half to the other (counted twice,
//! as in STREAM). The default `update` differs from `mem.stream`, so that the two are different
//! programs, and all counted bytes cross the memory bus. The buffers together are `buffer_bytes` on
//! transparent huge pages if available, filled with noise by the thread that uses them, so that a
//! hypervisor finds no equal pages to merge. 0 takes four times the last-level caches, at most a
//! quarter of the available memory. Load levels work as in `load.cpu`. It ends after `duration_ns`
//! or when stopped, with all samples in both cases.
//!
//! # Known truth
//! The share of CPU time is `intensity_ratio` within 2 points, and half of it moves about half of
//! the bytes. A buffer that fits into the caches moves more bytes than a larger one; four times the
//! last-level caches as many as eight times. A round changes every word once and no other.
//!
//! # Cross-check
//! `mem.stream` on the same idle machine: the load moves as much as its copy at most.
//!
//! # Overhead
//! The chosen CPU time, `buffer_bytes` of memory, and the memory bandwidth of the socket.
//!
//! # Caveats
//! A thread that waits for memory counts as busy: the share is of time, not of bandwidth. Lines
//! fetched before stores by `write` and `copy` are not counted. One thread rarely saturates a
//! socket.
use crate::error::Result;
use crate::load::load_threads::{self, CounterRate, LoadSettings, LoadTarget, Work};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, PERIOD, THREADS};
use crate::memory::buffer::{Buffer, Pages};
use crate::memory::caches;
use crate::memory::simd::{self, Level};
use crate::memory::stream::{self, Element, How, StreamKernel};
use crate::memory::walks::{self, WalkOperation};
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_wire::meaning::{Aggressor, Contended, Literal};
use nephoscope_wire::random::Random;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use serde::Deserialize;

pub const SPEC: Spec = Spec {
    id: "load.memory",
    summary: "Verified memory load: moves bytes between memory and CPUs",
    params: &[
        THREADS,
        CPUS,
        Param::int("buffer_bytes", 0, 0..=1 << 40)
            .doc("Total size of the buffers; 0 takes four times the last-level caches."),
        Param::choice("operation", "update", &["update", "read", "write", "copy"])
            .doc("Operation on the buffer."),
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_bytes_per_s").headline().doc("Bytes moved per second, all threads."),
        load::LOAD_CPUS,
        load::THREAD_INTENSITY,
        Metric::neutral("interval_bytes_per_s")
            .series()
            .doc("Bytes moved per second in each interval, at its end."),
        load::INTERVAL_THREAD_INTENSITY,
    ],
    overhead: "the chosen share of the chosen CPUs; the socket's memory bandwidth; buffer_bytes",
    source:
        "in-place updates of a buffer beyond the caches, under a duty cycle (cf. stress-ng --vm)",
    load: true,
    aggressor_for: &[Aggressor {
        resource: Contended::Memory,
        params: &[("threads", Literal::Int(1))],
    }],
    ..Spec::about(Resource::Memory)
};

/// Bytes of a bit of work: some microseconds.
const BIT_BYTES: usize = 64 << 10;

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings = LoadSettings::of(trial, LoadTarget::CpuTime)?;
    let cpus = load::placement(trial)?;
    let bytes = bytes_of_a_thread(trial, &cpus)?;
    let does = parameters::choice(&trial.params, "operation");
    let rate =
        CounterRate { total: "load_bytes_per_s", interval: "interval_bytes_per_s", each: 1.0 };
    let session = trial.session;
    load_threads::run(trial, &settings, &load::pinned(&cpus), &[rate], |_| {
        Walk::prepare(session, does, bytes)
    })
}

fn bytes_of_a_thread(trial: &mut Trial, cpus: &[usize]) -> Result<usize> {
    let caches = caches::last_level(cpus);
    let bytes = match trial.params.size("buffer_bytes") {
        0 => {
            if let Some(note) = caches.note() {
                trial.out.note(note);
            }
            (4 * caches.bytes).min(caches::available_memory() / 4)
        }
        bytes => bytes,
    };
    caches::check_memory("load.memory", bytes, "Set a smaller buffer_bytes.")?;
    // Two bits at least: a copy needs two halves.
    Ok((bytes / cpus.len()).next_multiple_of(2 * BIT_BYTES))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Does {
    Update,
    Read,
    Write,
    Copy,
}

struct Walk {
    does: Does,
    level: Level,
    buffer: Buffer,
    /// Bytes that it walks before it begins again: of a copy only the half that is written.
    round_bytes: usize,
    at: usize,
    sum: u64,
}

impl Walk {
    fn prepare(session: Session, does: Does, bytes: usize) -> Result<Self> {
        let mut buffer = Buffer::map(bytes, Pages::Huge)?;
        let mut noise = Random::new(clock::realtime_ns() ^ buffer.as_ptr().addr() as u64);
        for piece in buffer.as_mut_slice()[..bytes].chunks_mut(32 << 20) {
            session.check()?;
            noise.fill(piece);
        }
        let round_bytes = if does == Does::Copy { bytes / 2 } else { bytes };
        Ok(Self { does, level: simd::widest(), buffer, round_bytes, at: 0, sum: 0 })
    }
}

impl Work for Walk {
    fn bit(&mut self) -> Result<u64> {
        let (at, level) = (self.buffer.as_ptr().wrapping_add(self.at), self.level);
        debug_assert!(self.at + BIT_BYTES <= self.round_bytes);
        // SAFETY: the bit lies inside the buffer (a copy's source inside the other half), which
        // starts at a page; this thread alone uses it; the level is the CPU's own.
        let moved = unsafe {
            match self.does {
                Does::Update => {
                    walks::walk(WalkOperation::ReadModifyWrite, level, at, BIT_BYTES, 1, 1);
                    2 * BIT_BYTES
                }
                Does::Read => {
                    let sum = walks::walk(WalkOperation::Read, level, at, BIT_BYTES, 1, 0);
                    self.sum = std::hint::black_box(self.sum.wrapping_add(sum));
                    BIT_BYTES
                }
                Does::Write => {
                    walks::walk(WalkOperation::Write, level, at, BIT_BYTES, 1, self.sum);
                    self.sum = self.sum.wrapping_add(1);
                    BIT_BYTES
                }
                Does::Copy => {
                    let from = at.wrapping_add(self.round_bytes);
                    let (kernel, element) = (StreamKernel::Copy, Element::Int64);
                    let how = How { kernel, element, streaming: false, level };
                    stream::apply(how, at, from, from, BIT_BYTES / 8);
                    2 * BIT_BYTES
                }
            }
        };
        self.at = (self.at + BIT_BYTES) % self.round_bytes;
        Ok(moved as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_pages_are_equal() {
        let walk = Walk::prepare(Session::detached(), Does::Update, 8 * BIT_BYTES).unwrap();
        let all = &walk.buffer.as_slice()[..8 * BIT_BYTES];
        let mut pages: Vec<&[u8]> = all.chunks(4096).collect();
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 8 * BIT_BYTES / 4096);
    }

    #[test]
    fn a_round_touches_what_it_should_and_counts_it() {
        let all = [(Does::Update, 8), (Does::Read, 4), (Does::Write, 4), (Does::Copy, 4)];
        for (does, counted) in all {
            let mut walk = Walk::prepare(Session::detached(), does, 4 * BIT_BYTES).unwrap();
            let bytes = walk.buffer.bytes();
            // SAFETY: the mapping is this long and used by nobody else.
            let all = unsafe { std::slice::from_raw_parts_mut(walk.buffer.as_ptr(), bytes) };
            all.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at % 249) as u8);
            walk.sum = 7;
            let bits = walk.round_bytes / BIT_BYTES;
            let moved: u64 = (0..bits).map(|_| walk.bit().unwrap()).sum();
            assert_eq!(moved as usize, counted * BIT_BYTES, "{does:?}");
            assert_eq!(walk.at, 0);
            match does {
                Does::Update => {
                    let words = all[..4 * BIT_BYTES].chunks(8).enumerate();
                    let moved_on = |(at, word): (usize, &[u8])| {
                        let old: [u8; 8] =
                            std::array::from_fn(|byte| ((8 * at + byte) % 249) as u8);
                        word == (u64::from_ne_bytes(old).wrapping_add(1)).to_ne_bytes()
                    };
                    assert!(words.into_iter().all(moved_on));
                }
                Does::Read => assert!(all.iter().enumerate().all(|(at, b)| *b == (at % 249) as u8)),
                Does::Write => {
                    let words = all[..4 * BIT_BYTES].chunks(8);
                    let written = |(at, word): (usize, &[u8])| {
                        word == (7 + (at / (BIT_BYTES / 8)) as u64).to_ne_bytes()
                    };
                    assert!(words.enumerate().all(written));
                }
                Does::Copy => {
                    assert_eq!(all[..2 * BIT_BYTES], all[2 * BIT_BYTES..4 * BIT_BYTES]);
                }
            }
        }
    }
}
