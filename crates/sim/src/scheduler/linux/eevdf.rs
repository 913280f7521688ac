//! Earliest eligible virtual deadline first, the fair class of Linux: one queue of it.
//!
//! Each entity has a virtual run time that grows by what it ran over its weight. It is eligible
//! while that is not ahead of the weighted average of all; among the eligible the one with the
//! earliest virtual deadline runs, and its deadline lies a slice over its weight ahead of where it
//! began. What it ran too little or too much when it goes to sleep (its lag) is kept for its return.
//!
//! Source: Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First" (1995), and what Linux
//! 6.12 to 6.18 makes of it: entities run to the end of their slice, sleepers with a negative lag
//! stay in the queue until it is paid.
use super::super::division::Divisor;
use crate::Nanos;

/// Virtual time runs as the clock for an entity of this weight.
pub const UNIT: i64 = 100 * 1024;

/// Something that competes: a group of a processor, or a virtual CPU within it.
#[derive(Clone, Debug)]
struct Entity {
    weight: Divisor,
    vruntime: i64,
    deadline: i64,
    /// Until there it is not interrupted by others of its queue. Set while it is the current one.
    protected_to: i64,
    lag: i64,
    queued: bool,
    /// It wants nothing any more and stays until its lag is paid.
    leaving: bool,
}

/// One queue.
#[derive(Clone, Debug)]
pub struct Queue {
    entities: Vec<Entity>,
    /// There is one entity, which has nobody to be compared with: only whether it is in the queue
    /// counts. Most machines have one virtual CPU on a processor at most.
    alone: bool,
    current: Option<usize>,
    queued: usize,
    /// Weights of those in the queue, and these times virtual run time, added up.
    weights: Divisor,
    sum: i128,
    /// The average when it was asked for last; it stays there when the last one leaves.
    rest: i64,
    slice: i64,
    tick: i64,
}

/// Lengths are at most some ticks: the product stays far below 2^63.
#[inline]
fn virtual_of(length: i64, weight: Divisor) -> i64 {
    weight.floored(length * UNIT)
}

/// A lag within what `longest` of real time is for that weight. A product tells that it is, as a rule,
/// and nothing need be divided.
#[inline]
fn limited(lag: i64, longest: i64, weight: Divisor) -> i64 {
    if lag.saturating_abs().saturating_mul(weight.get()) <= longest * UNIT {
        return lag;
    }
    let limit = virtual_of(longest, weight);
    lag.clamp(-limit, limit)
}

impl Queue {
    /// A queue of so many entities of the usual weight, all asleep.
    pub fn new(entities: usize, slice: Nanos, tick: Nanos) -> Self {
        let one = Entity {
            weight: Divisor::new(UNIT),
            vruntime: 0,
            deadline: 0,
            protected_to: 0,
            lag: 0,
            queued: false,
            leaving: false,
        };
        let (entities, alone) = (vec![one; entities], entities == 1);
        let (slice, tick) = (slice as i64, tick as i64);
        Self {
            entities,
            alone,
            current: None,
            queued: 0,
            weights: Divisor::new(0),
            sum: 0,
            rest: 0,
            slice,
            tick,
        }
    }

    /// How many are in the queue, the current and those that are leaving among them.
    #[inline]
    pub fn len(&self) -> usize {
        self.queued
    }

    /// Who runs, as it was said last.
    #[inline]
    pub fn current(&self) -> Option<usize> {
        self.current
    }

    /// Whether an entity is in the queue.
    #[inline]
    pub fn holds(&self, number: usize) -> bool {
        self.entities[number].queued
    }

    /// Whether an entity is only in the queue until its lag is paid.
    #[inline]
    pub fn is_leaving(&self, number: usize) -> bool {
        self.entities[number].leaving
    }

    /// Takes an entity into the sums, or with -1 out of them.
    #[inline]
    fn count(&mut self, number: usize, sign: i64) {
        let one = &self.entities[number];
        let weight = sign * one.weight.get();
        self.weights = Divisor::new(self.weights.get() + weight);
        self.sum += i128::from(weight) * i128::from(one.vruntime);
    }

    #[inline]
    fn average(&mut self) -> i64 {
        if self.queued > 0 {
            // Beyond the average of before the sum is small.
            let beyond = self.sum - i128::from(self.weights.get()) * i128::from(self.rest);
            self.rest += self.weights.divided(beyond);
        }
        self.rest
    }

    #[inline]
    fn eligible(&self, number: usize) -> bool {
        let vruntime = self.entities[number].vruntime;
        self.sum >= i128::from(self.weights.get()) * i128::from(vruntime)
    }

    /// An entity wants to run. One that was leaving stays, its lag at most zero.
    #[inline]
    pub fn enqueue(&mut self, number: usize) {
        if self.alone {
            self.entities[number].queued = true;
            self.queued = 1;
            return;
        }
        self.enter(number);
    }

    fn enter(&mut self, number: usize) {
        if self.entities[number].leaving {
            self.entities[number].leaving = false;
            if self.average() <= self.entities[number].vruntime {
                return;
            }
            self.remove(number);
            self.entities[number].lag = 0;
        }
        let (average, weights) = (self.average(), self.weights);
        let (slice, one) = (self.slice, &mut self.entities[number]);
        let mut lag = 0;
        if weights.get() > 0 && one.lag != 0 {
            // With it the average moves; what it is owed after that is what it was owed before.
            lag = weights.scaled(one.lag, weights.get() + one.weight.get());
        }
        one.vruntime = average - lag;
        one.deadline = one.vruntime + virtual_of(slice, one.weight);
        one.queued = true;
        self.queued += 1;
        self.count(number, 1);
    }

    /// An entity goes. Asleep of its own will it stays while it has had more than its share.
    /// Returns whether it is gone.
    #[inline]
    pub fn dequeue(&mut self, number: usize, asleep: bool) -> bool {
        if asleep && self.queued > 1 && !self.eligible(number) {
            self.entities[number].leaving = true;
            return false;
        }
        self.remove(number);
        true
    }

    /// An entity goes at once; of one that was leaving no credit is kept.
    #[inline]
    pub fn remove(&mut self, number: usize) {
        if !self.alone {
            self.leave(number);
        }
        self.entities[number].queued = false;
        self.queued -= 1;
        if self.current == Some(number) {
            self.current = None;
        }
    }

    /// Takes leave of the others, with its lag.
    fn leave(&mut self, number: usize) {
        let average = self.average();
        self.count(number, -1);
        let longest = (2 * self.slice).max(self.tick);
        let one = &mut self.entities[number];
        one.lag = limited(average - one.vruntime, longest, one.weight);
        if std::mem::take(&mut one.leaving) {
            one.lag = one.lag.min(0);
        }
    }

    /// The current one ran. Returns whether another one's turn has come.
    #[inline]
    pub fn ran(&mut self, number: usize, length: Nanos) -> bool {
        !self.alone && self.ran_among(number, length)
    }

    fn ran_among(&mut self, number: usize, length: Nanos) -> bool {
        let one = &mut self.entities[number];
        let ran = virtual_of(length as i64, one.weight);
        one.vruntime += ran;
        self.sum += i128::from(one.weight.get()) * i128::from(ran);
        // Neither is foreseen by a processor: both are worked out, and one is taken.
        let next = one.vruntime + virtual_of(self.slice, one.weight);
        let done = one.vruntime >= one.deadline;
        one.deadline = if done { next } else { one.deadline };
        (self.queued > 1) & (done | (one.vruntime >= one.protected_to))
    }

    /// Who runs next; None of an empty queue.
    #[inline]
    pub fn pick(&self) -> Option<usize> {
        if self.alone {
            return (self.queued > 0).then_some(0);
        }
        self.pick_among()
    }

    fn pick_among(&self) -> Option<usize> {
        if let Some(current) = self.current {
            let one = &self.entities[current];
            let protected = one.queued && one.vruntime < one.protected_to;
            if protected && self.eligible(current) {
                return Some(current);
            }
        }
        if self.queued < 2 {
            return self.entities.iter().position(|one| one.queued);
        }
        let mut earliest = None;
        let mut deadline = i64::MAX;
        for (number, one) in self.entities.iter().enumerate() {
            // Without short cuts, which no processor foresees.
            if one.queued & (one.deadline < deadline) & self.eligible(number) {
                (earliest, deadline) = (Some(number), one.deadline);
            }
        }
        earliest
    }

    /// From now on this one runs.
    #[inline]
    pub fn set_current(&mut self, current: Option<usize>) {
        if self.current == current {
            return;
        }
        self.current = current;
        if let Some(one) = current.map(|number| &mut self.entities[number]) {
            one.protected_to = one.deadline;
        }
    }

    /// Gives an entity another weight; what it is owed, and how far its deadline is, stay the same
    /// in real time.
    #[inline]
    pub fn set_weight(&mut self, number: usize, weight: i64) {
        let one = &mut self.entities[number];
        let before = one.weight.get();
        if before == weight || self.alone {
            return;
        }
        let weight = Divisor::new(weight);
        if one.queued {
            return self.weigh_anew(number, weight);
        }
        one.lag = weight.scaled(one.lag, before);
        one.weight = weight;
    }

    #[inline(never)]
    fn weigh_anew(&mut self, number: usize, weight: Divisor) {
        let average = self.average();
        self.count(number, -1);
        let one = &mut self.entities[number];
        let before = one.weight.get();
        let scaled = |value: i64| weight.scaled(value, before);
        let lag = scaled(average - one.vruntime);
        let ahead = scaled(one.deadline - one.vruntime);
        let before_that = std::mem::replace(&mut one.vruntime, average - lag);
        one.deadline = one.vruntime + ahead;
        if self.current == Some(number) {
            one.protected_to = one.vruntime + scaled(one.protected_to - before_that);
        }
        one.weight = weight;
        self.count(number, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Runs a queue whose entities all want to run, deciding at ticks; what each got.
    fn shares(weights: &[i64], ticks: usize) -> Vec<Nanos> {
        let mut queue = Queue::new(weights.len(), 14 * MS / 10, 4 * MS);
        for (number, weight) in weights.iter().enumerate() {
            queue.set_weight(number, weight * 1024);
            queue.enqueue(number);
        }
        let mut had = vec![0; weights.len()];
        queue.set_current(queue.pick());
        for _ in 0..ticks {
            let current = queue.current.unwrap();
            had[current] += 4 * MS;
            if queue.ran(current, 4 * MS) {
                queue.set_current(queue.pick());
            }
        }
        had
    }

    #[test]
    fn time_is_given_by_weight_in_whole_ticks() {
        for weights in [vec![100, 100], vec![100, 200], vec![300, 50, 50], vec![100, 1, 899]] {
            let ticks = 100_000;
            let all: i64 = weights.iter().sum();
            for (had, weight) in shares(&weights, ticks).iter().zip(&weights) {
                let wanted = *weight as f64 / all as f64 * ticks as f64;
                let got = (had / (4 * MS)) as f64;
                // Nobody is ever further off than the longest request: a tick, and one more.
                assert!((got - wanted).abs() <= 2.0, "{weights:?}: {got} of {wanted}");
            }
        }
    }

    #[test]
    fn a_lag_has_the_limit_of_its_weight() {
        for weight in [1024, UNIT - 1, UNIT, 3 * UNIT, 10_000 * 1024] {
            let limit = (8_000_000 * UNIT).div_euclid(weight);
            let limited = |lag| limited(lag, 8_000_000, Divisor::new(weight));
            for lag in [0, 1, limit - 1, limit, limit + 1, i64::MAX] {
                assert_eq!((limited(lag), limited(-lag)), (lag.min(limit), -lag.min(limit)));
            }
        }
    }

    #[test]
    fn what_was_had_too_much_is_paid_after_a_sleep() {
        let mut queue = Queue::new(2, MS, 4 * MS);
        queue.enqueue(0);
        queue.enqueue(1);
        queue.set_current(Some(0));
        queue.ran(0, 4 * MS);
        assert!(!queue.dequeue(0, true), "it has had more than its share");
        assert_eq!((queue.len(), queue.pick()), (2, Some(1)));
        queue.set_current(Some(1));
        queue.ran(1, 5 * MS);
        // Its debt is paid: it is eligible again, and goes for good when it is looked at.
        let deadline_first = queue.pick();
        assert_eq!(deadline_first, Some(0));
        queue.remove(0);
        assert_eq!((queue.len(), queue.entities[0].lag), (1, 0));
    }
}
