//! # What it measures
//! Compression and decompression with LZMA (the algorithm of `xz`) on 1 to N threads: an application
//! that is bound by the latency of caches and memory, and by branches that cannot be predicted.
//!
//! # How
//! A text of `corpus_bytes` is generated from a fixed seed: words of a vocabulary of 4,096, few of
//! them frequent. Each thread is pinned to a CPU, has a copy of its own and compresses it with
//! `preset`, then decompresses the result, both as often as fits into `duration_ns` and at least
//! once. The coder is the crate `lzma-rust2`, the format `.lzma`. All threads start each of both parts
//! together; a rate is all bytes over the time from the first start to the last end.
//!
//! # Known truth
//! Each thread's result, decompressed, is the text; otherwise the trial fails. `xz`
//! decompresses it, too.
//!
//! # Cross-check
//! `xz` on the same text (adapter `xz`), and `7z b`.
//!
//! # Overhead
//! One CPU per thread for twice `duration_ns` or longer; about 100 MiB of memory per thread with the
//! preset 6.
//!
//! # Caveats
//! The text is no natural one: it compresses to about a third. Its size decides how much of the work
//! is in caches; compare only rates of one size. The search for matches costs more than everything
//! else, so that decompression is ten times as fast and depends on other parts of a CPU.
use crate::error::{wrong_result, FailureKind, ProbeError, Result};
use crate::threads::barriers::Barrier;
use crate::threads::team::{self, ThreadPlacement};
use crate::threads::workers;
use crate::trial::factors;
use crate::trial::session::Session;
use crate::trial::Trial;
use lzma_rust2::{LzmaOptions, LzmaReader, LzmaWriter};
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec, Unit};
use std::io::{Read, Write};

pub const SPEC: Spec = Spec {
    id: "app.lzma",
    summary: "LZMA compression and decompression of a generated text on 1 to N threads",
    params: &[
        Param::int("corpus_bytes", 1 << 20, 4096..=1 << 30).doc("Size of the text of each thread."),
        Param::int("preset", 6, 0..=9).in_unit(Unit::None).doc("Preset of xz: 0 is fastest."),
        Param::int("duration_ns", 200_000_000, 0..=3_600_000_000_000)
            .doc("Time for which each thread compresses, and then decompresses; at least once."),
        team::THREADS,
    ],
    metrics: &[
        Metric::higher("compress_bytes_per_s")
            .headline()
            .doc("Bytes of text that all threads compress per second."),
        Metric::higher("decompress_bytes_per_s")
            .headline()
            .doc("Bytes of text that all threads decompress per second."),
        Metric::higher("thread_compress_bytes_per_s")
            .doc("Bytes of text that one thread compresses per second of its own time."),
        Metric::neutral("compressed_ratio").doc("Compressed size over size of the text."),
    ],
    overhead: "one CPU per thread for twice the duration, and about 100 MiB of memory each",
    source: "Pavlov, LZMA specification; the lzma-rust2 crate",
    ..Spec::about(Resource::Cpu)
};

/// The generator of the text, by Lehmer (1951) with the constants of Park and Miller (1988): its numbers
/// are small enough for the `awk` that writes the same text for `xz`.
struct Lehmer(u64);

impl Lehmer {
    const MODULUS: u64 = 2_147_483_647;

    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0 * 16_807 % Self::MODULUS;
        self.0 * bound / Self::MODULUS
    }
}

const SEED: u64 = 20_100_101;
const WORDS: u64 = 4096;

/// A text of words in which few are frequent: rank k is drawn with a probability of about
/// ln(4096 / k) / 4096.
fn corpus(bytes: usize) -> Vec<u8> {
    const LETTERS: &[u8] = b"etaoinshrdlucmfwypvbgkjqxz";
    let mut random = Lehmer(SEED);
    let mut vocabulary = Vec::with_capacity(WORDS as usize);
    for _ in 0..WORDS {
        let length = 2 + random.below(9);
        let mut letter = || {
            let range = 1 + random.below(LETTERS.len() as u64);
            LETTERS[random.below(range) as usize]
        };
        vocabulary.push((0..length).map(|_| letter()).collect::<Vec<u8>>());
    }
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        let range = 1 + random.below(WORDS);
        text.extend_from_slice(&vocabulary[random.below(range) as usize]);
        text.push(if random.below(12) == 0 { b'\n' } else { b' ' });
    }
    text.truncate(bytes);
    text
}

/// What one thread did in one part: how often, from when to when.
#[derive(Clone, Copy, Debug)]
struct CompressionPart {
    rounds: u64,
    started_ns: u64,
    ended_ns: u64,
}

impl CompressionPart {
    /// Does `work` as often as fits into a time, and at least once.
    fn measure(
        session: Session,
        duration_ns: u64,
        mut work: impl FnMut() -> Result<()>,
    ) -> Result<Self> {
        let started_ns = clock::monotonic_ns();
        let mut rounds = 0;
        loop {
            session.check()?;
            work()?;
            rounds += 1;
            let ended_ns = clock::monotonic_ns();
            if ended_ns - started_ns >= duration_ns {
                return Ok(Self { rounds, started_ns, ended_ns });
            }
        }
    }

    fn seconds(self) -> f64 {
        (self.ended_ns - self.started_ns).max(1) as f64 / 1e9
    }
}

/// Rounds a second of all threads, from the first start to the last end.
fn rate(parts: &[CompressionPart]) -> f64 {
    let first = parts.iter().map(|part| part.started_ns).min().unwrap_or(0);
    let last = parts.iter().map(|part| part.ended_ns).max().unwrap_or(0);
    let rounds: u64 = parts.iter().map(|part| part.rounds).sum();
    rounds as f64 / ((last - first).max(1) as f64 / 1e9)
}

pub fn run(trial: &mut Trial) -> Result<()> {
    let bytes = trial.params.size("corpus_bytes");
    let preset = trial.params.u64("preset") as u32;
    let duration_ns = trial.params.u64("duration_ns");
    let session = trial.session;
    let placement = ThreadPlacement::of(trial)?;
    let text = corpus(bytes);
    let barrier = Barrier::new(session, placement.threads());
    trial.prepared()?;
    let outcomes = std::thread::scope(|scope| {
        let (text, barrier) = (&text, &barrier);
        let workers: Vec<_> = placement
            .cpus
            .iter()
            .map(|cpu| {
                workers::start(scope, *cpu, move || {
                    let outcome = serve(session, barrier, text, preset, duration_ns);
                    outcome.inspect_err(|_| barrier.give_up())
                })
                .inspect_err(|_| barrier.give_up())
            })
            .collect();
        workers.into_iter().map(|worker| worker?.join()).collect::<Result<Vec<_>>>()
    })?;
    let compressing: Vec<CompressionPart> =
        outcomes.iter().map(|outcome| outcome.compressing).collect();
    let decompressing: Vec<CompressionPart> =
        outcomes.iter().map(|outcome| outcome.decompressing).collect();
    let size = bytes as f64;
    trial.out.emit("compress_bytes_per_s", rate(&compressing) * size, factors! {})?;
    trial.out.emit("decompress_bytes_per_s", rate(&decompressing) * size, factors! {})?;
    for (thread, part) in compressing.iter().enumerate() {
        let own = part.rounds as f64 * size / part.seconds();
        trial.out.emit("thread_compress_bytes_per_s", own, factors! {"thread": thread})?;
    }
    trial.out.emit("compressed_ratio", outcomes[0].compressed as f64 / size, factors! {})
}

struct CompressionResult {
    compressing: CompressionPart,
    decompressing: CompressionPart,
    compressed: usize,
}

fn serve(
    session: Session,
    barrier: &Barrier,
    text: &[u8],
    preset: u32,
    duration_ns: u64,
) -> Result<CompressionResult> {
    let text = text.to_vec();
    let mut compressed = Vec::with_capacity(text.len());
    let mut again = Vec::with_capacity(text.len());
    let together = || if barrier.wait() { Ok(()) } else { Err(left_alone(session)) };
    together()?;
    let compressing = CompressionPart::measure(session, duration_ns, || {
        compressed.clear();
        compress(&text, preset, &mut compressed)
    })?;
    together()?;
    let decompressing = CompressionPart::measure(session, duration_ns, || {
        again.clear();
        decompress(&compressed, &mut again)
    })?;
    if again != text {
        return Err(wrong("decompressed text is not the text that was compressed"));
    }
    Ok(CompressionResult { compressing, decompressing, compressed: compressed.len() })
}

fn compress(text: &[u8], preset: u32, compressed: &mut Vec<u8>) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let (options, size) = (LzmaOptions::with_preset(preset), text.len() as u64);
        let mut writer = LzmaWriter::new_use_header(compressed, &options, Some(size))?;
        writer.write_all(text)?;
        writer.finish().map(drop)
    };
    write().map_err(|error| wrong(&error.to_string()))
}

fn decompress(compressed: &[u8], text: &mut Vec<u8>) -> Result<()> {
    let reader = LzmaReader::new_mem_limit(compressed, u32::MAX, None);
    let read = reader.and_then(|mut reader| reader.read_to_end(text));
    read.map(drop).map_err(|error| wrong(&error.to_string()))
}

fn left_alone(session: Session) -> ProbeError {
    let message = "A thread could not start because another failed.";
    let alone =
        ProbeError::new(FailureKind::Failed, "another_thread_failed", message, "See the other.");
    session.check().err().unwrap_or(alone)
}

fn wrong(what: &str) -> ProbeError {
    wrong_result("wrong_text", format!("LZMA failed: {what}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    #[test]
    fn texts_survive_and_shrink_to_about_a_third() {
        let text = corpus(100_000);
        let (mut compressed, mut again) = (Vec::new(), Vec::new());
        compress(&text, 0, &mut compressed).unwrap();
        decompress(&compressed, &mut again).unwrap();
        assert_eq!(again, text);
        assert!((25_000..45_000).contains(&compressed.len()), "{}", compressed.len());
        assert!(text.iter().all(|byte| b" \n".contains(byte) || byte.is_ascii_lowercase()));
    }

    /// The adapter of `xz` writes the same text; its test has the same digest.
    #[test]
    fn the_text_is_that_of_the_adapter() {
        let digest = Sha256::digest(corpus(100_000));
        let hex: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "100100aeef33bc36");
    }

    #[test]
    fn a_longer_text_begins_with_the_shorter_one() {
        assert_eq!(corpus(20_000)[..5_000], corpus(5_000)[..]);
    }

    #[test]
    fn damage_is_noticed() {
        let (text, mut compressed) = (corpus(20_000), Vec::new());
        compress(&text, 0, &mut compressed).unwrap();
        let middle = compressed.len() / 2;
        compressed[middle] ^= 1;
        let mut again = Vec::new();
        assert!(decompress(&compressed, &mut again).is_err() || again != text);
    }
}
