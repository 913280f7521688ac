//! Third-party programs under the probe's supervision: counters before and after, the gate, a scratch
//! folder, the output with the time of each piece, and an end with the probe's. What the output means
//! is the caller's business. A program runs once ([`run`]) or as a server ([`server::serve`]).
mod account;
mod listening;
mod output;
mod server;

use crate::clock;
use crate::disk::folder::Folder;
use crate::disk::place;
use crate::error::{Kind, ProbeError};
use crate::instruments::Instrument;
use crate::session::Session;
use crate::trial::Trial;
use account::Account;
use nephoscope_wire::lines::Peer;
use nephoscope_wire::spec::{Param, Spec};
use output::Output;
use serde::Deserialize;
use serde_json::json;
use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{Error, Seek, Write};
use std::net::IpAddr;
use std::os::fd::FromRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

const SPEC: Spec = Spec {
    id: "wrap",
    summary: "A third-party program",
    params: &[Param::text("job", "").doc("Program to run, as JSON.")],
    ..Spec::EMPTY
};

/// Not in the table of benchmarks: it measures nothing by itself.
pub const WRAP: Instrument =
    Instrument { spec: &SPEC, source: "", run, serve: Some(server::serve) };

/// A call of a program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Step {
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
struct Job {
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
    prepare: Vec<Step>,
    /// Folders in which programs are looked for after PATH; the last part but one may be `*`.
    #[serde(default)]
    paths: Vec<String>,
    /// Account as which all of them run where the probe is root; empty is the probe's own.
    #[serde(default)]
    user: String,
    /// Of a server: programs that run at `stop` while it still serves; their output follows its own.
    #[serde(default)]
    closing: Vec<Step>,
    /// Of a server: the same, after its end.
    #[serde(default)]
    after: Vec<Step>,
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

    /// The program itself.
    fn main(&self) -> Step {
        Step {
            program: self.program.clone(),
            arguments: self.arguments.clone(),
            input: self.input.clone(),
        }
    }

    /// All programs of the job, itself included.
    fn steps(&self) -> Vec<Step> {
        let others = [&self.prepare, &self.closing, &self.after].into_iter().flatten().cloned();
        std::iter::once(self.main()).chain(others).collect()
    }

    fn mentions(&self, placeholder: &str) -> bool {
        let mentioned = |text: &String| text.contains(placeholder);
        self.steps().iter().any(|step| step.arguments.iter().chain([&step.input]).any(mentioned))
    }

    /// Refuses a secret where every user of the machine could read it in the process list.
    fn check_secrets(&self) -> Result<(), ProbeError> {
        let steps = self.steps();
        if steps.iter().flat_map(|step| &step.arguments).any(|text| text.contains("token}")) {
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

/// Runs the program once. Where its arguments or input name `{peer_address}`, `{peer_host}`,
/// `{peer_port}` or `{peer_token}`, the first control line says where the far side is.
fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let job = Job::parse(trial)?;
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
    let result = Place::new(&job, &folder, values).and_then(|place| {
        place.run_all(&job.prepare, trial.session)?;
        let wrapped = place.wrapped(&job.main())?;
        trial.prepared()?;
        wrapped.run(trial.session, trial.started_ns())
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
struct Place {
    folder: PathBuf,
    account: Option<Account>,
    search_path: OsString,
    values: Placeholders,
}

impl Place {
    fn new(job: &Job, folder: &Folder, mut values: Placeholders) -> Result<Self, ProbeError> {
        let account = Account::to_use(&job.user)?;
        let folder = match &account {
            None => folder.path().to_owned(),
            Some(account) => account.folder_in(folder.path())?,
        };
        let path = folder.to_str().ok_or_else(|| {
            ProbeError::usage("`directory` is no UTF-8 text.", "Set it to another directory.")
        })?;
        values.push(("{scratch}", path.to_owned()));
        Ok(Self { folder, account, search_path: search_path(&job.paths), values })
    }

    fn filled(&self, text: &str) -> String {
        let filled = |text: String, (name, value): &(&str, String)| text.replace(name, value);
        self.values.iter().fold(text.to_owned(), filled)
    }

    fn wrapped(&self, step: &Step) -> Result<Wrapped, ProbeError> {
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
            .stdin(input(&self.filled(&step.input), self.account.as_ref())?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if let Some(account) = &self.account {
            command.uid(account.uid).gid(account.gid);
        }
        // SAFETY: one system call on the child's own state, async-signal-safe. It comes after the
        // change of the account, which would undo it.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            });
        }
        Ok(Wrapped { program: step.program.clone(), command })
    }

    /// Runs programs in turn, each of which has to succeed; returns what they printed.
    fn run_all(&self, steps: &[Step], session: Session) -> Result<String, ProbeError> {
        let mut printed = String::new();
        for step in steps {
            let ended = self.wrapped(step)?.run(session, clock::monotonic_ns())?;
            if !ended.status.success() {
                let words = ended.output.first_errors() + &ended.output.stdout();
                let first = words.lines().map(str::trim).find(|line| !line.is_empty());
                return Err(ProbeError::new(
                    Kind::Failed,
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

/// PATH, then the folders of `paths`; where a `*` is a part of one, the highest name takes its place.
fn search_path(paths: &[String]) -> OsString {
    let mut all = std::env::var_os("PATH").unwrap_or_default();
    for path in paths {
        let folder = match path.split_once('*') {
            None => Some(path.clone()),
            Some((before, after)) => highest(before).map(|name| format!("{before}{name}{after}")),
        };
        if let Some(folder) = folder {
            if !all.is_empty() {
                all.push(":");
            }
            all.push(folder);
        }
    }
    all
}

/// The highest number that names something in a folder.
fn highest(folder: &str) -> Option<u64> {
    let names = std::fs::read_dir(folder).ok()?.flatten();
    names.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).max()
}

/// A program that is ready to start.
struct Wrapped {
    program: String,
    command: Command,
}

/// A program that has ended.
struct Ended {
    program: String,
    status: ExitStatus,
    output: Output,
}

impl Ended {
    fn report(&self) -> serde_json::Value {
        json!({
            "program": self.program,
            "exit": self.status.code(),
            "signal": self.status.signal(),
            "stdout": self.output.stdout(),
            "stderr": self.output.first_errors(),
            "stderr_bytes": self.output.error_bytes(),
            "marks": self.output.marks(),
        })
    }
}

impl Wrapped {
    fn start(&mut self) -> Result<Group, ProbeError> {
        self.command.spawn().map(Group).map_err(|error| self.not_started(&error))
    }

    fn run(mut self, session: Session, started_ns: u64) -> Result<Ended, ProbeError> {
        let mut group = self.start()?;
        let mut output = Output::of(&mut group.0, started_ns);
        while !output.is_ended() {
            session.check()?;
            output.read(100)?;
            output.check_size()?;
        }
        let status = group.0.wait();
        let status = status.map_err(|error| ProbeError::os("Waiting for the program", &error))?;
        Ok(Ended { program: self.program, status, output })
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
                format!("The program '{program}', or its scratch folder, is closed to its user."),
                "Make the program executable and the folder's parents searchable, or run as another \
                 user.",
            ),
            _ => ProbeError::os(&format!("Starting '{program}'"), error),
        }
    }
}

/// A nameless file with that text, from its start; it is the program's alone, as password files must
/// be.
fn input(text: &str, account: Option<&Account>) -> Result<Stdio, ProbeError> {
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
        .and_then(|()| file.set_permissions(Permissions::from_mode(0o600)))
        .map_err(|error| ProbeError::os("Writing the input", &error))?;
    if let Some(account) = account {
        account.own_file(&file)?;
    }
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
        let place = Place::new(job, &folder, Vec::new())?;
        let session = Session::detached();
        let said = place
            .run_all(&job.prepare, session)
            .and_then(|_| place.wrapped(&job.main())?.run(session, clock::monotonic_ns()));
        folder.remove().unwrap();
        said.map(|ended| ended.report())
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

    fn step(script: &str) -> Step {
        let arguments = ["-c", script].map(str::to_owned).to_vec();
        Step { program: "sh".to_owned(), arguments, input: "in\n".to_owned() }
    }

    #[test]
    fn what_it_needs_is_prepared_in_its_folder() {
        let main = job("sh", &["-c", "cat made; echo $HOME | grep -c .nephoscope-folder-"], "");
        let prepared =
            Job { prepare: vec![step("cat >made"), step("echo >>made")], ..main.clone() };
        assert_eq!(wrapped(&prepared).unwrap()["stdout"], "in\n\n1\n");
        let failing = step("echo no such thing >&2; exit 3");
        let error = wrapped(&Job { prepare: vec![failing], ..main }).unwrap_err();
        assert_eq!(error.name, "step_failed");
        assert!(error.hint.contains("no such thing"), "{}", error.hint);
    }

    #[test]
    fn programs_are_looked_for_in_the_newest_of_more_folders() {
        let folder = Folder::make(&place::directory("")).unwrap();
        let base = folder.path().to_str().unwrap();
        for version in ["9", "15", "extra"] {
            std::fs::create_dir_all(folder.path().join(version).join("bin")).unwrap();
        }
        let found = search_path(&[format!("{base}/*/bin"), "/nowhere-*/bin".to_owned()]);
        assert!(found.to_str().unwrap().ends_with(&format!(":{base}/15/bin")), "{found:?}");
        folder.remove().unwrap();
    }

    #[test]
    fn as_root_it_runs_under_the_named_account_with_its_own_folder() {
        let script = "id -u; touch made; cat /dev/stdin; ls -l -L /dev/stdin | cut -c1-10";
        let main = Job { user: "nobody".to_owned(), ..job("sh", &["-c", script], "in\n") };
        let report = wrapped(&main).unwrap();
        // SAFETY: asks who this process is.
        let own = unsafe { libc::geteuid() };
        let expected = if own == 0 { 65534 } else { own };
        assert_eq!(report["stdout"], format!("{expected}\nin\n-rw-------\n"), "{report}");
        if own == 0 {
            let error = wrapped(&Job { user: "no-such-user".to_owned(), ..main }).unwrap_err();
            assert_eq!(error.name, "no_user");
        }
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
        let other = Job { closing: vec![step("{token}")], ..Job::default() };
        assert!(other.check_secrets().is_err());
    }
}
