//! HTTP/1.1 (RFC 9112) as a protocol of the request engine.
mod body;
pub mod cookies;
pub mod data;
pub mod expected;
pub mod mix;
pub mod request;
pub mod response;
pub mod url;

use crate::http::requests::failures::Failure;
use crate::http::requests::{CompleteResponse, ParseProgress, Protocol};
use expected::Expected;
use mix::Mix;
use nephoscope_wire::random::Random;
use response::ResponseReader;
use std::sync::Arc;

/// Statuses have three digits.
const STATUSES: usize = 1000;

pub struct Http {
    pub mix: Arc<Mix>,
    pub expected: Arc<Expected>,
    random: Random,
    /// The next row of data; threads take turns.
    row: usize,
    threads: usize,
    /// Number of responses by status.
    pub statuses: Vec<u64>,
}

impl Http {
    pub fn new(
        mix: &Arc<Mix>,
        expected: &Arc<Expected>,
        thread: usize,
        threads: usize,
        seed: u64,
    ) -> Self {
        Self {
            mix: Arc::clone(mix),
            expected: Arc::clone(expected),
            random: Random::stream(seed, 1 << 32 | thread as u64),
            row: thread,
            threads,
            statuses: vec![0; STATUSES],
        }
    }

    /// Draws the next request; returns its class.
    #[inline]
    pub fn pick(&mut self) -> u8 {
        match self.mix.requests.len() {
            1 => 0,
            _ => self.mix.pick(self.random.below(self.mix.total_weight())) as u8,
        }
    }

    #[inline]
    pub fn count_status(&mut self, status: u16) {
        self.statuses[usize::from(status).min(STATUSES - 1)] += 1;
    }

    /// Returns the number of the next row of data.
    #[inline]
    pub fn next_row(&mut self) -> usize {
        let row = self.row;
        self.row = self.row.wrapping_add(self.threads);
        row
    }

    #[inline]
    fn complete(&mut self, reader: &mut ResponseReader, class: u8) -> CompleteResponse {
        self.count_status(reader.status());
        let keeps_alive = reader.keeps_alive() && self.mix.requests[usize::from(class)].keeps_alive;
        CompleteResponse { failure: reader.finish(&self.expected), keeps_alive }
    }
}

impl Protocol for Http {
    type Parser = ResponseReader;

    fn classes(&self) -> usize {
        self.mix.requests.len()
    }

    fn draw_class(&mut self) -> u8 {
        self.pick()
    }

    /// A user keeps the cookies where the connection is lost.
    fn reopen(&mut self, reader: &mut ResponseReader) {
        reader.restart();
    }

    #[inline]
    fn encode(&mut self, reader: &mut ResponseReader, out: &mut Vec<u8>) -> u8 {
        let (class, row) = (self.pick(), self.next_row());
        let request = &self.mix.requests[usize::from(class)];
        request.write(self.mix.table.row(row), reader.cookies(), out);
        class
    }

    #[inline]
    fn parse(
        &mut self,
        reader: &mut ResponseReader,
        class: u8,
        bytes: &[u8],
    ) -> Result<ParseProgress, Failure> {
        let is_head = self.mix.requests[usize::from(class)].is_head;
        let (used, whole) = reader.read(&self.expected, is_head, bytes)?;
        if !whole {
            return Ok(ParseProgress::Partial(used));
        }
        Ok(ParseProgress::Complete(used, self.complete(reader, class)))
    }

    fn end(&mut self, reader: &mut ResponseReader, class: u8) -> Option<CompleteResponse> {
        reader.ends_with_connection().then(|| self.complete(reader, class))
    }
}
