//! When a thread begins its next piece of work, so that it keeps a set rate. Pure: the clock is an
//! argument.
use super::duty_cycle::CycleStep;

/// An even beat. What was late is made up for as far as `patience_ns` back; what lies further back is
/// lost: a load that was held up shows less then instead of a burst afterwards.
#[derive(Clone, Copy, Debug)]
pub struct Pacer {
    start_ns: u64,
    /// Beats since `start_ns`.
    beats: u64,
    every_ns: f64,
    patience_ns: u64,
}

impl Pacer {
    /// `per_s` beats a second from `start_ns` on; 0 never beats.
    pub fn begin(per_s: f64, patience_ns: u64, start_ns: u64) -> Self {
        Self { start_ns, beats: 0, every_ns: 1e9 / per_s, patience_ns }
    }

    /// What to do at `now_ns`. Each time that it says work, one piece is to be done.
    pub fn next(&mut self, now_ns: u64) -> CycleStep {
        if self.every_ns.is_infinite() {
            return CycleStep::SleepUntil(u64::MAX);
        }
        let due_ns = self.start_ns + (self.beats as f64 * self.every_ns) as u64;
        if now_ns < due_ns {
            return CycleStep::SleepUntil(due_ns);
        }
        if now_ns - due_ns > self.patience_ns {
            self.start_ns += now_ns - due_ns - self.patience_ns;
        }
        self.beats += 1;
        CycleStep::Work
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces done in two seconds, of which each takes `takes_ns`.
    fn done(per_s: f64, takes_ns: u64) -> u64 {
        let mut pacer = Pacer::begin(per_s, 100_000_000, 5_000);
        let (mut now_ns, mut done) = (5_000, 0);
        while now_ns < 2_000_005_000 {
            match pacer.next(now_ns) {
                CycleStep::Work => {
                    done += 1;
                    now_ns += takes_ns;
                }
                CycleStep::SleepUntil(at_ns) => now_ns = at_ns.saturating_add(60_000),
            }
        }
        done
    }

    #[test]
    fn the_rate_is_what_was_set_or_what_there_is() {
        assert_eq!(done(100.0, 1_000_000), 200);
        assert_eq!(done(3.0, 1_000), 6);
        // Sleeps end 60 µs late: a train of 30 000 a second still goes through, but for its end.
        assert!(done(30_000.0, 1_000).abs_diff(60_000) < 5);
        assert_eq!(done(1000.0, 10_000_000), 200);
        assert_eq!(done(0.0, 1), 0);
    }

    #[test]
    fn what_was_long_ago_is_lost() {
        let mut pacer = Pacer::begin(1000.0, 5_000_000, 0);
        assert_eq!(pacer.next(0), CycleStep::Work);
        // A second without the CPU: five beats are made up for, and the one that is due now.
        let count = (0..).take_while(|_| pacer.next(1_000_000_000) == CycleStep::Work).count();
        assert_eq!(count, 6);
        assert_eq!(pacer.next(1_000_000_000), CycleStep::SleepUntil(1_001_000_000));
    }
}
