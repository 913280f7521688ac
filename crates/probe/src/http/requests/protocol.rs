//! What a protocol is to the engine: how a request is written, and how a response is read.
use super::failures::Failure;

/// The language of a server. Each thread of the engine has its own value.
pub trait Protocol: Send {
    /// State of one connection.
    type Parser: Default + Send;

    /// Whether a connection carries several requests that are answered in any order, and the server
    /// sends more than responses.
    const MULTIPLEXED: bool = false;

    /// Number of classes of requests that latencies are kept apart for.
    fn classes(&self) -> usize {
        1
    }

    /// Begins anew with a connection that was opened again.
    fn reopen(&mut self, parser: &mut Self::Parser) {
        *parser = Self::Parser::default();
    }

    /// Appends the next request to `out`; returns its class.
    fn encode(&mut self, parser: &mut Self::Parser, out: &mut Vec<u8>) -> u8;

    /// Draws the class that a request would have, of one that is not sent.
    fn draw_class(&mut self) -> u8 {
        0
    }

    /// Returns the number of further requests that a connection can carry now.
    #[inline]
    fn room(&self, _parser: &Self::Parser) -> usize {
        usize::MAX
    }

    /// Whether a connection has something to send besides new requests.
    #[inline]
    fn has_pending(&self, _parser: &Self::Parser) -> bool {
        Self::MULTIPLEXED
    }

    /// Appends what a connection is to send besides new requests.
    #[inline]
    fn write_pending(&mut self, _parser: &mut Self::Parser, _out: &mut Vec<u8>) {}

    /// Gives up the oldest request without its connection; false where that is not possible.
    fn cancel_oldest(&mut self, _parser: &mut Self::Parser) -> bool {
        false
    }

    /// Reads of the response to a request of `class`, the oldest that was not answered. The engine
    /// presents what was not consumed again, followed by what came next; so a protocol consumes what
    /// it can, and refuses what it would have to wait for without an end.
    fn parse(
        &mut self,
        parser: &mut Self::Parser,
        class: u8,
        bytes: &[u8],
    ) -> Result<ParseProgress, Failure>;

    /// Returns the response that the end of the connection completes, if it does.
    fn end(&mut self, _parser: &mut Self::Parser, _class: u8) -> Option<CompleteResponse> {
        None
    }
}

/// How far a protocol came with the bytes that it was given: the number of bytes consumed.
pub enum ParseProgress {
    Partial(usize),
    Complete(usize, CompleteResponse),
    /// The response to the request at this position, of those in flight, has begun.
    BegunAt(usize, usize),
    CompleteAt(usize, usize, CompleteResponse),
    /// The connection carries no more: requests in flight are sent again on a new one.
    Ended,
}

/// A whole response.
#[derive(Clone, Copy, Debug)]
pub struct CompleteResponse {
    /// Why it is not the one that was wanted.
    pub failure: Option<Failure>,
    /// Whether the connection can carry another request.
    pub keeps_alive: bool,
}
