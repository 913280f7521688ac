//! The round trips of a series of probes: distributions, intervals, what is late and what is lost.
//! Pure: times are arguments.
use super::udp::losses::{Arrived, Losses};
use super::udp::tracker::Tracker;
use crate::timing::closed_loop::latency_histogram;
use hdrhistogram::Histogram;

/// How the round trips of a trial are to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordSettings {
    pub interval_ns: u64,
    /// An answer that takes longer is late.
    pub late_after_ns: u64,
    /// The first so many probes are recorded one by one.
    pub stored_probes: usize,
}

/// When a probe was due and when it left.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    pub sequence: u64,
    pub intended_ns: u64,
    pub sent_ns: u64,
    pub sent_wall_ns: u64,
}

/// When its answer was there: for the program, and for the kernel where it tells.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub now_ns: u64,
    pub kernel_wall_ns: Option<u64>,
}

pub struct RoundTrips {
    settings: RecordSettings,
    pub tracker: Tracker,
    arrived: Arrived,
    /// From when it was to be sent.
    pub rtt: Histogram<u64>,
    /// From when it was sent.
    pub rtt_sent: Histogram<u64>,
    /// From when it was sent until the kernel received the answer.
    pub rtt_kernel: Histogram<u64>,
    /// Answers that took longer than is accepted.
    pub late: u64,
    /// (due on the monotonic clock, round trip from the actual sending time).
    pub probes: Vec<(u64, u64)>,
    /// (end on the monotonic clock, median, longest) of the round trips of each interval.
    pub intervals: Vec<(u64, u64, u64)>,
    interval: Histogram<u64>,
    interval_ends_ns: u64,
}

impl RoundTrips {
    pub fn new(settings: RecordSettings) -> Self {
        Self {
            settings,
            tracker: Tracker::new(),
            arrived: Arrived::default(),
            rtt: latency_histogram(),
            rtt_sent: latency_histogram(),
            rtt_kernel: latency_histogram(),
            late: 0,
            probes: Vec::new(),
            intervals: Vec::new(),
            interval: latency_histogram(),
            interval_ends_ns: 0,
        }
    }

    pub fn interval_ns(&self) -> u64 {
        self.settings.interval_ns
    }

    /// Records an answer; false if the same probe was answered before.
    #[inline]
    pub fn answered(&mut self, probe: &Departure, arrival: &Arrival) -> bool {
        if !self.tracker.see(probe.sequence) {
            return false;
        }
        self.arrived.see(probe.sequence);
        let rtt_ns = arrival.now_ns.saturating_sub(probe.intended_ns);
        let rtt_sent_ns = arrival.now_ns.saturating_sub(probe.sent_ns);
        self.rtt.saturating_record(rtt_ns);
        self.interval.saturating_record(rtt_ns);
        self.rtt_sent.saturating_record(rtt_sent_ns);
        // A wall clock that was set meanwhile gives no round trip.
        let kernel_ns =
            arrival.kernel_wall_ns.and_then(|wall_ns| wall_ns.checked_sub(probe.sent_wall_ns));
        if let Some(kernel_ns) = kernel_ns.filter(|ns| *ns <= rtt_sent_ns) {
            self.rtt_kernel.saturating_record(kernel_ns);
        }
        self.late += u64::from(rtt_sent_ns > self.settings.late_after_ns);
        if probe.sequence < self.settings.stored_probes as u64 {
            self.probes.push((probe.intended_ns, rtt_sent_ns));
        }
        if self.interval_ends_ns == 0 {
            self.interval_ends_ns = arrival.now_ns + self.settings.interval_ns;
        }
        true
    }

    /// Closes the interval when its time is over.
    #[inline]
    pub fn note_time(&mut self, now_ns: u64) {
        if self.interval_ends_ns > 0 && now_ns >= self.interval_ends_ns {
            self.close_interval(now_ns);
            self.interval_ends_ns = now_ns + self.settings.interval_ns;
        }
    }

    pub fn close_interval(&mut self, now_ns: u64) {
        if !self.interval.is_empty() {
            let (median, longest) = (self.interval.value_at_quantile(0.5), self.interval.max());
            self.intervals.push((now_ns, median, longest));
            self.interval.reset();
        }
    }

    /// Returns which of the first `sent` probes were never answered.
    pub fn losses(&self, sent: u64) -> Losses {
        self.arrived.losses(0..sent)
    }

    /// Returns (sent, unanswered) of each interval of `per_interval` probes.
    pub fn lost_by_interval(&self, sent: u64, per_interval: u64) -> Vec<(u64, u64)> {
        let end = |first: u64| (first + per_interval).min(sent);
        let counts = |first: u64| (end(first) - first, self.arrived.missing(first..end(first)));
        (0..sent).step_by(per_interval.max(1) as usize).map(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: RecordSettings =
        RecordSettings { interval_ns: 1000, late_after_ns: 100, stored_probes: 2 };

    fn answer(trips: &mut RoundTrips, sequence: u64, now_ns: u64, kernel: Option<u64>) -> bool {
        let due_ns = sequence * 10;
        let probe =
            Departure { sequence, intended_ns: due_ns, sent_ns: due_ns + 3, sent_wall_ns: 7000 };
        trips.answered(&probe, &Arrival { now_ns, kernel_wall_ns: kernel })
    }

    #[test]
    fn late_answers_are_kept_and_counted() {
        let mut trips = RoundTrips::new(SETTINGS);
        assert!(answer(&mut trips, 0, 50, None));
        assert!(answer(&mut trips, 3, 80, None));
        assert!(answer(&mut trips, 1, 5000, None));
        assert!(!answer(&mut trips, 1, 6000, None));
        assert_eq!((trips.late, trips.rtt.len(), trips.tracker.duplicates), (1, 3, 1));
        assert_eq!(trips.probes, [(0, 47), (10, 4987)]);
        assert_eq!(trips.losses(5).runs, [(2, 1), (4, 1)]);
        assert_eq!(trips.lost_by_interval(5, 2), [(2, 0), (2, 1), (1, 1)]);
    }

    #[test]
    fn a_time_of_the_kernel_counts_where_it_is_possible() {
        let mut trips = RoundTrips::new(SETTINGS);
        answer(&mut trips, 0, 50, Some(7040));
        // Before it was sent, and after it was there.
        answer(&mut trips, 1, 60, Some(6000));
        answer(&mut trips, 2, 70, Some(9000));
        assert_eq!((trips.rtt_kernel.len(), trips.rtt_kernel.max()), (1, 40));
    }

    #[test]
    fn an_interval_has_a_median_and_a_maximum() {
        let mut trips = RoundTrips::new(SETTINGS);
        for sequence in 0..3 {
            answer(&mut trips, sequence, 100 + sequence * 100, None);
        }
        trips.note_time(500);
        assert!(trips.intervals.is_empty());
        trips.note_time(1200);
        assert_eq!(trips.intervals, [(1200, 190, 280)]);
    }
}
