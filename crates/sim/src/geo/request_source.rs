//! When users send requests: a stream whose rate follows the hour, or CloudAnalyst's bursts.
use super::profile::{DAY, HOUR};
use super::random_factor::RandomFactor;
use super::scenario::{Grouping, Users};
use super::topology::Base;
use super::transfer::from_ms;
use crate::random::RandomStream;
use crate::{Nanos, SECOND};

/// The users of one base.
#[derive(Clone, Debug)]
pub struct RequestSource {
    stream: RandomStream,
    users: RandomFactor,
    /// Time of the day at time 0.
    day_offset: Nanos,
    end: Nanos,
    /// Users of a message.
    group: f64,
    /// Until when the number of users is constant.
    constant_until: Nanos,
    /// Active groups of users.
    groups: f64,
    /// Messages per nanosecond, of all groups.
    per_ns: f64,
    /// Groups that wait for a response before they send again.
    pub waiting: u64,
}

impl RequestSource {
    /// end: no requests are sent from then on.
    pub fn new(
        grouping: &Grouping,
        users: RandomFactor,
        day_offset: Nanos,
        end: Nanos,
        stream: RandomStream,
    ) -> Self {
        Self {
            stream,
            users,
            day_offset,
            end,
            group: f64::from(grouping.users),
            constant_until: 0,
            groups: 0.0,
            per_ns: 0.0,
            waiting: 0,
        }
    }

    /// Returns when the next message is sent after `now`; None if that is after the end.
    ///
    /// Intervals are exponential and thus memoryless: one that extends over a change of the rate is
    /// drawn again from there.
    pub fn next(&mut self, base: &Base, now: Nanos) -> Option<Nanos> {
        let mut from = now;
        while from < self.end {
            if from >= self.constant_until {
                self.update_rate(base, from);
            }
            let until = self.constant_until.min(self.end);
            if self.per_ns > 0.0 {
                let interval = self.stream.exponential() / self.per_ns;
                if interval < (until - from) as f64 {
                    return Some(from + interval as Nanos);
                }
            }
            from = until;
        }
        None
    }

    fn update_rate(&mut self, base: &Base, now: Nanos) {
        let time_of_day = (now + self.day_offset) % DAY;
        let (users, constant) = base.profile.at(time_of_day);
        self.constant_until = now + constant.min(HOUR - time_of_day % HOUR);
        self.groups = users * self.users.draw(&mut self.stream) / self.group;
        let each_per_ns = match (base.config.think_time_s, base.config.requests_per_user_h) {
            (Some(think_s), _) => 1.0 / (think_s * SECOND as f64),
            (None, per_h) => per_h.unwrap_or(0.0) / HOUR as f64,
        };
        self.per_ns = self.groups * each_per_ns;
    }

    /// Returns whether the next group sends: it does not while it waits for a response.
    pub fn sends(&mut self, base: &Base) -> bool {
        base.config.think_time_s.is_none()
            || self.stream.uniform() * self.groups >= self.waiting as f64
    }

    /// CloudAnalyst: returns the number of users that send simultaneously, and the time of the next
    /// burst; None after the end.
    pub fn burst(&mut self, base: &Base, now: Nanos) -> Option<(u64, Nanos)> {
        if now >= self.end {
            return None;
        }
        let users = cloudanalyst_users(base, now) * self.users.draw(&mut self.stream);
        let interval_ms = (3.6e6 / base.config.requests_per_user_h.unwrap_or(1.0)).floor();
        let interval_ms = (interval_ms * self.users.draw(&mut self.stream)).floor().max(1.0);
        Some((users.floor() as u64, now + from_ms(interval_ms)))
    }
}

/// CloudAnalyst: peak hours are hours of the run, whose ends are excluded.
fn cloudanalyst_users(base: &Base, now: Nanos) -> f64 {
    let Users { peak: Some(peak), off_peak: Some(off), peak_hours, .. } = &base.config.users else {
        return base.profile.at(now % DAY).0;
    };
    let hour = now as f64 / HOUR as f64;
    let zone = base.config.zone.hours().unwrap_or(0.0);
    let within = |[from, to]: [f64; 2]| from - zone < hour && hour < to - zone;
    base.config.growth * if peak_hours.is_some_and(within) { peak } else { off }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geo::{GeoScenario, Topology};

    fn base(config: &str) -> Base {
        let text = format!(
            r#"{{"version":1,"user_bases":{{"x":{{"region":"asia",{config}}}}},"sites":{{"s":{{"region":"asia"}}}}}}"#
        );
        let scenario: GeoScenario = serde_json::from_str(&text).unwrap();
        Topology::new(&scenario).unwrap().bases.remove(0)
    }

    #[test]
    fn the_rate_follows_the_hour() {
        let base = base(
            r#""users":{"peak":1000,"off_peak":100,"peak_hours":[23,1]},"requests_per_user_h":60"#,
        );
        let mut source = RequestSource::new(
            &Grouping::default(),
            RandomFactor::Unit,
            0,
            DAY,
            RandomStream::new(1, 0, 0),
        );
        let mut hours = [0.0; 24];
        let mut now = 0;
        while let Some(at) = source.next(&base, now) {
            hours[(at / HOUR) as usize] += 1.0;
            now = at;
        }
        for (hour, requests) in hours.iter().enumerate() {
            let wanted: f64 = if hour == 0 || hour == 23 { 60_000.0 } else { 6_000.0 };
            // Counts of a Poisson process: five deviations.
            assert!((requests - wanted).abs() < 5.0 * wanted.sqrt(), "hour {hour}: {requests}");
        }
    }

    #[test]
    fn cloudanalyst_ignores_the_second_day_and_midnight() {
        let base =
            base(r#""users":{"peak":10,"off_peak":1,"peak_hours":[3,9]},"requests_per_user_h":60"#);
        let at = |hour: u64| cloudanalyst_users(&base, hour * HOUR);
        assert_eq!([3, 4, 9, 28].map(at), [1.0, 10.0, 1.0, 1.0]);
        let night = base_with_night();
        assert_eq!([23, 1].map(|hour| cloudanalyst_users(&night, hour * HOUR)), [1.0, 1.0]);
    }

    fn base_with_night() -> Base {
        base(r#""users":{"peak":10,"off_peak":1,"peak_hours":[22,2]},"requests_per_user_h":60"#)
    }
}
