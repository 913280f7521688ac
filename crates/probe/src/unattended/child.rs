//! One trial: this program as a child, its output kept as it is.
use super::job::TrialJob;
use crate::error::{ProbeError, Result};
use crate::http::observe::datagrams::wait_readable;
use nephoscope_linux::clock;
use nephoscope_linux::files;
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A trial ends itself at its deadline; ours is for one that does not.
const LATER: Duration = Duration::from_secs(3);
/// As much as a controller takes of one trial.
const OUTPUT_BYTES: usize = 64 << 20;
const TAIL_BYTES: i64 = 2000;
const BLOCK_BYTES: usize = 64 << 10;

/// How a trial ended. code: as of a shell's `wait` in Python: the negative number of a signal. why: empty
/// where it ended by itself; `timeout` or `output` where it was ended.
pub struct Ended {
    pub output: Vec<u8>,
    pub stderr_tail: String,
    pub code: i32,
    pub why: &'static str,
    pub elapsed_ns: u64,
}

pub fn run(trial: &TrialJob) -> Result<Ended> {
    let failed = |error: std::io::Error| ProbeError::os("Starting a trial", &error);
    let errors = files::in_memory(c"stderr").map_err(failed)?;
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command
        .args(["run", &trial.benchmark, "--params"])
        .arg(serde_json::Value::from(trial.params.clone()).to_string())
        .args(["--deadline", &format!("{:.3}", trial.timeout_s)])
        .args(trial.gap_meter.then_some("--gap-meter"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone().map_err(failed)?)
        .process_group(0);
    let began_ns = clock::monotonic_ns();
    let end = Instant::now() + Duration::from_secs_f64(trial.timeout_s) + LATER;
    let mut child = command.spawn().map_err(failed)?;
    let (output, why) = read_all(&mut child, end)?;
    let (code, why) = wait(&mut child, end, why)?;
    let elapsed_ns = clock::monotonic_ns() - began_ns;
    Ok(Ended { output, stderr_tail: tail(errors), code, why, elapsed_ns })
}

/// Reads what the child prints, asleep until there is something: nothing else of this program runs
/// while a trial does.
fn read_all(child: &mut Child, end: Instant) -> Result<(Vec<u8>, &'static str)> {
    let mut pipe = child.stdout.take().expect("the output is a pipe");
    let (mut output, mut block) = (Vec::new(), vec![0; BLOCK_BYTES]);
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok((output, "timeout"));
        }
        let ready = wait_readable(&pipe, left);
        ready.map_err(|error| ProbeError::os("Waiting for a trial", &error))?;
        if end <= Instant::now() {
            continue;
        }
        match pipe.read(&mut block) {
            Ok(0) => return Ok((output, "")),
            Ok(bytes) => output.extend_from_slice(&block[..bytes]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(ProbeError::os("Reading a trial's output", &error)),
        }
        if output.len() > OUTPUT_BYTES {
            return Ok((Vec::new(), "output"));
        }
    }
}

/// Waits for the child's end, and ends its whole group where it does not come.
fn wait(child: &mut Child, end: Instant, mut why: &'static str) -> Result<(i32, &'static str)> {
    let failed = |error: std::io::Error| ProbeError::os("Waiting for a trial", &error);
    while why.is_empty() {
        if let Some(status) = child.try_wait().map_err(failed)? {
            let code = status.code().unwrap_or_else(|| -status.signal().unwrap_or(0));
            return Ok((code, why));
        }
        if Instant::now() >= end {
            why = "timeout";
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    // SAFETY: a signal to the group that the child leads; its number is ours until it is waited for.
    unsafe { libc::kill(-child.id().cast_signed(), libc::SIGKILL) };
    let status = child.wait().map_err(failed)?;
    Ok((status.code().unwrap_or_else(|| -status.signal().unwrap_or(0)), why))
}

fn tail(mut errors: File) -> String {
    let length = errors.metadata().map_or(0, |metadata| metadata.len().cast_signed());
    let mut bytes = Vec::new();
    if errors.seek(SeekFrom::Start((length - TAIL_BYTES).max(0).cast_unsigned())).is_ok() {
        let _ = errors.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
