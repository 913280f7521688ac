//! Being there in time: real-time priority where it is given, else the best niceness.
use std::io;

/// Raises this thread's priority as far as the machine lets it; what it has now, in words.
///
/// The lowest real-time priority is above every ordinary program and below the kernel's own
/// real-time threads.
pub fn raise(realtime: bool) -> String {
    // SAFETY: plain system calls on the own thread.
    unsafe {
        // A timer may not be put off to save power; SCHED_FIFO has no slack in any case.
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        let mut param: libc::sched_param = std::mem::zeroed();
        param.sched_priority = 1;
        if realtime {
            let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
            // Through the kernel's own number: one C library refuses the call.
            if libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const param) == 0 {
                return "real-time".to_owned();
            }
        }
        let refused = io::Error::last_os_error();
        let nice = libc::setpriority(libc::PRIO_PROCESS as _, 0, -20) == 0;
        let why = if realtime { format!(" (real-time refused: {refused})") } else { String::new() };
        if nice {
            format!("niceness -20{why}")
        } else {
            format!("ordinary{why}")
        }
    }
}
