//! # What it measures
//! Time until another thread runs: the cost of a context switch including the system calls that
//! cause it. Programs that wait for each other, for the disk or for the network pay it each time.
//!
//! # How
//! Two threads hand a turn to each other and sleep in between: by a byte through a pipe, or by a
//! futex. On `one_cpu` both are pinned to the same CPU, so that each handover is one switch; on
//! `two_cpus` a handover wakes a thread on an idle CPU. After a warm-up of a tenth of `duration_ns`
//! each round trip is timed; half of it is a handover.
//!
//! # Known truth
//! On one CPU the voluntary and involuntary switches that the kernel counts for both threads are
//! twice the round trips within 1 %, plus those caused by other programs. Rate times mean latency
//! is 1.
//!
//! # Cross-check
//! `perf bench sched pipe -T`, which counts a round trip as one operation; lmbench's `lat_ctx`.
//!
//! # Overhead
//! One CPU, or part of two, for 1.1 times `duration_ns`.
//!
//! # Caveats
//! The system calls are included: some hundred nanoseconds. Cold caches after a switch are not: the
//! threads share their memory. On two CPUs most of the time is leaving the idle state, including
//! the hypervisor's part.
use crate::error::{FailureKind as ErrorKind, ProbeError, Result};
use crate::threads::gaps::cause::Switches;
use crate::threads::team;
use crate::threads::turn_passing::{Method, Partner};
use crate::timing::closed_loop::{ClosedLoopResult, CompletionWindow};
use crate::timing::timed;
use crate::trial::affinity;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_wire::meaning::{Contended, Literal, Victim};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "cpu.switch",
    summary: "Cost of a context switch between two threads, on one CPU or across two",
    params: &[
        Param::choice("method", "pipe", Method::NAMES)
            .doc("Mechanism of the handover between the two threads."),
        Param::choice("place", "one_cpu", &["one_cpu", "two_cpus"])
            .doc("Placement of the two threads."),
        Param::ints("cpus", &[], 0..=1023)
            .doc("One CPU or two; an empty list takes the first allowed ones."),
        Param::int("duration_ns", 500_000_000, 1_000_000..=3_600_000_000_000)
            .doc("Measured time, after a warm-up of a tenth of it."),
    ],
    metrics: &[
        Metric::lower("switch_latency_ns")
            .histogram()
            .headline()
            .doc("Time of a handover: half of a round trip."),
        Metric::higher("switches_per_s").headline().doc("Handovers per second."),
        Metric::neutral("handovers_count").doc("Number of handovers, including warm-up."),
        Metric::neutral("voluntary_switches_count")
            .doc("Voluntary context switches of the two threads, as the kernel counts them."),
        Metric::neutral("involuntary_switches_count")
            .doc("Involuntary context switches of the two threads, as the kernel counts them."),
    ],
    overhead: "one CPU, or part of two, for 1.1 times duration_ns",
    source: "McVoy and Staelin, lmbench (lat_ctx), 1996; perf bench sched pipe",
    victim_for: &[Victim {
        resource: Contended::Switches,
        metric: "switches_per_s",
        params: &[("duration_ns", Literal::Int(150_000_000))],
    }],
    ..Spec::about(Resource::Scheduler)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let (own_cpu, partner_cpu) = cpus(trial)?;
    let method = parameters::choice(&trial.params, "method");
    let duration_ns = trial.params.u64("duration_ns");
    team::check_can_start_threads()?;
    affinity::pin(own_cpu)?;
    let partner = Partner::start(trial.session, method, partner_cpu)?;
    trial.prepared()?;
    let before = Switches::read();
    let (outcome, round_trips) = hand_over(trial.session, &partner, duration_ns)?;
    let accounted = [Switches::since(before), partner.end()?];
    trial.out.emit("switches_per_s", 2.0 * outcome.operations_per_s, factors! {})?;
    trial.out.emit("handovers_count", 2.0 * round_trips as f64, factors! {})?;
    if let [Some(own), Some(partner)] = accounted {
        let sum = |of: fn(&Switches) -> i64| (of(&own) + of(&partner)) as f64;
        trial.out.emit("voluntary_switches_count", sum(|a| a.voluntary), factors! {})?;
        trial.out.emit("involuntary_switches_count", sum(|a| a.involuntary), factors! {})?;
    }
    trial.emit_histogram("switch_latency_ns", &outcome.latency, &factors! {})
}

fn cpus(trial: &Trial) -> Result<(usize, usize)> {
    let allowed = affinity::allowed();
    let wanted = affinity::named("cpu.switch", &trial.params)?;
    let across = trial.params.text("place") == "two_cpus";
    let candidates = if wanted.is_empty() { &allowed } else { &wanted };
    match candidates.as_slice() {
        [cpu, ..] if !across => Ok((*cpu, *cpu)),
        [first, second, ..] if first != second => Ok((*first, *second)),
        _ if wanted.is_empty() => Err(ProbeError::new(
            ErrorKind::Lacks,
            "one_cpu_only",
            "cpu.switch across two CPUs: this process may use one CPU only.",
            "Set `place` to one_cpu, or allow it another CPU.",
        )),
        _ => Err(ProbeError::usage(
            "cpu.switch across two CPUs: `cpus` does not name two different ones.",
            "Name two, or none.",
        )),
    }
}

/// Hands over and over for a while; how long it took, and how many round trips there were.
fn hand_over(
    session: Session,
    partner: &Partner,
    duration_ns: u64,
) -> Result<(ClosedLoopResult, u64)> {
    let mut window = CompletionWindow::open(clock::monotonic_ns(), duration_ns);
    let mut round_trips = 0;
    let section = timed::start();
    let mut started_ns = clock::monotonic_ns();
    loop {
        session.check()?;
        partner.round_trip()?;
        round_trips += 1;
        let now_ns = clock::monotonic_ns();
        if !window.completed(now_ns, (now_ns - started_ns) / 2) {
            break;
        }
        started_ns = now_ns;
    }
    section.stop_with_kernel_io();
    Ok((CompletionWindow::outcome([window])?, round_trips))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_and_the_mean_belong_together() {
        let cpu = affinity::allowed()[0];
        let (outcome, round_trips) = std::thread::spawn(move || {
            affinity::pin(cpu).unwrap();
            hand_over(
                Session::detached(),
                &Partner::start(Session::detached(), Method::Futex, cpu).unwrap(),
                50_000_000,
            )
            .unwrap()
        })
        .join()
        .unwrap();
        // The histogram rounds to 3 digits, and half of an odd number of nanoseconds down.
        let in_flight = 2.0 * outcome.operations_per_s * outcome.latency.mean() / 1e9;
        assert!((in_flight - 1.0).abs() < 0.005, "{in_flight}");
        assert!(round_trips > outcome.latency.len());
    }
}
