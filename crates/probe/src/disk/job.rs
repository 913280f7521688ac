//! One job for an engine.
use super::errors;
use super::pattern::RecordOrder;
use super::scratch::Scratch;
use crate::error::ProbeError;
use nephoscope_wire::random::Random;
use std::sync::atomic::AtomicU64;

#[derive(Debug)]
pub struct DiskJob<'a> {
    /// The file, already filled.
    pub scratch: &'a Scratch,
    pub write: bool,
    pub random: bool,
    pub record_bytes: usize,
    pub records: u64,
    pub depth: usize,
    pub seed: u64,
    pub duration_ns: u64,
    /// Next record of the sequential order.
    pub next_record: AtomicU64,
}

impl<'a> DiskJob<'a> {
    /// A job of one operation in flight at a time, in order, without an end.
    pub fn new(
        scratch: &'a Scratch,
        write: bool,
        record_bytes: usize,
        records: u64,
        seed: u64,
    ) -> Self {
        let next_record = AtomicU64::new(0);
        let (random, depth, duration_ns) = (false, 1, 0);
        Self {
            scratch,
            write,
            random,
            record_bytes,
            records,
            depth,
            seed,
            duration_ns,
            next_record,
        }
    }

    /// The order in which worker number `worker` visits the records.
    pub fn order(&self, worker: u64) -> RecordOrder<'_> {
        if self.random {
            RecordOrder::Random(Random::stream(self.seed, worker))
        } else {
            RecordOrder::Sequential(&self.next_record)
        }
    }

    /// A system error of an operation as a sentence; a misaligned record has its own.
    pub fn failed(&self, errno: i32) -> ProbeError {
        let directory = &self.scratch.directory;
        if errno == libc::EINVAL {
            let reason =
                format!("records of {} bytes were refused as misaligned", self.record_bytes);
            return errors::no_direct_io(directory, &reason);
        }
        let what = if self.write { "Writing a record" } else { "Reading a record" };
        self.scratch.named(what, &std::io::Error::from_raw_os_error(errno))
    }

    /// A record that moved only in part; when the trial was told to end, that is why.
    pub fn short(&self, done: usize) -> ProbeError {
        self.scratch.session.check().err().unwrap_or_else(|| {
            errors::short_transfer(&self.scratch.directory, done, self.record_bytes)
        })
    }
}
