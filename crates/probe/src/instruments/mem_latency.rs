//! # What it measures
//! # How
//! # Known truth
//! # Cross-check
//! # Overhead
//! # Caveats
use crate::error::ProbeError;
use crate::trial::Trial;
use nephoscope_wire::spec::{Better, Metric, Shape, Spec, Unit};

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "mem.latency",
    summary: "to be written",
    params: &[],
    metrics: &[Metric {
        id: "placeholder_ns",
        unit: Unit::Ns,
        better: Better::Lower,
        shape: Shape::Scalar,
        headline: true,
        doc: "To be written.",
    }],
    overhead: "to be written",
    source: "to be written",
    two_sided: false,
};

/// One trial.
pub fn run(_trial: &mut Trial) -> Result<(), ProbeError> {
    Ok(())
}
