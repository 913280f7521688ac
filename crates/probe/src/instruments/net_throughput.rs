//! # What it measures
//! Goodput of TCP connections between two machines, one or many, up, down or both at once; or the
//! delivery of a fixed rate of UDP datagrams.
//!
//! # How
//! Goodput is measured at the receiver by its own clock: payload bytes from the first read after
//! `warmup_ns` to the first read at least `duration_ns` later, per stream; stream rates add up.
//! Slow start lies in the warm-up. Senders write `send_bytes` of incompressible data at a time.
//! Retransmissions come from the kernel (`TCP_INFO`) when the last byte is acknowledged. UDP
//! datagrams leave at even intervals fixed in advance; the receiver counts what arrives. With
//! `duration_ns` 0 it runs until stopped. `up` is from the running to the serving side.
//!
//! Goodput is also taken over every block of `block_bytes` received, and the state of the senders'
//! connections (`TCP_INFO`) once an interval. With `transfer_bytes` a set amount is carried: slow
//! start counts then. The ratios of RFC 6349 need no further traffic; `transfer_time_ratio` needs the
//! bottleneck's rate, in frames of IP packet and 14 bytes.
//!
//! A loss episode is a run of lost datagrams; frequency and duration are estimated as Badabing does
//! from all pairs of datagrams in neighbouring slots, so short episodes between two datagrams are missed.
//! `search_steps` halves the interval between a rate without and a rate with loss (RFC 2544), each
//! step for `duration_ns`, and stores the datagram metrics of the fastest step without loss.
//!
//! With `pair_ratio` p below 1 a pair of datagrams begins in each slot of `rate_bits_per_s` with
//! probability p, as in Badabing: about 2 p of the load, and the same estimates. Starts and ends of
//! episodes are then about equally frequent, or a note states that they are not.
//!
//! # Known truth
//! TCP loses nothing: the bytes of both sides agree, or the trial fails. A rate limit on a pair of
//! virtual ports is reported, less the headers that it counts. Random drops of a packet filter lie
//! in the Wilson interval, and its own count agrees. Injected loss episodes are found with their
//! frequency and duration.
//!
//! # Cross-check
//! iperf3, interleaved; the kernel's counters of the ports.
//!
//! # Overhead
//! A thread per stream on either side; the link, full or at `rate_bits_per_s`.
//!
//! # Caveats
//! Many providers allow a burst before they limit: a short trial shows the burst. One stream over a
//! long path is bound by the socket buffers, which are the system's. Few CPUs may be the limit: see
//! `used_cpus` of both sides. Virtual network cards need search steps of a minute and a
//! `loss_goal_ratio` above 0. With `segmentation_offload` a pair of virtual ports passes large
//! messages: the figure is then not one of packets on a wire.
use crate::error::{ProbeError, Result};
use crate::load;
use crate::net::congestion_control::{self, CongestionControl};
use crate::net::goodput::paced_sender::SendingPace;
pub use crate::net::goodput::server::serve;
use crate::net::goodput::{client, rate_search, tcp_samples, udp_samples, TransferTask};
use crate::net::goodput::{
    BLOCK, PACKET_BYTES, PAIR_RATIO, RATE_BITS_PER_S_MAX, RECEIVE_BUFFER, SEND_BYTES, STREAMS,
    TRANSFER, WAIT, WARMUP,
};
use crate::net::udp::slots::PairSelection;
use crate::trial::parameters;
use crate::trial::Trial;
use nephoscope_wire::meaning::{Contended, Literal, Victim};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "net.throughput",
    summary: "TCP goodput, or UDP delivery at a fixed rate, between two machines",
    params: &[
        Param::choice("protocol", "tcp", &["tcp", "udp"])
            .doc("TCP at full speed, or UDP at rate_bits_per_s."),
        Param::choice("direction", "up", &["up", "down", "both"])
            .doc("up: from the running to the serving side; down: the opposite; or both at once."),
        STREAMS.doc("Number of TCP connections in each direction."),
        SEND_BYTES.doc("Bytes per TCP write, and maximum bytes per read."),
        WARMUP.doc("Warm-up of a TCP stream after its first byte, not measured."),
        load::DURATION,
        load::INTERVAL,
        TRANSFER.doc("Bytes to carry over TCP in each direction, all streams together, instead of a duration; 0 measures for duration_ns."),
        BLOCK.doc("Received bytes of each sample of block_goodput_bytes_per_s; 0 takes 256 KiB over TCP and 128 KiB over UDP."),
        RECEIVE_BUFFER.doc("Receive buffer of each TCP connection, which bounds its window; 0 lets the kernel adapt it."),
        Param::text("congestion_control", "")
            .doc("TCP congestion control of the senders, such as bbr; empty takes the kernel's default."),
        Param::switch("zero_copy", false)
            .doc("Send over TCP from the page cache without copying (sendfile), as file servers do."),
        Param::float("bottleneck_bits_per_s", 0.0, 0.0..=RATE_BITS_PER_S_MAX)
            .doc("Known rate of the slowest link in Ethernet frames, for transfer_time_ratio; 0 if unknown."),
        Param::float("rate_bits_per_s", 10e6, 0.0..=RATE_BITS_PER_S_MAX)
            .doc("Offered UDP payload rate in each direction; 0 sends as fast as possible."),
        Param::switch("segmentation_offload", false)
            .doc("Let the kernel or network card cut large messages into UDP datagrams (GSO); only with rate_bits_per_s 0."),
        Param::count("search_steps", 0, 0..=40)
            .doc("Maximum number of trials in a search for the highest UDP rate without loss, from rate_bits_per_s down; 0 does not search."),
        Param::float("loss_goal_ratio", 0.0, 0.0..=1.0)
            .doc("Maximum loss that the search accepts as none."),
        PAIR_RATIO.doc("Probability that a pair of UDP datagrams begins in a slot of rate_bits_per_s, to find loss episodes with little load; 1 sends in every slot."),
        Param::int("seed", 0, 0..=i64::MAX)
            .doc("Random seed of the slots in which pairs begin; 0 takes it from the clock."),
        PACKET_BYTES.doc("Bytes per UDP datagram without UDP and IP headers."),
        WAIT.doc("Time to wait for the last UDP datagrams; later ones count as lost."),
    ],
    metrics: &[
        Metric::higher("goodput_bytes_per_s")
            .headline()
            .doc("Payload bytes received per second, all streams, by direction."),
        Metric::higher("stream_goodput_bytes_per_s")
            .doc("Payload bytes received per second by each TCP stream."),
        Metric::higher("interval_goodput_bytes_per_s")
            .series()
            .doc("Payload bytes received per second in each interval, including warm-up."),
        Metric::higher("block_goodput_bytes_per_s")
            .histogram()
            .doc("Payload bytes received per second over each block of block_bytes."),
        Metric::lower("block_goodput_cv_ratio")
            .doc("Coefficient of variation of block_goodput_bytes_per_s within a trial."),
        Metric::higher("timed_block_goodput_bytes_per_s")
            .series()
            .doc("The same in the order of time, at the end of each block, including warm-up; neighbouring blocks are merged beyond 4096 in all."),
        Metric::neutral("sent_bytes")
            .doc("Payload bytes sent over TCP, including warm-up; all arrived."),
        Metric::lower("retransmits_count").doc("Number of retransmitted TCP segments."),
        Metric::lower("retransmitted_ratio").share()
            .doc("Share of retransmitted bytes; 1 minus the TCP efficiency of RFC 6349."),
        Metric::lower("tcp_rtt_ns")
            .doc("Smoothed round-trip time of TCP at the end; maximum of the streams."),
        Metric::lower("buffer_delay_ratio").doc(
            "Increase of the TCP round-trip time over its minimum, relative to it (RFC 6349).",
        ),
        Metric::lower("tcp_rtt_min_ns")
            .doc("Minimum round-trip time of TCP; minimum of the streams."),
        Metric::higher("tcp_efficiency_ratio").share()
            .doc("Share of the sent bytes that were not retransmitted (RFC 6349)."),
        Metric::lower("transfer_time_ratio")
            .doc("Time of the transfer over the time that bottleneck_bits_per_s allows (RFC 6349)."),
        Metric::lower("transfer_ns")
            .doc("Time from the first to the last byte received of transfer_bytes."),
        Metric::neutral("congestion_window_limited_ratio").share()
            .doc("Share of the sending time in which the congestion window or the path limited TCP."),
        Metric::neutral("receiver_limited_ratio").share()
            .doc("Share of the sending time in which the receiver's window limited TCP."),
        Metric::neutral("sender_limited_ratio").share()
            .doc("Share of the sending time in which the send buffer limited TCP."),
        Metric::lower("interval_tcp_rtt_ns")
            .series()
            .doc("Smoothed round-trip time of TCP at the end of each interval; maximum of the streams."),
        Metric::neutral("interval_congestion_window_bytes")
            .series()
            .doc("Congestion window at the end of each interval, all streams."),
        Metric::higher("interval_delivery_bytes_per_s")
            .series()
            .doc("Delivery rate that TCP estimates at the end of each interval, all streams."),
        Metric::lower("interval_retransmits_count")
            .series()
            .doc("Number of TCP segments retransmitted in each interval."),
        Metric::lower("used_cpus").doc("CPU time of the probe per elapsed time, by side."),
        Metric::neutral("sent_count").doc("Number of datagrams sent."),
        Metric::neutral("received_count").doc("Number of different datagrams that arrived."),
        Metric::lower("loss_ratio").share().doc("Share of lost datagrams."),
        Metric::lower("loss_low_ratio").share().doc("Lower end of the loss's 95 % Wilson interval."),
        Metric::lower("loss_high_ratio").share().doc("Upper end of the loss's 95 % Wilson interval."),
        Metric::lower("lost_run_count")
            .series()
            .doc("Number of datagrams lost one after the other, at the sending time of the first."),
        Metric::lower("loss_episode_ratio").share()
            .doc("Share of the time in loss episodes (Badabing's frequency)."),
        Metric::lower("loss_episode_ns").doc("Mean duration of a loss episode (Badabing)."),
        Metric::neutral("sent_per_s").doc("Datagrams sent per second."),
        Metric::higher("received_per_s").doc("Different datagrams received per second."),
        Metric::higher("no_loss_per_s")
            .doc("Highest rate without loss that the search found, in datagrams per second."),
        Metric::higher("no_loss_bytes_per_s").doc("The same in bytes of payload per second."),
        Metric::neutral("search_offered_per_s")
            .series()
            .doc("Datagrams sent per second in each step of the search."),
        Metric::lower("search_loss_ratio").share().series().doc("Loss in each step of the search."),
        Metric::lower("jitter_ns")
            .doc("Interarrival jitter (RFC 3550) after the last datagram; not at full speed."),
        Metric::lower("ipdv_ns")
            .histogram()
            .doc("Absolute delay difference of successive datagrams (RFC 3393)."),
        Metric::lower("pdv_ns").histogram().doc("Delay minus the minimum delay (RFC 5481)."),
        Metric::lower("duplicates_count").doc("Number of duplicate datagrams."),
        Metric::lower("reordered_count").doc("Number of reordered datagrams (RFC 4737)."),
        Metric::lower("late_sends_ratio").share().doc("Share of datagrams sent more than 1 ms late."),
        Metric::neutral("strangers_count").doc("Number of ignored datagrams of other programs."),
        Metric::lower("receiver_drops_count")
            .doc("Number of datagrams dropped at a full receive buffer."),
    ],
    overhead: "a thread per stream on either side; the link, full or at rate_bits_per_s",
    source: "iperf3; RFC 6349 (TCP), RFC 3550 (jitter), RFC 4737 (reordering), RFC 2544 (search); Badabing (SIGCOMM 2005)",
    two_sided: true,
    load: true,
    victim_for: &[
        Victim {
            resource: Contended::NetSend,
            metric: "goodput_bytes_per_s",
            params: &[
                ("direction", Literal::Text("up")),
                ("duration_ns", Literal::Int(300_000_000)),
                ("warmup_ns", Literal::Int(100_000_000)),
            ],
        },
        Victim {
            resource: Contended::NetReceive,
            metric: "goodput_bytes_per_s",
            params: &[
                ("direction", Literal::Text("down")),
                ("duration_ns", Literal::Int(300_000_000)),
                ("warmup_ns", Literal::Int(100_000_000)),
            ],
        },
    ],
    ..Spec::about(Resource::Network)
};

/// Received bytes of each sample of the goodput, unless set.
const TCP_BLOCK_BYTES: u64 = 256 << 10;
const UDP_BLOCK_BYTES: u64 = 128 << 10;
/// A set rate is at least this; 0 is as fast as possible.
const RATE_BITS_PER_S_MIN: f64 = 1000.0;

pub fn run(trial: &mut Trial) -> Result<()> {
    let task = task(trial)?;
    let peer = trial.session.read_peer(SPEC.id)?;
    if task.tcp {
        let sides = client::streams(trial, &task, &peer)?;
        let bottleneck_bits_per_s = trial.params.float("bottleneck_bits_per_s");
        return tcp_samples::emit(trial, &task, &sides, bottleneck_bits_per_s);
    }
    match trial.params.u64("search_steps") {
        0 => {
            let sides = client::datagrams(trial, &task, peer)?;
            udp_samples::emit(trial, &task, &sides)
        }
        steps => {
            let goal_ratio = trial.params.float("loss_goal_ratio");
            let fastest = rate_search::search(trial, &task, peer, steps, goal_ratio)?;
            udp_samples::emit_search(trial, &task, fastest)
        }
    }
}

fn task(trial: &Trial) -> Result<TransferTask> {
    let params = &trial.params;
    let ns = |id| params.u64(id);
    let tcp = params.text("protocol") == "tcp";
    let direction = params.text("direction");
    let packet_bytes = params.size("packet_bytes");
    let streams = params.size("streams");
    let rate_bits_per_s = params.float("rate_bits_per_s");
    let is_flood = rate_bits_per_s == 0.0;
    if !is_flood && rate_bits_per_s < RATE_BITS_PER_S_MIN {
        return Err(ProbeError::usage(
            format!("net.throughput: rate_bits_per_s {rate_bits_per_s} is below 1000."),
            "Set 0 for as fast as possible, or 1000 or more.",
        ));
    }
    if !tcp && is_flood && params.u64("search_steps") > 0 {
        return Err(ProbeError::usage(
            "net.throughput: a search for the rate without loss needs a rate to start from.",
            "Set rate_bits_per_s to the highest rate that is to be tried.",
        ));
    }
    let pair_ratio = params.float("pair_ratio");
    if pair_ratio < 1.0 && (tcp || is_flood || params.u64("search_steps") > 0) {
        return Err(ProbeError::usage(
            "net.throughput: pairs at random slots need UDP at one set rate.",
            "Set pair_ratio to 1, or protocol to udp with a rate_bits_per_s and no search_steps.",
        ));
    }
    let congestion_control = params.text("congestion_control");
    let block_bytes = if tcp { TCP_BLOCK_BYTES } else { UDP_BLOCK_BYTES };
    let fastest = SendingPace { intensity_ratio: 1.0, period_ns: 10_000_000, bytes_per_s: 0.0 };
    Ok(TransferTask {
        tcp,
        up: direction != "down",
        down: direction != "up",
        streams,
        send_bytes: params.size("send_bytes"),
        warmup_ns: ns("warmup_ns"),
        duration_ns: load::duration_ns(trial)?,
        stream_bytes: params.u64("transfer_bytes").div_ceil(streams as u64),
        block_bytes: Some(params.u64("block_bytes")).filter(|b| *b > 0).unwrap_or(block_bytes),
        receive_buffer_bytes: params.size("receive_buffer_bytes"),
        congestion_control: CongestionControl::named(congestion_control)
            .ok_or_else(|| congestion_control::unknown(congestion_control))?,
        interval_ns: ns("interval_ns"),
        packet_bytes,
        per_s: rate_bits_per_s / 8.0 / packet_bytes as f64,
        zero_copy: params.bool("zero_copy"),
        segmentation_offload: params.bool("segmentation_offload"),
        pairs: (pair_ratio < 1.0)
            .then(|| PairSelection { start_ratio: pair_ratio, seed: parameters::seed(params) }),
        wait_ns: ns("wait_ns"),
        pace: (!tcp && is_flood).then_some(fastest),
        ..TransferTask::default()
    })
}
