//! A third-party server under the probe's supervision, on loopback.
use nephoscope_programs::path_of;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const TOKEN: &str = "0123456789abcdef";

struct Probe {
    child: Child,
    input: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl Probe {
    fn serve(job: &str, bind: &str) -> Self {
        let mut child = Command::new(path_of("nephoscope-probe"))
            .args(["wrap", "--server", "--job", job, "--bind", bind, "--control"])
            .args(["--deadline", "60"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "token {TOKEN}").unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, lines }
    }

    fn line(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    fn end(mut self) -> i32 {
        self.child.wait().unwrap().code().unwrap()
    }
}

/// Python's own web server: on any machine that runs this project's tests.
fn web_server(address: &str) -> String {
    format!(
        r#"{{"program": "python3", "arguments": ["-u", "-m", "http.server", "--bind", "{address}", "{{port}}"]}}"#
    )
}

#[test]
fn a_server_is_ready_when_it_listens_and_ends_in_order() {
    for bind in ["127.0.0.1", "::1"] {
        // A machine without IPv6 has no such address.
        if std::net::TcpListener::bind((bind, 0)).is_err() {
            continue;
        }
        let mut probe = Probe::serve(&web_server("{address}"), bind);
        let ready = probe.line()["ready"].clone();
        assert_eq!(ready["address"], bind);
        let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
        let mut client = TcpStream::connect((bind, port)).unwrap();
        write!(client, "GET / HTTP/1.0\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        writeln!(probe.input, "stop").unwrap();
        let served = probe.line()["done"]["served"].clone();
        assert_eq!((&served["exit"], &served["signal"]), (&Value::Null, &Value::from(15)));
        assert!(served["stderr"].as_str().unwrap().contains("GET / HTTP/1.0"), "{served}");
        assert!(served["cpu_ns"].as_u64().unwrap() > 1_000_000, "{served}");
        assert!(served["max_rss_bytes"].as_u64().unwrap() > 1 << 20, "{served}");
        assert_eq!(probe.end(), 0);
        assert!(TcpStream::connect((bind, port)).is_err(), "the server is still there");
    }
}

#[test]
fn a_server_that_strangers_reach_is_refused() {
    let mut probe = Probe::serve(&web_server("0.0.0.0"), "127.0.0.1");
    let error = probe.line()["error"].clone();
    assert_eq!(error["name"], "server_listens_elsewhere", "{error}");
    assert_eq!(probe.end(), 3);
}

#[test]
fn a_server_that_ends_is_an_error_in_its_own_words() {
    let job = r#"{"program": "sh", "arguments": ["-c", "echo no such option >&2; exit 7"]}"#;
    let mut probe = Probe::serve(job, "127.0.0.1");
    let error = probe.line()["error"].clone();
    assert_eq!(error["name"], "server_ended");
    assert!(error["hint"].as_str().unwrap().contains("no such option"), "{error}");
    assert_eq!(probe.end(), 3);
}

#[test]
fn a_server_that_was_killed_is_not_blamed_on_its_arguments() {
    for (signal, hint) in [("KILL", "memory"), ("TERM", "ended it"), ("SEGV", "crashed")] {
        let script = format!("kill -{signal} $$");
        let job = serde_json::json!({"program": "sh", "arguments": ["-c", script]});
        let mut probe = Probe::serve(&job.to_string(), "127.0.0.1");
        let error = probe.line()["error"].clone();
        assert_eq!(error["name"], "server_ended", "{error}");
        let words = error["hint"].as_str().unwrap();
        assert!(words.contains(hint) && !words.contains("arguments"), "{error}");
        assert_eq!(probe.end(), 3);
    }
}

#[test]
fn a_server_waits_for_the_text_that_was_named() {
    let script = "import os, socket, time; s = socket.create_server(('127.0.0.1', {port})); \
                  time.sleep(0.3); print('open for business', flush=True); time.sleep(60)";
    let job = serde_json::json!({
        "program": "python3", "arguments": ["-c", script], "ready_text": "open for business",
    });
    let started = std::time::Instant::now();
    let mut probe = Probe::serve(&job.to_string(), "127.0.0.1");
    assert!(probe.line()["ready"]["port"].as_u64().is_some());
    assert!(started.elapsed().as_millis() >= 300);
    writeln!(probe.input, "stop").unwrap();
    assert!(probe.line()["done"]["served"]["stdout"].as_str().unwrap().contains("business"));
    assert_eq!(probe.end(), 0);
}
