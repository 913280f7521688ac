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
//! leaves running in the background is not waited for; it runs beside the executions that follow,
//! until it is killed and counted after `cleanup`.
pub(super) mod leftovers;
pub(super) mod plan;
pub(super) mod times;

use crate::error::{ProbeError, Result};
use crate::threads::execution::{Ending, Execution, Figure, COLLECTED};
use crate::timing::closed_loop;
use crate::trial::{factors, Trial};
use hdrhistogram::Histogram;
use leftovers::Leftovers;
use nephoscope_wire::spec::{self, Better, Metric, Param, Resource, Spec};
use plan::{enter, CommandPlan, Executors, Measured, Quota};
use serde_json::json;
use times::{emit_times, executions_document, without, ExecutionTimes};

/// Parameters that `command.duet` has, too.
pub(super) const SHARED_PARAMS: [Param; 13] = [
    Param::texts("argv").doc("Program and arguments; with `shell` one text, the command line."),
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
    Param::ints("exit_codes", &[0], 0..=255).doc(
        "Exit codes that are no failure; an empty list accepts all, and ends by a signal.",
    ),
    Param::texts("setup").doc("Command that runs before the executions of a trial."),
    Param::texts("prepare").doc("Command that runs before each execution."),
    Param::texts("conclude").doc("Command that runs after each execution."),
    Param::texts("cleanup").doc("Command that runs after the executions of a trial."),
    Param::switch("keep_children", false).doc(
        "Whether processes that the commands leave running stay when the trial ends; else they are killed.",
    ),
];

const OWN_PARAMS: [Param; 4] = [
    Param::texts("figures").doc(
        "Figures in the standard output, NAME=PATTERN or NAME:higher=PATTERN or \
         NAME:lower=PATTERN each: a regular expression with one group, or a path of JSON such as \
         $.results[0].mean.",
    ),
    Param::int("duration_ns", 300_000_000, 0..=3_600_000_000_000)
        .doc("Time during which further executions begin."),
    Param::count("minimum_runs", 1, 1..=100_000)
        .doc("Number of executions of a trial that `duration_ns` does not shorten."),
    Param::count("maximum_runs", 100_000, 1..=100_000)
        .doc("Number of executions after which a trial ends."),
];

const PARAMS: [Param; 17] = spec::joined(&[&SHARED_PARAMS, &OWN_PARAMS]);

pub const SPEC: Spec = Spec {
    id: "command",
    summary: "Any program with its arguments: wall time, CPU time, peak memory, exit codes",
    params: &PARAMS,
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
    let params = &trial.params;
    let mut commands = CommandPlan::read(params, "")?;
    commands.figures = figures(&params.texts("figures"))?;
    let output = params.text("output");
    let collects = !commands.figures.is_empty();
    if collects && !matches!(output, "" | "null") {
        return Err(ProbeError::usage(
            format!("`figures` are read from standard output, which `output` sends to '{output}'."),
            "Leave `output` out.",
        ));
    }
    let output = if collects { COLLECTED } else { output };
    let mut executors = Executors::open(params.text("input"), output)?;
    let leftovers = Leftovers::watch(trial.params.bool("keep_children"))?;
    commands.setup.run(trial.session, &mut executors.steps)?;
    trial.prepared()?;
    let measured = measure(trial, &commands, &mut executors, &leftovers);
    let cleaned = commands.cleanup.run(trial.session, &mut executors.steps);
    leftovers.end(&mut trial.out);
    let measured = measured?;
    cleaned?;
    let shell = ExecutionTimes::of(&measured.shell_starts);
    emit(trial, &measured.executions, &shell)?;
    if commands.has_shell() {
        trial.out.emit("shell_ns", shell.wall_median_ns, factors! {})?;
    }
    emit_figures(trial, &commands.figures, &measured)?;
    let mut document = executions_document(&measured.executions, &shell);
    if !commands.figures.is_empty() {
        let named = commands.figures.iter().zip(&measured.figures);
        document["figures"] = named.map(|(figure, of)| (figure.name.clone(), json!(of))).collect();
    }
    trial.out.emit_document("executions", document)
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

fn measure(
    trial: &Trial,
    commands: &CommandPlan,
    executors: &mut Executors,
    leftovers: &Leftovers,
) -> Result<Measured> {
    let quota = Quota::begin(&trial.params, trial.params.u64("duration_ns"));
    let mut measured = Measured::default();
    loop {
        commands.prepare(trial.session, executors, &mut measured)?;
        commands.execute(trial.session, executors, &mut measured)?;
        leftovers.reap();
        if quota.is_reached(measured.executions.len()) {
            commands.start_shell_often(trial.session, executors, &mut measured)?;
            return Ok(measured);
        }
    }
}

fn emit(trial: &mut Trial, executions: &[Execution], shell: &ExecutionTimes) -> Result<()> {
    emit_times(trial, executions, shell, &factors! {})?;
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
