//! How long a thread has had something under way, as others see it while it goes on.
use std::sync::atomic::{AtomicU64, Ordering};

/// Time of pieces of work, with the one that is under way. Written by one thread alone.
#[derive(Debug, Default)]
pub struct Busy {
    done_ns: AtomicU64,
    /// When the piece that is under way began; 0 between pieces.
    began_ns: AtomicU64,
}

impl Busy {
    #[inline]
    pub fn begin(&self, now_ns: u64) {
        self.began_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The piece that began last is done; the time of all.
    #[inline]
    pub fn end(&self, now_ns: u64) -> u64 {
        let piece_ns = now_ns.saturating_sub(self.began_ns.swap(0, Ordering::Relaxed));
        let done_ns = self.done_ns.load(Ordering::Relaxed) + piece_ns;
        self.done_ns.store(done_ns, Ordering::Relaxed);
        done_ns
    }

    pub fn ns(&self, now_ns: u64) -> u64 {
        let under_way_ns = match self.began_ns.load(Ordering::Relaxed) {
            0 => 0,
            began_ns => now_ns.saturating_sub(began_ns),
        };
        self.done_ns.load(Ordering::Relaxed) + under_way_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_counts_while_it_is_under_way_and_once() {
        let busy = Busy::default();
        assert_eq!(busy.ns(100), 0);
        busy.begin(100);
        assert_eq!(busy.ns(130), 30);
        assert_eq!(busy.end(150), 50);
        assert_eq!(busy.ns(1000), 50);
        busy.begin(1000);
        assert_eq!(busy.ns(1007), 57);
    }
}
