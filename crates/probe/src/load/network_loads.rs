//! What the loads between two machines share: their parameters, their task, their samples.
use super::duration_ns;
use crate::error::ProbeError;
use crate::net::goodput::client::Both;
use crate::net::goodput::datagrams::UdpTransferStats;
use crate::net::goodput::paced_sender::SendingPace;
use crate::net::goodput::tcp_streams::TcpTransferStats;
use crate::net::goodput::Task;
use crate::trial::Trial;
use crate::{load, trial::factors};
use nephoscope_wire::spec::{Metric, Param};

/// How long the last datagrams are awaited.
const WAIT_NS: u64 = 300_000_000;

/// Parameter: which way.
pub const DIRECTION: Param = Param::choice("direction", "send", &["send", "receive"])
    .doc("Whether the running side sends to the serving side or receives from it.");

/// Parameter: how hard.
pub const INTENSITY: Param = load::INTENSITY
    .doc("Share of each period in which it sends, or of the rate. 0 is a load that waits.");

/// Metric: CPU time.
pub const USED_CPUS: Metric =
    Metric::neutral("used_cpus").doc("CPU time of the program over its time, by side.");

/// Metric: datagrams that were lost.
pub const LOSS: Metric =
    Metric::neutral("loss_ratio").doc("Datagrams that did not arrive, out of those sent.");

/// Metric: datagrams that the receiving program was too slow for.
pub const DROPS: Metric = Metric::neutral("receiver_drops_count")
    .doc("Datagrams that arrived and found the receiver's buffer full.");

/// What is to be carried. `rate` is what a second is to carry, 0 for as much as goes: bytes of TCP,
/// datagrams of UDP.
pub fn task(trial: &Trial, tcp: bool, packet_bytes: usize, rate: f64) -> Result<Task, ProbeError> {
    let params = &trial.params;
    let ns = |id| params.int(id).cast_unsigned();
    let up = params.text("direction") == "send";
    let intensity_ratio = params.float("intensity_ratio");
    let bytes_per_s = if tcp { rate } else { 0.0 };
    Ok(Task {
        tcp,
        up,
        down: !up,
        streams: 1,
        send_bytes: 128 << 10,
        warmup_ns: 0,
        duration_ns: duration_ns(trial)?,
        interval_ns: ns("interval_ns"),
        packet_bytes,
        // Of no datagrams a second there is no schedule: such a load waits as its share says.
        per_s: if tcp || intensity_ratio == 0.0 { 0.0 } else { rate },
        wait_ns: WAIT_NS,
        press: Some(SendingPace { intensity_ratio, period_ns: ns("period_ns"), bytes_per_s }),
    })
}

/// Which of both sent and which received.
pub fn sides<'a, T>(task: &Task, both: &'a Both<T>) -> (&'a T, &'a T) {
    if task.up {
        (&both.near, &both.far)
    } else {
        (&both.far, &both.near)
    }
}

/// What TCP carried; `rate` in bytes a second.
pub fn say_streams(
    trial: &mut Trial,
    task: &Task,
    both: &Both<TcpTransferStats>,
    rate: f64,
) -> Result<(), ProbeError> {
    let (sender, receiver) = sides(task, both);
    trial.out.emit("load_bytes_per_s", receiver.bytes_per_s, factors! {})?;
    trial.out.emit("sent_bytes_per_s", receiver.bytes_per_s, factors! {})?;
    say_series(trial, "interval_bytes_per_s", &receiver.intervals, 1.0)?;
    if rate > 0.0 {
        trial.out.emit("load_intensity_ratio", receiver.bytes_per_s / rate, factors! {})?;
        say_series(trial, "interval_intensity_ratio", &receiver.intervals, 1.0 / rate)?;
    } else {
        let busy_ratio = sender.busy_ratio.unwrap_or(0.0);
        trial.out.emit("load_intensity_ratio", busy_ratio, factors! {})?;
        say_series(trial, "interval_intensity_ratio", &sender.busy_intervals, 1.0)?;
    }
    let (near, far) = (&both.near, &both.far);
    say_cpus(trial, (near.cpu_ns, near.elapsed_ns), (far.cpu_ns, far.elapsed_ns))
}

/// Names of the metrics of datagrams, and what one datagram is worth in their unit.
pub struct Names {
    /// What arrived.
    pub carried: &'static str,
    /// The same by intervals.
    pub interval: &'static str,
    /// What was sent.
    pub sent: &'static str,
    /// Of one datagram.
    pub each: f64,
}

/// What UDP carried; `rate` in datagrams a second.
pub fn say_datagrams(
    trial: &mut Trial,
    task: &Task,
    both: &Both<UdpTransferStats>,
    rate: f64,
    names: &Names,
) -> Result<(), ProbeError> {
    let (sender, receiver) = sides(task, both);
    let seconds = sender.sender_ns.max(1) as f64 / 1e9;
    let sent_per_s = sender.sent as f64 / seconds;
    trial.out.emit(names.carried, receiver.received as f64 * names.each / seconds, factors! {})?;
    trial.out.emit(names.sent, sent_per_s * names.each, factors! {})?;
    let of_a_byte = names.each / task.packet_bytes as f64;
    say_series(trial, names.interval, &receiver.intervals, of_a_byte)?;
    if rate > 0.0 {
        trial.out.emit("load_intensity_ratio", sent_per_s / rate, factors! {})?;
        say_series(trial, "interval_intensity_ratio", &sender.sent_intervals, 1.0 / rate)?;
    } else {
        let busy_ratio = sender.busy_ratio.unwrap_or(0.0);
        trial.out.emit("load_intensity_ratio", busy_ratio, factors! {})?;
        say_series(trial, "interval_intensity_ratio", &sender.busy_intervals, 1.0)?;
    }
    // Of nothing that was sent no share was lost.
    if sender.sent > 0 {
        let lost = sender.sent - receiver.received;
        trial.out.emit("loss_ratio", lost as f64 / sender.sent as f64, factors! {})?;
    }
    if let Some(drops) = receiver.drops {
        trial.out.emit("receiver_drops_count", drops as f64, factors! {})?;
    }
    let (near, far) = (&both.near, &both.far);
    say_cpus(trial, (near.cpu_ns, near.elapsed_ns), (far.cpu_ns, far.elapsed_ns))
}

fn say_series(
    trial: &mut Trial,
    metric: &str,
    intervals: &[(u64, f64)],
    each: f64,
) -> Result<(), ProbeError> {
    for (at_ns, value) in intervals {
        trial.out.emit_at(metric, value * each, 1, *at_ns, factors! {})?;
    }
    Ok(())
}

fn say_cpus(trial: &mut Trial, near: (u64, u64), far: (u64, u64)) -> Result<(), ProbeError> {
    for (side, (cpu_ns, elapsed_ns)) in [("near", near), ("far", far)] {
        let cpus = cpu_ns as f64 / elapsed_ns.max(1) as f64;
        trial.out.emit("used_cpus", cpus, factors! {"side": side})?;
    }
    Ok(())
}
