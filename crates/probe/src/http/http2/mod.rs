//! HTTP/2 (RFC 9113) as a protocol of the request engine: each request in flight is a stream.
pub mod block;
mod frame;
mod headers;
mod hpack;
mod huffman;
mod session;
mod streams;
#[cfg(test)]
mod tests;

use crate::http::http1::request::write_pieces;
use crate::http::http1::Http;
use crate::http::requests::failures::{Failure, WRONG_BODY, WRONG_LENGTH};
use crate::http::requests::{CompleteResponse, ParseProgress, Protocol};
use frame::{END_STREAM, HEAD_BYTES};
use session::{Http2Session, StreamEvent};

/// Requests and what is expected of responses are those of HTTP/1.1.
pub struct Http2(pub Http);

impl Http2 {
    /// Ends the stream at a position; failure: what befell it on its way.
    #[inline]
    fn complete(
        &mut self,
        session: &mut Http2Session,
        index: usize,
        failure: Option<Failure>,
    ) -> Option<CompleteResponse> {
        let mut stream = session.end(index)?;
        let request = &self.0.mix.requests[usize::from(stream.class)];
        let keeps_alive = request.keeps_alive && !session.is_over();
        if failure.is_some() {
            return Some(CompleteResponse { failure, keeps_alive });
        }
        let has_body = !request.is_head && !matches!(stream.status, 204 | 304);
        let is_short = has_body && stream.stated.is_some_and(|length| length != stream.received);
        let passes = stream.check.passes(&self.0.expected);
        self.0.count_status(stream.status);
        let failure = self.0.expected.refuses(stream.status);
        let failure = failure.or(is_short.then_some(WRONG_LENGTH));
        Some(CompleteResponse { failure: failure.or((!passes).then_some(WRONG_BODY)), keeps_alive })
    }
}

impl Protocol for Http2 {
    type Parser = Http2Session;

    const MULTIPLEXED: bool = true;

    fn classes(&self) -> usize {
        self.0.classes()
    }

    fn draw_class(&mut self) -> u8 {
        self.0.pick()
    }

    fn reopen(&mut self, session: &mut Http2Session) {
        session.restart();
    }

    #[inline]
    fn room(&self, session: &Http2Session) -> usize {
        session.room()
    }

    #[inline]
    fn write_pending(&mut self, session: &mut Http2Session, out: &mut Vec<u8>) {
        out.append(&mut session.output);
    }

    fn cancel_oldest(&mut self, session: &mut Http2Session) -> bool {
        session.cancel_oldest()
    }

    #[inline]
    fn encode(&mut self, session: &mut Http2Session, out: &mut Vec<u8>) -> u8 {
        let (class, row) = (self.0.pick(), self.0.next_row());
        let request = &self.0.mix.requests[usize::from(class)];
        let row = self.0.mix.table.row(row);
        let mut body = Vec::new();
        write_pieces(&request.body, row, &mut body);
        let flags = if body.is_empty() { END_STREAM } else { 0 };
        let length = request.states_length.then_some(body.len());
        let id = session.open(class, body);
        let start = out.len();
        out.extend_from_slice(&[0; HEAD_BYTES]);
        if std::mem::take(&mut session.states_table) {
            hpack::write_integer(0x20, 5, 0, out);
        }
        if let Some(block) = &request.block {
            let mut table = session.table;
            block.write(row, session.cookies(), length, &mut table, out);
            session.table = table;
        }
        frame::close_headers(start, flags, id, out);
        if flags == 0 {
            session.streams.send_body(session.streams.open.len() - 1, out);
        }
        class
    }

    #[inline]
    fn parse(
        &mut self,
        session: &mut Http2Session,
        _class: u8,
        bytes: &[u8],
    ) -> Result<ParseProgress, Failure> {
        let (used, event) = session.read(&self.0.expected, bytes)?;
        let (index, failure) = match event {
            None => return Ok(ParseProgress::Partial(used)),
            Some(StreamEvent::Ended) => return Ok(ParseProgress::Ended),
            Some(StreamEvent::Begun(index)) => return Ok(ParseProgress::BegunAt(used, index)),
            Some(StreamEvent::Complete(index)) => (index, None),
            Some(StreamEvent::Failed(index, failure)) => (index, Some(failure)),
        };
        let response = self.complete(session, index, failure);
        Ok(response
            .map_or(ParseProgress::Partial(used), |it| ParseProgress::CompleteAt(used, index, it)))
    }
}
