//! HTTP/1.1 (RFC 9112) as a protocol of the request engine.
pub mod body;
pub mod expected;
pub mod request;
pub mod response;
pub mod url;

use crate::requests::failures::Failure;
use crate::requests::{Parsed, Protocol, Response};
use expected::Expected;
use request::Request;
use response::Reader;
use std::sync::Arc;

/// Statuses have three digits.
const STATUSES: usize = 1000;

pub struct Http {
    request: Arc<Request>,
    expected: Arc<Expected>,
    /// Number of responses by status.
    pub statuses: Vec<u64>,
}

impl Http {
    pub fn new(request: Arc<Request>, expected: Arc<Expected>) -> Self {
        Self { request, expected, statuses: vec![0; STATUSES] }
    }
}

impl Protocol for Http {
    type Parser = Reader;

    #[inline]
    fn encode(&mut self, _reader: &mut Reader, out: &mut Vec<u8>) -> u8 {
        out.extend_from_slice(&self.request.bytes);
        0
    }

    #[inline]
    fn parse(&mut self, reader: &mut Reader, _class: u8, bytes: &[u8]) -> Result<Parsed, Failure> {
        let (used, whole) = reader.read(&self.expected, self.request.is_head, bytes)?;
        if !whole {
            return Ok(Parsed::Partial(used));
        }
        Ok(Parsed::Complete(used, self.complete(reader)))
    }

    fn end(&mut self, reader: &mut Reader, _class: u8) -> Option<Response> {
        reader.ends_with_connection().then(|| self.complete(reader))
    }
}

impl Http {
    #[inline]
    fn complete(&mut self, reader: &mut Reader) -> Response {
        self.statuses[usize::from(reader.status()).min(STATUSES - 1)] += 1;
        let keeps_alive = reader.keeps_alive() && self.request.keeps_alive;
        Response { failure: reader.finish(&self.expected), keeps_alive }
    }
}
