//! Fleets whose launches have to be simulated one by one: with a limit, and with replacement.
use super::fleets::Fleets;
use super::formulas::is_kept;
use crate::random::RandomStream;

/// A slot of a fleet, with its instance.
#[derive(Clone, Copy, Debug)]
struct FleetSlot {
    /// Number of the type of the instance.
    kind: usize,
    /// Type and time of the last launch that was ended there.
    rejected: Option<(usize, f64)>,
    /// Launch time of the instance.
    launched_h: f64,
}

/// Draws a fleet of trial and failure, or stopping, with limited launches. Returns cost and launches;
/// None if no instance does anything.
pub fn within_limit(fleets: &Fleets, limit: u64, stream: &mut RandomStream) -> Option<(f64, u64)> {
    let scenario = fleets.scenario;
    let same = fleets.same_again();
    let mut launches = fleets.selected;
    let mut counts = vec![0; fleets.results.len()];
    for _ in 0..fleets.selected {
        let mut kind = draw_type(fleets, stream);
        while !fleets.results[kind].is_kept && launches < limit {
            launches += 1;
            if stream.uniform() >= same {
                kind = draw_type(fleets, stream);
            }
        }
        counts[kind] += 1;
    }
    let rejected = (launches - fleets.selected) as f64 * fleets.rejected_h;
    let fees = fleets.selected as f64 * scenario.launch_usd;
    let running = fleets.cost(fleets.selected, &counts)?;
    Some((running + rejected * scenario.price_usd_per_h + fees, launches))
}

/// Draws a fleet whose instances are replaced as long as that pays. Returns cost and launches; None if
/// no instance does anything and none may be launched.
pub fn replace(fleets: &Fleets, stream: &mut RandomStream) -> Option<(f64, u64)> {
    let scenario = fleets.scenario;
    let limit = scenario.max_launches.unwrap_or(u64::MAX);
    let slots = (0..fleets.baseline).map(|_| draw_type(fleets, stream));
    let mut slots: Vec<FleetSlot> =
        slots.map(|kind| FleetSlot { kind, rejected: None, launched_h: 0.0 }).collect();
    let (mut left_h, mut now_h) = (fleets.work_h, 0.0);
    let (mut paid_h, mut launches) = (0.0, fleets.baseline);
    let improvable = |slot: &FleetSlot, left_h: f64| {
        let own_h = left_h / fleets.baseline as f64;
        !is_kept(&fleets.results, speed_of(fleets, slot), own_h, fleets.rejected_h)
    };
    loop {
        let speed: f64 = slots.iter().map(|slot| speed_of(fleets, slot)).sum();
        let is_done = left_h <= speed * scenario.review_h;
        let is_final = launches >= limit || !slots.iter().any(|slot| improvable(slot, left_h));
        if speed > 0.0 && (is_done || is_final) {
            now_h += left_h / speed;
            break;
        }
        if is_final {
            return None;
        }
        now_h += scenario.review_h;
        left_h -= speed * scenario.review_h;
        for slot in &mut slots {
            if launches < limit && improvable(slot, left_h) {
                launches += 1;
                paid_h += review(fleets, slot, now_h, stream);
            }
        }
    }
    for slot in &slots {
        paid_h += scenario.billing.billed_h(now_h - slot.launched_h);
    }
    let fees = fleets.baseline as f64 * scenario.launch_usd;
    Some((paid_h * scenario.price_usd_per_h + fees, launches))
}

/// Launches another instance for a slot, and keeps the faster one. Returns the hours that are paid.
fn review(fleets: &Fleets, slot: &mut FleetSlot, now_h: f64, stream: &mut RandomStream) -> f64 {
    let scenario = fleets.scenario;
    let same_again = slot.rejected.filter(|(_, at_h)| {
        let same = scenario.correlation.after(now_h - at_h);
        same > 0.0 && stream.uniform() < same
    });
    let kind = same_again.map_or_else(|| draw_type(fleets, stream), |(kind, _)| kind);
    if fleets.results[kind].speed <= speed_of(fleets, slot) {
        slot.rejected = Some((kind, now_h));
        return fleets.rejected_h;
    }
    let held_h = now_h - slot.launched_h;
    *slot = FleetSlot { kind, rejected: None, launched_h: now_h };
    // Both are paid until the type of the launch is known; its own hours count from here on.
    scenario.billing.billed_h(held_h + scenario.trial_s / 3600.0)
        + scenario.launch_usd / scenario.price_usd_per_h
}

fn speed_of(fleets: &Fleets, slot: &FleetSlot) -> f64 {
    fleets.results[slot.kind].speed
}

/// Draws the type of a launch.
fn draw_type(fleets: &Fleets, stream: &mut RandomStream) -> usize {
    let mut rest = stream.uniform();
    for (kind, result) in fleets.results.iter().enumerate() {
        rest -= result.probability;
        if rest < 0.0 {
            return kind;
        }
    }
    fleets.results.len() - 1
}
