//! What the loops of `cpu.gaps` obtain over whole cycles of a quota that they share.
use std::ops::RangeInclusive;

/// Gaps of at least this share of the duration bound the cycles.
pub const LONG_SHARE: f64 = 0.002;

/// One loop on a clock that all loops share.
pub struct LoopGaps {
    pub window: RangeInclusive<u64>,
    /// Start and end of each gap; the last one may end after the window.
    pub gaps: Vec<(u64, u64)>,
}

/// CPUs that all loops together had over whole cycles: between the ends of the first and the last
/// long gap of the loop that has most of them. A quota of the whole machine is refilled for all
/// loops at once, so that this span holds whole periods of it for every loop. It lies within the
/// windows of all loops: one that waits for the refill when its window ends records a gap up to the
/// refill, while another may have stopped looking. `None` below three long gaps.
pub fn obtained(loops: &[LoopGaps], long_ns: u64) -> Option<f64> {
    let common = *loops.iter().map(|cycle| cycle.window.start()).max()?
        ..=*loops.iter().map(|cycle| cycle.window.end()).min()?;
    let ends = |cycle: &LoopGaps| -> Vec<u64> {
        let long = cycle.gaps.iter().filter(|(start, end)| end - start >= long_ns);
        long.map(|(_, end)| *end).filter(|end| common.contains(end)).collect()
    };
    let replenishments = loops.iter().map(ends).max_by_key(Vec::len)?;
    let (from, to) = (*replenishments.first()?, *replenishments.last()?);
    if replenishments.len() < 3 || to <= from {
        return None;
    }
    let lost = |(start, end): &(u64, u64)| (*end).min(to).saturating_sub((*start).max(from)) as f64;
    let share =
        |cycle: &LoopGaps| 1.0 - cycle.gaps.iter().map(lost).sum::<f64>() / (to - from) as f64;
    Some(loops.iter().map(share).sum())
}
