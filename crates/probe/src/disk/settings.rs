//! The parameters of `disk.io` that depend on each other.
use super::errors;
use crate::clock;
use crate::error::{ProbeError, Result};
use nephoscope_wire::params::Params;

/// Parameters that depend on each other, checked.
pub struct Settings {
    pub record_bytes: usize,
    pub records: u64,
    pub depth: usize,
    pub direct: bool,
    pub write: bool,
    pub random: bool,
    pub seed: u64,
}

impl Settings {
    /// Records in flight are held in memory at once.
    const IN_FLIGHT_BYTES: usize = 1 << 30;

    pub fn of(params: &Params) -> Result<Self> {
        let (record_bytes, depth) = (params.size("record_bytes"), params.size("queue_depth"));
        let direct = params.bool("direct");
        let file_bytes = params.u64("file_bytes");
        let usage = |message: String, hint: &str| Err(ProbeError::usage(message, hint));
        if direct {
            errors::check_sectors("disk.io", record_bytes)?;
        }
        if record_bytes * depth > Self::IN_FLIGHT_BYTES {
            return usage(
                format!("disk.io: {depth} records of {record_bytes} bytes in flight exceed 1 GiB."),
                "Set a smaller `queue_depth` or `record_bytes`.",
            );
        }
        let records = file_bytes / record_bytes as u64;
        if records < depth as u64 {
            return usage(
                format!(
                    "disk.io: file_bytes {file_bytes} holds {records} records of {record_bytes} \
                     bytes, fewer than the {depth} in flight."
                ),
                "Set a larger `file_bytes`.",
            );
        }
        let operation = params.text("operation");
        let (write, random) = (operation.ends_with("write"), operation.starts_with("rand"));
        let seed = clock::seed(params);
        Ok(Self { record_bytes, records, depth, direct, write, random, seed })
    }

    pub fn file_bytes(&self) -> u64 {
        self.records * self.record_bytes as u64
    }
}
