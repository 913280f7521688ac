//! # What it measures
//! Sustainable memory bandwidth: how many bytes per second the four kernels of STREAM move between
//! memory and the CPUs, on one thread or on many.
//!
//! # How
//! McCalpin's definitions over three arrays: copy c = a, scale b = 3 c, add c = a + b, triad
//! a = b + 3 c; elements are doubles or 64-bit integers (wrapping; 3 x is x + 2 x). Threads are pinned
//! to one allowed CPU each, and each first touches the part of the arrays that it later works on, so
//! that its memory lies on its own NUMA node. A pass is one kernel over the whole arrays; it lasts
//! from the first thread's start to the last thread's end. Kernels take turns inside a round, and
//! every pass yields a sample: none is dropped, none is the best of many. One round warms up.
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
use crate::buffer::Buffer;
use crate::error::{Kind as ErrorKind, ProbeError};
use crate::stream_kernels::{apply, Element, How, Kernel, SCALAR};
use crate::team::{self, Seats};
use crate::trial::Trial;
use crate::{affinity, caches, cancel, factors, pages, simd};
use nephoscope_wire::spec::{Better, Kind, Metric, Param, Shape, Spec, Unit};
use std::ops::Range;

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "mem.stream",
    summary: "Sustainable memory bandwidth by STREAM's copy, scale, add and triad",
    params: &[
        Param {
            id: "threads",
            unit: Unit::Count,
            kind: Kind::Int { default: 0, min: 0, max: 4096 },
            doc: "Pinned threads; 0 takes one on every allowed CPU.",
        },
        Param {
            id: "bytes_per_array",
            unit: Unit::Bytes,
            kind: Kind::Int { default: 0, min: 0, max: 1 << 40 },
            doc: "Size of each of the three arrays; 0 takes four times the last-level caches.",
        },
        Param {
            id: "kernels",
            unit: Unit::None,
            kind: Kind::ChoiceList { default: &[], choices: &["copy", "scale", "add", "triad"] },
            doc: "Kernels that take turns; an empty list means all.",
        },
        Param {
            id: "types",
            unit: Unit::None,
            kind: Kind::ChoiceList { default: &[], choices: &["double", "int64"] },
            doc: "Types of the elements; an empty list means both.",
        },
        Param {
            id: "passes",
            unit: Unit::Count,
            // Triad after scale multiplies values by 15 a round; 200 rounds stay below the largest double.
            kind: Kind::Int { default: 5, min: 1, max: 200 },
            doc: "Passes of each kernel and type inside a trial; each yields a sample.",
        },
        Param {
            id: "store",
            unit: Unit::None,
            kind: Kind::Choice { default: "auto", choices: &["auto", "regular", "nontemporal"] },
            doc: "Whether stores go through the caches or past them; auto decides by size.",
        },
        Param {
            id: "pages",
            unit: Unit::None,
            kind: Kind::Choice { default: "huge", choices: pages::WORDS },
            doc: "Pages of the arrays: transparent huge ones asked for, forbidden, or as it comes.",
        },
    ],
    metrics: &[
        Metric {
            id: "stream_bytes_per_s",
            unit: Unit::BytesPerS,
            better: Better::Higher,
            shape: Shape::Scalar,
            headline: true,
            doc: "Bytes moved per second of one pass, by kernel, type and threads.",
        },
        Metric {
            id: "array_bytes",
            unit: Unit::Bytes,
            better: Better::None,
            shape: Shape::Scalar,
            headline: false,
            doc: "Size of each of the three arrays that were used.",
        },
    ],
    overhead: "all chosen CPUs at 100 %; maps three arrays of four times the last-level cache",
    source: "McCalpin, Memory bandwidth and machine balance, IEEE TCCA Newsletter, 1995",
    two_sided: false,
};

/// Smallest array that `bytes_per_array` 0 takes.
const LEAST_BYTES: usize = 8 << 20;
/// A thread looks for cancellation after so many elements (24 MiB moved: a few milliseconds).
const BLOCK_ELEMENTS: usize = 1 << 20;
/// Elements of a 64-byte line.
const LINE_ELEMENTS: usize = 8;

/// One trial.
pub fn run(trial: &mut Trial) -> Result<(), ProbeError> {
    let plan = Plan::choose(trial)?;
    trial.emit("array_bytes", (plan.elements * 8) as f64, factors! {})?;
    let arrays = Arrays::map(&plan)?;
    for (index, element) in plan.types.iter().enumerate() {
        arrays.fill(&plan, *element)?;
        if index == 0 && plan.pages == "huge" && !pages::is_huge(&arrays.buffer) {
            trial.note(format!("{}; small pages were used.", pages::NO_HUGE));
        }
        let mut done = Vec::new();
        // Round 0 warms up: the vector units' clock, the address translation, the threads' caches.
        for round in 0..=plan.passes {
            for kernel in &plan.kernels {
                let (took_ns, ended_ns) = arrays.pass(&plan, *kernel, *element)?;
                done.push(*kernel);
                if round == 0 {
                    continue;
                }
                let bytes = plan.elements * kernel.bytes_per_element();
                let value = bytes as f64 * 1e9 / took_ns as f64;
                let factors = factors! {
                    "kernel": kernel.name(), "type": element.name(), "threads": plan.seats.threads()
                };
                let at_ns = ended_ns.saturating_sub(trial.started_ns());
                trial.emit_at("stream_bytes_per_s", value, 1, at_ns, factors)?;
            }
        }
        arrays.verify(&plan, *element, &done)?;
    }
    Ok(())
}

/// What a trial does, from its parameters and from the machine.
struct Plan {
    seats: Seats,
    elements: usize,
    kernels: Vec<Kernel>,
    types: Vec<Element>,
    passes: usize,
    streaming: bool,
    pages: String,
    level: simd::Level,
}

impl Plan {
    fn choose(trial: &mut Trial) -> Result<Self, ProbeError> {
        let seats = Seats::choose(trial.params.size("threads"))?;
        let cpus: Vec<usize> = seats.cpus.iter().flatten().copied().collect();
        let caches =
            caches::last_level(if cpus.is_empty() { affinity::allowed() } else { cpus }.as_slice());
        let available = caches::available_memory();
        let bytes = match trial.params.size("bytes_per_array") {
            0 => automatic_bytes(caches.bytes, available),
            bytes => bytes,
        };
        // More than there is would be paid with swap, or with the life of this process.
        if bytes.saturating_mul(3) > available {
            return Err(ProbeError::new(
                ErrorKind::Lacks,
                "no_memory",
                format!(
                    "mem.stream: three arrays of {bytes} bytes exceed the {available} available."
                ),
                "Set a smaller bytes_per_array.",
            ));
        }
        let streaming = match trial.params.text("store") {
            "auto" => bytes * 3 > caches.bytes,
            word => word == "nontemporal",
        };
        for note in seats.notes.iter().cloned().chain(caches.note()) {
            trial.note(note);
        }
        if streaming && cfg!(not(target_arch = "x86_64")) {
            trial.note("This CPU's streaming stores are not used; stores went through the caches.");
        }
        let words = |id| trial.params.words(&SPEC, id);
        Ok(Self {
            seats,
            elements: (bytes / 8).max(1),
            kernels: words("kernels").iter().filter_map(|word| Kernel::named(word)).collect(),
            types: words("types").iter().filter_map(|word| Element::named(word)).collect(),
            passes: trial.params.size("passes"),
            streaming,
            pages: trial.params.text("pages").to_owned(),
            level: simd::widest(),
        })
    }

    /// The elements of one thread: whole lines, so that no line has two writers.
    fn part(&self, thread: usize) -> Range<usize> {
        let lines = self.elements.div_ceil(LINE_ELEMENTS);
        let threads = self.seats.threads();
        let edge = |thread: usize| (lines * thread / threads * LINE_ELEMENTS).min(self.elements);
        edge(thread)..edge(thread + 1)
    }
}

fn automatic_bytes(llc_bytes: usize, available: usize) -> usize {
    (4 * llc_bytes).min(available / 4 / 3).max(LEAST_BYTES)
}

/// The three arrays a, b, c in one mapping.
struct Arrays {
    buffer: Buffer,
    stride: usize,
}

impl Arrays {
    fn map(plan: &Plan) -> Result<Self, ProbeError> {
        // Arrays a whole number of pages apart would have the same low address bits at every step,
        // and a load then waits for an unrelated store whose low 12 bits are the same.
        const APART: usize = 5 * 256;
        let stride = (plan.elements * 8).next_multiple_of(4096) + APART;
        Ok(Self { buffer: Buffer::map(3 * stride, pages::named(&plan.pages))?, stride })
    }

    fn at(&self, array: usize, element: usize) -> *mut u8 {
        let offset = array * self.stride + element * 8;
        assert!(array < 3 && offset + 8 <= self.buffer.bytes(), "{array} {element}");
        // SAFETY: just checked to be inside the mapping.
        unsafe { self.buffer.as_ptr().add(offset) }
    }

    /// First touch and first values, each thread its own part: a = base, b = 2 base, c = 0.
    fn fill(&self, plan: &Plan, element: Element) -> Result<(), ProbeError> {
        let touch = |thread: usize| {
            let part = plan.part(thread);
            for array in 0..3 {
                for block in blocks(part.clone()) {
                    cancel::check()?;
                    for index in block {
                        // SAFETY: inside the mapping, aligned to 8; only this thread has this part.
                        unsafe {
                            let to = self.buffer.as_ptr().add(array * self.stride).cast::<u64>();
                            to.add(index).write(first_values(element, index)[array]);
                        }
                    }
                }
            }
            Ok(())
        };
        team::run(&plan.seats, touch, |_, ()| Ok(())).map(|_| ())
    }

    /// One kernel over the whole arrays: its time and when it ended, in ns.
    fn pass(
        &self,
        plan: &Plan,
        kernel: Kernel,
        element: Element,
    ) -> Result<(u64, u64), ProbeError> {
        let how = How { kernel, element, streaming: plan.streaming, level: plan.level };
        let (to, first, second) = kernel.roles();
        let work = |thread: usize, (): &mut ()| {
            for block in blocks(plan.part(thread)) {
                cancel::check()?;
                let (at, count) = (block.start, block.len());
                // SAFETY: the part lies inside the three arrays, which do not overlap; this thread
                // alone writes it; blocks begin at whole lines; the level is the CPU's own.
                unsafe {
                    apply(how, self.at(to, at), self.at(first, at), self.at(second, at), count);
                }
            }
            simd::store_fence();
            Ok(())
        };
        let members = team::run(&plan.seats, |_| Ok(()), work)?;
        let started_ns = members.iter().map(|member| member.started_ns).min().unwrap_or(0);
        let ended_ns = members.iter().map(|member| member.ended_ns).max().unwrap_or(0);
        Ok(((ended_ns - started_ns).max(1), ended_ns))
    }

    /// Compares elements all over the arrays with what `done` passes make of their first values.
    fn verify(&self, plan: &Plan, element: Element, done: &[Kernel]) -> Result<(), ProbeError> {
        for thread in 0..plan.seats.threads() {
            for index in samples(plan.part(thread)) {
                let truth = expected(element, first_values(element, index), done);
                for (array, truth) in truth.into_iter().enumerate() {
                    // SAFETY: `at` checked the place; all threads that wrote were joined.
                    let found = unsafe { self.at(array, index).cast::<u64>().read() };
                    if !equal(element, found, truth) {
                        return Err(wrong_value(array, index, element, done.len()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// `part` in pieces of a bounded length.
fn blocks(part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = part.end;
    part.step_by(BLOCK_ELEMENTS).map(move |start| start..(start + BLOCK_ELEMENTS).min(end))
}

/// Both ends of `part` and about a thousand places between, at a prime distance.
fn samples(part: Range<usize>) -> impl Iterator<Item = usize> {
    const ENDS: usize = 16;
    let step = (part.len() / 1000 / 7 * 7 + 1).max(1);
    let (start, end) = (part.start, part.end);
    let head = start..end.min(start + ENDS);
    let tail = start.max(end.saturating_sub(ENDS))..end;
    head.chain(part.step_by(step)).chain(tail)
}

/// What a, b and c hold at first: values of a small whole number that differs between neighbours
/// and between lines and pages, so that an element written at the wrong place is seen.
#[inline]
fn first_values(element: Element, index: usize) -> [u64; 3] {
    let base = ((index ^ (index >> 10) ^ (index >> 20)) & 1023) as u64 + 1;
    match element {
        Element::Double => [(base as f64).to_bits(), (2.0 * base as f64).to_bits(), 0],
        Element::Int64 => [base, 2 * base, 0],
    }
}

/// The three values after the kernels in `done`, in plain scalar arithmetic.
fn expected(element: Element, first: [u64; 3], done: &[Kernel]) -> [u64; 3] {
    match element {
        Element::Int64 => {
            let mut values = first;
            for kernel in done {
                let (to, x, y) = kernel.roles();
                let (x, y) = (values[x], values[y]);
                let scalar = SCALAR.cast_unsigned();
                values[to] = match kernel {
                    Kernel::Copy => x,
                    Kernel::Scale => x.wrapping_mul(scalar),
                    Kernel::Add => x.wrapping_add(y),
                    Kernel::Triad => x.wrapping_add(y.wrapping_mul(scalar)),
                };
            }
            values
        }
        Element::Double => {
            let mut values = first.map(f64::from_bits);
            for kernel in done {
                let (to, x, y) = kernel.roles();
                let (x, y) = (values[x], values[y]);
                values[to] = match kernel {
                    Kernel::Copy => x,
                    Kernel::Scale => SCALAR as f64 * x,
                    Kernel::Add => x + y,
                    Kernel::Triad => x + SCALAR as f64 * y,
                };
            }
            values.map(f64::to_bits)
        }
    }
}

fn equal(element: Element, found: u64, truth: u64) -> bool {
    match element {
        Element::Int64 => found == truth,
        // A fused multiply-add rounds once where the scalar form rounds twice: 2^-53 each, over at
        // most 804 passes, far below 1e-12. A missing pass is off by a factor.
        Element::Double => {
            let (found, truth) = (f64::from_bits(found), f64::from_bits(truth));
            (found - truth).abs() <= 1e-12 * truth.abs()
        }
    }
}

fn wrong_value(array: usize, index: usize, element: Element, passes: usize) -> ProbeError {
    let name = ["a", "b", "c"][array];
    ProbeError::new(
        ErrorKind::Failed,
        "wrong_value",
        format!(
            "mem.stream: element {index} of array {name} ({}) is not what {passes} passes make of it.",
            element.name()
        ),
        "Test this machine's memory: the trial does not count.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(threads: usize, elements: usize, streaming: bool, level: simd::Level) -> Plan {
        Plan {
            seats: Seats::choose(threads).unwrap(),
            elements,
            kernels: ["copy", "scale", "add", "triad"]
                .into_iter()
                .filter_map(Kernel::named)
                .collect(),
            types: vec![Element::Double, Element::Int64],
            passes: 3,
            streaming,
            pages: "huge".to_owned(),
            level,
        }
    }

    /// Every element of every array, against scalar arithmetic.
    fn wrong_elements(arrays: &Arrays, plan: &Plan, element: Element, done: &[Kernel]) -> usize {
        let right = |index: &usize| {
            let truth = expected(element, first_values(element, *index), done);
            // SAFETY: `at` checks the place; nobody writes now.
            (0..3).all(|array| unsafe {
                equal(element, arrays.at(array, *index).cast::<u64>().read(), truth[array])
            })
        };
        (0..plan.elements).filter(|index| !right(index)).count()
    }

    #[test]
    fn all_elements_are_right_for_odd_lengths_threads_types_and_stores() {
        for level in simd::supported() {
            for (threads, elements) in [(1, 1), (3, 10), (2, 4099), (3, 100_003), (5, 8)] {
                for streaming in [false, true] {
                    let plan = plan(threads, elements, streaming, level);
                    let arrays = Arrays::map(&plan).unwrap();
                    for element in [Element::Double, Element::Int64] {
                        arrays.fill(&plan, element).unwrap();
                        let mut done = Vec::new();
                        for kernel in plan.kernels.repeat(2) {
                            arrays.pass(&plan, kernel, element).unwrap();
                            done.push(kernel);
                        }
                        let wrong = wrong_elements(&arrays, &plan, element, &done);
                        assert_eq!(wrong, 0, "{element:?} {threads} threads {elements} elements");
                        arrays.verify(&plan, element, &done).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn a_skipped_pass_and_a_flipped_bit_are_found() {
        let plan = plan(2, 50_000, true, simd::widest());
        let arrays = Arrays::map(&plan).unwrap();
        for element in [Element::Double, Element::Int64] {
            arrays.fill(&plan, element).unwrap();
            for kernel in &plan.kernels {
                arrays.pass(&plan, *kernel, element).unwrap();
            }
            arrays.verify(&plan, element, &plan.kernels).unwrap();
            let error = arrays.verify(&plan, element, &plan.kernels.repeat(2)).unwrap_err();
            assert_eq!(error.name, "wrong_value");
            let last_of_first_part = plan.part(0).end - 1;
            // SAFETY: `at` checks the place; nobody else writes now.
            unsafe { *arrays.at(2, last_of_first_part).cast::<u64>() ^= 1 << 40 };
            let error = arrays.verify(&plan, element, &plan.kernels).unwrap_err();
            assert!(error.message.contains("array c"), "{}", error.message);
        }
    }

    #[test]
    fn parts_cover_the_arrays_once_and_begin_at_lines() {
        for (threads, elements) in [(1, 1), (2, 17), (3, 1000), (7, 50), (16, 12_345)] {
            let plan = plan(threads, elements, true, simd::widest());
            let mut next = 0;
            for thread in 0..threads {
                let part = plan.part(thread);
                assert_eq!(part.start, next);
                assert!(part.is_empty() || part.start.is_multiple_of(LINE_ELEMENTS));
                next = part.end;
            }
            assert_eq!(next, elements);
        }
    }

    #[test]
    fn automatic_size_is_bounded_by_memory_on_both_sides() {
        assert_eq!(automatic_bytes(32 << 20, 64 << 30), 128 << 20);
        assert_eq!(automatic_bytes(32 << 20, 768 << 20), 64 << 20);
        assert_eq!(automatic_bytes(32 << 20, 1 << 20), LEAST_BYTES);
    }

    /// Bytes per second of the best of `passes` triads of ordinary stores on one thread.
    fn triad(elements: usize, passes: usize, element: Element) -> f64 {
        let plan = plan(1, elements, false, simd::widest());
        let arrays = Arrays::map(&plan).unwrap();
        arrays.fill(&plan, element).unwrap();
        let passes = (0..passes).map(|_| arrays.pass(&plan, Kernel::Triad, element).unwrap().0);
        (elements * 24) as f64 * 1e9 / passes.min().unwrap() as f64
    }

    #[test]
    fn arrays_in_the_cache_are_faster_than_arrays_in_memory() {
        // Three times 8 KiB fit into any first-level cache of 32 KiB; three times the last level fit
        // nowhere. One pass in the cache is 24 KiB, half a microsecond: far above the clock's 21 ns
        // but short, hence a factor of 2 only, where physics gives 5 and more.
        let far = caches::last_level(&affinity::allowed()).bytes / 8;
        let mut attempts = Vec::new();
        for _ in 0..5 {
            let (cached, memory) =
                (triad(1024, 500, Element::Double), triad(far, 2, Element::Double));
            attempts.push(cached / memory);
            if cached > 2.0 * memory {
                return;
            }
        }
        panic!("cached over memory bandwidth: {attempts:?}");
    }
}
