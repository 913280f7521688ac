//! # What it measures
//! Nothing about the machine by itself: it is a load, to be run beside other benchmarks. It takes the
//! last-level cache: it touches the lines of a working set as large as that cache again and again, so
//! that those of others are pushed out, and counts its touches, so that it can be proved afterwards
//! that the load was there all the time.
//!
//! # How
//! Each thread is pinned and follows four pointer chases through a working set of its own: every line
//! of 64 bytes holds the address of the next, in random order, on transparent huge pages where there
//! are any. Lines are only read, so that none has to be written back. The share of time is kept as in
//! `load.cpu`. It ends after `duration_ns`, or when it is told to stop, and in both cases with all its
//! samples.
//!
//! What a CPU says of its cache is true of the chip, of which a virtual machine may have a part. So
//! with `buffer_bytes` 0 the load first looks how much there is: over sizes a quarter of an octave
//! apart, the largest, up to the nominal one, whose lines are reached in at most half the time that
//! memory takes. All threads' working sets together are that large; `working_set_bytes` tells. While
//! the load has the cache to itself its touches hit, and little is fetched from memory; what is
//! fetched is what others have pushed out.
//!
//! # Known truth
//! The share of CPU time is `intensity_ratio` within 2 points. Touches of the working set that it
//! chose are at least 1.5 times as many as those of one that lies in memory. If all of its touches
//! missed it would still move less than half of the bytes that `load.memory` does. A neighbour's
//! chase over a set of that size takes longer beside it, and beside `load.cpu` it does not.
//!
//! # Cross-check
//! `stress-ng --cache N`; `mem.latency` of a neighbour over sizes around `working_set_bytes`.
//!
//! # Overhead
//! What it is told to be: CPU time and the last-level cache. Before it begins, part of a second and
//! four times the nominal cache of memory, to look how much there is.
//!
//! # Caveats
//! How much cache there is may change with what others do: it is looked for once, before the load
//! begins, and a cache that is already taken looks small. What others hold in a cache of their own
//! core cannot be pushed out, unless the last-level cache includes it. Threads on CPUs of several
//! last-level caches divide the sum evenly.
use crate::error::ProbeError;
use crate::load::load_threads::{self, LoadSettings, LoadTarget, Rate, Work};
use crate::load::usable_cache::{self, CHAINS};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, LOAD_CPUS, PERIOD, THREADS};
use crate::ring::{hop_together, Ring, LINE_BYTES};
use crate::session::Session;
use crate::trial::Trial;
use crate::{caches, trial::factors};
use nephoscope_wire::spec::{Metric, Param, Spec};

pub const SPEC: Spec = Spec {
    id: "load.cache",
    summary: "A load that takes the last-level cache, and proves it",
    params: &[
        THREADS,
        CPUS,
        Param::int("buffer_bytes", 0, 0..=1 << 36).doc("Size of all threads' working sets together; 0 takes what there is of the last-level caches."),
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_touches_per_s").headline().doc("Cache lines that all threads touched a second."),
        Metric::neutral("working_set_bytes").doc("Size of all threads' working sets together."),
        LOAD_CPUS,
        load::intensity("CPU time of a thread over the time it ran, mean of the threads."),
        Metric::neutral("interval_touches_per_s").series().doc("Cache lines touched a second in each interval, at its end."),
        load::interval_intensity(
            "CPU time of a thread over each interval, mean of the threads, at its end.",
        ),
    ],
    overhead: "the chosen share of the chosen CPUs; the last-level cache",
    source: "random pointer chases over a working set (lmbench lat_mem_rd; Mars et al., Bubble-Up, 2011)",
    load: true,
    ..Spec::EMPTY
};

/// Hops of each chain in a bit of work: some microseconds.
const HOPS: usize = 64;
/// A working set smaller than this is no load on any shared cache.
const LEAST_LINES: usize = 64;
const SMALLER: &str = "Set a smaller buffer_bytes.";

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let shift = LoadSettings::of(trial, LoadTarget::CpuTime)?;
    let cpus = load::seats(trial)?;
    let lines = lines_of_a_thread(trial, &cpus)?;
    let rate = Rate { total: "load_touches_per_s", interval: "interval_touches_per_s", each: 1.0 };
    let session = trial.session;
    load_threads::run(trial, &shift, &load::pinned(&cpus), &[rate], |_| {
        Touches::prepare(session, lines)
    })?;
    let bytes = lines * LINE_BYTES * cpus.len();
    trial.out.emit("working_set_bytes", bytes as f64, factors! {})
}

fn lines_of_a_thread(trial: &mut Trial, cpus: &[usize]) -> Result<usize, ProbeError> {
    let bytes = match trial.params.size("buffer_bytes") {
        0 => room_for_all(trial, cpus)?,
        bytes => bytes,
    };
    caches::check_memory(bytes, SMALLER)?;
    Ok((bytes / cpus.len() / LINE_BYTES).max(LEAST_LINES))
}

/// What there is of the last-level caches.
fn room_for_all(trial: &mut Trial, cpus: &[usize]) -> Result<usize, ProbeError> {
    let nominal = caches::last_level(cpus);
    if let Some(note) = nominal.note() {
        trial.out.note(note);
    }
    // Of several caches each is looked for as if it were like the first.
    let one = caches::last_level(&cpus[..1]).bytes;
    caches::check_memory(4 * one, SMALLER)?;
    let Some(found) = usable_cache::find(trial.session, cpus[0], one)? else {
        trial.out.note(format!(
            "No working set up to the {} KiB of the last-level cache is reached faster than memory: \
             this machine seems to have no part of that cache, or others take it all.",
            one >> 10
        ));
        return Ok(nominal.bytes);
    };
    if found < one {
        trial.out.note(format!(
            "Of the last-level cache of {} KiB this machine reaches {} KiB.",
            one >> 10,
            found >> 10
        ));
    }
    Ok((nominal.bytes as f64 * found as f64 / one as f64) as usize)
}

/// The walk of one thread: several places on a ring of its own.
struct Touches {
    places: [*mut u8; CHAINS],
    /// What the places lead through.
    _ring: Ring,
}

impl Touches {
    fn prepare(session: Session, lines: usize) -> Result<Self, ProbeError> {
        let mut ring = usable_cache::ring(session, lines * LINE_BYTES)?;
        while ring.lines() < lines {
            session.check()?;
            ring.grow((ring.lines() + (1 << 16)).min(lines));
        }
        Ok(Self { places: ring.places(), _ring: ring })
    }
}

impl Work for Touches {
    #[inline]
    fn bit(&mut self) -> Result<u64, ProbeError> {
        // SAFETY: the places are on the ring, which is still there.
        unsafe { hop_together(&mut self.places, HOPS) };
        Ok((HOPS * CHAINS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lap_of_all_chains_comes_back_to_its_places() {
        let mut touches = Touches::prepare(Session::detached(), HOPS * CHAINS).unwrap();
        let places = touches.places;
        let laps: u64 = (0..CHAINS).map(|_| touches.bit().unwrap()).sum();
        assert_eq!(laps, (HOPS * CHAINS * CHAINS) as u64);
        // Each chain has made one whole lap of the ring.
        assert_eq!(touches.places, places);
    }

    #[test]
    fn more_than_the_memory_is_refused() {
        assert_eq!(caches::check_memory(usize::MAX, SMALLER).unwrap_err().name, "no_memory");
    }
}
