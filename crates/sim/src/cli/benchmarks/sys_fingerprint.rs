//! # What it measures
//! Nothing. It reports what is simulated, in the document in which the probe describes a machine.
//!
//! # How
//! The scenario of `--machine`, if there is one. Facts that a simulated machine does not have are null.
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
//! `clock_read_ns` is 0: reading simulated time costs nothing.
use crate::cli::trial::SimulationTrial;
use nephoscope_wire::error::Error;
pub use nephoscope_wire::specs::sys_fingerprint::SPEC;
use nephoscope_wire::writer::Factors;
use serde_json::json;

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    trial.start()?;
    trial.writer.emit("clock_read_ns", 0.0, Factors::new())?;
    let version = env!("CARGO_PKG_VERSION");
    let reason = "this machine is simulated";
    let document = json!({
        "schema": 1,
        "identity": {"hostname": "simulated", "machine_id_hash": null},
        "cpu": {"model_name": format!("simulated by nephoscope-sim {version}")},
        "memory": {"total_bytes": null},
        "kernel": {"release": null},
        "hypervisor": {"name": "nephoscope-sim"},
        "simulated": {"version": version, "machine": trial.request.machine},
        "missing": [
            {"fact": "memory.total_bytes", "reason": reason},
            {"fact": "kernel.release", "reason": reason},
            {"fact": "identity.machine_id_hash", "reason": reason},
        ],
    });
    trial.writer.emit_document("fingerprint", document)
}
