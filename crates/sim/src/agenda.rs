//! The list of what is going to happen, and the loop that lets it happen.
use crate::wheel::Wheels;
use crate::Nanos;

/// What is going to happen, earliest first.
#[derive(Clone, Debug)]
pub struct Agenda<E> {
    now: Nanos,
    passed: u64,
    entries: Wheels<E>,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { now: 0, passed: 0, entries: Wheels::default() }
    }
}

impl<E: Copy> Agenda<E> {
    /// The present moment.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// How many events have happened.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// How many events are still to happen.
    pub fn waiting(&self) -> usize {
        self.entries.len()
    }

    /// Lets `event` happen at `at`.
    ///
    /// # Panics
    /// If `at` is in the past: a model that asks for that is wrong, and its figures would be too.
    #[inline]
    pub fn at(&mut self, at: Nanos, event: E) {
        assert!(at >= self.now, "an event at {at} ns was asked for at {} ns", self.now);
        self.entries.push(at, event);
    }

    /// Lets `event` happen after `delay`; beyond the end of time it happens at the end of time.
    #[inline]
    pub fn after(&mut self, delay: Nanos, event: E) {
        self.at(self.now.saturating_add(delay), event);
    }

    /// When the next event happens; None when there is none.
    pub fn next_at(&self) -> Option<Nanos> {
        self.entries.peek()
    }

    /// The next event up to and including `until`, which is the present from now on.
    #[inline]
    fn next(&mut self, until: Nanos) -> Option<E> {
        let (at, event) = self.entries.pop(until)?;
        self.now = at;
        self.passed += 1;
        Some(event)
    }
}

/// Whether a simulation goes on after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It goes on.
    No,
    /// This was the last event.
    Now,
}

/// What is simulated: how the world changes when something happens.
pub trait Model {
    /// What can happen.
    type Event: Copy;

    /// Lets one event happen; later ones are asked for at the agenda.
    fn happens(&mut self, event: Self::Event, agenda: &mut Agenda<Self::Event>) -> Stop;
}

/// Lets everything up to and including `until` happen, or until the model stops. Afterwards the
/// present is the last event's moment after a stop, else `until`.
pub fn simulate<M: Model>(model: &mut M, agenda: &mut Agenda<M::Event>, until: Nanos) {
    while let Some(event) = agenda.next(until) {
        if model.happens(event, agenda) == Stop::Now {
            return;
        }
    }
    agenda.now = agenda.now.max(until);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Writes down what happens, and when.
    #[derive(Default)]
    struct Diary(Vec<(Nanos, u32)>);

    impl Model for Diary {
        type Event = u32;

        fn happens(&mut self, event: u32, agenda: &mut Agenda<u32>) -> Stop {
            self.0.push((agenda.now(), event));
            if event == 99 {
                Stop::Now
            } else {
                Stop::No
            }
        }
    }

    #[test]
    fn events_of_one_moment_come_in_the_order_asked() {
        let (mut diary, mut agenda) = (Diary::default(), Agenda::default());
        for event in [3, 1, 2] {
            agenda.at(5, event);
        }
        agenda.at(4, 0);
        simulate(&mut diary, &mut agenda, 5);
        assert_eq!(diary.0, [(4, 0), (5, 3), (5, 1), (5, 2)]);
        assert_eq!((agenda.now(), agenda.passed(), agenda.waiting()), (5, 4, 0));
    }

    #[test]
    fn what_lies_beyond_the_end_waits() {
        let (mut diary, mut agenda) = (Diary::default(), Agenda::default());
        agenda.at(10, 1);
        agenda.at(11, 2);
        simulate(&mut diary, &mut agenda, 10);
        assert_eq!((diary.0.len(), agenda.now(), agenda.next_at()), (1, 10, Some(11)));
    }

    #[test]
    fn a_model_can_stop() {
        let (mut diary, mut agenda) = (Diary::default(), Agenda::default());
        agenda.at(1, 99);
        agenda.at(2, 1);
        simulate(&mut diary, &mut agenda, 10);
        assert_eq!((diary.0.as_slice(), agenda.now()), ([(1, 99)].as_slice(), 1));
    }

    #[test]
    #[should_panic(expected = "asked for at")]
    fn the_past_is_refused() {
        let (mut diary, mut agenda) = (Diary::default(), Agenda::default());
        agenda.at(7, 1);
        simulate(&mut diary, &mut agenda, 7);
        agenda.at(6, 2);
    }

    proptest! {
        #[test]
        fn it_is_a_stable_sort(times in prop::collection::vec(0u64..50, 0..200)) {
            let (mut diary, mut agenda) = (Diary::default(), Agenda::default());
            for (event, at) in times.iter().enumerate() {
                agenda.at(*at, event as u32 + 100);
            }
            simulate(&mut diary, &mut agenda, 50);
            let mut wanted: Vec<_> =
                times.iter().enumerate().map(|(event, at)| (*at, event as u32 + 100)).collect();
            wanted.sort_by_key(|(at, _)| *at);
            prop_assert_eq!(diary.0, wanted);
        }
    }
}
