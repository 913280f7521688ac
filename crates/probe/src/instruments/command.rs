//! # What it measures
//! A program with its arguments: wall time of an execution from its start to its end, CPU time in
//! user and kernel mode, and peak memory.
//!
//! # How
//! The program is executed again and again until `duration_ns` has passed, between `minimum_runs`
//! and `maximum_runs` times, one execution after the other. It is started directly, without a shell:
//! `argv` is a list, and what a shell would expand stays as it is. The clock is read before the
//! process is created and after it was waited for (wait4), which also tells CPU time and peak memory.
//! A trial yields the median and the mean of its executions, the distribution of their wall times,
//! and all their figures as a document.
//!
//! With `shell`, the command is one text that the shell gets after `-c`. Before each execution the
//! shell is started with an empty command, and at least ten times in a trial. What it takes is
//! subtracted: its median from the median wall time, its means from the means of wall and CPU time.
//! `shell_ns` states the median. A command that takes no longer than the shell alone counts as 0 in
//! that trial: the interval over the trials, which includes 0 then, states how long it may take.
//!
//! Relative paths start at the directory in which the probe was started; with `working_directory`,
//! in that one: programs, `input`, `output`, and all commands.
//!
//! `setup` and `cleanup` run once a trial, before and after its executions; `prepare` and `conclude`
//! before and after each of them. None of them is in the figures.
//!
//! `figures` reads further figures from the standard output of each execution, by a regular expression
//! or by the path of a value in a JSON document; the trial yields their medians. An output without a
//! figure, or with several matches, fails the trial.
//!
//! # Known truth
//! `sleep 0.1` takes at least 100 ms, and hardly any CPU time. A program that computes until it has
//! used a given CPU time shows that time as user time, and one that touches a given amount of memory
//! shows at least that much as peak memory.
//!
//! # Cross-check
//! hyperfine, with `--shell=none`, and `perf stat -r` execute a program in the same way.
//!
//! # Overhead
//! That of the program; between two executions some microseconds.
//!
//! # Caveats
//! A wall time includes the creation of the process and the loading of the program. A peak memory
//! that is not above the probe's own (about 2 MiB) is missing, because the kernel counts the probe's
//! memory to the process until the program is loaded. The kernel splits CPU time between user and
//! kernel mode by its clock tick: an execution without a tick (1 to 10 ms) has all of it as user time;
//! the sum is exact. With `shell`, differences below the variation of the shell's start cannot be
//! seen, and a single execution has the median start subtracted, not its own. Standard error is
//! held in memory during an execution, for the sentence about a failure. What a program
//! leaves running in the background is not waited for.
use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::execution::{
    first_line, Ending, Execution, Executor, Figure, Program, StandardStreams, COLLECTED,
};
use crate::timing::closed_loop;
use crate::trial::{factors, Trial};
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use nephoscope_linux::files::Files;
use nephoscope_linux::proc;
use nephoscope_wire::spec::{Better, Metric, Param, Resource, Spec};
use serde_json::json;

/// Starts of the shell alone in each trial, at least.
const SHELL_STARTS: usize = 10;

pub const SPEC: Spec = Spec {
    id: "command",
    summary: "Any program with its arguments: wall time, CPU time, peak memory, exit codes",
    params: &[
        Param::texts("argv")
            .doc("Program and arguments; with `shell` one text, the command line."),
        Param::text("label", "").doc("Name of the command in results."),
        Param::texts("shell").doc("Shell and its options; an empty list uses no shell."),
        Param::texts("environment")
            .doc("Variables that are set, NAME=VALUE each, besides those of the probe."),
        Param::text("working_directory", "")
            .doc("Directory in which the commands run and relative paths start; empty takes that of the target."),
        Param::text("input", "").doc("File that is its standard input; empty for none."),
        Param::text("output", "null").doc(
            "Destination of standard output: null (dropped), pipe (read and dropped), or a file.",
        ),
        Param::texts("figures").doc(
            "Figures in the standard output, NAME=PATTERN or NAME:higher=PATTERN or \
             NAME:lower=PATTERN each: a regular expression with one group, or a path of JSON such as \
             $.results[0].mean.",
        ),
        Param::ints("exit_codes", &[0], 0..=255).doc(
            "Exit codes that are no failure; an empty list accepts all, and ends by a signal.",
        ),
        Param::texts("setup").doc("Command that runs before the executions of a trial."),
        Param::texts("prepare").doc("Command that runs before each execution."),
        Param::texts("conclude").doc("Command that runs after each execution."),
        Param::texts("cleanup").doc("Command that runs after the executions of a trial."),
        Param::int("duration_ns", 300_000_000, 0..=3_600_000_000_000)
            .doc("Time during which further executions begin."),
        Param::count("minimum_runs", 1, 1..=100_000)
            .doc("Number of executions of a trial that `duration_ns` does not shorten."),
        Param::count("maximum_runs", 100_000, 1..=100_000)
            .doc("Number of executions after which a trial ends."),
    ],
    metrics: &[
        Metric::lower("wall_ns").headline().doc("Wall time: median of the trial's executions."),
        Metric::lower("wall_mean_ns").doc("Wall time: mean of the trial's executions."),
        Metric::lower("execution_ns").histogram().doc("Wall time of each execution."),
        Metric::lower("cpu_ns").doc("CPU time: mean of the trial's executions."),
        Metric::lower("user_ns").doc("CPU time in user mode: mean of the trial's executions."),
        Metric::lower("system_ns").doc("CPU time in kernel mode: mean of the trial's executions."),
        Metric::lower("max_rss_bytes").doc(
            "Peak memory (resident set): largest of the trial's executions; missing where it is not \
             above that of the probe.",
        ),
        Metric::neutral("runs_count").doc("Number of executions."),
        Metric::neutral("failures_count")
            .doc("Number of executions with an exit code other than 0, or ended by a signal."),
        Metric::neutral("shell_ns")
            .doc("Wall time of the shell with an empty command, which is subtracted: median."),
        Metric::neutral("figure")
            .doc("Figure of the output, by name; median of the trial's executions."),
        Metric::higher("higher_figure").doc("The same of figures of which more is better."),
        Metric::lower("lower_figure").doc("The same of figures of which less is better."),
        Metric::document("executions").doc(
            "Wall, user and system time in nanoseconds (those of the shell's start are subtracted), peak \
             memory in bytes, exit code and figures of each execution, in order.",
        ),
    ],
    overhead: "that of the program, and some microseconds between two executions",
    source: "Peter, hyperfine, 2018 to 2025; wait4(2)",
    ..Spec::about(Resource::Several)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    enter(trial.params.text("working_directory"))?;
    let commands = CommandPlan::read(trial)?;
    let params = &trial.params;
    let output = params.text("output");
    let collects = !commands.figures.is_empty();
    if collects && !matches!(output, "" | "null") {
        return Err(ProbeError::usage(
            format!("`figures` are read from standard output, which `output` sends to '{output}'."),
            "Leave `output` out.",
        ));
    }
    let output = if collects { COLLECTED } else { output };
    let mut executor = Executor::new(StandardStreams::open(params.text("input"), output)?);
    // Other commands must not overwrite the output of the program, nor read its input.
    let mut steps_executor = Executor::new(StandardStreams::open("", "null")?);
    commands.setup.run(trial, &mut steps_executor)?;
    trial.prepared()?;
    let measured = measure(trial, &commands, &mut executor, &mut steps_executor);
    let cleaned = commands.cleanup.run(trial, &mut steps_executor);
    let measured = measured?;
    cleaned?;
    let shell = ExecutionTimes::of(&measured.shell_starts);
    emit(trial, &measured.executions, &shell)?;
    if commands.empty.is_some() {
        trial.out.emit("shell_ns", shell.wall_median_ns, factors! {})?;
    }
    emit_figures(trial, &commands.figures, &measured)?;
    emit_executions(trial, &commands.figures, &measured, &shell)
}

/// Makes a directory that of this process, so that whatever is relative starts there.
fn enter(directory: &str) -> Result<()> {
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
struct CommandPlan {
    program: Program,
    empty: Option<Program>,
    exit_codes: Vec<i64>,
    figures: Vec<Figure>,
    setup: CommandStep,
    prepare: CommandStep,
    conclude: CommandStep,
    cleanup: CommandStep,
}

/// A command that runs before or after others, or none.
struct CommandStep {
    name: &'static str,
    program: Option<Program>,
}

impl CommandPlan {
    fn read(trial: &Trial) -> Result<Self> {
        let step = |name| -> Result<CommandStep> {
            let is_set = !trial.params.texts(name).is_empty();
            let program = is_set.then(|| program(trial, name)).transpose()?;
            Ok(CommandStep { name, program })
        };
        let shell = trial.params.texts("shell");
        let empty = [shell.as_slice(), &["-c", ""]].concat();
        Ok(Self {
            program: program(trial, "argv")?,
            empty: (!shell.is_empty()).then(|| find_program(trial, &empty)).transpose()?,
            exit_codes: trial.params.ints("exit_codes"),
            figures: figures(&trial.params.texts("figures"))?,
            setup: step("setup")?,
            prepare: step("prepare")?,
            conclude: step("conclude")?,
            cleanup: step("cleanup")?,
        })
    }

    /// Starts the shell alone, where one is used; what it takes is subtracted later.
    fn start_shell(
        &self,
        trial: &Trial,
        executor: &mut Executor,
        starts: &mut Vec<Execution>,
    ) -> Result<()> {
        let Some(empty) = &self.empty else { return Ok(()) };
        let execution = executor.execute(trial.session, empty)?;
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
    fn run(&self, trial: &Trial, executor: &mut Executor) -> Result<()> {
        let Some(program) = &self.program else { return Ok(()) };
        match executor.execute(trial.session, program)?.ending {
            Ending::Exit(0) => Ok(()),
            ending => {
                let what = format!("The {} command '{}'", self.name, program.words());
                Err(failed(&what, ending, executor))
            }
        }
    }
}

fn figures(texts: &[&str]) -> Result<Vec<Figure>> {
    let figures = texts.iter().map(|text| Figure::parse(text)).collect::<Result<Vec<_>, _>>()?;
    for (at, figure) in figures.iter().enumerate() {
        if figures[..at].iter().any(|earlier| earlier.name == figure.name) {
            let message = format!("`figures` has '{}' twice.", figure.name);
            return Err(ProbeError::usage(message, "Give each figure a name of its own."));
        }
    }
    Ok(figures)
}

/// The program of a parameter: its own list, or its text in the shell.
fn program(trial: &Trial, name: &str) -> Result<Program> {
    let words = trial.params.texts(name);
    let shell = trial.params.texts("shell");
    if shell.is_empty() {
        return find_program(trial, &words);
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
    Ok(find_program(trial, &[shell.as_slice(), &["-c", line]].concat())?.labelled(first_line(line)))
}

fn find_program(trial: &Trial, argv: &[&str]) -> Result<Program> {
    let params = &trial.params;
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
        "Correct the command, or accept its exit code (--ignore-failure, `exit_codes` in a plan).",
    )
}

/// The executions, those of the shell alone, and the figures of each execution.
struct Measured {
    executions: Vec<Execution>,
    shell_starts: Vec<Execution>,
    figures: Vec<Vec<f64>>,
}

fn measure(
    trial: &Trial,
    commands: &CommandPlan,
    executor: &mut Executor,
    steps_executor: &mut Executor,
) -> Result<Measured> {
    let least = trial.params.size("minimum_runs");
    let most = trial.params.size("maximum_runs").max(least);
    let until_ns = clock::monotonic_ns() + trial.params.u64("duration_ns");
    let mut executions = Vec::with_capacity(most.min(1 << 12));
    let mut shell_starts = Vec::with_capacity(SHELL_STARTS);
    let mut figures = vec![Vec::new(); commands.figures.len()];
    loop {
        commands.start_shell(trial, steps_executor, &mut shell_starts)?;
        commands.prepare.run(trial, steps_executor)?;
        let execution = executor.execute(trial.session, &commands.program)?;
        commands.check(&execution, executor)?;
        if !figures.is_empty() {
            let output = executor.streams.output()?;
            for (figure, values) in commands.figures.iter().zip(&mut figures) {
                values.push(figure.read(&output)?);
            }
        }
        commands.conclude.run(trial, steps_executor)?;
        executions.push(execution);
        let runs = executions.len();
        if runs >= most || (runs >= least && clock::monotonic_ns() >= until_ns) {
            for _ in runs..SHELL_STARTS {
                commands.start_shell(trial, steps_executor, &mut shell_starts)?;
            }
            return Ok(Measured { executions, shell_starts, figures });
        }
    }
}

/// Times of several executions in nanoseconds; 0 without any.
#[derive(Default)]
struct ExecutionTimes {
    wall_median_ns: f64,
    wall_mean_ns: f64,
    user_ns: f64,
    system_ns: f64,
}

impl ExecutionTimes {
    fn of(executions: &[Execution]) -> Self {
        if executions.is_empty() {
            return Self::default();
        }
        let mean = |of: fn(&Execution) -> u64| {
            executions.iter().map(|execution| of(execution) as f64).sum::<f64>()
                / executions.len() as f64
        };
        let mut walls: Vec<f64> =
            executions.iter().map(|execution| execution.wall_ns as f64).collect();
        Self {
            wall_median_ns: closed_loop::median(&mut walls),
            wall_mean_ns: mean(|execution| execution.wall_ns),
            user_ns: mean(|execution| execution.user_ns),
            system_ns: mean(|execution| execution.system_ns),
        }
    }
}

/// A time without that of the shell. A difference below 0 is noise about 0: a median over trials,
/// and the ranks of its interval, are the same as if it stayed negative and were cut afterwards.
fn without(time_ns: f64, shell_ns: f64) -> f64 {
    (time_ns - shell_ns).max(0.0)
}

fn emit(trial: &mut Trial, executions: &[Execution], shell: &ExecutionTimes) -> Result<()> {
    let times = ExecutionTimes::of(executions);
    for (metric, of) in [
        ("wall_ns", (|times| times.wall_median_ns) as fn(&ExecutionTimes) -> f64),
        ("wall_mean_ns", |times| times.wall_mean_ns),
        ("cpu_ns", |times| times.user_ns + times.system_ns),
        ("user_ns", |times| times.user_ns),
        ("system_ns", |times| times.system_ns),
    ] {
        trial.out.emit(metric, without(of(&times), of(shell)), factors! {})?;
    }
    emit_memory(trial, executions)?;
    trial.out.emit("runs_count", executions.len() as f64, factors! {})?;
    let failures =
        executions.iter().filter(|execution| execution.ending != Ending::Exit(0)).count();
    trial.out.emit("failures_count", failures as f64, factors! {})?;
    let mut histogram = Histogram::<u64>::new(3).expect("3 digits are allowed");
    for execution in executions {
        let ns = without(execution.wall_ns as f64, shell.wall_median_ns).round() as u64;
        histogram.record(ns).expect("a histogram without bound grows");
    }
    trial.out.emit_pairs("execution_ns", closed_loop::pairs(&histogram), &factors! {})
}

fn emit_figures(trial: &mut Trial, figures: &[Figure], measured: &Measured) -> Result<()> {
    for (figure, values) in figures.iter().zip(&measured.figures) {
        let metric = match figure.better {
            Better::Higher => "higher_figure",
            Better::Lower => "lower_figure",
            Better::None => "figure",
        };
        let median = closed_loop::median(&mut values.clone());
        trial.out.emit(metric, median, factors! {"figure": figure.name})?;
    }
    Ok(())
}

fn emit_executions(
    trial: &mut Trial,
    figures: &[Figure],
    measured: &Measured,
    shell: &ExecutionTimes,
) -> Result<()> {
    let executions = &measured.executions;
    let column = |of: &dyn Fn(&Execution) -> i64| executions.iter().map(of).collect::<Vec<_>>();
    let less = |time_ns: u64, shell_ns: f64| without(time_ns as f64, shell_ns).round() as i64;
    let mut document = json!({
        "wall_ns": column(&|times| less(times.wall_ns, shell.wall_median_ns)),
        "user_ns": column(&|times| less(times.user_ns, shell.user_ns)),
        "system_ns": column(&|execution| less(execution.system_ns, shell.system_ns)),
        "max_rss_bytes": column(&|execution| execution.max_rss_bytes.cast_signed()),
        "exit_codes": column(&|execution| execution.ending.code().into()),
    });
    if !figures.is_empty() {
        let named = figures.iter().zip(&measured.figures);
        document["figures"] = named.map(|(figure, of)| (figure.name.clone(), json!(of))).collect();
    }
    trial.out.emit_document("executions", document)
}

/// Emits the peak memory. The kernel counts the memory of the probe to the process until the
/// program is loaded, so that nothing below it can be seen.
fn emit_memory(trial: &mut Trial, executions: &[Execution]) -> Result<()> {
    let peak = executions.iter().map(|execution| execution.max_rss_bytes).max().unwrap_or(0);
    let own = Files::machine().text("/proc/self/status").ok();
    let own = own.and_then(|status| proc::kib_field(&status, "VmHWM"));
    if own.is_some_and(|own| peak > own) {
        return trial.out.emit("max_rss_bytes", peak as f64, factors! {});
    }
    let below = own.map_or("is unknown".to_owned(), |own| format!("is {} KiB", own >> 10));
    trial.out.note(format!(
        "The peak memory is missing: it is not above that of the probe, which {below}."
    ));
    Ok(())
}
