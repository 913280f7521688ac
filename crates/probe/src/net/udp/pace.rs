//! When each datagram is due: fixed before the first is sent, so that a slow answer cannot delay the
//! question that follows it. Pure.

#[derive(Clone, Copy, Debug)]
pub struct Pace {
    start_ns: u64,
    per_s: f64,
}

impl Pace {
    /// `per_s` datagrams a second from `start_ns` on.
    pub fn new(start_ns: u64, per_s: f64) -> Self {
        Self { start_ns, per_s }
    }

    #[inline]
    pub fn due_ns(&self, sequence: u64) -> u64 {
        // Exact to a nanosecond for a hundred days.
        self.start_ns + (sequence as f64 * 1e9 / self.per_s) as u64
    }

    /// How many are due at `now_ns`.
    #[inline]
    pub fn due_by(&self, now_ns: u64) -> u64 {
        let Some(passed_ns) = now_ns.checked_sub(self.start_ns) else { return 0 };
        let mut due = (passed_ns as f64 * self.per_s / 1e9) as u64;
        // Rounding may be off by one, in both directions.
        while due > 0 && self.due_ns(due - 1) > now_ns {
            due -= 1;
        }
        while self.due_ns(due) <= now_ns {
            due += 1;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_agree() {
        for per_s in [0.1, 1.0, 3.0, 100.0, 44_100.0, 1e6] {
            let pace = Pace::new(12_345, per_s);
            assert_eq!(pace.due_by(12_344), 0);
            for sequence in [0, 1, 2, 999, 1_000_003] {
                let due_ns = pace.due_ns(sequence);
                assert_eq!(pace.due_by(due_ns), sequence + 1, "{per_s} {sequence}");
                if sequence > 0 {
                    assert_eq!(pace.due_by(due_ns - 1), sequence, "{per_s} {sequence}");
                }
            }
        }
    }

    #[test]
    fn errors_do_not_add_up() {
        assert_eq!(Pace::new(0, 3.0).due_ns(3_000_000), 1_000_000_000_000_000);
    }
}
