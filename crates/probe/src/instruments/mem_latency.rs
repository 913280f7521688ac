//! # What it measures
//! Latency of one dependent load from each cache and from memory, over vectors from 1 KiB to four
//! times the last-level cache, on huge and on small pages. The difference is the cost of address
//! translation.
//!
//! # How
//! Every 64-byte line holds the address of another; all lines form one ring in random order, which
//! one pinned thread follows: neither prefetchers nor out-of-order execution can run ahead. The
//! ring grows with the length: each new line is inserted after a random line, which makes every
//! cyclic order equally likely (Sattolo's permutation) and visits every line once per lap.
//!
//! A point is the median of five timed passes, each of as many hops as fill a fifth of
//! `time_per_point_ns`; passes resume where the last one ended. Up to the last-level cache an
//! untimed lap comes first. Longer rings would evict their own start; there the caches are swept
//! with other memory instead, which makes the result independent of the pass length. A trial is one
//! repetition.
//!
//! # Known truth
//! A lap visits every line once and ends where it started; each trial compares where its passes
//! ended with the ring walked again. The first cache answers in 3 to 8 cycles (a cycle is measured
//! by dependent additions), memory takes more than five times as long, and a ring in ascending
//! order, which prefetchers can follow, is faster.
//!
//! # Cross-check
//! `lat_mem_rd -t` of lmbench (random order), and the manufacturer's cache latencies in cycles.
//!
//! # Overhead
//! One CPU at 100 %; maps four times the last-level cache, and twice it again for the sweep.
//!
//! # Caveats
//! Without huge pages that ladder has no samples and a note. Virtual machines translate twice
//! (nested paging); huge pages of a guest may lie on small ones of the host. Just above the
//! last-level cache a replacement policy that is not strict LRU keeps part of a ring, which is
//! shown slower than a program would find it. Neighbours' memory traffic increases the latency.
use crate::error::{wrong_value, Result};
use crate::memory::buffer::{Buffer, Pages};
use crate::memory::ladder::{self, Ladder, PASSES};
use crate::memory::pages;
use crate::memory::ring::{Ring, LINE_BYTES};
use crate::timing::closed_loop::median;
use crate::timing::timed;
use crate::timing::touch;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_wire::meaning::{Contended, Headline, Literal, Victim};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "mem.latency",
    summary: "Load latency of each cache level and of memory, by a random pointer chase",
    params: &[
        ladder::LENGTHS,
        ladder::POINTS_PER_OCTAVE,
        ladder::MAX_BYTES,
        ladder::CACHE_MULTIPLE,
        Param::choices("pages", &["huge", "small"])
            .doc("Pages of the vector, measured one after the other; an empty list takes both."),
        ladder::TIME_PER_POINT_NS,
        ladder::CPU,
        Param::int("seed", 1, 0..=i64::MAX).doc("Random seed of the order of the pointers."),
    ],
    metrics: &[Metric::lower("load_latency_ns")
        .headline()
        .in_summary(
            Headline::of("Memory latency").prefer(&[("vector_bytes", Literal::Text("maximum"))]),
        )
        .doc("Time of one dependent load, median of five passes, by vector_bytes and pages.")],
    overhead: "one CPU at 100 %; maps six times the last-level cache",
    source: "McVoy & Staelin, lmbench, USENIX ATC 1996; Sattolo, Inf. Proc. Letters 22, 1986",
    // Beyond the second level of today's cores, within the last level that they share.
    victim_for: &[Victim {
        resource: Contended::Cache,
        metric: "load_latency_ns",
        params: &[
            ("lengths", Literal::Ints(&[2 << 20])),
            ("pages", Literal::Texts(&["huge"])),
            ("time_per_point_ns", Literal::Int(100_000_000)),
        ],
    }],
    ..Spec::about(Resource::Memory)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let ladder = ladder::choose(trial)?;
    let time_ns = trial.params.size("time_per_point_ns");
    let seed = trial.params.u64("seed");
    let sweeper = Sweeper::map(trial.session, &ladder)?;
    for level in parameters::choices::<Pages>(&trial.params, &SPEC, "pages") {
        let longest = ladder.lengths.last().copied().unwrap_or(LINE_BYTES);
        let mut buffer = Buffer::map(longest, level)?;
        buffer.touch_all(trial.session)?;
        if level == Pages::Huge && !pages::is_huge(&buffer) {
            trial.out.note(format!("{}; that level was left out.", pages::NO_HUGE));
            continue;
        }
        let mut chase = Chase {
            session: trial.session,
            ring: Ring::new(buffer, seed),
            llc_bytes: ladder.llc_bytes,
        };
        trial.prepared()?;
        for length in &ladder.lengths {
            let value = chase.point(*length, time_ns, &sweeper)?;
            let factors = factors! {"vector_bytes": length, "pages": level};
            trial.out.emit("load_latency_ns", value, factors)?;
        }
    }
    // Without huge pages there may have been nothing to measure: the trial is in order all the same.
    trial.prepared()
}

/// Memory of its own to drive everything else out of the caches.
struct Sweeper {
    buffer: Option<Buffer>,
}

impl Sweeper {
    /// Maps twice the last-level cache if a vector is long enough to need it.
    fn map(session: Session, ladder: &Ladder) -> Result<Self> {
        let beyond = ladder.lengths.iter().any(|length| *length > ladder.llc_bytes);
        if !beyond {
            return Ok(Self { buffer: None });
        }
        let mut buffer = Buffer::map_parts(2, ladder.llc_bytes, Pages::Huge)?;
        buffer.touch_all(session)?;
        Ok(Self { buffer: Some(buffer) })
    }

    fn sweep(&self) {
        let Some(buffer) = &self.buffer else { return };
        let mut sum = 0u64;
        for at in (0..buffer.bytes()).step_by(LINE_BYTES) {
            // SAFETY: inside the mapping, which was touched.
            sum = sum.wrapping_add(unsafe { buffer.as_ptr().add(at).cast::<u64>().read() });
        }
        std::hint::black_box(sum);
    }
}

/// The ring with the cache it is related to.
struct Chase {
    session: Session,
    ring: Ring,
    llc_bytes: usize,
}

/// Hops between two looks for cancellation outside of passes: some milliseconds in memory.
const HOPS_PER_CHECK: usize = 1 << 16;

impl Chase {
    /// Nanoseconds per load over a vector of `length` bytes.
    fn point(&mut self, length: usize, time_ns: usize, sweeper: &Sweeper) -> Result<f64> {
        let lines = length / LINE_BYTES;
        while self.ring.lines() < lines {
            self.session.check()?;
            self.ring.grow((self.ring.lines() + HOPS_PER_CHECK).min(lines));
        }
        touch::own_pages();
        if length <= self.llc_bytes {
            self.hop(lines)?;
        } else {
            sweeper.sweep();
        }
        let start = self.ring.position();
        let mut hops = 1 << 10;
        let mut walked = 0;
        let share_ns = time_ns as f64 / PASSES as f64;
        // What the clock costs has to be nothing beside a pass: double until a tenth of it is full.
        loop {
            let per_hop_ns = self.pass(hops)?;
            walked += hops;
            if per_hop_ns * hops as f64 >= share_ns / 10.0 {
                hops = ((share_ns / per_hop_ns) as usize).max(64);
                break;
            }
            hops *= 4;
        }
        let mut values = [0.0; PASSES];
        for value in &mut values {
            *value = self.pass(hops)?;
            walked += hops;
        }
        self.check(start, walked)?;
        Ok(median(&mut values))
    }

    /// One timed pass: nanoseconds per hop.
    fn pass(&mut self, hops: usize) -> Result<f64> {
        self.session.check()?;
        let section = timed::start();
        self.ring.hop(hops);
        let took_ns = section.stop().max(1);
        Ok(took_ns as f64 / hops as f64)
    }

    /// Untimed hops.
    fn hop(&mut self, hops: usize) -> Result<()> {
        let mut left = hops;
        while left > 0 {
            self.session.check()?;
            let now = left.min(HOPS_PER_CHECK);
            self.ring.hop(now);
            left -= now;
        }
        Ok(())
    }

    /// Walks a short ring again, hop by hop, to see that `walked` hops from `start` end where the
    /// passes ended; a long one would take as long again.
    fn check(&self, start: usize, walked: usize) -> Result<()> {
        const CHECKED_LINES: usize = 1 << 12;
        if self.ring.lines() > CHECKED_LINES {
            return Ok(());
        }
        let mut at = start;
        for _ in 0..walked % self.ring.lines() {
            at = self.ring.after(at);
        }
        if at == self.ring.position() {
            return Ok(());
        }
        let (lines, end) = (self.ring.lines(), self.ring.position());
        Err(wrong_value(format!(
            "mem.latency: {walked} hops through {lines} lines ended at line {end} and not at {at}."
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::attempts::{attempt, holds};

    /// Nanoseconds of a dependent rotation: one cycle on every CPU that the probe is built for. (Some
    /// CPUs add constants while they rename registers, five a cycle.)
    fn cycle_ns() -> f64 {
        const ROTATIONS: u64 = 2_000_000;
        let mut best = f64::MAX;
        for _ in 0..5 {
            let mut x = 1u64;
            let section = timed::start();
            for _ in 0..ROTATIONS / 8 {
                // `black_box` would go through memory; an empty instruction text pins the register.
                for _ in 0..8 {
                    x = x.rotate_left(3);
                    // SAFETY: the text is empty; it only tells the compiler that x is used.
                    unsafe { std::arch::asm!("/* {0} */", inout(reg) x, options(nomem, nostack)) };
                }
            }
            best = best.min(section.stop() as f64 / ROTATIONS as f64);
            std::hint::black_box(x);
        }
        best
    }

    fn chase(longest: usize, llc_bytes: usize, pages: Pages) -> Chase {
        let mut buffer = Buffer::map(longest, pages).unwrap();
        buffer.touch_all(Session::detached()).unwrap();
        Chase { session: Session::detached(), ring: Ring::new(buffer, 7), llc_bytes }
    }

    #[test]
    fn the_first_cache_answers_in_three_to_eight_cycles() {
        let none = Sweeper { buffer: None };
        attempt("the first cache", || {
            let latency_ns = chase(8 << 10, 1 << 20, Pages::Small).point(8 << 10, 500_000, &none);
            let cycles = latency_ns.unwrap() / cycle_ns();
            holds((3.0..=8.0).contains(&cycles), format!("{cycles:.2} cycles"))
        });
    }

    #[test]
    fn memory_is_far_slower_than_the_first_cache() {
        let llc_bytes = crate::memory::caches::last_level(&crate::trial::affinity::allowed()).bytes;
        let far_bytes = 2 * llc_bytes + (16 << 20);
        let ladder = Ladder { lengths: vec![8 << 10, far_bytes], llc_bytes };
        let sweeper = Sweeper::map(Session::detached(), &ladder).unwrap();
        let mut chase = chase(far_bytes, llc_bytes, Pages::Huge);
        attempt("memory and the first cache", || {
            let near = chase.point(8 << 10, 500_000, &sweeper).unwrap();
            let far = chase.point(far_bytes, 2_000_000, &sweeper).unwrap();
            // 4 to 5 cycles against 60 ns and more.
            holds(far > 5.0 * near, format!("{far} ns in memory, {near} ns in the first cache"))
        });
    }

    #[test]
    fn prefetchers_can_follow_an_ascending_ring_and_not_a_random_one() {
        let llc_bytes = crate::memory::caches::last_level(&crate::trial::affinity::allowed()).bytes;
        let lines = (2 * llc_bytes).min(64 << 20) / LINE_BYTES;
        let mut random = chase(lines * LINE_BYTES, llc_bytes, Pages::Huge);
        random.ring.grow(lines);
        let mut buffer = Buffer::map(lines * LINE_BYTES, Pages::Huge).unwrap();
        buffer.touch_all(Session::detached()).unwrap();
        let mut ascending =
            Chase { session: Session::detached(), ring: Ring::ascending(buffer, lines), llc_bytes };
        attempt("random over ascending", || {
            let slow = random.pass(100_000).unwrap();
            let fast = ascending.pass(100_000).unwrap();
            // A followed stream costs a fraction of a memory latency per line.
            holds(slow > 2.0 * fast, (slow / fast).to_string())
        });
    }

    #[test]
    fn a_pass_that_ends_at_the_wrong_line_is_found() {
        let mut chase = chase(8 << 10, 1 << 20, Pages::Small);
        chase.ring.grow(128);
        let start = chase.ring.position();
        chase.ring.hop(1000);
        chase.check(start, 1000).unwrap();
        assert_eq!(chase.check(start, 1001).unwrap_err().name, "wrong_value");
    }
}
