//! The three arrays of STREAM: placed by first touch, worked on by a team of threads, checked against
//! plain arithmetic.
use super::{apply, Element, How, StreamKernel, SCALAR};
use crate::error::{wrong_value, Result};
use crate::memory::buffer::{Buffer, Pages};
use crate::memory::simd;
use crate::threads::team::{self, ThreadPlacement};
use std::ops::Range;

/// A thread looks for cancellation after so many elements (24 MiB moved: a few milliseconds).
const BLOCK_ELEMENTS: usize = 1 << 20;
/// Elements of a 64-byte line.
const LINE_ELEMENTS: usize = 8;

/// How the arrays are laid out and worked on.
pub struct Layout {
    /// Which thread runs where.
    pub placement: ThreadPlacement,
    /// Elements of each array.
    pub elements: usize,
    /// Whether stores go past the caches.
    pub streaming: bool,
    /// Which pages to ask for.
    pub pages: Pages,
    /// Which instructions.
    pub level: simd::Level,
    /// How often each thread walks its part in one pass, without waiting for the others.
    pub laps: usize,
}

impl Layout {
    /// The elements of one thread: whole lines, so that no line has two writers.
    fn part(&self, thread: usize) -> Range<usize> {
        let lines = self.elements.div_ceil(LINE_ELEMENTS);
        let threads = self.placement.threads();
        let edge = |thread: usize| (lines * thread / threads * LINE_ELEMENTS).min(self.elements);
        edge(thread)..edge(thread + 1)
    }
}

/// The three arrays a, b, c in one mapping.
pub struct Arrays {
    /// The mapping that holds them.
    pub buffer: Buffer,
    stride: usize,
}

impl Arrays {
    /// Maps them, untouched.
    pub fn map(layout: &Layout) -> Result<Self> {
        // Arrays a whole number of pages apart would have the same low address bits at every step,
        // and a load then waits for an unrelated store whose low 12 bits are the same.
        const APART: usize = 5 * 256;
        let stride = (layout.elements * 8).next_multiple_of(4096) + APART;
        Ok(Self { buffer: Buffer::map_parts(3, stride, layout.pages)?, stride })
    }

    fn at(&self, array: usize, element: usize) -> *mut u8 {
        let offset = array * self.stride + element * 8;
        assert!(array < 3 && offset + 8 <= self.buffer.bytes(), "{array} {element}");
        // SAFETY: just checked to be inside the mapping.
        unsafe { self.buffer.as_ptr().add(offset) }
    }

    /// First touch and first values, each thread its own part: a = base, b = 2 base, c = 0.
    pub fn fill(&self, layout: &Layout, element: Element) -> Result<()> {
        let session = layout.placement.session;
        let touch = |thread: usize| {
            let part = layout.part(thread);
            for array in 0..3 {
                for block in blocks(part.clone()) {
                    session.check()?;
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
        team::run(&layout.placement, touch, |_, ()| Ok(())).map(|_| ())
    }

    /// One kernel over the whole arrays, `laps` times: its time and when it ended, in ns. Doing a
    /// kernel again changes nothing, because no kernel reads the array that it writes.
    pub fn pass(
        &self,
        layout: &Layout,
        kernel: StreamKernel,
        element: Element,
    ) -> Result<(u64, u64)> {
        let how = How { kernel, element, streaming: layout.streaming, level: layout.level };
        let (to, first, second) = kernel.roles();
        let session = layout.placement.session;
        let work = |thread: usize, (): &mut ()| {
            for block in (0..layout.laps).flat_map(|_| blocks(layout.part(thread))) {
                session.check()?;
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
        let members = team::run(&layout.placement, |_| Ok(()), work)?;
        let started_ns = members.iter().map(|member| member.started_ns).min().unwrap_or(0);
        let ended_ns = members.iter().map(|member| member.ended_ns).max().unwrap_or(0);
        Ok(((ended_ns - started_ns).max(1), ended_ns))
    }

    /// Compares elements all over the arrays with what `done` passes make of their first values.
    pub fn verify(&self, layout: &Layout, element: Element, done: &[StreamKernel]) -> Result<()> {
        for thread in 0..layout.placement.threads() {
            for index in samples(layout.part(thread)) {
                let truth = expected(element, first_values(element, index), done);
                for (array, truth) in truth.into_iter().enumerate() {
                    // SAFETY: `at` checked the place; all threads that wrote were joined.
                    let value = unsafe { self.at(array, index).cast::<u64>().read() };
                    if !equal(element, value, truth) {
                        let (name, kind) = (["a", "b", "c"][array], element.name());
                        return Err(wrong_value(format!(
                            "mem.stream: element {index} of array {name} ({kind}) is not what {} passes make \
                            of it.",
                            done.len()
                        )));
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
fn expected(element: Element, first: [u64; 3], done: &[StreamKernel]) -> [u64; 3] {
    match element {
        Element::Int64 => {
            let triple = |x: u64| x.wrapping_mul(SCALAR.cast_unsigned());
            after(first, done, triple, u64::wrapping_add)
        }
        Element::Double => {
            let first = first.map(f64::from_bits);
            after(first, done, |x| SCALAR as f64 * x, |x, y| x + y).map(f64::to_bits)
        }
    }
}

fn after<T: Copy>(
    mut values: [T; 3],
    done: &[StreamKernel],
    triple: fn(T) -> T,
    plus: fn(T, T) -> T,
) -> [T; 3] {
    for kernel in done {
        let (to, x, y) = kernel.roles();
        let (x, y) = (values[x], values[y]);
        values[to] = match kernel {
            StreamKernel::Copy => x,
            StreamKernel::Scale => triple(x),
            StreamKernel::Add => plus(x, y),
            StreamKernel::Triad => plus(x, triple(y)),
        };
    }
    values
}

fn equal(element: Element, value: u64, truth: u64) -> bool {
    match element {
        Element::Int64 => value == truth,
        // A fused multiply-add rounds once where the scalar form rounds twice: 2^-53 each, over at
        // most 804 passes, far below 1e-12. A missing pass is off by a factor.
        Element::Double => {
            let (value, truth) = (f64::from_bits(value), f64::from_bits(truth));
            (value - truth).abs() <= 1e-12 * truth.abs()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNELS: [StreamKernel; 4] =
        [StreamKernel::Copy, StreamKernel::Scale, StreamKernel::Add, StreamKernel::Triad];

    fn layout(threads: usize, elements: usize, streaming: bool, level: simd::Level) -> Layout {
        Layout {
            placement: ThreadPlacement::choose(crate::trial::session::Session::detached(), threads)
                .unwrap(),
            elements,
            streaming,
            pages: Pages::Huge,
            level,
            laps: 2,
        }
    }

    /// Every element of every array, against scalar arithmetic.
    fn wrong_elements(
        arrays: &Arrays,
        layout: &Layout,
        element: Element,
        done: &[StreamKernel],
    ) -> usize {
        let right = |index: &usize| {
            let truth = expected(element, first_values(element, *index), done);
            // SAFETY: `at` checks the place; nobody writes now.
            (0..3).all(|array| unsafe {
                equal(element, arrays.at(array, *index).cast::<u64>().read(), truth[array])
            })
        };
        (0..layout.elements).filter(|index| !right(index)).count()
    }

    #[test]
    fn all_elements_are_right_for_odd_lengths_threads_types_and_stores() {
        for level in simd::supported() {
            for (threads, elements) in [(1, 1), (3, 10), (2, 4099), (3, 100_003), (5, 8)] {
                for streaming in [false, true] {
                    let layout = layout(threads, elements, streaming, level);
                    let arrays = Arrays::map(&layout).unwrap();
                    for element in [Element::Double, Element::Int64] {
                        arrays.fill(&layout, element).unwrap();
                        let mut done = Vec::new();
                        for kernel in KERNELS.repeat(2) {
                            arrays.pass(&layout, kernel, element).unwrap();
                            done.push(kernel);
                        }
                        let wrong = wrong_elements(&arrays, &layout, element, &done);
                        assert_eq!(wrong, 0, "{element:?} {threads} threads {elements} elements");
                        arrays.verify(&layout, element, &done).unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn a_skipped_pass_and_a_flipped_bit_are_found() {
        let layout = layout(2, 50_000, true, simd::widest());
        let arrays = Arrays::map(&layout).unwrap();
        for element in [Element::Double, Element::Int64] {
            arrays.fill(&layout, element).unwrap();
            for kernel in &KERNELS {
                arrays.pass(&layout, *kernel, element).unwrap();
            }
            arrays.verify(&layout, element, &KERNELS).unwrap();
            let error = arrays.verify(&layout, element, &KERNELS.repeat(2)).unwrap_err();
            assert_eq!(error.name, "wrong_value");
            let last_of_first_part = layout.part(0).end - 1;
            // SAFETY: `at` checks the place; nobody else writes now.
            unsafe { *arrays.at(2, last_of_first_part).cast::<u64>() ^= 1 << 40 };
            let error = arrays.verify(&layout, element, &KERNELS).unwrap_err();
            assert!(error.message.contains("array c"), "{}", error.message);
        }
    }

    #[test]
    fn parts_cover_the_arrays_once_and_begin_at_lines() {
        for (threads, elements) in [(1, 1), (2, 17), (3, 1000), (7, 50), (16, 12_345)] {
            let layout = layout(threads, elements, true, simd::widest());
            let mut next = 0;
            for thread in 0..threads {
                let part = layout.part(thread);
                assert_eq!(part.start, next);
                assert!(part.is_empty() || part.start.is_multiple_of(LINE_ELEMENTS));
                next = part.end;
            }
            assert_eq!(next, elements);
        }
    }
}
