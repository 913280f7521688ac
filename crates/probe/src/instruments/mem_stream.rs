//! # What it measures
//! Sustainable memory bandwidth: bytes per second of the four kernels of STREAM, on one thread or
//! many.
//!
//! # How
//! McCalpin's definitions over three arrays: copy c = a, scale b = 3c, add c = a+b, triad a = b+3c;
//! elements are doubles or wrapping 64-bit integers. Each thread is pinned to a CPU and first
//! touches its part of the arrays, so that it lies on its NUMA node. A pass runs one kernel `laps`
//! times over all arrays, from the first thread's start to the last thread's end. Threads wait for
//! each other between passes and not between laps, as in likwid-bench: with `laps` 1 (McCalpin) a
//! barrier after every lap measures CPU interruptions more than memory. Kernels alternate, and
//! every pass yields a sample; the best pass, which is what STREAM reports, is a metric of its own.
//! One round warms up.
//!
//! Bytes are counted as in STREAM: 16 per element for copy and scale, 24 for add and triad. The
//! line fetched before an ordinary store is not counted: `regular` stores show 2/3 (copy, scale) or
//! 3/4 (add, triad) of the traffic.
//!
//! `bytes_per_array` 0 takes four times the last-level caches of the threads (STREAM's rule); the
//! three arrays take at most a quarter of the available memory, and 8 MiB at least. `store` auto
//! takes streaming (non-temporal) stores if the arrays exceed these caches; on aarch64 ordinary
//! ones, with a note. The widest vectors are used (AVX-512, AVX2 with FMA, SSE2). Arrays lie on
//! transparent huge pages by default, because address translation is the subject of `mem.latency`.
//!
//! # Known truth
//! Each kernel equals a scalar reference, for all types, stores, instruction sets and odd lengths,
//! and writes nothing beyond its part. After each trial elements all over the arrays, including the
//! ends of each thread's part, must have the arithmetic result of that number of passes. Arrays in
//! the cache must be faster.
//!
//! # Cross-check
//! `benchmarks/mem_stream_vs_peers.py` alternates with `likwid-bench -t stream_mem_avx_fma` (its
//! "stream" is this triad) and `stress-ng --stream` (whose MB are MiB).
//!
//! # Overhead
//! All chosen CPUs at 100 % for some seconds, three arrays of memory; loads the neighbours.
//!
//! # Caveats
//! A virtual machine may be told a last-level cache that it shares. Memory bandwidth belongs to the
//! socket: neighbours reduce it. More threads than CPUs wait for each other (see the notes).
use crate::error::Result;
use crate::memory::buffer::Pages;
use crate::memory::caches;
use crate::memory::ladder;
use crate::memory::pages;
use crate::memory::simd;
use crate::memory::stream::arrays::{Arrays, Layout};
use crate::memory::stream::{Element, StreamKernel};
use crate::threads::team::ThreadPlacement;
use crate::trial::affinity;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::{Factors, Trial};
use nephoscope_wire::meaning::{Contended, Headline, Literal, Victim};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec, Unit};

pub const SPEC: Spec = Spec {
    id: "mem.stream",
    summary: "Sustainable memory bandwidth by STREAM's copy, scale, add and triad",
    params: &[
        Param::count("threads", 0, 0..=4096)
            .doc("Number of pinned threads; 0 takes all allowed CPUs."),
        Param::int("bytes_per_array", 0, 0..=1 << 40).in_unit(Unit::Bytes).doc(
            "Size of each of the three arrays; 0 takes cache_multiple times the last-level cache.",
        ),
        ladder::CACHE_MULTIPLE,
        Param::choices("kernels", &["copy", "scale", "add", "triad"])
            .doc("Kernels to run in turn; an empty list takes all."),
        Param::choices("types", &["double", "int64"])
            .doc("Element types; an empty list takes both."),
        // Triad after scale multiplies values by 15 a round; 200 rounds stay below the largest double.
        Param::count("passes", 2, 1..=200)
            .doc("Number of passes per kernel and type; each yields a sample."),
        Param::count("laps", 4, 1..=1000)
            .doc("Number of times each thread walks its part per pass, without synchronising."),
        Param::choice("store", "auto", &["auto", "regular", "nontemporal"])
            .doc("Stores through the caches or past them; auto decides by size."),
        Param::choice("pages", "huge", pages::WORDS)
            .doc("Pages of the arrays: huge (madvise), small (huge pages off), system default, or mergeable (small, offered to KSM)."),
    ],
    metrics: &[
        Metric::higher("stream_bytes_per_s")
            .headline()
            .in_summary(
                Headline::of("Memory bandwidth, triad")
                    .prefer(&[
                        ("kernel", Literal::Text("triad")),
                        ("type", Literal::Text("double")),
                        ("threads", Literal::Text("maximum")),
                    ])
                    .without(&["kernel"]),
            )
            .doc("Bytes moved per second in one pass, by kernel, type and threads."),
        Metric::higher("best_bytes_per_s")
            .doc("Fastest pass of a trial, as STREAM reports it; hides what slowed the others."),
        Metric::neutral("array_bytes").doc("Size of each of the three arrays."),
    ],
    overhead: "all chosen CPUs at 100 %; maps three arrays of four times the last-level cache",
    source: "McCalpin, Memory bandwidth and machine balance, IEEE TCCA Newsletter, 1995",
    victim_for: &[Victim {
        resource: Contended::Memory,
        metric: "stream_bytes_per_s",
        params: &[
            ("threads", Literal::Int(1)),
            ("kernels", Literal::Texts(&["triad"])),
            ("types", Literal::Texts(&["double"])),
            ("bytes_per_array", Literal::Int(64 << 20)),
            ("laps", Literal::Int(2)),
        ],
    }],
    ..Spec::about(Resource::Memory)
};

/// Smallest array that `bytes_per_array` 0 takes.
const LEAST_BYTES: usize = 8 << 20;

pub fn run(trial: &mut Trial) -> Result<()> {
    let plan = Plan::choose(trial)?;
    let layout = &plan.layout;
    let arrays = Arrays::map(layout)?;
    for (index, element) in plan.types.iter().enumerate() {
        arrays.fill(layout, *element)?;
        if index == 0 && layout.pages == Pages::Huge && !pages::is_huge(&arrays.buffer) {
            trial.out.note(format!("{}; small pages were used.", pages::NO_HUGE));
        }
        trial.prepared()?;
        let mut done = Vec::new();
        let mut best = vec![0.0; plan.kernels.len()];
        // Round 0 warms up: the vector units' clock, the address translation, the threads' caches.
        for round in 0..=plan.passes {
            for (kernel, best) in plan.kernels.iter().zip(&mut best) {
                let (took_ns, ended_ns) = arrays.pass(layout, *kernel, *element)?;
                done.push(*kernel);
                if round == 0 {
                    continue;
                }
                let bytes = layout.laps * layout.elements * kernel.bytes_per_element();
                let value = bytes as f64 * 1e9 / took_ns as f64;
                *best = f64::max(*best, value);
                let at_ns = ended_ns.saturating_sub(trial.started_ns());
                trial.out.emit_at(
                    "stream_bytes_per_s",
                    value,
                    1,
                    at_ns,
                    factors_of(*kernel, *element, layout),
                )?;
            }
        }
        for (kernel, best) in plan.kernels.iter().zip(best) {
            trial.out.emit("best_bytes_per_s", best, factors_of(*kernel, *element, layout))?;
        }
        arrays.verify(layout, *element, &done)?;
    }
    trial.out.emit("array_bytes", (layout.elements * 8) as f64, factors! {})
}

fn factors_of(kernel: StreamKernel, element: Element, layout: &Layout) -> Factors {
    factors! {
        "kernel": kernel, "type": element.name(), "threads": layout.placement.threads()
    }
}

/// What a trial does, from its parameters and from the machine.
struct Plan {
    layout: Layout,
    kernels: Vec<StreamKernel>,
    types: Vec<Element>,
    passes: usize,
}

impl Plan {
    fn choose(trial: &mut Trial) -> Result<Self> {
        let placement = ThreadPlacement::of(trial)?;
        let cpus: Vec<usize> = placement.cpus.iter().flatten().copied().collect();
        let caches =
            caches::last_level(if cpus.is_empty() { affinity::allowed() } else { cpus }.as_slice());
        let available = caches::available_memory();
        let bytes = match trial.params.size("bytes_per_array") {
            0 => {
                let beyond = trial.params.size("cache_multiple") * caches.bytes;
                automatic_bytes(beyond, available)
            }
            bytes => bytes,
        };
        // More than there is would be paid with swap, or with the life of this process.
        caches::check_memory(
            "mem.stream",
            bytes.saturating_mul(3),
            "Set a smaller bytes_per_array.",
        )?;
        let streaming = match trial.params.text("store") {
            "auto" => bytes * 3 > caches.bytes,
            word => word == "nontemporal",
        };
        if let Some(note) = caches.note() {
            trial.out.note(note);
        }
        if streaming && cfg!(not(target_arch = "x86_64")) {
            trial
                .out
                .note("This CPU's streaming stores are not used; stores went through the caches.");
        }
        Ok(Self {
            layout: Layout {
                placement,
                elements: (bytes / 8).max(1),
                streaming,
                pages: parameters::choice(&trial.params, "pages"),
                level: simd::widest(),
                laps: trial.params.size("laps"),
            },
            kernels: parameters::choices(&trial.params, &SPEC, "kernels"),
            types: parameters::choices(&trial.params, &SPEC, "types"),
            passes: trial.params.size("passes"),
        })
    }
}

fn automatic_bytes(wanted: usize, available: usize) -> usize {
    wanted.min(available / 4 / 3).max(LEAST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn automatic_size_is_bounded_by_memory_on_both_sides() {
        assert_eq!(automatic_bytes(128 << 20, 64 << 30), 128 << 20);
        assert_eq!(automatic_bytes(128 << 20, 768 << 20), 64 << 20);
        assert_eq!(automatic_bytes(32 << 20, 1 << 20), LEAST_BYTES);
    }
}
