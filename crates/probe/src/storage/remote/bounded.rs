//! Bounds of what a service answers: one that never ends a list or a body takes no memory.
use futures::StreamExt;
use opendal_core::raw::Operation;
use opendal_core::{Buffer, Error, ErrorKind, HttpBody, HttpTransport, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Of an answer that is no object. A page of 1,000 names has half a MiB; `WebDAV` has no pages.
const ANSWER_BYTES: u64 = 32 << 20;
/// Of all lists of one client: two million names in services with pages of 1,000.
const PAGES: u64 = 2_000;
/// What errors of both kinds say.
pub const ENDLESS: &str = "the answer does not end";

/// A transport that reads no answer beyond its bound.
pub struct BoundedTransport<T> {
    transport: T,
    /// Of the largest object of the trial.
    object_bytes: u64,
    pages: AtomicU64,
}

impl<T> BoundedTransport<T> {
    pub fn new(transport: T, object_bytes: u64) -> Self {
        Self { transport, object_bytes, pages: AtomicU64::new(0) }
    }
}

impl<T: HttpTransport> HttpTransport for BoundedTransport<T> {
    async fn fetch(&self, request: http::Request<Buffer>) -> Result<http::Response<HttpBody>> {
        let operation = request.extensions().get::<Operation>().copied();
        // Lists of WebHDFS name no operation.
        let is_list = matches!(operation, None | Some(Operation::List));
        if is_list && self.pages.fetch_add(1, Ordering::Relaxed) >= PAGES {
            return Err(endless(&format!("a list has more than {PAGES} pages")));
        }
        let limit_bytes = match operation {
            // A refusal in its place may be longer than the object.
            Some(Operation::Read) => self.object_bytes.max(ANSWER_BYTES),
            _ => ANSWER_BYTES,
        };
        Ok(self.transport.fetch(request).await?.map(|body| bounded(body, limit_bytes)))
    }
}

fn bounded(body: HttpBody, limit_bytes: u64) -> HttpBody {
    let mut left_bytes = limit_bytes;
    body.map_inner(|pieces| {
        Box::new(pieces.map(move |piece| {
            let piece = piece?;
            let remaining_bytes = left_bytes.checked_sub(piece.len() as u64);
            left_bytes = remaining_bytes
                .ok_or_else(|| endless(&format!("it has more than {limit_bytes} bytes")))?;
            Ok(piece)
        }))
    })
}

fn endless(why: &str) -> Error {
    Error::new(ErrorKind::Unexpected, format!("{ENDLESS}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use futures::stream;

    /// Answers every request with pieces of 1 MiB without an end.
    struct Endless;

    impl HttpTransport for Endless {
        async fn fetch(&self, _: http::Request<Buffer>) -> Result<http::Response<HttpBody>> {
            let pieces = stream::repeat_with(|| Ok(Buffer::from(vec![0; 1 << 20])));
            Ok(http::Response::new(HttpBody::new(pieces, None)))
        }
    }

    fn request(operation: Operation) -> http::Request<Buffer> {
        http::Request::builder().extension(operation).body(Buffer::new()).unwrap()
    }

    #[test]
    fn an_answer_ends_at_its_bound() {
        let transport = BoundedTransport::new(Endless, 64 << 20);
        for (operation, bytes) in [(Operation::List, 32 << 20), (Operation::Read, 64 << 20)] {
            let mut body = block_on(transport.fetch(request(operation))).unwrap().into_body();
            let error = block_on(body.to_buffer()).unwrap_err();
            assert!(!error.is_temporary());
            assert_eq!(
                error.message(),
                format!("the answer does not end: it has more than {bytes} bytes")
            );
        }
    }

    #[test]
    fn a_list_ends_at_its_last_allowed_page() {
        let transport = BoundedTransport::new(Endless, 1);
        for _ in 0..PAGES {
            assert!(block_on(transport.fetch(request(Operation::List))).is_ok());
        }
        assert!(block_on(transport.fetch(request(Operation::List))).is_err());
        assert!(block_on(transport.fetch(request(Operation::Write))).is_ok());
    }
}
