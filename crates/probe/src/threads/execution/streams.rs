//! Standard input, output and error of the programs that are executed.
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_linux::files;
use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{Error, PipeReader, PipeWriter, Read, Seek};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, FileTypeExt};

/// Of standard error the end is looked at.
const TAIL_BYTES: u64 = 4096;
const CHUNK_BYTES: usize = 64 << 10;

/// The largest standard output from which figures are read.
const OUTPUT_BYTES: u64 = 16 << 20;

/// The name of an output that is collected, to read figures from it.
pub const COLLECTED: &str = "collected";

const NULL: &str = "/dev/null";

pub struct StandardStreams {
    input: File,
    output: OutputTarget,
    /// A file in memory: writing to it costs a program less than a pipe that somebody has to read.
    errors: File,
}

enum OutputTarget {
    /// Dropped by the kernel.
    Null(File),
    /// Written to a file, which holds the output of the last execution.
    File(File),
    /// Read by the probe and dropped.
    Pipe,
    /// Held in memory, as standard error is.
    Collected(File),
}

/// Both ends of one execution's output.
pub struct Pipe {
    reader: PipeReader,
    writer: Option<PipeWriter>,
}

impl StandardStreams {
    /// input: a file; empty for none. output: `null`, `pipe`, `COLLECTED`, or a file.
    pub fn open(input: &str, output: &str) -> Result<Self> {
        let path = if input.is_empty() { NULL } else { input };
        let input = opened_input(path)?;
        let output = match output {
            "" | "null" => OutputTarget::Null(writable("output", NULL)?),
            "pipe" => OutputTarget::Pipe,
            COLLECTED => OutputTarget::Collected(in_memory(c"output")?),
            path => OutputTarget::File(writable("output", path)?),
        };
        let errors = in_memory(c"errors")?;
        Ok(Self { input, output, errors })
    }

    /// Makes them ready for one execution; returns the pipe of its output where there is one.
    pub fn prepare(&mut self) -> Result<Option<Pipe>> {
        let mut made = emptied(&mut self.errors);
        if let OutputTarget::File(file) | OutputTarget::Collected(file) = &mut self.output {
            made = made.and_then(|()| emptied(file));
        }
        // What cannot be rewound is a device, which has no start.
        let _ = self.input.rewind();
        let pipe = match self.output {
            OutputTarget::Pipe => {
                std::io::pipe().map(|(reader, writer)| Some(Pipe { reader, writer: Some(writer) }))
            }
            _ => Ok(None),
        };
        made.and(pipe).map_err(|error| ProbeError::os("Preparing the program's output", &error))
    }

    /// The descriptors of standard input, output and error.
    pub fn files(&self, pipe: Option<&Pipe>) -> [RawFd; 3] {
        let output = match (&self.output, pipe.and_then(|pipe| pipe.writer.as_ref())) {
            (
                OutputTarget::Null(file) | OutputTarget::File(file) | OutputTarget::Collected(file),
                _,
            ) => file.as_raw_fd(),
            (OutputTarget::Pipe, writer) => writer.map_or(-1, AsRawFd::as_raw_fd),
        };
        [self.input.as_raw_fd(), output, self.errors.as_raw_fd()]
    }

    /// Returns the collected output of the last program; empty where none is collected.
    pub fn output(&self) -> Result<String> {
        let OutputTarget::Collected(file) = &self.output else { return Ok(String::new()) };
        let length = file.metadata().map_or(0, |file| file.len());
        if length > OUTPUT_BYTES {
            return Err(ProbeError::new(
                FailureKind::Failed,
                "output_too_large",
                format!("The command writes {length} bytes to standard output; 16 MiB are read."),
                "Let the command write less, or give no `figures`.",
            ));
        }
        let mut bytes = vec![0; length as usize];
        file.read_exact_at(&mut bytes, 0)
            .map_err(|error| ProbeError::os("Reading the program's output", &error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the last line of standard error that has any text.
    pub fn last_error_line(&self) -> String {
        let length = self.errors.metadata().map_or(0, |file| file.len());
        let tail = length.min(TAIL_BYTES);
        let mut bytes = vec![0; tail as usize];
        if self.errors.read_exact_at(&mut bytes, length - tail).is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
    }
}

impl Pipe {
    /// Reads the output to its end.
    pub fn drain(&mut self, session: Session) -> Result<()> {
        self.writer = None;
        let mut bytes = [0u8; CHUNK_BYTES];
        loop {
            match self.reader.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => session.check()?,
                Err(error) => return Err(ProbeError::os("Reading the program's output", &error)),
            }
        }
    }
}

/// Empties a file that the last execution may have written to.
fn emptied(file: &mut File) -> Result<(), Error> {
    if file.stream_position()? > 0 {
        file.set_len(0)?;
        file.rewind()?;
    }
    Ok(())
}

fn in_memory(name: &CStr) -> Result<File> {
    files::in_memory(name)
        .map_err(|error| ProbeError::os("Making a file for the program's output", &error))
}

/// Opening a named pipe waits for somebody who writes to it, and only one execution could read it.
fn opened_input(path: &str) -> Result<File> {
    let is_pipe = std::fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo());
    if is_pipe {
        let problem = Error::other("it is a pipe, and every execution reads the whole input");
        return Err(unusable("input", path, &problem));
    }
    File::open(path).map_err(|error| unusable("input", path, &error))
}

fn writable(param: &str, path: &str) -> Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).open(path);
    file.map_err(|error| unusable(param, path, &error))
}

fn unusable(param: &str, path: &str, error: &Error) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_file",
        format!("`{param}` names '{path}', which cannot be opened: {error}."),
        "Name a file of the machine that is measured, which this user may use.",
    )
}
