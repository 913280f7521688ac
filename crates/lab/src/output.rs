//! What the program writes: failures for people, reports as lines of JSON.
use nephoscope_wire::error::Error;
use nephoscope_wire::writer::report_error;
use serde_json::Value;
use std::io::Write;

/// Writes an error for people to standard error; returns its exit code.
pub fn report_failure(error: &Error) -> i32 {
    report_error("nephoscope-lab", error, std::io::sink())
}

/// Writes a line that tells the machine's maker that the program is ready.
pub fn announce_ready() {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "nephoscope: ready").and_then(|()| out.flush());
}

/// Writes a line of JSON. Nobody may be listening any more; the work goes on.
pub fn report(value: &Value) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{value}").and_then(|()| out.flush());
}
