//! Which instance of a site answers.
use super::scenario::Balancer;
use crate::Nanos;

/// An instance that may not be chosen.
const CLOSED: u64 = u64::MAX;

/// The least of many keys, the first of equal ones: a tournament, so that neither a look nor a
/// change grows with the number of instances by more than its logarithm.
#[derive(Clone, Debug)]
struct Tournament {
    keys: Vec<u64>,
    /// Winners of the matches, the final at 1; the leaves follow and are the keys.
    winners: Vec<u32>,
}

impl Tournament {
    fn new() -> Self {
        Self { keys: vec![CLOSED; 1], winners: vec![0; 2] }
    }

    fn set(&mut self, place: usize, key: u64) {
        if place >= self.keys.len() {
            self.grow(place + 1);
        }
        self.keys[place] = key;
        let mut node = (place + self.keys.len()) / 2;
        while node > 0 {
            let winner = self.match_of(node);
            self.winners[node] = winner;
            node /= 2;
        }
    }

    fn match_of(&self, node: usize) -> u32 {
        let leaves = self.keys.len();
        let side = |child: usize| {
            if child >= leaves {
                (child - leaves) as u32
            } else {
                self.winners[child]
            }
        };
        let (left, right) = (side(2 * node), side(2 * node + 1));
        if self.keys[right as usize] < self.keys[left as usize] {
            right
        } else {
            left
        }
    }

    fn grow(&mut self, least: usize) {
        let leaves = least.next_power_of_two();
        self.keys.resize(leaves, CLOSED);
        self.winners = vec![0; leaves.max(2)];
        for node in (1..leaves).rev() {
            self.winners[node] = self.match_of(node);
        }
    }

    /// Place and key of the least.
    fn least(&self) -> (usize, u64) {
        let place = if self.keys.len() == 1 { 0 } else { self.winners[1] as usize };
        (place, self.keys[place])
    }
}

/// What the balancer knows of an instance.
#[derive(Clone, Copy, Debug)]
struct Known {
    open: bool,
    used: bool,
    active: u32,
    /// When it will be through with its requests.
    free_at: Nanos,
}

/// The balancer of a site.
#[derive(Clone, Debug)]
pub struct Balance {
    rule: Balancer,
    known: Vec<Known>,
    order: Tournament,
    /// Whose turn it is.
    next: usize,
    open: usize,
    /// Round robin also steps when a request is done: CloudAnalyst's slip.
    steps_at_ends: bool,
}

impl Balance {
    /// A balancer of that rule, without instances.
    pub fn new(rule: Balancer, steps_at_ends: bool) -> Self {
        Self {
            rule,
            known: Vec::new(),
            order: Tournament::new(),
            next: 0,
            open: 0,
            steps_at_ends: steps_at_ends && rule == Balancer::RoundRobin,
        }
    }

    /// An instance may be chosen from now on.
    pub fn opens(&mut self, instance: usize, now: Nanos) {
        let fresh = Known { open: true, used: false, active: 0, free_at: now };
        if instance == self.known.len() {
            self.known.push(fresh);
        } else {
            self.known[instance] = fresh;
        }
        self.open += 1;
        self.rank(instance);
    }

    /// An instance is chosen no more.
    pub fn closes(&mut self, instance: usize) {
        self.known[instance].open = false;
        self.open -= 1;
        self.rank(instance);
    }

    /// Instances that may be chosen.
    pub fn open(&self) -> usize {
        self.open
    }

    /// The instance for the next request; None if none is free (throttled) or none is open.
    #[inline]
    pub fn choose(&mut self) -> Option<usize> {
        if self.open == 0 {
            return None;
        }
        if self.rule == Balancer::RoundRobin {
            while !self.known[self.next].open {
                self.step();
            }
            let chosen = self.next;
            self.step();
            return Some(chosen);
        }
        let (place, key) = self.order.least();
        let busy = self.rule == Balancer::Throttled && key > 0;
        (!busy && key != CLOSED).then_some(place)
    }

    #[inline]
    fn step(&mut self) {
        self.next += 1;
        if self.next >= self.known.len() {
            self.next = 0;
        }
    }

    /// A request of that length goes to an instance.
    #[inline]
    pub fn begins(&mut self, instance: usize, now: Nanos, length: Nanos) {
        let known = &mut self.known[instance];
        known.used = true;
        known.active += 1;
        known.free_at = known.free_at.max(now).saturating_add(length);
        self.rank(instance);
    }

    /// An instance is done with a request.
    #[inline]
    pub fn ends(&mut self, instance: usize) {
        self.known[instance].active -= 1;
        if self.steps_at_ends {
            self.step();
        }
        self.rank(instance);
    }

    /// What an instance still has to do now takes `ratio` times as long.
    pub fn stretches(&mut self, instance: usize, now: Nanos, ratio: f64) {
        let known = &mut self.known[instance];
        let left = known.free_at.saturating_sub(now) as f64 * ratio;
        known.free_at =
            known.free_at.min(now).saturating_add(left as Nanos).max(now.min(known.free_at));
        self.rank(instance);
    }

    /// Requests at an instance.
    pub fn active(&self, instance: usize) -> u32 {
        self.known[instance].active
    }

    #[inline]
    fn rank(&mut self, instance: usize) {
        let known = self.known[instance];
        let key = match self.rule {
            Balancer::RoundRobin => return,
            _ if !known.open => CLOSED,
            Balancer::EquallySpread if !known.used => 0,
            Balancer::EquallySpread => u64::from(known.active) + 1,
            Balancer::Throttled => u64::from(known.active.min(1)),
            Balancer::LeastTime => known.free_at.min(CLOSED - 1),
        };
        self.order.set(instance, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn balance(rule: Balancer, instances: usize) -> Balance {
        let mut balance = Balance::new(rule, false);
        (0..instances).for_each(|instance| balance.opens(instance, 0));
        balance
    }

    fn chosen(balance: &mut Balance, lengths: &[Nanos]) -> Vec<Option<usize>> {
        let take = |length: &Nanos| {
            let instance = balance.choose()?;
            balance.begins(instance, 0, *length);
            Some(instance)
        };
        lengths.iter().map(take).collect()
    }

    #[test]
    fn round_robin_goes_around_what_is_closed() {
        let mut balance = balance(Balancer::RoundRobin, 3);
        balance.closes(1);
        assert_eq!(chosen(&mut balance, &[1; 4]), [Some(0), Some(2), Some(0), Some(2)]);
        balance.closes(0);
        balance.closes(2);
        assert_eq!(balance.choose(), None);
    }

    #[test]
    fn throttled_gives_one_at_a_time() {
        let mut balance = balance(Balancer::Throttled, 2);
        assert_eq!(chosen(&mut balance, &[1; 3]), [Some(0), Some(1), None]);
        balance.ends(1);
        assert_eq!(balance.choose(), Some(1));
    }

    #[test]
    fn equally_spread_prefers_the_never_used() {
        let mut balance = balance(Balancer::EquallySpread, 3);
        assert_eq!(chosen(&mut balance, &[1]), [Some(0)]);
        balance.ends(0);
        assert_eq!(chosen(&mut balance, &[1; 4]), [Some(1), Some(2), Some(0), Some(0)]);
    }

    #[test]
    fn least_time_looks_at_the_work_and_not_at_the_number() {
        let mut balance = balance(Balancer::LeastTime, 2);
        assert_eq!(chosen(&mut balance, &[10, 3, 3, 3, 3]), [0, 1, 1, 1, 1].map(Some));
        assert_eq!(balance.choose(), Some(0));
    }

    #[test]
    fn the_tool_steps_at_ends_too() {
        let mut balance = Balance::new(Balancer::RoundRobin, true);
        (0..3).for_each(|instance| balance.opens(instance, 0));
        assert_eq!(chosen(&mut balance, &[1]), [Some(0)]);
        balance.ends(0);
        assert_eq!(chosen(&mut balance, &[1]), [Some(2)]);
    }

    proptest! {
        #[test]
        fn a_tournament_finds_the_first_least(steps in prop::collection::vec((0usize..40, 0u64..9), 1..200)) {
            let mut tournament = Tournament::new();
            let mut keys = vec![CLOSED; 64];
            for (place, key) in steps {
                tournament.set(place, key);
                keys[place] = key;
                let least = *keys.iter().min().unwrap();
                let first = keys.iter().position(|key| *key == least).unwrap();
                prop_assert_eq!(tournament.least(), (first, least));
            }
        }
    }
}
