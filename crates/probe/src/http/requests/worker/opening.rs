//! Connections that are being opened, and their TLS handshakes.
use super::{EngineWorker, CHECK_INTERVAL_NS};
use crate::error::Result;
use crate::http::requests::connection::{ConnectionState, EngineConnection};
use crate::http::requests::epoll::{READ, WRITE};
use crate::http::requests::failures;
use crate::http::requests::gate::Gate;
use crate::http::requests::socket::NonblockingSocket;
use crate::http::requests::Protocol;
use nephoscope_linux::clock;

/// Connections that are being opened at once, so that the server's queue does not overflow.
const CONNECTING_MAX: usize = 128;

impl<P: Protocol> EngineWorker<'_, P> {
    /// Opens all connections, not too many at once.
    pub(super) fn connect_ahead(&mut self, gate: &Gate) -> Result<()> {
        let until_ns = clock::monotonic_ns() + self.settings.timeout_ns;
        let (mut next, count) = (0, self.connections.len());
        loop {
            self.session.check()?;
            let connecting = |c: &&EngineConnection<P::Parser>| {
                matches!(c.state, ConnectionState::Connecting | ConnectionState::Handshaking)
            };
            let mut now_connecting = self.connections[..next].iter().filter(connecting).count();
            while next < count && now_connecting < CONNECTING_MAX {
                self.connect(next, clock::monotonic_ns())?;
                next += 1;
                now_connecting += 1;
            }
            let ended = next == count && now_connecting == 0;
            if ended || clock::monotonic_ns() >= until_ns || gate.is_abandoned() {
                return Ok(());
            }
            self.take_events(clock::monotonic_ns(), CHECK_INTERVAL_NS)?;
        }
    }

    pub(super) fn connect(&mut self, slot: usize, now_ns: u64) -> Result<()> {
        let opened = NonblockingSocket::connect(&self.settings.address).and_then(|socket| {
            self.epoll.add(socket.fd(), READ | WRITE, slot as u32).map(|()| socket)
        });
        match opened {
            Ok(socket) => {
                let connection = &mut self.connections[slot];
                connection.open(socket, now_ns);
                self.protocol.reopen(&mut connection.parser);
                Ok(())
            }
            Err(error) => self.fail(slot, failures::of_error(&error), now_ns),
        }
    }

    pub(super) fn on_connected(&mut self, slot: usize) -> Result<()> {
        let now_ns = clock::monotonic_ns();
        let connection = &mut self.connections[slot];
        let Some(socket) = &connection.socket else { return Ok(()) };
        if let Err(error) = socket.connected() {
            return self.fail(slot, failures::of_error(&error), now_ns);
        }
        let taken_ns = now_ns.saturating_sub(connection.connecting_since_ns);
        self.recorder.connect.saturating_record(taken_ns.max(1));
        self.recorder.connections += 1;
        let Some(tls) = &self.settings.tls else {
            connection.state = ConnectionState::Open;
            self.watch(slot, READ)?;
            return self.flush(slot, now_ns);
        };
        let client = tls.connection().map_err(std::io::Error::other);
        connection.state = ConnectionState::Handshaking;
        connection.connecting_since_ns = now_ns;
        let written = client.and_then(|client| {
            connection.tls = Some(Box::new(client));
            connection.write_unsent()
        });
        self.after_write(slot, written, true)
    }

    /// Goes on with a handshake: sends its next message, or the requests that waited for its end.
    pub(super) fn shake_hands(&mut self, slot: usize) -> Result<()> {
        let connection = &mut self.connections[slot];
        let is_over = connection.tls.as_ref().is_some_and(|tls| !tls.is_handshaking());
        let now_ns = clock::monotonic_ns();
        if is_over {
            connection.state = ConnectionState::Open;
            let taken_ns = now_ns.saturating_sub(connection.connecting_since_ns);
            self.recorder.handshake.saturating_record(taken_ns.max(1));
            if P::MULTIPLEXED || !connection.in_flight.is_empty() {
                // What ends the handshake goes out together with the first request.
                return self.flush(slot, now_ns);
            }
        }
        let written = connection.write_unsent();
        self.after_write(slot, written, false)
    }
}
