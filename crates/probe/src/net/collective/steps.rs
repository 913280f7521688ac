//! What one rank does: its work, its planted delay, then the operation that waits for the others.
use super::mesh::Mesh;
use super::{Delay, Operation, RankTimes, StepSettings, HEADER_BYTES};
use crate::error::Result;
use nephoscope_linux::clock;
use nephoscope_wire::random::Random;
use std::time::Duration;

/// Runs all steps after a barrier that is not timed.
pub fn run(mesh: &mut Mesh, settings: &StepSettings) -> Result<RankTimes> {
    let mut times = RankTimes {
        work_ns: Vec::with_capacity(settings.steps),
        wait_ns: Vec::with_capacity(settings.steps),
    };
    let mut random = Random::stream(settings.seed, mesh.rank as u64);
    barrier(mesh, 0)?;
    let mut left_ns = clock::monotonic_ns();
    for step in 1..=settings.steps as u64 {
        work(settings.work_rounds);
        let delay_ns = delay_ns(settings, mesh.rank, &mut random);
        if delay_ns > 0 {
            std::thread::sleep(Duration::from_nanos(delay_ns));
        }
        let entered_ns = clock::monotonic_ns();
        match settings.operation {
            Operation::Barrier => barrier(mesh, step)?,
            Operation::AllToAll => exchange(mesh, step, settings.message_bytes)?,
        }
        let now_ns = clock::monotonic_ns();
        times.work_ns.push(entered_ns - left_ns);
        times.wait_ns.push(now_ns - entered_ns);
        left_ns = now_ns;
    }
    Ok(times)
}

/// A dissemination barrier: in round k each rank informs the rank 2^k further on, so that after
/// ceil(log2 n) rounds each has heard of all, directly or not.
///
/// Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", 1988.
fn barrier(mesh: &mut Mesh, step: u64) -> Result<()> {
    let (rank, ranks) = (mesh.rank, mesh.ranks());
    let mut distance = 1;
    let mut round = 0;
    while distance < ranks {
        let (to, from) = ((rank + distance) % ranks, (rank + ranks - distance) % ranks);
        mesh.transfer((step, round), (1 << to, 1 << from), HEADER_BYTES)?;
        distance *= 2;
        round += 1;
    }
    Ok(())
}

/// A message to each other rank, and one from each.
fn exchange(mesh: &mut Mesh, step: u64, message_bytes: usize) -> Result<()> {
    let peers = ((1u32 << mesh.ranks()) - 1) & !(1 << mesh.rank);
    mesh.transfer((step, 0), (peers, peers), message_bytes)
}

fn work(rounds: u64) {
    let mut random = Random::new(rounds);
    let mut sum = 0u64;
    for _ in 0..rounds {
        sum = sum.wrapping_add(random.bits());
    }
    std::hint::black_box(sum);
}

fn delay_ns(settings: &StepSettings, rank: usize, random: &mut Random) -> u64 {
    // Drawn in any case, so that the delays of a rank do not depend on which ranks are delayed.
    let uniform = random.uniform();
    if settings.delayed_rank >= 0 && settings.delayed_rank != rank as i64 {
        return 0;
    }
    match settings.delay {
        Delay::Fixed => settings.delay_mean_ns,
        Delay::Exponential => (settings.delay_mean_ns as f64 * -(1.0 - uniform).ln()) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(delay: Delay, delayed_rank: i64) -> StepSettings {
        StepSettings {
            operation: Operation::Barrier,
            message_bytes: HEADER_BYTES,
            steps: 1,
            work_rounds: 0,
            delay,
            delay_mean_ns: 1000,
            delayed_rank,
            seed: 1,
        }
    }

    #[test]
    fn exponential_delays_have_the_stated_mean() {
        const DRAWS: u64 = 100_000;
        let (settings, mut random) = (settings(Delay::Exponential, -1), Random::new(7));
        let sum: u64 = (0..DRAWS).map(|_| delay_ns(&settings, 0, &mut random)).sum();
        // Four standard errors of the mean of an exponential distribution.
        let error = 4.0 * 1000.0 / (DRAWS as f64).sqrt();
        assert!((sum as f64 / DRAWS as f64 - 1000.0).abs() < error + 0.5);
    }

    #[test]
    fn only_the_named_rank_is_delayed() {
        let mut random = Random::new(7);
        let settings = settings(Delay::Fixed, 1);
        let delays: Vec<_> = (0..3).map(|rank| delay_ns(&settings, rank, &mut random)).collect();
        assert_eq!(delays, [0, 1000, 0]);
    }
}
