//! What the two sides of a benchmark tell each other: JSON objects, one a line, over TCP.
use super::connection::End;
use crate::error::{Kind, ProbeError};
use serde_json::Value;

/// A line that is longer is none of ours: three histograms fit many times.
const LINE_BYTES: usize = 16 << 20;

/// Sends one object.
pub fn send_message(end: &mut End, object: &Value) -> Result<(), ProbeError> {
    end.write_all(format!("{object}\n").as_bytes())
}

/// Waits for the next object. An object with `error` becomes that error.
pub fn receive_message(end: &mut End) -> Result<Value, ProbeError> {
    let mut line = Vec::new();
    let mut chunk = [0u8; 4096];
    while line.last() != Some(&b'\n') {
        // What follows the line belongs to a later reader.
        let seen = end.peek(&mut chunk)?;
        let taken = chunk[..seen].iter().position(|byte| *byte == b'\n').map_or(seen, |at| at + 1);
        if taken == 0 || !end.read_exact(&mut chunk[..taken])? {
            return Err(gone());
        }
        line.extend_from_slice(&chunk[..taken]);
        if line.len() > LINE_BYTES {
            return Err(nonsense("a line that does not end"));
        }
    }
    let object: Value = serde_json::from_slice(&line).map_err(|_| nonsense("no JSON"))?;
    match object.get("error").and_then(Value::as_str) {
        Some(message) => Err(ProbeError::new(
            Kind::Failed,
            "far_side_failed",
            format!("The far side failed: {message}"),
            "See its own output.",
        )),
        None => Ok(object),
    }
}

/// A whole number of an object.
pub fn count(object: &Value, key: &str) -> Result<u64, ProbeError> {
    object[key].as_u64().ok_or_else(|| nonsense(&format!("no `{key}`")))
}

/// A real number of an object; `None` where it is null.
pub fn number(object: &Value, key: &str) -> Option<f64> {
    object[key].as_f64()
}

/// The other side hung up in the middle.
pub fn gone() -> ProbeError {
    ProbeError::new(
        Kind::Failed,
        "far_side_gone",
        "The far side hung up before it had told what it counted.",
        "See how it ended, then run both again.",
    )
}

fn nonsense(what: &str) -> ProbeError {
    ProbeError::new(
        Kind::Failed,
        "far_side_nonsense",
        format!("The far side said {what}."),
        "Use the same version of the probe on both sides.",
    )
}
