//! One program: found, started with its input, read to its end, and ended with all that it started.
use super::account::UserAccount;
use super::output::ProgramOutput;
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_linux::files;
use serde_json::json;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{Error, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

/// PATH, then the folders of `paths`; where a `*` is a part of one, the highest name takes its place.
pub(super) fn search_path(paths: &[String]) -> OsString {
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
pub(super) struct Wrapped {
    pub(super) program: String,
    pub(super) command: Command,
}

/// A program that has ended.
pub(super) struct ProgramExit {
    pub(super) program: String,
    pub(super) status: ExitStatus,
    pub(super) output: ProgramOutput,
}

impl ProgramExit {
    pub(super) fn report(&self) -> serde_json::Value {
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
    pub(super) fn start(&mut self) -> Result<ProcessGroup> {
        self.command.spawn().map(ProcessGroup).map_err(|error| self.not_started(&error))
    }

    pub(super) fn run(mut self, session: Session, started_ns: u64) -> Result<ProgramExit> {
        let mut group = self.start()?;
        let mut output = ProgramOutput::of(&mut group.0, started_ns);
        while !output.is_ended() {
            session.check()?;
            output.read(100)?;
            output.check_size()?;
        }
        let status = group.0.wait();
        let status = status.map_err(|error| ProbeError::os("Waiting for the program", &error))?;
        Ok(ProgramExit { program: self.program, status, output })
    }

    fn not_started(&self, error: &Error) -> ProbeError {
        let program = &self.program;
        match error.kind() {
            std::io::ErrorKind::NotFound => ProbeError::new(
                FailureKind::Lacks,
                "no_program",
                format!("There is no program '{program}' in PATH."),
                "Install it.",
            ),
            std::io::ErrorKind::PermissionDenied => ProbeError::new(
                FailureKind::Lacks,
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
pub(super) fn input(text: &str, account: Option<&UserAccount>) -> Result<Stdio> {
    let file =
        files::in_memory(c"input").map_err(|error| ProbeError::os("Making the input", &error))?;
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
pub(super) struct ProcessGroup(pub(super) Child);

impl ProcessGroup {
    pub(super) fn signal(&self, signal: libc::c_int) {
        let group = self.0.id().cast_signed();
        // SAFETY: a signal to the group that this program alone leads; its number is ours until the
        // leader is waited for, and after that only its own members can still carry it.
        unsafe { libc::kill(-group, signal) };
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = self.0.wait();
    }
}
