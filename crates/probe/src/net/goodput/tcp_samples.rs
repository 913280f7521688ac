//! The samples of `net.throughput` over TCP.
use super::client::TwoSided;
use super::samples::{direction_factors, directions, emit_intervals, emit_used_cpus};
use super::tcp_streams::TcpTransferStats;
use super::TransferTask;
use crate::error::Result;
use crate::net::tcp_info::TcpInfo;
use crate::trial::{factors, Trial};

/// bottleneck_bits_per_s: rate of the slowest link; 0 if it is not known.
pub fn emit(
    trial: &mut Trial,
    task: &TransferTask,
    sides: &TwoSided<TcpTransferStats>,
    bottleneck_bits_per_s: f64,
) -> Result<()> {
    for (direction, sender, receiver) in directions(task, sides) {
        let goodput: f64 = receiver.rates.iter().sum();
        trial.out.emit("goodput_bytes_per_s", goodput, direction_factors(direction))?;
        for (stream, rate) in receiver.rates.iter().enumerate() {
            let factors = factors! {"direction": direction, "stream": stream};
            trial.out.emit("stream_goodput_bytes_per_s", *rate, factors)?;
        }
        let intervals = &receiver.intervals;
        emit_intervals(
            trial,
            "interval_goodput_bytes_per_s",
            intervals,
            &direction_factors(direction),
        )?;
        trial.out.emit_pairs(
            "block_goodput_bytes_per_s",
            receiver.blocks.rates.iter().copied(),
            &direction_factors(direction),
        )?;
        let variation = receiver.blocks.variation();
        trial
            .out
            .emit_known(&[("block_goodput_cv_ratio", variation)], &direction_factors(direction))?;
        for (stream, series) in receiver.blocks.series.iter().enumerate() {
            let factors = factors! {"direction": direction, "stream": stream};
            emit_intervals(trial, "timed_block_goodput_bytes_per_s", series, &factors)?;
        }
        trial.out.emit("sent_bytes", sender.sent_bytes as f64, direction_factors(direction))?;
        if task.stream_bytes > 0 {
            trial.out.emit(
                "transfer_ns",
                receiver.transfer_ns as f64,
                direction_factors(direction),
            )?;
        }
        let Some(info) = sender.info else { continue };
        emit_info(trial, direction, &info)?;
        emit_info_intervals(trial, direction, &sender.info_intervals)?;
        let ideal = info.ideal_bytes_per_s(bottleneck_bits_per_s).filter(|ideal| *ideal > 0.0);
        let ratio = ideal.filter(|_| goodput > 0.0).map(|ideal| ideal / goodput);
        trial.out.emit_known(&[("transfer_time_ratio", ratio)], &direction_factors(direction))?;
    }
    emit_used_cpus(trial, sides)
}

fn emit_info(trial: &mut Trial, direction: &str, info: &TcpInfo) -> Result<()> {
    let limits = info.limited_ratios();
    let values = [
        ("retransmits_count", Some(info.retransmits as f64)),
        ("retransmitted_ratio", info.retransmitted_ratio()),
        ("tcp_efficiency_ratio", info.retransmitted_ratio().map(|ratio| 1.0 - ratio)),
        ("tcp_rtt_ns", Some(info.rtt_ns as f64)),
        ("tcp_rtt_min_ns", info.rtt_min_ns.map(|ns| ns as f64)),
        ("buffer_delay_ratio", info.buffer_delay_ratio()),
        ("congestion_window_limited_ratio", limits.map(|ratios| ratios.by_congestion_window)),
        ("receiver_limited_ratio", limits.map(|ratios| ratios.by_receiver)),
        ("sender_limited_ratio", limits.map(|ratios| ratios.by_sender)),
    ];
    trial.out.emit_known(&values, &direction_factors(direction))
}

fn emit_info_intervals(
    trial: &mut Trial,
    direction: &str,
    intervals: &[(u64, TcpInfo)],
) -> Result<()> {
    let mut retransmits = 0;
    for (at_ns, info) in intervals {
        let again = info.retransmits.saturating_sub(retransmits);
        retransmits = info.retransmits;
        let values = [
            ("interval_tcp_rtt_ns", Some(info.rtt_ns as f64)),
            ("interval_congestion_window_bytes", Some(info.window_bytes as f64)),
            ("interval_delivery_bytes_per_s", info.delivery_bytes_per_s.map(|rate| rate as f64)),
            ("interval_retransmits_count", Some(again as f64)),
        ];
        for (metric, value) in values {
            if let Some(value) = value {
                trial.out.emit_at(metric, value, 1, *at_ns, direction_factors(direction))?;
            }
        }
    }
    Ok(())
}
