//! # What it measures
//! SHA-256 throughput on 1 to N threads: a load of every server that stays in the nearest cache and
//! shows whether the CPU and the hypervisor offer the SHA instructions. With `algorithm` also the rate
//! of password hashes (DES-crypt, MD5-crypt, bcrypt), which is integer work without such instructions.
//!
//! # How
//! Each thread is pinned to a CPU and hashes a block of `block_bytes` repeatedly for `duration_ns`;
//! each digest is written to the head of the block, so that no round can be skipped. The code is
//! the `sha2` crate, which uses the SHA instructions if present. All threads start together; the
//! rate is all bytes over the time from the first start to the last end.
//!
//! Password hashes are computed one after the other; each password comes from the last hash. DES and
//! Blowfish are the RustCrypto crates `des` and `blowfish`, MD5 is `md-5`.
//!
//! # Known truth
//! Each trial checks a published hash before (SHA-256: that of "abc" in FIPS 180-4), and recomputes the first links of
//! each thread's chain after the measurement. The tests compare a chain with another
//! implementation.
//!
//! # Cross-check
//! `openssl speed -evp sha256 -bytes 16384` uses the same SHA instructions; without them its vector
//! code is about twice as fast as the portable code here. `john --test` has the rate of password
//! hashes of an attacker (adapter `john`).
//!
//! # Overhead
//! One CPU per thread for `duration_ns`.
//!
//! # Caveats
//! SHA instructions change the rate by a factor of three to five: a low rate may mean that a
//! hypervisor hides them. Memory is not measured. A rate of password hashes is that of a server that
//! checks one password at a time in portable code. John the Ripper computes many candidates at once
//! (DES: one in each bit of a vector register) and is faster by that.
use crate::error::{wrong_result, Result};
mod password_hashes;

use crate::threads::team::{self, ThreadPlacement};
use crate::trial::factors;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec, Unit};
use sha2::{Digest, Sha256};

pub const SPEC: Spec = Spec {
    id: "cpu.hash",
    summary: "SHA-256 throughput of cached data, or password hashes, on 1 to N threads",
    params: &[
        Param::choice("algorithm", "sha256", Algorithm::NAMES)
            .doc("Hash function: SHA-256 of a block, or a password hash of crypt(3)."),
        Param::int("cost", 5, 4..=16)
            .in_unit(Unit::Count)
            .doc("Cost of bcrypt: 2 to this power rounds."),
        Param::int("block_bytes", 16 << 10, 64..=1 << 20)
            .doc("Size of the block that each thread hashes; should fit into its cache."),
        Param::int("duration_ns", 100_000_000, 1_000_000..=3_600_000_000_000)
            .doc("Time for which each thread hashes."),
        team::THREADS,
    ],
    metrics: &[
        Metric::higher("hash_bytes_per_s")
            .headline()
            .scales_with_threads()
            .doc("Bytes of all threads per second, from the first start to the last end."),
        Metric::higher("hash_thread_bytes_per_s")
            .doc("Bytes of one thread per second of its own time."),
        Metric::higher("hashes_per_s").headline().doc(
            "Password hashes of all threads per second, from the first start to the last end.",
        ),
        Metric::higher("hash_thread_per_s")
            .doc("Password hashes of one thread per second of its own time."),
    ],
    overhead: "occupies one CPU per thread for the duration",
    source: "FIPS 180-4; crypt(3); Provos and Mazieres, A future-adaptable password scheme, 1999",
    ..Spec::about(Resource::Cpu)
};

/// SHA-256 of "abc", FIPS 180-4.
const ABC: [u8; DIGEST] = [
    0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
];
const DIGEST: usize = 32;
const PASSWORD: usize = 8;
/// What `crypt(3)` makes of "password": with DES and the salt `..`, with MD5 and the salt `saltstri`, and
/// with bcrypt, the cost 4 and the salt `nephoscope salt.` (its first bytes).
const PASSWORD_DES: [u8; 8] = [0x82, 0x5d, 0x14, 0xfa, 0xf0, 0x53, 0xf8, 0x1a];
const PASSWORD_MD5: [u8; 16] = [
    0x1a, 0x32, 0x92, 0xa2, 0xc2, 0x57, 0x47, 0xff, 0xd3, 0x80, 0xbd, 0x7f, 0x36, 0x62, 0x8d, 0xd2,
];
const PASSWORD_BCRYPT: [u8; 8] = [0xab, 0x8a, 0x63, 0x1a, 0x0f, 0x4f, 0x26, 0x4a];
/// Links of the chain that are computed again after the trial.
const CHECKED: u64 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Algorithm {
    Sha256,
    DesCrypt,
    Md5Crypt,
    Bcrypt { cost: u32 },
}

impl Algorithm {
    const NAMES: &'static [&'static str] = &["sha256", "des-crypt", "md5-crypt", "bcrypt"];

    fn read(params: &Params) -> Self {
        match params.text("algorithm") {
            "des-crypt" => Self::DesCrypt,
            "md5-crypt" => Self::Md5Crypt,
            "bcrypt" => Self::Bcrypt { cost: params.u64("cost") as u32 },
            _ => Self::Sha256,
        }
    }

    /// The digest of a block, with zeros behind a shorter one.
    #[inline]
    fn digest(self, block: &[u8]) -> [u8; DIGEST] {
        const SALT: [u8; 16] = *b"nephoscope salt.";
        let mut digest = [0; DIGEST];
        match self {
            Self::Sha256 => digest = Sha256::digest(block).into(),
            Self::DesCrypt => digest[..8].copy_from_slice(&password_hashes::des_crypt(block)),
            Self::Md5Crypt => {
                digest[..16].copy_from_slice(&password_hashes::md5_crypt(block, &SALT[..8]));
            }
            Self::Bcrypt { cost } => {
                digest[..24].copy_from_slice(&password_hashes::bcrypt(block, SALT, cost));
            }
        }
        digest
    }

    /// Bytes of a block: of a password hash those of the password.
    fn block_bytes(self, params: &Params) -> usize {
        if self == Self::Sha256 {
            params.size("block_bytes")
        } else {
            PASSWORD
        }
    }
}

/// A block whose head is the digest of its former self; a password that comes from the last hash.
struct HashChain {
    algorithm: Algorithm,
    block: Vec<u8>,
    links: u64,
    /// The digest after `CHECKED` links.
    early: [u8; DIGEST],
}

impl HashChain {
    /// A block of a fixed pattern that differs from thread to thread.
    fn prepare(algorithm: Algorithm, block_bytes: usize, thread: usize) -> Self {
        let byte = |at: usize| (at.wrapping_mul(31).wrapping_add(thread + 1) % 251) as u8;
        let mut block: Vec<u8> = (0..block_bytes).map(byte).collect();
        if algorithm != Algorithm::Sha256 {
            block.iter_mut().for_each(|byte| *byte = printable(*byte));
        }
        Self { algorithm, block, links: 0, early: [0; DIGEST] }
    }

    #[inline]
    fn link(&mut self) {
        let digest = self.algorithm.digest(&self.block);
        if self.algorithm == Algorithm::Sha256 {
            self.block[..DIGEST].copy_from_slice(&digest);
        } else {
            self.block.iter_mut().zip(digest).for_each(|(byte, own)| *byte = printable(own));
        }
        self.links += 1;
        if self.links == CHECKED {
            self.early = digest;
        }
    }
}

/// A character of a password: no control character, no space, within 7 bits.
fn printable(byte: u8) -> u8 {
    b'!' + byte % 94
}

pub fn run(trial: &mut Trial) -> Result<()> {
    let algorithm = Algorithm::read(&trial.params);
    check_vector(algorithm)?;
    let block_bytes = algorithm.block_bytes(&trial.params);
    let duration_ns = trial.params.u64("duration_ns");
    let session = trial.session;
    let placement = ThreadPlacement::of(trial)?;
    let prepare = |thread| {
        let mut chain = HashChain::prepare(algorithm, block_bytes, thread);
        // The first digest looks up what the CPU can do.
        chain.link();
        Ok(HashChain::prepare(algorithm, block_bytes, thread))
    };
    let hash = |_, chain: &mut HashChain| {
        let end_ns = clock::monotonic_ns() + duration_ns;
        loop {
            session.check()?;
            chain.link();
            if clock::monotonic_ns() >= end_ns {
                return Ok(chain.links);
            }
        }
    };
    let members = team::run_behind(|| trial.prepared(), &placement, prepare, hash)?;
    let (all, of_thread, unit) = match algorithm {
        Algorithm::Sha256 => ("hash_bytes_per_s", "hash_thread_bytes_per_s", block_bytes as f64),
        _ => ("hashes_per_s", "hash_thread_per_s", 1.0),
    };
    let mut total = 0.0;
    for member in &members {
        verify(&member.state, block_bytes, member.thread)?;
        let own = member.result as f64 * unit;
        total += own;
        let seconds = (member.ended_ns - member.started_ns) as f64 / 1e9;
        trial.out.emit(of_thread, own / seconds, member.factors())?;
    }
    trial.out.emit(all, total / (team::window_ns(&members) as f64 / 1e9), factors! {})
}

/// Hashes what has a published hash.
fn check_vector(algorithm: Algorithm) -> Result<()> {
    let right = match algorithm {
        Algorithm::Sha256 => algorithm.digest(b"abc") == ABC,
        Algorithm::DesCrypt => password_hashes::des_crypt(b"password") == PASSWORD_DES,
        Algorithm::Md5Crypt => password_hashes::md5_crypt(b"password", b"saltstri") == PASSWORD_MD5,
        Algorithm::Bcrypt { .. } => {
            password_hashes::bcrypt(b"password", *b"nephoscope salt.", 4)[..8] == PASSWORD_BCRYPT
        }
    };
    if right {
        return Ok(());
    }
    Err(wrong_result("wrong_digest", "This machine hashes a known text wrongly."))
}

fn verify(chain: &HashChain, block_bytes: usize, thread: usize) -> Result<()> {
    let mut again = HashChain::prepare(chain.algorithm, block_bytes, thread);
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
    let message = "This machine hashed the same block twice with different results.";
    Err(wrong_result("wrong_digest", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Algorithm; 4] = [
        Algorithm::Sha256,
        Algorithm::DesCrypt,
        Algorithm::Md5Crypt,
        Algorithm::Bcrypt { cost: 4 },
    ];

    #[test]
    fn the_published_vector_holds() {
        for algorithm in ALL {
            check_vector(algorithm).unwrap();
        }
    }

    #[test]
    fn a_chain_that_was_tampered_with_is_refused() {
        for (algorithm, bytes) in ALL.into_iter().zip([100, PASSWORD, PASSWORD, PASSWORD]) {
            for links in [1, CHECKED, CHECKED + 3] {
                let mut chain = HashChain::prepare(algorithm, bytes, 2);
                (0..links).for_each(|_| chain.link());
                verify(&chain, bytes, 2).unwrap();
                assert_eq!(verify(&chain, bytes, 1).unwrap_err().name, "wrong_digest");
            }
        }
    }

    /// Computed with Python's hashlib: the pattern of thread 0 over 64 bytes, three links.
    #[test]
    fn a_chain_agrees_with_another_implementation() {
        let mut chain = HashChain::prepare(Algorithm::Sha256, 64, 0);
        (0..3).for_each(|_| chain.link());
        let hex: String = chain.block[..DIGEST].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "4576050afad636a27c3b4a7897d969bfee1488a4f5d034d92f4345d27c8f8b2d");
    }
}
