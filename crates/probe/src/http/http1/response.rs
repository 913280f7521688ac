//! Reads responses from bytes that come in pieces of any size. Memory is bounded: a head is kept until
//! it is whole, a body never.
use super::body::Framing;
use super::cookies::Cookies;
use super::expected::{BodyCheck, Expected};
use crate::http::decimal;
use crate::http::requests::failures::{Failure, ENDLESS_HEADERS, GARBAGE, WRONG_BODY};
use httparse::{Header, ParserConfig, Status};
use std::mem::{take, MaybeUninit};

/// Longest head of a response, those of interim responses before it included.
const HEAD_BYTES: usize = 64 << 10;
const HEADERS: usize = 128;

#[derive(Clone, Debug, Default)]
pub struct ResponseReader {
    /// How much of the body is to come; `None` while the head is.
    body: Option<Framing>,
    status: u16,
    keeps_alive: bool,
    /// Bytes of this head that were looked at in vain, and bytes of interim heads before it.
    scanned: usize,
    interim: usize,
    check: BodyCheck,
    /// What the user of this connection got; nothing unless cookies are kept.
    cookies: Option<Box<Cookies>>,
}

impl ResponseReader {
    /// Begins with a new connection of the same user.
    pub fn restart(&mut self) {
        *self = Self { cookies: take(&mut self.cookies), ..Self::default() };
    }

    /// The value of the Cookie header; empty where there is none.
    #[inline]
    pub fn cookies(&self) -> &str {
        self.cookies.as_ref().map_or("", |cookies| &cookies.header)
    }

    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn keeps_alive(&self) -> bool {
        self.keeps_alive
    }

    /// Whether the end of the connection is the end of the response.
    pub fn ends_with_connection(&self) -> bool {
        self.body == Some(Framing::UntilClose)
    }

    /// Reads on. Returns the number of bytes used and whether the response is whole. is_head: whether
    /// it answers a HEAD request and has no body.
    #[inline]
    pub fn read(
        &mut self,
        expected: &Expected,
        is_head: bool,
        bytes: &[u8],
    ) -> Result<(usize, bool), Failure> {
        let mut used = 0;
        while self.body.is_none() {
            let Some(count) = self.read_head(expected, is_head, &bytes[used..])? else {
                return Ok((used, false));
            };
            used += count;
        }
        let check = &mut self.check;
        let framing = self.body.as_mut().expect("the head has been read");
        used += framing.take(&bytes[used..], |data| check.add(expected, data))?;
        Ok((used, *framing == Framing::Complete))
    }

    /// Ends the response; returns why it is not the expected one. The next one may begin.
    #[inline]
    pub fn finish(&mut self, expected: &Expected) -> Option<Failure> {
        let mut check = take(&mut self.check);
        self.body = None;
        self.interim = 0;
        let passes = check.passes(expected);
        expected.refuses(self.status).or((!passes).then_some(WRONG_BODY))
    }

    /// Returns the length of the head, once it is whole.
    fn read_head(
        &mut self,
        expected: &Expected,
        is_head: bool,
        bytes: &[u8],
    ) -> Result<Option<usize>, Failure> {
        if self.scanned > 0 && !ends_head(bytes, self.scanned) {
            self.scanned = bytes.len();
            return self.check_length(bytes.len()).map(|()| None);
        }
        let mut headers = [const { MaybeUninit::<Header>::uninit() }; HEADERS];
        let mut head = httparse::Response::new(&mut []);
        let parsed = ParserConfig::default().parse_response_with_uninit_headers(
            &mut head,
            bytes,
            &mut headers,
        );
        match parsed {
            Ok(Status::Complete(length)) => {
                self.scanned = 0;
                self.check_length(length)?;
                self.note_head(&head, is_head)?;
                if expected.keep_cookies {
                    self.note_cookies(&head);
                }
                if self.body.is_none() {
                    self.interim += length;
                }
                Ok(Some(length))
            }
            Ok(Status::Partial) => {
                self.scanned = bytes.len();
                self.check_length(bytes.len()).map(|()| None)
            }
            Err(httparse::Error::TooManyHeaders) => Err(ENDLESS_HEADERS),
            Err(_) => Err(GARBAGE),
        }
    }

    fn check_length(&self, bytes: usize) -> Result<(), Failure> {
        if self.interim + bytes > HEAD_BYTES {
            return Err(ENDLESS_HEADERS);
        }
        Ok(())
    }

    fn note_cookies(&mut self, head: &httparse::Response) {
        for header in head.headers.iter() {
            if header.name.eq_ignore_ascii_case("set-cookie") {
                self.cookies.get_or_insert_default().set(header.value);
            }
        }
    }

    fn note_head(&mut self, head: &httparse::Response, is_head: bool) -> Result<(), Failure> {
        let status = head.code.ok_or(GARBAGE)?;
        match status {
            // Nobody asked for another protocol.
            101 => return Err(GARBAGE),
            100..=199 => return Ok(()),
            _ => {}
        }
        self.status = status;
        self.keeps_alive = head.version == Some(1);
        let (mut length, mut encoded, mut chunked) = (None, false, false);
        for header in head.headers.iter() {
            match header.name.len() {
                10 if header.name.eq_ignore_ascii_case("connection") => {
                    for word in words(header.value) {
                        if word.eq_ignore_ascii_case(b"close") {
                            self.keeps_alive = false;
                        } else if word.eq_ignore_ascii_case(b"keep-alive") {
                            self.keeps_alive = true;
                        }
                    }
                }
                14 if header.name.eq_ignore_ascii_case("content-length") => {
                    let value = decimal::parse(header.value).ok_or(GARBAGE)?;
                    if length.is_some_and(|length| length != value) {
                        return Err(GARBAGE);
                    }
                    length = Some(value);
                }
                17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                    encoded = true;
                    let last = words(header.value).last();
                    chunked = last.is_some_and(|word| word.eq_ignore_ascii_case(b"chunked"));
                }
                _ => {}
            }
        }
        self.body = Some(match length {
            _ if is_head || matches!(status, 204 | 304) => Framing::Complete,
            _ if chunked => Framing::ChunkSize,
            Some(length) if !encoded => Framing::Length(length),
            _ => {
                self.keeps_alive = false;
                Framing::UntilClose
            }
        });
        Ok(())
    }
}

/// Whether an empty line is in `bytes`, of which those before `scanned` have none.
fn ends_head(bytes: &[u8], scanned: usize) -> bool {
    let rest = &bytes[scanned.saturating_sub(3).min(bytes.len())..];
    rest.windows(2).any(|pair| pair == b"\n\n") || rest.windows(3).any(|three| three == b"\n\r\n")
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The responses in `input`, read in pieces: status, and bytes of the body; then how it ended.
    fn read(input: &[u8], pieces: impl Iterator<Item = usize>, is_head: bool) -> Vec<String> {
        let mut expected = Expected::default();
        expected.statuses = (200..600).collect();
        let (mut reader, mut unread, mut outcomes) =
            (ResponseReader::default(), Vec::new(), Vec::new());
        let mut rest = input;
        for piece in pieces {
            let (part, later) = rest.split_at(piece.clamp(1, rest.len().max(1)).min(rest.len()));
            rest = later;
            unread.extend_from_slice(part);
            while !unread.is_empty() {
                match reader.read(&expected, is_head, &unread) {
                    Ok((used, whole)) => {
                        unread.drain(..used);
                        if !whole {
                            break;
                        }
                        let keeps = if reader.keeps_alive() { "" } else { " close" };
                        outcomes.push(format!("{}{keeps}", reader.status()));
                        assert_eq!(reader.finish(&expected), None);
                    }
                    Err(failure) => {
                        outcomes.push(failure.to_owned());
                        return outcomes;
                    }
                }
            }
            if rest.is_empty() {
                break;
            }
        }
        if reader.ends_with_connection() {
            outcomes.push(format!("{} at close", reader.status()));
        } else if reader.body.is_some() || !unread.is_empty() {
            outcomes.push("more".to_owned());
        }
        outcomes
    }

    fn check(input: &str, wanted: &[&str]) {
        for piece in 1..=input.len() {
            assert_eq!(read(input.as_bytes(), std::iter::repeat(piece), false), wanted, "{piece}");
        }
    }

    #[test]
    fn responses_are_the_same_however_they_are_split() {
        let first = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let second =
            "HTTP/1.1 503 \r\ntransfer-encoding: gzip, Chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        check(&format!("{first}{second}{first}"), &["200", "503", "200"]);
        check(
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\nContent-Length: 9\r\n\r\n",
            &["204"],
        );
        check("HTTP/1.1 304 x\r\nConnection: a, Close\r\n\r\n", &["304 close"]);
        check("HTTP/1.0 200 x\r\nContent-Length: 0\r\n\r\n", &["200 close"]);
        check("HTTP/1.0 200 x\nConnection: Keep-Alive\nContent-Length: 0\n\n", &["200"]);
        check("HTTP/1.1 200 x\r\n\r\nabc", &["200 at close"]);
        check("HTTP/1.1 200 x\r\nContent-Length: 4\r\n\r\nabc", &["more"]);
    }

    #[test]
    fn a_response_to_head_has_no_body() {
        let input = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        assert_eq!(read(input, std::iter::repeat(7), true), ["200"]);
    }

    #[test]
    fn what_is_no_response_is_refused() {
        for text in [
            "hello, I am no server\r\n\r\n",
            "\u{1}\u{2}",
            "HTTP/2.0 200 OK\r\n\r\n",
            "HTTP/1.1 99999\r\n\r\n",
            "HTTP/1.1 101 Switching\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
        ] {
            check(text, &[GARBAGE]);
        }
    }

    #[test]
    fn endless_heads_are_refused() {
        let line = "X-Filler: 0123456789012345678901234567890123456789\r\n";
        let long_line = format!("HTTP/1.1 200 OK\r\nX: {}", "x".repeat(HEAD_BYTES));
        let many = format!("HTTP/1.1 200 OK\r\n{}", line.repeat(HEAD_BYTES / line.len() + 1));
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(HEAD_BYTES / 20);
        for text in [long_line, many, interim] {
            for piece in [1, 1000, text.len()] {
                let seen = read(text.as_bytes(), std::iter::repeat(piece), false);
                assert_eq!(seen, [ENDLESS_HEADERS]);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_bytes_are_read_or_refused(
            input in proptest::collection::vec(any::<u8>(), 0..300),
            head in proptest::bool::ANY,
        ) {
            let start = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            let input = if head { [&start[..], &input].concat() } else { input };
            read(&input, std::iter::repeat(7), false);
        }

        #[test]
        fn splits_change_nothing(
            sizes in proptest::collection::vec((0usize..300, proptest::bool::ANY), 1..6),
            pieces in proptest::collection::vec(1usize..50, 1..20),
        ) {
            let mut input = Vec::new();
            for (size, chunked) in &sizes {
                let body = "b".repeat(*size);
                let response = if *chunked && *size > 0 {
                    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{size:x}\r\n{body}\r\n0\r\n\r\n")
                } else {
                    format!("HTTP/1.1 201 Made\r\nContent-Length: {size}\r\n\r\n{body}")
                };
                input.extend_from_slice(response.as_bytes());
            }
            let whole = read(&input, std::iter::repeat(input.len()), false);
            prop_assert_eq!(whole.len(), sizes.len());
            prop_assert_eq!(read(&input, pieces.into_iter().cycle(), false), whole);
        }
    }
}
