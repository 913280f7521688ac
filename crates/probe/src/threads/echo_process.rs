//! A process at the other end of two pipes: each byte that it sends back costs two context switches
//! where both share a CPU.
use crate::error::{ProbeError, Result};
use crate::trial::session::Session;
use nephoscope_linux::signals::on_end_of_parent;
use std::io::{Error, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};

/// Reads or writes one byte past the C library, which may look for a cancelled thread around its own
/// calls.
#[inline]
pub fn transfer_byte(call: libc::c_long, fd: RawFd, byte: &mut u8) -> bool {
    // SAFETY: one byte of our own.
    unsafe { libc::syscall(call, fd, std::ptr::from_mut(byte), 1usize) == 1 }
}

/// Another process, which sends every byte back. Its CPU is the one of its owner.
pub struct EchoProcess {
    session: Session,
    child: libc::pid_t,
    /// Where its answers come from, and where it reads.
    answers: PipeReader,
    questions: PipeWriter,
}

impl EchoProcess {
    /// Starts it; it has answered once when this returns.
    pub fn start(session: Session) -> Result<Self> {
        let pipe = || std::io::pipe().map_err(|error| ProbeError::os("A pipe", &error));
        let ((its_end, questions), (answers, its_answers)) = (pipe()?, pipe()?);
        let (reader, writer) = (its_end.as_raw_fd(), its_answers.as_raw_fd());
        // SAFETY: the child makes only calls that are safe after a fork, on its own byte, and ends
        // when the pipe is closed or its owner has ended.
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                let _ = on_end_of_parent(libc::SIGKILL);
                libc::close(questions.as_raw_fd());
                let mut byte = 0;
                while transfer_byte(libc::SYS_read, reader, &mut byte)
                    && transfer_byte(libc::SYS_write, writer, &mut byte)
                {}
                libc::_exit(0);
            }
            child
        };
        if child < 0 {
            return Err(ProbeError::os("A new process", &Error::last_os_error()));
        }
        let echo = Self { session, child, answers, questions };
        echo.round_trip()?;
        Ok(echo)
    }

    /// A byte there and back.
    #[inline]
    pub fn round_trip(&self) -> Result<()> {
        let mut byte = 0;
        let (reader, writer) = (self.answers.as_raw_fd(), self.questions.as_raw_fd());
        if transfer_byte(libc::SYS_write, writer, &mut byte)
            && transfer_byte(libc::SYS_read, reader, &mut byte)
        {
            return Ok(());
        }
        let error = Error::last_os_error();
        self.session.check()?;
        Err(ProbeError::os("The other process", &error))
    }
}

impl Drop for EchoProcess {
    fn drop(&mut self) {
        // SAFETY: our own child, which has not been waited for.
        unsafe {
            libc::kill(self.child, libc::SIGKILL);
            libc::waitpid(self.child, std::ptr::null_mut(), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_process_answers_and_ends_with_its_owner() {
        let echo = EchoProcess::start(Session::detached()).unwrap();
        for _ in 0..100 {
            echo.round_trip().unwrap();
        }
        let child = echo.child;
        drop(echo);
        // SAFETY: asks whether a process exists.
        assert_eq!(unsafe { libc::kill(child, 0) }, -1);
    }
}
