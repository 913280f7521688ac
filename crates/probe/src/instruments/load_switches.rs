//! # What it measures
//! Nothing about the machine by itself: it is a load, to be run beside other benchmarks. It makes the
//! kernel switch from one thread to another and back, as often as it can, during a set share of the
//! time or at a set rate, and counts the switches, so that it can be proved afterwards that the load
//! was there all the time.
//!
//! # How
//! On each CPU a pair of threads, both pinned to it, hand a turn to each other and sleep in between,
//! by a word in memory and the kernel's waiting on it (`futex`) or a byte through a pipe: each
//! handover is a context switch. With `switches_per_s` 0 a pair hands over until the two have used
//! `intensity_ratio` of the period by their CPU clocks, then sleeps, as `load.cpu` does. Otherwise
//! all pairs together do `intensity_ratio` times `switches_per_s` on an even beat; what is late by
//! more than `interval_ns` is lost. It ends after `duration_ns`, or when it is told to stop, and in
//! both cases with all its samples.
//!
//! # Known truth
//! The context switches that the kernel accounts to the process are those counted, within 2 %, and
//! what others take of the CPU adds some. A set rate is kept within 2 %. The share of CPU time is
//! `intensity_ratio` within 2 points.
//!
//! # Cross-check
//! `stress-ng --switch N`; the line `ctxt` of `/proc/stat`.
//!
//! # Overhead
//! What it is told to be: the chosen share of the chosen CPUs, spent in the kernel.
//!
//! # Caveats
//! The share is of CPU time: most of it is the kernel's own, and a neighbour on the same CPU loses it
//! as to any other load. What the switches do beyond that (the run queue's locks, cold caches and
//! branch predictors) is what this load is for.
use crate::error::ProbeError;
use crate::load::load_threads::{self, LoadSettings, LoadTarget, Rate, Work};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, LOAD_CPUS, PERIOD, THREADS};
use crate::trial::Trial;
use crate::turn_passing::{Method, Partner};
use nephoscope_wire::spec::{Metric, Param, Spec};

pub const SPEC: Spec = Spec {
    id: "load.switches",
    summary: "A load that makes the kernel switch between threads, and proves it",
    params: &[
        THREADS.doc("Pairs of threads of the load; 0 takes one on every CPU that it may use."),
        CPUS,
        Param::choice("method", "futex", Method::NAMES).doc("How the turn is handed over."),
        Param::float("switches_per_s", 0.0, 0.0..=1e8)
            .doc("Switches of all pairs a second; 0 is as many as go."),
        INTENSITY.doc(
            "Share of each period that each pair works, or of switches_per_s. 0 is a load that \
                  waits.",
        ),
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_switches_per_s")
            .headline()
            .doc("Context switches of all pairs a second."),
        LOAD_CPUS,
        load::intensity(
            "CPU time of a pair over its time, mean of the pairs; with a set rate, switches done \
             over that rate.",
        ),
        Metric::neutral("interval_switches_per_s")
            .series()
            .doc("Context switches a second in each interval, at its end."),
        load::interval_intensity("The intensity in each interval, at its end."),
    ],
    overhead: "the chosen share of the chosen CPUs, in the kernel",
    source: "lmbench's lat_ctx and stress-ng --switch under a duty cycle",
    load: true,
    ..Spec::EMPTY
};

/// Round trips of a bit of work: some tens of microseconds.
const ROUND_TRIPS: u64 = 16;

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let per_s = trial.params.float("switches_per_s");
    // A round trip is two switches; at a set rate one at a time, so that they are even.
    let (keeps, round_trips) = match per_s > 0.0 {
        true => (LoadTarget::Rate(per_s / 2.0), 1),
        false => (LoadTarget::CpuTime, ROUND_TRIPS),
    };
    let shift = LoadSettings::of(trial, keeps)?;
    let cpus = load::seats(trial)?;
    let method = Method::named(trial.params.text("method"));
    let rate =
        Rate { total: "load_switches_per_s", interval: "interval_switches_per_s", each: 1.0 };
    let session = trial.session;
    load_threads::run(trial, &shift, &load::pinned(&cpus), &[rate], |pair| {
        Ok(Pair { partner: Partner::start(session, method, cpus[pair])?, round_trips })
    })
}

/// One thread with its partner.
struct Pair {
    partner: Partner,
    round_trips: u64,
}

impl Work for Pair {
    fn bit(&mut self) -> Result<u64, ProbeError> {
        for _ in 0..self.round_trips {
            self.partner.round_trip()?;
        }
        Ok(2 * self.round_trips)
    }

    fn others_cpu_ns(&self) -> u64 {
        self.partner.cpu_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;
    use crate::{affinity, clock};

    #[test]
    fn both_threads_of_a_pair_are_seen() {
        let cpu = affinity::allowed()[0];
        let check = move || {
            affinity::pin(cpu).unwrap();
            let mut pair = Pair {
                partner: Partner::start(Session::detached(), Method::Futex, cpu).unwrap(),
                round_trips: 100,
            };
            let (mine, its) = (clock::thread_cpu_ns(), pair.others_cpu_ns());
            assert_eq!(pair.bit().unwrap(), 200);
            let (mine, its) = (clock::thread_cpu_ns() - mine, pair.others_cpu_ns() - its);
            // They do the same work; the one that starts reads its clock too.
            assert!(its > mine / 4 && mine > its / 4, "{mine} {its}");
        };
        std::thread::spawn(check).join().unwrap();
    }
}
