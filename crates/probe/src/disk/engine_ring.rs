//! The `io_uring` engine: as many operations in flight as asked for, one thread, one ring.
//!
//! Each completion is answered at once by one new operation in a submission of its own, which is
//! what fio does unless told otherwise; submitting in batches would be faster on devices where the
//! doorbell is dear, but would be another measurement.
use super::job::DiskJob;
use super::pattern::{self, RecordOrder};
use crate::error::Result;
use crate::memory::buffer::{Buffer, Pages};
use crate::timing::closed_loop::{ClosedLoopResult, CompletionWindow};
use crate::timing::timed;
use io_uring::{opcode, squeue, types, EnterFlags, IoUring};
use nephoscope_linux::clock;
use nephoscope_wire::random::Random;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Makes the ring. The error says why this kernel or sandbox gives none.
pub fn ring(depth: usize) -> Result<IoUring, Error> {
    let entries = u32::try_from(depth).unwrap_or(u32::MAX);
    // Completions run in our own call instead of by interrupting us (Linux 6.1); older kernels do
    // not know the flags and refuse them.
    let modern = IoUring::builder()
        .setup_cqsize(entries.next_power_of_two())
        .setup_single_issuer()
        .setup_defer_taskrun()
        .build(entries);
    match modern {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => IoUring::new(entries),
        built => built,
    }
}

/// Runs the job on `ring`; calls `gate` when all is prepared.
pub fn run(
    job: &DiskJob<'_>,
    ring: &mut IoUring,
    gate: impl FnOnce() -> Result<()>,
) -> Result<ClosedLoopResult> {
    let mut queue = InFlightOperations::new(job)?;
    gate()?;
    queue.window.begin(clock::monotonic_ns());
    let section = timed::start();
    let result = queue.measure(ring);
    if result.is_ok() {
        section.stop_with_kernel_io();
    }
    // The kernel still writes to the buffers of the operations in flight.
    queue.drain(ring);
    result?;
    CompletionWindow::outcome([queue.window])
}

/// State of the operations in flight; slot `i` owns the `i`-th part of the buffer.
struct InFlightOperations<'a> {
    job: &'a DiskJob<'a>,
    order: RecordOrder<'a>,
    buffer: Buffer,
    slot_bytes: usize,
    started_ns: Vec<u64>,
    in_flight: usize,
    submissions: u64,
    window: CompletionWindow,
}

impl<'a> InFlightOperations<'a> {
    fn new(job: &'a DiskJob<'a>) -> Result<Self> {
        let slot_bytes = job.record_bytes.next_multiple_of(4096);
        let mut buffer = Buffer::map_parts(job.depth, slot_bytes, Pages::Default)?;
        Random::new(job.seed).fill(buffer.as_mut_slice());
        let window = CompletionWindow::open(clock::monotonic_ns(), job.duration_ns);
        Ok(Self {
            job,
            order: job.order(0),
            buffer,
            slot_bytes,
            started_ns: vec![0; job.depth],
            in_flight: 0,
            submissions: 0,
            window,
        })
    }

    fn measure(&mut self, ring: &mut IoUring) -> Result<()> {
        for slot in 0..self.job.depth {
            self.submit(ring, slot, clock::monotonic_ns())?;
        }
        // When the time is over nothing new starts, but what is under way still counts: leaving it
        // out would leave out just the operations that take long.
        let mut over = false;
        while self.in_flight > 0 {
            self.job.scratch.session.check()?;
            let Some(done) = ring.completion().next() else {
                self.enter(ring, 0, 1)?;
                continue;
            };
            let now_ns = clock::monotonic_ns();
            self.in_flight -= 1;
            let slot = done.user_data() as usize;
            match usize::try_from(done.result()) {
                Ok(bytes) if bytes == self.job.record_bytes => {}
                Ok(bytes) => return Err(self.job.short(bytes)),
                Err(_) => return Err(self.job.failed(-done.result())),
            }
            over |= !self.window.completed(now_ns, now_ns - self.started_ns[slot]);
            if !over {
                self.submit(ring, slot, now_ns)?;
            }
        }
        Ok(())
    }

    /// Starts the next operation in `slot`; its latency counts from `now_ns`.
    fn submit(&mut self, ring: &mut IoUring, slot: usize, now_ns: u64) -> Result<()> {
        let record = self.order.next(self.job.records);
        let entry = self.entry(slot, record);
        self.started_ns[slot] = now_ns;
        self.submissions += 1;
        // SAFETY: the slot's part of the buffer is free until its completion is seen, and the queue
        // is drained before the buffer goes away.
        unsafe { ring.submission().push(&entry) }.expect("the ring has an entry for each slot");
        self.in_flight += 1;
        self.enter(ring, 1, 0)
    }

    fn entry(&mut self, slot: usize, record: u64) -> squeue::Entry {
        let job = self.job;
        let fd = types::Fd(job.scratch.file.as_raw_fd());
        // SAFETY: slots lie inside the mapping.
        let data = unsafe { self.buffer.as_ptr().add(slot * self.slot_bytes) };
        let length = u32::try_from(job.record_bytes).expect("the spec bounds the record");
        let at = record * u64::from(length);
        let entry = if job.write {
            // SAFETY: this slot's part of the buffer, with nothing in flight on it.
            let bytes = unsafe { std::slice::from_raw_parts_mut(data, job.record_bytes) };
            pattern::stamp(bytes, job.seed ^ (self.submissions << 20) ^ record);
            opcode::Write::new(fd, data, length).offset(at).build()
        } else {
            opcode::Read::new(fd, data, length).offset(at).build()
        };
        entry.user_data(slot as u64)
    }

    /// Hands `submit` entries to the kernel and waits for `wait` completions. A signal may end the
    /// wait early; the caller's loop comes round.
    fn enter(&self, ring: &IoUring, submit: u32, wait: u32) -> Result<()> {
        let flags = EnterFlags::GETEVENTS.bits();
        // SAFETY: no argument is passed, the entries are valid.
        let entered =
            || unsafe { ring.submitter().enter::<libc::sigset_t>(submit, wait, flags, None) };
        loop {
            match entered() {
                Ok(_) => return Ok(()),
                Err(error) => match error.raw_os_error() {
                    Some(libc::EINTR) if submit == 0 => return Ok(()),
                    // Short of kernel memory for the moment, or interrupted: nothing was taken.
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => {
                        self.job.scratch.session.check()?
                    }
                    _ => return Err(self.job.scratch.named("Submitting to io_uring", &error)),
                },
            }
        }
    }

    /// Waits until nothing is in flight, since the kernel writes into buffers of the caller until
    /// then; the trial's deadline bounds it.
    fn drain(&mut self, ring: &mut IoUring) {
        while self.in_flight > 0 {
            self.in_flight -= ring.completion().count().min(self.in_flight);
            if self.in_flight > 0 {
                // An entry that was never taken would be waited for, so it goes along.
                let waiting = ring.submission().len() as u32;
                // SAFETY: no argument is passed, the entries are valid.
                let entered = unsafe {
                    let flags = EnterFlags::GETEVENTS.bits();
                    ring.submitter().enter::<libc::sigset_t>(waiting, 1, flags, None)
                };
                let fatal = |error: &Error| {
                    !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY))
                };
                if entered.is_err_and(|error| fatal(&error)) {
                    // Completions still come, without being asked for.
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
    }
}
