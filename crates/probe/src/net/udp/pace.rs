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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_do_not_add_up() {
        assert_eq!(Pace::new(0, 3.0).due_ns(3_000_000), 1_000_000_000_000_000);
    }
}
