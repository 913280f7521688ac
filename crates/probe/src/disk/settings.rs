//! The parameters of `disk.io` that depend on each other.
use crate::clock;
use crate::error::ProbeError;
use nephoscope_wire::params::Params;

/// Parameters that depend on each other, checked.
pub struct Settings {
    /// Bytes of a record.
    pub record_bytes: usize,
    /// Records in the file.
    pub records: u64,
    /// Operations in flight.
    pub depth: usize,
    /// Bypass the page cache.
    pub direct: bool,
    /// Write, or read.
    pub write: bool,
    /// Any order, or one after the other.
    pub random: bool,
    /// Seed of the order and of the data.
    pub seed: u64,
}

impl Settings {
    /// Records in flight are held in memory at once.
    const IN_FLIGHT_BYTES: usize = 1 << 30;

    /// Reads and checks them.
    pub fn of(params: &Params) -> Result<Self, ProbeError> {
        let (record_bytes, depth) = (params.size("record_bytes"), params.size("queue_depth"));
        let direct = params.bool("direct");
        let file_bytes = params.int("file_bytes").cast_unsigned();
        let usage = |message: String, hint: &str| Err(ProbeError::usage(message, hint));
        if direct && !record_bytes.is_multiple_of(512) {
            return usage(
                format!("disk.io: record_bytes {record_bytes} is no multiple of 512, a sector."),
                "Set `record_bytes` to whole sectors, or `direct` to false.",
            );
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
        let seed = match params.int("seed").cast_unsigned() {
            0 => clock::realtime_ns(),
            seed => seed,
        };
        Ok(Self { record_bytes, records, depth, direct, write, random, seed })
    }

    /// Size of the scratch file.
    pub fn file_bytes(&self) -> u64 {
        self.records * self.record_bytes as u64
    }
}
