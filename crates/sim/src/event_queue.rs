//! The event queue and the loop that processes it.
use crate::timer_wheel::TimerWheel;
use crate::Nanos;

/// Scheduled events, earliest first; events of one time keep the order in which they were scheduled.
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    now: Nanos,
    processed: u64,
    wheel: TimerWheel<E>,
}

impl<E> Default for EventQueue<E> {
    fn default() -> Self {
        Self { now: 0, processed: 0, wheel: TimerWheel::default() }
    }
}

impl<E: Copy> EventQueue<E> {
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Returns the number of events processed so far.
    pub fn processed(&self) -> u64 {
        self.processed
    }

    /// Schedules `event` at `time`.
    ///
    /// # Panics
    /// If `time` is in the past: such a model is wrong, and its results would be too.
    #[inline]
    pub fn schedule_at(&mut self, time: Nanos, event: E) {
        assert!(time >= self.now, "an event for {time} ns was scheduled at {} ns", self.now);
        self.wheel.push(time, event);
    }

    /// Schedules `event` after `delay`, at the latest at the largest time.
    #[inline]
    pub fn schedule_after(&mut self, delay: Nanos, event: E) {
        self.schedule_at(self.now.saturating_add(delay), event);
    }

    #[inline]
    fn next(&mut self, until: Nanos) -> Option<E> {
        let (time, event) = self.wheel.pop(until)?;
        self.now = time;
        self.processed += 1;
        Some(event)
    }
}

/// A simulated system: how its state changes with each event.
pub trait Model {
    type Event: Copy;

    /// Processes one event and schedules those that follow from it.
    fn handle(&mut self, event: Self::Event, events: &mut EventQueue<Self::Event>);
}

/// Processes all events up to and including `until`, which is the current time afterwards.
pub fn simulate<M: Model>(model: &mut M, events: &mut EventQueue<M::Event>, until: Nanos) {
    while let Some(event) = events.next(until) {
        model.handle(event, events);
    }
    events.now = events.now.max(until);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Records each event with its time.
    #[derive(Default)]
    struct Log(Vec<(Nanos, u32)>);

    impl Model for Log {
        type Event = u32;

        fn handle(&mut self, event: u32, events: &mut EventQueue<u32>) {
            self.0.push((events.now(), event));
        }
    }

    #[test]
    fn simultaneous_events_keep_their_order() {
        let (mut log, mut events) = (Log::default(), EventQueue::default());
        for event in [3, 1, 2] {
            events.schedule_at(5, event);
        }
        events.schedule_at(4, 0);
        simulate(&mut log, &mut events, 5);
        assert_eq!(log.0, [(4, 0), (5, 3), (5, 1), (5, 2)]);
        assert_eq!((events.now(), events.processed()), (5, 4));
    }

    #[test]
    fn events_beyond_the_end_wait() {
        let (mut log, mut events) = (Log::default(), EventQueue::default());
        events.schedule_at(10, 1);
        events.schedule_at(11, 2);
        simulate(&mut log, &mut events, 10);
        assert_eq!((log.0.len(), events.now()), (1, 10));
        simulate(&mut log, &mut events, 11);
        assert_eq!(log.0, [(10, 1), (11, 2)]);
    }

    #[test]
    #[should_panic(expected = "scheduled at")]
    fn scheduling_in_the_past_panics() {
        let (mut log, mut events) = (Log::default(), EventQueue::default());
        events.schedule_at(7, 1);
        simulate(&mut log, &mut events, 7);
        events.schedule_at(6, 2);
    }

    proptest! {
        #[test]
        fn events_are_sorted_stably(times in prop::collection::vec(0u64..50, 0..200)) {
            let (mut log, mut events) = (Log::default(), EventQueue::default());
            for (event, at) in times.iter().enumerate() {
                events.schedule_at(*at, event as u32 + 100);
            }
            simulate(&mut log, &mut events, 50);
            let mut wanted: Vec<_> =
                times.iter().enumerate().map(|(event, at)| (*at, event as u32 + 100)).collect();
            wanted.sort_by_key(|(at, _)| *at);
            prop_assert_eq!(log.0, wanted);
        }
    }
}
