//! One job for an engine.
use super::errors;
use super::pattern::Order;
use super::scratch::Scratch;
use crate::error::ProbeError;
use nephoscope_wire::random::Random;
use std::sync::atomic::AtomicU64;

/// What an engine has to do.
#[derive(Debug)]
pub struct Job<'a> {
    /// The file, already filled.
    pub scratch: &'a Scratch,
    /// Write, or read.
    pub write: bool,
    /// Any order, or one after the other.
    pub random: bool,
    /// Bytes of a record.
    pub record_bytes: usize,
    /// Records in the file.
    pub records: u64,
    /// Operations in flight.
    pub depth: usize,
    /// Seed of the order and of the data.
    pub seed: u64,
    /// How long completions are counted.
    pub duration_ns: u64,
    /// Next record of the sequential order.
    pub next_record: AtomicU64,
}

impl Job<'_> {
    /// The order in which worker number `worker` visits the records.
    pub fn order(&self, worker: u64) -> Order<'_> {
        if self.random {
            Order::Random(Random::stream(self.seed, worker))
        } else {
            Order::Sequential(&self.next_record)
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
