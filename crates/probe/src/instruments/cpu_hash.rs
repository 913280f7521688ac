//! # What it measures
//! SHA-256 throughput on 1 to N threads: a load of every server that stays in the nearest cache and
//! shows whether the CPU and the hypervisor offer the SHA instructions.
//!
//! # How
//! Each thread is pinned to a CPU and hashes a block of `block_bytes` repeatedly for `duration_ns`;
//! each digest is written to the head of the block, so that no round can be skipped. The code is
//! the `sha2` crate, which uses the SHA instructions if present. All threads start together; the
//! rate is all bytes over the time from the first start to the last end.
//!
//! # Known truth
//! Each trial checks the hash of "abc" against FIPS 180-4 before, and recomputes the first links of
//! each thread's chain after the measurement. The tests compare a chain with another
//! implementation.
//!
//! # Cross-check
//! `openssl speed -evp sha256 -bytes 16384` uses the same SHA instructions; without them its vector
//! code is about twice as fast as the portable code here.
//!
//! # Overhead
//! One CPU per thread for `duration_ns`.
//!
//! # Caveats
//! SHA instructions change the rate by a factor of three to five: a low rate may mean that a
//! hypervisor hides them. Memory is not measured.
use crate::error::{Kind, ProbeError};
use crate::team::{self, Seats};
use crate::trial::Trial;
use crate::{clock, trial::factors};
use nephoscope_wire::spec::{Metric, Param, Spec};
use sha2::{Digest, Sha256};

pub const SPEC: Spec = Spec {
    id: "cpu.hash",
    summary: "SHA-256 throughput of cached data on 1 to N threads",
    params: &[
        Param::int("block_bytes", 16 << 10, 64..=1 << 20)
            .doc("Size of the block that each thread hashes; should fit into its cache."),
        Param::int("duration_ns", 100_000_000, 1_000_000..=3_600_000_000_000)
            .doc("Time for which each thread hashes."),
        Param::count("threads", 0, 0..=1024)
            .doc("Number of threads, each pinned to a CPU; 0 takes all allowed CPUs."),
    ],
    metrics: &[
        Metric::higher("hash_bytes_per_s")
            .headline()
            .doc("Bytes of all threads per second, from the first start to the last end."),
        Metric::higher("hash_thread_bytes_per_s")
            .doc("Bytes of one thread per second of its own time."),
    ],
    overhead: "occupies one CPU per thread for the duration",
    source: "FIPS 180-4; the sha2 crate",
    ..Spec::EMPTY
};

/// SHA-256 of "abc", FIPS 180-4.
const ABC: [u8; DIGEST] = [
    0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
];
const DIGEST: usize = 32;
/// Links of the chain that are computed again after the trial.
const CHECKED: u64 = 4;

/// A block whose head is the digest of its former self.
struct Chain {
    block: Vec<u8>,
    links: u64,
    /// The head after `CHECKED` links.
    early: [u8; DIGEST],
}

impl Chain {
    /// A block of a fixed pattern that differs from thread to thread.
    fn prepare(block_bytes: usize, thread: usize) -> Self {
        let byte = |at: usize| (at.wrapping_mul(31).wrapping_add(thread + 1) % 251) as u8;
        Self { block: (0..block_bytes).map(byte).collect(), links: 0, early: [0; DIGEST] }
    }

    #[inline]
    fn link(&mut self) {
        let digest: [u8; DIGEST] = Sha256::digest(&self.block).into();
        self.block[..DIGEST].copy_from_slice(&digest);
        self.links += 1;
        if self.links == CHECKED {
            self.early = digest;
        }
    }
}

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    check_vector()?;
    let block_bytes = trial.params.size("block_bytes");
    let duration_ns = trial.params.u64("duration_ns");
    let session = trial.session;
    let seats = Seats::choose(session, trial.params.size("threads"))?;
    for note in &seats.notes {
        trial.out.note(note);
    }
    let prepare = |thread| {
        let mut chain = Chain::prepare(block_bytes, thread);
        // The first digest looks up what the CPU can do.
        chain.link();
        Ok(Chain::prepare(block_bytes, thread))
    };
    let hash = |_, chain: &mut Chain| {
        let end_ns = clock::monotonic_ns() + duration_ns;
        loop {
            session.check()?;
            chain.link();
            if clock::monotonic_ns() >= end_ns {
                return Ok(chain.links);
            }
        }
    };
    let members = team::run_behind(|| trial.prepared(), &seats, prepare, hash)?;
    let mut bytes = 0.0;
    for member in &members {
        verify(&member.state, block_bytes, member.thread)?;
        let own = member.result as f64 * block_bytes as f64;
        bytes += own;
        let seconds = (member.ended_ns - member.started_ns) as f64 / 1e9;
        trial.out.emit("hash_thread_bytes_per_s", own / seconds, member.factors())?;
    }
    let rate = bytes / (team::window_ns(&members) as f64 / 1e9);
    trial.out.emit("hash_bytes_per_s", rate, factors! {})
}

fn check_vector() -> Result<(), ProbeError> {
    let digest: [u8; DIGEST] = Sha256::digest(b"abc").into();
    if digest == ABC {
        return Ok(());
    }
    Err(wrong("This machine hashes \"abc\" wrongly."))
}

fn verify(chain: &Chain, block_bytes: usize, thread: usize) -> Result<(), ProbeError> {
    let mut again = Chain::prepare(block_bytes, thread);
    for _ in 0..chain.links.min(CHECKED) {
        again.link();
    }
    let same = if chain.links >= CHECKED {
        chain.early == again.early
    } else {
        chain.block == again.block
    };
    if same {
        return Ok(());
    }
    Err(wrong("This machine hashed the same block twice with different results."))
}

fn wrong(message: &str) -> ProbeError {
    let hint = "Do not trust any result of this machine; test its memory and its CPU.";
    ProbeError::new(Kind::Failed, "wrong_digest", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vector_holds() {
        check_vector().unwrap();
    }

    #[test]
    fn a_chain_that_was_tampered_with_is_refused() {
        for links in [1, CHECKED, CHECKED + 3] {
            let mut chain = Chain::prepare(100, 2);
            (0..links).for_each(|_| chain.link());
            verify(&chain, 100, 2).unwrap();
            assert_eq!(verify(&chain, 100, 1).unwrap_err().name, "wrong_digest");
        }
    }

    /// Computed with Python's hashlib: the pattern of thread 0 over 64 bytes, three links.
    #[test]
    fn a_chain_agrees_with_another_implementation() {
        let mut chain = Chain::prepare(64, 0);
        (0..3).for_each(|_| chain.link());
        let hex: String = chain.block[..DIGEST].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "4576050afad636a27c3b4a7897d969bfee1488a4f5d034d92f4345d27c8f8b2d");
    }
}
