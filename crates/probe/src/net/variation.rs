//! Variation of delay. Pure: times are arguments.
//!
//! A transit is the receiver's clock at arrival minus the sender's clock at departure. The clocks may
//! differ by any constant: only differences of transits are used here.
use crate::timing::closed_loop::latency_histogram;
use hdrhistogram::Histogram;

/// Interarrival jitter of RFC 3550 (section 6.4.1): `J += (|D| - J) / 16` in the order of arrival,
/// from 0. A smoothed figure: it remembers some sixteen packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jitter {
    last_transit_ns: Option<i64>,
    jitter_ns: f64,
    differences: u64,
    sum_ns: f64,
}

impl Jitter {
    pub fn add(&mut self, transit_ns: i64) {
        if let Some(last) = self.last_transit_ns.replace(transit_ns) {
            let difference_ns = transit_ns.abs_diff(last) as f64;
            self.jitter_ns += (difference_ns - self.jitter_ns) / 16.0;
            self.differences += 1;
            self.sum_ns += difference_ns;
        }
    }

    /// J after the last packet; `None` below two packets.
    pub fn value_ns(&self) -> Option<f64> {
        (self.differences > 0).then_some(self.jitter_ns)
    }

    /// Mean |D|; `None` below two packets.
    pub fn mean_difference_ns(&self) -> Option<f64> {
        (self.differences > 0).then(|| self.sum_ns / self.differences as f64)
    }
}

/// Transits that are kept for the variation from the least one.
pub const MAX_TRANSITS: usize = 1 << 20;

/// All that is told about the variation of one direction's delay.
#[derive(Debug)]
pub struct DelayVariation {
    /// RFC 3550.
    pub jitter: Jitter,
    /// |D| of packets whose numbers follow one another (RFC 3393, section 2.5).
    pub ipdv: Histogram<u64>,
    last: Option<(u64, i64)>,
    transits_ns: Vec<i64>,
    packets: u64,
}

impl DelayVariation {
    /// Room for `packets` (0: not known).
    pub fn new(packets: u64) -> Self {
        let room = if packets == 0 { MAX_TRANSITS } else { (packets as usize).min(MAX_TRANSITS) };
        Self {
            jitter: Jitter::default(),
            ipdv: latency_histogram(),
            last: None,
            transits_ns: Vec::with_capacity(room),
            packets: 0,
        }
    }

    /// The next packet that arrived, no duplicate.
    #[inline]
    pub fn add(&mut self, sequence: u64, transit_ns: i64) {
        self.packets += 1;
        self.jitter.add(transit_ns);
        if let Some((last, before_ns)) = self.last.replace((sequence, transit_ns)) {
            if sequence == last + 1 {
                self.ipdv.saturating_record(transit_ns.abs_diff(before_ns));
            }
        }
        if self.transits_ns.len() < self.transits_ns.capacity() {
            self.transits_ns.push(transit_ns);
        }
    }

    /// Delay minus the least delay (RFC 5481, PDV): what a de-jitter buffer has to hold.
    pub fn pdv(&self) -> Histogram<u64> {
        let mut histogram = latency_histogram();
        if let Some(least) = self.transits_ns.iter().min() {
            for transit in &self.transits_ns {
                histogram.saturating_record(transit.abs_diff(*least));
            }
        }
        histogram
    }

    /// Whether some packets are missing in [`Self::pdv`].
    pub fn cut_off(&self) -> bool {
        self.packets > self.transits_ns.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitters(transits: &[i64]) -> Vec<f64> {
        let mut jitter = Jitter::default();
        let step = |transit: &i64| {
            jitter.add(*transit);
            jitter.value_ns().unwrap_or(0.0)
        };
        transits.iter().map(step).collect()
    }

    #[test]
    fn the_jitter_of_five_packets_is_what_the_formula_gives() {
        let measured = jitters(&[50, 52, 49, 60, 50]);
        let wanted = [0.0, 0.125, 0.304_687_5, 0.973_144_53, 1.537_323];
        for (seen, wanted) in measured.iter().zip(wanted) {
            assert!((seen - wanted).abs() < 1e-6, "{seen} {wanted}");
        }
    }

    #[test]
    fn a_steady_step_is_approached_like_a_filter_of_sixteen() {
        let steps: Vec<i64> = (0..17).map(|packet| packet % 2 * 16).collect();
        assert!((jitters(&steps)[16] - 10.302_81).abs() < 1e-4);
    }

    #[test]
    fn a_difference_of_clocks_cancels() {
        let transits = [50, 52, 49, 60, 50];
        let far = transits.map(|transit| transit - 1_700_000_000_000_000_000);
        assert_eq!(jitters(&transits), jitters(&far));
    }

    #[test]
    fn the_mean_difference_and_the_variation_from_the_least() {
        let mut variation = DelayVariation::new(5);
        for (sequence, transit) in [50, 52, 49, 60, 50].into_iter().enumerate() {
            variation.add(sequence as u64, transit);
        }
        assert_eq!(variation.jitter.mean_difference_ns(), Some(6.5));
        let pdv: Vec<_> = variation
            .pdv()
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_at_value()))
            .collect();
        assert_eq!(pdv, [(0, 1), (1, 2), (3, 1), (11, 1)]);
        let ipdv: Vec<_> = variation
            .ipdv
            .iter_recorded()
            .map(|v| (v.value_iterated_to(), v.count_at_value()))
            .collect();
        assert_eq!(ipdv, [(2, 1), (3, 1), (10, 1), (11, 1)]);
        assert!(!variation.cut_off());
    }

    #[test]
    fn any_clock_of_the_sender_is_a_difference() {
        let mut variation = DelayVariation::new(2);
        for (sequence, transit) in [i64::MIN, i64::MAX].into_iter().enumerate() {
            variation.add(sequence as u64, transit);
        }
        assert_eq!(variation.jitter.mean_difference_ns(), Some(u64::MAX as f64));
        assert_eq!((variation.ipdv.len(), variation.pdv().len()), (1, 2));
    }

    #[test]
    fn packets_that_do_not_follow_one_another_make_no_ipdv() {
        let mut variation = DelayVariation::new(0);
        for (sequence, transit) in [(0, 5), (2, 9), (1, 7), (2, 3), (3, 4)] {
            variation.add(sequence, transit);
        }
        // Of four differences only 1 to 2 and 2 to 3 follow one another.
        assert_eq!(variation.ipdv.len(), 2);
        assert_eq!(Jitter::default().value_ns(), None);
    }
}
