//! One run queue of the fair class of Linux: earliest eligible virtual deadline first.
//!
//! Each entity has a virtual runtime that grows by its runtime over its weight. It is eligible while
//! that is not ahead of the weighted average of all; among the eligible the one with the earliest virtual
//! deadline runs, and its deadline is a slice over its weight ahead of its start. Its lag, what it ran too
//! little or too much when it goes to sleep, is kept for its return.
//!
//! Source: Stoica and Abdel-Wahab, "Earliest Eligible Virtual Deadline First" (1995), and what Linux
//! 6.12 to 6.18 makes of it: entities run to the end of their slice, sleepers with a negative lag
//! stay in the queue until it is paid.
use super::super::divisor::Divisor;
use crate::Nanos;

/// Weight of an entity whose virtual time advances like the clock.
pub const UNIT: i64 = 100 * 1024;

/// A group of a processor, or a virtual CPU within it.
#[derive(Clone, Debug, Default)]
struct Entity {
    weight: Divisor,
    vruntime: i64,
    deadline: i64,
    /// Virtual runtime until which it is not preempted by others of its queue, while it is current.
    protected_to: i64,
    lag: i64,
    is_queued: bool,
    /// It sleeps, and stays in the queue until its negative lag is paid (delayed dequeue).
    is_delayed: bool,
}

#[derive(Clone, Debug, Default)]
pub struct RunQueue {
    entities: Vec<Entity>,
    /// There is one entity, for which only matters whether it is queued. Most machines have at most
    /// one virtual CPU on a processor.
    is_single: bool,
    current: Option<usize>,
    queued: usize,
    /// Sum of the weights of the queued entities, and of weight times virtual runtime.
    weights: Divisor,
    sum: i128,
    /// The average when it was last computed; kept when the last entity leaves.
    last_average: i64,
    slice: i64,
    tick: i64,
}

/// Converts a duration to virtual time. Durations are at most some ticks: the product stays far below
/// 2^63.
#[inline]
fn to_virtual(length: i64, weight: Divisor) -> i64 {
    weight.floor_div(length * UNIT)
}

/// Clamps a lag to `max` of real time for that weight. As a rule a product shows that it is within, and
/// no division is needed.
#[inline]
fn clamp_lag(lag: i64, max: i64, weight: Divisor) -> i64 {
    if lag.saturating_abs().saturating_mul(weight.get()) <= max * UNIT {
        return lag;
    }
    let limit = to_virtual(max, weight);
    lag.clamp(-limit, limit)
}

impl RunQueue {
    /// Returns a queue for so many entities of default weight, all asleep.
    pub fn new(entities: usize, slice: Nanos, tick: Nanos) -> Self {
        let entity = Entity { weight: Divisor::new(UNIT), ..Entity::default() };
        let (entities, is_single) = (vec![entity; entities], entities == 1);
        let (slice, tick) = (slice as i64, tick as i64);
        Self { entities, is_single, slice, tick, ..Self::default() }
    }

    /// Returns the number of queued entities, including the current one and delayed ones.
    #[inline]
    pub fn len(&self) -> usize {
        self.queued
    }

    #[inline]
    pub fn current(&self) -> Option<usize> {
        self.current
    }

    #[inline]
    pub fn contains(&self, number: usize) -> bool {
        self.entities[number].is_queued
    }

    #[inline]
    pub fn is_delayed(&self, number: usize) -> bool {
        self.entities[number].is_delayed
    }

    /// Adds an entity to the sums, or with -1 removes it.
    #[inline]
    fn add_to_sums(&mut self, number: usize, sign: i64) {
        let entity = &self.entities[number];
        let weight = sign * entity.weight.get();
        self.weights = Divisor::new(self.weights.get() + weight);
        self.sum += i128::from(weight) * i128::from(entity.vruntime);
    }

    #[inline]
    fn average(&mut self) -> i64 {
        if self.queued > 0 {
            // Relative to the last average the sum is small.
            let difference =
                self.sum - i128::from(self.weights.get()) * i128::from(self.last_average);
            self.last_average += self.weights.floor_div_wide(difference);
        }
        self.last_average
    }

    #[inline]
    fn is_eligible(&self, number: usize) -> bool {
        let vruntime = self.entities[number].vruntime;
        self.sum >= i128::from(self.weights.get()) * i128::from(vruntime)
    }

    /// Makes an entity runnable. A delayed one stays, with a lag of at most zero.
    #[inline]
    pub fn enqueue(&mut self, number: usize) {
        if self.is_single {
            self.entities[number].is_queued = true;
            self.queued = 1;
            return;
        }
        self.enqueue_among(number);
    }

    fn enqueue_among(&mut self, number: usize) {
        if self.entities[number].is_delayed {
            self.entities[number].is_delayed = false;
            if self.average() <= self.entities[number].vruntime {
                return;
            }
            self.remove(number);
            self.entities[number].lag = 0;
        }
        let (average, weights) = (self.average(), self.weights);
        let (slice, entity) = (self.slice, &mut self.entities[number]);
        let mut lag = 0;
        if weights.get() > 0 && entity.lag != 0 {
            // Its arrival moves the average; its lag after that is to be what it was before.
            lag = weights.scale(entity.lag, weights.get() + entity.weight.get());
        }
        entity.vruntime = average - lag;
        entity.deadline = entity.vruntime + to_virtual(slice, entity.weight);
        entity.is_queued = true;
        self.queued += 1;
        self.add_to_sums(number, 1);
    }

    /// Removes a sleeping entity, or delays that while it has had more than its share.
    #[inline]
    pub fn dequeue(&mut self, number: usize) {
        if self.queued > 1 && !self.is_eligible(number) {
            self.entities[number].is_delayed = true;
        } else {
            self.remove(number);
        }
    }

    /// Removes an entity at once; a delayed one keeps no positive lag.
    #[inline]
    pub fn remove(&mut self, number: usize) {
        if !self.is_single {
            self.remove_among(number);
        }
        self.entities[number].is_queued = false;
        self.queued -= 1;
        if self.current == Some(number) {
            self.current = None;
        }
    }

    fn remove_among(&mut self, number: usize) {
        let average = self.average();
        self.add_to_sums(number, -1);
        let max_lag = (2 * self.slice).max(self.tick);
        let entity = &mut self.entities[number];
        entity.lag = clamp_lag(average - entity.vruntime, max_lag, entity.weight);
        if std::mem::take(&mut entity.is_delayed) {
            entity.lag = entity.lag.min(0);
        }
    }

    /// Charges the current entity. Returns whether another one should run.
    #[inline]
    pub fn charge(&mut self, number: usize, ran: Nanos) -> bool {
        !self.is_single && self.charge_among(number, ran)
    }

    fn charge_among(&mut self, number: usize, ran: Nanos) -> bool {
        let entity = &mut self.entities[number];
        let ran = to_virtual(ran as i64, entity.weight);
        entity.vruntime += ran;
        self.sum += i128::from(entity.weight.get()) * i128::from(ran);
        // Without a branch, which would be mispredicted.
        let next = entity.vruntime + to_virtual(self.slice, entity.weight);
        let done = entity.vruntime >= entity.deadline;
        entity.deadline = if done { next } else { entity.deadline };
        (self.queued > 1) & (done | (entity.vruntime >= entity.protected_to))
    }

    /// Returns the entity that runs next; None for an empty queue.
    #[inline]
    pub fn pick(&self) -> Option<usize> {
        if self.is_single {
            return (self.queued > 0).then_some(0);
        }
        self.pick_among()
    }

    fn pick_among(&self) -> Option<usize> {
        if let Some(current) = self.current {
            let entity = &self.entities[current];
            let protected = entity.is_queued && entity.vruntime < entity.protected_to;
            if protected && self.is_eligible(current) {
                return Some(current);
            }
        }
        if self.queued < 2 {
            return self.entities.iter().position(|entity| entity.is_queued);
        }
        let mut earliest = None;
        let mut deadline = i64::MAX;
        for (number, entity) in self.entities.iter().enumerate() {
            // Without short-circuit branches, which would be mispredicted.
            if entity.is_queued & (entity.deadline < deadline) & self.is_eligible(number) {
                (earliest, deadline) = (Some(number), entity.deadline);
            }
        }
        earliest
    }

    #[inline]
    pub fn set_current(&mut self, current: Option<usize>) {
        if self.current == current {
            return;
        }
        self.current = current;
        if let Some(entity) = current.map(|number| &mut self.entities[number]) {
            entity.protected_to = entity.deadline;
        }
    }

    /// Changes the weight of an entity; its lag and its deadline stay the same in real time.
    #[inline]
    pub fn set_weight(&mut self, number: usize, weight: i64) {
        let entity = &mut self.entities[number];
        let old = entity.weight.get();
        if old == weight || self.is_single {
            return;
        }
        let weight = Divisor::new(weight);
        if entity.is_queued {
            return self.set_weight_queued(number, weight);
        }
        entity.lag = weight.scale(entity.lag, old);
        entity.weight = weight;
    }

    #[inline(never)]
    fn set_weight_queued(&mut self, number: usize, weight: Divisor) {
        let average = self.average();
        self.add_to_sums(number, -1);
        let entity = &mut self.entities[number];
        let old = entity.weight.get();
        let scaled = |value: i64| weight.scale(value, old);
        let lag = scaled(average - entity.vruntime);
        let ahead = scaled(entity.deadline - entity.vruntime);
        let old_vruntime = std::mem::replace(&mut entity.vruntime, average - lag);
        entity.deadline = entity.vruntime + ahead;
        if self.current == Some(number) {
            entity.protected_to = entity.vruntime + scaled(entity.protected_to - old_vruntime);
        }
        entity.weight = weight;
        self.add_to_sums(number, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Runs a queue whose entities all want to run, deciding at ticks; what each got.
    fn shares(weights: &[i64], ticks: usize) -> Vec<Nanos> {
        let mut queue = RunQueue::new(weights.len(), 14 * MS / 10, 4 * MS);
        for (number, weight) in weights.iter().enumerate() {
            queue.set_weight(number, weight * 1024);
            queue.enqueue(number);
        }
        let mut had = vec![0; weights.len()];
        queue.set_current(queue.pick());
        for _ in 0..ticks {
            let current = queue.current.unwrap();
            had[current] += 4 * MS;
            if queue.charge(current, 4 * MS) {
                queue.set_current(queue.pick());
            }
        }
        had
    }

    #[test]
    fn time_is_shared_by_weight_in_whole_ticks() {
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
            let limited = |lag| clamp_lag(lag, 8_000_000, Divisor::new(weight));
            for lag in [0, 1, limit - 1, limit, limit + 1, i64::MAX] {
                assert_eq!((limited(lag), limited(-lag)), (lag.min(limit), -lag.min(limit)));
            }
        }
    }

    #[test]
    fn a_negative_lag_is_paid_after_a_sleep() {
        let mut queue = RunQueue::new(2, MS, 4 * MS);
        queue.enqueue(0);
        queue.enqueue(1);
        queue.set_current(Some(0));
        queue.charge(0, 4 * MS);
        queue.dequeue(0);
        assert!(queue.is_delayed(0), "it has had more than its share");
        assert_eq!((queue.len(), queue.pick()), (2, Some(1)));
        queue.set_current(Some(1));
        queue.charge(1, 5 * MS);
        // Its debt is paid: it is eligible again, and goes for good when it is looked at.
        let deadline_first = queue.pick();
        assert_eq!(deadline_first, Some(0));
        queue.remove(0);
        assert_eq!((queue.len(), queue.entities[0].lag), (1, 0));
    }
}
