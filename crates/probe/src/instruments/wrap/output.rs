//! Output of a third-party program while it runs: what it printed and when.
use crate::error::{FailureKind, ProbeError, Result};
use nephoscope_linux::clock;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::process::{Child, ChildStderr, ChildStdout};

/// A program that prints more than this is a mistake in its arguments.
const OUTPUT_BYTES: usize = 4 << 20;
/// Of its standard error the beginning is kept, where the first cause is.
const ERROR_BYTES: usize = 64 << 10;
/// Moments of output that are kept.
const MARKS: usize = 20_000;
/// Of a server's output its end is kept.
const TAIL_BYTES: usize = 1 << 20;

pub struct ProgramOutput {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    started_ns: u64,
    out: Vec<u8>,
    errors: Vec<u8>,
    error_bytes: u64,
    /// Nanoseconds since the start, and how much of `out` was there then.
    marks: Vec<(u64, usize)>,
}

impl ProgramOutput {
    /// The outputs of `child`, which was started at `started_ns`.
    pub fn of(child: &mut Child, started_ns: u64) -> Self {
        Self {
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            started_ns,
            out: Vec::new(),
            errors: Vec::new(),
            error_bytes: 0,
            marks: Vec::new(),
        }
    }

    /// Returns whether both outputs have come to their ends.
    pub fn is_ended(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }

    /// Reads what comes in `timeout_ms` at most; the first piece ends the waiting.
    pub fn read(&mut self, timeout_ms: libc::c_int) -> Result<()> {
        let wait_for = |fd: Option<RawFd>| libc::pollfd {
            fd: fd.unwrap_or(-1),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polls = [
            wait_for(self.stdout.as_ref().map(AsRawFd::as_raw_fd)),
            wait_for(self.stderr.as_ref().map(AsRawFd::as_raw_fd)),
        ];
        // SAFETY: two valid records. A signal or the time ends it; then the caller comes round.
        if unsafe { libc::poll(polls.as_mut_ptr(), 2, timeout_ms) } <= 0 {
            return Ok(());
        }
        let now_ns = clock::monotonic_ns().saturating_sub(self.started_ns);
        let mut bytes = vec![0u8; 64 << 10];
        if polls[0].revents != 0 {
            let count = read_some(&mut self.stdout, &mut bytes)?;
            self.out.extend_from_slice(&bytes[..count]);
            if count > 0 && self.marks.len() < MARKS {
                self.marks.push((now_ns, self.out.len()));
            }
        }
        if polls[1].revents != 0 {
            let count = read_some(&mut self.stderr, &mut bytes)?;
            self.error_bytes += count as u64;
            self.errors.extend_from_slice(&bytes[..count]);
        }
        Ok(())
    }

    /// Refuses more output than any report has.
    pub fn check_size(&mut self) -> Result<()> {
        self.errors.truncate(ERROR_BYTES);
        if self.out.len() <= OUTPUT_BYTES {
            return Ok(());
        }
        Err(ProbeError::new(
            FailureKind::Failed,
            "too_much_output",
            format!("The program printed more than {OUTPUT_BYTES} bytes."),
            "Take smaller parameters.",
        ))
    }

    /// Adds what other programs printed after this one's end.
    pub fn append(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
        let now_ns = clock::monotonic_ns().saturating_sub(self.started_ns);
        if !text.is_empty() && self.marks.len() < MARKS {
            self.marks.push((now_ns, self.out.len()));
        }
    }

    /// Forgets all but the ends of both outputs.
    pub fn keep_tails(&mut self) {
        for bytes in [&mut self.out, &mut self.errors] {
            // Not with every line: moving the rest costs more than keeping it for a while.
            if bytes.len() > 4 * TAIL_BYTES {
                bytes.drain(..bytes.len() - TAIL_BYTES);
            }
        }
        self.marks.clear();
    }

    /// Returns whether either output holds `text`.
    pub fn holds(&self, text: &str) -> bool {
        self.stdout().contains(text) || text_of(&self.errors).contains(text)
    }

    pub fn stdout(&self) -> String {
        text_of(&self.out)
    }

    pub fn first_errors(&self) -> String {
        text_of(&self.errors[..self.errors.len().min(ERROR_BYTES)])
    }

    /// Ends of standard output and standard error.
    pub fn tails(&self) -> (String, String) {
        let tail = |bytes: &[u8]| text_of(&bytes[bytes.len().saturating_sub(TAIL_BYTES)..]);
        (tail(&self.out), tail(&self.errors))
    }

    pub fn error_bytes(&self) -> u64 {
        self.error_bytes
    }

    /// Pieces of standard output: nanoseconds since the start, and how much was there then.
    pub fn marks(&self) -> &[(u64, usize)] {
        &self.marks
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads what has come; at its end the stream is given up.
fn read_some<R: Read>(stream: &mut Option<R>, bytes: &mut [u8]) -> Result<usize> {
    let Some(open) = stream else { return Ok(0) };
    match open.read(bytes) {
        Ok(0) => {
            *stream = None;
            Ok(0)
        }
        Ok(count) => Ok(count),
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(ProbeError::os("Reading the program's output", &error)),
    }
}
