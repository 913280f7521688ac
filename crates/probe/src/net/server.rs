//! The serving side of a two-sided benchmark: a listener that prints its address and accepts only the
//! peer that presents the token.
use super::connection::{bound_waiting, is_wait, no_loopback, End};
use super::udp::batch;
use crate::clock;
use crate::error::{Kind, ProbeError};
use crate::session::Session;
use crate::trial::{ListenConfig, Trial};
use std::net::{SocketAddr, TcpListener, UdpSocket};

/// A peer that has not presented its token by then is hung up on, so that a silent stranger cannot
/// keep the real peer out.
const PATIENCE_NS: u64 = 1_000_000_000;

/// Listens where `listen_at` says, on a free port.
pub fn bind_listener(listen: &ListenConfig) -> Result<TcpListener, ProbeError> {
    let listener = TcpListener::bind((listen.bind, 0)).map_err(|error| {
        if listen.bind.is_loopback() {
            return no_loopback(&error);
        }
        ProbeError::new(
            Kind::Lacks,
            "no_such_address",
            format!("Nothing can listen on {}: {error}.", listen.bind),
            "Name an address that this machine has (ip address).",
        )
    })?;
    bound_waiting(&listener)?;
    Ok(listener)
}

/// A listener and a socket for datagrams on the same free port, where `listen_at` says.
pub fn listen_both(
    listen: &ListenConfig,
) -> Result<(TcpListener, UdpSocket, SocketAddr), ProbeError> {
    let mut why = None;
    // The port that is free for one may be taken for the other.
    for _ in 0..16 {
        let listener = bind_listener(listen)?;
        let address = local_address(&listener)?;
        match batch::socket(address) {
            Ok(socket) => return Ok((listener, socket, address)),
            Err(error) => why = Some(error),
        }
    }
    let error = why.unwrap_or_else(|| std::io::ErrorKind::AddrInUse.into());
    Err(ProbeError::os("A socket for datagrams", &error))
}

/// Prints where it listens and waits for the one peer that presents the token. `None` when it was
/// stopped first. Ends by the deadline or a signal.
pub fn accept_peer(trial: &mut Trial, listen: &ListenConfig) -> Result<Option<End>, ProbeError> {
    let listener = bind_listener(listen)?;
    trial.listens_at(local_address(&listener)?)?;
    next_peer(trial.session, &listener, &listen.token)
}

fn local_address(listener: &TcpListener) -> Result<SocketAddr, ProbeError> {
    listener.local_addr().map_err(|error| ProbeError::os("getsockname", &error))
}

/// Waits for the next peer that presents `token` and a line feed; others are hung up on.
pub fn next_peer(
    session: Session,
    listener: &TcpListener,
    token: &str,
) -> Result<Option<End>, ProbeError> {
    let expected = format!("{token}\n");
    loop {
        session.check()?;
        if session.is_stopped() {
            return Ok(None);
        }
        match listener.accept() {
            Ok((stream, _)) => {
                let mut end = End::of(session, stream)?;
                let until_ns = clock::monotonic_ns() + PATIENCE_NS;
                if end.presents(expected.as_bytes(), until_ns)? {
                    return Ok(Some(end));
                }
            }
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(ProbeError::os("Accepting a connection", &error)),
        }
    }
}
