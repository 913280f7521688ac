//! The instances of one site: where they run, how fast, and for how long they are paid.
use super::balance::Balance;
use super::scenario::{Balancer, Site};
use super::server::{Part, Server};
use super::users::{DAY, HOUR};
use crate::tally::OverTime;
use crate::{Nanos, SECOND};
use std::collections::VecDeque;

/// One instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// What it has to do.
    pub server: Server,
    /// Instructions a millisecond.
    pub speed: f64,
    /// When its next end is announced for; the end of time if it is not.
    pub announced: Nanos,
    host: usize,
    since: Nanos,
    busy: bool,
    leaving: bool,
    gone: bool,
}

/// A part whose rest would take less than this is done in CloudAnalyst: 0.01 ms.
const TOOL_SLACK_NS: f64 = 1e4;

impl Instance {
    /// The next that is done by now; in CloudAnalyst also what is as good as done.
    #[inline]
    pub fn finished(&mut self, now: Nanos, tool: bool) -> Option<Part> {
        if tool {
            self.server.nearly_finished(now, TOOL_SLACK_NS)
        } else {
            self.server.finished(now)
        }
    }
}

/// A number that changes, added up by hour of the day.
#[derive(Clone, Debug)]
pub struct ByHour {
    shift: Nanos,
    since: Nanos,
    value: f64,
    area: [f64; 24],
    time: [f64; 24],
}

impl ByHour {
    /// Zero from moment 0 on, which is `shift` into a day.
    pub fn new(shift: Nanos) -> Self {
        Self { shift, since: 0, value: 0.0, area: [0.0; 24], time: [0.0; 24] }
    }

    /// Another value from `now` on.
    pub fn set(&mut self, now: Nanos, value: f64) {
        while self.since < now {
            let in_day = (self.since + self.shift) % DAY;
            let hour = (in_day / HOUR) as usize;
            let step = (HOUR - in_day % HOUR).min(now - self.since);
            self.area[hour] += step as f64 * self.value;
            self.time[hour] += step as f64;
            self.since += step;
        }
        self.value = value;
    }

    /// Forgets what was up to `now`.
    pub fn restart(&mut self, now: Nanos) {
        *self = Self { since: now, value: self.value, ..Self::new(self.shift) };
    }

    /// Its mean in each hour of the day that there was.
    pub fn means(&self) -> Vec<(usize, f64)> {
        let seen = (0..24).filter(|hour| self.time[*hour] > 0.0);
        seen.map(|hour| (hour, self.area[hour] / self.time[hour])).collect()
    }
}

/// The instances of one site.
#[derive(Clone, Debug)]
pub struct Farm {
    /// How the site was given.
    pub setup: Site,
    /// All instances that ever were; places of those that are gone are used again.
    pub instances: Vec<Instance>,
    /// Which of them answers.
    pub balance: Balance,
    /// What waits for an instance.
    pub waiting: VecDeque<Part>,
    /// Instances that were ordered and do not serve yet.
    pub ordered: u32,
    /// Requests on their way here or in service.
    pub headed: u64,
    /// How many failures hold it down, and of how many brokers know.
    pub down: u32,
    /// Of how many failures brokers know.
    pub known_down: u32,
    /// Instances with something to do.
    pub busy: OverTime,
    /// Instances.
    pub many: OverTime,
    /// Instances by hour of the day.
    pub by_hour: ByHour,
    /// Requests in service or waiting.
    pub inside: OverTime,
    /// What all of them spent here together, in nanoseconds.
    pub spent: u128,
    /// What the busy instances had come to at the last look.
    looked: u128,
    /// What they had come to since then when counting began.
    unseen: u128,
    paid_ns: f64,
    /// When counting began.
    counted_from: Nanos,
    hosts: Vec<u32>,
    free: Vec<usize>,
}

impl Farm {
    /// The site at the beginning. shift: how far into a day moment 0 lies.
    pub fn new(setup: &Site, balancer: Balancer, steps_at_ends: bool, shift: Nanos) -> Self {
        let mut farm = Self {
            setup: setup.clone(),
            instances: Vec::new(),
            balance: Balance::new(balancer, steps_at_ends),
            waiting: VecDeque::new(),
            ordered: 0,
            headed: 0,
            down: 0,
            known_down: 0,
            busy: OverTime::default(),
            many: OverTime::default(),
            by_hour: ByHour::new(shift),
            inside: OverTime::default(),
            spent: 0,
            looked: 0,
            unseen: 0,
            paid_ns: 0.0,
            counted_from: 0,
            hosts: vec![0; setup.hosts as usize],
            free: Vec::new(),
        };
        for _ in 0..setup.instances {
            farm.opens(0);
        }
        farm
    }

    /// One instance more, on the host with most free processors. Gives the instances whose speed
    /// changed with it.
    pub fn opens(&mut self, now: Nanos) -> Vec<usize> {
        let host = (0..self.hosts.len()).min_by_key(|host| self.hosts[*host]).unwrap_or(0);
        let instance = Instance {
            server: Server::new(self.setup.discipline),
            speed: self.setup.speed,
            announced: Nanos::MAX,
            host,
            since: now,
            busy: false,
            leaving: false,
            gone: false,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.instances[place] = instance;
                place
            }
            None => {
                self.instances.push(instance);
                self.instances.len() - 1
            }
        };
        self.balance.opens(place, now);
        self.hosts[host] += 1;
        self.counts(now, 1);
        self.speeds(host, now)
    }

    /// The last instance is given no more requests, and is gone when it is done with those it has.
    pub fn retires(&mut self, now: Nanos) -> Vec<usize> {
        let serves =
            |place: &usize| !self.instances[*place].leaving && !self.instances[*place].gone;
        let Some(place) = (0..self.instances.len()).rev().find(serves) else { return Vec::new() };
        self.balance.closes(place);
        self.instances[place].leaving = true;
        self.leaves(place, now)
    }

    /// An instance that is to leave and has nothing to do is gone.
    fn leaves(&mut self, place: usize, now: Nanos) -> Vec<usize> {
        let instance = &self.instances[place];
        if !instance.leaving || !instance.server.is_empty() {
            return Vec::new();
        }
        self.goes(place, now)
    }

    fn goes(&mut self, place: usize, now: Nanos) -> Vec<usize> {
        let instance = &mut self.instances[place];
        (instance.leaving, instance.gone) = (false, true);
        let (host, since) = (instance.host, instance.since);
        self.paid_ns += self.pays(since.max(self.counted_from), now);
        self.free.push(place);
        self.hosts[host] -= 1;
        self.counts(now, -1);
        self.speeds(host, now)
    }

    /// An instance has got something to do: it counts as busy.
    #[inline]
    pub fn begins_at(&mut self, place: usize, now: Nanos) {
        let was = std::mem::replace(&mut self.instances[place].busy, true);
        if !was {
            self.busy.up(now);
        }
    }

    /// An instance that has nothing to do any more counts as idle, and is gone if it is to leave.
    /// Gives the instances whose speed changed with it; None if it went on as it was.
    #[inline]
    pub fn ends_at(&mut self, place: usize, now: Nanos) -> Option<Vec<usize>> {
        let instance = &mut self.instances[place];
        if !instance.busy || !instance.server.is_empty() {
            return None;
        }
        instance.busy = false;
        self.busy.down(now);
        instance.leaving.then(|| self.goes(place, now))
    }

    fn counts(&mut self, now: Nanos, by: i64) {
        let many = (self.many.value() as i64 + by) as u64;
        self.many.set(now, many);
        self.by_hour.set(now, many as f64);
    }

    /// What is paid for an instance, in nanoseconds: whole steps.
    fn pays(&self, since: Nanos, until: Nanos) -> f64 {
        let step = self.setup.price.billed_s * SECOND as f64;
        (until.saturating_sub(since) as f64 / step).ceil() * step
    }

    /// Instance-hours that are paid, of all instances since counting began, until `until`.
    pub fn paid_h(&self, until: Nanos) -> f64 {
        let here = self.instances.iter().filter(|instance| !instance.gone);
        let rest: f64 =
            here.map(|instance| self.pays(instance.since.max(self.counted_from), until)).sum();
        (self.paid_ns + rest) / HOUR as f64
    }

    /// All instances on a host share its processors.
    fn speeds(&mut self, host: usize, now: Nanos) -> Vec<usize> {
        let (here, processors) = (self.hosts[host], self.setup.processors);
        let speed = self.setup.speed * f64::from(here.min(processors)) / f64::from(here.max(1));
        let mut changed = Vec::new();
        for (place, instance) in self.instances.iter_mut().enumerate() {
            if instance.gone || instance.host != host || instance.speed == speed {
                continue;
            }
            let ratio = instance.speed / speed;
            instance.speed = speed;
            instance.server.stretch(now, ratio);
            self.balance.stretches(place, now, ratio);
            changed.push(place);
        }
        changed
    }

    /// Instances that had something to do since the last look, times nanoseconds.
    pub fn busy_since_look(&mut self, now: Nanos) -> f64 {
        let area = self.busy.area(now);
        let since = area - self.looked + std::mem::take(&mut self.unseen);
        self.looked = area;
        since as f64
    }

    /// Counting begins: what was before is forgotten.
    pub fn begins(&mut self, now: Nanos) {
        // What looks have not seen yet stays to be seen.
        let unseen = self.busy.area(now) - self.looked;
        self.unseen += unseen;
        self.looked = 0;
        self.busy.restart(now);
        self.many.restart(now);
        self.by_hour.restart(now);
        (self.paid_ns, self.counted_from) = (0.0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn farm(text: &str) -> Farm {
        Farm::new(&serde_json::from_str(text).unwrap(), Balancer::RoundRobin, false, 0)
    }

    fn speeds(farm: &Farm) -> Vec<f64> {
        farm.instances.iter().map(|instance| instance.speed).collect()
    }

    #[test]
    fn instances_share_processors_only_where_they_must() {
        let mut farm = farm(r#"{"hosts":2,"processors":2,"speed":12,"instances":4}"#);
        assert_eq!(speeds(&farm), [12.0; 4]);
        // The fifth and the sixth: three on two processors each.
        assert_eq!(farm.opens(0), [0, 2, 4]);
        farm.opens(0);
        assert_eq!(speeds(&farm), [8.0; 6]);
        farm.retires(0);
        assert_eq!(speeds(&farm)[..5], [8.0, 12.0, 8.0, 12.0, 8.0]);
    }

    #[test]
    fn instances_are_paid_in_whole_steps_while_they_are_there() {
        let mut farm = farm(r#"{"instances":2,"price":{"billed_s":3600}}"#);
        farm.opens(HOUR);
        farm.retires(HOUR + 1);
        // Two for two hours, one for one nanosecond: that is an hour.
        assert!((farm.paid_h(2 * HOUR) - 5.0).abs() < 1e-12);
        farm.begins(2 * HOUR);
        assert!((farm.paid_h(2 * HOUR + 5) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn means_by_hour_of_the_day() {
        let mut count = ByHour::new(23 * HOUR);
        count.set(0, 2.0);
        count.set(HOUR + HOUR / 2, 4.0);
        count.set(2 * HOUR, 0.0);
        assert_eq!(count.means(), [(0, 3.0), (23, 2.0)]);
    }
}
