//! # What it measures
//! Two programs at the same time on equal CPUs: the ratio of their wall times. What disturbs the
//! machine (frequency, temperature, neighbours, other programs) disturbs both alike, and cancels.
//!
//! # How
//! The CPUs of the process are divided into two sets: whole cores of one kind in equal numbers, or the
//! threads of one core where there is no other. In a window both programs start together, each on its
//! set, and are executed again and again; then they exchange their sets for another window. A trial
//! has such pairs of windows until `duration_ns` has passed, at least one. Which set a program has first is
//! random. In a window, executions begin until an eighth of `duration_ns` has passed, between
//! `minimum_runs` and `maximum_runs` of each program. A program that has reached this number is
//! executed further, uncounted, until the other one has reached it, too: every counted execution has
//! its partner beside it from start to end. The last uncounted execution is not killed; the window
//! ends with it.
//!
//! `relative_time_ratio` is the mean wall time of the second program over that of the first in the same window;
//! of all windows the geometric mean, in which a difference between the sets cancels. The other
//! figures have the factor `label` and are those of `command`, over the counted executions.
//!
//! The part of the last uncounted execution that runs after its partner has ended runs alone.
//! `slowdown_ratio` compares its speed with that of the counted executions: by which factor a program
//! is slower while its partner runs. It is missing where less than a quarter of an execution ran alone.
//!
//! `shell`, `input`, `exit_codes`, `environment`, `setup`, `cleanup` and `keep_children` are of both programs; those with
//! `second_` are of the second, and empty ones do not apply to it, but for `second_output`, which is
//! then `output`.
//!
//! # Known truth
//! A program against itself has a ratio of 1, and one that computes a tenth longer a ratio of 1.1,
//! also while a third program takes a part of both CPUs now and then. Two programs that each take all
//! time of one CPU, and may use only this one, are slowed by a factor of 2.
//!
//! # Cross-check
//! `command` measures the same programs one after the other.
//!
//! # Overhead
//! The uncounted executions: at most one of the faster program in each window.
//!
//! # Caveats
//! The programs share memory bandwidth, the last-level cache, disks and the power limit. A program that
//! needs more of these slows its partner more than itself, which moves the ratio; `slowdown_ratio`
//! shows whether that can be. They run at the same time in one directory: they must not write to the
//! same files or listen on the same port. Times are those beside a partner on half of the CPUs, not
//! those of the program alone.
use super::command::leftovers::Leftovers;
use super::command::plan::{enter, CommandPlan, Executors, Measured, Quota};
use super::command::times::{emit_times, executions_document, without, ExecutionTimes};
use super::command::SHARED_PARAMS;
use crate::error::{ProbeError, Result};
use crate::threads::cpu_halves::CpuHalves;
use crate::threads::pair::Pair;
use crate::trial::parameters;
use crate::trial::{factors, Trial};
use nephoscope_linux::affinity;
use nephoscope_linux::clock;
use nephoscope_wire::params::Params;
use nephoscope_wire::random::Random;
use nephoscope_wire::spec::{self, Metric, Param, Resource, Spec};
use serde_json::{json, Map};

/// Windows for which `duration_ns` has room: disturbances that last longer meet both sets.
const WINDOWS: u64 = 8;
/// Less of an execution alone says nothing about its speed.
const LEAST_ALONE: f64 = 0.25;
const SECOND_PARAMS: [Param; 9] = [
    Param::texts("second_argv").doc("Second program and its arguments, as `argv`."),
    Param::text("second_label", "").doc("Name of the second command in results."),
    Param::text("second_output", "")
        .doc("Destination of the second command's standard output; empty takes `output`."),
    Param::texts("second_prepare")
        .doc("Command that runs before each execution of the second command."),
    Param::texts("second_conclude")
        .doc("Command that runs after each execution of the second command."),
    Param::int("duration_ns", 300_000_000, 0..=3_600_000_000_000)
        .doc("Time during which further pairs of windows begin."),
    Param::count("minimum_runs", 1, 1..=100_000)
        .doc("Number of executions of each command in a window that its time does not shorten."),
    Param::count("maximum_runs", 100_000, 1..=100_000)
        .doc("Number of executions of each command that count in a window."),
    Param::seed().doc("Seed of the order of the sets of CPUs; 0 changes with every trial."),
];

const PARAMS: [Param; 22] = spec::joined(&[&SHARED_PARAMS, &SECOND_PARAMS]);

pub const SPEC: Spec = Spec {
    id: "command.duet",
    summary: "Two programs at the same time on equal CPUs: ratio of their wall times",
    params: &PARAMS,
    metrics: &[
        Metric::lower("relative_time_ratio").headline().doc(
            "Mean wall time of the second command over that of the first; geometric mean of the \
             windows.",
        ),
        Metric::neutral("slowdown_ratio")
            .doc("Factor by which a command is slower while its partner runs."),
        Metric::lower("wall_ns").doc("Wall time: median of the trial's executions."),
        Metric::lower("wall_mean_ns").doc("Wall time: mean of the trial's executions."),
        Metric::lower("cpu_ns").doc("CPU time: mean of the trial's executions."),
        Metric::lower("user_ns").doc("CPU time in user mode: mean of the trial's executions."),
        Metric::lower("system_ns").doc("CPU time in kernel mode: mean of the trial's executions."),
        Metric::lower("max_rss_bytes").doc(
            "Peak memory (resident set): largest of the trial's executions; missing where it is not \
             above that of the probe.",
        ),
        Metric::neutral("shell_ns")
            .doc("Wall time of the shell with an empty command, which is subtracted: median."),
        Metric::document("executions").doc(
            "By label: wall, user and system time in nanoseconds (those of the shell's start are \
             subtracted), peak memory in bytes and exit code of each execution, in order.",
        ),
        Metric::document("cpus").doc(
            "The two sets of CPUs, those that are in none, and whether the sets share cores.",
        ),
    ],
    overhead: "at most one uncounted execution of the faster command in each window",
    source: "Bulej et al., Duet Benchmarking, ICPE 2020",
    ..Spec::about(Resource::Several)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let session = trial.session;
    let params = &trial.params;
    enter(params.text("working_directory"))?;
    let halves = CpuHalves::of_this_process()?;
    let mut sides = sides(params)?;
    let leftovers = Leftovers::watch(trial.params.bool("keep_children"))?;
    let setup = &sides[0].commands.setup;
    setup.run(session, &mut sides[0].executors.steps)?;
    trial.prepared()?;
    // What tells the windows of a trial apart, such as a cache that is still cold, must not meet the
    // same set of one command in every trial.
    let mut sets = halves.sets.each_ref();
    let mut random = Random::stream(parameters::seed(&trial.params), 0);
    random.shuffle(&mut sets);
    // Beside a competitor, the command of the first thread took 1.4 % longer than its equal partner:
    // which one that is must not be the same in every trial either.
    let mut is_exchanged = [false, true];
    random.shuffle(&mut is_exchanged);
    if is_exchanged[0] {
        sides.reverse();
    }
    let measured = pairs_of_windows(trial, &mut sides, sets, &leftovers);
    if is_exchanged[0] {
        sides.reverse();
    }
    let cleaned = sides[0].commands.cleanup.run(session, &mut sides[0].executors.steps);
    leftovers.end(&mut trial.out);
    measured?;
    cleaned?;
    emit(trial, &mut sides)?;
    let document = json!({
        "sets": halves.sets,
        "unused": halves.unused,
        "share_cores": halves.share_cores,
    });
    trial.out.emit_document("cpus", document)
}

/// Windows with each set, in the order 1 2 2 1 1 2 …, until the time of the trial has passed.
fn pairs_of_windows(
    trial: &Trial,
    sides: &mut [Side; 2],
    mut sets: [&Vec<usize>; 2],
    leftovers: &Leftovers,
) -> Result<()> {
    let until_ns = clock::monotonic_ns() + trial.params.u64("duration_ns");
    loop {
        window(trial, sides, sets)?;
        sets.reverse();
        window(trial, sides, sets)?;
        leftovers.reap();
        if clock::monotonic_ns() >= until_ns {
            return Ok(());
        }
    }
}

/// One of the two commands, and what was measured of it.
struct Side {
    label: String,
    commands: CommandPlan,
    executors: Executors,
    measured: Measured,
    windows: Vec<Window>,
}

/// One command in one window.
struct Window {
    mean_ns: f64,
    /// When its last counted execution ended.
    ended_ns: u64,
    /// Start and end of its last uncounted execution.
    uncounted: Option<(u64, u64)>,
}

fn sides(params: &Params) -> Result<[Side; 2]> {
    let name = |id: &str, default: &str| match params.text(id) {
        "" => default.to_owned(),
        label => label.to_owned(),
    };
    let labels = [name("label", "A"), name("second_label", "B")];
    if labels[0] == labels[1] {
        return Err(ProbeError::usage(
            format!("Both commands are named '{}'.", labels[0]),
            "Give each a `label` of its own.",
        ));
    }
    let outputs = [name("output", "null"), name("second_output", params.text("output"))];
    let is_file = |output: &str| !matches!(output, "" | "null" | "pipe");
    if outputs[0] == outputs[1] && is_file(&outputs[0]) {
        return Err(ProbeError::usage(
            format!("Both commands would write to '{}' at the same time.", outputs[0]),
            "Give each command an `output` of its own (--output, once per command).",
        ));
    }
    let [first, second] = labels;
    Ok([
        Side::new(params, first, "", &outputs[0])?,
        Side::new(params, second, "second_", &outputs[1])?,
    ])
}

impl Side {
    fn new(params: &Params, label: String, prefix: &str, output: &str) -> Result<Self> {
        Ok(Self {
            commands: CommandPlan::read(params, prefix)?,
            executors: Executors::open(params.text("input"), output)?,
            measured: Measured::default(),
            windows: Vec::new(),
            label,
        })
    }

    /// Executes the command beside its partner until both have been executed often enough.
    fn execute_with_partner(
        &mut self,
        params: &Params,
        pair: &Pair,
        place: usize,
        cpus: &[usize],
    ) -> Result<()> {
        let Self { commands, executors, measured, .. } = self;
        let session = pair.session;
        affinity::set(0, cpus.iter().copied())
            .map_err(|error| ProbeError::os("Choosing the CPUs of a command", &error))?;
        commands.start_shell_often(session, executors, measured)?;
        let before = measured.executions.len();
        commands.prepare(session, executors, measured)?;
        if !pair.start_together() {
            return session.check();
        }
        let quota = Quota::begin(params, params.u64("duration_ns") / WINDOWS);
        loop {
            commands.execute(session, executors, measured)?;
            if quota.is_reached(measured.executions.len() - before) {
                break;
            }
            commands.prepare(session, executors, measured)?;
        }
        let ended_ns = pair.done(place);
        let mut uncounted = Measured::default();
        while pair.partner_is_busy(place) {
            commands.prepare(session, executors, &mut uncounted)?;
            commands.execute(session, executors, &mut uncounted)?;
        }
        let last = uncounted.executions.last();
        self.windows.push(Window {
            mean_ns: ExecutionTimes::of(&measured.executions[before..]).wall_mean_ns,
            ended_ns,
            uncounted: last.map(|last| (last.started_ns, last.started_ns + last.wall_ns)),
        });
        Ok(())
    }
}

/// Both commands start together, each on its CPUs.
fn window(trial: &Trial, sides: &mut [Side; 2], sets: [&Vec<usize>; 2]) -> Result<()> {
    let pair = Pair::new(trial.session);
    pair.run(sides, |side, place| {
        side.execute_with_partner(&trial.params, &pair, place, sets[place])
            .map_err(|error| named(error, &side.label))
    })
}

/// The failure of a command under its name: both may be the same program.
fn named(error: ProbeError, label: &str) -> ProbeError {
    match error.kind {
        crate::error::FailureKind::Failed => {
            ProbeError { message: format!("{label}: {}", error.message), ..error }
        }
        _ => error,
    }
}

fn emit(trial: &mut Trial, sides: &mut [Side; 2]) -> Result<()> {
    let mut documents = Map::new();
    let mut means_ns = Vec::new();
    for side in sides.iter() {
        let shell = ExecutionTimes::of(&side.measured.shell_starts);
        let executions = &side.measured.executions;
        let label = factors! {"label": side.label};
        emit_times(trial, executions, &shell, &label)?;
        if side.commands.has_shell() {
            trial.out.emit("shell_ns", shell.wall_median_ns, label)?;
        }
        documents.insert(side.label.clone(), executions_document(executions, &shell));
        let means = side.windows.iter().map(|window| without(window.mean_ns, shell.wall_mean_ns));
        means_ns.push(means.collect::<Vec<f64>>());
    }
    let ratios = means_ns[0].iter().zip(&means_ns[1]).map(|(first, second)| second / first);
    let ratio = ratios.map(f64::ln).sum::<f64>() / means_ns[0].len() as f64;
    if ratio.is_finite() {
        trial.out.emit("relative_time_ratio", ratio.exp(), factors! {})?;
    } else {
        let note = "The ratio is missing: a command takes no longer than the start of the shell.";
        trial.out.note(note.to_owned());
    }
    if let Some(ratio) = slowdown(sides) {
        trial.out.emit("slowdown_ratio", ratio, factors! {})?;
    }
    trial.out.emit_document("executions", documents.into())
}

/// How much faster the parts of executions went that ran without a partner. Each execution is a unit
/// of work, of which it had done a part when its partner ended, at the mean speed of its window.
fn slowdown(sides: &[Side; 2]) -> Option<f64> {
    let (mut work, mut time) = (0.0, 0.0);
    for (own, partner) in [(&sides[0], &sides[1]), (&sides[1], &sides[0])] {
        for (window, paired) in own.windows.iter().zip(&partner.windows) {
            let Some((start_ns, end_ns)) = window.uncounted else { continue };
            let alone_ns = end_ns.saturating_sub(paired.ended_ns.max(start_ns)) as f64;
            let accompanied_ns = paired.ended_ns.saturating_sub(start_ns) as f64;
            work += (1.0 - accompanied_ns / window.mean_ns).max(0.0);
            time += alone_ns / window.mean_ns;
        }
    }
    (work >= LEAST_ALONE && time > 0.0).then(|| work / time)
}
