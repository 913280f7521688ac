//! Xen's Credit scheduler, of release 4.1: weights by credits, caps by parking.
use super::host::Host;
use super::policy::{Decision, Parking, Policy, Processor};
use crate::Nanos;
use std::collections::VecDeque;

const MS: Nanos = 1_000_000;
const TICK: Nanos = 10 * MS;
const ACCOUNT: Nanos = 30 * MS;
const SLICE: Nanos = 30 * MS;
/// Credits of a processor in each accounting period.
const PERIOD_CREDITS: i64 = 300;
/// CPU time of a credit.
const CREDIT_NS: Nanos = MS / 10;

/// Priorities, the highest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Boost,
    #[default]
    Under,
    Over,
}

#[derive(Default)]
struct CreditAccount {
    domain: usize,
    credit: i64,
    /// CPU time that is not charged yet, less than a credit.
    uncharged_ns: Nanos,
    priority: Priority,
    is_parked: bool,
    is_active: bool,
    /// The processor in whose queue it is.
    queued_on: Option<usize>,
    /// The processor on which it ran last.
    home: usize,
    is_runnable: bool,
}

struct Share {
    weight: i64,
    cap: i64,
}

pub struct Credit {
    accounts: Vec<CreditAccount>,
    shares: Vec<Share>,
    queues: Vec<VecDeque<usize>>,
    balance: i64,
}

impl Credit {
    pub fn new(host: &Host) -> Self {
        // It moves virtual CPUs between processors: none is pinned.
        let account = |(number, (_, domain)): (usize, (usize, usize))| CreditAccount {
            domain,
            home: number % host.processors,
            ..CreditAccount::default()
        };
        let share = |domain: &super::Domain| Share {
            weight: i64::from(domain.weight),
            cap: i64::from(domain.cap),
        };
        Self {
            accounts: host.vcpus().into_iter().enumerate().map(account).collect(),
            shares: host.domains.iter().map(share).collect(),
            queues: vec![VecDeque::new(); host.processors],
            balance: 0,
        }
    }

    /// Inserts a virtual CPU behind all of its priority or a higher one.
    fn enqueue(&mut self, vcpu: usize, processor: usize) {
        let priority = self.accounts[vcpu].priority;
        let queue = &self.queues[processor];
        let place = queue.iter().position(|queued| self.accounts[*queued].priority > priority);
        let place = place.unwrap_or(queue.len());
        self.queues[processor].insert(place, vcpu);
        self.accounts[vcpu].queued_on = Some(processor);
    }

    fn dequeue(&mut self, vcpu: usize) {
        if let Some(processor) = self.accounts[vcpu].queued_on.take() {
            self.queues[processor].retain(|queued| *queued != vcpu);
        }
    }

    /// Returns the head of the queue of the first of the next processors whose priority is higher.
    fn steal(&self, processor: usize, than: Option<Priority>) -> Option<usize> {
        let processors = (1..self.queues.len()).map(|step| (processor + step) % self.queues.len());
        processors
            .filter_map(|next| self.queues[next].front().copied())
            .find(|vcpu| than.is_none_or(|priority| self.accounts[*vcpu].priority < priority))
    }

    fn distribute(&mut self, domain: usize, fair: i64, parking: &mut Parking) {
        let vcpus: Vec<usize> = (0..self.accounts.len())
            .filter(|vcpu| self.accounts[*vcpu].domain == domain && self.accounts[*vcpu].is_active)
            .collect();
        let n = vcpus.len() as i64;
        let cap = self.shares[domain].cap;
        let cap_each = ceil_div(ceil_div(cap * PERIOD_CREDITS, 100), n);
        for vcpu in vcpus {
            let account = &mut self.accounts[vcpu];
            account.credit += ceil_div(fair, n);
            if account.credit < 0 {
                account.priority = Priority::Over;
                if cap > 0 && account.credit < -cap_each && !account.is_parked {
                    account.is_parked = true;
                    parking.parked.push(vcpu);
                }
                account.credit = account.credit.max(-PERIOD_CREDITS);
            } else {
                account.priority = Priority::Under;
                if std::mem::take(&mut account.is_parked) {
                    parking.unparked.push(vcpu);
                }
                if account.credit > PERIOD_CREDITS {
                    account.is_active = false;
                    account.credit /= 2;
                }
            }
            self.balance += account.credit;
        }
    }
}

fn ceil_div(value: i64, divisor: i64) -> i64 {
    value.div_euclid(divisor) + i64::from(value.rem_euclid(divisor) > 0)
}

impl Policy for Credit {
    fn charge(&mut self, vcpu: usize, ran_ns: Nanos) {
        let account = &mut self.accounts[vcpu];
        let ran = account.uncharged_ns + ran_ns;
        account.credit -= (ran / CREDIT_NS) as i64;
        account.uncharged_ns = ran % CREDIT_NS;
    }

    fn wake(&mut self, vcpu: usize, _: Nanos, processors: &[Processor]) -> Option<usize> {
        let account = &mut self.accounts[vcpu];
        account.is_runnable = true;
        if account.is_parked {
            return None;
        }
        if account.priority == Priority::Under {
            account.priority = Priority::Boost;
        }
        let (priority, home) = (account.priority, account.home);
        self.enqueue(vcpu, home);
        match processors[home].current {
            None => Some(home),
            Some(current) if priority < self.accounts[current].priority => Some(home),
            // It stays here; an idle processor looks for work.
            Some(_) => processors.iter().position(|processor| processor.current.is_none()),
        }
    }

    fn block(&mut self, vcpu: usize, _: Nanos) {
        self.accounts[vcpu].is_runnable = false;
    }

    fn decide(&mut self, processor: usize, current: Option<usize>, now: Nanos) -> Decision {
        if let Some(vcpu) = current.filter(|vcpu| !self.accounts[*vcpu].is_parked) {
            self.enqueue(vcpu, processor);
        }
        let head = self.queues[processor].front().copied();
        let priority = head.map(|vcpu| self.accounts[vcpu].priority);
        let stolen = match priority {
            Some(Priority::Boost | Priority::Under) => None,
            _ => self.steal(processor, priority),
        };
        let next = stolen.or(head);
        if let Some(vcpu) = next {
            self.dequeue(vcpu);
            self.accounts[vcpu].home = processor;
        }
        Decision { vcpu: next, decide_at: next.map(|_| now + SLICE) }
    }

    fn tick_ns(&self) -> Option<Nanos> {
        Some(TICK)
    }

    fn tick(&mut self, _: usize, current: Option<usize>) -> bool {
        if let Some(vcpu) = current {
            let account = &mut self.accounts[vcpu];
            account.is_active = true;
            if account.priority == Priority::Boost {
                account.priority = Priority::Under;
            }
            // Only an idle processor looks for work at its tick.
            return false;
        }
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    fn accounting_ns(&self) -> Option<Nanos> {
        Some(ACCOUNT)
    }

    fn account(&mut self) -> Parking {
        let active = |domain: usize, accounts: &[CreditAccount]| {
            accounts.iter().filter(|account| account.domain == domain && account.is_active).count()
                as i64
        };
        let mut weight_left: i64 = (0..self.shares.len())
            .map(|domain| self.shares[domain].weight * active(domain, &self.accounts))
            .sum();
        let debt = (-self.balance).max(0);
        let mut pool = PERIOD_CREDITS * self.queues.len() as i64 + debt;
        let weight_all = weight_left;
        self.balance = 0;
        let mut parking = Parking::default();
        for domain in 0..self.shares.len() {
            let count = active(domain, &self.accounts);
            if count == 0 {
                continue;
            }
            let (weight, cap) = (self.shares[domain].weight * count, self.shares[domain].cap);
            let mut peak = count * PERIOD_CREDITS + ceil_div(debt * weight, weight_all);
            if cap > 0 {
                peak = peak.min(ceil_div(cap * PERIOD_CREDITS, 100));
            }
            let fair = ceil_div(pool * weight, weight_left).min(peak);
            // What this domain cannot use is left for those that follow.
            pool -= fair;
            weight_left -= weight;
            self.distribute(domain, fair, &mut parking);
        }
        // Priorities changed: every queue is sorted again, stably.
        for processor in 0..self.queues.len() {
            let mut queue = std::mem::take(&mut self.queues[processor]);
            queue.retain(|vcpu| {
                let account = &mut self.accounts[*vcpu];
                if account.is_parked {
                    account.queued_on = None;
                }
                !account.is_parked
            });
            queue.make_contiguous().sort_by_key(|vcpu| self.accounts[*vcpu].priority);
            self.queues[processor] = queue;
        }
        parking
    }
}
