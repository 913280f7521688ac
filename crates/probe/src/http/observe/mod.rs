//! Probes of services, one for each line of standard input: `nephoscope-probe observe`.
//!
//! The caller has the schedule and this program no clock of its own: a probe starts when its line comes,
//! whether or not earlier ones have ended, and its answer states how long it was held here, so that the
//! caller knows within the rest of the round trip when it started.
pub mod datagrams;
pub mod failure;
mod script;
pub mod stream;

use crate::error::{FailureKind, ProbeError, Result};
use crate::http::requests::tls::system_authorities;
use failure::{Deadline, ProbeFailure};
use nephoscope_linux::clock::monotonic_ns;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request that is longer is none of ours.
const LINE_BYTES: u64 = 64 << 10;
/// Probes at once; each is a thread.
const MAX_PROBES: usize = 256;
const STACK_BYTES: usize = 1 << 20;

/// What to probe.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ProbedService {
    /// A whole answer with a status from 200 to 399.
    Http { url: String },
    /// A connection that is accepted.
    Tcp { host: String, port: u16 },
    /// A reply to an echo request.
    Icmp { host: String },
    /// An answer with an address (record A) of `name`.
    Dns { host: String, port: u16, name: String },
    /// A program that ends with exit code 0.
    Script { argv: Vec<String> },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeRequest {
    id: u64,
    /// Only say whether this machine can probe the service; nothing is sent.
    #[serde(default)]
    check: bool,
    timeout_ms: u64,
    service: ProbedService,
}

/// Answer to a request. ok: none where the probe says nothing about the service. response_ns: until the
/// answer was complete; the timeout where there was none. held_ns: between request and answer.
#[derive(Debug, Serialize)]
struct ProbeReport {
    id: u64,
    ok: Option<bool>,
    response_ns: Option<u64>,
    held_ns: u64,
    reason: String,
    hint: String,
}

/// A probe that can be made: what it needs of this machine is there.
enum ServiceProbe {
    Stream(stream::StreamProbe),
    Datagram(datagrams::DatagramProbe),
    Script(script::Script),
}

impl ServiceProbe {
    fn prepare(service: ProbedService) -> Result<Self> {
        Ok(match service {
            ProbedService::Http { url } => {
                Self::Stream(stream::StreamProbe::http(&url, &system_authorities())?)
            }
            ProbedService::Tcp { host, port } => Self::Stream(stream::StreamProbe::tcp(host, port)),
            ProbedService::Icmp { host } => Self::Datagram(datagrams::DatagramProbe::icmp(host)?),
            ProbedService::Dns { host, port, name } => {
                Self::Datagram(datagrams::DatagramProbe::dns(host, port, &name)?)
            }
            ProbedService::Script { argv } => Self::Script(script::Script::new(argv)?),
        })
    }

    fn run(&self, deadline: Deadline) -> Result<(), ProbeFailure> {
        match self {
            Self::Stream(probe) => probe.run(deadline),
            Self::Datagram(probe) => probe.run(deadline),
            Self::Script(script) => script.run(deadline),
        }
    }
}

/// Answers requests until the input ends; scripts that still run are killed then.
pub fn run() -> Result<()> {
    let result = serve(std::io::stdin().lock(), std::io::stdout());
    script::kill_all();
    result
}

fn serve(mut input: impl BufRead, output: impl Write + Send + 'static) -> Result<()> {
    let output = Arc::new(Mutex::new(output));
    let under_way = Arc::new(AtomicUsize::new(0));
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line);
        let read = read.map_err(|error| ProbeError::os("Reading standard input", &error))?;
        if read == 0 {
            return Ok(());
        }
        let read_ns = monotonic_ns();
        let request: ProbeRequest = serde_json::from_slice(&line).map_err(|error| {
            ProbeError::usage(
                format!("A line of standard input is no request: {error}."),
                "Use the probe through `nephoscope sla watch`.",
            )
        })?;
        let id = request.id;
        let (to, count) = (Arc::clone(&output), Arc::clone(&under_way));
        if count.fetch_add(1, Ordering::SeqCst) >= MAX_PROBES {
            count.fetch_sub(1, Ordering::SeqCst);
            write(&to, &unknown(id, &too_many()))?;
            continue;
        }
        let work = move || {
            let mut answer = answer(request);
            answer.held_ns = monotonic_ns() - read_ns;
            count.fetch_sub(1, Ordering::SeqCst);
            // The reader is gone where this fails, and then the input ends as well.
            let _ = write(&to, &answer);
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(work);
        if let Err(error) = thread {
            under_way.fetch_sub(1, Ordering::SeqCst);
            write(&output, &unknown(id, &ProbeError::os("Starting a thread", &error)))?;
        }
    }
}

fn answer(request: ProbeRequest) -> ProbeReport {
    let probe = match ServiceProbe::prepare(request.service) {
        Ok(probe) => probe,
        Err(error) => return unknown(request.id, &error),
    };
    let (ok, response_ns, reason) = if request.check {
        (Some(true), None, String::new())
    } else {
        let timeout = Duration::from_millis(request.timeout_ms.max(1));
        let deadline = Deadline::after(timeout);
        let outcome = probe.run(deadline);
        let elapsed_ns = nanoseconds(deadline.elapsed());
        match outcome {
            Ok(()) => (Some(true), Some(elapsed_ns), String::new()),
            Err(ProbeFailure::Observer(error)) => return unknown(request.id, &error),
            Err(ProbeFailure::Timeout) => {
                (Some(false), Some(nanoseconds(timeout)), "timeout".to_owned())
            }
            Err(ProbeFailure::Answer(reason)) => (Some(false), Some(elapsed_ns), reason),
            Err(ProbeFailure::NoAnswer(reason)) => (Some(false), None, reason),
        }
    };
    ProbeReport { id: request.id, ok, response_ns, held_ns: 0, reason, hint: String::new() }
}

/// The answer of a machine that cannot probe the service.
fn unknown(id: u64, error: &ProbeError) -> ProbeReport {
    let (reason, hint) = (error.message.clone(), error.hint.clone());
    ProbeReport { id, ok: None, response_ns: None, held_ns: 0, reason, hint }
}

fn too_many() -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "too_many_probes",
        format!("{MAX_PROBES} probes are under way."),
        "Use a longer interval, or a shorter timeout.",
    )
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn write(output: &Mutex<impl Write>, answer: &ProbeReport) -> Result<()> {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    let mut output = output.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let written = output.write_all(&line).and_then(|()| output.flush());
    written.map_err(|error| ProbeError::output(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{json, Value};
    use std::io::BufReader;
    use std::net::{TcpListener, UdpSocket};

    /// The answers to requests, by the number of the request.
    fn answers(requests: &[Value]) -> Vec<Value> {
        let (from, mut to) = std::io::pipe().unwrap();
        let (answers, output) = std::io::pipe().unwrap();
        let serving = std::thread::spawn(move || serve(BufReader::new(from), output));
        for (id, request) in requests.iter().enumerate() {
            let mut request = request.clone();
            request["id"] = id.into();
            writeln!(to, "{request}").unwrap();
        }
        let lines = BufReader::new(answers).lines().take(requests.len());
        let mut values: Vec<Value> =
            lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        drop(to);
        serving.join().unwrap().unwrap();
        values.sort_by_key(|value| value["id"].as_u64());
        values
    }

    fn probe(service: Value) -> Value {
        answers(&[json!({"timeout_ms": 60_000, "service": service})]).remove(0)
    }

    /// A server that answers each connection with these bytes; returns its port.
    fn server(answer: &'static [u8]) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let _ = stream.write_all(answer);
            }
        });
        port
    }

    #[test]
    fn http_is_good_with_a_status_below_400_and_a_whole_answer() {
        for (answer, ok, reason) in [
            (&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"[..], true, ""),
            (b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n", true, ""),
            (b"HTTP/1.0 200 OK\r\n\r\nto the end", true, ""),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", true, ""),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi", false, "the answer was cut off"),
            (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", false, "status 503"),
            (b"SSH-2.0\r\n", false, "no HTTP answer"),
            (b"", false, "no HTTP answer"),
        ] {
            let url = format!("http://127.0.0.1:{}/x?y", server(answer));
            let report = probe(json!({"kind": "http", "url": url}));
            assert_eq!(
                (&report["ok"], &report["reason"]),
                (&json!(ok), &json!(reason)),
                "{answer:?}"
            );
            let response_ns = report["response_ns"].as_u64().unwrap();
            assert!(response_ns <= report["held_ns"].as_u64().unwrap());
        }
    }

    #[test]
    fn a_port_that_nobody_answers_on_fails_without_a_response_time() {
        let port = TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let seen = probe(json!({"kind": "tcp", "host": "127.0.0.1", "port": port}));
        assert_eq!((&seen["ok"], &seen["response_ns"]), (&json!(false), &Value::Null));
        assert_eq!(seen["reason"], "the connection was refused");
    }

    #[test]
    fn a_timeout_counts_as_its_length_and_delays_no_other_probe() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}/");
        let reports = answers(&[
            json!({"timeout_ms": 50, "service": {"kind": "http", "url": url}}),
            json!({"timeout_ms": 60_000, "service":
                {"kind": "tcp", "host": "localhost", "port": port}}),
        ]);
        assert_eq!(reports[0]["reason"], "timeout");
        assert_eq!(reports[0]["response_ns"], 50_000_000);
        assert_eq!(reports[1]["ok"], true);
    }

    #[test]
    fn dns_is_good_with_an_address() {
        let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let answering = std::thread::spawn(move || {
            for (flags, count) in [(0x8180u16, 1u8), (0x8183, 0), (0x8180, 0)] {
                let mut query = [0; 512];
                let (bytes, client) = socket.recv_from(&mut query).unwrap();
                assert_eq!(&query[12..25], b"\x07example\x03org\0");
                let mut answer = query[..bytes].to_vec();
                answer[2..4].copy_from_slice(&flags.to_be_bytes());
                answer[7] = count;
                // What answers no question of this probe is passed over.
                socket.send_to(&[0; 3], client).unwrap();
                socket.send_to(&answer, client).unwrap();
            }
        });
        for (ok, reason) in
            [(true, ""), (false, "DNS response code 3"), (false, "the DNS answer is empty")]
        {
            let name = json!({"kind": "dns", "host": "127.0.0.1", "port": port,
                              "name": "example.org"});
            let seen = probe(name);
            assert_eq!((&seen["ok"], &seen["reason"]), (&json!(ok), &json!(reason)));
        }
        answering.join().unwrap();
    }

    #[test]
    fn a_script_is_good_with_exit_code_0() {
        let script = |argv: &[&str]| probe(json!({"kind": "script", "argv": argv}));
        assert_eq!(script(&["true"])["ok"], true);
        assert_eq!(script(&["sh", "-c", "exit 3"])["reason"], "exit code 3");
        assert_eq!(script(&["sh", "-c", "kill -9 $$"])["reason"], "ended by signal 9");
        let none = script(&["/no/such/program"]);
        assert_eq!((&none["ok"], &none["response_ns"]), (&Value::Null, &Value::Null));
        assert_eq!(none["reason"], "There is no program '/no/such/program'.");
        let late = answers(&[json!({"timeout_ms": 50, "service":
            {"kind": "script", "argv": ["sleep", "600"]}})]);
        assert_eq!(late[0]["reason"], "timeout");
    }

    #[test]
    fn a_check_sends_nothing() {
        let reports = answers(&[
            json!({"check": true, "timeout_ms": 1, "service":
                {"kind": "tcp", "host": "127.0.0.1", "port": 1}}),
            json!({"check": true, "timeout_ms": 1, "service": {"kind": "http", "url": "ftp://x/"}}),
        ]);
        assert_eq!((&reports[0]["ok"], &reports[1]["ok"]), (&json!(true), &Value::Null));
        assert_ne!(reports[1]["hint"], "");
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for line in ["", "{", "{}", r#"{"id":1,"timeout_ms":1,"service":{"kind":"ftp"}}"#] {
            let input = format!("{line}\n");
            assert_eq!(serve(input.as_bytes(), Vec::new()).unwrap_err().name, "usage", "{line}");
        }
        assert!(serve(&b""[..], Vec::new()).is_ok());
    }
}
