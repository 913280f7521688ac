//! The serving side of a two-sided benchmark: a listener on loopback that says where it is, and
//! takes only the peer that presents the token it was given.
use super::pair::{bound_waiting, is_wait, no_loopback, End};
use crate::error::ProbeError;
use crate::trial::Trial;
use crate::{cancel, clock};
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};

/// A peer that has not presented its token by then is hung up on, so that a silent stranger cannot
/// keep the real peer out.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Prints the `ready` line and waits for the one peer that presents `token` and a line feed.
/// Ends by the deadline or a signal.
pub fn accept_peer(trial: &mut Trial, token: &str) -> Result<End, ProbeError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| no_loopback(&e))?;
    let address = listener.local_addr().map_err(|e| no_loopback(&e))?;
    bound_waiting(&listener)?;
    trial.line(&json!({"ready": {
        "address": address.ip().to_string(),
        "port": address.port(),
        "pid": std::process::id(),
    }}))?;
    trial.flush()?;
    let expected = format!("{token}\n");
    loop {
        cancel::check()?;
        match listener.accept() {
            Ok((stream, _)) => {
                let mut end = End::of(stream)?;
                if presents(&mut end, expected.as_bytes())? {
                    return Ok(end);
                }
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(no_loopback(&error)),
        }
    }
}

fn presents(end: &mut End, expected: &[u8]) -> Result<bool, ProbeError> {
    let mut given = vec![0u8; expected.len()];
    let until_ns = clock::monotonic_ns() + PATIENCE_NS;
    let mut done = 0;
    while done < given.len() {
        cancel::check()?;
        match end.read_until(&mut given[done..], until_ns) {
            Some(bytes @ 1..) => done += bytes,
            _ => return Ok(false),
        }
    }
    // All bytes are looked at, so that the time tells nothing about where they differ.
    Ok(given.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b)) == 0)
}
