//! Samples that `net.throughput` and the network loads have in common.
use super::client::TwoSided;
use super::datagrams::UdpTransferStats;
use super::tcp_streams::TcpTransferStats;
use super::TransferTask;
use crate::error::Result;
use crate::trial::{factors, Factors, Trial};

/// Statistics of one side that include the CPU time of its program.
pub trait CpuUse {
    /// Returns CPU time and elapsed time.
    fn cpu_and_elapsed_ns(&self) -> (u64, u64);
}

impl CpuUse for TcpTransferStats {
    fn cpu_and_elapsed_ns(&self) -> (u64, u64) {
        (self.cpu_ns, self.elapsed_ns)
    }
}

impl CpuUse for UdpTransferStats {
    fn cpu_and_elapsed_ns(&self) -> (u64, u64) {
        (self.cpu_ns, self.received.elapsed_ns)
    }
}

pub fn direction_factors(direction: &str) -> Factors {
    factors! {"direction": direction}
}

/// (name, sender, receiver) of each direction that was asked for.
pub fn directions<'a, T>(
    task: &TransferTask,
    sides: &'a TwoSided<T>,
) -> Vec<(&'static str, &'a T, &'a T)> {
    let all = [
        (task.up, ("up", &sides.near, &sides.far)),
        (task.down, ("down", &sides.far, &sides.near)),
    ];
    all.into_iter().filter(|(wanted, _)| *wanted).map(|(_, direction)| direction).collect()
}

pub fn emit_used_cpus(trial: &mut Trial, sides: &TwoSided<impl CpuUse>) -> Result<()> {
    for (side, stats) in [("near", &sides.near), ("far", &sides.far)] {
        let (cpu_ns, elapsed_ns) = stats.cpu_and_elapsed_ns();
        let cpus = cpu_ns as f64 / elapsed_ns.max(1) as f64;
        trial.out.emit("used_cpus", cpus, factors! {"side": side})?;
    }
    Ok(())
}

/// Emits a value per interval, each at the end of its interval.
pub fn emit_intervals(
    trial: &mut Trial,
    metric: &str,
    intervals: &[(u64, f64)],
    factors: &Factors,
) -> Result<()> {
    for (at_ns, value) in intervals {
        trial.out.emit_at(metric, *value, 1, *at_ns, factors.clone())?;
    }
    Ok(())
}
