//! What ends a trial from outside, each on a thread of its own: nothing is measured here that a
//! thread could disturb. The control channel (`--control`) is that of the probe.
use super::args::Wanted;
use super::error::{Kind, SimError};
use serde_json::json;
use std::io::{BufRead, Write};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Standard input, read line by line, and whether the trial has begun.
pub struct Watch {
    lines: Receiver<Option<String>>,
    begun: Arc<AtomicBool>,
}

impl Watch {
    /// Arms the deadline, and reads standard input where somebody is at its other end.
    pub fn begin(wanted: &Wanted) -> Self {
        let deadline = wanted.deadline;
        thread::spawn(move || {
            thread::sleep(deadline);
            end(&SimError::new(
                Kind::Deadline,
                "deadline",
                "The deadline passed before the benchmark was done.",
                "Give it more time, or smaller parameters.",
            ));
        });
        let (sender, lines) = channel();
        let begun = Arc::new(AtomicBool::new(!wanted.control));
        if wanted.control || (wanted.with_parent && is_pipe_or_socket()) {
            let begun = Arc::clone(&begun);
            thread::spawn(move || read(&sender, &begun));
        }
        Self { lines, begun }
    }

    /// Waits for `go`, and for the moment that it names.
    ///
    /// # Errors
    /// `stop`, the end of the input, a line that means nothing here.
    pub fn wait_for_go(&self) -> Result<(), SimError> {
        let Some(line) = self.lines.recv().ok().flatten() else {
            return Err(before_start("Its standard input ended"));
        };
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let at_ns = match (word, rest) {
            ("go", "") => 0,
            ("go", at) => at.parse().map_err(|_| {
                let message = format!("`go` takes nanoseconds since the epoch, not '{at}'.");
                SimError::usage(message, "Send `go`, or `go` and a wall clock time.")
            })?,
            ("stop", "") => return Err(before_start("It was told to stop")),
            _ => return Err(unknown_line(word)),
        };
        thread::sleep(Duration::from_nanos(u64::saturating_sub(at_ns, wall_ns())));
        self.begun.store(true, Ordering::SeqCst);
        // What came while it waited for the moment.
        match self.lines.try_recv() {
            Ok(None) => Err(before_start("Its standard input ended")),
            Ok(Some(line)) if line == "stop" => Err(before_start("It was told to stop")),
            _ => Ok(()),
        }
    }
}

/// Nanoseconds since the epoch.
pub fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Hands lines on until `stop` or the end. What comes after the trial has begun ends the program; what
/// came before it is the trial's to answer, unless it began in that very moment.
fn read(sender: &Sender<Option<String>>, begun: &AtomicBool) {
    let mut last = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let line = line.trim_end_matches('\r').to_owned();
        if line == "stop" {
            last = Some(line);
            break;
        }
        let _ = sender.send(Some(line));
    }
    let _ = sender.send(last);
    while !begun.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(5));
    }
    end(&SimError::new(
        Kind::Cancelled,
        "cancelled",
        "The benchmark was cancelled.",
        "Run it again; nothing was left behind.",
    ));
}

/// Ends the program from beside the trial, which may be deaf. A line that it had begun is cut off
/// before the last one; a reader that reads nothing is not waited for by anyone but its own timer.
fn end(error: &SimError) {
    let line = format!("\n{}\n", json!({ "error": error.to_failure() }));
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    eprintln!("nephoscope-sim: {} {}", error.message, error.hint);
    std::process::exit(error.kind.exit_code());
}

/// A terminal or a file cannot tell that the parent is gone.
fn is_pipe_or_socket() -> bool {
    std::fs::metadata("/proc/self/fd/0")
        .is_ok_and(|found| found.file_type().is_fifo() || found.file_type().is_socket())
}

fn before_start(why: &str) -> SimError {
    let message = format!("{why} before it began.");
    SimError::new(Kind::Cancelled, "cancelled", message, "Send `go` to start it.")
}

fn unknown_line(word: &str) -> SimError {
    let word: String = word.chars().take(20).collect();
    SimError::usage(
        format!("'{word}' is no line of the control channel here."),
        "Lines are go, go NANOSECONDS and stop.",
    )
}
