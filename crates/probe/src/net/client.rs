//! The running side of a two-sided benchmark: reaching the far side.
use super::connection::End;
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_wire::lines::Peer;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A handshake over the longest way takes less; a firewall that drops it would take minutes.
const PATIENCE: Duration = Duration::from_secs(5);

pub fn reach(session: Session, peer: &Peer) -> Result<End> {
    let address = SocketAddr::new(peer.address, peer.port);
    let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| {
        session.check().err().unwrap_or_else(|| {
            ProbeError::new(
                FailureKind::Failed,
                "no_far_side",
                format!("The far side at {address} cannot be reached: {error}."),
                "See whether its server still runs, and whether a firewall lets this port through.",
            )
        })
    })?;
    let mut end = End::of(session, stream)?;
    end.write_all(format!("{}\n", peer.token).as_bytes())?;
    Ok(end)
}
