//! `serve`: one peer with the token is served, strangers are hung up on, and it ends by itself.
use nephoscope_programs::path_of;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const TOKEN: &str = "a-token-of-the-test-0123456789";

struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    port: u16,
}

fn serve(deadline_s: &str) -> Server {
    let mut child = Command::new(path_of("nephoscope-probe"))
        .args(["serve", "null", "--token-file", "-", "--deadline", deadline_s])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.as_mut().unwrap(), "{TOKEN}").unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(ready["ready"]["address"], "127.0.0.1");
    let port = u16::try_from(ready["ready"]["port"].as_u64().unwrap()).unwrap();
    Server { child, lines, port }
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    stream
}

#[test]
fn the_peer_with_the_token_is_served_and_counted() {
    let mut server = serve("30");
    let mut unauthenticated = connect(&server);
    unauthenticated.write_all(b"not-the-token-at-all-9876543210\n").unwrap();
    let mut silent = connect(&server);
    let mut peer = connect(&server);
    peer.write_all(format!("{TOKEN}\n").as_bytes()).unwrap();
    let sent: Vec<u8> = (0..100_003u32).map(|number| (number % 251) as u8).collect();
    peer.write_all(&sent).unwrap();
    peer.shutdown(std::net::Shutdown::Write).unwrap();
    let mut back = Vec::new();
    peer.read_to_end(&mut back).unwrap();
    assert_eq!(back, sent);
    for hung_up in [&mut unauthenticated, &mut silent] {
        assert!(!matches!(hung_up.read(&mut [0u8; 1]), Ok(1..)));
    }
    let mut line = String::new();
    server.lines.read_line(&mut line).unwrap();
    let last: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(last["done"]["served"]["bytes"], 100_003);
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn silent_and_slow_strangers_delay_nobody() {
    let mut server = serve("30");
    // The twenty of one address push one another out, not the peer.
    let silent: Vec<_> = (0..20).map(|_| connect(&server)).collect();
    let mut slow = connect(&server);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = slow.write_all(b"a");
                std::thread::sleep(Duration::from_millis(150));
            }
        });
        let mut peer = connect(&server);
        let started = Instant::now();
        peer.write_all(format!("{TOKEN}\nhello").as_bytes()).unwrap();
        peer.shutdown(std::net::Shutdown::Write).unwrap();
        let mut back = String::new();
        peer.read_to_string(&mut back).unwrap();
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(back, "hello");
        // One after the other they would have a second each.
        assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    });
    drop(silent);
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn it_ends_by_itself_at_its_deadline() {
    let mut server = serve("0.3");
    let started = Instant::now();
    assert_eq!(server.child.wait().unwrap().code(), Some(124));
    // The deadline, and at most the second of grace that follows it, with room for a busy machine.
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn without_a_token_it_serves_nobody() {
    let output =
        Command::new(path_of("nephoscope-probe")).args(["serve", "null"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("--token-file"));
}
