//! The figures of several executions of a program.
use crate::error::Result;
use crate::threads::execution::Execution;
use crate::timing::closed_loop;
use crate::trial::{Factors, Trial};
use nephoscope_linux::files::Files;
use nephoscope_linux::proc;
use serde_json::{json, Value};

/// Times of several executions in nanoseconds; 0 without any.
#[derive(Default)]
pub struct ExecutionTimes {
    pub wall_median_ns: f64,
    pub wall_mean_ns: f64,
    user_ns: f64,
    system_ns: f64,
}

impl ExecutionTimes {
    pub fn of(executions: &[Execution]) -> Self {
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
pub fn without(time_ns: f64, shell_ns: f64) -> f64 {
    (time_ns - shell_ns).max(0.0)
}

/// Emits times and peak memory of executions.
pub fn emit_times(
    trial: &mut Trial,
    executions: &[Execution],
    shell: &ExecutionTimes,
    factors: &Factors,
) -> Result<()> {
    let times = ExecutionTimes::of(executions);
    for (metric, of) in [
        ("wall_ns", (|times| times.wall_median_ns) as fn(&ExecutionTimes) -> f64),
        ("wall_mean_ns", |times| times.wall_mean_ns),
        ("cpu_ns", |times| times.user_ns + times.system_ns),
        ("user_ns", |times| times.user_ns),
        ("system_ns", |times| times.system_ns),
    ] {
        trial.out.emit(metric, without(of(&times), of(shell)), factors.clone())?;
    }
    emit_memory(trial, executions, factors)
}

/// The figures of each execution, in order.
pub fn executions_document(executions: &[Execution], shell: &ExecutionTimes) -> Value {
    let column = |of: &dyn Fn(&Execution) -> i64| executions.iter().map(of).collect::<Vec<_>>();
    let less = |time_ns: u64, shell_ns: f64| without(time_ns as f64, shell_ns).round() as i64;
    json!({
        "wall_ns": column(&|times| less(times.wall_ns, shell.wall_median_ns)),
        "user_ns": column(&|times| less(times.user_ns, shell.user_ns)),
        "system_ns": column(&|execution| less(execution.system_ns, shell.system_ns)),
        "max_rss_bytes": column(&|execution| execution.max_rss_bytes.cast_signed()),
        "exit_codes": column(&|execution| execution.ending.code().into()),
    })
}

/// Emits the peak memory. The kernel counts the memory of the probe to the process until the
/// program is loaded, so that nothing below it can be seen.
fn emit_memory(trial: &mut Trial, executions: &[Execution], factors: &Factors) -> Result<()> {
    let peak = executions.iter().map(|execution| execution.max_rss_bytes).max().unwrap_or(0);
    let own = Files::machine().text("/proc/self/status").ok();
    let own = own.and_then(|status| proc::kib_field(&status, "VmHWM"));
    if own.is_some_and(|own| peak > own) {
        return trial.out.emit("max_rss_bytes", peak as f64, factors.clone());
    }
    let below = own.map_or("is unknown".to_owned(), |own| format!("is {} KiB", own >> 10));
    trial.out.note(format!(
        "The peak memory is missing: it is not above that of the probe, which {below}."
    ));
    Ok(())
}
