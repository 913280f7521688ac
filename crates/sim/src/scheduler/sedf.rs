//! Xen's simple earliest deadline first: a slice in every period, and what is left for who may.
use super::host::{Host, SedfTriple};
use super::state::{Decision, Processor, Rules};
use crate::error::Refused;
use crate::Nanos;

const EXTRA_QUANTUM: Nanos = 500_000;
const PERIOD_LEAST: Nanos = 10_000;
const PERIOD_LARGEST: Nanos = 10_000_000_000;
const SLICE_LEAST: Nanos = 5_000;
/// What a run in idle time adds to a score, over the weight.
const SCORE: u64 = 1 << 17;

struct Reservation {
    triple: SedfTriple,
    deadline: Nanos,
    used: Nanos,
    wants: bool,
    home: usize,
    /// The run that is under way is in time that nobody has reserved.
    on_extra: bool,
    score: u64,
    /// Time lost by blocking within a slice: its score in the queue that goes first.
    penalty: Option<u64>,
    blocked_at: Nanos,
}

impl Reservation {
    fn begins(&self) -> Nanos {
        self.deadline.saturating_sub(self.triple.period_ns)
    }

    fn in_time(&self, now: Nanos) -> bool {
        self.wants && self.triple.slice_ns > 0 && self.begins() <= now
    }
}

/// The scheduler's state.
pub struct Sedf {
    vcpus: Vec<Reservation>,
}

impl Sedf {
    /// All periods begin at 0. Refused: a triple outside Xen's limits, a processor promised away
    /// more than once.
    pub fn new(host: &Host) -> Result<Self, Refused> {
        let mut promised = vec![0.0; host.processors];
        let mut vcpus = Vec::new();
        for (home, domain) in host.homes().into_iter().zip(host.domain_of_vcpus()) {
            let triple = host.domains[domain].sedf;
            check(domain, triple)?;
            promised[home] += triple.slice_ns as f64 / triple.period_ns as f64;
            vcpus.push(Reservation {
                triple,
                deadline: triple.period_ns,
                used: 0,
                wants: false,
                home,
                on_extra: false,
                score: 0,
                penalty: None,
                blocked_at: 0,
            });
        }
        match promised.iter().position(|share| *share > 1.0 + 1e-9) {
            None => Ok(Self { vcpus }),
            Some(processor) => Err(Refused::new(
                format!(
                    "The slices on processor {processor} are {:.0} % of its time.",
                    promised[processor] * 100.0
                ),
                "Shorten slices, lengthen periods, or add processors.",
            )),
        }
    }

    /// Charges periods that are over, on one processor.
    fn turn_periods(&mut self, processor: usize, now: Nanos) {
        for one in self.vcpus.iter_mut().filter(|one| one.home == processor && one.wants) {
            if one.triple.slice_ns == 0 {
                continue;
            }
            while one.used >= one.triple.slice_ns {
                one.used -= one.triple.slice_ns;
                one.deadline += one.triple.period_ns;
            }
            if one.deadline <= now {
                let late = (now - one.deadline) / one.triple.period_ns + 1;
                one.deadline += late * one.triple.period_ns;
                one.used = 0;
            }
        }
    }

    /// The next moment at which a period begins on a processor.
    fn next_begin(&self, processor: usize, now: Nanos) -> Option<Nanos> {
        let here = self.vcpus.iter().filter(|one| one.home == processor && one.wants);
        here.filter(|one| one.triple.slice_ns > 0)
            .map(Reservation::begins)
            .filter(|begins| *begins > now)
            .min()
    }

    /// Who may use idle time on a processor: those that lost time first, then the lowest score.
    fn extra(&self, processor: usize) -> Option<usize> {
        let here = self.vcpus.iter().enumerate();
        here.filter(|(_, one)| one.home == processor && one.wants && one.triple.extra)
            .min_by_key(|(number, one)| {
                (one.penalty.is_none(), one.penalty.unwrap_or(one.score), *number)
            })
            .map(|(number, _)| number)
    }
}

fn check(domain: usize, triple: SedfTriple) -> Result<(), Refused> {
    let SedfTriple { slice_ns, period_ns, .. } = triple;
    if !(PERIOD_LEAST..=PERIOD_LARGEST).contains(&period_ns) {
        return Err(Refused::new(
            format!("The period of domain {domain} is {period_ns} ns."),
            "It may be 10 us to 10 s.",
        ));
    }
    if slice_ns > period_ns || (slice_ns > 0 && slice_ns < SLICE_LEAST) {
        return Err(Refused::new(
            format!("The slice of domain {domain} is {slice_ns} ns of {period_ns} ns."),
            "It may be 0, or 5 us up to the period.",
        ));
    }
    Ok(())
}

impl Rules for Sedf {
    fn ran(&mut self, vcpu: usize, ran_ns: Nanos, _: Nanos) {
        let one = &mut self.vcpus[vcpu];
        if !one.on_extra {
            one.used += ran_ns;
        } else if let Some(penalty) = &mut one.penalty {
            *penalty += ran_ns;
            if *penalty > one.triple.slice_ns {
                one.penalty = None;
            }
        } else {
            let TripleScore(step) = TripleScore::of(one.triple);
            one.score += step * ran_ns.div_ceil(EXTRA_QUANTUM);
        }
    }

    fn wakes(&mut self, vcpu: usize, now: Nanos, processors: &[Processor]) -> Option<usize> {
        let one = &mut self.vcpus[vcpu];
        one.wants = true;
        if one.triple.slice_ns > 0 {
            // One that wakes for the first time has slept long.
            if one.blocked_at > 0 && now < one.deadline {
                // A short sleep: the rest of the slice is lost, and goes before in idle time.
                one.deadline += one.triple.period_ns;
                one.penalty = one.triple.extra.then_some(one.used);
            } else {
                one.deadline = now + one.triple.period_ns;
            }
            one.used = 0;
        }
        let (home, deadline, ready) = (one.home, one.deadline, one.in_time(now));
        match processors[home].current {
            None => Some(home),
            Some(current) => {
                let other = &self.vcpus[current];
                let sooner = ready && (other.on_extra || deadline < other.deadline);
                sooner.then_some(home)
            }
        }
    }

    fn blocks(&mut self, vcpu: usize, now: Nanos) {
        let one = &mut self.vcpus[vcpu];
        one.wants = false;
        one.blocked_at = now.max(1);
    }

    fn decides(&mut self, processor: usize, _: Option<usize>, now: Nanos) -> Decision {
        self.turn_periods(processor, now);
        let begin = self.next_begin(processor, now);
        let ready = self.vcpus.iter().enumerate();
        let first = ready
            .filter(|(_, one)| one.home == processor && one.in_time(now))
            .min_by_key(|(number, one)| (one.deadline, *number));
        if let Some((vcpu, one)) = first {
            let left = now + (one.triple.slice_ns - one.used);
            self.vcpus[vcpu].on_extra = false;
            let again_at = Some(begin.map_or(left, |begin| begin.min(left)));
            return Decision { vcpu: Some(vcpu), again_at };
        }
        if begin.is_none_or(|begin| begin - now >= EXTRA_QUANTUM) {
            if let Some(vcpu) = self.extra(processor) {
                self.vcpus[vcpu].on_extra = true;
                return Decision { vcpu: Some(vcpu), again_at: Some(now + EXTRA_QUANTUM) };
            }
        }
        Decision { vcpu: None, again_at: begin }
    }
}

/// What a quantum of idle time adds to a score: more, the smaller the reservation.
struct TripleScore(u64);

impl TripleScore {
    fn of(triple: SedfTriple) -> Self {
        Self(match triple.slice_ns {
            0 => SCORE,
            slice => 1024 * triple.period_ns / slice,
        })
    }
}
