//! Reservations of Linux (`SCHED_DEADLINE`): the earliest deadlines run, and a virtual CPU that has used
//! up its slice waits for its next period.
//!
//! Exhaustion is noticed at a tick; what was used beyond the slice is taken from the next period.
//!
//! Source: Abeni and Buttazzo, "Integrating multimedia applications in hard real-time systems"
//! (1998), the constant bandwidth server, and Linux up to 6.18 without reclaiming.
use super::super::host::Reservation;
use crate::Nanos;

#[derive(Clone, Debug)]
pub struct DeadlineServer {
    reservation: Reservation,
    runtime: i64,
    /// End of the current period.
    pub deadline: Nanos,
    /// It has used up its slice and waits for the deadline.
    pub is_throttled: bool,
    pub is_runnable: bool,
    /// The processor on which it runs.
    pub processor: Option<usize>,
    /// The processor on which it ran last.
    pub last_processor: usize,
}

impl DeadlineServer {
    /// Returns a server that is throttled until its first period starts.
    pub fn new(reservation: Reservation, home: usize) -> Self {
        Self {
            reservation,
            runtime: 0,
            deadline: reservation.phase_ns,
            is_throttled: true,
            is_runnable: false,
            processor: None,
            last_processor: home,
        }
    }

    /// Returns whether it waits for a processor.
    pub fn is_waiting(&self) -> bool {
        self.is_runnable && !self.is_throttled && self.processor.is_none()
    }

    /// Accounts for a run. Returns whether the slice is used up.
    pub fn charge(&mut self, ran: Nanos) -> bool {
        self.runtime -= ran as i64;
        self.runtime <= 0
    }

    /// Throttles it if its slice is used up. Returns until when; None if it may continue.
    pub fn throttle_until(&mut self, now: Nanos) -> Option<Nanos> {
        if self.runtime > 0 {
            return None;
        }
        self.is_throttled = true;
        if self.deadline <= now {
            self.replenish(now);
            return None;
        }
        Some(self.deadline)
    }

    /// Starts the next period; a server that was not served for whole periods starts afresh.
    pub fn replenish(&mut self, now: Nanos) {
        while self.runtime <= 0 {
            self.deadline += self.reservation.period_ns;
            self.runtime += self.reservation.slice_ns as i64;
        }
        if self.deadline < now {
            self.start_period(now);
        }
        self.is_throttled = false;
    }

    /// Makes it runnable. The remaining runtime is valid until the deadline only if it is no more than
    /// the reserved share of the time until then; else a new period starts.
    pub fn wake(&mut self, now: Nanos) {
        self.is_runnable = true;
        if self.is_throttled {
            return;
        }
        let Reservation { slice_ns, period_ns, .. } = self.reservation;
        let until = i128::from(self.deadline) - i128::from(now);
        let overflows =
            i128::from(self.runtime) * i128::from(period_ns) > until * i128::from(slice_ns);
        if until <= 0 || overflows {
            self.start_period(now);
        }
    }

    fn start_period(&mut self, now: Nanos) {
        self.deadline = now + self.reservation.period_ns;
        self.runtime = self.reservation.slice_ns as i64;
    }
}
