//! Sessions with frames in pieces of any size, and the engine against small servers on loopback.
use super::frame::*;
use super::session::{Http2Session, StreamEvent};
use super::*;
use crate::http::http1::data::DataTable;
use crate::http::http1::expected::Expected;
use crate::http::http1::mix::Mix;
use crate::http::http1::request::Common;
use crate::http::http1::url::Url;
use crate::http::requests::failures::{self, CLOSED_EARLY, ENDLESS_HEADERS, GARBAGE, STREAM_RESET};
use crate::http::requests::tests::{burst, run_with, settings, Server};
use crate::http::requests::EngineSettings;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

const GOOD: &[u8] = &[0x88];
const PREFACE_BYTES: usize = 24;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_head(payload.len(), kind, flags, stream, &mut out);
    out.extend_from_slice(payload);
    out
}

fn start() -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[])
}

fn headers(stream: u32, ends: bool) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | u8::from(ends), stream, GOOD)
}

/// A session with so many open streams; what it has to write is thrown away.
fn session(streams: usize) -> Http2Session {
    let mut session = Http2Session::default();
    session.restart();
    for _ in 0..streams {
        session.open(0, Vec::new());
    }
    session.output.clear();
    session
}

/// The events of `input`, read in pieces as the engine does; then how it ended.
fn events(
    mut session: Http2Session,
    input: &[u8],
    piece: usize,
) -> (Vec<StreamEvent>, Result<(), Failure>) {
    let (expected, mut unread, mut events) = (Expected::default(), Vec::new(), Vec::new());
    for part in input.chunks(piece) {
        unread.extend_from_slice(part);
        loop {
            let (used, event) = match session.read(&expected, &unread) {
                Ok(read) => read,
                Err(failure) => return (events, Err(failure)),
            };
            unread.drain(..used);
            match event {
                None => break,
                Some(StreamEvent::Complete(index)) => {
                    session.end(index);
                    events.push(StreamEvent::Complete(index));
                }
                Some(event) => events.push(event),
            }
        }
    }
    (events, Ok(()))
}

fn failure_of(parts: &[Vec<u8>]) -> Option<Failure> {
    events(session(3), &parts.concat(), 1000).1.err()
}

#[test]
fn responses_are_the_same_however_they_are_split() {
    let padded = [&[3u8][..], b"ab", &[0; 3]].concat();
    let prioritised = [&[1, 0, 0, 0, 0, 5][..], GOOD, &[0]].concat();
    let interim = frame(HEADERS, END_HEADERS, 5, b"\x08\x03103");
    let input = [
        frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100]),
        frame(WINDOW_UPDATE, 0, 0, &[0, 1, 0, 0]),
        // The third request is answered first, with trailers.
        interim,
        headers(5, false),
        frame(PING, 0, 0, &[7; 8]),
        frame(HEADERS, 0, 1, &GOOD[..0]),
        frame(CONTINUATION, END_HEADERS, 1, GOOD),
        frame(DATA, PADDED, 5, &padded),
        frame(DATA, 0, 1, b"xyz"),
        frame(HEADERS, END_HEADERS | END_STREAM, 5, b"\x00\x01a\x01b"),
        frame(HEADERS, END_HEADERS | END_STREAM | PADDED | PRIORITY, 3, &prioritised),
        // Late frames of a stream that has ended, and frames of unknown kinds.
        frame(WINDOW_UPDATE, 0, 3, &[0, 0, 0, 1]),
        frame(99, 255, 77, &[1; 40]),
        frame(DATA, END_STREAM, 1, &[]),
    ]
    .concat();
    let wanted = [
        StreamEvent::Begun(2),
        StreamEvent::Begun(0),
        StreamEvent::Complete(2),
        StreamEvent::Complete(1),
        StreamEvent::Complete(0),
    ];
    for piece in 1..=input.len() {
        let (events, end) = events(session(3), &input, piece);
        assert_eq!((events.as_slice(), end), (&wanted[..], Ok(())), "{piece}");
    }
}

#[test]
fn what_is_no_http2_is_refused() {
    let window = |stream, bytes: u32| frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    for (parts, kind) in [
        (vec![b"HTTP/1.1 400 Bad Request\r\n".to_vec()], GARBAGE),
        (vec![headers(1, true)], GARBAGE),
        (vec![frame(SETTINGS, ACK, 0, &[])], GARBAGE),
        (vec![frame(SETTINGS, 0, 0, &[0; 5])], GARBAGE),
        (vec![frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0])], GARBAGE),
        // Streams that were not opened, or not by this side.
        (vec![start(), headers(7, true)], GARBAGE),
        (vec![start(), headers(2, true)], GARBAGE),
        (vec![start(), frame(DATA, 0, 0, b"x")], GARBAGE),
        (vec![start(), frame(PUSH_PROMISE, 0, 1, &[0; 5])], GARBAGE),
        // A body before its head, a head without a status, two heads.
        (vec![start(), frame(DATA, 0, 1, b"x")], GARBAGE),
        (vec![start(), frame(HEADERS, END_HEADERS, 1, &[])], GARBAGE),
        (vec![start(), headers(1, false), headers(1, true)], GARBAGE),
        (vec![start(), frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x08\x03100")], GARBAGE),
        // More padding than there is.
        (vec![start(), headers(1, false), frame(DATA, PADDED, 1, &[2, 0])], GARBAGE),
        (vec![start(), frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x88])], GARBAGE),
        (vec![start(), frame(CONTINUATION, 0, 1, GOOD)], GARBAGE),
        (vec![start(), frame(HEADERS, 0, 1, GOOD), start()], GARBAGE),
        (vec![start(), frame(PING, 0, 0, &[0; 7])], GARBAGE),
        (vec![start(), window(0, 0)], GARBAGE),
        (vec![start(), window(1, WINDOW_MAX)], GARBAGE),
        (vec![start(), frame(RST_STREAM, 0, 1, &[])], GARBAGE),
        (vec![start(), frame(PING, 0, 0, &[0; 8]).repeat(10_001)], GARBAGE),
        (
            vec![start(), frame(HEADERS, 0, 1, GOOD), frame(CONTINUATION, 0, 1, &[]).repeat(200)],
            ENDLESS_HEADERS,
        ),
        (
            vec![
                start(),
                frame(HEADERS, 0, 1, GOOD),
                frame(CONTINUATION, 0, 1, &[0; 9000]).repeat(9),
            ],
            ENDLESS_HEADERS,
        ),
        (vec![start(), frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 2])], failures::GOAWAY),
        // Turned away before any response.
        (vec![start(), frame(GOAWAY, 0, 0, &[0; 8])], failures::GOAWAY),
    ] {
        assert_eq!(failure_of(&parts), Some(kind), "{parts:?}");
    }
}

#[test]
fn the_windows_of_the_server_limit_a_body() {
    let (mut session, mut out) = (session(0), Vec::new());
    session.open(0, vec![7; 100_000]);
    session.streams.send_body(0, &mut out);
    assert_eq!(out.len(), 65_535 + 4 * HEAD_BYTES);
    let grow = |stream: u32, bytes: u32| frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
    let mut sent_after = |bytes: &[u8]| {
        session.output.clear();
        session.read(&Expected::default(), bytes).unwrap();
        session.output.len()
    };
    assert_eq!(sent_after(&start()), HEAD_BYTES);
    assert_eq!(sent_after(&grow(0, 1000)), 0);
    assert_eq!(sent_after(&grow(1, 10)), 10 + HEAD_BYTES);
    // A smaller window of new streams makes that of open ones negative.
    assert_eq!(sent_after(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])), HEAD_BYTES);
    assert_eq!(sent_after(&grow(1, 65_535)), 0);
    assert_eq!(sent_after(&grow(1, 5)), 5 + HEAD_BYTES);
    // A response before the end of the body ends the stream.
    assert_eq!(sent_after(&headers(1, true)), 0);
    assert!(session.end(0).is_some() && session.output.len() == 4 + HEAD_BYTES);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(
        kinds in proptest::collection::vec((0u8..11, any::<u8>(), 0u32..8,
            proptest::collection::vec(any::<u8>(), 0..20)), 0..20),
        piece in 1usize..40,
    ) {
        let frames = kinds.iter().map(|(kind, flags, stream, bytes)| frame(*kind, *flags, *stream, bytes));
        let input = [start()].into_iter().chain(frames).collect::<Vec<_>>().concat();
        let whole = events(session(3), &input, input.len());
        prop_assert_eq!(events(session(3), &input, piece), whole);
    }
}

fn http2(
    method: &'static str,
    body: &'static str,
    expected: &'static str,
) -> impl Fn(usize) -> Http2 {
    let url = Url::parse("http://test/").unwrap();
    let headers = ["X-Own: value"];
    let common =
        Common { url: &url, headers: &headers, keeps_alive: true, is_http2: true, columns: &[] };
    let mix = Arc::new(Mix::of_one(&common, method, "/", body, DataTable::default()).unwrap());
    let expected = Arc::new(Expected::containing(expected.as_bytes()));
    move |_| Http2(Http::new(&mix, &expected, 0, 1, 3))
}

fn read_frame(stream: &mut TcpStream) -> Option<(FrameHead, Vec<u8>)> {
    let mut bytes = [0; HEAD_BYTES];
    stream.read_exact(&mut bytes).ok()?;
    let head = FrameHead::read(&bytes).unwrap()?;
    let mut payload = vec![0; head.length];
    stream.read_exact(&mut payload).ok()?;
    Some((head, payload))
}

/// Answers the header block of each request, numbered on its connection, by what `answer` returns.
fn server(
    settings: &'static [u8],
    answer: impl Fn(usize, u32, &[u8]) -> Vec<u8> + Send + Sync + 'static,
) -> Server {
    Server::start(move |mut stream| {
        let mut preface = [0; PREFACE_BYTES];
        let begun = stream.read_exact(&mut preface).is_ok();
        let _ = stream.write_all(&frame(SETTINGS, 0, 0, settings));
        let mut count = 0;
        while let Some((head, payload)) = read_frame(&mut stream).filter(|_| begun) {
            if head.kind == HEADERS {
                count += 1;
                if stream.write_all(&answer(count, head.stream, &payload)).is_err() {
                    return;
                }
            }
        }
    })
}

fn good(stream: u32) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, stream, b"\x88\x0f\x0d\x012");
    [head, frame(DATA, END_STREAM, stream, b"ok")].concat()
}

/// What an open loop of ten requests meets, each on a connection of its own.
fn failures_of(server: &Server) -> Vec<(Failure, u64)> {
    let settings = EngineSettings { pacing: burst(10), ..settings(server.address) };
    let recorder = run_with(&settings, &http2("GET", "", "ok"));
    assert_eq!(recorder.completed + recorder.failed_in_all(), 10);
    recorder.failures.into_iter().collect()
}

#[test]
fn streams_are_answered_in_any_order() {
    // Pairs of requests are answered in the wrong order, and the server takes four at once of eight.
    let server = server(&[0, 3, 0, 0, 0, 4], |number, stream, _| match number % 2 {
        1 => Vec::new(),
        _ => [good(stream), good(stream - 2)].concat(),
    });
    let settings = EngineSettings { depth: 8, connections: 1, ..settings(server.address) };
    let recorder =
        run_with(&EngineSettings { pacing: burst(8), ..settings }, &http2("GET", "", "ok"));
    assert_eq!((recorder.sent, recorder.completed, recorder.failed_in_all()), (8, 8, 0));
    assert_eq!((recorder.first_byte.len(), recorder.connections), (8, 1));
}

#[test]
fn requests_after_the_last_one_of_a_connection_are_sent_on_another() {
    // As nginx does after so many requests: the rest is ignored.
    let server = server(&[], |number, stream, _| match number {
        1..=9 => good(stream),
        10 => {
            let last = [&stream.to_be_bytes()[..], &[0; 4]].concat();
            [frame(GOAWAY, 0, 0, &last), good(stream)].concat()
        }
        _ => Vec::new(),
    });
    let settings = EngineSettings { depth: 4, connections: 1, ..settings(server.address) };
    let recorder = run_with(&settings, &http2("GET", "", "ok"));
    assert!(recorder.failures.is_empty() && recorder.completed > 0);
    assert_eq!(recorder.sent, recorder.completed);
    assert_eq!(recorder.connections, recorder.completed.div_ceil(10));
}

#[test]
fn hostile_answers_are_counted_by_kind() {
    let reset = |stream: u32| frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    let short =
        |stream: u32| frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x88\x0f\x0d\x012");
    let wrong = |stream: u32| frame(HEADERS, END_HEADERS | END_STREAM, stream, GOOD);
    let status = |stream: u32| frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x08\x03503");
    let endless = |stream: u32| {
        let more = frame(CONTINUATION, 0, stream, &[0; 1000]).repeat(100);
        [frame(HEADERS, 0, stream, GOOD), more].concat()
    };
    let away = |_| frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 11]);
    let garbage = |_| b"SSH-2.0-OpenSSH_9.2\r\n".to_vec();
    type Answer = fn(u32) -> Vec<u8>;
    let answers: [(Answer, Failure); 7] = [
        (reset, STREAM_RESET),
        (short, WRONG_LENGTH),
        (wrong, "wrong_body"),
        (status, "status_5xx"),
        (endless, ENDLESS_HEADERS),
        (away, failures::GOAWAY),
        (garbage, GARBAGE),
    ];
    for (answer, kind) in answers {
        let server = server(&[], move |_, stream, _| answer(stream));
        assert_eq!(failures_of(&server), [(kind, 10)]);
    }
    let closing = Server::start(|mut stream: TcpStream| {
        let _ = stream.read_exact(&mut [0; PREFACE_BYTES]);
        while read_frame(&mut stream).is_some_and(|(head, _)| head.kind != HEADERS) {}
    });
    assert_eq!(failures_of(&closing), [(CLOSED_EARLY, 10)]);
}

#[test]
fn a_stream_without_an_answer_times_out_and_the_others_go_on() {
    // The first request of the only connection is never answered.
    let server = server(&[], |number, stream, _| if number == 1 { vec![] } else { good(stream) });
    let timeout_ns = 30_000_000;
    let settings =
        EngineSettings { depth: 2, connections: 1, timeout_ns, ..settings(server.address) };
    let recorder = run_with(&settings, &http2("GET", "", "ok"));
    assert!(recorder.completed > 0 && recorder.failures.keys().eq([&failures::TIMEOUT]));
    assert!(recorder.classes[0].latency.max() >= timeout_ns);
    let mut session = session(2);
    assert!(session.cancel_oldest());
    assert_eq!(session.output, frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]));
    // What comes of it all the same is ignored.
    let input = [start(), headers(1, true), headers(3, true)].concat();
    assert_eq!(events(session, &input, 10), (vec![StreamEvent::Complete(0)], Ok(())));
}

#[test]
fn a_window_that_is_never_opened_is_a_timeout() {
    // No byte of a body may be sent, and the server waits for it.
    let server = server(&[0, 4, 0, 0, 0, 0], |_, _, _| Vec::new());
    let timeout_ns = 30_000_000;
    let settings = EngineSettings { pacing: burst(4), timeout_ns, ..settings(server.address) };
    let recorder = run_with(&settings, &http2("POST", "body", ""));
    assert_eq!((recorder.completed, recorder.failed_in_all()), (0, 4));
    assert!(recorder
        .failures
        .keys()
        .all(|kind| [failures::TIMEOUT, failures::UNSENT].contains(kind)));
}

#[test]
fn shared_fields_are_sent_once_unless_the_server_keeps_no_table() {
    let mut protocol = http2("GET", "", "")(0);
    let mut session = session(0);
    let mut encode = |session: &mut Http2Session| {
        let mut out = Vec::new();
        protocol.encode(session, &mut out);
        out.split_off(HEAD_BYTES)
    };
    let (first, second) = (encode(&mut session), encode(&mut session));
    let path = [0x82, 0x86, 0x04, 1, b'/'];
    assert!(
        first.starts_with(&path) && first[5..].starts_with(b"\x41\x04test\x40\x05x-own\x05value")
    );
    assert_eq!(second, [&path[..], &[0xc0, 0xbf, 0xbe]].concat());
    let no_table = frame(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0]);
    session.read(&Expected::default(), &no_table).unwrap();
    let (third, fourth) = (encode(&mut session), encode(&mut session));
    assert_eq!(third, [&[0x20][..], &fourth].concat());
    assert!(fourth[5..].starts_with(b"\x01\x04test\x00\x05x-own\x05value"));
}

#[test]
fn headers_of_http1_connections_are_refused() {
    let url = Url::parse("http://test/").unwrap();
    let headers = ["Connection: close"];
    let common =
        Common { url: &url, headers: &headers, keeps_alive: true, is_http2: true, columns: &[] };
    let refused = Mix::of_one(&common, "GET", "/", "", DataTable::default()).unwrap_err();
    assert_eq!(refused, "HTTP/2 has no header 'connection'.");
}

#[test]
fn a_long_header_block_is_continued() {
    let mut out = vec![0; 3 + HEAD_BYTES];
    out.extend_from_slice(&[b'x'; 2 * PAYLOAD_BYTES + 5]);
    close_headers(3, END_STREAM, 1, &mut out);
    let (mut rest, mut seen) = (&out[3..], Vec::new());
    while let Some(head) = FrameHead::read(rest).unwrap() {
        seen.push((head.kind, head.flags, head.length));
        rest = &rest[HEAD_BYTES + head.length..];
    }
    assert_eq!(
        seen,
        [
            (HEADERS, END_STREAM, PAYLOAD_BYTES),
            (CONTINUATION, 0, PAYLOAD_BYTES),
            (CONTINUATION, END_HEADERS, 5)
        ]
    );
}
