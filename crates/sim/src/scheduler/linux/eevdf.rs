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
use crate::Nanos;

/// Virtual time runs as the clock for an entity of this weight.
pub const UNIT: i64 = 100 * 1024;

/// Something that competes: a group of a processor, or a virtual CPU within it.
#[derive(Clone, Debug)]
struct Entity {
    weight: i64,
    vruntime: i64,
    deadline: i64,
    /// Until there it is not interrupted by others of its queue.
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
    current: Option<usize>,
    queued: usize,
    /// The average when the last one left.
    rest: i64,
    slice: i64,
    tick: i64,
}

fn virtual_of(length: i64, weight: i64) -> i64 {
    (i128::from(length) * i128::from(UNIT) / i128::from(weight)) as i64
}

impl Queue {
    /// A queue of so many entities of the usual weight, all asleep.
    pub fn new(entities: usize, slice: Nanos, tick: Nanos) -> Self {
        let one = Entity {
            weight: UNIT,
            vruntime: 0,
            deadline: 0,
            protected_to: 0,
            lag: 0,
            queued: false,
            leaving: false,
        };
        let entities = vec![one; entities];
        let (slice, tick) = (slice as i64, tick as i64);
        Self { entities, current: None, queued: 0, rest: 0, slice, tick }
    }

    /// How many are in the queue, the current and those that are leaving among them.
    pub fn len(&self) -> usize {
        self.queued
    }

    /// Who runs, as it was said last.
    pub fn current(&self) -> Option<usize> {
        self.current
    }

    /// Whether an entity is in the queue.
    pub fn holds(&self, number: usize) -> bool {
        self.entities[number].queued
    }

    /// Whether an entity is only in the queue until its lag is paid.
    pub fn is_leaving(&self, number: usize) -> bool {
        self.entities[number].leaving
    }

    /// Sum of weights, and of weights times virtual run time beyond a base.
    fn sums(&self, base: i64) -> (i128, i128) {
        let queued = self.entities.iter().filter(|one| one.queued);
        queued.fold((0, 0), |(weights, sum), one| {
            let weight = i128::from(one.weight);
            (weights + weight, sum + weight * i128::from(one.vruntime - base))
        })
    }

    fn average(&self) -> i64 {
        let Some(base) = self.entities.iter().find(|one| one.queued) else { return self.rest };
        let base = base.vruntime;
        let (weights, sum) = self.sums(base);
        base + sum.div_euclid(weights) as i64
    }

    fn eligible(&self, number: usize) -> bool {
        self.sums(self.entities[number].vruntime).1 >= 0
    }

    /// An entity wants to run. One that was leaving stays, its lag at most zero.
    pub fn enqueue(&mut self, number: usize) {
        if self.entities[number].leaving {
            self.entities[number].leaving = false;
            if self.average() <= self.entities[number].vruntime {
                return;
            }
            self.remove(number);
            self.entities[number].lag = 0;
        }
        let (average, (weights, _)) = (self.average(), self.sums(0));
        let others = self.queued > 0;
        let (slice, one) = (self.slice, &mut self.entities[number]);
        let mut lag = 0;
        if others {
            // With it the average moves; what it is owed after that is what it was owed before.
            let all = weights + i128::from(one.weight);
            lag = (i128::from(one.lag) * all / weights) as i64;
        }
        one.vruntime = average - lag;
        one.deadline = one.vruntime + virtual_of(slice, one.weight);
        one.queued = true;
        self.queued += 1;
    }

    /// An entity goes. Asleep of its own will it stays while it has had more than its share.
    /// Returns whether it is gone.
    pub fn dequeue(&mut self, number: usize, asleep: bool) -> bool {
        if asleep && self.queued > 1 && !self.eligible(number) {
            self.entities[number].leaving = true;
            return false;
        }
        self.remove(number);
        true
    }

    /// An entity goes at once; of one that was leaving no credit is kept.
    pub fn remove(&mut self, number: usize) {
        let average = self.average();
        let longest = (2 * self.slice).max(self.tick);
        let one = &mut self.entities[number];
        let limit = virtual_of(longest, one.weight);
        one.lag = (average - one.vruntime).clamp(-limit, limit);
        if std::mem::take(&mut one.leaving) {
            one.lag = one.lag.min(0);
        }
        one.queued = false;
        self.queued -= 1;
        if self.current == Some(number) {
            self.current = None;
        }
        if self.queued == 0 {
            self.rest = average;
        }
    }

    /// The current one ran. Returns whether another one's turn has come.
    pub fn ran(&mut self, number: usize, length: Nanos) -> bool {
        let one = &mut self.entities[number];
        one.vruntime += virtual_of(length as i64, one.weight);
        let done = one.vruntime >= one.deadline;
        if done {
            one.deadline = one.vruntime + virtual_of(self.slice, one.weight);
        }
        self.queued > 1 && (done || one.vruntime >= one.protected_to)
    }

    /// Who runs next; None of an empty queue.
    pub fn pick(&self) -> Option<usize> {
        if let Some(current) = self.current {
            let one = &self.entities[current];
            let protected = one.queued && one.vruntime < one.protected_to;
            if protected && self.eligible(current) {
                return Some(current);
            }
        }
        let queued = || (0..self.entities.len()).filter(|number| self.entities[*number].queued);
        let deadline = |number: &usize| self.entities[*number].deadline;
        if self.queued < 2 {
            return queued().next();
        }
        let eligible = queued().filter(|number| self.eligible(*number));
        eligible.min_by_key(deadline)
    }

    /// From now on this one runs.
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
    pub fn set_weight(&mut self, number: usize, weight: i64) {
        let average = self.average();
        let one = &mut self.entities[number];
        let scaled =
            |value: i64| (i128::from(value) * i128::from(one.weight) / i128::from(weight)) as i64;
        if one.queued {
            let lag = scaled(average - one.vruntime);
            let ahead = scaled(one.deadline - one.vruntime);
            let protected = scaled(one.protected_to - one.vruntime);
            one.vruntime = average - lag;
            one.deadline = one.vruntime + ahead;
            one.protected_to = one.vruntime + protected;
        } else {
            one.lag = scaled(one.lag);
        }
        one.weight = weight;
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
