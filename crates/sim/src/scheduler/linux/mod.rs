//! Linux: weights by earliest eligible virtual deadline, quotas, reservations, and the tick.
//!
//! Nothing is enforced between two ticks, unless something else wakes: who has used up what he had
//! runs on until the processor looks, and pays for it in the next period. At 250 ticks a second a reservation of 30 in 40 ms runs
//! 28 and 32 ms. Virtual CPUs with a weight stay on their processor; those with a reservation go
//! where they may run.
mod bandwidth;
mod eevdf;
mod fair;
mod reserved;
#[cfg(test)]
mod tests;

pub use bandwidth::Quota;
pub use reserved::Reservation;

use super::host::Host;
use super::state::{Decision, Processor, Rules};
use crate::error::Refused;
use crate::random::Stream;
use crate::Nanos;
use fair::Fair;
use reserved::Server;

const MS: Nanos = 1_000_000;
/// Most of all processors' time that may be reserved.
const RESERVED_MOST: f64 = 0.95;
/// Source of chance of the order of ticks; workloads have the numbers from 0 on.
const TICKS: u64 = 1 << 43;
/// Source of chance of what else wakes.
const WAKEUPS: u64 = 1 << 44;
/// Source of chance of what else has a processor for a while.
const TAKEN: u64 = 1 << 45;

/// Settings of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinuxSettings {
    /// The tick; 4 ms at `CONFIG_HZ` 250.
    pub tick_ns: Nanos,
    /// What one that runs is given at a time.
    pub base_slice_ns: Nanos,
    /// What a processor takes of a quota at a time.
    pub bandwidth_slice_ns: Nanos,
    /// Mean time between two wake-ups of something else on a processor; 0 for none.
    ///
    /// It runs for microseconds, but it makes the kernel account for what ran: a quota's slice is
    /// then taken, or its end seen, between two ticks. Processors that took slices at the same ticks
    /// no longer do, and share the rest of a quota more evenly.
    pub wakeup_every_ns: Nanos,
    /// Mean time between two moments at which something else takes a processor for a while: a program
    /// of the host, or a machine below it that does not run its processor then; 0 for none.
    ///
    /// Nobody is charged for that time: a quota or a reservation is used up as much later.
    pub taken_every_ns: Nanos,
    /// How long it has the processor, on average; exponentially distributed.
    pub taken_ns: Nanos,
}

impl LinuxSettings {
    /// What the kernel sets by itself: 250 ticks a second, a base slice of 0.7 ms times 1 + log2 of
    /// the number of processors (8 at most), quotas handed out in 5 ms.
    pub fn of(processors: usize) -> Self {
        let factor = 1 + processors.clamp(1, 8).ilog2();
        Self {
            tick_ns: 4 * MS,
            base_slice_ns: 700_000 * Nanos::from(factor),
            bandwidth_slice_ns: 5 * MS,
            wakeup_every_ns: 0,
            taken_every_ns: 0,
            taken_ns: 0,
        }
    }

    /// How often a processor is looked at besides its ticks.
    fn looks_per_ns(&self) -> f64 {
        let rate = |every: Nanos| if every > 0 { 1.0 / every as f64 } else { 0.0 };
        rate(self.wakeup_every_ns) + rate(self.taken_every_ns)
    }
}

/// A processor.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// Who runs.
    on: Option<usize>,
    /// Whether it has to decide at its next tick.
    due: bool,
}

/// The scheduler's state.
pub struct Linux {
    settings: LinuxSettings,
    fair: Fair,
    servers: Vec<Option<Server>>,
    /// Virtual CPUs that have one.
    reserved: Vec<usize>,
    cpus: Vec<Cpu>,
    alarms: Vec<(Nanos, usize)>,
    vms: usize,
    /// Processors tick at one moment; who comes first to what they share is chance.
    order: Vec<usize>,
    chance: Stream,
    wakeups: Stream,
    taken: Stream,
}

impl Linux {
    /// Everybody asleep, quotas full, reservations before their first period. Refused: what the
    /// kernel refuses.
    pub fn new(host: &Host, settings: LinuxSettings, seed: u64) -> Result<Self, Refused> {
        check(host)?;
        let fair = Fair::new(host, settings);
        let server = |(home, vm): (usize, usize)| {
            host.domains[vm].reservation.map(|reservation| Server::new(reservation, home))
        };
        let servers: Vec<_> =
            host.homes().into_iter().zip(host.domain_of_vcpus()).map(server).collect();
        let vms = host.domains.len();
        let mut alarms: Vec<(Nanos, usize)> =
            fair.refills().map(|(vm, first)| (first, refilling(vm))).collect();
        for (vcpu, server) in servers.iter().enumerate() {
            alarms.extend(server.as_ref().map(|server| (server.deadline, 2 * vms + vcpu)));
        }
        Ok(Self {
            settings,
            fair,
            reserved: (0..servers.len()).filter(|vcpu| servers[*vcpu].is_some()).collect(),
            servers,
            cpus: vec![Cpu::default(); host.processors],
            alarms,
            vms,
            order: (0..host.processors).collect(),
            chance: Stream::of(seed, 0, TICKS),
            wakeups: Stream::of(seed, 0, WAKEUPS),
            taken: Stream::of(seed, 0, TAKEN),
        })
    }

    /// Whether one with a reservation runs there.
    fn reserved_on(&self, processor: usize) -> Option<&Server> {
        self.cpus[processor].on.and_then(|vcpu| self.servers[vcpu].as_ref())
    }

    /// Where one with a reservation that wants to run takes a processor over: where it ran, or where
    /// nobody with a reservation runs, or from the one with the latest deadline.
    fn place_for(&self, vcpu: usize) -> Option<usize> {
        let server = self.servers[vcpu].as_ref().filter(|server| server.waits())?;
        let free = |processor: &usize| self.reserved_on(*processor).is_none();
        let idle = |processor: &usize| self.cpus[*processor].on.is_none();
        let all = || 0..self.cpus.len();
        let last = Some(server.last).filter(free);
        let free = last.or_else(|| all().find(idle)).or_else(|| all().find(free));
        free.or_else(|| {
            let latest = all().max_by_key(|one| self.reserved_on(*one).map(|one| one.deadline))?;
            let deadline = self.reserved_on(latest)?.deadline;
            (deadline > server.deadline).then_some(latest)
        })
    }

    /// The one with the earliest deadline that waits for a processor.
    fn earliest(&self) -> Option<usize> {
        let waiting = self.reserved.iter().filter_map(|vcpu| {
            let server = self.servers[*vcpu].as_ref().filter(|server| server.waits())?;
            Some((server.deadline, *vcpu))
        });
        waiting.min().map(|(_, vcpu)| vcpu)
    }

    /// Of the processors on which a machine may go on, those that are idle: others look at a tick.
    fn idle_of(&self, processors: Vec<usize>) -> Vec<usize> {
        processors.into_iter().filter(|processor| self.cpus[*processor].on.is_none()).collect()
    }
}

fn refilling(vm: usize) -> usize {
    2 * vm
}

fn handing_out(vm: usize) -> usize {
    2 * vm + 1
}

impl Rules for Linux {
    #[inline(always)]
    fn ran(&mut self, vcpu: usize, ran_ns: Nanos, _: Nanos) {
        let (processor, due) = match &mut self.servers[vcpu] {
            Some(server) => (server.on, server.ran(ran_ns)),
            None => (self.fair.home(vcpu), self.fair.ran(vcpu, ran_ns)),
        };
        if let Some(processor) = processor {
            self.cpus[processor].due |= due;
        }
    }

    #[inline]
    fn charged_before(&self, vcpu: usize) -> Option<usize> {
        self.fair.home(vcpu)
    }

    #[inline]
    fn wakes(&mut self, vcpu: usize, now: Nanos, _: &[Processor]) -> Option<usize> {
        if let Some(server) = &mut self.servers[vcpu] {
            server.wakes(now);
            return self.place_for(vcpu);
        }
        let first = self.fair.wakes(vcpu);
        let home = self.fair.home(vcpu)?;
        let free = self.reserved_on(home).is_none();
        let decides = free && (first || self.cpus[home].due);
        decides.then_some(home)
    }

    #[inline]
    fn blocks(&mut self, vcpu: usize, now: Nanos) {
        match &mut self.servers[vcpu] {
            Some(server) => server.wants = false,
            None => {
                if let Some(vm) = self.fair.blocks(vcpu) {
                    self.alarms.push((now + bandwidth::SLACK, handing_out(vm)));
                }
            }
        }
    }

    #[inline]
    fn decides(&mut self, processor: usize, _: Option<usize>, now: Nanos) -> Decision {
        let before = std::mem::take(&mut self.cpus[processor]).on;
        if let Some((vcpu, server)) =
            before.and_then(|vcpu| Some((vcpu, self.servers[vcpu].as_mut()?)))
        {
            server.on = None;
            if let Some(until) = server.stops_until(now) {
                self.alarms.push((until, 2 * self.vms + vcpu));
            }
        }
        let next = self.earliest();
        if let Some(server) = next.and_then(|vcpu| self.servers[vcpu].as_mut()) {
            (server.on, server.last) = (Some(processor), processor);
            self.fair.put_aside(processor);
        }
        let next = next.or_else(|| self.fair.decides(processor));
        self.cpus[processor].on = next;
        // Whatever ends it is looked at at a tick.
        Decision { vcpu: next, again_at: None }
    }

    #[inline]
    fn tick_ns(&self) -> Option<Nanos> {
        Some(self.settings.tick_ns)
    }

    #[inline]
    fn ticking(&mut self, place: usize) -> usize {
        // Who is drawn out of those that are left changes places with the first of them.
        let drawn = place + self.chance.below((self.order.len() - place) as u64) as usize;
        self.order.swap(place, drawn);
        self.order[place]
    }

    #[inline]
    fn ticks(&mut self, processor: usize, _: Option<usize>, _: Nanos) -> bool {
        self.cpus[processor].due
    }

    fn accounted_after(&mut self) -> Option<Nanos> {
        let rate = self.settings.looks_per_ns();
        (rate > 0.0).then(|| self.wakeups.exponential_ns(1.0 / rate).max(1))
    }

    fn taken_ns(&mut self) -> Nanos {
        let LinuxSettings { taken_every_ns: every, taken_ns: mean, .. } = self.settings;
        // Of two independent kinds of moments this one is of the second with its share of their rate.
        let taken =
            every > 0 && self.taken.uniform() * self.settings.looks_per_ns() * (every as f64) < 1.0;
        if taken {
            self.taken.exponential_ns(mean as f64)
        } else {
            0
        }
    }

    #[inline]
    fn alarm(&mut self) -> Option<(Nanos, usize)> {
        self.alarms.pop()
    }

    fn rings(&mut self, alarm: usize, now: Nanos, _: &[Processor]) -> Vec<usize> {
        if let Some(vcpu) = alarm.checked_sub(2 * self.vms) {
            if let Some(server) = &mut self.servers[vcpu] {
                server.replenish(now);
            }
            return self.place_for(vcpu).into_iter().collect();
        }
        let vm = alarm / 2;
        let going_on = if alarm == refilling(vm) {
            let period = self.fair.period(vm);
            self.alarms.extend(period.map(|period| (now + period, alarm)));
            self.fair.refill(vm)
        } else {
            self.fair.hand_out(vm)
        };
        self.idle_of(going_on)
    }
}

/// Refused: weights, quotas and reservations that the kernel refuses.
fn check(host: &Host) -> Result<(), Refused> {
    let mut reserved = 0.0;
    for (number, domain) in host.domains.iter().enumerate() {
        let outside = |what: String, hint: &str| {
            Err(Refused::new(format!("Machine {number} has {what}."), hint.to_owned()))
        };
        if !(1..=10_000).contains(&domain.weight) {
            return outside(format!("weight {}", domain.weight), "Linux takes 1 to 10,000.");
        }
        if let Some(quota) = domain.quota {
            let (time, period) = (quota.quota_ns as f64 / 1e6, quota.period_ns as f64 / 1e6);
            if quota.quota_ns < MS || !(1.0..=1000.0).contains(&period) {
                let hint = "Linux takes a quota from 1 ms on, and a period of 1 ms to 1 s.";
                return outside(format!("a quota of {time} ms in {period} ms"), hint);
            }
            if quota.burst_ns > quota.quota_ns {
                return outside("a burst above its quota".to_owned(), "Give a smaller burst.");
            }
        }
        if let Some(one) = domain.reservation {
            let (slice, period) = (one.slice_ns as f64 / 1e6, one.period_ns as f64 / 1e6);
            if slice > period || one.slice_ns < 1024 || !(0.1..=4194.304).contains(&period) {
                let hint =
                    "Linux takes a slice up to its period, from 0.001 ms on, and a period of \
                            0.1 ms to 4.194 s.";
                return outside(format!("a reservation of {slice} ms in {period} ms"), hint);
            }
            reserved += slice / period * domain.vcpus.len() as f64;
        }
    }
    if reserved > RESERVED_MOST * host.processors as f64 + 1e-9 {
        return Err(Refused::new(
            format!(
                "The reservations are {:.0} % of all processors' time.",
                100.0 * reserved / host.processors as f64
            ),
            "Linux gives away 95 % at most: shorten slices, lengthen periods, or add processors.",
        ));
    }
    Ok(())
}
