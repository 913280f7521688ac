//! One thread's records, moved one at a time by `pread` and `pwrite`.
use super::job::DiskJob;
use super::pattern::{self, RecordOrder};
use crate::error::Result;
use crate::memory::buffer::{Buffer, Pages};
use crate::trial::session::Session;
use nephoscope_wire::random::Random;
use std::io::Error;
use std::os::fd::AsRawFd;

/// One operation in flight: everything it touches is made before the time runs.
pub struct Mover<'a> {
    job: &'a DiskJob<'a>,
    order: RecordOrder<'a>,
    buffer: Buffer,
    moves: u64,
}

impl<'a> Mover<'a> {
    /// The `number`th worker of a job.
    pub fn new(job: &'a DiskJob<'a>, number: u64) -> Result<Self> {
        Self::along(job, number, job.order(number))
    }

    /// The same, with an order of its own.
    pub fn along(job: &'a DiskJob<'a>, number: u64, order: RecordOrder<'a>) -> Result<Self> {
        let mut buffer = Buffer::map(job.record_bytes, Pages::Default)?;
        Random::new(job.seed ^ number).fill(buffer.as_mut_slice());
        Ok(Self { job, order, buffer, moves: 0 })
    }

    pub fn session(&self) -> Session {
        self.job.scratch.session
    }

    /// Moves the next record, through interruptions; where in the file it lies.
    pub fn move_next(&mut self) -> Result<u64> {
        let (job, length) = (self.job, self.job.record_bytes);
        let fd = job.scratch.file.as_raw_fd();
        let record = self.order.next(job.records);
        let at = record * length as u64;
        if job.write {
            let data = &mut self.buffer.as_mut_slice()[..length];
            pattern::stamp(data, job.seed ^ (self.moves << 20) ^ record);
            self.moves += 1;
        }
        loop {
            // SAFETY: the buffer is at least `length` bytes long, the descriptor is open.
            let done = unsafe {
                let data = self.buffer.as_ptr().cast::<libc::c_void>();
                if job.write {
                    libc::pwrite(fd, data, length, at.cast_signed())
                } else {
                    libc::pread(fd, data, length, at.cast_signed())
                }
            };
            match usize::try_from(done) {
                Ok(done) if done == length => return Ok(at),
                Ok(done) => return Err(job.short(done)),
                Err(_) => {
                    let errno = Error::last_os_error().raw_os_error().unwrap_or(0);
                    if errno != libc::EINTR {
                        return Err(job.failed(errno));
                    }
                    job.scratch.session.check()?;
                }
            }
        }
    }
}
