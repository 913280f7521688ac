//! The messages that the two sides of a benchmark exchange: JSON, one a line, over TCP.
use super::connection::End;
use crate::error::{FailureKind, ProbeError, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Longest line; a report with three histograms is a small part of it.
const LINE_BYTES: usize = 16 << 20;

/// Marks a step of the session that carries no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// A connection was accepted.
    Accepted,
    /// A datagram made the round trip: the far side stops echoing and starts counting.
    Heard,
    /// The far side counts.
    Counting,
    Go,
    Finish,
    /// Asks for the far side's counts.
    Report,
}

/// Port of the far side's socket for datagrams.
#[derive(Serialize, Deserialize)]
pub struct UdpPort {
    pub udp_port: u16,
}

/// Sends one message.
pub fn send_message(end: &mut End, message: &impl Serialize) -> Result<()> {
    let mut line = serde_json::to_vec(message).expect("messages have text keys");
    line.push(b'\n');
    end.write_all(&line)
}

/// Waits for the next message.
pub fn receive_message<T: DeserializeOwned>(end: &mut End) -> Result<T> {
    let mut line = Vec::new();
    let mut chunk = [0u8; 4096];
    while line.last() != Some(&b'\n') {
        // What follows the line belongs to a later reader.
        let seen = end.peek(&mut chunk)?;
        let line_bytes =
            chunk[..seen].iter().position(|byte| *byte == b'\n').map_or(seen, |at| at + 1);
        if line_bytes == 0 || !end.read_exact(&mut chunk[..line_bytes])? {
            return Err(gone());
        }
        line.extend_from_slice(&chunk[..line_bytes]);
        if line.len() > LINE_BYTES {
            return Err(not_understood("the line does not end"));
        }
    }
    serde_json::from_slice(&line).map_err(|error| not_understood(&error.to_string()))
}

/// The other side hung up in the middle.
pub fn gone() -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "far_side_gone",
        "The far side hung up before it had reported its counts.",
        "See how it ended, then run both again.",
    )
}

pub(super) fn not_understood(reason: &str) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "far_side_nonsense",
        format!("A message of the far side is not understood: {reason}."),
        "Use the same version of the probe on both sides.",
    )
}
