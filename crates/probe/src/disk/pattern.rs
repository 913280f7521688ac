//! Which record comes next, and what makes each write new.
use nephoscope_wire::random::Random;
use std::sync::atomic::{AtomicU64, Ordering};

/// The order in which the records of a file are visited.
#[derive(Debug)]
pub enum RecordOrder<'a> {
    /// One after the other, from the start again after the last; all threads share the counter.
    Sequential(&'a AtomicU64),
    /// Each time any record with the same probability.
    Random(Random),
    /// As a list says, once.
    Listed(std::slice::Iter<'a, u32>),
}

impl RecordOrder<'_> {
    /// The record to visit next, out of `records`.
    #[inline]
    pub fn next(&mut self, records: u64) -> u64 {
        match self {
            Self::Sequential(counter) => counter.fetch_add(1, Ordering::Relaxed) % records,
            Self::Random(random) => random.below(records),
            Self::Listed(list) => list.next().map_or(0, |record| u64::from(*record)),
        }
    }
}

/// Smallest unit in which disks and their compression look at data.
const SECTOR: usize = 512;

/// Makes every sector of `record` new, so that a device which recognises data it already holds has
/// nothing to recognise.
#[inline]
pub fn stamp(record: &mut [u8], mark: u64) {
    let marks = mark.to_le_bytes();
    for sector in record.chunks_mut(SECTOR) {
        if let Some(head) = sector.first_chunk_mut() {
            *head = marks;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequential_order_visits_each_record_once_a_turn() {
        let counter = AtomicU64::new(0);
        let (mut first, mut second) =
            (RecordOrder::Sequential(&counter), RecordOrder::Sequential(&counter));
        let seen: Vec<u64> = (0..3).flat_map(|_| [first.next(4), second.next(4)]).collect();
        assert_eq!(seen, [0, 1, 2, 3, 0, 1]);
    }

    #[test]
    fn a_stamp_changes_every_sector_and_nothing_else() {
        let mut record = vec![7u8; 3 * SECTOR];
        stamp(&mut record, u64::MAX);
        let changed = record.iter().filter(|byte| **byte != 7).count();
        assert_eq!(changed, 3 * 8);
        assert!(record.chunks(SECTOR).all(|sector| sector[..8] == [255; 8]));
    }
}
