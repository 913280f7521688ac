//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It transfers bulk data between
//! two machines at full speed, for a share of the time or at a fixed rate, and counts what arrived,
//! so that its presence is verified.
//!
//! # How
//! The running side sends (`send`) or receives (`receive`), the serving side does the opposite.
//! Over TCP each of `streams` connections has a thread at either end and carries incompressible
//! bytes. Over UDP one thread sends datagrams of `packet_bytes`.
//!
//! With `rate_bits_per_s` 0 a sender sends for `intensity_ratio` of each period as fast as
//! possible, waits until all data have left (TCP: are acknowledged), which counts as sending, and
//! pauses; excess is deducted from the next periods. Otherwise it sends at `intensity_ratio` times
//! that rate in small pieces at even intervals; TCP pieces late by more than `interval_ns` are
//! skipped, UDP datagrams are sent late. It ends after `duration_ns` or when stopped, with all
//! samples in both cases.
//!
//! # Known truth
//! Over TCP both sides count the same bytes, or the trial fails; the port counters agree. A fixed
//! rate is kept within 2 % if the path carries it. The share of time is `intensity_ratio` within 2
//! points; through a rate limit half of the time carries half of the bytes.
//!
//! # Cross-check
//! iperf3 over TCP and UDP at the same rate; `net.throughput` with the same parameters.
//!
//! # Overhead
//! A thread per stream on either side, and the chosen share of the link.
//!
//! # Caveats
//! The share is of the sender's time: a queue on the path may still drain afterwards. UDP datagrams
//! are lost at a slow receiver's socket: `load_bytes_per_s` counts what arrived, `sent_bytes_per_s`
//! what left.
use crate::error::Result;
use crate::load::{self, DURATION, INTERVAL, PERIOD};
use crate::net::goodput::background_load::{
    self, Names, DIRECTION, DROPS, INTENSITY, LOSS, USED_CPUS,
};
use crate::net::goodput::client;
pub use crate::net::goodput::server::serve;
use crate::net::goodput::{PACKET_BYTES, RATE_BITS_PER_S_MAX, SEND_BYTES, STREAMS};
use crate::trial::Trial;
use nephoscope_wire::meaning::{Aggressor, Contended, Literal};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};

pub const SPEC: Spec = Spec {
    id: "load.net",
    summary: "Verified network load: bulk transfer between two machines",
    params: &[
        Param::choice("protocol", "tcp", &["tcp", "udp"]).doc("Transport protocol."),
        DIRECTION,
        Param::float("rate_bits_per_s", 0.0, 0.0..=RATE_BITS_PER_S_MAX)
            .doc("Payload rate of all streams; 0 for full speed."),
        STREAMS.doc("Number of TCP connections."),
        SEND_BYTES
            .doc("Bytes per TCP write (maximum at a fixed rate), and maximum bytes per read."),
        PACKET_BYTES.doc("Bytes per UDP datagram without UDP and IP headers."),
        INTENSITY,
        PERIOD,
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("load_bytes_per_s").headline().doc("Payload bytes received per second."),
        Metric::neutral("sent_bytes_per_s")
            .doc("Payload bytes sent per second; for TCP those that arrived."),
        load::intensity(
            "Share of the time a sender sends, mean of the streams; or of rate_bits_per_s.",
        ),
        LOSS,
        DROPS,
        USED_CPUS,
        Metric::neutral("interval_bytes_per_s")
            .series()
            .doc("Payload bytes received per second in each interval, at its end."),
        load::interval_intensity("Load level reached in each interval, at its end."),
    ],
    overhead: "a thread per stream on either side; the chosen share of the link",
    source: "iperf3 under a duty cycle",
    two_sided: true,
    load: true,
    aggressor_for: &[
        Aggressor { resource: Contended::NetSend, params: &[("direction", Literal::Text("send"))] },
        Aggressor {
            resource: Contended::NetReceive,
            params: &[("direction", Literal::Text("receive"))],
        },
    ],
    ..Spec::about(Resource::Network)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let tcp = trial.params.text("protocol") == "tcp";
    let packet_bytes = trial.params.size("packet_bytes");
    let bytes_per_s = trial.params.float("rate_bits_per_s") / 8.0;
    let rate = if tcp { bytes_per_s } else { bytes_per_s / packet_bytes as f64 };
    let mut task = background_load::task(trial, tcp, packet_bytes, rate)?;
    task.streams = trial.params.size("streams");
    task.send_bytes = trial.params.size("send_bytes");
    let peer = trial.session.read_peer(SPEC.id)?;
    if tcp {
        let sides = client::streams(trial, &task, &peer)?;
        return background_load::emit_streams(trial, &task, &sides, rate);
    }
    let sides = client::datagrams(trial, &task, peer)?;
    let names = Names {
        rate_metric: "load_bytes_per_s",
        interval: "interval_bytes_per_s",
        sent: "sent_bytes_per_s",
        each: packet_bytes as f64,
    };
    background_load::emit_datagrams(trial, &task, &sides, rate, &names)
}
