//! One connection of the engine: its socket, the requests in flight on it, and what could not be read
//! or written yet.
use super::failures::{Failure, CLOSED_EARLY, WRONG_LENGTH};
use super::in_flight::InFlight;
use super::recorder::Recorder;
use super::socket::{is_wait, NonblockingSocket};
use super::{tls, ParseProgress, Protocol};
use nephoscope_linux::clock;
use rustls::ClientConnection;
use std::collections::VecDeque;
use std::io::{BufRead, Error, Write};

/// A buffer that has grown beyond this is given back once it is empty.
const RETAINED_BYTES: usize = 4096;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    #[default]
    Closed,
    Connecting,
    /// TCP is connected, TLS is not.
    Handshaking,
    Open,
}

#[derive(Default)]
pub struct EngineConnection<Parser> {
    pub state: ConnectionState,
    pub socket: Option<NonblockingSocket>,
    pub tls: Option<Box<ClientConnection>>,
    pub parser: Parser,
    /// Requests that were not answered, the oldest first.
    pub in_flight: VecDeque<InFlight>,
    /// Number of them that were written.
    pub written: usize,
    /// Bytes that the protocol could not use yet.
    unread: Vec<u8>,
    /// Bytes that the kernel would not take yet.
    unsent: Vec<u8>,
    pub connecting_since_ns: u64,
    /// From when on it could take another request.
    pub free_since_ns: u64,
    /// Whether it is among those that wait for a request.
    pub queued: bool,
}

/// How a connection stands after what was read from it.
pub enum Standing {
    Open,
    /// To be closed: the last response was the last one.
    Ended,
    Failed(Failure),
}

impl<Parser: Default> EngineConnection<Parser> {
    /// Takes a new socket that is connecting.
    pub fn open(&mut self, socket: NonblockingSocket, now_ns: u64) {
        self.socket = Some(socket);
        self.state = ConnectionState::Connecting;
        self.connecting_since_ns = now_ns;
    }

    /// Closes the socket. Requests in flight stay until they are taken.
    pub fn close(&mut self) {
        self.socket = None;
        self.tls = None;
        self.state = ConnectionState::Closed;
        self.written = 0;
        self.unread.clear();
        self.unsent.clear();
    }

    /// Writes `bytes` behind what waits to be sent; true when all is sent.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(bytes)?;
            return self.write_unsent();
        }
        if !self.unsent.is_empty() {
            self.unsent.extend_from_slice(bytes);
            return self.write_unsent();
        }
        let sent = self.write_some(bytes)?;
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(sent == bytes.len())
    }

    pub fn write_unsent(&mut self) -> Result<bool, Error> {
        if let (Some(tls), Some(socket)) = (&mut self.tls, &self.socket) {
            return tls::write(tls, socket);
        }
        let unsent = std::mem::take(&mut self.unsent);
        let sent = self.write_some(&unsent)?;
        self.unsent = unsent;
        self.unsent.drain(..sent);
        if self.unsent.is_empty() && self.unsent.capacity() > RETAINED_BYTES {
            self.unsent = Vec::new();
        }
        Ok(self.unsent.is_empty())
    }

    fn write_some(&self, bytes: &[u8]) -> Result<usize, Error> {
        let Some(socket) = &self.socket else { return Ok(0) };
        match socket.write(bytes) {
            Err(error) if is_wait(&error) => Ok(0),
            result => result,
        }
    }

    /// Reads what has come on an encrypted connection, and the responses in it.
    pub fn receive_tls<P: Protocol<Parser = Parser>>(
        &mut self,
        protocol: &mut P,
        input: &mut [u8],
        recorder: &mut Recorder,
    ) -> Result<Standing, Error> {
        let (Some(mut tls), Some(socket)) = (self.tls.take(), &self.socket) else {
            return Ok(Standing::Ended);
        };
        let received = socket.read(input);
        let now_ns = clock::monotonic_ns();
        let standing = match received {
            Ok(0) => Ok(self.end(protocol, now_ns, recorder)),
            Ok(count) => self.decrypt(&mut tls, protocol, &input[..count], now_ns, recorder),
            Err(error) => Err(error),
        };
        self.tls = Some(tls);
        if standing.is_err() {
            // The other side may learn why.
            let _ = self.write_unsent();
        }
        standing
    }

    fn decrypt<P: Protocol<Parser = Parser>>(
        &mut self,
        tls: &mut ClientConnection,
        protocol: &mut P,
        mut bytes: &[u8],
        now_ns: u64,
        recorder: &mut Recorder,
    ) -> Result<Standing, Error> {
        // TLS takes some kilobytes at a time.
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes)?;
            tls.process_new_packets().map_err(Error::other)?;
            loop {
                let mut reader = tls.reader();
                let text = match reader.fill_buf() {
                    Err(error) if is_wait(&error) => break,
                    // Also without the notice that TLS wants: HTTP has its own ends.
                    Ok([]) | Err(_) => return Ok(self.end(protocol, now_ns, recorder)),
                    Ok(text) => text,
                };
                let count = text.len();
                recorder.received(count, now_ns);
                let standing = self.receive(protocol, text, now_ns, recorder);
                reader.consume(count);
                if !matches!(standing, Standing::Open) {
                    return Ok(standing);
                }
            }
        }
        Ok(Standing::Open)
    }

    /// Reads the responses in `bytes`, records them, and returns how the connection stands.
    #[inline]
    pub fn receive<P: Protocol<Parser = Parser>>(
        &mut self,
        protocol: &mut P,
        bytes: &[u8],
        now_ns: u64,
        recorder: &mut Recorder,
    ) -> Standing {
        if self.unread.is_empty() {
            let (used, standing) = self.parse(protocol, bytes, now_ns, recorder);
            self.unread.extend_from_slice(&bytes[used..]);
            return standing;
        }
        let mut unread = std::mem::take(&mut self.unread);
        unread.extend_from_slice(bytes);
        let (used, standing) = self.parse(protocol, &unread, now_ns, recorder);
        unread.drain(..used);
        if !unread.is_empty() || unread.capacity() <= RETAINED_BYTES {
            self.unread = unread;
        }
        standing
    }

    /// Returns the number of bytes used.
    fn parse<P: Protocol<Parser = Parser>>(
        &mut self,
        protocol: &mut P,
        bytes: &[u8],
        now_ns: u64,
        recorder: &mut Recorder,
    ) -> (usize, Standing) {
        let mut used = 0;
        while used < bytes.len() {
            let class = match self.in_flight.front_mut().filter(|_| self.written > 0) {
                _ if P::MULTIPLEXED => 0,
                None => return (used, Standing::Failed(WRONG_LENGTH)),
                Some(oldest) => {
                    oldest.begin_response(now_ns);
                    oldest.class
                }
            };
            let (count, index, response) =
                match protocol.parse(&mut self.parser, class, &bytes[used..]) {
                    Ok(ParseProgress::Partial(count)) => return (used + count, Standing::Open),
                    Ok(ParseProgress::Complete(count, response)) => (count, 0, response),
                    Ok(ParseProgress::CompleteAt(count, index, response)) => {
                        (count, index, response)
                    }
                    Ok(ParseProgress::BegunAt(count, index)) => {
                        used += count;
                        self.in_flight[index].begin_response(now_ns);
                        continue;
                    }
                    Ok(ParseProgress::Ended) => return (bytes.len(), Standing::Ended),
                    Err(failure) => return (used, Standing::Failed(failure)),
                };
            used += count;
            if let Some(mut request) = self.take(index) {
                request.begin_response(now_ns);
                recorder.completed(&request, response.failure, now_ns);
            }
            if !response.keeps_alive {
                return (used, Standing::Ended);
            }
        }
        (used, Standing::Open)
    }

    /// Takes a request that was written from those in flight.
    #[inline]
    pub fn take(&mut self, index: usize) -> Option<InFlight> {
        self.written -= 1;
        self.in_flight.remove(index)
    }

    /// Returns how the connection stands after the server ended it.
    pub fn end<P: Protocol<Parser = Parser>>(
        &mut self,
        protocol: &mut P,
        now_ns: u64,
        recorder: &mut Recorder,
    ) -> Standing {
        let Some(oldest) = self.in_flight.front_mut() else { return Standing::Ended };
        match protocol.end(&mut self.parser, oldest.class).filter(|_| self.written > 0) {
            Some(response) => {
                recorder.completed(oldest, response.failure, now_ns);
                self.take(0);
                Standing::Ended
            }
            None => Standing::Failed(CLOSED_EARLY),
        }
    }
}
