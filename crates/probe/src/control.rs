//! The control channel (`--control`): lines on standard input that say where the far side is, when
//! to start and when to end. No thread listens: a thread cannot be created under `SCHED_DEADLINE`
//! and would disturb what is measured.
//!
//! Until the measured part begins the main thread reads the lines itself. From then on the kernel
//! sends SIGIO when something comes, and the handler looks for `stop` and for the end of the input.
use crate::cancel::{self, Heard};
use crate::clock;
use crate::error::{Kind, ProbeError};
use nephoscope_wire::lines::Peer;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

/// A line that is longer is none of ours.
const LINE_BYTES: usize = 4096;
/// A token that is shorter could be guessed.
pub const TOKEN_BYTES: usize = 16;
/// The last bit of waiting for a moment is spent looking at the clock.
const SPIN_NS: u64 = 200_000;

static ACTIVE: AtomicBool = AtomicBool::new(false);
/// Whether the signal handler reads the lines.
static LISTENING: AtomicBool = AtomicBool::new(false);
/// Whether `stop` lets the trial end in order.
static ENDS_IN_ORDER: AtomicBool = AtomicBool::new(false);
static STOPPED: AtomicBool = AtomicBool::new(false);
/// One handler reads at a time; another that comes meanwhile leaves a mark.
static READING: AtomicBool = AtomicBool::new(false);
static AGAIN: AtomicBool = AtomicBool::new(false);
/// The first bytes of the line that is being read by the handler, and how many there were.
static WORD: AtomicU64 = AtomicU64::new(0);
static LENGTH: AtomicU64 = AtomicU64::new(0);
static PEER: Mutex<Option<Peer>> = Mutex::new(None);

/// Makes standard input the control channel.
pub fn activate() {
    ACTIVE.store(true, Ordering::Relaxed);
}

/// Whether there is a control channel.
pub fn active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// From now on `stop` ends the trial in order instead of cancelling it.
pub fn stop_ends_in_order() {
    ENDS_IN_ORDER.store(true, Ordering::Relaxed);
}

/// Whether a load or a server was told to stop.
#[inline]
pub fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// The far side, from the first line.
///
/// # Errors
/// There is no control channel, or its first line names no far side.
pub fn peer(benchmark: &str) -> Result<Peer, ProbeError> {
    let hint =
        "Start it with --control and make `peer {\"address\": …, \"port\": …, \"token\": …}` the \
                first line of its standard input.";
    if !active() {
        let message = format!("{benchmark} measures toward a far side, and none was named.");
        return Err(ProbeError::usage(message, hint));
    }
    let line = read_line()?;
    let rest = line.strip_prefix("peer ").ok_or_else(|| {
        ProbeError::usage(format!("{benchmark}: the first line must be `peer`."), hint)
    })?;
    parse_peer(rest)
}

/// The token of the one peer that is served, from the first line.
pub fn token() -> Result<String, ProbeError> {
    let line = read_line()?;
    let Some(token) = line.strip_prefix("token ") else {
        let message = "The first line on standard input must be `token …`.";
        return Err(ProbeError::usage(message, "A server never serves strangers."));
    };
    check_token(token)
}

/// The far side that was named although this benchmark can do without.
pub fn peer_if_named() -> Option<Peer> {
    PEER.lock().ok()?.take()
}

/// Waits for `go`; the moment of the start on the wall clock, if one was set. From then on `stop`
/// and the end of the input are noticed whatever the trial does.
///
/// # Errors
/// `stop`, the end of the input, a cancellation, a line that means nothing here.
pub fn wait_for_go() -> Result<Option<u64>, ProbeError> {
    loop {
        let line = read_line()?;
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match (word, rest) {
            ("go", "") => break listen(None),
            ("go", at) => {
                let at_ns = at.parse().map_err(|_| {
                    let message = format!("`go` takes nanoseconds since the epoch, not '{at}'.");
                    ProbeError::usage(message, "Send `go`, or `go` and a wall clock time.")
                })?;
                break listen(Some(at_ns));
            }
            ("stop", "") => return Err(before_start("It was told to stop")),
            ("peer", text) => *PEER.lock().expect("no thread holds it") = Some(parse_peer(text)?),
            _ => return Err(unknown_line(word)),
        }
    }
}

/// Lets the signal handler read from now on. What has come already is read at once.
fn listen<T>(result: T) -> Result<T, ProbeError> {
    start_listening();
    cancel::check()?;
    Ok(result)
}

/// Lets the signal handler read from now on.
pub fn start_listening() {
    if active() {
        LISTENING.store(true, Ordering::SeqCst);
        cancel::hear();
    }
}

/// Waits for a moment on the wall clock: asleep at first, then looking at the clock.
pub fn wait_until(wall_ns: u64) -> Result<(), ProbeError> {
    loop {
        cancel::check()?;
        if stopped() {
            return Err(before_start("It was told to stop"));
        }
        let left_ns = wall_ns.saturating_sub(clock::realtime_ns());
        match left_ns {
            0 => return Ok(()),
            1..=SPIN_NS => std::hint::spin_loop(),
            // Short sleeps: this one goes on through signals.
            _ => {
                let nap_ns = (left_ns - SPIN_NS).min(20_000_000);
                std::thread::sleep(std::time::Duration::from_nanos(nap_ns));
            }
        }
    }
}

/// What has come on standard input; called by the signal handler, so async-signal-safe.
pub fn hear() -> Heard {
    if !LISTENING.load(Ordering::SeqCst) {
        return if hung_up() { Heard::End } else { Heard::Nothing };
    }
    loop {
        AGAIN.store(true, Ordering::SeqCst);
        if READING.swap(true, Ordering::SeqCst) {
            return Heard::Nothing;
        }
        AGAIN.store(false, Ordering::SeqCst);
        let heard = read_what_came();
        READING.store(false, Ordering::SeqCst);
        if heard != Heard::Nothing || !AGAIN.load(Ordering::SeqCst) {
            return heard;
        }
    }
}

fn read_what_came() -> Heard {
    let mut bytes = [0u8; 64];
    while readable(0) {
        // SAFETY: reads into our own array; read is async-signal-safe.
        let got = unsafe { libc::read(0, bytes.as_mut_ptr().cast(), bytes.len()) };
        match usize::try_from(got) {
            // After `stop` the other side may hang up: the trial ends in order all the same.
            Ok(0) => return if stopped() { Heard::Nothing } else { Heard::End },
            Ok(got) => {
                // Both are looked at later: a cancellation must not hide behind a `stop`.
                if feed(&bytes[..got]) {
                    if !ENDS_IN_ORDER.load(Ordering::Relaxed) {
                        return Heard::Stop;
                    }
                    STOPPED.store(true, Ordering::Relaxed);
                }
            }
            Err(_) => return Heard::Nothing,
        }
    }
    Heard::Nothing
}

/// Adds bytes to the current line; whether a line `stop` ended.
fn feed(bytes: &[u8]) -> bool {
    let (mut word, mut length) = (WORD.load(Ordering::Relaxed), LENGTH.load(Ordering::Relaxed));
    let mut stop = false;
    for byte in bytes {
        match byte {
            b'\n' => {
                stop |= length == 4 && word == u64::from(u32::from_be_bytes(*b"stop"));
                (word, length) = (0, 0);
            }
            b'\r' => {}
            _ => {
                word = word << 8 | u64::from(*byte);
                length += 1;
            }
        }
    }
    WORD.store(word, Ordering::Relaxed);
    LENGTH.store(length, Ordering::Relaxed);
    stop
}

/// The next line, without its end. Read byte by byte: what follows belongs to a later reader.
fn read_line() -> Result<String, ProbeError> {
    let mut line = Vec::new();
    loop {
        cancel::check()?;
        if !readable(100) {
            continue;
        }
        let mut byte = 0u8;
        // SAFETY: reads one byte into our own.
        match unsafe { libc::read(0, (&raw mut byte).cast(), 1) } {
            0 => return Err(before_start("Its standard input ended")),
            1 if byte == b'\n' => break,
            1 if line.len() < LINE_BYTES => line.push(byte),
            1 => return Err(unknown_line("a very long line")),
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(ProbeError::os("Reading the control channel", &error));
                }
            }
        }
    }
    let text = String::from_utf8(line).map_err(|_| unknown_line("bytes that are no text"))?;
    Ok(text.trim_end_matches('\r').to_owned())
}

fn readable(timeout_ms: libc::c_int) -> bool {
    let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid pollfd; poll is async-signal-safe.
    unsafe { libc::poll(&raw mut poll, 1, timeout_ms) > 0 && poll.revents != 0 }
}

/// Whether the other side has gone, looked up without taking anything from the input.
fn hung_up() -> bool {
    let mut poll = libc::pollfd { fd: 0, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one valid pollfd; poll is async-signal-safe.
    unsafe {
        libc::poll(&raw mut poll, 1, 0) > 0
            && poll.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0
    }
}

fn parse_peer(text: &str) -> Result<Peer, ProbeError> {
    let peer: Peer = serde_json::from_str(text).map_err(|error| {
        // The parser's words could hold the token; its kind and place cannot.
        let message = format!("`peer` is not understood ({:?} error).", error.classify());
        ProbeError::usage(message, "It takes {\"address\": IP, \"port\": N, \"token\": TEXT}.")
    })?;
    check_token(&peer.token)?;
    Ok(peer)
}

/// A token that may be used.
pub fn check_token(text: &str) -> Result<String, ProbeError> {
    let token = text.trim();
    if token.len() < TOKEN_BYTES
        || token.len() > 512
        || !token.bytes().all(|b| b.is_ascii_graphic())
    {
        return Err(ProbeError::usage(
            format!("The token must have {TOKEN_BYTES} to 512 printable characters."),
            "Draw one at random.",
        ));
    }
    Ok(token.to_owned())
}

fn before_start(why: &str) -> ProbeError {
    let message = format!("{why} before it began.");
    ProbeError::new(Kind::Cancelled, "cancelled", message, "Send `go` to start it.")
}

fn unknown_line(word: &str) -> ProbeError {
    let word: String = word.chars().take(20).collect();
    ProbeError::usage(
        format!("'{word}' is no line of the control channel here."),
        "Lines are peer or token (first), go, go NANOSECONDS and stop.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_that_says_stop_is_one() {
        assert!(!feed(b"st"));
        assert!(feed(b"op\n"));
        assert!(!feed(b"stopp\n"));
        assert!(!feed(b"nonstop\n\n"));
        assert!(!feed(b"go 17\nsto"));
        assert!(feed(b"p\r\n"));
        assert!(feed(b"what\nstop\nmore\n"));
    }

    #[test]
    fn a_peer_is_read_and_its_token_never_shown() {
        let token = "0123456789abcdef";
        let text = format!(r#"{{"address":"10.0.0.2","port":4242,"token":"{token}"}}"#);
        let peer = parse_peer(&text).unwrap();
        assert_eq!((peer.address.to_string().as_str(), peer.port), ("10.0.0.2", 4242));
        assert!(!format!("{peer:?}").contains(token));
        for bad in [
            "{}".to_owned(),
            text.replace("10.0.0.2", "host"),
            text.replace("4242", "70000"),
            text.replace(token, "short"),
            text.replace("port", "prot"),
        ] {
            let error = parse_peer(&bad).unwrap_err();
            assert_eq!(error.kind.exit_code(), 2);
            assert!(!error.message.contains(token), "{}", error.message);
        }
    }

    #[test]
    fn a_moment_that_has_passed_is_not_waited_for() {
        wait_until(0).unwrap();
        let at_ns = clock::realtime_ns() + 3_000_000;
        wait_until(at_ns).unwrap();
        assert!(clock::realtime_ns() >= at_ns);
    }
}
