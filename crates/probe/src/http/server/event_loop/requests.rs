//! What clients ask: requests are read, decided on, and answered or given to the workers.
use super::*;
use crate::net::server::is_equal;

impl HttpServer<'_> {
    pub(super) fn read(
        &mut self,
        id: u64,
        connection: &mut ServerConnection,
    ) -> Result<RequestOutcome> {
        let mut bytes = match connection.read(&mut self.buffer) {
            ReadOutcome::Nothing => return Ok(RequestOutcome::Keep),
            ReadOutcome::End => {
                let within = connection.pending.is_some() || !connection.input.is_empty();
                self.counters.broken += u64::from(within && !connection.drains);
                return Ok(RequestOutcome::Close);
            }
            ReadOutcome::Bytes(bytes) => &self.buffer[..bytes],
        };
        self.counters.received_bytes += bytes.len() as u64;
        if connection.drains {
            return Ok(RequestOutcome::Keep);
        }
        if connection.input.is_empty() && connection.pending.is_none() {
            connection.deadline_ns = self.now_ns + self.settings.request_timeout_ns;
        }
        // The body of a request is dropped.
        let dropped = connection.body_left.min(bytes.len() as u64);
        connection.body_left -= dropped;
        bytes = &bytes[dropped as usize..];
        connection.input.extend_from_slice(bytes);
        self.advance(id, connection)
    }

    /// Goes through the requests that have come, until one is incomplete or waits.
    pub(super) fn advance(
        &mut self,
        id: u64,
        connection: &mut ServerConnection,
    ) -> Result<RequestOutcome> {
        loop {
            if connection.drains || connection.is_sending() || connection.waits {
                return Ok(RequestOutcome::Keep);
            }
            if connection.pending.is_none() {
                let (pending, body_bytes, head_bytes) = match request::parse(&connection.input) {
                    ParsedRequest::Incomplete if connection.input.len() < HEAD_MAX => {
                        return Ok(RequestOutcome::Keep);
                    }
                    ParsedRequest::Incomplete => (refused(Refusal::HeadTooLarge), 0, 0),
                    ParsedRequest::Refused(refusal) => (refused(refusal), 0, 0),
                    ParsedRequest::Complete(request) => {
                        (self.pending(&request), request.content_length, request.head_bytes)
                    }
                };
                connection.requests += 1;
                connection.pending = Some(pending);
                match pending.route {
                    Route::Refused(refusal) => {
                        self.counters.refusal(refusal);
                        connection.input.clear();
                    }
                    _ => {
                        let here = (connection.input.len() - head_bytes) as u64;
                        let dropped = body_bytes.min(here);
                        connection.input.drain(..head_bytes + dropped as usize);
                        connection.body_left = body_bytes - dropped;
                    }
                }
                if connection.body_left > 0 && pending.expects_continue {
                    // A client that does not get it sends its body all the same, later.
                    let _ = connection.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
            }
            if connection.body_left > 0 {
                return Ok(RequestOutcome::Keep);
            }
            let fate = self.dispatch(id, connection)?;
            if fate == RequestOutcome::Close {
                return Ok(fate);
            }
        }
    }

    /// Decides on a request that can be read.
    fn pending(&self, request: &ReceivedRequest<'_>) -> Pending {
        if let Some(token) = &self.token {
            if !request.token.is_some_and(|presented| is_equal(presented, token.as_bytes())) {
                return refused(Refusal::NoToken);
            }
        }
        if request.content_length > self.settings.request_body_bytes {
            return refused(Refusal::BodyTooLarge);
        }
        let (route, bytes) = match routes::find(request.target) {
            Ok(matched) => matched,
            Err(refusal) => return refused(refusal),
        };
        Pending {
            route,
            body_bytes: bytes.unwrap_or(self.settings.body_bytes),
            head_only: request.head_only,
            is_old: request.is_old,
            keep_alive: request.keep_alive,
            expects_continue: request.expects_continue,
        }
    }

    /// Answers the pending request, or has it wait for a worker.
    fn dispatch(&mut self, id: u64, connection: &mut ServerConnection) -> Result<RequestOutcome> {
        let now_ns = self.now_ns;
        let route = connection.pending.as_ref().expect("there is one").route;
        if let Some(kind) = route.kind() {
            self.counters.requests[kind] += 1;
        }
        let service = match route {
            Route::Cpu(ns) => WorkKind::Cpu(ns),
            Route::Service(ns) => WorkKind::Time(ns.unwrap_or_else(|| self.times.draw_ns())),
            Route::Stall(ns) => {
                let times = RequestTimes { arrival_ns: now_ns, start_ns: now_ns, end_ns: now_ns };
                let fate = self.send(id, connection, times)?;
                self.queue.delay(self.stalls.begin(now_ns, ns));
                return Ok(fate);
            }
            _ => {
                let end_ns = self.stalls.resume_at(now_ns);
                let times = RequestTimes { arrival_ns: now_ns, start_ns: end_ns, end_ns };
                return self.deliver(id, connection, times);
            }
        };
        connection.waits = true;
        connection.deadline_ns = u64::MAX;
        self.queue.push(id, service, now_ns);
        self.start_jobs()?;
        Ok(RequestOutcome::Keep)
    }
}

/// An answer that refuses a request and closes the connection.
fn refused(refusal: Refusal) -> Pending {
    Pending { route: Route::Refused(refusal), ..Pending::default() }
}
