//! A program of somebody else's, run as a trial: counters before and after, the gate, its output with
//! the time of each piece, and its end with ours. What the output means is the caller's business.
use crate::clock;
use crate::disk::folder::Folder;
use crate::disk::place;
use crate::error::{Kind, ProbeError};
use crate::instruments::Instrument;
use crate::session::Session;
use crate::trial::Trial;
use nephoscope_wire::spec::{Param, Spec};
use serde::Deserialize;
use serde_json::json;
use std::fs::File;
use std::io::{Error, Read, Seek, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

const SPEC: Spec = Spec {
    id: "wrap",
    summary: "A program of somebody else's",
    params: &[Param::text("job", "", "What to run.")],
    metrics: &[],
    overhead: "",
    source: "",
    two_sided: false,
    load: false,
};

/// Not in the table of benchmarks: it measures nothing by itself.
pub const WRAP: Instrument = Instrument { spec: &SPEC, source: "", run, serve: None };

/// What the program says is kept up to here; a program that says more is a mistake in its arguments.
const MOST_BYTES: usize = 4 << 20;
/// Of its standard error the beginning is kept, where the first cause is.
const ERROR_BYTES: usize = 64 << 10;
/// Moments of output that are kept.
const MOST_MARKS: usize = 20_000;
/// Stands for the scratch folder in arguments and input.
const SCRATCH: &str = "{scratch}";

/// What to run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// Name of the program; looked for in PATH.
    program: String,
    /// Its arguments, which no shell reads.
    arguments: Vec<String>,
    /// What it finds on its standard input.
    #[serde(default)]
    input: String,
    /// Where its scratch folder is made; empty takes $TMPDIR, else /var/tmp.
    #[serde(default)]
    directory: String,
    /// Bytes that it will have on the disk at once.
    #[serde(default)]
    needs_bytes: u64,
}

fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let job: Job = serde_json::from_str(trial.params.text("job")).map_err(|error| {
        ProbeError::usage(
            format!("--job is not understood: {error}."),
            "It takes {\"program\": NAME, \"arguments\": [TEXT…], \"input\": TEXT}.",
        )
    })?;
    let directory = place::directory(&job.directory);
    place::check_space(&directory, job.needs_bytes)?;
    let folder = Folder::make(&directory)?;
    let said = Wrapped::prepare(&job, &folder).and_then(|wrapped| {
        trial.prepared()?;
        wrapped.run(trial.session, trial.started_ns())
    });
    let removed = folder.remove();
    let said = said?;
    removed?;
    trial.out.line(&json!({ "tool": said }))
}

/// A program that is ready to start.
struct Wrapped {
    program: String,
    command: Command,
}

impl Wrapped {
    fn prepare(job: &Job, folder: &Folder) -> Result<Self, ProbeError> {
        let path = folder.path().to_str().ok_or_else(|| {
            ProbeError::usage("`directory` is no UTF-8 text.", "Set it to another directory.")
        })?;
        let with_folder = |text: &str| text.replace(SCRATCH, path);
        let mut command = Command::new(&job.program);
        command
            .args(job.arguments.iter().map(|argument| with_folder(argument)))
            .current_dir(folder.path())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME"))
            .env("LC_ALL", "C")
            .env("TMPDIR", folder.path())
            .stdin(input(&with_folder(&job.input))?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        // SAFETY: one system call on the child's own state, async-signal-safe.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            });
        }
        Ok(Self { program: job.program.clone(), command })
    }

    fn run(mut self, session: Session, started_ns: u64) -> Result<serde_json::Value, ProbeError> {
        let child = self.command.spawn().map_err(|error| self.not_started(&error))?;
        let mut group = Group(child);
        let mut said = Said::default();
        said.listen(session, &mut group.0, started_ns)?;
        let status = group.0.wait();
        let status = status.map_err(|error| ProbeError::os("Waiting for the program", &error))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(json!({
            "program": self.program,
            "exit": status.code(),
            "signal": status.signal(),
            "stdout": text(&said.out),
            "stderr": text(&said.errors),
            "stderr_bytes": said.error_bytes,
            "marks": said.marks,
        }))
    }

    fn not_started(&self, error: &Error) -> ProbeError {
        let program = &self.program;
        match error.kind() {
            std::io::ErrorKind::NotFound => ProbeError::new(
                Kind::Lacks,
                "no_program",
                format!("There is no program '{program}' in PATH."),
                "Install it.",
            ),
            std::io::ErrorKind::PermissionDenied => ProbeError::new(
                Kind::Lacks,
                "no_permission",
                format!("The program '{program}' may not be run by this user."),
                "Make it executable, or run as another user.",
            ),
            _ => ProbeError::os(&format!("Starting '{program}'"), error),
        }
    }
}

/// A nameless file with that text, from its start.
fn input(text: &str) -> Result<Stdio, ProbeError> {
    // SAFETY: a valid C string; the descriptor is ours alone.
    let file = unsafe {
        match libc::memfd_create(c"input".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => return Err(ProbeError::os("Making the input", &Error::last_os_error())),
            fd => File::from_raw_fd(fd),
        }
    };
    let mut filled = &file;
    filled
        .write_all(text.as_bytes())
        .and_then(|()| filled.rewind())
        .map_err(|error| ProbeError::os("Writing the input", &error))?;
    Ok(file.into())
}

/// The program with all that it started; whoever of them still runs is killed.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = self.0.id().cast_signed();
        // SAFETY: a signal to the group that this program alone leads; its number is ours until the
        // leader is waited for, and after that only its own members can still carry it.
        unsafe { libc::kill(-group, libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

/// What a program said, and when.
#[derive(Default)]
struct Said {
    out: Vec<u8>,
    errors: Vec<u8>,
    error_bytes: u64,
    /// Nanoseconds since the start, and how much of `out` was there then.
    marks: Vec<(u64, usize)>,
}

impl Said {
    /// Reads both outputs to their ends.
    fn listen(
        &mut self,
        session: Session,
        child: &mut Child,
        started_ns: u64,
    ) -> Result<(), ProbeError> {
        let (mut out, mut errors) = (child.stdout.take(), child.stderr.take());
        let mut bytes = vec![0u8; 64 << 10];
        while out.is_some() || errors.is_some() {
            session.check()?;
            let waiting = |fd: Option<libc::c_int>| libc::pollfd {
                fd: fd.unwrap_or(-1),
                events: libc::POLLIN,
                revents: 0,
            };
            let mut polls = [
                waiting(out.as_ref().map(AsRawFd::as_raw_fd)),
                waiting(errors.as_ref().map(AsRawFd::as_raw_fd)),
            ];
            // SAFETY: two valid records. A signal or the time ends it; then it comes round.
            if unsafe { libc::poll(polls.as_mut_ptr(), 2, 100) } <= 0 {
                continue;
            }
            let now_ns = clock::monotonic_ns().saturating_sub(started_ns);
            if polls[0].revents != 0 {
                let got = some_of(&mut out, &mut bytes)?;
                self.out.extend_from_slice(&bytes[..got]);
                if got > 0 && self.marks.len() < MOST_MARKS {
                    self.marks.push((now_ns, self.out.len()));
                }
            }
            if polls[1].revents != 0 {
                let got = some_of(&mut errors, &mut bytes)?;
                self.error_bytes += got as u64;
                let room = ERROR_BYTES.saturating_sub(self.errors.len()).min(got);
                self.errors.extend_from_slice(&bytes[..room]);
            }
            if self.out.len() > MOST_BYTES {
                return Err(ProbeError::new(
                    Kind::Failed,
                    "too_much_output",
                    format!("The program printed more than {MOST_BYTES} bytes."),
                    "Take smaller parameters.",
                ));
            }
        }
        Ok(())
    }
}

/// Reads what has come; at its end the stream is given up.
fn some_of<R: Read>(stream: &mut Option<R>, bytes: &mut [u8]) -> Result<usize, ProbeError> {
    let Some(open) = stream else { return Ok(0) };
    match open.read(bytes) {
        Ok(0) => {
            *stream = None;
            Ok(0)
        }
        Ok(got) => Ok(got),
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(ProbeError::os("Reading the program's output", &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(program: &str, arguments: &[&str], input: &str) -> Job {
        Job {
            program: program.to_owned(),
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
            input: input.to_owned(),
            directory: String::new(),
            needs_bytes: 0,
        }
    }

    fn wrapped(job: &Job) -> Result<serde_json::Value, ProbeError> {
        let folder = Folder::make(&place::directory("")).unwrap();
        let said = Wrapped::prepare(job, &folder)?.run(Session::detached(), clock::monotonic_ns());
        folder.remove().unwrap();
        said
    }

    #[test]
    fn what_it_says_comes_back_with_its_times() {
        let script = "cat; echo more; sleep 0.2; pwd; echo bad >&2; exit 3";
        let said = wrapped(&job("sh", &["-c", script], "in {scratch}\n")).unwrap();
        let out = said["stdout"].as_str().unwrap();
        let mut lines = out.lines();
        let folder = lines.next().unwrap().strip_prefix("in ").unwrap().to_owned();
        assert!(folder.contains(".nephoscope-folder-"), "{folder}");
        assert_eq!(lines.next(), Some("more"));
        let real = std::path::Path::new(lines.next().unwrap());
        assert_eq!(real.file_name(), std::path::Path::new(&folder).file_name());
        assert_eq!((&said["exit"], &said["stderr"]), (&json!(3), &json!("bad\n")));
        let marks = said["marks"].as_array().unwrap();
        let (first, last) = (&marks[0], &marks[marks.len() - 1]);
        assert_eq!(last[1], out.len());
        // Between the first word and the last it slept a fifth of a second.
        assert!(last[0].as_u64().unwrap() - first[0].as_u64().unwrap() >= 200_000_000);
        assert!(!std::path::Path::new(&folder).exists());
    }

    #[test]
    fn a_program_that_is_not_there_is_lacking() {
        let error = wrapped(&job("no-such-program-here", &[], "")).unwrap_err();
        assert_eq!((error.name, error.kind.exit_code()), ("no_program", 4));
    }

    #[test]
    fn a_signal_is_no_exit_code() {
        let said = wrapped(&job("sh", &["-c", "kill -9 $$"], "")).unwrap();
        assert!(said["exit"].is_null());
        assert_eq!(said["signal"], 9);
    }

    #[test]
    fn endless_output_is_ended() {
        let error = wrapped(&job("sh", &["-c", "while :; do echo yes yes yes; done"], ""));
        assert_eq!(error.unwrap_err().name, "too_much_output");
    }
}
