//! Reservations of Linux (`SCHED_DEADLINE`): the earliest deadline runs, on as many processors as
//! there are, and one that has used up its slice waits for its next period.
//!
//! That it is used up shows at a tick; what was used beyond it is taken from the next period.
//!
//! Source: Abeni and Buttazzo, "Integrating multimedia applications in hard real-time systems"
//! (1998), the constant bandwidth server, and Linux up to 6.18 without reclaiming.
use crate::Nanos;

/// Time of a virtual CPU in each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Time in each period.
    pub slice_ns: Nanos,
    /// The period.
    pub period_ns: Nanos,
    /// When the first period begins.
    pub phase_ns: Nanos,
}

/// A reservation under way.
#[derive(Clone, Debug)]
pub struct Server {
    reservation: Reservation,
    left: i64,
    /// End of the present period.
    pub deadline: Nanos,
    /// It has used up its slice and waits for the deadline.
    pub stopped: bool,
    /// Whether there is something to do.
    pub wants: bool,
    /// The processor on which it runs.
    pub on: Option<usize>,
    /// The processor on which it ran last.
    pub last: usize,
}

impl Server {
    /// It begins with its phase, stopped until then.
    pub fn new(reservation: Reservation, home: usize) -> Self {
        let deadline = reservation.phase_ns;
        Self { reservation, left: 0, deadline, stopped: true, wants: false, on: None, last: home }
    }

    /// Whether it waits for a processor.
    pub fn waits(&self) -> bool {
        self.wants && !self.stopped && self.on.is_none()
    }

    /// It ran. Whether it has used up its slice.
    pub fn ran(&mut self, length: Nanos) -> bool {
        self.left -= length as i64;
        self.left <= 0
    }

    /// If it has used up its slice: stops it until its period ends. Returns when that is; None when
    /// it may go on.
    pub fn stops_until(&mut self, now: Nanos) -> Option<Nanos> {
        if self.left > 0 {
            return None;
        }
        self.stopped = true;
        if self.deadline <= now {
            self.replenish(now);
            return None;
        }
        Some(self.deadline)
    }

    /// Its next period begins; one that has not been served for whole periods begins anew.
    pub fn replenish(&mut self, now: Nanos) {
        while self.left <= 0 {
            self.deadline += self.reservation.period_ns;
            self.left += self.reservation.slice_ns as i64;
        }
        if self.deadline < now {
            self.begin(now);
        }
        self.stopped = false;
    }

    /// It has something to do. What is left is good until the deadline only if that is no more than
    /// its share of the time until then; else a new period begins.
    pub fn wakes(&mut self, now: Nanos) {
        self.wants = true;
        if self.stopped {
            return;
        }
        let Reservation { slice_ns, period_ns, .. } = self.reservation;
        let until = i128::from(self.deadline) - i128::from(now);
        let too_much = i128::from(self.left) * i128::from(period_ns) > until * i128::from(slice_ns);
        if until <= 0 || too_much {
            self.begin(now);
        }
    }

    fn begin(&mut self, now: Nanos) {
        self.deadline = now + self.reservation.period_ns;
        self.left = self.reservation.slice_ns as i64;
    }
}
