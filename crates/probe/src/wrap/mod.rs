//! Third-party programs under the probe's supervision: counters before and after, the gate, a scratch
//! folder, the output with the time of each piece, and an end with the probe's. What the output means
//! is the caller's business. A program runs once ([`run`]) or as a server ([`server::serve`]).
mod listening;
mod output;
mod server;

use crate::disk::folder::Folder;
use crate::disk::place;
use crate::error::{Kind, ProbeError};
use crate::instruments::Instrument;
use crate::session::Session;
use crate::trial::Trial;
use nephoscope_wire::lines::Peer;
use nephoscope_wire::spec::{Param, Spec};
use output::Output;
use serde::Deserialize;
use serde_json::json;
use std::fs::File;
use std::io::{Error, Seek, Write};
use std::os::fd::FromRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};

const SPEC: Spec = Spec {
    id: "wrap",
    summary: "A third-party program",
    params: &[Param::text("job", "").doc("Program to run, as JSON.")],
    ..Spec::EMPTY
};

/// Not in the table of benchmarks: it measures nothing by itself.
pub const WRAP: Instrument =
    Instrument { spec: &SPEC, source: "", run, serve: Some(server::serve) };

/// Program to run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Job {
    /// Name of the program; looked for in PATH.
    program: String,
    /// Its arguments, which no shell reads.
    #[serde(default)]
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
    /// Of a server: its port; 0 takes a free one.
    #[serde(default)]
    port: u16,
    /// Of a server: what its port is for.
    #[serde(default)]
    protocol: listening::Protocol,
    /// Of a server: it is ready when its output holds this text and it listens; empty waits for its
    /// port alone.
    #[serde(default)]
    ready_text: String,
}

/// Texts that stand for values in arguments and input, with their values.
type Placeholders = Vec<(&'static str, String)>;

impl Job {
    fn parse(trial: &Trial) -> Result<Self, ProbeError> {
        serde_json::from_str(trial.params.text("job")).map_err(|error| {
            ProbeError::usage(
                format!("--job is not understood: {error}."),
                "It takes {\"program\": NAME, \"arguments\": [TEXT…], \"input\": TEXT}.",
            )
        })
    }

    fn mentions(&self, placeholder: &str) -> bool {
        let texts = self.arguments.iter().chain([&self.input]);
        texts.into_iter().any(|text| text.contains(placeholder))
    }

    /// Refuses a secret where every user of the machine could read it in the process list.
    fn check_secrets(&self) -> Result<(), ProbeError> {
        if self.arguments.iter().any(|text| text.contains("token}")) {
            return Err(ProbeError::usage(
                "A token in `arguments` could be read by every user of the machine.",
                "Put it into `input`.",
            ));
        }
        Ok(())
    }

    fn folder(&self) -> Result<Folder, ProbeError> {
        let directory = place::directory(&self.directory);
        place::check_space(&directory, self.needs_bytes)?;
        Folder::make(&directory)
    }
}

/// Runs the program once. Where its arguments or input name `{peer_address}`, `{peer_port}` or
/// `{peer_token}`, the first control line says where the far side is.
fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let job = Job::parse(trial)?;
    job.check_secrets()?;
    let mut values = Placeholders::new();
    if job.mentions("{peer_") {
        let Peer { address, port, token } = trial.session.read_peer("wrap")?;
        values.push(("{peer_address}", address.to_string()));
        values.push(("{peer_port}", port.to_string()));
        values.push(("{peer_token}", token));
    }
    let folder = job.folder()?;
    let result = Wrapped::prepare(&job, &folder, values).and_then(|wrapped| {
        trial.prepared()?;
        wrapped.run(trial.session, trial.started_ns())
    });
    let removed = folder.remove();
    let result = result?;
    removed?;
    trial.out.line(&json!({ "tool": result }))
}

/// A program that is ready to start.
struct Wrapped {
    program: String,
    command: Command,
}

impl Wrapped {
    fn prepare(job: &Job, folder: &Folder, mut values: Placeholders) -> Result<Self, ProbeError> {
        let path = folder.path().to_str().ok_or_else(|| {
            ProbeError::usage("`directory` is no UTF-8 text.", "Set it to another directory.")
        })?;
        values.push(("{scratch}", path.to_owned()));
        let filled = |text: &str| {
            values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
        };
        let mut command = Command::new(&job.program);
        command
            .args(job.arguments.iter().map(|argument| filled(argument)))
            .current_dir(folder.path())
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME"))
            .env("LC_ALL", "C")
            .env("TMPDIR", folder.path())
            .stdin(input(&filled(&job.input))?)
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

    fn start(&mut self) -> Result<Group, ProbeError> {
        self.command.spawn().map(Group).map_err(|error| self.not_started(&error))
    }

    fn run(mut self, session: Session, started_ns: u64) -> Result<serde_json::Value, ProbeError> {
        let mut group = self.start()?;
        let mut output = Output::of(&mut group.0, started_ns);
        while !output.is_ended() {
            session.check()?;
            output.read(100)?;
            output.check_size()?;
        }
        let status = group.0.wait();
        let status = status.map_err(|error| ProbeError::os("Waiting for the program", &error))?;
        Ok(json!({
            "program": self.program,
            "exit": status.code(),
            "signal": status.signal(),
            "stdout": output.stdout(),
            "stderr": output.first_errors(),
            "stderr_bytes": output.error_bytes(),
            "marks": output.marks(),
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

impl Group {
    fn signal(&self, signal: libc::c_int) {
        let group = self.0.id().cast_signed();
        // SAFETY: a signal to the group that this program alone leads; its number is ours until the
        // leader is waited for, and after that only its own members can still carry it.
        unsafe { libc::kill(-group, signal) };
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn job(program: &str, arguments: &[&str], input: &str) -> Job {
        Job {
            program: program.to_owned(),
            arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
            input: input.to_owned(),
            ..Job::default()
        }
    }

    fn wrapped(job: &Job) -> Result<serde_json::Value, ProbeError> {
        let folder = Folder::make(&place::directory("")).unwrap();
        let said = Wrapped::prepare(job, &folder, Vec::new())?
            .run(Session::detached(), clock::monotonic_ns());
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

    #[test]
    fn a_token_may_stand_in_the_input_only() {
        assert!(job("sh", &["{token}"], "").check_secrets().is_err());
        assert!(job("sh", &["{peer_token}"], "").check_secrets().is_err());
        assert!(job("sh", &["{port}"], "pass {token}").check_secrets().is_ok());
    }
}
