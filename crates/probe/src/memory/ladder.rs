//! The ladder of vector lengths that `mem.cache` and `mem.latency` climb, with the parameters that
//! shape it and the CPU that climbs it.
use crate::error::{ProbeError, Result};
use crate::memory::caches;
use crate::trial::affinity;
use crate::trial::Trial;
use nephoscope_linux::scheduling;
use nephoscope_wire::spec::{Param, Unit};

/// Timed passes at each point; the median one stands for the point.
pub const PASSES: usize = 5;
/// Lengths are whole multiples of this many bytes.
pub const GRAIN_BYTES: usize = 512;

pub const LENGTHS: Param = Param::ints("lengths", &[], 1 << 10..=1 << 40)
    .in_unit(Unit::Bytes)
    .doc("Vector lengths, rounded down to 512 bytes; empty: from 1 KiB to max_bytes.");

pub const POINTS_PER_OCTAVE: Param = Param::count("points_per_octave", 2, 1..=2)
    .doc("Lengths per octave: 1 for powers of two, 2 adds 1.5 times each.");

pub const MAX_BYTES: Param = Param::int("max_bytes", 0, 0..=1 << 40)
    .doc("Longest automatic length; 0 takes cache_multiple times the last-level cache.");

pub const CACHE_MULTIPLE: Param = Param::count("cache_multiple", 4, 1..=64)
    .doc("Largest automatic size as a multiple of the last-level cache.");

pub const CPU: Param =
    Param::int("cpu", -1, -1..=65_535).doc("CPU of the thread; -1 takes the first allowed one.");

pub const TIME_PER_POINT_NS: Param =
    Param::int("time_per_point_ns", 2_000_000, 10_000..=10_000_000_000)
        .doc("Total time of the five passes of a length; long vectors may take more.");

/// The lengths of this trial, ascending, and the cache they are related to.
#[derive(Debug)]
pub struct Ladder {
    pub lengths: Vec<usize>,
    /// The last-level cache of the CPU that climbs.
    pub llc_bytes: usize,
}

/// Pins this thread and chooses the lengths.
pub fn choose(trial: &mut Trial) -> Result<Ladder> {
    let cpu = settle(trial)?;
    let llc = caches::last_level(&[cpu]);
    if let Some(note) = llc.note() {
        trial.out.note(note);
    }
    let available = caches::available_memory();
    let requested = trial.params.ints("lengths");
    let lengths = if requested.is_empty() {
        let wanted = trial.params.size("max_bytes");
        let beyond = trial.params.size("cache_multiple") * llc.bytes;
        let top = automatic_top(if wanted == 0 { beyond } else { wanted }, available);
        if wanted > top {
            trial.out.note(format!(
                "The ladder ends at {top} bytes, a quarter of the available memory, and not at \
                 max_bytes {wanted}."
            ));
        }
        ladder(top, trial.params.size("points_per_octave"))
    } else {
        rounded(&requested)
    };
    let longest = lengths.last().copied().unwrap_or(0);
    caches::check_memory(trial.spec().id, longest, "Set shorter lengths.")?;
    Ok(Ladder { lengths, llc_bytes: llc.bytes })
}

/// Pins the calling thread as the parameter says and gives its CPU.
fn settle(trial: &mut Trial) -> Result<usize> {
    let allowed = affinity::allowed();
    let cpu = match usize::try_from(trial.params.int("cpu")) {
        Err(_) => allowed[0],
        Ok(cpu) if allowed.contains(&cpu) => cpu,
        Ok(cpu) => {
            return Err(ProbeError::usage(
                format!("{}: CPU {cpu} is not among the allowed {allowed:?}.", trial.spec().id),
                "Choose one of these, or -1.",
            ))
        }
    };
    if scheduling::is_reserved() {
        trial
            .out
            .note("Under SCHED_DEADLINE no thread can be pinned: the CPU was left to the kernel.");
    } else {
        affinity::pin(cpu)?;
    }
    Ok(cpu)
}

fn automatic_top(wanted: usize, available: usize) -> usize {
    let top = wanted.min(available / 4).max(1 << 10);
    top - top % GRAIN_BYTES
}

fn rounded(lengths: &[i64]) -> Vec<usize> {
    let whole = |bytes: &i64| usize::try_from(*bytes).ok().map(|b| b - b % GRAIN_BYTES);
    let mut lengths: Vec<usize> = lengths.iter().filter_map(whole).collect();
    lengths.sort_unstable();
    lengths.dedup();
    lengths
}

/// Vector lengths from 1 KiB to `max_bytes`: powers of two, with two points per octave also the
/// point 1.5 times above each, and `max_bytes` itself as the last.
fn ladder(max_bytes: usize, points_per_octave: usize) -> Vec<usize> {
    let mut lengths = Vec::new();
    let mut length = 1 << 10;
    while length < max_bytes {
        lengths.push(length);
        let between = length + length / 2;
        if points_per_octave > 1 && between < max_bytes {
            lengths.push(between);
        }
        length *= 2;
    }
    // A last step of a few per cent would be the same point measured twice.
    while lengths.last().is_some_and(|last| *last * 20 > max_bytes * 17) {
        lengths.pop();
    }
    lengths.push(max_bytes);
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_lengths_are_rounded_sorted_and_unique() {
        assert_eq!(rounded(&[5000, 1024, 4608, 1535]), [1024, 4608]);
    }

    #[test]
    fn the_automatic_top_is_bounded_by_memory() {
        assert_eq!(automatic_top(32 << 20, 1 << 40), 32 << 20);
        assert_eq!(automatic_top(32 << 20, 64 << 20), 16 << 20);
        assert_eq!(automatic_top(10_000, 1 << 40), 9728);
    }

    #[test]
    fn the_ladder_has_powers_of_two_the_points_between_and_its_end() {
        assert_eq!(ladder(4 << 10, 1), [1024, 2048, 4096]);
        assert_eq!(ladder(5 << 10, 2), [1024, 1536, 2048, 3072, 4096, 5120]);
        // 6144 is within 15 % of 6200, so the end replaces it.
        assert_eq!(ladder(6200, 2), [1024, 1536, 2048, 3072, 4096, 6200]);
        assert_eq!(ladder(100, 2), [100]);
    }
}
