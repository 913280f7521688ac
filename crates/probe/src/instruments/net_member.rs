//! # What it measures
//! Nothing by itself: one rank of a parallel program that `net.collective` on another host runs. Its
//! own counters state in how many steps it took part.
//!
//! # How
//! It listens on `address` and `port` and accepts connections of `hosts` only. The coordinator
//! assigns it a rank and the addresses of the other ranks, to which it connects. It takes part in
//! all steps of a trial, reports its times, and waits for the next trial until it is stopped.
//!
//! # Known truth
//! It counts as many trials and steps as the coordinator ran. A connection of another host is
//! refused and counted.
//!
//! # Cross-check
//! The counts of `net.collective`.
//!
//! # Overhead
//! In a trial that of one rank of `net.collective`; it waits in between.
//!
//! # Caveats
//! Hosts are recognised by their addresses: list only hosts of a network that you trust. With the
//! default of `hosts` only this machine may take part.
use crate::error::{ProbeError, Result};
use crate::http::server;
use crate::load;
use crate::net::collective::member::Member;
use crate::trial::{factors, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use std::net::IpAddr;

pub const SPEC: Spec = Spec {
    id: "net.member",
    summary: "One rank of a parallel program, for net.collective on another host",
    params: &[
        Param::text("address", "127.0.0.1").doc("IP address of this machine to listen on."),
        Param::int("port", 0, 0..=65_535).doc("TCP port to listen on; 0 takes a free one."),
        Param::texts("hosts")
            .doc("IP addresses of the hosts that take part; an empty list allows 127.0.0.1."),
        load::DURATION,
    ],
    metrics: &[
        Metric::neutral("steps_count").headline().doc("Number of steps in complete trials."),
        Metric::neutral("trials_count").doc("Number of trials in which it took part to the end."),
        Metric::lower("failed_trials_count").doc("Number of trials that ended before their end."),
        Metric::neutral("refused_count")
            .doc("Number of connections from hosts that may not take part."),
    ],
    overhead: "that of one rank of net.collective",
    source: "MPI: A Message-Passing Interface Standard, version 4.0, chapter 6",
    load: true,
    ..Spec::about(Resource::None)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let address = ip_address("address", trial.params.text("address"))?;
    let mut hosts = trial
        .params
        .texts("hosts")
        .into_iter()
        .map(|host| ip_address("hosts", host))
        .collect::<Result<Vec<_>>>()?;
    if hosts.is_empty() {
        hosts.push(IpAddr::from([127, 0, 0, 1]));
    }
    let duration_ns = match load::duration_ns(trial)? {
        0 => u64::MAX / 2,
        ns => ns,
    };
    let (listener, at) = server::listen(address, trial.params.u64("port") as u16)?;
    trial.prepared_at(Some(at))?;
    let until_ns = trial.started_ns() + duration_ns;
    let mut member = Member::new(trial.session, &listener, &hosts);
    member.serve(|_| clock::monotonic_ns() >= until_ns)?;
    let counts = member.counts;
    for (metric, count) in [
        ("steps_count", counts.steps),
        ("trials_count", counts.sessions),
        ("failed_trials_count", counts.failed_sessions),
        ("refused_count", counts.refused),
    ] {
        trial.out.emit(metric, count as f64, factors! {})?;
    }
    Ok(())
}

fn ip_address(param: &str, text: &str) -> Result<IpAddr> {
    text.parse().map_err(|_| {
        let message = format!("{}: {param} must be an IP address, not '{text}'.", SPEC.id);
        ProbeError::usage(message, "Write an address of a host (ip address), such as 10.0.0.2.")
    })
}
