//! How much of the last-level cache this machine really has.
//!
//! What a CPU says of its cache is true of the chip. A virtual machine may be given a part of it,
//! and its neighbours take from the rest: a working set of the nominal size would then lie in memory.
use crate::error::Result;
use crate::memory::buffer::{Buffer, Pages};
use crate::memory::ring::{hop_together, Ring, LINE_BYTES};
use crate::threads::workers;
use crate::trial::session::Session;
use nephoscope_linux::clock;

/// Chains that are followed side by side.
pub const CHAINS: usize = 4;
/// Sizes are a quarter of an octave apart, and reach down to this part of the nominal one.
const STEP: f64 = 1.189_207_115_002_721;
const SMALLEST: usize = 32;

/// The largest working set, at most `nominal` bytes, whose lines are reached in at most half the time
/// that memory takes; `None` where there is none. Looked for on `cpu`.
pub fn find(session: Session, cpu: usize, nominal: usize) -> Result<Option<usize>> {
    let search = move || {
        let points = (0..).map(|step| (nominal as f64 / STEP.powi(step)) as usize);
        let mut sizes: Vec<_> = points.take_while(|bytes| *bytes >= nominal / SMALLEST).collect();
        sizes.reverse();
        // Beyond any cache of that size, so that it tells what memory takes.
        sizes.push(4 * nominal);
        let mut ring = ring(session, 4 * nominal)?;
        let mut times = Vec::with_capacity(sizes.len());
        for bytes in sizes {
            ring.grow(bytes / LINE_BYTES);
            times.push((bytes, touch_ns(session, &ring)?));
        }
        Ok(largest(&times))
    };
    workers::run_on(cpu, search)
}

/// A ring of one line, with room for `bytes`.
pub fn ring(session: Session, bytes: usize) -> Result<Ring> {
    let mut buffer = Buffer::map(bytes, Pages::Huge)?;
    buffer.touch_all(session)?;
    Ok(Ring::new(buffer, clock::realtime_ns()))
}

/// Time of a touch, the least of three looks, after a lap.
fn touch_ns(session: Session, ring: &Ring) -> Result<f64> {
    const HOPS: usize = 4096;
    let mut places = ring.places::<CHAINS>();
    let mut left = ring.lines() / CHAINS;
    let mut least_ns = u64::MAX;
    for _ in 0..3 {
        while left > 0 {
            session.check()?;
            let hops = left.min(HOPS);
            // SAFETY: the ring is there.
            unsafe { hop_together(&mut places, hops) };
            left -= hops;
        }
        let started_ns = clock::monotonic_ns();
        // SAFETY: the ring is there.
        unsafe { hop_together(&mut places, HOPS) };
        least_ns = least_ns.min(clock::monotonic_ns() - started_ns);
        std::hint::black_box(&mut places);
    }
    Ok(least_ns as f64 / (HOPS * CHAINS) as f64)
}

/// Of sizes and times, the last of them those of memory.
fn largest(times: &[(usize, f64)]) -> Option<usize> {
    let ((_, memory_ns), rest) = times.split_last()?;
    rest.iter().rev().find(|(_, ns)| *ns <= memory_ns / 2.0).map(|(bytes, _)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_where_lines_come_from_memory() {
        let times = [(1, 6.0), (2, 7.0), (4, 9.0), (8, 14.0), (16, 25.0), (64, 26.0)];
        assert_eq!(largest(&times), Some(4));
        assert_eq!(largest(&[(1, 25.0), (2, 24.0), (8, 26.0)]), None);
        assert_eq!(largest(&[]), None);
    }

    #[test]
    fn what_is_found_is_no_more_than_was_asked_for() {
        // A first-level cache holds 16 KiB on every CPU; four times 4 MiB is beyond most second ones,
        // so that on any machine the answer is a size in between.
        let usable_bytes =
            find(Session::detached(), crate::trial::affinity::allowed()[0], 4 << 20).unwrap();
        assert!(
            usable_bytes.is_none_or(|bytes| (128 << 10..=4 << 20).contains(&bytes)),
            "{usable_bytes:?}"
        );
    }
}
