//! The engine against small servers on loopback: what is counted, not how fast it was.
use super::arrivals::{RateProfile, SendSchedule};
use super::failures::Failure;
use super::tls::TlsClient;
use super::*;
use crate::http::http1::data::DataTable;
use crate::http::http1::expected::Expected;
use crate::http::http1::mix::Mix;
use crate::http::http1::request::Common;
use crate::http::http1::url::Url;
use crate::http::http1::Http;
use crate::trial::session::Session;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers each connection by a function on a thread of its own, until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub fn start(answer: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let (stopped, answer) = (Arc::clone(&stop), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || answer(stream));
            }
        });
        Self { address, stop }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

/// Reads a request, up to its empty line; false at the end of the connection.
fn read_request(stream: &mut TcpStream) -> bool {
    let mut last = [0u8; 4];
    loop {
        let mut byte = [0u8];
        if !matches!(stream.read(&mut byte), Ok(1)) {
            return false;
        }
        last.rotate_left(1);
        last[3] = byte[0];
        if &last == b"\r\n\r\n" {
            return true;
        }
    }
}

/// Writes `response` to each request of a connection.
fn repeat(response: &'static [u8]) -> impl Fn(TcpStream) + Send + Sync + 'static {
    move |mut stream| {
        while read_request(&mut stream) && stream.write_all(response).is_ok() {}
    }
}

/// Writes `response` to the first request and closes.
fn once(response: Vec<u8>) -> impl Fn(TcpStream) + Send + Sync + 'static {
    move |mut stream| {
        read_request(&mut stream);
        let _ = stream.write_all(&response);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

pub fn settings(address: SocketAddr) -> EngineSettings {
    EngineSettings {
        address,
        tls: None,
        share: LoadShare::WHOLE,
        connections: 10,
        threads: vec![None],
        depth: 1,
        connect_ahead: true,
        pacing: Pacing::Closed(Think { mean_ns: 0, exponential: false }),
        warmup_ns: 0,
        duration_ns: 60_000_000,
        timeout_ns: 20_000_000_000,
        interval_ns: 20_000_000,
        spin_ns: 0,
        response_spin_ns: 0,
        seed: 3,
    }
}

/// Times that are set in advance: `count` requests, a microsecond apart.
pub fn burst(count: u64) -> Pacing {
    Pacing::Open(SendSchedule::Times((0..count).map(|index| index * 1000).collect()))
}

fn http(keeps_alive: bool) -> impl Fn(usize) -> Http {
    let url = Url::parse("http://test/").unwrap();
    let common = Common { url: &url, headers: &[], keeps_alive, is_http2: false, columns: &[] };
    let mix = Arc::new(Mix::of_one(&common, "GET", "/", "", DataTable::default()).unwrap());
    let expected = Arc::new(Expected::default());
    move |_| Http::new(&mix, &expected, 0, 1, 3)
}

/// The engine without a trial: one thread.
pub fn run_with<P: Protocol>(settings: &EngineSettings, protocol: &dyn Fn(usize) -> P) -> Recorder {
    let gate = Gate::new(Session::detached(), 1);
    let (sender, _intervals) = mpsc::channel();
    let worker = EngineWorker::new(settings, Session::detached(), 0, protocol(0), sender).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| worker.run(&gate));
        gate.open(|| Ok(())).unwrap();
        thread.join().unwrap().unwrap().0
    })
}

fn run_keeping_alive(settings: &EngineSettings) -> Recorder {
    run_with(settings, &http(true))
}

/// What an open loop of ten requests meets, each on a connection of its own.
fn failures_of(server: &Server) -> Vec<(Failure, u64)> {
    let settings = EngineSettings { pacing: burst(10), ..settings(server.address) };
    let recorder = run_keeping_alive(&settings);
    assert_eq!(recorder.completed + recorder.failed_in_all(), 10);
    recorder.failures.into_iter().collect()
}

#[test]
fn a_closed_loop_counts_what_the_server_counts() {
    // Asleep while it waits, and busy.
    for (cpu, response_spin_ns) in [(None, 0), (Some(0), 50_000)] {
        let served = Arc::new(Mutex::new(0u64));
        let count = Arc::clone(&served);
        let server = Server::start(move |mut stream| {
            while read_request(&mut stream) {
                *count.lock().unwrap() += 1;
                stream.write_all(OK).unwrap();
            }
        });
        let threads = vec![cpu];
        let settings = EngineSettings { threads, response_spin_ns, ..settings(server.address) };
        let recorder = run_keeping_alive(&settings);
        assert_eq!((recorder.sent, recorder.sent), (*served.lock().unwrap(), recorder.completed));
        assert!(recorder.failures.is_empty() && recorder.connections == 10);
        let times = &recorder.classes[0];
        // What was under way at the end has a latency, and is no part of the rate.
        assert_eq!(times.latency.len(), recorder.completed);
        assert!(recorder.completed_in_window >= recorder.completed - 10);
        assert!(times.service.max() <= times.latency.max());
        assert_eq!(recorder.first_byte.len(), recorder.completed);
    }
}

#[test]
fn an_open_loop_sends_its_schedule() {
    let server = Server::start(repeat(OK));
    let rate = RateProfile::constant(5000.0);
    let pacing = Pacing::Open(SendSchedule::Drawn { rate, poisson: false, seed: 1 });
    let settings = EngineSettings { pacing, warmup_ns: 10_000_000, ..settings(server.address) };
    let recorder = run_keeping_alive(&settings);
    // 70 ms at 5,000 per second, of which 60 ms are measured.
    assert_eq!(recorder.completed + recorder.failed_in_all(), 350);
    assert_eq!(recorder.due, 300);
    assert!(recorder.failures.keys().all(|kind| *kind == failures::UNSENT));
    assert_eq!(recorder.classes[0].latency.len(), 300);
}

/// A hundred requests over two connections. A busy machine may not get to send all of them in time.
fn reopening(server: &Server, connect_ahead: bool, protocol: &dyn Fn(usize) -> Http) -> Recorder {
    let pacing = burst(100);
    let settings =
        EngineSettings { pacing, connect_ahead, connections: 2, ..settings(server.address) };
    let recorder = run_with(&settings, protocol);
    assert!(recorder.failures.keys().all(|kind| *kind == failures::UNSENT));
    assert_eq!(recorder.completed + recorder.failed_in_all(), 100);
    recorder
}

#[test]
fn every_connection_carries_one_request_without_keep_alive() {
    let server = Server::start(once(OK.to_vec()));
    let recorder = reopening(&server, false, &http(false));
    assert_eq!(recorder.connections, recorder.completed);
    assert_eq!(recorder.connect.len(), recorder.completed);
}

#[test]
fn a_connection_that_the_server_ends_is_opened_again() {
    for response in [
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        // A body that ends with the connection.
        "HTTP/1.1 200 OK\r\n\r\nbody",
    ] {
        let server = Server::start(once(response.as_bytes().to_vec()));
        let recorder = reopening(&server, true, &http(true));
        assert_eq!(recorder.connections, recorder.completed.max(2));
    }
}

#[test]
fn hostile_answers_are_counted_by_kind() {
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "X-Y: z\r\n".repeat(1000));
    for (response, kind) in [
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), failures::GARBAGE),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc".to_vec(), failures::CLOSED_EARLY),
        (b"HTTP/1.1 200 OK\r\nContent-Le".to_vec(), failures::CLOSED_EARLY),
        (Vec::new(), failures::CLOSED_EARLY),
        (endless.into_bytes(), failures::ENDLESS_HEADERS),
        (
            b"HTTP/1.1 404 x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
            "status_4xx",
        ),
        (b"HTTP/1.1 503 x\r\n\r\nsorry".to_vec(), "status_5xx"),
    ] {
        assert_eq!(failures_of(&Server::start(once(response))), [(kind, 10)]);
    }
}

#[test]
fn bytes_after_a_response_are_counted() {
    let server = Server::start(once(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokX".to_vec()));
    let settings = EngineSettings { pacing: burst(4), ..settings(server.address) };
    let recorder = run_keeping_alive(&settings);
    assert_eq!(recorder.completed, 4);
    assert_eq!(recorder.failures.into_iter().collect::<Vec<_>>(), [(failures::UNREQUESTED, 4)]);
}

#[test]
fn a_reset_and_a_refusal_are_distinguished() {
    let reset = Server::start(|mut stream: TcpStream| {
        read_request(&mut stream);
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        let socket = std::os::fd::AsRawFd::as_raw_fd(&stream);
        crate::net::set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, linger).unwrap();
    });
    assert_eq!(failures_of(&reset), [(failures::RESET, 10)]);
    let address = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap();
    let settings = EngineSettings { pacing: burst(3), connect_ahead: false, ..settings(address) };
    let recorder = run_keeping_alive(&settings);
    assert_eq!(recorder.failures.into_iter().collect::<Vec<_>>(), [(failures::REFUSED, 3)]);
}

#[test]
fn a_timeout_counts_with_at_least_the_time_limit() {
    // A byte now and then never makes a response: a slow loris.
    let server = Server::start(|mut stream: TcpStream| {
        read_request(&mut stream);
        for byte in OK.iter().cycle().take(10_000) {
            std::thread::sleep(std::time::Duration::from_millis(5));
            if stream.write_all(&[if *byte == b'\n' { b' ' } else { *byte }]).is_err() {
                return;
            }
        }
    });
    let timeout_ns = 30_000_000;
    let settings = EngineSettings { pacing: burst(4), timeout_ns, ..settings(server.address) };
    let recorder = run_keeping_alive(&settings);
    let timeouts = recorder.failures.get(failures::TIMEOUT).copied().unwrap_or_default();
    assert!(timeouts >= 2 && recorder.failed_in_all() == 4, "{:?}", recorder.failures);
    let latency = &recorder.classes[0].latency;
    assert_eq!(latency.len(), 4);
    assert!(latency.max() >= timeout_ns && recorder.classes[0].service.is_empty());
    // Of each only a lower bound is known.
    let unanswered = &recorder.classes[0].unanswered;
    assert_eq!((unanswered.len(), unanswered.min()), (4, latency.min()));
    assert_eq!(recorder.due_in_all(), 4);
}

#[test]
fn what_a_server_cannot_serve_is_unanswered_and_nothing_is_lost() {
    // Two connections at 20 ms a request: 100 per second, of the 1,000 that are due.
    let server = Server::start(|mut stream: TcpStream| {
        while read_request(&mut stream) {
            std::thread::sleep(std::time::Duration::from_millis(20));
            if stream.write_all(OK).is_err() {
                return;
            }
        }
    });
    let at = |per_s, duration_ns| {
        let rate = RateProfile::constant(per_s);
        let pacing = Pacing::Open(SendSchedule::Drawn { rate, poisson: false, seed: 1 });
        let settings =
            EngineSettings { pacing, duration_ns, connections: 2, ..settings(server.address) };
        run_keeping_alive(&settings)
    };
    let recorder = at(1000.0, 400_000_000);
    let unsent = recorder.failures[failures::UNSENT];
    assert_eq!((recorder.due_in_all(), recorder.completed + unsent), (400, 400));
    let times = &recorder.classes[0];
    assert_eq!((times.latency.len(), times.unanswered.len()), (400, unsent));
    assert!(unsent > 340 && recorder.pace_ratio().unwrap() < 0.2, "{unsent}");
    // A rate that it can serve leaves nothing behind, and the latency does not lower the pace.
    let recorder = at(50.0, 600_000_000);
    assert_eq!((recorder.due_in_all(), recorder.completed), (30, 30));
    assert!(recorder.classes[0].unanswered.is_empty());
    assert!((recorder.pace_ratio().unwrap() - 1.0).abs() < 0.1);
}

#[test]
fn a_large_body_is_read_and_not_kept() {
    const BYTES: usize = 8 << 20;
    let server = Server::start(|mut stream: TcpStream| {
        while read_request(&mut stream) {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            for _ in 0..BYTES >> 16 {
                stream.write_all(&[7; 1 << 16]).unwrap();
            }
        }
    });
    let settings = EngineSettings { pacing: burst(4), ..settings(server.address) };
    let recorder = run_keeping_alive(&settings);
    assert_eq!((recorder.completed, recorder.failed_in_all()), (4, 0));
}

#[test]
fn a_mix_takes_rows_in_turn_and_users_keep_their_cookies() {
    // Answers with the target that was asked for and the cookie that came.
    let server = Server::start(|mut stream: TcpStream| {
        let mut bytes = [0u8; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
            let target = text.split(' ').nth(1).unwrap();
            let body = if text.contains("Cookie: n=1\r\n") { "back" } else { target };
            let length = body.len();
            let answer = format!("HTTP/1.1 200 OK\r\nSet-Cookie: n=1; Path=/\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let url = Url::parse("http://test/").unwrap();
    let table = DataTable::parse("id\n7\n8\n").unwrap();
    let columns = table.columns.clone();
    let common =
        Common { url: &url, headers: &[], keeps_alive: true, is_http2: false, columns: &columns };
    let mix = Arc::new(Mix::new(&["1 GET /{id}", "1 GET /{id}"], &common, table).unwrap());
    for (keep_cookies, text) in [(false, "/"), (true, "back")] {
        let mut expected = Expected::containing(text.as_bytes());
        expected.keep_cookies = keep_cookies;
        let expected = Arc::new(expected);
        let pacing = burst(40);
        let settings = EngineSettings { pacing, connections: 1, ..settings(server.address) };
        let recorder = run_with(&settings, &|_| Http::new(&mix, &expected, 0, 1, 3));
        let classes: Vec<_> = recorder.classes.iter().map(|times| times.service.len()).collect();
        let wrong = recorder.failures.get("wrong_body").copied().unwrap_or_default();
        // The first request has no cookie yet.
        assert_eq!(wrong, u64::from(keep_cookies));
        assert_eq!(classes.iter().sum::<u64>(), recorder.completed);
        assert!(classes.len() == 2 && recorder.completed > 0);
    }
}

/// Answers every request with OK over TLS, with a certificate for localhost.
pub fn tls_server(versions: &'static [&'static rustls::SupportedProtocolVersion]) -> Server {
    use rustls::pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer};
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/requests/test_certificates");
    let certificate = CertificateDer::from_pem_file(format!("{folder}/server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(format!("{folder}/server.key")).unwrap();
    let config =
        rustls::ServerConfig::builder_with_provider(Arc::new(rustls_graviola::default_provider()))
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
    let config = Arc::new(config);
    Server::start(move |stream| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = rustls::StreamOwned::new(connection, stream);
        let (mut bytes, mut unread) = ([0u8; 1024], Vec::new());
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            unread.extend_from_slice(&bytes[..count]);
            if unread.ends_with(b"\r\n\r\n") {
                unread.clear();
                stream.write_all(OK).unwrap();
            }
        }
    })
}

#[test]
fn both_versions_of_tls_are_spoken() {
    let authority =
        concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/requests/test_certificates/ca.pem");
    for (version, versions) in
        [("1.2", [&rustls::version::TLS12].as_slice()), ("1.3", &[&rustls::version::TLS13])]
    {
        let versions: &'static _ = Box::leak(versions.to_vec().into_boxed_slice());
        let server = tls_server(versions);
        let client = |name, authority, version| {
            TlsClient::new(name, authority, version, false, b"http/1.1").unwrap()
        };
        let tls = client("localhost", Some(authority), version);
        tls.check(&server.address).unwrap();
        let tls = Some(tls);
        let recorder = run_keeping_alive(&EngineSettings { tls, ..settings(server.address) });
        assert!(recorder.failures.is_empty() && recorder.completed > 0);
        assert_eq!((recorder.connections, recorder.handshake.len()), (10, 10));
        // The right certificate for another name, and no common version.
        let wrong = client("example.org", Some(authority), version);
        let sentence = wrong.check(&server.address).unwrap_err().message;
        assert!(sentence.contains("not valid for name"), "{sentence}");
        client("example.org", None, "auto").check(&server.address).unwrap();
        let refused_version = if version == "1.2" { "1.3" } else { "1.2" };
        assert_eq!(
            client("localhost", None, refused_version).check(&server.address).unwrap_err().name,
            "no_tls"
        );
        let pacing = burst(10);
        let tls = Some(wrong);
        let settings =
            EngineSettings { tls, pacing, connect_ahead: false, ..settings(server.address) };
        let recorder = run_keeping_alive(&settings);
        assert_eq!(recorder.failures.into_iter().collect::<Vec<_>>(), [(failures::TLS, 10)]);
    }
}

#[test]
fn a_server_without_tls_is_named_as_such() {
    let tls = TlsClient::new("localhost", None, "auto", false, b"http/1.1").unwrap();
    let answering = Server::start(|mut stream: TcpStream| {
        let _ = stream.read(&mut [0u8; 1024]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    });
    let ending = Server::start(|mut stream: TcpStream| {
        let _ = stream.read(&mut [0u8; 1024]);
    });
    for (server, words) in
        [(answering, "something else than TLS"), (ending, "ended the connection")]
    {
        let sentence = tls.check(&server.address).unwrap_err().message;
        assert!(sentence.contains(words) && sentence.contains("http://?"), "{sentence}");
    }
}
