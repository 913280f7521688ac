//! Load balancing over the instances of a site.
use super::scenario::Balancer;
use crate::Nanos;

/// Key of an instance that may not be chosen.
const CLOSED: u64 = u64::MAX;

/// The first minimum of many keys: a tournament tree, so that a change costs the logarithm of the number
/// of instances.
#[derive(Clone, Debug)]
struct Tournament {
    keys: Vec<u64>,
    /// Indices of the minima of the inner nodes, the root at 1; the leaves follow and are the keys.
    winners: Vec<u32>,
}

impl Tournament {
    fn new() -> Self {
        Self { keys: vec![CLOSED; 1], winners: vec![0; 2] }
    }

    fn set(&mut self, index: usize, key: u64) {
        if index >= self.keys.len() {
            self.grow(index + 1);
        }
        self.keys[index] = key;
        let mut node = (index + self.keys.len()) / 2;
        while node > 0 {
            let winner = self.winner_of(node);
            self.winners[node] = winner;
            node /= 2;
        }
    }

    fn winner_of(&self, node: usize) -> u32 {
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

    fn grow(&mut self, min: usize) {
        let leaves = min.next_power_of_two();
        self.keys.resize(leaves, CLOSED);
        self.winners = vec![0; leaves.max(2)];
        for node in (1..leaves).rev() {
            self.winners[node] = self.winner_of(node);
        }
    }

    /// Returns index and key of the minimum.
    fn min(&self) -> (usize, u64) {
        let index = if self.keys.len() == 1 { 0 } else { self.winners[1] as usize };
        (index, self.keys[index])
    }
}

/// The balancer's view of an instance.
#[derive(Clone, Copy, Debug)]
struct InstanceView {
    is_open: bool,
    was_used: bool,
    active: u32,
    /// Expected completion of its requests.
    free_at: Nanos,
}

/// The load balancer of a site.
#[derive(Clone, Debug)]
pub struct LoadBalancer {
    rule: Balancer,
    views: Vec<InstanceView>,
    tournament: Tournament,
    next: usize,
    open_count: usize,
    /// Round robin also advances when a request completes: CloudAnalyst's error.
    advances_at_completions: bool,
}

impl LoadBalancer {
    pub fn new(rule: Balancer, advances_at_completions: bool) -> Self {
        Self {
            rule,
            views: Vec::new(),
            tournament: Tournament::new(),
            next: 0,
            open_count: 0,
            advances_at_completions: advances_at_completions && rule == Balancer::RoundRobin,
        }
    }

    /// Adds an instance, or makes it available again.
    pub fn open(&mut self, instance: usize, now: Nanos) {
        let fresh = InstanceView { is_open: true, was_used: false, active: 0, free_at: now };
        if instance == self.views.len() {
            self.views.push(fresh);
        } else {
            self.views[instance] = fresh;
        }
        self.open_count += 1;
        self.update_key(instance);
    }

    /// Makes an instance unavailable.
    pub fn close(&mut self, instance: usize) {
        self.views[instance].is_open = false;
        self.open_count -= 1;
        self.update_key(instance);
    }

    /// Returns the number of available instances.
    pub fn open_count(&self) -> usize {
        self.open_count
    }

    /// Returns the instance for the next request; None if none is idle (throttled) or available.
    #[inline]
    pub fn choose(&mut self) -> Option<usize> {
        if self.open_count == 0 {
            return None;
        }
        if self.rule == Balancer::RoundRobin {
            while !self.views[self.next].is_open {
                self.advance();
            }
            let chosen = self.next;
            self.advance();
            return Some(chosen);
        }
        let (index, key) = self.tournament.min();
        let busy = self.rule == Balancer::Throttled && key > 0;
        (!busy && key != CLOSED).then_some(index)
    }

    #[inline]
    fn advance(&mut self) {
        self.next += 1;
        if self.next >= self.views.len() {
            self.next = 0;
        }
    }

    /// Assigns a request of that service time to an instance.
    #[inline]
    pub fn assign(&mut self, instance: usize, now: Nanos, service: Nanos) {
        let view = &mut self.views[instance];
        view.was_used = true;
        view.active += 1;
        view.free_at = view.free_at.max(now).saturating_add(service);
        self.update_key(instance);
    }

    /// Records the completion of a request.
    #[inline]
    pub fn complete(&mut self, instance: usize) {
        self.views[instance].active -= 1;
        if self.advances_at_completions {
            self.advance();
        }
        self.update_key(instance);
    }

    /// Multiplies the remaining service of an instance by `ratio`.
    pub fn scale_remaining(&mut self, instance: usize, now: Nanos, ratio: f64) {
        let view = &mut self.views[instance];
        let left = view.free_at.saturating_sub(now) as f64 * ratio;
        view.free_at =
            view.free_at.min(now).saturating_add(left as Nanos).max(now.min(view.free_at));
        self.update_key(instance);
    }

    #[inline]
    fn update_key(&mut self, instance: usize) {
        let view = self.views[instance];
        let key = match self.rule {
            Balancer::RoundRobin => return,
            _ if !view.is_open => CLOSED,
            Balancer::EquallySpread if !view.was_used => 0,
            Balancer::EquallySpread => u64::from(view.active) + 1,
            Balancer::Throttled => u64::from(view.active.min(1)),
            Balancer::LeastTime => view.free_at.min(CLOSED - 1),
        };
        self.tournament.set(instance, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn balance(rule: Balancer, instances: usize) -> LoadBalancer {
        let mut balance = LoadBalancer::new(rule, false);
        (0..instances).for_each(|instance| balance.open(instance, 0));
        balance
    }

    fn chosen(balance: &mut LoadBalancer, lengths: &[Nanos]) -> Vec<Option<usize>> {
        let take = |length: &Nanos| {
            let instance = balance.choose()?;
            balance.assign(instance, 0, *length);
            Some(instance)
        };
        lengths.iter().map(take).collect()
    }

    #[test]
    fn round_robin_skips_closed_instances() {
        let mut balance = balance(Balancer::RoundRobin, 3);
        balance.close(1);
        assert_eq!(chosen(&mut balance, &[1; 4]), [Some(0), Some(2), Some(0), Some(2)]);
        balance.close(0);
        balance.close(2);
        assert_eq!(balance.choose(), None);
    }

    #[test]
    fn throttled_gives_one_at_a_time() {
        let mut balance = balance(Balancer::Throttled, 2);
        assert_eq!(chosen(&mut balance, &[1; 3]), [Some(0), Some(1), None]);
        balance.complete(1);
        assert_eq!(balance.choose(), Some(1));
    }

    #[test]
    fn equally_spread_prefers_the_never_used() {
        let mut balance = balance(Balancer::EquallySpread, 3);
        assert_eq!(chosen(&mut balance, &[1]), [Some(0)]);
        balance.complete(0);
        assert_eq!(chosen(&mut balance, &[1; 4]), [Some(1), Some(2), Some(0), Some(0)]);
    }

    #[test]
    fn least_time_looks_at_the_work_and_not_at_the_number() {
        let mut balance = balance(Balancer::LeastTime, 2);
        assert_eq!(chosen(&mut balance, &[10, 3, 3, 3, 3]), [0, 1, 1, 1, 1].map(Some));
        assert_eq!(balance.choose(), Some(0));
    }

    #[test]
    fn cloudanalyst_advances_at_completions() {
        let mut balance = LoadBalancer::new(Balancer::RoundRobin, true);
        (0..3).for_each(|instance| balance.open(instance, 0));
        assert_eq!(chosen(&mut balance, &[1]), [Some(0)]);
        balance.complete(0);
        assert_eq!(chosen(&mut balance, &[1]), [Some(2)]);
    }

    proptest! {
        #[test]
        fn a_tournament_finds_the_first_minimum(steps in prop::collection::vec((0usize..40, 0u64..9), 1..200)) {
            let mut tournament = Tournament::new();
            let mut keys = vec![CLOSED; 64];
            for (place, key) in steps {
                tournament.set(place, key);
                keys[place] = key;
                let least = *keys.iter().min().unwrap();
                let first = keys.iter().position(|key| *key == least).unwrap();
                prop_assert_eq!(tournament.min(), (first, least));
            }
        }
    }
}
