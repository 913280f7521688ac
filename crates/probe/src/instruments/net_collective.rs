//! # What it measures
//! Steps of a parallel program: each of 2 to 8 ranks computes, then all wait for each other in a
//! barrier or exchange messages. It yields the time per step, what the operation adds to the
//! slowest rank's work, and the waiting time of each rank.
//!
//! # How
//! The ranks are connected to each other by TCP. This host is rank 0; the ranks from 1 on are the
//! first of `members`, on each of which `net.member` listens. Without members all ranks are threads
//! here, which connect over loopback. A step is `work_rounds` rounds of `SplitMix64`, a planted
//! delay, and the operation: a dissemination barrier (`ceil(log2 n)` rounds of messages of 16
//! bytes), or `message_bytes` from each rank to each other one. A barrier that is not timed comes
//! first. Each rank reads its own clock: work ends when it enters the operation, waiting when it
//! leaves, and the next step begins there. No common clock is needed.
//!
//! `slowest_work_ns` is the maximum over ranks of each step. `expected_slowest_ns` is its mean if
//! the ranks were independent, from their distributions: a smaller measured one shows delays that
//! hit several ranks at once. `operation_ns` is the mean step minus the mean slowest work.
//!
//! # Known truth
//! A planted delay of one rank is the work of that rank and the waiting of the others. Exponential
//! delays of all ranks have a slowest one of the mean times the n-th harmonic number. Links with a
//! delay d make a barrier take `ceil(log2 n)` d. Counts of steps agree with those of the members.
//!
//! # Cross-check
//! `MPI_Barrier` and `MPI_Alltoall` of Open MPI with as many ranks over TCP.
//!
//! # Overhead
//! One CPU per rank while it works; `message_bytes` to each other rank and step.
//!
//! # Caveats
//! Threads on fewer CPUs than ranks wait for a CPU as well. Ranks leave a barrier up to a message's
//! way apart, so that `operation_ns` has its meaning over many steps, not in a single one.
use crate::error::{ProbeError, Result};
use crate::net::collective::expected_maximum::expected_maximum;
use crate::net::collective::{
    coordinator, Delay, Operation, RankTimes, StepSettings, HEADER_BYTES, RANKS_MAX,
};
use crate::timing::closed_loop::latency_histogram;
use crate::trial::{factors, parameters, Trial};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use std::net::SocketAddr;

pub const SPEC: Spec = Spec {
    id: "net.collective",
    summary: "Barrier and all-to-all exchange among the ranks of a parallel program",
    params: &[
        Param::choice("operation", "barrier", Operation::NAMES)
            .doc("Operation at the end of each step: a barrier, or a message to each other rank."),
        Param::count("ranks", 2, 2..=RANKS_MAX as i64).doc("Number of ranks, this one included."),
        Param::texts("members").doc(
            "ADDRESS:PORT of net.member for the ranks from 1 on; without any, ranks are threads.",
        ),
        Param::int("message_bytes", 1024, HEADER_BYTES as i64..=4 << 20)
            .doc("Bytes to each other rank in an exchange; a barrier's messages have 16."),
        Param::count("steps", 200, 1..=50_000).doc("Number of steps."),
        Param::count("work_rounds", 100_000, 0..=1_000_000_000)
            .doc("Rounds of SplitMix64 that each rank computes in a step (about 1 ns each)."),
        Param::choice("delay", "fixed", Delay::NAMES)
            .doc("Distribution of the planted delay, a sleep after the work."),
        Param::int("delay_mean_ns", 0, 0..=10_000_000_000)
            .doc("Mean of the planted delay; 0 plants none."),
        Param::count("delayed_rank", -1, -1..=RANKS_MAX as i64 - 1)
            .doc("The only rank with planted delays; -1 delays all ranks."),
        Param::seed().doc("Seed of the planted delays; 0 draws another one each time."),
    ],
    metrics: &[
        Metric::lower("step_ns").histogram().headline().doc("Time of a step on rank 0."),
        Metric::lower("operation_ns")
            .headline()
            .doc("Mean time of a step beyond the work of its slowest rank."),
        Metric::lower("work_ns").histogram().doc("Work and planted delay of a step, by rank."),
        Metric::lower("wait_ns").histogram().doc("Time within the operation, by rank."),
        Metric::lower("slowest_work_ns").histogram().doc("Work of the slowest rank of a step."),
        Metric::neutral("expected_slowest_ns")
            .doc("Mean of the slowest work if the ranks were independent."),
        Metric::neutral("slowest_ratio")
            .share()
            .doc("Share of the steps in which a rank had the longest work, by rank."),
        Metric::higher("efficiency_ratio")
            .share()
            .doc("Mean work of the ranks per mean step: the share of time that they do not wait."),
    ],
    overhead: "one CPU per rank while it works; message_bytes to each other rank and step",
    source: "Hensgen, Finkel, Manber 1988 (dissemination barrier); MPI 4.0, chapter 6",
    ..Spec::about(Resource::Network)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings =
        StepSettings { seed: parameters::seed(&trial.params), ..parameters::fields(&trial.params) };
    let ranks = trial.params.size("ranks");
    if settings.delayed_rank >= ranks as i64 {
        let delayed = settings.delayed_rank;
        return Err(ProbeError::usage(
            format!("net.collective: delayed_rank {delayed} is none of {ranks} ranks from 0 on."),
            "Set a smaller delayed_rank, or more ranks.",
        ));
    }
    let members = members(trial)?;
    let session = trial.session;
    let all = if members.is_empty() {
        coordinator::run_here(session, ranks, &settings, || trial.prepared())?
    } else {
        coordinator::run(session, &members[..ranks - 1], &settings, || trial.prepared())?
    };
    emit(trial, &all)
}

fn members(trial: &Trial) -> Result<Vec<SocketAddr>> {
    let ranks = trial.params.size("ranks");
    let texts = trial.params.texts("members");
    let members = texts
        .iter()
        .map(|text| {
            text.parse().map_err(|_| {
                ProbeError::usage(
                    format!("net.collective: members has '{text}', which is no ADDRESS:PORT."),
                    "Write the IP address and port of net.member, such as 10.0.0.2:7700.",
                )
            })
        })
        .collect::<Result<Vec<SocketAddr>>>()?;
    if !members.is_empty() && members.len() < ranks - 1 {
        return Err(ProbeError::usage(
            format!("net.collective: {ranks} ranks need {} members.", ranks - 1),
            format!("It has {}; name more, or set ranks to {}.", members.len(), members.len() + 1),
        ));
    }
    Ok(members)
}

fn emit(trial: &mut Trial, all: &[RankTimes]) -> Result<()> {
    let steps = all[0].work_ns.len();
    let work = |step: usize| all.iter().map(move |rank| rank.work_ns[step]);
    let slowest: Vec<u64> = (0..steps).map(|step| work(step).max().unwrap_or(0)).collect();
    let total = |times: &[u64]| times.iter().sum::<u64>() as f64;
    let (steps_count, ranks_count) = (steps as f64, all.len() as f64);
    let worked_ns = all.iter().map(|rank| total(&rank.work_ns)).sum::<f64>() / ranks_count;
    let waited_ns = all.iter().map(|rank| total(&rank.wait_ns)).sum::<f64>() / ranks_count;
    let step_ns = (worked_ns + waited_ns) / steps_count;

    let own = &all[0];
    let own_steps: Vec<u64> = own.work_ns.iter().zip(&own.wait_ns).map(|(a, b)| a + b).collect();
    emit_times(trial, "step_ns", &own_steps, None)?;
    let operation_ns = step_ns - total(&slowest) / steps_count;
    trial.out.emit("operation_ns", operation_ns.max(0.0), factors! {})?;
    let mut shares = vec![0u64; all.len()];
    for (step, slowest_ns) in slowest.iter().enumerate() {
        if let Some(rank) = work(step).position(|ns| ns == *slowest_ns) {
            shares[rank] += 1;
        }
    }
    for (rank, times) in all.iter().enumerate() {
        emit_times(trial, "work_ns", &times.work_ns, Some(rank))?;
        emit_times(trial, "wait_ns", &times.wait_ns, Some(rank))?;
        let share = shares[rank] as f64 / steps_count;
        trial.out.emit("slowest_ratio", share, factors! {"rank": rank})?;
    }
    emit_times(trial, "slowest_work_ns", &slowest, None)?;
    let workers: Vec<&[u64]> = all.iter().map(|rank| rank.work_ns.as_slice()).collect();
    trial.out.emit("expected_slowest_ns", expected_maximum(&workers), factors! {})?;
    trial.out.emit("efficiency_ratio", worked_ns / (worked_ns + waited_ns), factors! {})
}

fn emit_times(trial: &mut Trial, metric: &str, times: &[u64], rank: Option<usize>) -> Result<()> {
    let mut histogram = latency_histogram();
    for ns in times {
        histogram.saturating_record(*ns);
    }
    let factors = rank.map_or_else(|| factors! {}, |rank| factors! {"rank": rank});
    trial.emit_histogram(metric, &histogram, &factors)
}
