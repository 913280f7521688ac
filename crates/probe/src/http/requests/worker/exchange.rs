//! Requests and responses on a connection that is open.
use super::EngineWorker;
use crate::error::{ProbeError, Result};
use crate::http::requests::connection::{ConnectionState, Standing};
use crate::http::requests::epoll::{READ, WRITE};
use crate::http::requests::failures::{self, CLOSED_EARLY};
use crate::http::requests::in_flight::InFlight;
use crate::http::requests::socket::is_wait;
use crate::http::requests::{tls, Protocol};
use nephoscope_linux::clock;

impl<P: Protocol> EngineWorker<'_, P> {
    /// Gives a request to a connection; `flush` sends it.
    #[inline]
    pub(super) fn begin(&mut self, slot: usize, intended_ns: u64, now_ns: u64) {
        let request = InFlight { intended_ns, begun_ns: now_ns, ..InFlight::default() };
        self.connections[slot].in_flight.push_back(request);
        self.in_flight += 1;
    }

    /// Sends what a connection was given, all at once; connects first where that is needed.
    pub(super) fn flush(&mut self, slot: usize, now_ns: u64) -> Result<()> {
        let connection = &mut self.connections[slot];
        match connection.state {
            ConnectionState::Closed => return self.connect(slot, now_ns),
            ConnectionState::Connecting | ConnectionState::Handshaking => return Ok(()),
            ConnectionState::Open => {}
        }
        self.output.clear();
        self.protocol.write_pending(&mut connection.parser, &mut self.output);
        let room = self.protocol.room(&connection.parser);
        let unwritten = connection.in_flight.iter_mut().skip(connection.written).take(room);
        for request in unwritten {
            request.class = self.protocol.encode(&mut connection.parser, &mut self.output);
            // One that a server turned away unread is sent a second time.
            self.recorder.sent += u64::from(request.sent_ns == 0);
            request.sent_ns = now_ns;
            connection.written += 1;
        }
        if self.output.is_empty() {
            return Ok(());
        }
        let written = connection.write(&self.output);
        self.after_write(slot, written, false)
    }

    /// Watches for room in the send buffer where it is full, and no longer where it was (`watched`).
    pub(super) fn after_write(
        &mut self,
        slot: usize,
        written: Result<bool, std::io::Error>,
        watched: bool,
    ) -> Result<()> {
        match written {
            Ok(all) if all != watched => Ok(()),
            Ok(all) => self.watch(slot, if all { READ } else { READ | WRITE }),
            Err(error) => self.fail(slot, tls::failure_of(&error), clock::monotonic_ns()),
        }
    }

    pub(super) fn watch(&mut self, slot: usize, interest: u32) -> Result<()> {
        let Some(socket) = &self.connections[slot].socket else { return Ok(()) };
        let changed = self.epoll.change(socket.fd(), interest, slot as u32);
        changed.map_err(|error| ProbeError::os("epoll_ctl", &error))
    }

    #[inline]
    pub(super) fn read(&mut self, slot: usize) -> Result<()> {
        let connection = &mut self.connections[slot];
        let before = connection.in_flight.len();
        if connection.tls.is_some() {
            let Self { protocol, input, recorder, .. } = self;
            let standing = match connection.receive_tls(protocol, input, recorder) {
                Ok(standing) => standing,
                Err(error) if is_wait(&error) => return Ok(()),
                Err(error) => Standing::Failed(tls::failure_of(&error)),
            };
            return self.after_read(slot, before, standing, clock::monotonic_ns());
        }
        let Some(socket) = &connection.socket else { return Ok(()) };
        let received = socket.read(&mut self.input);
        let now_ns = clock::monotonic_ns();
        let standing = match received {
            Ok(0) => connection.end(&mut self.protocol, now_ns, &mut self.recorder),
            Ok(count) => {
                self.recorder.received(count, now_ns);
                let bytes = &self.input[..count];
                connection.receive(&mut self.protocol, bytes, now_ns, &mut self.recorder)
            }
            Err(error) if is_wait(&error) => return Ok(()),
            Err(error) => Standing::Failed(failures::of_error(&error)),
        };
        self.after_read(slot, before, standing, now_ns)
    }

    /// Ends what was answered of `before` requests in flight, and decides what follows.
    #[inline]
    fn after_read(
        &mut self,
        slot: usize,
        before: usize,
        standing: Standing,
        now_ns: u64,
    ) -> Result<()> {
        let connection = &mut self.connections[slot];
        let answered = before - connection.in_flight.len();
        self.in_flight -= answered;
        match standing {
            Standing::Open if connection.state == ConnectionState::Handshaking => {
                return self.shake_hands(slot);
            }
            Standing::Open => {}
            // Whoever waits for the handshake waits in vain.
            Standing::Ended if connection.state == ConnectionState::Handshaking => {
                self.fail(slot, CLOSED_EARLY, now_ns)?;
            }
            Standing::Ended => connection.close(),
            Standing::Failed(failure) => self.fail(slot, failure, now_ns)?,
        }
        if answered > 0 {
            self.follow(slot, answered, now_ns, 0);
        }
        let connection = &self.connections[slot];
        let has_more = connection.written < connection.in_flight.len();
        let has_pending = connection.state == ConnectionState::Open
            && self.protocol.has_pending(&connection.parser);
        if has_more || has_pending {
            self.unflushed.push(slot);
        }
        Ok(())
    }
}
