//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It occupies the last-level
//! cache by reading the lines of a working set of that size, and counts them, so that its presence
//! is verified.
//!
//! # How
//! Each thread is pinned and follows four pointer chases through its own working set: every 64-byte
//! line holds the address of the next, in random order, on transparent huge pages if available.
//! Lines are only read. Load levels work as in `load.cpu`. It ends after `duration_ns` or when
//! stopped, with all samples in both cases.
//!
//! A CPU reports the cache of the chip, of which a virtual machine may have a part. With
//! `buffer_bytes` 0 the load first searches the largest working set, up to the nominal size in
//! steps of a quarter octave, whose lines take at most half the time of memory; `working_set_bytes`
//! reports the total of all threads. While the load has the cache alone it fetches little from
//! memory; what it fetches, others have evicted.
//!
//! # Known truth
//! The share of CPU time is `intensity_ratio` within 2 points. Touches of the chosen working set
//! are at least 1.5 times those of one in memory. Even if all touches missed, it would move less
//! than half of the bytes of `load.memory`. A neighbour's pointer chase over that size is slower
//! with this load, and not with `load.cpu`.
//!
//! # Cross-check
//! `stress-ng --cache N`; `mem.latency` of a neighbour around `working_set_bytes`.
//!
//! # Overhead
//! The chosen CPU time and the last-level cache. Before it starts, part of a second and four times
//! the nominal cache of memory for the search.
//!
//! # Caveats
//! The search runs once, before the load; a cache in use looks small. Private caches of other cores
//! cannot be evicted unless the last level includes them. Threads on several last-level caches
//! divide the total evenly.
use crate::error::Result;
use crate::load::load_threads::{self, CounterRate, LoadSettings, LoadTarget, Work};
use crate::load::usable_cache::{self, CHAINS};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, LOAD_CPUS, PERIOD, THREADS};
use crate::memory::caches;
use crate::memory::ring::{hop_together, Ring, LINE_BYTES};
use crate::trial::factors;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_wire::meaning::{Aggressor, Contended, Literal};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "load.cache",
    summary: "Verified cache load: occupies the last-level cache",
    params: &[
        THREADS,
        CPUS,
        Param::int("buffer_bytes", 0, 0..=1 << 36)
            .doc("Total size of the working sets; 0 takes the usable last-level caches."),
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_touches_per_s")
            .headline()
            .doc("Cache lines read per second, all threads."),
        Metric::neutral("working_set_bytes").doc("Total size of the working sets."),
        LOAD_CPUS,
        load::THREAD_INTENSITY,
        Metric::neutral("interval_touches_per_s")
            .series()
            .doc("Cache lines read per second in each interval, at its end."),
        load::INTERVAL_THREAD_INTENSITY,
    ],
    overhead: "the chosen share of the chosen CPUs; the last-level cache",
    source: "random pointer chases (lmbench lat_mem_rd; Mars et al., Bubble-Up, 2011)",
    load: true,
    aggressor_for: &[Aggressor {
        resource: Contended::Cache,
        params: &[("threads", Literal::Int(1))],
    }],
    ..Spec::about(Resource::Cache)
};

/// Hops of each chain in a bit of work: some microseconds.
const HOPS: usize = 64;
/// A working set smaller than this is no load on any shared cache.
const LEAST_LINES: usize = 64;
const SMALLER: &str = "Set a smaller buffer_bytes.";

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings = LoadSettings::of(trial, LoadTarget::CpuTime)?;
    let cpus = load::placement(trial)?;
    let lines = lines_of_a_thread(trial, &cpus)?;
    let rate =
        CounterRate { total: "load_touches_per_s", interval: "interval_touches_per_s", each: 1.0 };
    let session = trial.session;
    load_threads::run(trial, &settings, &load::pinned(&cpus), &[rate], |_| {
        CacheWalk::prepare(session, lines)
    })?;
    let bytes = lines * LINE_BYTES * cpus.len();
    trial.out.emit("working_set_bytes", bytes as f64, factors! {})
}

fn lines_of_a_thread(trial: &mut Trial, cpus: &[usize]) -> Result<usize> {
    let bytes = match trial.params.size("buffer_bytes") {
        0 => room_for_all(trial, cpus)?,
        bytes => bytes,
    };
    caches::check_memory("load.cache", bytes, SMALLER)?;
    Ok((bytes / cpus.len() / LINE_BYTES).max(LEAST_LINES))
}

/// What there is of the last-level caches.
fn room_for_all(trial: &mut Trial, cpus: &[usize]) -> Result<usize> {
    let nominal = caches::last_level(cpus);
    if let Some(note) = nominal.note() {
        trial.out.note(note);
    }
    // Of several caches each is looked for as if it were like the first.
    let one_cpu_bytes = caches::last_level(&cpus[..1]).bytes;
    caches::check_memory("load.cache", 4 * one_cpu_bytes, SMALLER)?;
    let Some(usable_bytes) = usable_cache::find(trial.session, cpus[0], one_cpu_bytes)? else {
        trial.out.note(format!(
            "No working set up to the {} KiB of the last-level cache is reached faster than memory: \
             this machine seems to have no part of that cache, or others take it all.",
            one_cpu_bytes >> 10
        ));
        return Ok(nominal.bytes);
    };
    if usable_bytes < one_cpu_bytes {
        trial.out.note(format!(
            "Of the last-level cache of {} KiB this machine reaches {} KiB.",
            one_cpu_bytes >> 10,
            usable_bytes >> 10
        ));
    }
    Ok((nominal.bytes as f64 * usable_bytes as f64 / one_cpu_bytes as f64) as usize)
}

/// The walk of one thread: several places on a ring of its own.
struct CacheWalk {
    places: [*mut u8; CHAINS],
    /// What the places lead through.
    _ring: Ring,
}

impl CacheWalk {
    fn prepare(session: Session, lines: usize) -> Result<Self> {
        let mut ring = usable_cache::ring(session, lines * LINE_BYTES)?;
        while ring.lines() < lines {
            session.check()?;
            ring.grow((ring.lines() + (1 << 16)).min(lines));
        }
        Ok(Self { places: ring.places(), _ring: ring })
    }
}

impl Work for CacheWalk {
    #[inline]
    fn bit(&mut self) -> Result<u64> {
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
        let mut walk = CacheWalk::prepare(Session::detached(), HOPS * CHAINS).unwrap();
        let places = walk.places;
        let laps: u64 = (0..CHAINS).map(|_| walk.bit().unwrap()).sum();
        assert_eq!(laps, (HOPS * CHAINS * CHAINS) as u64);
        // Each chain has made one whole lap of the ring.
        assert_eq!(walk.places, places);
    }

    #[test]
    fn more_than_the_memory_is_refused() {
        assert_eq!(
            caches::check_memory("load.cache", usize::MAX, SMALLER).unwrap_err().name,
            "no_memory"
        );
    }
}
