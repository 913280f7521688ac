//! # What it measures
//! Nothing: it says what is simulated, in the document in which the probe says what a machine is.
//!
//! # How
//! Of the machine that `--machine` names: its processors and who shares them by which rule. Without
//! one, only that this is a simulation. Facts that a simulated machine does not have are null.
//!
//! # Known truth
//! The scenario itself.
//!
//! # Cross-check
//! None; nothing is measured.
//!
//! # Overhead
//! One process start.
//!
//! # Caveats
//! `clock_read_ns` is 0: simulated time costs nothing to look at.
use super::SimError;
use crate::cli::trial::{Factors, Trial};
pub use nephoscope_wire::specs::sys_fingerprint::SPEC;
use serde_json::json;

/// One trial.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    trial.prepared()?;
    trial.emit("clock_read_ns", 0.0, 1, Factors::new())?;
    let version = env!("CARGO_PKG_VERSION");
    let reason = "this machine is simulated";
    let document = json!({
        "schema": 1,
        "identity": {"hostname": "simulated", "machine_id_hash": null},
        "cpu": {"model_name": format!("simulated by nephoscope-sim {version}")},
        "memory": {"total_bytes": null},
        "kernel": {"release": null},
        "hypervisor": {"name": "nephoscope-sim"},
        "simulated": {"version": version, "machine": trial.machine},
        "missing": [
            {"fact": "memory.total_bytes", "reason": reason},
            {"fact": "kernel.release", "reason": reason},
            {"fact": "identity.machine_id_hash", "reason": reason},
        ],
    });
    trial.emit_document("fingerprint", document)
}
