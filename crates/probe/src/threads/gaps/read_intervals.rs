//! Lengths of the looks that are no gaps, counted in a few instructions each.

/// Eight buckets to an octave.
const SLOTS: usize = 512;

/// A coarse histogram of ticks: eight buckets to an octave, the extremes exact.
pub struct ReadIntervals {
    slots: Box<[u64; SLOTS]>,
    shortest: u64,
    longest: u64,
}

impl Default for ReadIntervals {
    fn default() -> Self {
        // Not zero, so that the pages are written; `clear` follows the rehearsal.
        let mut read_intervals = Self { slots: Box::new([1; SLOTS]), shortest: 0, longest: 0 };
        read_intervals.clear();
        read_intervals
    }
}

impl ReadIntervals {
    #[inline(always)]
    pub fn count(&mut self, length: u64) {
        self.slots[slot(length)] += 1;
        if length < self.shortest {
            self.shortest = length;
        }
        if length > self.longest {
            self.longest = length;
        }
    }

    pub fn clear(&mut self) {
        self.slots.fill(0);
        (self.shortest, self.longest) = (u64::MAX, 0);
    }

    pub fn total(&self) -> u64 {
        self.slots.iter().sum()
    }

    pub fn shortest(&self) -> Option<u64> {
        (self.shortest != u64::MAX).then_some(self.shortest)
    }

    /// The longest look; 0 when there was none.
    pub fn longest(&self) -> u64 {
        self.longest
    }

    /// Upper edge of the bucket that holds the quantile: at most an eighth too high.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        let total = self.total();
        let wanted = (total as f64 * quantile).ceil() as u64;
        let mut reached = 0;
        let holds = |(_, count): &(usize, &u64)| {
            reached += **count;
            reached >= wanted
        };
        let at = self.slots.iter().enumerate().find(holds).map(|(at, _)| at);
        at.filter(|_| total > 0).map(|at| slot_end(at).min(self.longest))
    }
}

/// The bucket of a length: its octave, and the three bits below the leading one.
#[inline(always)]
fn slot(length: u64) -> usize {
    let length = length.max(8);
    let octave = 60 - length.leading_zeros();
    (((octave as usize) << 3) | ((length >> octave) & 7) as usize) & (SLOTS - 1)
}

/// Largest length that falls into a bucket.
fn slot_end(slot: usize) -> u64 {
    (((slot as u64 & 7) | 8) << (slot >> 3)) + ((1 << (slot >> 3)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_look_falls_into_the_bucket_that_ends_at_or_after_it() {
        for length in (0..5000u64).chain([1 << 20, 123_456_789, 1 << 50, (1 << 60) - 1]) {
            let end = slot_end(slot(length));
            assert!(end >= length, "{length} > {end}");
            assert!(length < 8 || end as f64 <= length as f64 * 1.125, "{length}: {end}");
        }
    }

    #[test]
    fn the_quantile_is_the_edge_of_its_bucket() {
        let mut intervals = ReadIntervals::default();
        assert_eq!((intervals.quantile(0.999), intervals.shortest()), (None, None));
        for _ in 0..999 {
            intervals.count(50);
        }
        intervals.count(5000);
        assert_eq!(intervals.quantile(0.999), Some(slot_end(slot(50))));
        intervals.count(5000);
        assert_eq!(intervals.quantile(0.999), Some(5000));
        assert_eq!(
            (intervals.shortest(), intervals.longest(), intervals.total()),
            (Some(50), 5000, 1001)
        );
    }
}
