//! The head of an HTTP/1.1 request (RFC 9112), read from bytes that anybody may have sent.
use crate::http::decimal;

/// Longest head that is read.
pub const HEAD_MAX: usize = 8192;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedRequest<'a> {
    /// Whether the answer has no body.
    pub head_only: bool,
    pub target: &'a str,
    pub keep_alive: bool,
    /// A client of HTTP/1.0, which has to be told that the connection stays open.
    pub is_old: bool,
    /// Length of the body that follows.
    pub content_length: u64,
    /// Whether the client waits for permission to send its body.
    pub expects_continue: bool,
    /// What the client presents as its token.
    pub token: Option<&'a [u8]>,
    /// Length of the head with its empty line.
    pub head_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedRequest<'a> {
    /// More bytes are needed.
    Incomplete,
    Complete(ReceivedRequest<'a>),
    Refused(Refusal),
}

/// Why a request is refused; the connection is closed after the answer unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Malformed,
    NoToken,
    UnknownPath,
    UnknownMethod,
    LengthRequired,
    BodyTooLarge,
    HeadTooLarge,
    UnknownVersion,
}

impl Refusal {
    /// In the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Malformed,
        Self::NoToken,
        Self::UnknownPath,
        Self::UnknownMethod,
        Self::LengthRequired,
        Self::BodyTooLarge,
        Self::HeadTooLarge,
        Self::UnknownVersion,
    ];

    /// Returns the status line's end and the name under which it is counted.
    pub fn status(self) -> (&'static str, &'static str) {
        match self {
            Self::Malformed => ("400 Bad Request", "malformed"),
            Self::NoToken => ("401 Unauthorized", "no_token"),
            Self::UnknownPath => ("404 Not Found", "unknown_path"),
            Self::UnknownMethod => ("501 Not Implemented", "unknown_method"),
            Self::LengthRequired => ("411 Length Required", "length_required"),
            Self::BodyTooLarge => ("413 Content Too Large", "body_too_large"),
            Self::HeadTooLarge => ("431 Request Header Fields Too Large", "head_too_large"),
            Self::UnknownVersion => ("505 HTTP Version Not Supported", "unknown_version"),
        }
    }
}

/// Reads the head at the beginning of `bytes`. More bytes change only an answer `Incomplete`.
pub fn parse(bytes: &[u8]) -> ParsedRequest<'_> {
    match read_head(bytes) {
        Ok(Some(request)) => ParsedRequest::Complete(request),
        Ok(None) => ParsedRequest::Incomplete,
        Err(refusal) => ParsedRequest::Refused(refusal),
    }
}

fn read_head(bytes: &[u8]) -> Result<Option<ReceivedRequest<'_>>, Refusal> {
    let mut lines = HeadLines { bytes, at: 0 };
    // Old clients send an empty line after a body.
    while bytes[lines.at..].first().is_some_and(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.at += 1;
        if lines.at > 4 {
            return Err(Refusal::Malformed);
        }
    }
    // Binary data, such as the greeting of TLS, is refused before a line ends.
    if bytes[lines.at..].first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
        return Err(Refusal::Malformed);
    }
    let Some(line) = lines.next()? else { return Ok(None) };
    let mut request = read_request_line(line)?;
    let mut fields = FieldsRead::default();
    loop {
        let Some(line) = lines.next()? else { return Ok(None) };
        if line.is_empty() {
            break;
        }
        fields.read(line, &mut request)?;
    }
    if fields.is_chunked && fields.has_length || !request.is_old && !fields.has_host {
        return Err(Refusal::Malformed);
    }
    if fields.is_chunked {
        return Err(Refusal::LengthRequired);
    }
    request.head_bytes = lines.at;
    Ok(Some(request))
}

struct HeadLines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> HeadLines<'a> {
    /// Returns the next line without its end; `None` where it has not come yet.
    fn next(&mut self) -> Result<Option<&'a [u8]>, Refusal> {
        let rest = &self.bytes[self.at..];
        let Some(length) = rest.iter().position(|byte| *byte == b'\n') else {
            return if self.bytes.len() >= HEAD_MAX {
                Err(Refusal::HeadTooLarge)
            } else {
                Ok(None)
            };
        };
        if self.at + length >= HEAD_MAX {
            return Err(Refusal::HeadTooLarge);
        }
        self.at += length + 1;
        let line = &rest[..length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.iter().any(|byte| matches!(byte, b'\r' | 0)) {
            return Err(Refusal::Malformed);
        }
        Ok(Some(line))
    }
}

fn read_request_line(line: &[u8]) -> Result<ReceivedRequest<'_>, Refusal> {
    let line = std::str::from_utf8(line).map_err(|_| Refusal::Malformed)?;
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refusal::Malformed);
    };
    let is_old = match version {
        "HTTP/1.1" => false,
        "HTTP/1.0" => true,
        _ if version.starts_with("HTTP/") => return Err(Refusal::UnknownVersion),
        _ => return Err(Refusal::Malformed),
    };
    if target.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return Err(Refusal::Malformed);
    }
    if !matches!(method, "GET" | "HEAD" | "POST" | "PUT") {
        return Err(Refusal::UnknownMethod);
    }
    Ok(ReceivedRequest {
        head_only: method == "HEAD",
        target,
        keep_alive: !is_old,
        is_old,
        content_length: 0,
        expects_continue: false,
        token: None,
        head_bytes: 0,
    })
}

/// What the fields that were read so far say about the others.
#[derive(Default)]
struct FieldsRead {
    has_host: bool,
    has_length: bool,
    is_chunked: bool,
}

impl FieldsRead {
    fn read<'a>(
        &mut self,
        line: &'a [u8],
        request: &mut ReceivedRequest<'a>,
    ) -> Result<(), Refusal> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(Refusal::Malformed)?;
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        let is_sound = |byte: &u8| byte.is_ascii_graphic();
        if name.is_empty() || !name.iter().all(is_sound) {
            return Err(Refusal::Malformed);
        }
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted.as_bytes());
        match name.len() {
            4 if is("host") => {
                if self.has_host {
                    return Err(Refusal::Malformed);
                }
                self.has_host = true;
            }
            6 if is("expect") => {
                request.expects_continue |= value.eq_ignore_ascii_case(b"100-continue");
            }
            10 if is("connection") => {
                for word in value.split(|byte| *byte == b',') {
                    let word = word.trim_ascii();
                    if word.eq_ignore_ascii_case(b"close") {
                        request.keep_alive = false;
                    } else if word.eq_ignore_ascii_case(b"keep-alive") && request.is_old {
                        request.keep_alive = true;
                    }
                }
            }
            13 if is("authorization") => request.token = value.strip_prefix(b"Bearer "),
            14 if is("content-length") => {
                let length = read_number(value)?;
                if self.has_length && length != request.content_length {
                    return Err(Refusal::Malformed);
                }
                self.has_length = true;
                request.content_length = length;
            }
            17 if is("transfer-encoding") => self.is_chunked = true,
            _ => {}
        }
        Ok(())
    }
}

/// Returns a length; one with more digits than any body has is too large, not malformed.
fn read_number(digits: &[u8]) -> Result<u64, Refusal> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    decimal::parse(digits).ok_or(if is_number { Refusal::BodyTooLarge } else { Refusal::Malformed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_wire::random::Random;

    fn refusal(text: &str) -> Option<Refusal> {
        match parse(text.as_bytes()) {
            ParsedRequest::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    fn complete(text: &str) -> ReceivedRequest<'_> {
        match parse(text.as_bytes()) {
            ParsedRequest::Complete(request) => request,
            incomplete => panic!("{text}: {incomplete:?}"),
        }
    }

    #[test]
    fn requests_of_known_clients_are_read() {
        let get =
            complete("GET /bytes/5?x=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer t\r\n\r\nX");
        assert_eq!((get.target, get.keep_alive, get.head_only), ("/bytes/5?x=1", true, false));
        assert_eq!((get.token, get.content_length), (Some(&b"t"[..]), 0));
        let ab = complete("HEAD / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n");
        assert!(ab.keep_alive && ab.is_old && ab.head_only);
        assert!(!complete("GET / HTTP/1.0\n\n").keep_alive);
        let post = "\r\nPOST / HTTP/1.1\r\nhost:a\r\ncontent-length: 7\r\nExpect: 100-continue\r\n\
                    connection: close\r\n\r\n";
        let post = complete(post);
        assert!(post.expects_continue && !post.keep_alive);
        assert_eq!(post.content_length, 7);
    }

    #[test]
    fn bad_requests_are_refused_by_kind() {
        let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(HEAD_MAX));
        for (text, wanted) in [
            ("\x16\x03\x01", Refusal::Malformed),
            ("get / HTTP/1.1\r\n", Refusal::Malformed),
            ("GET /\r\n", Refusal::Malformed),
            ("GET  / HTTP/1.1\r\n", Refusal::Malformed),
            ("GET / HTTP/2.0\r\n", Refusal::UnknownVersion),
            ("GET / XTTP/1.1\r\n", Refusal::Malformed),
            ("BREW / HTTP/1.1\r\n", Refusal::UnknownMethod),
            ("GET / HTTP/1.1\r\n\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nHost : a\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nno colon\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nContent-Length: -1\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n", Refusal::Malformed),
            ("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n", Refusal::BodyTooLarge),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
                Refusal::LengthRequired,
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: x\r\n\r\n",
                Refusal::Malformed,
            ),
            (long.as_str(), Refusal::HeadTooLarge),
        ] {
            assert_eq!(refusal(text), Some(wanted), "{text}");
        }
    }

    /// Mutates valid requests; the result may not depend on how the bytes are cut into reads.
    #[test]
    fn the_result_does_not_depend_on_how_the_bytes_arrive() {
        const SEEDS: [&[u8]; 3] = [
            b"GET /bytes/5 HTTP/1.1\r\nHost: a\r\nUser-Agent: wrk\r\n\r\n",
            b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 12\r\n\r\nbody",
            b"HEAD /sum?bytes=7 HTTP/1.1\nHost: [::1]:80\nAuthorization: Bearer token\n\n",
        ];
        const INSERTED: &[u8] = b"\r\n\0 :,/AGa09\xff";
        let mut random = Random::new(11);
        let mut complete = 0;
        for case in 0..4000 {
            let mut bytes = SEEDS[case % SEEDS.len()].to_vec();
            for _ in 0..random.below(4) {
                let at = random.below(bytes.len() as u64) as usize;
                let byte = INSERTED[random.below(INSERTED.len() as u64) as usize];
                match random.below(3) {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => _ = bytes.remove(at),
                }
            }
            let whole = parse(&bytes);
            complete += u32::from(matches!(whole, ParsedRequest::Complete(_)));
            for end in 0..bytes.len() {
                let part = parse(&bytes[..end]);
                assert!(part == ParsedRequest::Incomplete || part == whole, "{end} of {bytes:?}");
            }
        }
        assert!(complete > 1000, "{complete}");
    }
}
