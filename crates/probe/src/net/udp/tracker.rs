//! Which datagrams have been seen: duplicates and disorder, by their numbers. Pure.

/// Numbers so far behind the highest are not told apart from each other any more.
const WINDOW: u64 = 1 << 20;

#[derive(Debug)]
pub struct Tracker {
    bits: Vec<u64>,
    /// One more than the highest number seen.
    next: u64,
    /// Different numbers seen.
    pub unique: u64,
    /// Datagrams whose number had been seen before.
    pub duplicates: u64,
    /// Datagrams that came after one with a higher number (RFC 4737).
    pub reordered: u64,
}

impl Tracker {
    pub fn new() -> Self {
        let bits = vec![0; (WINDOW / 64) as usize];
        Self { bits, next: 0, unique: 0, duplicates: 0, reordered: 0 }
    }

    /// Takes note of a datagram; whether it is seen for the first time.
    #[inline]
    pub fn see(&mut self, sequence: u64) -> bool {
        if sequence >= self.next {
            if sequence - self.next >= WINDOW {
                self.bits.fill(0);
            } else {
                (self.next..sequence).for_each(|skipped| self.set(skipped, false));
            }
            self.set(sequence, true);
            self.next = sequence + 1;
            self.unique += 1;
            return true;
        }
        if self.next - sequence > WINDOW || self.get(sequence) {
            self.duplicates += 1;
            return false;
        }
        self.set(sequence, true);
        self.unique += 1;
        self.reordered += 1;
        true
    }

    fn get(&self, sequence: u64) -> bool {
        let at = sequence % WINDOW;
        self.bits[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    fn set(&mut self, sequence: u64, is_received: bool) {
        let at = sequence % WINDOW;
        let word = &mut self.bits[(at / 64) as usize];
        *word = *word & !(1 << (at % 64)) | u64::from(is_received) << (at % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts_after(sequences: &[u64]) -> (u64, u64, u64) {
        let mut tracker = Tracker::new();
        for sequence in sequences {
            tracker.see(*sequence);
        }
        (tracker.unique, tracker.duplicates, tracker.reordered)
    }

    #[test]
    fn loss_duplicates_and_disorder_are_distinguished() {
        assert_eq!(counts_after(&[0, 1, 2, 3]), (4, 0, 0));
        assert_eq!(counts_after(&[0, 3, 3, 4]), (3, 1, 0));
        assert_eq!(counts_after(&[0, 2, 1, 3]), (4, 0, 1));
        assert_eq!(counts_after(&[1, 0, 0, 1]), (2, 2, 1));
        assert_eq!(counts_after(&[5, 4, 3]), (3, 0, 2));
    }

    #[test]
    fn old_marks_do_not_count_for_new_numbers() {
        assert_eq!(counts_after(&[0, WINDOW, WINDOW - 1, 1]), (4, 0, 2));
        assert_eq!(counts_after(&[0, 5 * WINDOW + 3, 5 * WINDOW]), (3, 0, 1));
        // Beyond the window a number may have been seen: it is not counted as new.
        assert_eq!(counts_after(&[0, 2 * WINDOW, 1]), (2, 1, 0));
    }
}
