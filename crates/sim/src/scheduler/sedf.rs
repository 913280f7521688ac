//! Xen's simple earliest deadline first: a slice in every period, and idle time for those that may use
//! it.
use super::host::{Host, Reservation};
use super::policy::{Decision, Policy, Processor};
use crate::error::{refuse, Result};
use crate::Nanos;

const EXTRA_QUANTUM: Nanos = 500_000;
const MIN_PERIOD: Nanos = 10_000;
const MAX_PERIOD: Nanos = 10_000_000_000;
const MIN_SLICE: Nanos = 5_000;
/// Idle time alone.
const NO_SLICE: Reservation =
    Reservation { slice_ns: 0, period_ns: 100_000_000, extra: true, phase_ns: 0 };
/// Score of a quantum of idle time without a slice.
const MAX_SCORE: u64 = 1 << 17;

#[derive(Default)]
struct SedfVcpu {
    reservation: Reservation,
    deadline: Nanos,
    used: Nanos,
    is_runnable: bool,
    home: usize,
    /// It runs in idle time.
    is_extra: bool,
    score: u64,
    /// Time lost by blocking within a slice; orders the virtual CPUs that get idle time first.
    penalty: Option<u64>,
    blocked_at: Nanos,
}

impl SedfVcpu {
    fn period_start(&self) -> Nanos {
        self.deadline.saturating_sub(self.reservation.period_ns)
    }

    fn is_eligible(&self, now: Nanos) -> bool {
        self.is_runnable && self.reservation.slice_ns > 0 && self.period_start() <= now
    }
}

pub struct Sedf {
    vcpus: Vec<SedfVcpu>,
}

impl Sedf {
    /// Returns an error for a reservation outside Xen's limits, and for a processor with more than 100 %
    /// reserved. All periods start at 0.
    pub fn new(host: &Host) -> Result<Self> {
        let mut reserved = vec![0.0; host.processors];
        let mut vcpus = Vec::new();
        for (home, domain) in host.vcpus() {
            let reservation = host.domains[domain].reservation.unwrap_or(NO_SLICE);
            check(domain, reservation)?;
            reserved[home] += reservation.slice_ns as f64 / reservation.period_ns as f64;
            let deadline = reservation.period_ns;
            vcpus.push(SedfVcpu { reservation, deadline, home, ..SedfVcpu::default() });
        }
        match reserved.iter().position(|share| *share > 1.0 + 1e-9) {
            None => Ok(Self { vcpus }),
            Some(processor) => refuse(
                format!(
                    "The slices on processor {processor} are {:.0} % of its time.",
                    reserved[processor] * 100.0
                ),
                "Shorten slices, lengthen periods, or add processors.",
            ),
        }
    }

    /// Starts the periods that are due on a processor.
    fn start_periods(&mut self, processor: usize, now: Nanos) {
        for vcpu in self.vcpus.iter_mut().filter(|vcpu| vcpu.home == processor && vcpu.is_runnable)
        {
            if vcpu.reservation.slice_ns == 0 {
                continue;
            }
            while vcpu.used >= vcpu.reservation.slice_ns {
                vcpu.used -= vcpu.reservation.slice_ns;
                vcpu.deadline += vcpu.reservation.period_ns;
            }
            if vcpu.deadline <= now {
                let late = (now - vcpu.deadline) / vcpu.reservation.period_ns + 1;
                vcpu.deadline += late * vcpu.reservation.period_ns;
                vcpu.used = 0;
            }
        }
    }

    /// Returns the next start of a period on a processor.
    fn next_period(&self, processor: usize, now: Nanos) -> Option<Nanos> {
        let here = self.vcpus.iter().filter(|vcpu| vcpu.home == processor && vcpu.is_runnable);
        here.filter(|vcpu| vcpu.reservation.slice_ns > 0)
            .map(SedfVcpu::period_start)
            .filter(|start| *start > now)
            .min()
    }

    /// Returns the virtual CPU that gets idle time: those that lost time first, then the lowest score.
    fn next_extra(&self, processor: usize) -> Option<usize> {
        let here = self.vcpus.iter().enumerate();
        here.filter(|(_, vcpu)| {
            vcpu.home == processor && vcpu.is_runnable && vcpu.reservation.extra
        })
        .min_by_key(|(number, vcpu)| {
            (vcpu.penalty.is_none(), vcpu.penalty.unwrap_or(vcpu.score), *number)
        })
        .map(|(number, _)| number)
    }
}

fn check(domain: usize, reservation: Reservation) -> Result<()> {
    let Reservation { slice_ns, period_ns, .. } = reservation;
    if !(MIN_PERIOD..=MAX_PERIOD).contains(&period_ns) {
        return refuse(
            format!("The period of domain {domain} is {period_ns} ns."),
            "It may be 10 us to 10 s.",
        );
    }
    if slice_ns > period_ns || (slice_ns > 0 && slice_ns < MIN_SLICE) {
        return refuse(
            format!("The slice of domain {domain} is {slice_ns} ns of {period_ns} ns."),
            "It may be 0, or 5 us up to the period.",
        );
    }
    Ok(())
}

impl Policy for Sedf {
    fn charge(&mut self, vcpu: usize, ran_ns: Nanos) {
        let vcpu = &mut self.vcpus[vcpu];
        if !vcpu.is_extra {
            vcpu.used += ran_ns;
        } else if let Some(penalty) = &mut vcpu.penalty {
            *penalty += ran_ns;
            if *penalty > vcpu.reservation.slice_ns {
                vcpu.penalty = None;
            }
        } else {
            vcpu.score += quantum_score(vcpu.reservation) * ran_ns.div_ceil(EXTRA_QUANTUM);
        }
    }

    fn wake(&mut self, vcpu: usize, now: Nanos, processors: &[Processor]) -> Option<usize> {
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.is_runnable = true;
        if vcpu.reservation.slice_ns > 0 {
            // The first wake-up counts as vcpu after a long sleep.
            if vcpu.blocked_at > 0 && now < vcpu.deadline {
                // A short sleep: the rest of the slice is lost, and made up for in idle time.
                vcpu.deadline += vcpu.reservation.period_ns;
                vcpu.penalty = vcpu.reservation.extra.then_some(vcpu.used);
            } else {
                vcpu.deadline = now + vcpu.reservation.period_ns;
            }
            vcpu.used = 0;
        }
        let (home, deadline, ready) = (vcpu.home, vcpu.deadline, vcpu.is_eligible(now));
        match processors[home].current {
            None => Some(home),
            Some(current) => {
                let running = &self.vcpus[current];
                let sooner = ready && (running.is_extra || deadline < running.deadline);
                sooner.then_some(home)
            }
        }
    }

    fn block(&mut self, vcpu: usize, now: Nanos) {
        let vcpu = &mut self.vcpus[vcpu];
        vcpu.is_runnable = false;
        vcpu.blocked_at = now.max(1);
    }

    fn decide(&mut self, processor: usize, _: Option<usize>, now: Nanos) -> Decision {
        self.start_periods(processor, now);
        let next_period = self.next_period(processor, now);
        let ready = self.vcpus.iter().enumerate();
        let first = ready
            .filter(|(_, vcpu)| vcpu.home == processor && vcpu.is_eligible(now))
            .min_by_key(|(number, vcpu)| (vcpu.deadline, *number));
        if let Some((number, vcpu)) = first {
            let left = now + (vcpu.reservation.slice_ns - vcpu.used);
            self.vcpus[number].is_extra = false;
            let decide_at = Some(next_period.map_or(left, |next| next.min(left)));
            return Decision { vcpu: Some(number), decide_at };
        }
        if next_period.is_none_or(|next| next - now >= EXTRA_QUANTUM) {
            if let Some(vcpu) = self.next_extra(processor) {
                self.vcpus[vcpu].is_extra = true;
                return Decision { vcpu: Some(vcpu), decide_at: Some(now + EXTRA_QUANTUM) };
            }
        }
        Decision { vcpu: None, decide_at: next_period }
    }
}

/// Returns what a quantum of idle time adds to the score: more, the smaller the reservation.
fn quantum_score(reservation: Reservation) -> u64 {
    match reservation.slice_ns {
        0 => MAX_SCORE,
        slice => 1024 * reservation.period_ns / slice,
    }
}
