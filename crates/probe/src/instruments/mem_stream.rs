//! # What it measures
//! Sustainable memory bandwidth: how many bytes per second the four kernels of STREAM move between
//! memory and the CPUs, on one thread or on many.
//!
//! # How
//! McCalpin's definitions over three arrays: copy c = a, scale b = 3 c, add c = a + b, triad
//! a = b + 3 c; elements are doubles or 64-bit integers (wrapping; 3 x is x + 2 x). Threads are pinned
//! to one allowed CPU each, and each first touches the part of the arrays that it later works on, so
//! that its memory lies on its own NUMA node. A pass is one kernel `laps` times over all arrays; it
//! lasts from the first thread's start to the last thread's end. Threads wait for each other between
//! passes and not between laps, as in likwid-bench: where a CPU is taken away now and then, a barrier
//! after every lap (`laps` 1, McCalpin's way) measures that more than the memory. Kernels take turns
//! inside a round, and every pass yields a sample: none is dropped. The best of a trial's passes,
//! which is all that STREAM reports, stands beside them under its own name. One round warms up.
//!
//! Bytes are counted as STREAM does: 16 per element for copy and scale, 24 for add and triad. The
//! line that an ordinary store fetches before it writes is not counted, so that `regular` stores
//! show 2/3 (copy, scale) or 3/4 (add, triad) of what the memory bus really moved.
//!
//! `bytes_per_array` 0 takes four times the last-level caches that the threads reach (STREAM's rule),
//! bounded so that the three arrays take a quarter of the available memory at most, and 8 MiB at
//! least. `store` auto takes streaming (non-temporal) stores when the three arrays exceed these
//! caches, ordinary stores otherwise; CPUs without streaming stores in our code (aarch64) take
//! ordinary ones and say so. The widest vectors of the CPU are used (AVX-512, AVX2 with FMA, SSE2).
//! Arrays lie on transparent huge pages by default, since the cost of address translation is
//! `mem.latency`'s subject; `pages` small or default measures what a program that does not ask gets.
//!
//! # Known truth
//! Each kernel equals a scalar reference element by element, for all types, stores, instruction sets
//! and odd lengths, and writes nothing beyond its part. After the passes of every trial elements all
//! over the arrays, with both ends of each thread's part, must have the value that arithmetic gives
//! after that number of passes; a skipped, doubled or torn pass fails the trial. Arrays that fit into
//! the cache must be faster than arrays that do not.
//!
//! # Cross-check
//! `likwid-bench -t stream_mem_avx_fma` (its "stream" is this triad; its "triad" moves four streams)
//! and `stress-ng --stream` (whose MB are MiB): `benchmarks/mem_stream_vs_peers.py` alternates them.
//!
//! # Overhead
//! All chosen CPUs at 100 % for some seconds, three arrays of memory; neighbours feel the load.
//!
//! # Caveats
//! A virtual machine may be told a last-level cache that it shares with strangers. Memory bandwidth
//! is a property of the socket: a neighbour's use of it shows here. On more threads than CPUs the
//! threads wait for each other, and the trial says so.
use crate::buffer::Pages;
use crate::error::ProbeError;
use crate::stream::arrays::{Arrays, Layout};
use crate::stream::{Element, Kernel};
use crate::team::Seats;
use crate::trial::{Factors, Trial};
use crate::{affinity, caches, ladder, pages, simd, trial::factors};
use nephoscope_wire::spec::{Metric, Param, Spec, Unit};

pub const SPEC: Spec = Spec {
    id: "mem.stream",
    summary: "Sustainable memory bandwidth by STREAM's copy, scale, add and triad",
    params: &[
        Param::count("threads", 0, 0..=4096).doc("Pinned threads; 0 takes one on every allowed CPU."),
        Param::int("bytes_per_array", 0, 0..=1 << 40).in_unit(Unit::Bytes).doc("Size of each of the three arrays; 0 takes cache_multiple times the last level."),
        ladder::CACHE_MULTIPLE,
        Param::choices("kernels", &["copy", "scale", "add", "triad"]).doc("Kernels that take turns; an empty list means all."),
        Param::choices("types", &["double", "int64"]).doc("Types of the elements; an empty list means both."),
        // Triad after scale multiplies values by 15 a round; 200 rounds stay below the largest double.
        Param::count("passes", 2, 1..=200).doc("Passes of each kernel and type inside a trial; each yields a sample."),
        Param::count("laps", 4, 1..=1000).doc("Times that each thread walks its part in one pass, without waiting for the others."),
        Param::choice("store", "auto", &["auto", "regular", "nontemporal"]).doc("Whether stores go through the caches or past them; auto decides by size."),
        Param::choice("pages", "huge", pages::WORDS).doc("Pages of the arrays: transparent huge ones asked for, forbidden, or as it comes."),
    ],
    metrics: &[
        Metric::higher("stream_bytes_per_s").headline().doc("Bytes moved per second of one pass, by kernel, type and threads."),
        Metric::higher("best_bytes_per_s").doc("The fastest of a trial's passes, as STREAM itself reports: it hides whatever slowed the others."),
        Metric::neutral("array_bytes").doc("Size of each of the three arrays that were used."),
    ],
    overhead: "all chosen CPUs at 100 %; maps three arrays of four times the last-level cache",
    source: "McCalpin, Memory bandwidth and machine balance, IEEE TCCA Newsletter, 1995",
    ..Spec::EMPTY
};

/// Smallest array that `bytes_per_array` 0 takes.
const LEAST_BYTES: usize = 8 << 20;

pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
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

fn factors_of(kernel: Kernel, element: Element, layout: &Layout) -> Factors {
    factors! {
        "kernel": kernel.name(), "type": element.name(), "threads": layout.seats.threads()
    }
}

/// What a trial does, from its parameters and from the machine.
struct Plan {
    layout: Layout,
    kernels: Vec<Kernel>,
    types: Vec<Element>,
    passes: usize,
}

impl Plan {
    fn choose(trial: &mut Trial) -> Result<Self, ProbeError> {
        let seats = Seats::choose(trial.session, trial.params.size("threads"))?;
        let cpus: Vec<usize> = seats.cpus.iter().flatten().copied().collect();
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
        caches::check_memory(bytes.saturating_mul(3), "Set a smaller bytes_per_array.")?;
        let streaming = match trial.params.text("store") {
            "auto" => bytes * 3 > caches.bytes,
            word => word == "nontemporal",
        };
        for note in seats.notes.iter().cloned().chain(caches.note()) {
            trial.out.note(note);
        }
        if streaming && cfg!(not(target_arch = "x86_64")) {
            trial
                .out
                .note("This CPU's streaming stores are not used; stores went through the caches.");
        }
        let words = |id| trial.params.words(&SPEC, id);
        Ok(Self {
            layout: Layout {
                seats,
                elements: (bytes / 8).max(1),
                streaming,
                pages: pages::named(trial.params.text("pages")),
                level: simd::widest(),
                laps: trial.params.size("laps"),
            },
            kernels: words("kernels").iter().filter_map(|word| Kernel::named(word)).collect(),
            types: words("types").iter().filter_map(|word| Element::named(word)).collect(),
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
