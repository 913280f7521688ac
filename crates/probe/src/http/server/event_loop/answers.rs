//! How answers leave: at once, in pieces, or after a stall.
use super::*;

impl HttpServer<'_> {
    /// Sends the answer to the pending request, after the stall if there is one.
    pub(super) fn deliver(
        &mut self,
        id: u64,
        connection: &mut ServerConnection,
        times: RequestTimes,
    ) -> Result<RequestOutcome> {
        if self.is_stalled() {
            connection.waits = true;
            connection.deadline_ns = u64::MAX;
            self.withheld.push_back((id, Some(times)));
            return Ok(RequestOutcome::Keep);
        }
        self.send(id, connection, times)
    }

    pub(super) fn send(
        &mut self,
        id: u64,
        connection: &mut ServerConnection,
        times: RequestTimes,
    ) -> Result<RequestOutcome> {
        let pending = connection.pending.take().expect("only a pending request is answered");
        let limit = self.settings.requests_per_connection;
        connection.closes = !pending.keep_alive || limit > 0 && connection.requests >= limit;
        let mut answer = std::mem::take(&mut self.answer);
        let body_bytes = self.compose(&mut answer, &pending, connection.closes);
        let head_bytes = answer.len();
        if body_bytes <= SMALL_BODY_BYTES as u64 {
            answer.extend_from_slice(&self.pattern[..body_bytes as usize]);
        }
        let sent = match connection.stream.write(&answer) {
            Ok(sent) => sent,
            Err(error) if is_wait(&error) => 0,
            Err(_) => {
                self.counters.aborted += 1;
                self.answer = answer;
                return Ok(RequestOutcome::Close);
            }
        };
        self.counters.sent_bytes += sent as u64;
        connection.sending = Some((pending.route.kind(), times));
        connection.keep_unsent(&answer[..head_bytes], body_bytes, sent);
        connection.drains = matches!(pending.route, Route::Refused(_));
        answer.clear();
        self.answer = answer;
        if connection.is_sent() {
            return self.sent(id, connection);
        }
        self.send_rest(id, connection)
    }

    /// Writes head and short texts into `answer`; returns the length of the body that follows.
    fn compose(&self, answer: &mut Vec<u8>, pending: &Pending, closes: bool) -> u64 {
        let (status, text) = match pending.route {
            Route::Refused(refusal) => {
                let (status, _) = refusal.status();
                (status, Some(format!("{status}\n")))
            }
            Route::Sum => {
                let sum: u64 = (1..=100u64).map(std::hint::black_box).sum();
                ("200 OK", Some(format!("{sum}\n")))
            }
            Route::Counters => ("200 OK", Some(format!("{}\n", self.counters.as_json()))),
            _ => ("200 OK", None),
        };
        let body_bytes = text.as_ref().map_or(pending.body_bytes, |text| text.len() as u64);
        let connection = match (closes, pending.is_old) {
            (true, _) => "Connection: close\r\n",
            (false, true) => "Connection: keep-alive\r\n",
            (false, false) => "",
        };
        write!(
            answer,
            "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {body_bytes}\r\n\
             {connection}\r\n"
        )
        .expect("memory takes everything");
        match text {
            _ if pending.head_only => 0,
            Some(text) => {
                answer.extend_from_slice(text.as_bytes());
                0
            }
            None => body_bytes,
        }
    }

    /// Sends more of an answer.
    pub(super) fn send_rest(
        &mut self,
        id: u64,
        connection: &mut ServerConnection,
    ) -> Result<RequestOutcome> {
        if self.is_stalled() {
            self.withheld.push_back((id, None));
            return self.watch(id, connection, 0);
        }
        let Ok(bytes) = connection.send_rest(&self.pattern) else {
            self.counters.aborted += 1;
            return Ok(RequestOutcome::Close);
        };
        self.counters.sent_bytes += bytes;
        if connection.is_sent() {
            return match self.sent(id, connection)? {
                RequestOutcome::Close => Ok(RequestOutcome::Close),
                RequestOutcome::Keep => self.advance(id, connection),
            };
        }
        if bytes > 0 || connection.watched != WRITE {
            connection.deadline_ns = self.now_ns + self.settings.request_timeout_ns;
        }
        self.watch(id, connection, WRITE)
    }

    /// The whole answer is handed to the kernel.
    pub(super) fn sent(
        &mut self,
        id: u64,
        connection: &mut ServerConnection,
    ) -> Result<RequestOutcome> {
        let (kind, times) = connection.sending.take().expect("an answer was being sent");
        if let Some(kind) = kind {
            self.counters.answered[kind] += 1;
            let is_timed = matches!(kind, routes::CPU | routes::SERVICE);
            if is_timed || self.records.keeps_times() {
                let sent_ns = clock::monotonic_ns();
                self.records.add(kind, times, sent_ns);
                if is_timed {
                    let late_ns = sent_ns.saturating_sub(times.end_ns);
                    self.records.late.saturating_record(late_ns.max(1));
                }
            }
        }
        if connection.drains {
            let _ = connection.stream.shutdown(std::net::Shutdown::Write);
            connection.deadline_ns = self.now_ns + DRAIN_NS;
        } else if connection.closes {
            return Ok(RequestOutcome::Close);
        } else {
            connection.deadline_ns = self.now_ns + self.settings.idle_timeout_ns;
        }
        self.watch(id, connection, READ)
    }

    pub(super) fn send_and_advance(
        &mut self,
        id: u64,
        connection: &mut ServerConnection,
        times: RequestTimes,
    ) -> Result<RequestOutcome> {
        match self.send(id, connection, times)? {
            RequestOutcome::Close => Ok(RequestOutcome::Close),
            RequestOutcome::Keep => self.advance(id, connection),
        }
    }

    fn is_stalled(&self) -> bool {
        if !self.stalls.are_possible() {
            return false;
        }
        let now_ns = clock::monotonic_ns();
        self.stalls.resume_at(now_ns) > now_ns
    }
}
