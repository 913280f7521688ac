//! # What it measures
//! The path to a host: its hops with their round-trip times and losses, and the path MTU.
//!
//! # How
//! ICMP echo requests with hop limits 1, 2, 3 and so on, `probes_per_hop` each and one at a time; the
//! routers' reports come from the error queue of the socket (`IP_RECVERR`). The path MTU is the
//! length in bytes, IP header included, of the longest packet that the destination answers and no
//! router may fragment. It follows the lengths that routers report; where longer packets vanish
//! without a report, it halves the range down to one byte. The destination is `host` or, without
//! one, the far side's address. ICMP goes through the kernel's ping socket where it is permitted,
//! else through a raw socket.
//!
//! # Known truth
//! Three namespaces in a row give two hops, and the MTU that is set on the second link, with and
//! without the routers' reports.
//!
//! # Cross-check
//! `mtr`, `traceroute -I`; `tracepath` for the path MTU.
//!
//! # Overhead
//! A few small packets per hop, and packets up to the MTU of the first link.
//!
//! # Caveats
//! Routers answer slowly or not at all when they are busy: their round-trip times are upper bounds.
//! Paths differ by direction and by flow. A host that answers no echo requests has hops and no path
//! MTU.
use crate::error::Result;
use crate::net::probing::path::{Hops, ProbedPath};
use crate::net::probing::{destination, HOST};
use crate::net::server::accept_peer;
use crate::trial::{factors, ListenConfig, Trial};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use serde_json::{json, Value};
use std::net::IpAddr;

pub const SPEC: Spec = Spec {
    id: "net.path",
    summary: "Hops of a network path, their round-trip times, and the path MTU",
    params: &[
        HOST.doc("Name or address of the destination; empty takes the far side."),
        Param::count("hops", 30, 1..=64).doc("Maximum number of hops."),
        Param::count("probes_per_hop", 3, 1..=1000).doc("Number of packets per hop."),
        Param::int("wait_ns", 500_000_000, 1_000_000..=60_000_000_000)
            .doc("Time to wait for the answer to each packet."),
    ],
    metrics: &[
        Metric::neutral("hops_count").headline().doc("Number of hops to the destination."),
        Metric::higher("path_mtu_bytes")
            .headline()
            .doc("Longest IP packet that the path carries unfragmented, with its header."),
        Metric::lower("hop_rtt_ns").histogram().doc("Round-trip time to each hop, by address."),
        Metric::lower("hop_loss_ratio")
            .share()
            .doc("Share of a hop's packets without an answer; routers need not answer."),
    ],
    overhead: "a few packets per hop, and about twenty up to the MTU of the first link",
    source: "traceroute; tracepath; RFC 1191, RFC 8201, RFC 8899",
    two_sided: true,
    ..Spec::about(Resource::Network)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let host = trial.params.text("host").to_owned();
    // A packet at a time is no load.
    let to = destination(trial, &host, 0, 1.0)?.ip();
    let mut path = ProbedPath::open(trial.session, to, trial.params.u64("wait_ns"))?;
    trial.prepared()?;
    let limit = trial.params.u64("hops") as u8;
    let hops = path.hops(limit, trial.params.u64("probes_per_hop"))?;
    emit_hops(trial, to, &hops)?;
    let Some(mtu) = path.mtu()? else {
        trial.out.note(format!("{to} answers no echo requests, so its path MTU is not known."));
        return Ok(());
    };
    if mtu.is_silent {
        trial.out.note("Packets longer than the path MTU vanish without a report of a router.");
    }
    trial.out.emit("path_mtu_bytes", mtu.bytes as f64, factors! {})
}

fn emit_hops(trial: &mut Trial, to: IpAddr, hops: &Hops) -> Result<()> {
    for (index, hop) in hops.hops.iter().enumerate() {
        let number = index + 1;
        for (address, rtt_ns) in &hop.answers {
            let factors = factors! {"hop": number, "address": address.to_string()};
            trial.out.emit_pairs("hop_rtt_ns", [(*rtt_ns as f64, 1)], &factors)?;
        }
        let lost = hop.sent - hop.answers.len() as u64;
        let ratio = lost as f64 / hop.sent as f64;
        trial.out.emit("hop_loss_ratio", ratio, factors! {"hop": number})?;
    }
    if hops.is_complete {
        return trial.out.emit("hops_count", hops.hops.len() as f64, factors! {});
    }
    trial.out.note(match hops.refused_by {
        Some(router) => format!("{router} reports that {to} cannot be reached."),
        None => format!("{to} did not answer within {} hops.", hops.hops.len()),
    });
    Ok(())
}

/// The far side is an address only: its kernel answers.
pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value> {
    accept_peer(trial, listen)?;
    Ok(json!({}))
}
