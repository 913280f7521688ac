//! A program with the commands around its executions, and what several executions yield.
use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::execution::{
    first_line, Ending, Execution, Executor, Figure, Program, StandardStreams,
};
use crate::trial::session::Session;
use nephoscope_linux::clock;
use nephoscope_wire::params::Params;

/// Starts of the shell alone in each trial, at least.
const SHELL_STARTS: usize = 10;

/// Makes a directory that of this process, so that whatever is relative starts there.
pub fn enter(directory: &str) -> Result<()> {
    if directory.is_empty() {
        return Ok(());
    }
    std::env::set_current_dir(directory).map_err(|error| {
        ProbeError::new(
            FailureKind::Lacks,
            "no_directory",
            format!("The working directory '{directory}' cannot be used: {error}."),
            "Create it, or correct `working_directory`.",
        )
    })
}

/// The program, and what runs around it.
pub struct CommandPlan {
    program: Program,
    empty: Option<Program>,
    exit_codes: Vec<i64>,
    pub figures: Vec<Figure>,
    pub setup: CommandStep,
    prepare: CommandStep,
    conclude: CommandStep,
    pub cleanup: CommandStep,
}

/// A command that runs before or after others, or none.
pub struct CommandStep {
    name: &'static str,
    program: Option<Program>,
}

/// What executes the program, and what executes the commands around it: these must not overwrite
/// the output of the program, nor read its input.
pub struct Executors {
    program: Executor,
    pub steps: Executor,
}

impl Executors {
    pub fn open(input: &str, output: &str) -> Result<Self> {
        Ok(Self {
            program: Executor::new(StandardStreams::open(input, output)?),
            steps: Executor::new(StandardStreams::open("", "null")?),
        })
    }
}

impl CommandPlan {
    /// Reads the program and the commands around it. prefix: of the names of the parameters that
    /// belong to it alone.
    pub fn read(params: &Params, prefix: &str) -> Result<Self> {
        let step = |name| -> Result<CommandStep> {
            let id = match name {
                "setup" | "cleanup" => name.to_owned(),
                _ => format!("{prefix}{name}"),
            };
            let is_set = !params.texts(&id).is_empty();
            let program = is_set.then(|| program(params, &id)).transpose()?;
            Ok(CommandStep { name, program })
        };
        let shell = params.texts("shell");
        let empty = [shell.as_slice(), &["-c", ""]].concat();
        Ok(Self {
            program: program(params, &format!("{prefix}argv"))?,
            empty: (!shell.is_empty()).then(|| find_program(params, &empty)).transpose()?,
            exit_codes: params.ints("exit_codes"),
            figures: Vec::new(),
            setup: step("setup")?,
            prepare: step("prepare")?,
            conclude: step("conclude")?,
            cleanup: step("cleanup")?,
        })
    }

    pub fn has_shell(&self) -> bool {
        self.empty.is_some()
    }

    /// Makes ready for an execution: starts the shell alone, where one is used, whose time is
    /// subtracted later, and runs the command before the execution.
    pub fn prepare(
        &self,
        session: Session,
        executors: &mut Executors,
        measured: &mut Measured,
    ) -> Result<()> {
        self.start_shell(session, &mut executors.steps, &mut measured.shell_starts)?;
        self.prepare.run(session, &mut executors.steps)
    }

    /// Executes the program and the command after it.
    pub fn execute(
        &self,
        session: Session,
        executors: &mut Executors,
        measured: &mut Measured,
    ) -> Result<()> {
        let execution = executors.program.execute(session, &self.program)?;
        self.check(&execution, &executors.program)?;
        if !self.figures.is_empty() {
            let output = executors.program.streams.output()?;
            measured.figures.resize(self.figures.len(), Vec::new());
            for (figure, values) in self.figures.iter().zip(&mut measured.figures) {
                values.push(figure.read(&output)?);
            }
        }
        measured.executions.push(execution);
        self.conclude.run(session, &mut executors.steps)
    }

    /// Starts the shell alone until it was started often enough for a median.
    pub fn start_shell_often(
        &self,
        session: Session,
        executors: &mut Executors,
        measured: &mut Measured,
    ) -> Result<()> {
        for _ in measured.shell_starts.len()..SHELL_STARTS {
            self.start_shell(session, &mut executors.steps, &mut measured.shell_starts)?;
        }
        Ok(())
    }

    fn start_shell(
        &self,
        session: Session,
        executor: &mut Executor,
        starts: &mut Vec<Execution>,
    ) -> Result<()> {
        let Some(empty) = &self.empty else { return Ok(()) };
        let execution = executor.execute(session, empty)?;
        if execution.ending != Ending::Exit(0) {
            return Err(failed("The shell with an empty command", execution.ending, executor));
        }
        starts.push(execution);
        Ok(())
    }

    fn check(&self, execution: &Execution, executor: &Executor) -> Result<()> {
        let accepted = match execution.ending {
            _ if self.exit_codes.is_empty() => true,
            Ending::Exit(code) => self.exit_codes.contains(&code.into()),
            Ending::Signal(_) => false,
        };
        if accepted {
            return Ok(());
        }
        Err(failed(&format!("'{}'", self.program.words()), execution.ending, executor))
    }
}

impl CommandStep {
    pub fn run(&self, session: Session, executor: &mut Executor) -> Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        match executor.execute(session, program)?.ending {
            Ending::Exit(0) => Ok(()),
            ending => {
                let what = format!("The {} command '{}'", self.name, program.words());
                Err(failed(&what, ending, executor))
            }
        }
    }
}

/// The program of a parameter: its own list, or its text in the shell.
fn program(params: &Params, name: &str) -> Result<Program> {
    let words = params.texts(name);
    let shell = params.texts("shell");
    if shell.is_empty() {
        return find_program(params, &words);
    }
    let [line] = words.as_slice() else {
        return Err(ProbeError::usage(
            format!(
                "With `shell`, `{name}` is one text, the command line; it has {}.",
                words.len()
            ),
            "Write it as a list of one text, or leave `shell` out.",
        ));
    };
    Ok(find_program(params, &[shell.as_slice(), &["-c", line]].concat())?
        .labelled(first_line(line)))
}

fn find_program(params: &Params, argv: &[&str]) -> Result<Program> {
    Program::find(argv, &params.texts("environment"))
}

fn failed(what: &str, ending: Ending, executor: &Executor) -> ProbeError {
    let line = executor.streams.last_error_line();
    let reason = match line.trim_end_matches('.') {
        "" => ".".to_owned(),
        line => format!(": {line}."),
    };
    ProbeError::new(
        FailureKind::Failed,
        "command_failed",
        format!("{what} {ending}{reason}"),
        if ending == Ending::Signal(libc::SIGKILL) {
            "The kernel may have run out of memory, or the control group of its own (see `dmesg`), or \
             someone ended it; give it more, or smaller work."
        } else {
            "Correct the command, or accept its exit code (--ignore-failure, `exit_codes` in a plan)."
        },
    )
}

/// The executions, those of the shell alone, and the figures of each execution.
#[derive(Default)]
pub struct Measured {
    pub executions: Vec<Execution>,
    pub shell_starts: Vec<Execution>,
    pub figures: Vec<Vec<f64>>,
}

/// How often a program is executed: until a moment, between two bounds.
pub struct Quota {
    least: usize,
    most: usize,
    until_ns: u64,
}

impl Quota {
    /// The quota of executions that begin now.
    pub fn begin(params: &Params, duration_ns: u64) -> Self {
        let least = params.size("minimum_runs");
        let most = params.size("maximum_runs").max(least);
        Self { least, most, until_ns: clock::monotonic_ns() + duration_ns }
    }

    pub fn is_reached(&self, runs: usize) -> bool {
        runs >= self.most || (runs >= self.least && clock::monotonic_ns() >= self.until_ns)
    }
}
