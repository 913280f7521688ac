//! Xen's Credit scheduler, of release 4.1: weights by credits, caps by parking.
use super::host::Host;
use super::state::{Accounted, Decision, Processor, Rules};
use crate::Nanos;
use std::collections::VecDeque;

const MS: Nanos = 1_000_000;
const TICK: Nanos = 10 * MS;
const ACCOUNT: Nanos = 30 * MS;
const SLICE: Nanos = 30 * MS;
/// Credits of one accounting period of a processor.
const PERIOD_CREDITS: i64 = 300;
/// A credit is so much time.
const CREDIT_NS: Nanos = MS / 10;

/// The lower, the sooner it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Boost,
    Under,
    Over,
}

struct Account {
    domain: usize,
    credit: i64,
    /// Time run that is less than a credit.
    rest_ns: Nanos,
    class: Class,
    parked: bool,
    active: bool,
    /// The processor in whose queue it waits.
    waits_on: Option<usize>,
    /// The processor on which it ran last.
    home: usize,
    wants: bool,
}

struct Share {
    weight: i64,
    cap: i64,
}

/// The scheduler's state.
pub struct Credit {
    accounts: Vec<Account>,
    shares: Vec<Share>,
    queues: Vec<VecDeque<usize>>,
    balance: i64,
}

impl Credit {
    /// All credits zero.
    pub fn new(host: &Host) -> Self {
        let account = |(number, domain): (usize, usize)| Account {
            domain,
            credit: 0,
            rest_ns: 0,
            class: Class::Under,
            parked: false,
            active: false,
            waits_on: None,
            home: number % host.processors,
            wants: false,
        };
        let share = |domain: &super::Domain| Share {
            weight: i64::from(domain.weight),
            cap: i64::from(domain.cap),
        };
        Self {
            accounts: host.domain_of_vcpus().into_iter().enumerate().map(account).collect(),
            shares: host.domains.iter().map(share).collect(),
            queues: vec![VecDeque::new(); host.processors],
            balance: 0,
        }
    }

    /// Puts it behind all of its class or better.
    fn queue(&mut self, vcpu: usize, processor: usize) {
        let class = self.accounts[vcpu].class;
        let queue = &self.queues[processor];
        let place = queue.iter().position(|other| self.accounts[*other].class > class);
        let place = place.unwrap_or(queue.len());
        self.queues[processor].insert(place, vcpu);
        self.accounts[vcpu].waits_on = Some(processor);
    }

    fn leave(&mut self, vcpu: usize) {
        if let Some(processor) = self.accounts[vcpu].waits_on.take() {
            self.queues[processor].retain(|other| *other != vcpu);
        }
    }

    /// The head of the queue of the first of the next processors that has one of a better class.
    fn steal(&self, processor: usize, than: Option<Class>) -> Option<usize> {
        let others = (1..self.queues.len()).map(|step| (processor + step) % self.queues.len());
        others
            .filter_map(|other| self.queues[other].front().copied())
            .find(|vcpu| than.is_none_or(|class| self.accounts[*vcpu].class < class))
    }

    fn give(&mut self, domain: usize, fair: i64, accounted: &mut Accounted) {
        let mine: Vec<usize> = (0..self.accounts.len())
            .filter(|vcpu| self.accounts[*vcpu].domain == domain && self.accounts[*vcpu].active)
            .collect();
        let n = mine.len() as i64;
        let cap = self.shares[domain].cap;
        let cap_each = ceil_div(ceil_div(cap * PERIOD_CREDITS, 100), n);
        for vcpu in mine {
            let account = &mut self.accounts[vcpu];
            account.credit += ceil_div(fair, n);
            if account.credit < 0 {
                account.class = Class::Over;
                if cap > 0 && account.credit < -cap_each && !account.parked {
                    account.parked = true;
                    accounted.parked.push(vcpu);
                }
                account.credit = account.credit.max(-PERIOD_CREDITS);
            } else {
                account.class = Class::Under;
                if std::mem::take(&mut account.parked) {
                    accounted.unparked.push(vcpu);
                }
                if account.credit > PERIOD_CREDITS {
                    account.active = false;
                    account.credit /= 2;
                }
            }
            self.balance += account.credit;
        }
    }
}

fn ceil_div(value: i64, by: i64) -> i64 {
    value.div_euclid(by) + i64::from(value.rem_euclid(by) > 0)
}

impl Rules for Credit {
    fn ran(&mut self, vcpu: usize, ran_ns: Nanos, _: Nanos) {
        let account = &mut self.accounts[vcpu];
        let ran = account.rest_ns + ran_ns;
        account.credit -= (ran / CREDIT_NS) as i64;
        account.rest_ns = ran % CREDIT_NS;
    }

    fn wakes(&mut self, vcpu: usize, _: Nanos, processors: &[Processor]) -> Option<usize> {
        let account = &mut self.accounts[vcpu];
        account.wants = true;
        if account.parked {
            return None;
        }
        if account.class == Class::Under {
            account.class = Class::Boost;
        }
        let (class, home) = (account.class, account.home);
        self.queue(vcpu, home);
        match processors[home].current {
            None => Some(home),
            Some(current) if class < self.accounts[current].class => Some(home),
            // It stays here; one processor that is idle is told to look for work.
            Some(_) => processors.iter().position(|one| one.current.is_none()),
        }
    }

    fn blocks(&mut self, vcpu: usize, _: Nanos) {
        self.accounts[vcpu].wants = false;
    }

    fn decides(&mut self, processor: usize, current: Option<usize>, now: Nanos) -> Decision {
        if let Some(vcpu) = current.filter(|vcpu| !self.accounts[*vcpu].parked) {
            self.queue(vcpu, processor);
        }
        let head = self.queues[processor].front().copied();
        let class = head.map(|vcpu| self.accounts[vcpu].class);
        let better = match class {
            Some(Class::Boost | Class::Under) => None,
            _ => self.steal(processor, class),
        };
        let next = better.or(head);
        if let Some(vcpu) = next {
            self.leave(vcpu);
            self.accounts[vcpu].home = processor;
        }
        Decision { vcpu: next, again_at: next.map(|_| now + SLICE) }
    }

    fn tick_ns(&self) -> Option<Nanos> {
        Some(TICK)
    }

    fn ticks(&mut self, processor: usize, current: Option<usize>, _: Nanos) -> bool {
        if let Some(vcpu) = current {
            let account = &mut self.accounts[vcpu];
            account.active = true;
            if account.class == Class::Boost {
                account.class = Class::Under;
            }
            // An idle processor looks for work by itself; a busy one stays what it is.
            return false;
        }
        self.queues.iter().any(|queue| !queue.is_empty()) && processor < self.queues.len()
    }

    fn account_ns(&self) -> Option<Nanos> {
        Some(ACCOUNT)
    }

    fn accounts(&mut self, _: Nanos) -> Accounted {
        let active = |domain: usize, accounts: &[Account]| {
            accounts.iter().filter(|one| one.domain == domain && one.active).count() as i64
        };
        let mut weight_left: i64 = (0..self.shares.len())
            .map(|domain| self.shares[domain].weight * active(domain, &self.accounts))
            .sum();
        let mut pool = PERIOD_CREDITS * self.queues.len() as i64;
        let owed = (-self.balance).max(0);
        pool += owed;
        let weight_all = weight_left;
        self.balance = 0;
        let mut accounted = Accounted::default();
        for domain in 0..self.shares.len() {
            let n = active(domain, &self.accounts);
            if n == 0 {
                continue;
            }
            let (weight, cap) = (self.shares[domain].weight * n, self.shares[domain].cap);
            let mut peak = n * PERIOD_CREDITS + ceil_div(owed * weight, weight_all);
            if cap > 0 {
                peak = peak.min(ceil_div(cap * PERIOD_CREDITS, 100));
            }
            let mut fair = ceil_div(pool * weight, weight_left);
            fair = fair.min(peak);
            // What this one cannot use is left for those that follow.
            pool -= fair;
            weight_left -= weight;
            self.give(domain, fair, &mut accounted);
        }
        // Classes changed: every queue is put into order again, equals as they stood.
        for processor in 0..self.queues.len() {
            let mut queue = std::mem::take(&mut self.queues[processor]);
            queue.retain(|vcpu| {
                let account = &mut self.accounts[*vcpu];
                if account.parked {
                    account.waits_on = None;
                }
                !account.parked
            });
            queue.make_contiguous().sort_by_key(|vcpu| self.accounts[*vcpu].class);
            self.queues[processor] = queue;
        }
        accounted
    }
}
