//! Scheduling policies and priorities of threads: `SCHED_DEADLINE`, real time, idle, niceness (sched(7)).
use crate::call::outcome;
use std::io;

const SCHED_DEADLINE: u32 = 6;
const RESET_ON_FORK: u64 = 1;

/// `struct sched_attr` of the kernel, version 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

impl Attributes {
    /// A reservation of `slice_ns` in each `period_ns`; threads that it makes begin without.
    pub fn reserved(slice_ns: u64, period_ns: u64) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            policy: SCHED_DEADLINE,
            flags: RESET_ON_FORK,
            runtime_ns: slice_ns,
            deadline_ns: period_ns,
            period_ns,
            ..Self::default()
        }
    }

    /// No reservation: what every thread begins with.
    pub fn ordinary() -> Self {
        Self { size: size_of::<Self>() as u32, ..Self::default() }
    }

    /// Gives them to a thread, 0 for the own one.
    pub fn set(&self, thread: i32) -> io::Result<()> {
        // SAFETY: hands the kernel a struct of the size that it names.
        outcome(unsafe {
            libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(self), 0)
        })
    }

    /// Those of a thread, 0 for the own one; none when it has ended.
    pub fn of(thread: i32) -> Option<Self> {
        let mut attributes = Self::default();
        // SAFETY: the kernel writes at most the size that is named.
        let rc = unsafe {
            let size = size_of::<Self>();
            libc::syscall(
                libc::SYS_sched_getattr,
                thread,
                std::ptr::from_mut(&mut attributes),
                size,
                0,
            )
        };
        (rc == 0).then_some(attributes)
    }

    /// Whether it is a reservation, of this slice.
    pub fn is_slice_of(&self, wanted: &Self) -> bool {
        self.policy == SCHED_DEADLINE && self.runtime_ns == wanted.runtime_ns
    }

    /// CPUs that it takes: 0.75 is three quarters of one.
    pub fn cpus(&self) -> f64 {
        if self.policy != SCHED_DEADLINE || self.period_ns == 0 {
            return 0.0;
        }
        self.runtime_ns as f64 / self.period_ns as f64
    }
}

/// Returns whether the calling thread is under a reservation now.
pub fn is_reserved() -> bool {
    Attributes::of(0).is_some_and(|attributes| attributes.policy == SCHED_DEADLINE)
}

/// Returns whether children of the calling thread begin under the ordinary policy, whatever its own.
pub fn children_are_ordinary() -> bool {
    Attributes::of(0).is_some_and(|own| own.flags & RESET_ON_FORK != 0)
}

/// Gives the calling thread the ordinary policy; its reservation then is free for others.
pub fn leave_reservation() -> io::Result<()> {
    set_policy(libc::SCHED_OTHER, 0)
}

/// Lets the calling thread, and those that it starts, run only while nothing else wants the CPU.
pub fn run_only_when_idle() -> io::Result<()> {
    set_policy(libc::SCHED_IDLE, 0)
}

/// Lets timers of the calling thread fire as early as they can: by default up to 50 µs late.
pub fn minimise_timer_slack() {
    // SAFETY: sets a property of the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Sets the niceness of this process, from -20 to 19.
pub fn set_niceness(nice: i32) -> io::Result<()> {
    // SAFETY: a plain system call on our own process; the type of the first argument differs between C
    // libraries.
    outcome(unsafe { libc::setpriority(libc::PRIO_PROCESS as _, 0, nice) })
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    // SAFETY: hands a plain structure to the kernel. The C library's wrapper is a stub in musl.
    outcome(unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters)
    })
}

/// Raises the priority of the calling thread as far as the machine lets it: real-time where that is
/// wanted and allowed, else the best niceness. Returns what it has now, in words.
///
/// The lowest real-time priority is above every ordinary program and below the kernel's own
/// real-time threads.
pub fn raise_priority(realtime: bool) -> String {
    // A timer may not be put off to save power; SCHED_FIFO has no slack in any case.
    minimise_timer_slack();
    let mut reason = String::new();
    if realtime {
        match set_policy(libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, 1) {
            Ok(()) => return "real-time".to_owned(),
            Err(error) => reason = format!(" (real-time refused: {error})"),
        }
    }
    let kind = if set_niceness(-20).is_ok() { "niceness -20" } else { "ordinary" };
    format!("{kind}{reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_struct_is_the_kernels() {
        assert_eq!(size_of::<Attributes>(), 48);
        let own = Attributes::of(0).expect("every thread has attributes");
        assert_eq!(own.cpus(), 0.0);
        assert_eq!(Attributes::reserved(30, 40).cpus(), 0.75);
    }

    #[test]
    fn a_thread_that_runs_only_when_idle_has_that_policy() {
        let policy = std::thread::spawn(|| {
            run_only_when_idle().unwrap();
            // SAFETY: asks for the policy of the calling thread.
            unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
        });
        assert_eq!(policy.join().unwrap(), i64::from(libc::SCHED_IDLE));
    }
}
