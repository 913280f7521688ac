//! The deadline and the control channel, each on a thread of its own: nothing is measured here that a
//! thread could disturb. The control channel (`--control`) is that of the probe.
use nephoscope_wire::arguments::Limits;
use nephoscope_wire::error::{Error, FailureKind};
use nephoscope_wire::lines::ControlLine;
use nephoscope_wire::writer::report_error;
use std::io::{BufRead, Write};
use std::os::unix::fs::FileTypeExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Lines of standard input (None: stopped or at its end), and whether the trial has started.
pub struct Control {
    lines: Receiver<Option<String>>,
    has_started: Arc<AtomicBool>,
}

impl Control {
    /// Starts the deadline, and reads standard input if it has another end.
    pub fn start(limits: &Limits) -> Self {
        let deadline = limits.deadline;
        thread::spawn(move || {
            thread::sleep(deadline);
            exit_with(&Error::new(
                FailureKind::Deadline,
                "deadline",
                "The deadline passed before the benchmark was done.",
                "Give it more time, or smaller parameters.",
            ));
        });
        let (sender, lines) = channel();
        let has_started = Arc::new(AtomicBool::new(!limits.control));
        if limits.control || (limits.with_parent && is_pipe_or_socket()) {
            let has_started = Arc::clone(&has_started);
            thread::spawn(move || read(&sender, &has_started));
        }
        Self { lines, has_started }
    }

    /// Waits for `go`, and for the time that it names. Returns an error for `stop`, the end of the input,
    /// and an unknown line.
    pub fn wait_for_go(&self) -> Result<(), Error> {
        let Some(line) = self.lines.recv().ok().flatten() else {
            return Err(cancelled_early("Standard input ended"));
        };
        let at_ns = match ControlLine::parse(&line) {
            Ok(ControlLine::Go(at_ns)) => at_ns.unwrap_or(0),
            Ok(ControlLine::Stop) => return Err(cancelled_early("The trial was stopped")),
            Err(error) if line.starts_with("go ") => return Err(error),
            _ => return Err(unknown_line(&line)),
        };
        thread::sleep(Duration::from_nanos(u64::saturating_sub(at_ns, wall_ns())));
        self.has_started.store(true, Ordering::SeqCst);
        // Lines that arrived while it waited.
        match self.lines.try_recv() {
            Ok(None) => Err(cancelled_early("Standard input ended")),
            Ok(Some(line)) if line == "stop" => Err(cancelled_early("The trial was stopped")),
            _ => Ok(()),
        }
    }
}

/// Returns the nanoseconds since the epoch.
pub fn wall_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Forwards lines until `stop` or the end. Either ends the program once the trial has started; before,
/// [`Control::wait_for_go`] handles it.
fn read(sender: &Sender<Option<String>>, has_started: &AtomicBool) {
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
    while !has_started.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(5));
    }
    exit_with(&Error::new(
        FailureKind::Cancelled,
        "cancelled",
        "The benchmark was cancelled.",
        "Run it again; nothing was left behind.",
    ));
}

/// Ends the program during the trial. An unfinished line of the trial is cut off before the last one.
fn exit_with(error: &Error) {
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(b"\n");
    std::process::exit(report_error("nephoscope-sim", error, stdout));
}

/// A terminal or a file cannot tell that the parent is gone.
fn is_pipe_or_socket() -> bool {
    std::fs::metadata("/proc/self/fd/0")
        .is_ok_and(|file| file.file_type().is_fifo() || file.file_type().is_socket())
}

fn cancelled_early(why: &str) -> Error {
    let message = format!("{why} before the start.");
    Error::new(FailureKind::Cancelled, "cancelled", message, "Send `go` to start it.")
}

fn unknown_line(line: &str) -> Error {
    let word: String = line.chars().take_while(|letter| *letter != ' ').take(20).collect();
    Error::usage(
        format!("'{word}' is not a command of the control channel."),
        "The commands are go, go NANOSECONDS and stop.",
    )
}
