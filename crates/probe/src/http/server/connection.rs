//! One client's connection: input that is not read to its end, an answer that is not sent to its end.
use super::records::RequestTimes;
use super::routes::Route;
use crate::http::requests::socket::is_wait;
use std::io::{Error, IoSlice, Read, Write};
use std::net::TcpStream;

/// Bodies repeat after so many bytes.
pub const BODY_PERIOD: usize = 1 << 20;
/// Bytes that are sent to one client before the others have their turn.
const TURN_BYTES: u64 = 4 << 20;

/// A request that is read and not answered yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    pub route: Route,
    pub body_bytes: u64,
    pub head_only: bool,
    pub is_old: bool,
    pub keep_alive: bool,
    pub expects_continue: bool,
}

#[derive(Debug)]
pub struct ServerConnection {
    pub stream: TcpStream,
    /// Bytes of a request that is not complete, and of those that follow it.
    pub input: Vec<u8>,
    pub pending: Option<Pending>,
    /// Bytes of the pending request's body that have not come yet.
    pub body_left: u64,
    /// Whether the pending request waits for a worker or the end of a stall.
    pub waits: bool,
    /// Head of an answer that is not sent yet.
    pub head: Vec<u8>,
    /// Part of its body that is not sent yet.
    pub body: std::ops::Range<u64>,
    /// The answer that is being sent: its kind and times.
    pub sending: Option<(Option<usize>, RequestTimes)>,
    pub closes: bool,
    /// The answer is sent; what still comes is dropped, so that the client can read the answer.
    pub drains: bool,
    pub requests: u64,
    /// When it is closed unless it gets on.
    pub deadline_ns: u64,
    /// The events that are watched.
    pub watched: u32,
}

pub enum ReadOutcome {
    Bytes(usize),
    Nothing,
    /// The client has ended or broken the connection.
    End,
}

impl ServerConnection {
    pub fn new(stream: TcpStream, deadline_ns: u64, watched: u32) -> Self {
        Self {
            stream,
            input: Vec::new(),
            pending: None,
            body_left: 0,
            waits: false,
            head: Vec::new(),
            body: 0..0,
            sending: None,
            closes: false,
            drains: false,
            requests: 0,
            deadline_ns,
            watched,
        }
    }

    pub fn is_sending(&self) -> bool {
        self.sending.is_some()
    }

    /// Reads what has come into `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) -> ReadOutcome {
        match self.stream.read(buffer) {
            Ok(0) => ReadOutcome::End,
            Ok(bytes) => ReadOutcome::Bytes(bytes),
            Err(error) if is_wait(&error) => ReadOutcome::Nothing,
            Err(_) => ReadOutcome::End,
        }
    }

    /// Keeps the part of an answer that was not sent: of `head`, followed by the body, `sent` bytes
    /// were.
    pub fn keep_unsent(&mut self, head: &[u8], body_bytes: u64, sent: usize) {
        self.head.clear();
        self.head.extend_from_slice(&head[sent.min(head.len())..]);
        self.body = sent.saturating_sub(head.len()) as u64..body_bytes;
    }

    /// Sends what is left of an answer, as much as fits now; returns the number of bytes.
    pub fn send_rest(&mut self, pattern: &[u8]) -> Result<u64, Error> {
        let mut total = 0;
        while !self.is_sent() && total < TURN_BYTES {
            let from = (self.body.start % BODY_PERIOD as u64) as usize;
            let left = self.body.end - self.body.start;
            let length = left.min((BODY_PERIOD - from) as u64) as usize;
            let parts = [IoSlice::new(&self.head), IoSlice::new(&pattern[from..from + length])];
            let sent = match self.stream.write_vectored(&parts) {
                Ok(sent) => sent,
                Err(error) if is_wait(&error) => break,
                Err(error) => return Err(error),
            };
            let of_head = sent.min(self.head.len());
            self.head.drain(..of_head);
            self.body.start += (sent - of_head) as u64;
            total += sent as u64;
        }
        Ok(total)
    }

    pub fn is_sent(&self) -> bool {
        self.head.is_empty() && self.body.is_empty()
    }
}
