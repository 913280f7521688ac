//! What the loads between two machines share: their parameters, their task, their samples.
use crate::error::Result;
use crate::load::{self, duration_ns};
use crate::net::goodput::client::TwoSided;
use crate::net::goodput::datagrams::{loss_ratio, UdpTransferStats};
use crate::net::goodput::paced_sender::SendingPace;
use crate::net::goodput::samples::{emit_intervals, emit_used_cpus};
use crate::net::goodput::tcp_streams::TcpTransferStats;
use crate::net::goodput::TransferTask;
use crate::trial::factors;
use crate::trial::Trial;
use nephoscope_wire::spec::{Metric, Param};

/// How long the last datagrams are awaited.
const WAIT_NS: u64 = 300_000_000;

pub const DIRECTION: Param = Param::choice("direction", "send", &["send", "receive"])
    .doc("Send to the serving side or receive from it.");

pub const INTENSITY: Param =
    load::INTENSITY.doc("Load level: share of each period, or of the rate; 0 is an idle load.");

pub const USED_CPUS: Metric =
    Metric::neutral("used_cpus").doc("CPU time of the probe per elapsed time, by side.");

pub const LOSS: Metric = Metric::neutral("loss_ratio").share().doc("Share of lost datagrams.");

pub const DROPS: Metric = Metric::neutral("receiver_drops_count")
    .doc("Number of datagrams dropped at a full receive buffer.");

/// What is to be carried. `rate` is what a second is to carry, 0 for as much as goes: bytes of TCP,
/// datagrams of UDP.
pub fn task(trial: &Trial, tcp: bool, packet_bytes: usize, rate: f64) -> Result<TransferTask> {
    let params = &trial.params;
    let ns = |id| params.u64(id);
    let up = params.text("direction") == "send";
    let intensity_ratio = params.float("intensity_ratio");
    let bytes_per_s = if tcp { rate } else { 0.0 };
    Ok(TransferTask {
        tcp,
        up,
        down: !up,
        streams: 1,
        send_bytes: 128 << 10,
        duration_ns: duration_ns(trial)?,
        interval_ns: ns("interval_ns"),
        packet_bytes,
        // Of no datagrams a second there is no schedule: such a load waits as its share says.
        per_s: if tcp || intensity_ratio == 0.0 { 0.0 } else { rate },
        wait_ns: WAIT_NS,
        pace: Some(SendingPace { intensity_ratio, period_ns: ns("period_ns"), bytes_per_s }),
        ..TransferTask::default()
    })
}

/// Which of both sent and which received.
pub fn sides<'a, T>(task: &TransferTask, ends: &'a TwoSided<T>) -> (&'a T, &'a T) {
    if task.up {
        (&ends.near, &ends.far)
    } else {
        (&ends.far, &ends.near)
    }
}

/// Emits what TCP transferred; `rate` is the wanted one in bytes per second, 0 for none.
pub fn emit_streams(
    trial: &mut Trial,
    task: &TransferTask,
    ends: &TwoSided<TcpTransferStats>,
    rate: f64,
) -> Result<()> {
    let (sender, receiver) = sides(task, ends);
    let per_s = receiver.bytes_per_s;
    trial.out.emit("load_bytes_per_s", per_s, factors! {})?;
    trial.out.emit("sent_bytes_per_s", per_s, factors! {})?;
    emit_series(trial, "interval_bytes_per_s", &receiver.intervals, 1.0)?;
    if rate > 0.0 {
        emit_intensity(trial, per_s / rate, &receiver.intervals, 1.0 / rate)?;
    } else {
        emit_intensity(trial, sender.busy_ratio.unwrap_or(0.0), &sender.busy_intervals, 1.0)?;
    }
    emit_used_cpus(trial, ends)
}

/// Names of the metrics of datagrams, and what one datagram is worth in their unit.
pub struct Names {
    pub rate_metric: &'static str,
    /// The same by intervals.
    pub interval: &'static str,
    pub sent: &'static str,
    /// Of one datagram.
    pub each: f64,
}

/// Emits what UDP transferred; `rate` is the wanted one in datagrams per second, 0 for none.
pub fn emit_datagrams(
    trial: &mut Trial,
    task: &TransferTask,
    ends: &TwoSided<UdpTransferStats>,
    rate: f64,
    names: &Names,
) -> Result<()> {
    let (sender, receiver) = sides(task, ends);
    let (sent, received) = (&sender.sent, &receiver.received);
    let seconds = sent.elapsed_ns.max(1) as f64 / 1e9;
    let sent_per_s = sent.packets as f64 / seconds;
    let counted_rate = received.packets as f64 * names.each / seconds;
    trial.out.emit(names.rate_metric, counted_rate, factors! {})?;
    trial.out.emit(names.sent, sent_per_s * names.each, factors! {})?;
    let of_a_byte = names.each / task.packet_bytes as f64;
    emit_series(trial, names.interval, &received.intervals, of_a_byte)?;
    if rate > 0.0 {
        emit_intensity(trial, sent_per_s / rate, &sent.intervals, 1.0 / rate)?;
    } else {
        emit_intensity(trial, sent.busy_ratio.unwrap_or(0.0), &sent.busy_intervals, 1.0)?;
    }
    let losses = [
        ("loss_ratio", loss_ratio(sent, received)),
        ("receiver_drops_count", received.drops.map(|drops| drops as f64)),
    ];
    trial.out.emit_known(&losses, &factors! {})?;
    emit_used_cpus(trial, ends)
}

fn emit_intensity(
    trial: &mut Trial,
    ratio: f64,
    intervals: &[(u64, f64)],
    each: f64,
) -> Result<()> {
    trial.out.emit("load_intensity_ratio", ratio, factors! {})?;
    emit_series(trial, "interval_intensity_ratio", intervals, each)
}

/// Emits intervals in units of which each is worth `each`.
fn emit_series(trial: &mut Trial, metric: &str, intervals: &[(u64, f64)], each: f64) -> Result<()> {
    let scaled: Vec<_> = intervals.iter().map(|(at_ns, value)| (*at_ns, value * each)).collect();
    emit_intervals(trial, metric, &scaled, &factors! {})
}
