//! When users ask: a stream of requests whose rate follows the hour, or CloudAnalyst's bursts.
use super::noise::Noise;
use super::scenario::{Grouping, Users};
use super::travel::from_ms;
use super::users::{DAY, HOUR};
use super::world::Base;
use crate::random::Stream;
use crate::{Nanos, SECOND};

/// The users of one base as they ask.
#[derive(Clone, Debug)]
pub struct Asking {
    stream: Stream,
    users: Noise,
    /// How far into a day moment 0 lies.
    shift: Nanos,
    end: Nanos,
    /// Users of a message.
    group: f64,
    /// Until when the number of users holds.
    holds_until: Nanos,
    /// Groups of users at work.
    groups: f64,
    /// Messages a nanosecond, of all groups.
    per_ns: f64,
    /// Groups that wait for an answer, where a user asks again only after it.
    pub out: u64,
}

impl Asking {
    /// Users who ask until `end`.
    pub fn new(
        grouping: &Grouping,
        users: Noise,
        shift: Nanos,
        end: Nanos,
        stream: Stream,
    ) -> Self {
        let group = f64::from(grouping.users);
        Self { stream, users, shift, end, group, holds_until: 0, groups: 0.0, per_ns: 0.0, out: 0 }
    }

    /// When the next message is sent after `now`; None when the run is over before.
    ///
    /// Times between messages are exponential, so that a gap that reaches over a change of the
    /// rate may begin anew there.
    pub fn next(&mut self, base: &Base, now: Nanos) -> Option<Nanos> {
        let mut from = now;
        while from < self.end {
            if from >= self.holds_until {
                self.look(base, from);
            }
            let until = self.holds_until.min(self.end);
            if self.per_ns > 0.0 {
                let gap = self.stream.exponential() / self.per_ns;
                if gap < (until - from) as f64 {
                    return Some(from + gap as Nanos);
                }
            }
            from = until;
        }
        None
    }

    fn look(&mut self, base: &Base, now: Nanos) {
        let in_day = (now + self.shift) % DAY;
        let (users, holds) = base.profile.at(in_day);
        self.holds_until = now + holds.min(HOUR - in_day % HOUR);
        self.groups = users * self.users.draw(&mut self.stream) / self.group;
        let each_per_ns = match (base.asks.think_time_s, base.asks.requests_per_user_h) {
            (Some(think_s), _) => 1.0 / (think_s * SECOND as f64),
            (None, per_h) => per_h.unwrap_or(0.0) / HOUR as f64,
        };
        self.per_ns = self.groups * each_per_ns;
    }

    /// Whether the group whose turn it is asks: not if it waits for an answer.
    pub fn asks(&mut self, base: &Base) -> bool {
        base.asks.think_time_s.is_none() || self.stream.uniform() * self.groups >= self.out as f64
    }

    /// CloudAnalyst: users who all ask at `now`, and when the next burst is; None when the run is
    /// over.
    pub fn burst(&mut self, base: &Base, now: Nanos) -> Option<(u64, Nanos)> {
        if now >= self.end {
            return None;
        }
        let users = (self.tool_users(base, now) * self.users.draw(&mut self.stream)).floor();
        let gap_ms = (3.6e6 / base.asks.requests_per_user_h.unwrap_or(1.0)).floor();
        let gap_ms = (gap_ms * self.users.draw(&mut self.stream)).floor().max(1.0);
        Some((users as u64, now + from_ms(gap_ms)))
    }

    /// The tool's users: peak hours are hours of the run, whose ends are left out.
    fn tool_users(&self, base: &Base, now: Nanos) -> f64 {
        let Users { peak: Some(peak), off_peak: Some(off), peak_hours, .. } = &base.asks.users
        else {
            return base.profile.at(now % DAY).0;
        };
        let hour = now as f64 / HOUR as f64;
        let zone = base.asks.zone.hours().unwrap_or(0.0);
        let within = |[from, to]: [f64; 2]| from - zone < hour && hour < to - zone;
        base.asks.growth * if peak_hours.is_some_and(within) { peak } else { off }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::{world::World, Scenario};

    fn base(asks: &str) -> Base {
        let text = format!(
            r#"{{"version":1,"user_bases":{{"x":{{"region":"asia",{asks}}}}},"sites":{{"s":{{"region":"asia"}}}}}}"#
        );
        let scenario: Scenario = serde_json::from_str(&text).unwrap();
        World::of(&scenario).unwrap().bases.remove(0)
    }

    #[test]
    fn the_rate_follows_the_hour() {
        let base = base(
            r#""users":{"peak":1000,"off_peak":100,"peak_hours":[23,1]},"requests_per_user_h":60"#,
        );
        let mut asking =
            Asking::new(&Grouping::default(), Noise::None, 0, DAY, Stream::of(1, 0, 0));
        let mut hours = [0.0; 24];
        let mut now = 0;
        while let Some(at) = asking.next(&base, now) {
            hours[(at / HOUR) as usize] += 1.0;
            now = at;
        }
        for (hour, seen) in hours.iter().enumerate() {
            let wanted: f64 = if hour == 0 || hour == 23 { 60_000.0 } else { 6_000.0 };
            // Counts of a Poisson process: five deviations.
            assert!((seen - wanted).abs() < 5.0 * wanted.sqrt(), "hour {hour}: {seen}");
        }
    }

    #[test]
    fn the_tool_knows_no_second_day_and_no_midnight() {
        let base =
            base(r#""users":{"peak":10,"off_peak":1,"peak_hours":[3,9]},"requests_per_user_h":60"#);
        let asking = Asking::new(&Grouping::default(), Noise::None, 0, DAY, Stream::of(1, 0, 0));
        let at = |hour: u64| asking.tool_users(&base, hour * HOUR);
        assert_eq!([3, 4, 9, 28].map(at), [1.0, 10.0, 1.0, 1.0]);
        let night = base_with_night();
        assert_eq!([23, 1].map(|hour| asking.tool_users(&night, hour * HOUR)), [1.0, 1.0]);
    }

    fn base_with_night() -> Base {
        base(r#""users":{"peak":10,"off_peak":1,"peak_hours":[22,2]},"requests_per_user_h":60"#)
    }
}
