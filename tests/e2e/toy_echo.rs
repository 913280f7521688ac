//! # What it measures
//! The time that a message takes to the far side and back, for the test that adds a benchmark.
//!
//! # How
//! It sends `messages` bytes, one after the other, and waits for each to come back.
//!
//! # Known truth
//! The far side counts as many bytes as there were messages.
//!
//! # Cross-check
//! `net.rtt` with the same targets.
//!
//! # Overhead
//! One connection.
//!
//! # Caveats
//! It exists in a test only.
use crate::error::{ProbeError, Result};
use crate::net::client::reach;
use crate::net::server::accept_peer;
use crate::trial::{factors, ListenConfig, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use serde_json::{json, Value};

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "toy.echo",
    summary: "Time of a message to the far side and back",
    params: &[Param::count("messages", 3, 1..=1000).doc("Number of messages.")],
    metrics: &[Metric::lower("toy_round_trip_ns").doc("Time to the far side and back.").headline()],
    overhead: "none",
    source: "a test",
    two_sided: true,
    ..Spec::about(Resource::Network)
};

/// One trial.
pub fn run(trial: &mut Trial) -> Result<()> {
    trial.prepared()?;
    let Some(peer) = trial.take_peer() else {
        return Err(ProbeError::usage("There is no far side.", "Name a peer in the plan."));
    };
    let mut far = reach(trial.session, &peer)?;
    for _ in 0..trial.params.int("messages") {
        let started_ns = clock::monotonic_ns();
        far.write_all(b"m")?;
        far.read_exact(&mut [0u8; 1])?;
        let elapsed_ns = clock::monotonic_ns() - started_ns;
        trial.out.emit("toy_round_trip_ns", elapsed_ns as f64, factors! {})?;
    }
    far.end()
}

/// The far side: sends back what comes.
pub fn serve(trial: &mut Trial, listen_at: &ListenConfig) -> Result<Value> {
    let mut bytes = 0;
    if let Some(mut peer) = accept_peer(trial, listen_at)? {
        let mut byte = [0u8; 1];
        while let Some(1..) = peer.read_or_stop(&mut byte)? {
            peer.write_all(&byte)?;
            bytes += 1;
        }
    }
    Ok(json!({ "bytes": bytes }))
}
