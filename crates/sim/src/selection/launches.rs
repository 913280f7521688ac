//! Fleets whose launches have to be followed one by one: a quota, replacing later.
use super::closed::is_kept;
use super::fleets::Fleets;
use crate::random::Stream;

/// An instance, or the slot that one was launched from.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Number of the type that runs.
    runs: usize,
    /// Type of the launch that was ended there last, and when.
    ended: Option<(usize, f64)>,
    /// When what runs was launched.
    since_h: f64,
}

/// Trial and failure, or stopping, as long as there are launches left: the cost and the launches.
pub fn within_quota(fleets: &Fleets, stream: &mut Stream) -> (f64, u64) {
    let scenario = fleets.scenario;
    let quota = scenario.launches_at_most.unwrap_or(u64::MAX);
    let same = fleets.same_again();
    loop {
        let mut launches = fleets.selected;
        let mut counts = vec![0; fleets.chances.len()];
        for _ in 0..fleets.selected {
            let mut kind = launched(fleets, stream);
            while !fleets.chances[kind].kept && launches < quota {
                launches += 1;
                if stream.uniform() >= same {
                    kind = launched(fleets, stream);
                }
            }
            counts[kind] += 1;
        }
        let rejected = (launches - fleets.selected) as f64 * fleets.rejected_h;
        let fees = fleets.selected as f64 * scenario.launch_usd;
        if let Some(running) = fleets.cost(fleets.selected, &counts) {
            return (running + rejected * scenario.price_usd_per_h + fees, launches);
        }
    }
}

/// What comes is kept and replaced later, as long as that pays: the cost and the launches.
pub fn replaced(fleets: &Fleets, stream: &mut Stream) -> (f64, u64) {
    let scenario = fleets.scenario;
    let quota = scenario.launches_at_most.unwrap_or(u64::MAX);
    let slots = (0..fleets.random).map(|_| launched(fleets, stream));
    let mut slots: Vec<Slot> = slots.map(|runs| Slot { runs, ended: None, since_h: 0.0 }).collect();
    let (mut left_h, mut now_h) = (fleets.work_h, 0.0);
    let (mut paid_h, mut launches) = (0.0, fleets.random);
    loop {
        let speed: f64 = slots.iter().map(|slot| fleets.chances[slot.runs].speed).sum();
        let own_h = left_h / slots.len() as f64;
        let improvable = |slot: &Slot| {
            !is_kept(&fleets.chances, speed_of(fleets, slot), own_h, fleets.rejected_h)
        };
        let done = left_h <= speed * scenario.review_h;
        let never = launches >= quota || !slots.iter().any(improvable);
        if speed > 0.0 && (done || never) {
            now_h += left_h / speed;
            break;
        }
        if never {
            // Nothing runs and nothing may be launched any more: this fleet is drawn again.
            return replaced(fleets, stream);
        }
        now_h += scenario.review_h;
        left_h -= speed * scenario.review_h;
        let own_h = left_h / slots.len() as f64;
        for slot in &mut slots {
            if launches < quota
                && !is_kept(&fleets.chances, speed_of(fleets, slot), own_h, fleets.rejected_h)
            {
                launches += 1;
                paid_h += look(fleets, slot, now_h, stream);
            }
        }
    }
    for slot in &slots {
        paid_h += scenario.billing.billed_h(now_h - slot.since_h);
    }
    let fees = fleets.random as f64 * scenario.launch_usd;
    (paid_h * scenario.price_usd_per_h + fees, launches)
}

/// Launches beside what runs in a slot, and keeps the faster one: the hours that are paid for it.
fn look(fleets: &Fleets, slot: &mut Slot, now_h: f64, stream: &mut Stream) -> f64 {
    let scenario = fleets.scenario;
    let again = slot.ended.filter(|(_, at_h)| {
        let same = scenario.correlation.after(now_h - at_h);
        same > 0.0 && stream.uniform() < same
    });
    let kind = again.map_or_else(|| launched(fleets, stream), |(kind, _)| kind);
    if fleets.chances[kind].speed <= speed_of(fleets, slot) {
        slot.ended = Some((kind, now_h));
        return fleets.rejected_h;
    }
    let held_h = now_h - slot.since_h;
    *slot = Slot { runs: kind, ended: None, since_h: now_h };
    // Until the launch has told its type both are paid; its own hours count from here on.
    scenario.billing.billed_h(held_h + scenario.trial_s / 3600.0)
        + scenario.launch_usd / scenario.price_usd_per_h
}

fn speed_of(fleets: &Fleets, slot: &Slot) -> f64 {
    fleets.chances[slot.runs].speed
}

/// Type of a launch.
fn launched(fleets: &Fleets, stream: &mut Stream) -> usize {
    let mut at = stream.uniform();
    for (kind, one) in fleets.chances.iter().enumerate() {
        at -= one.chance;
        if at < 0.0 {
            return kind;
        }
    }
    fleets.chances.len() - 1
}
