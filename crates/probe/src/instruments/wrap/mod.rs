//! Third-party programs under the probe's supervision: counters before and after, the gate, a scratch
//! folder, the output with the time of each piece, and an end with the probe's. What the output means
//! is the caller's business. A program runs once ([`run`]) or as a server ([`server::serve`]).
mod account;
mod listening;
mod output;
mod program;
mod server;

use crate::disk::folder::Folder;
use crate::disk::place;
use crate::error::{FailureKind, ProbeError, Result};
use crate::instruments::Instrument;
use crate::trial::session::Session;
use crate::trial::Trial;
use account::UserAccount;
use nephoscope_linux::clock;
use nephoscope_linux::signals::on_end_of_parent;
use nephoscope_wire::lines::Peer;
use nephoscope_wire::spec::{Param, Resource, Spec};
use program::{input, search_path, ProgramExit, Wrapped};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const SPEC: Spec = Spec {
    id: "wrap",
    summary: "A third-party program",
    params: &[Param::text("job", "").doc("Program to run, as JSON.")],
    ..Spec::about(Resource::None)
};

/// Not in the table of benchmarks: it measures nothing by itself.
pub const WRAP: Instrument =
    Instrument { spec: &SPEC, source: "", run, serve: Some(server::serve) };

/// A call of a program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ProgramStep {
    /// Name of the program; looked for in PATH, then in the job's `paths`.
    program: String,
    /// Its arguments, which no shell reads.
    arguments: Vec<String>,
    /// What it finds on its standard input.
    input: String,
}

/// Program to run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrapJob {
    /// As of a step.
    program: String,
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    input: String,
    /// Where its scratch folder is made; empty takes $TMPDIR, else /var/tmp.
    #[serde(default)]
    directory: String,
    /// Bytes that it will have on the disk at once.
    #[serde(default)]
    needs_bytes: u64,
    /// Programs that run before it in the scratch folder, untimed; each has to succeed.
    #[serde(default)]
    prepare: Vec<ProgramStep>,
    /// Folders in which programs are looked for after PATH; the last part but one may be `*`.
    #[serde(default)]
    paths: Vec<String>,
    /// Account as which all of them run where the probe is root; empty is the probe's own.
    #[serde(default)]
    user: String,
    /// Of a server: programs that run at `stop` while it still serves; their output follows its own.
    #[serde(default)]
    closing: Vec<ProgramStep>,
    /// The same, after its end; also of a program that runs once.
    #[serde(default)]
    after: Vec<ProgramStep>,
    /// Variables of the environment of all of them, besides PATH, HOME, LC_ALL and TMPDIR.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Of a server: its port; 0 takes a free one.
    #[serde(default)]
    port: u16,
    /// Of a server: what its port is for.
    #[serde(default)]
    protocol: listening::TransportProtocol,
    /// Of a server: it is ready when its output holds this text and it listens; empty waits for its
    /// port alone.
    #[serde(default)]
    ready_text: String,
}

/// Texts that stand for values in arguments and input, with their values.
type Placeholders = Vec<(&'static str, String)>;

impl WrapJob {
    fn parse(trial: &Trial) -> Result<Self> {
        serde_json::from_str(trial.params.text("job")).map_err(|error| {
            ProbeError::usage(
                format!("--job is not understood: {error}."),
                "It takes {\"program\": NAME, \"arguments\": [TEXT…], \"input\": TEXT}.",
            )
        })
    }

    /// The program itself.
    fn main(&self) -> ProgramStep {
        ProgramStep {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            input: self.input.clone(),
        }
    }

    /// All programs of the job, itself included.
    fn steps(&self) -> Vec<ProgramStep> {
        let further = [&self.prepare, &self.closing, &self.after].into_iter().flatten().cloned();
        std::iter::once(self.main()).chain(further).collect()
    }

    fn mentions(&self, placeholder: &str) -> bool {
        let mentioned = |text: &String| text.contains(placeholder);
        self.steps().iter().any(|step| step.arguments.iter().chain([&step.input]).any(mentioned))
    }

    /// Refuses a secret where every user of the machine could read it in the process list.
    fn check_secrets(&self) -> Result<()> {
        let steps = self.steps();
        let arguments = steps.iter().flat_map(|step| &step.arguments);
        if arguments.chain(self.environment.values()).any(|text| text.contains("token}")) {
            return Err(ProbeError::usage(
                "A token in `arguments` or `environment` could be read by other programs.",
                "Put it into `input`.",
            ));
        }
        Ok(())
    }

    fn folder(&self) -> Result<Folder> {
        let directory = place::directory(&self.directory);
        place::check_space(&directory, self.needs_bytes)?;
        Folder::make(&directory)
    }
}

/// Runs the program once. Where its arguments or input name `{peer_address}`, `{peer_host}`,
/// `{peer_port}` or `{peer_token}`, the first control line says where the far side is.
fn run(trial: &mut Trial) -> Result<()> {
    let job = WrapJob::parse(trial)?;
    job.check_secrets()?;
    let mut values = Placeholders::new();
    if job.mentions("{peer_") {
        let Peer { address, port, token } = trial.session.read_peer("wrap")?;
        values.push(("{peer_address}", address.to_string()));
        values.push(("{peer_host}", url_host(address)));
        values.push(("{peer_port}", port.to_string()));
        values.push(("{peer_token}", token));
    }
    let folder = job.folder()?;
    let result = StartPlace::new(&job, &folder, values).and_then(|place| {
        place.run_once(&job, trial.session, || {
            trial.prepared()?;
            Ok(trial.started_ns())
        })
    });
    let removed = folder.remove();
    let result = result?;
    removed?;
    trial.out.line(&json!({ "tool": result.report() }))
}

/// An address as it stands in a URL.
fn url_host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Where programs start: their folder, account and search path, and what placeholders stand for.
struct StartPlace {
    folder: PathBuf,
    account: Option<UserAccount>,
    search_path: OsString,
    values: Placeholders,
    environment: BTreeMap<String, String>,
}

impl StartPlace {
    fn new(job: &WrapJob, folder: &Folder, mut values: Placeholders) -> Result<Self> {
        let account = UserAccount::to_use(&job.user)?;
        let folder = match &account {
            None => folder.path().to_owned(),
            Some(account) => account.folder_in(folder.path())?,
        };
        let path = folder.to_str().ok_or_else(|| {
            ProbeError::usage("`directory` is no UTF-8 text.", "Set it to another directory.")
        })?;
        values.push(("{scratch}", path.to_owned()));
        let environment = job.environment.clone();
        Ok(Self { folder, account, search_path: search_path(&job.paths), values, environment })
    }

    fn filled(&self, text: &str) -> String {
        let filled = |text: String, (name, value): &(&str, String)| text.replace(name, value);
        self.values.iter().fold(text.to_owned(), filled)
    }

    fn wrapped(&self, step: &ProgramStep) -> Result<Wrapped> {
        let mut command = Command::new(&step.program);
        command
            .args(step.arguments.iter().map(|argument| self.filled(argument)))
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", &self.search_path)
            // A tool reads and writes no settings of the user.
            .env("HOME", &self.folder)
            .env("LC_ALL", "C")
            .env("TMPDIR", &self.folder)
            .envs(self.environment.iter().map(|(name, value)| (name, self.filled(value))))
            .stdin(input(&self.filled(&step.input), self.account.as_ref())?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(account) = &self.account {
            command.uid(account.uid).gid(account.gid);
        }
        // SAFETY: one system call on the child's own state, async-signal-safe. It comes after the
        // change of the account, which would undo it.
        unsafe { command.pre_exec(|| on_end_of_parent(libc::SIGKILL)) };
        Ok(Wrapped { program: step.program.clone(), command })
    }

    /// Runs the program between those that prepare it and those that read what it has left. `start`
    /// is called right before it and returns the moment from which its output is stamped.
    fn run_once(
        &self,
        job: &WrapJob,
        session: Session,
        start: impl FnOnce() -> Result<u64>,
    ) -> Result<ProgramExit> {
        self.run_all(&job.prepare, session)?;
        let wrapped = self.wrapped(&job.main())?;
        let started_ns = start()?;
        let mut ended = wrapped.run(session, started_ns)?;
        // A program that failed has left no report, and its own words say why.
        if ended.status.success() {
            ended.output.append(&self.run_all(&job.after, session)?);
        }
        Ok(ended)
    }

    /// Runs programs in turn, each of which has to succeed; returns what they printed.
    fn run_all(&self, steps: &[ProgramStep], session: Session) -> Result<String> {
        let mut printed = String::new();
        for step in steps {
            let ended = self.wrapped(step)?.run(session, clock::monotonic_ns())?;
            if !ended.status.success() {
                let words = ended.output.first_errors() + &ended.output.stdout();
                let first = words.lines().map(str::trim).find(|line| !line.is_empty());
                return Err(ProbeError::new(
                    FailureKind::Failed,
                    "step_failed",
                    format!("{} failed ({}).", step.program, ended.status),
                    format!("Its output begins with: {}", first.unwrap_or("nothing")),
                ));
            }
            printed += &ended.output.stdout();
        }
        Ok(printed)
    }
}

#[cfg(test)]
mod tests;
