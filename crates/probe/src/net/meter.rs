//! Bytes of a stream and the time that they took, at the receiver.
use crate::error::{FailureKind, ProbeError, Result};

/// Counts the bytes of one stream: all of them, and those between the read that ends the warm-up
/// and the first read after the time is over.
#[derive(Debug)]
pub struct ByteMeter {
    warm_until_ns: u64,
    duration_ns: u64,
    first_ns: u64,
    last_ns: u64,
    counted_bytes: u64,
    pub total_bytes: u64,
}

impl ByteMeter {
    /// Counts for `duration_ns` (0: to the end) after a warm-up until `warm_until_ns`.
    pub fn open(warm_until_ns: u64, duration_ns: u64) -> Self {
        Self {
            warm_until_ns,
            duration_ns: if duration_ns == 0 { u64::MAX / 2 } else { duration_ns },
            first_ns: 0,
            last_ns: 0,
            counted_bytes: 0,
            total_bytes: 0,
        }
    }

    /// Moves the end of the warm-up. Nothing may have been counted yet.
    pub fn warm_until(&mut self, warm_until_ns: u64) {
        debug_assert!(self.first_ns == 0);
        self.warm_until_ns = warm_until_ns;
    }

    /// False when the time is over.
    #[inline]
    pub fn received(&mut self, now_ns: u64, bytes: u64) -> bool {
        self.total_bytes += bytes;
        if self.first_ns == 0 {
            if now_ns >= self.warm_until_ns {
                self.first_ns = now_ns;
            }
            return true;
        }
        if self.last_ns < self.first_ns + self.duration_ns {
            self.counted_bytes += bytes;
            self.last_ns = now_ns;
        }
        now_ns - self.first_ns < self.duration_ns
    }

    /// Returns whether the warm-up is over.
    #[inline]
    pub fn is_warm(&self) -> bool {
        self.first_ns > 0
    }

    /// Returns the time counted.
    pub fn elapsed_ns(&self) -> u64 {
        self.last_ns.saturating_sub(self.first_ns)
    }

    /// Bytes counted over the time counted.
    pub fn bytes_per_s(&self) -> Result<f64> {
        let elapsed_ns = self.elapsed_ns();
        if self.first_ns == 0 || self.counted_bytes == 0 || elapsed_ns == 0 {
            return Err(ProbeError::new(
                FailureKind::Failed,
                "too_short",
                "A stream carried nothing while it was counted.",
                "Set a longer `duration_ns`, more `transfer_bytes`, or fewer `streams`.",
            ));
        }
        Ok(self.counted_bytes as f64 * 1e9 / elapsed_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_counts_what_lies_between_its_ends() {
        let mut meter = ByteMeter::open(100, 1000);
        // Reads of 10 bytes every 50 ns from time 50 on; warm until 100, counted until 1100.
        let mut now_ns = 50;
        while meter.received(now_ns, 10) {
            now_ns += 50;
        }
        assert!(!meter.received(now_ns + 50, 10));
        assert_eq!((meter.first_ns, meter.last_ns), (100, 1100));
        assert_eq!((meter.counted_bytes, meter.total_bytes), (200, 230));
        assert!((meter.bytes_per_s().unwrap() - 0.2e9).abs() < 1e-3);
    }

    #[test]
    fn nothing_received_is_an_error_and_not_a_zero() {
        assert_eq!(ByteMeter::open(0, 1).bytes_per_s().unwrap_err().name, "too_short");
    }

    #[test]
    fn without_an_end_all_after_the_warm_up_counts() {
        let mut meter = ByteMeter::open(0, 0);
        for time_ms in 1..=1001 {
            assert!(meter.received(time_ms * 1_000_000, 5));
        }
        assert_eq!(meter.counted_bytes, 5000);
        assert!((meter.bytes_per_s().unwrap() - 5000.0).abs() < 1e-6);
    }
}
