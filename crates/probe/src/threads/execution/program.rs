//! A program that is ready to be executed: where it lies, its arguments and environment.
use crate::error::{FailureKind, ProbeError, Result};
use std::ffi::{c_char, CString, OsStr, OsString};
use std::io::Error;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where programs are looked for when the environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[derive(Debug)]
pub struct Program {
    /// As the user wrote it, for sentences.
    words: String,
    path: CString,
    argv: Texts,
    environment: Texts,
}

/// Texts as `execve` takes them. The pointers are into `owned`, whose texts never move.
#[derive(Debug)]
struct Texts {
    _owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

// SAFETY: the pointers are into texts on the heap, which this value owns and nobody changes.
unsafe impl Send for Texts {}
// SAFETY: as above.
unsafe impl Sync for Texts {}

impl Texts {
    fn new(owned: Vec<CString>) -> Self {
        let mut pointers: Vec<_> = owned.iter().map(|text| text.as_ptr()).collect();
        pointers.push(std::ptr::null());
        Self { _owned: owned, pointers }
    }
}

impl Program {
    /// Finds `argv[0]` in PATH, or where it says. environment: NAME=VALUE each, added to the
    /// probe's own. A relative path starts at the probe's directory, in which the program runs.
    pub fn find(argv: &[&str], environment: &[&str]) -> Result<Self> {
        let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
            return Err(ProbeError::usage(
                "`argv` names no program.",
                "Give the program and its arguments as a list, such as [sleep, \"0.1\"].",
            ));
        };
        let mut variables: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        for entry in environment {
            let Some((name, value)) = entry.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                let message = format!("`environment` has '{entry}', which is not NAME=VALUE.");
                return Err(ProbeError::usage(message, "Write, for example, LC_ALL=C."));
            };
            variables.retain(|(known, _)| known != name);
            variables.push((name.into(), value.into()));
        }
        let search = variables.iter().find(|(name, _)| name == "PATH");
        let search = search.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value.as_os_str());
        let path = locate(name, search)?;
        let bytes = |text: &OsStr| c_text(text.as_bytes());
        let argv = argv.iter().map(|word| bytes(OsStr::new(word))).collect::<Result<_, _>>()?;
        let environment = variables
            .into_iter()
            .map(|(name, value)| c_text([name.into_vec(), value.into_vec()].join(&b'=')))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            words: first_line(name),
            path: bytes(path.as_os_str())?,
            argv: Texts::new(argv),
            environment: Texts::new(environment),
        })
    }

    /// The same program under another name in sentences.
    pub fn labelled(self, words: String) -> Self {
        Self { words, ..self }
    }

    pub fn words(&self) -> &str {
        &self.words
    }

    pub fn path(&self) -> *const c_char {
        self.path.as_ptr()
    }

    pub fn argv(&self) -> *const *const c_char {
        self.argv.pointers.as_ptr()
    }

    pub fn environment(&self) -> *const *const c_char {
        self.environment.pointers.as_ptr()
    }

    /// The error for a program that could not be executed.
    pub fn not_started(&self, error: &Error) -> ProbeError {
        let words = &self.words;
        if error.raw_os_error() == Some(libc::ENOEXEC) {
            return ProbeError::new(
                FailureKind::Lacks,
                "not_executable",
                format!("'{words}' is neither a program for this machine nor begins with #!."),
                "Begin a script with a line such as #!/bin/sh.",
            );
        }
        ProbeError::new(
            FailureKind::Lacks,
            "not_started",
            format!("'{words}' cannot be started: {error}."),
            "Check that the file, and the interpreter in its #! line, may be run by this user.",
        )
    }
}

/// The first line of a text, shortened: enough to know it by.
pub fn first_line(text: &str) -> String {
    const CHARACTERS: usize = 60;
    let line = text.lines().next().unwrap_or_default();
    let short: String = line.chars().take(CHARACTERS).collect();
    if short.len() < text.len() {
        format!("{short}…")
    } else {
        short
    }
}

/// The file of a program: as `execvp` finds it, once and not with every start.
fn locate(name: &str, search: &OsStr) -> Result<PathBuf> {
    let candidates: Vec<PathBuf> = if name.contains('/') {
        vec![PathBuf::from(name)]
    } else {
        std::env::split_paths(search).map(|folder| folder.join(name)).collect()
    };
    let files = candidates.iter().filter(|path| path.is_file());
    let (runnable, not_executable): (Vec<_>, Vec<_>) = files.partition(|path| is_executable(path));
    if let Some(path) = runnable.first() {
        return Ok((*path).clone());
    }
    if let Some(path) = not_executable.first() {
        return Err(ProbeError::new(
            FailureKind::Lacks,
            "not_executable",
            format!("'{}' is a file that may not be executed.", path.display()),
            "Make it executable (chmod +x).",
        ));
    }
    let place = match std::env::current_dir() {
        _ if !name.contains('/') => " in PATH".to_owned(),
        Ok(directory) if !name.starts_with('/') => format!(" in {}", directory.display()),
        _ => String::new(),
    };
    Err(ProbeError::new(
        FailureKind::Lacks,
        "no_program",
        format!("There is no program '{}'{place}.", first_line(name)),
        "Install it or correct the name; what only a shell knows needs a shell.",
    ))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o111 != 0)
}

fn c_text(bytes: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(bytes).map_err(|_| {
        ProbeError::usage(
            "An argument or a variable has a null character, which no program can be given.",
            "Remove it.",
        )
    })
}
