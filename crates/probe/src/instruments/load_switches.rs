//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It makes the kernel switch
//! between threads at full speed, for a share of the time or at a fixed rate, and counts the
//! switches, so that its presence is verified.
//!
//! # How
//! On each CPU a pair of threads, both pinned to it, hand a turn to each other and sleep in
//! between, by a `futex` or a pipe: each handover is a context switch. With `switches_per_s` 0 a
//! pair works until the two have used `intensity_ratio` of the period by their CPU clocks, as
//! `load.cpu` does. Otherwise all pairs together make `intensity_ratio` times `switches_per_s` at
//! even intervals; switches late by more than `interval_ns` are skipped. It ends after
//! `duration_ns` or when stopped, with all samples in both cases.
//!
//! # Known truth
//! Switches equal those that the kernel accounts to the process within 2 %, plus those caused by
//! other programs. A fixed rate is kept within 2 %. The share of CPU time is `intensity_ratio`
//! within 2 points.
//!
//! # Cross-check
//! `stress-ng --switch N`; the line `ctxt` of `/proc/stat`.
//!
//! # Overhead
//! The chosen share of the chosen CPUs, spent in the kernel.
//!
//! # Caveats
//! Most of the CPU time is the kernel's; a neighbour on the same CPU loses it as to any other load.
//! Run-queue locks, cold caches and branch predictors are the purpose of this load.
use crate::error::Result;
use crate::load::load_threads::{self, CounterRate, LoadSettings, LoadTarget, Work};
use crate::load::{self, CPUS, DURATION, INTENSITY, INTERVAL, LOAD_CPUS, PERIOD, THREADS};
use crate::threads::turn_passing::{Method, Partner};
use crate::trial::parameters;
use crate::trial::Trial;
use nephoscope_wire::meaning::{Aggressor, Contended};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "load.switches",
    summary: "Verified scheduler load: context switches between threads",
    params: &[
        THREADS.doc("Number of pairs of threads; 0 takes one per allowed CPU."),
        CPUS,
        Param::choice("method", "futex", Method::NAMES)
            .doc("Mechanism of the handover between the two threads."),
        Param::float("switches_per_s", 0.0, 0.0..=1e8)
            .doc("Context switches per second of all pairs; 0 for full speed."),
        INTENSITY.doc("Load level: share of each period, or of switches_per_s; 0 is an idle load."),
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_switches_per_s")
            .headline()
            .doc("Context switches per second, all pairs."),
        LOAD_CPUS,
        load::intensity(
            "CPU time of a pair per elapsed time, mean of the pairs; or of switches_per_s.",
        ),
        Metric::neutral("interval_switches_per_s")
            .series()
            .doc("Context switches per second in each interval, at its end."),
        load::interval_intensity("Load level reached in each interval, at its end."),
    ],
    overhead: "the chosen share of the chosen CPUs, in the kernel",
    source: "lmbench's lat_ctx and stress-ng --switch under a duty cycle",
    load: true,
    aggressor_for: &[Aggressor { resource: Contended::Switches, params: &[] }],
    ..Spec::about(Resource::Scheduler)
};

/// Round trips of a bit of work: some tens of microseconds.
const ROUND_TRIPS: u64 = 16;

pub fn run(trial: &mut Trial) -> Result<()> {
    let per_s = trial.params.float("switches_per_s");
    // A round trip is two switches; at a set rate one at a time, so that they are even.
    let (keeps, round_trips) = match per_s > 0.0 {
        true => (LoadTarget::Rate(per_s / 2.0), 1),
        false => (LoadTarget::CpuTime, ROUND_TRIPS),
    };
    let settings = LoadSettings::of(trial, keeps)?;
    let cpus = load::placement(trial)?;
    let method = parameters::choice(&trial.params, "method");
    let rate = CounterRate {
        total: "load_switches_per_s",
        interval: "interval_switches_per_s",
        each: 1.0,
    };
    let session = trial.session;
    load_threads::run(trial, &settings, &load::pinned(&cpus), &[rate], |pair| {
        Ok(ThreadPair { partner: Partner::start(session, method, cpus[pair])?, round_trips })
    })
}

/// One thread with its partner.
struct ThreadPair {
    partner: Partner,
    round_trips: u64,
}

impl Work for ThreadPair {
    fn bit(&mut self) -> Result<u64> {
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
    use crate::trial::affinity;
    use crate::trial::session::Session;
    use nephoscope_linux::clock;

    #[test]
    fn both_threads_of_a_pair_are_seen() {
        let cpu = affinity::allowed()[0];
        let check = move || {
            affinity::pin(cpu).unwrap();
            let mut pair = ThreadPair {
                partner: Partner::start(Session::detached(), Method::Futex, cpu).unwrap(),
                round_trips: 100,
            };
            let (own_ns, partner_ns) = (clock::thread_cpu_ns(), pair.others_cpu_ns());
            assert_eq!(pair.bit().unwrap(), 200);
            let (own_used_ns, partner_used_ns) =
                (clock::thread_cpu_ns() - own_ns, pair.others_cpu_ns() - partner_ns);
            // They do the same work; the one that starts reads its clock too.
            assert!(
                partner_used_ns > own_used_ns / 4 && own_used_ns > partner_used_ns / 4,
                "{own_used_ns} {partner_used_ns}"
            );
        };
        std::thread::spawn(check).join().unwrap();
    }
}
