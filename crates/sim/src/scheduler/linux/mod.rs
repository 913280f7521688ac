//! Linux: weights by earliest eligible virtual deadline, quotas, reservations, and the tick.
//!
//! Unless something else wakes up, nothing is enforced between two ticks: what has used up its time runs
//! on until the tick, and repays that in the next period. At 250 ticks a second a reservation of 30 in
//! 40 ms runs 28 and 32 ms. Virtual CPUs with a weight stay on their processor; those with a
//! reservation migrate to where they may run.
mod bandwidth;
mod deadline;
mod eevdf;
mod fair;
mod settings;
#[cfg(test)]
mod tests;

pub use bandwidth::Quota;
pub use settings::LinuxSettings;

use super::host::Host;
use super::policy::{Decision, Policy, Processor};
use crate::error::{refuse, Result};
use crate::random::RandomStream;
use crate::Nanos;
use deadline::DeadlineServer;
use fair::Fair;

const MS: Nanos = 1_000_000;
/// Maximum share of all processors' time that may be reserved.
const MAX_RESERVED: f64 = 0.95;
/// Sources of randomness; workloads have the numbers from 0 on.
const TICK_ORDER: u64 = 1 << 43;
const WAKEUPS: u64 = 1 << 44;
const INTERRUPTIONS: u64 = 1 << 45;

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    current: Option<usize>,
    /// Whether it has to decide at its next tick.
    needs_decision: bool,
}

pub struct Linux {
    settings: LinuxSettings,
    fair: Fair,
    servers: Vec<Option<DeadlineServer>>,
    /// Virtual CPUs that have a server.
    reserved: Vec<usize>,
    cpus: Vec<Cpu>,
    timers: Vec<(Nanos, usize)>,
    vms: usize,
    /// Processors tick at the same time; their order is random.
    tick_order: Vec<usize>,
    tick_stream: RandomStream,
    wakeup_stream: RandomStream,
    interruption_stream: RandomStream,
}

impl Linux {
    /// Returns all virtual CPUs asleep, quotas full, and reservations before their first period.
    /// Returns an error for what the kernel does not accept.
    pub fn new(host: &Host, settings: LinuxSettings, seed: u64) -> Result<Self> {
        check(host)?;
        let fair = Fair::new(host, settings);
        let server = |(home, vm): (usize, usize)| {
            host.domains[vm].reservation.map(|reservation| DeadlineServer::new(reservation, home))
        };
        let servers: Vec<_> = host.vcpus().into_iter().map(server).collect();
        let vms = host.domains.len();
        let mut timers: Vec<(Nanos, usize)> =
            fair.replenishments().map(|(vm, first)| (first, refill_timer(vm))).collect();
        for (vcpu, server) in servers.iter().enumerate() {
            timers.extend(server.as_ref().map(|server| (server.deadline, 2 * vms + vcpu)));
        }
        Ok(Self {
            settings,
            fair,
            reserved: (0..servers.len()).filter(|vcpu| servers[*vcpu].is_some()).collect(),
            servers,
            cpus: vec![Cpu::default(); host.processors],
            timers,
            vms,
            tick_order: (0..host.processors).collect(),
            tick_stream: RandomStream::new(seed, 0, TICK_ORDER),
            wakeup_stream: RandomStream::new(seed, 0, WAKEUPS),
            interruption_stream: RandomStream::new(seed, 0, INTERRUPTIONS),
        })
    }

    /// Returns the reservation that runs on a processor.
    fn reserved_on(&self, processor: usize) -> Option<&DeadlineServer> {
        self.cpus[processor].current.and_then(|vcpu| self.servers[vcpu].as_ref())
    }

    /// Returns the processor that a waiting reservation takes over: where it ran last, or an idle one,
    /// or one without a reservation, or the one with the latest deadline.
    fn processor_for(&self, vcpu: usize) -> Option<usize> {
        let server = self.servers[vcpu].as_ref().filter(|server| server.is_waiting())?;
        let is_free = |processor: &usize| self.reserved_on(*processor).is_none();
        let is_idle = |processor: &usize| self.cpus[*processor].current.is_none();
        let all = || 0..self.cpus.len();
        let last = Some(server.last_processor).filter(is_free);
        let free = last.or_else(|| all().find(is_idle)).or_else(|| all().find(is_free));
        free.or_else(|| {
            let deadline =
                |processor: usize| self.reserved_on(processor).map(|server| server.deadline);
            let latest = all().max_by_key(|processor| deadline(*processor))?;
            (deadline(latest)? > server.deadline).then_some(latest)
        })
    }

    /// Returns the waiting reservation with the earliest deadline.
    fn earliest(&self) -> Option<usize> {
        let waiting = self.reserved.iter().filter_map(|vcpu| {
            let server = self.servers[*vcpu].as_ref().filter(|server| server.is_waiting())?;
            Some((server.deadline, *vcpu))
        });
        waiting.min().map(|(_, vcpu)| vcpu)
    }
}

fn refill_timer(vm: usize) -> usize {
    2 * vm
}

fn distribution_timer(vm: usize) -> usize {
    2 * vm + 1
}

impl Policy for Linux {
    #[inline(always)]
    fn charge(&mut self, vcpu: usize, ran_ns: Nanos) {
        let (processor, needs_decision) = match &mut self.servers[vcpu] {
            Some(server) => (server.processor, server.charge(ran_ns)),
            None => (self.fair.home(vcpu), self.fair.charge(vcpu, ran_ns)),
        };
        if let Some(processor) = processor {
            self.cpus[processor].needs_decision |= needs_decision;
        }
    }

    #[inline]
    fn charged_before_wake(&self, vcpu: usize) -> Option<usize> {
        self.fair.home(vcpu)
    }

    #[inline]
    fn wake(&mut self, vcpu: usize, now: Nanos, _: &[Processor]) -> Option<usize> {
        if let Some(server) = &mut self.servers[vcpu] {
            server.wake(now);
            return self.processor_for(vcpu);
        }
        let is_first = self.fair.wake(vcpu);
        let home = self.fair.home(vcpu)?;
        let is_free = self.reserved_on(home).is_none();
        (is_free && (is_first || self.cpus[home].needs_decision)).then_some(home)
    }

    #[inline]
    fn block(&mut self, vcpu: usize, now: Nanos) {
        match &mut self.servers[vcpu] {
            Some(server) => server.is_runnable = false,
            None => {
                if let Some(vm) = self.fair.block(vcpu) {
                    self.timers.push((now + bandwidth::SLACK, distribution_timer(vm)));
                }
            }
        }
    }

    #[inline]
    fn decide(&mut self, processor: usize, _: Option<usize>, now: Nanos) -> Decision {
        let last = std::mem::take(&mut self.cpus[processor]).current;
        if let Some((vcpu, server)) =
            last.and_then(|vcpu| Some((vcpu, self.servers[vcpu].as_mut()?)))
        {
            server.processor = None;
            if let Some(until) = server.throttle_until(now) {
                self.timers.push((until, 2 * self.vms + vcpu));
            }
        }
        let next = self.earliest();
        if let Some(server) = next.and_then(|vcpu| self.servers[vcpu].as_mut()) {
            (server.processor, server.last_processor) = (Some(processor), processor);
            self.fair.preempt(processor);
        }
        let next = next.or_else(|| self.fair.decide(processor));
        self.cpus[processor].current = next;
        // Whatever ends its run is noticed at a tick.
        Decision { vcpu: next, decide_at: None }
    }

    #[inline]
    fn tick_ns(&self) -> Option<Nanos> {
        Some(self.settings.tick_ns)
    }

    #[inline]
    fn tick_order(&mut self, place: usize) -> usize {
        // One step of a Fisher-Yates shuffle.
        let left = (self.tick_order.len() - place) as u64;
        self.tick_order.swap(place, place + self.tick_stream.below(left) as usize);
        self.tick_order[place]
    }

    #[inline]
    fn tick(&mut self, processor: usize, _: Option<usize>) -> bool {
        self.cpus[processor].needs_decision
    }

    fn next_check_in(&mut self) -> Option<Nanos> {
        let rate = self.settings.checks_per_ns();
        (rate > 0.0).then(|| self.wakeup_stream.exponential_ns(1.0 / rate).max(1))
    }

    fn interruption_ns(&mut self) -> Nanos {
        let interval = self.settings.interruption_interval_ns;
        if interval == 0 {
            return 0;
        }
        // A check is an interruption with the share of interruptions in the rate of all checks.
        let scaled = self.interruption_stream.uniform() * self.settings.checks_per_ns();
        if scaled * (interval as f64) < 1.0 {
            self.interruption_stream.exponential_ns(self.settings.interruption_ns as f64)
        } else {
            0
        }
    }

    #[inline]
    fn take_timer(&mut self) -> Option<(Nanos, usize)> {
        self.timers.pop()
    }

    fn expire(&mut self, timer: usize, now: Nanos) -> Vec<usize> {
        if let Some(vcpu) = timer.checked_sub(2 * self.vms) {
            if let Some(server) = &mut self.servers[vcpu] {
                server.replenish(now);
            }
            return self.processor_for(vcpu).into_iter().collect();
        }
        let vm = timer / 2;
        let mut unthrottled = if timer == refill_timer(vm) {
            let period = self.fair.period(vm);
            self.timers.extend(period.map(|period| (now + period, timer)));
            self.fair.refill(vm)
        } else {
            self.fair.distribute(vm)
        };
        // Busy processors decide at a tick.
        unthrottled.retain(|processor| self.cpus[*processor].current.is_none());
        unthrottled
    }
}

/// Returns an error for weights, quotas and reservations that the kernel does not accept.
fn check(host: &Host) -> Result<()> {
    let mut reserved = 0.0;
    for (number, domain) in host.domains.iter().enumerate() {
        let refuse =
            |what: String, hint: &str| refuse(format!("Machine {number} has {what}."), hint);
        if !(1..=10_000).contains(&domain.weight) {
            return refuse(format!("weight {}", domain.weight), "Linux takes 1 to 10,000.");
        }
        if let Some(quota) = domain.quota {
            let (time, period) = (quota.quota_ns as f64 / 1e6, quota.period_ns as f64 / 1e6);
            if quota.quota_ns < MS || !(1.0..=1000.0).contains(&period) {
                let hint = "Linux takes a quota from 1 ms on, and a period of 1 ms to 1 s.";
                return refuse(format!("a quota of {time} ms in {period} ms"), hint);
            }
            if quota.burst_ns > quota.quota_ns {
                return refuse("a burst above its quota".to_owned(), "Give a smaller burst.");
            }
        }
        if let Some(reservation) = domain.reservation {
            let (slice, period) =
                (reservation.slice_ns as f64 / 1e6, reservation.period_ns as f64 / 1e6);
            if slice > period || reservation.slice_ns < 1024 || !(0.1..=4194.304).contains(&period)
            {
                return refuse(
                    format!("a reservation of {slice} ms in {period} ms"),
                    "Linux takes a slice of 0.001 ms up to its period, and a period of 0.1 ms to \
                     4.194 s.",
                );
            }
            reserved += slice / period * domain.vcpus.len() as f64;
        }
    }
    let share = reserved / host.processors as f64;
    if reserved > MAX_RESERVED * host.processors as f64 + 1e-9 {
        return refuse(
            format!("The reservations are {:.0} % of all processors' time.", 100.0 * share),
            "Linux admits 95 % at most: shorten slices, lengthen periods, or add processors.",
        );
    }
    Ok(())
}
