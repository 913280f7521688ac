//! The samples of `net.throughput` over UDP.
use super::client::TwoSided;
use super::datagram_receiver::ReceivedStats;
use super::datagrams::{loss_ratio, UdpTransferStats};
use super::rate_search::RateSearchResult;
use super::samples::{direction_factors, directions, emit_intervals, emit_used_cpus};
use super::TransferTask;
use crate::error::Result;
use crate::net::udp::losses::wilson;
use crate::net::variation::MAX_TRANSITS;
use crate::trial::{factors, Trial};

pub fn emit(
    trial: &mut Trial,
    task: &TransferTask,
    sides: &TwoSided<UdpTransferStats>,
) -> Result<()> {
    for (direction, sender, receiver) in directions(task, sides) {
        let (sent, received) = (&sender.sent, &receiver.received);
        let interval = wilson(sent.packets - received.packets, sent.packets);
        let values = [
            ("goodput_bytes_per_s", received.bytes_per_s),
            ("sent_count", Some(sent.packets as f64)),
            ("received_count", Some(received.packets as f64)),
            ("loss_ratio", loss_ratio(sent, received)),
            ("loss_low_ratio", interval.map(|(low, _)| low)),
            ("loss_high_ratio", interval.map(|(_, high)| high)),
            ("sent_per_s", sent.per_s),
            ("received_per_s", received.per_s),
            ("jitter_ns", received.jitter_ns),
            ("duplicates_count", Some(received.duplicates as f64)),
            ("reordered_count", Some(received.reordered as f64)),
            ("late_sends_ratio", Some(sent.late_ratio)),
            ("strangers_count", Some(received.unauthenticated_peers as f64)),
            ("receiver_drops_count", received.drops.map(|drops| drops as f64)),
        ];
        trial.out.emit_known(&values, &direction_factors(direction))?;
        let intervals = &received.intervals;
        emit_intervals(
            trial,
            "interval_goodput_bytes_per_s",
            intervals,
            &direction_factors(direction),
        )?;
        emit_distributions(trial, direction, received)?;
        // With pairs at random the slots are more than the datagrams.
        let slots_per_s = task.pairs.map_or(sent.per_s, |_| Some(task.per_s));
        emit_losses(trial, direction, slots_per_s, received)?;
    }
    emit_used_cpus(trial, sides)
}

fn emit_distributions(trial: &mut Trial, direction: &str, received: &ReceivedStats) -> Result<()> {
    for (metric, pairs) in [
        ("ipdv_ns", &received.ipdv),
        ("pdv_ns", &received.pdv),
        ("block_goodput_bytes_per_s", &received.blocks.rates),
    ] {
        trial.out.emit_pairs(metric, pairs.iter().copied(), &direction_factors(direction))?;
    }
    if !received.pdv.is_empty() && received.packets > MAX_TRANSITS as u64 {
        trial.out.note(format!("pdv_ns has the first {MAX_TRANSITS} datagrams of each direction."));
    }
    let variation = received.blocks.variation();
    trial
        .out
        .emit_known(&[("block_goodput_cv_ratio", variation)], &direction_factors(direction))?;
    for series in &received.blocks.series {
        emit_intervals(
            trial,
            "timed_block_goodput_bytes_per_s",
            series,
            &direction_factors(direction),
        )?;
    }
    Ok(())
}

fn emit_losses(
    trial: &mut Trial,
    direction: &str,
    slots_per_s: Option<f64>,
    received: &ReceivedStats,
) -> Result<()> {
    let losses = &received.losses;
    let Some(slot_ns) = slots_per_s.map(|per_s| 1e9 / per_s) else { return Ok(()) };
    losses.emit(trial, slot_ns, &direction_factors(direction))?;
    if !losses.pairs.is_symmetric() {
        let (starts, ends) = (losses.pairs.only_second, losses.pairs.only_first);
        trial.out.note(format!("The numbers of starts ({starts}) and ends ({ends}) of loss differ by more than by coincidence: the datagrams themselves may cause it."));
    }
    Ok(())
}

pub fn emit_search(trial: &mut Trial, task: &TransferTask, search: RateSearchResult) -> Result<()> {
    for step in &search.steps {
        let (offered, loss) = (step.offered_per_s, step.loss_ratio);
        trial.out.emit_at("search_offered_per_s", offered, 1, step.end_ns, factors! {})?;
        trial.out.emit_at("search_loss_ratio", loss, 1, step.end_ns, factors! {})?;
    }
    if let Some(note) = search.note {
        trial.out.note(note);
    }
    let Some((step, sides)) = search.best else {
        trial
            .out
            .note("Every step of the search lost datagrams, so no rate without loss is known.");
        return Ok(());
    };
    let bytes_per_s = step.offered_per_s * task.packet_bytes as f64;
    trial.out.emit("no_loss_per_s", step.offered_per_s, factors! {})?;
    trial.out.emit("no_loss_bytes_per_s", bytes_per_s, factors! {})?;
    emit(trial, task, &sides)
}
