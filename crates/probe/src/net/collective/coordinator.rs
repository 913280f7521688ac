//! Rank 0: it assigns the other ranks, takes part in all steps, and collects the times of all.
use super::member::{connect, Member};
use super::mesh::Mesh;
use super::{failed, steps, Assignment, Join, RankTimes, StepSettings};
use crate::error::{ProbeError, Result};
use crate::net::connection::End;
use crate::net::messages::{receive_message, Signal};
use crate::net::random_bytes;
use crate::net::server::bind_listener;
use crate::trial::session::Session;
use crate::trial::ListenConfig;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs all steps with the members at `addresses`, which are the ranks from 1 on; `ready` is called
/// when all are connected. Returns the times of each rank.
pub fn run(
    session: Session,
    addresses: &[SocketAddr],
    settings: &StepSettings,
    ready: impl FnOnce() -> Result<()>,
) -> Result<Vec<RankTimes>> {
    let mut ends: Vec<Option<End>> = vec![None];
    let number = u64::from_le_bytes(random_bytes()?);
    for (rank, address) in (1..).zip(addresses) {
        let assignment =
            Assignment { rank, addresses: addresses.to_vec(), settings: settings.clone() };
        let join = Join { session: number, rank: 0, assignment: Some(assignment) };
        ends.push(Some(connect(session, rank, *address, &join)?));
    }
    for (rank, end) in ends.iter_mut().enumerate() {
        let Some(end) = end else { continue };
        let answer: Result<Signal> = receive_message(end);
        answer.map_err(|error| {
            failed("rank_gone", format!("Rank {rank} did not become ready: {}", error.message))
        })?;
    }
    ready()?;
    let mut mesh = Mesh::new(session, 0, ends, settings.message_bytes);
    let own = steps::run(&mut mesh, settings)?;
    let mut all = vec![own];
    for rank in 1..mesh.ranks() {
        let times: RankTimes = receive_message(mesh.end(rank))?;
        if times.work_ns.len() != settings.steps || times.wait_ns.len() != settings.steps {
            return Err(failed("wrong_message", format!("Rank {rank} reports other steps.")));
        }
        all.push(times);
    }
    Ok(all)
}

/// As [`run`], with all ranks in threads of this process, which connect over loopback.
pub fn run_here(
    session: Session,
    ranks: usize,
    settings: &StepSettings,
    ready: impl FnOnce() -> Result<()>,
) -> Result<Vec<RankTimes>> {
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listen = ListenConfig { bind: loopback, token: String::new() };
    let listeners =
        (1..ranks).map(|_| bind_listener(&listen)).collect::<Result<Vec<TcpListener>>>()?;
    let addresses = listeners
        .iter()
        .map(|listener| {
            listener.local_addr().map_err(|error| ProbeError::os("getsockname", &error))
        })
        .collect::<Result<Vec<_>>>()?;
    let hosts = [loopback];
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for listener in &listeners {
            let (is_over, hosts) = (&is_over, &hosts);
            scope.spawn(move || {
                // A failure ends the connections, which the coordinator notices and reports.
                let mut member = Member::new(session, listener, hosts);
                let _ = member.serve(|counts| {
                    counts.sessions + counts.failed_sessions > 0 || is_over.load(Ordering::Relaxed)
                });
            });
        }
        let times = run(session, &addresses, settings, ready);
        is_over.store(true, Ordering::Relaxed);
        times
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Delay, Operation};
    use super::*;

    #[test]
    fn every_number_of_ranks_completes_every_step_of_either_operation() {
        for ranks in 2..=8 {
            for operation in [Operation::Barrier, Operation::AllToAll] {
                let settings = StepSettings {
                    operation,
                    message_bytes: 100_000,
                    steps: 5,
                    work_rounds: 10,
                    delay: Delay::Fixed,
                    delay_mean_ns: 0,
                    delayed_rank: -1,
                    seed: 1,
                };
                let times = run_here(Session::detached(), ranks, &settings, || Ok(())).unwrap();
                assert_eq!(times.len(), ranks);
                assert!(times.iter().all(|rank| rank.work_ns.len() == 5), "{ranks} ranks");
            }
        }
    }

    #[test]
    fn nobody_leaves_a_barrier_before_the_last_has_entered() {
        let settings = StepSettings {
            operation: Operation::Barrier,
            message_bytes: 16,
            steps: 3,
            work_rounds: 0,
            delay: Delay::Fixed,
            delay_mean_ns: 20_000_000,
            delayed_rank: 2,
            seed: 1,
        };
        let times = run_here(Session::detached(), 5, &settings, || Ok(())).unwrap();
        for step in 0..3 {
            assert!(times[2].work_ns[step] >= 20_000_000);
            for rank in [0, 1, 3, 4] {
                let (work, wait) = (times[rank].work_ns[step], times[rank].wait_ns[step]);
                // A rank may leave the step before later than the delayed one, by a message's way.
                assert!(work + wait >= 15_000_000, "rank {rank}: {work} + {wait} ns");
            }
        }
    }
}
