//! The instances of one site: their hosts, their speed, and their billed time.
use super::load_balancer::LoadBalancer;
use super::profile::{DAY, HOUR};
use super::scenario::{Balancer, Site};
use super::server::{InstanceServer, RequestBatch};
use crate::statistics::TimeWeighted;
use crate::{Nanos, SECOND};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
pub struct Instance {
    pub server: InstanceServer,
    /// Instructions per millisecond.
    pub speed: f64,
    /// Time for which the next completion is scheduled.
    pub scheduled: Nanos,
    host: usize,
    started: Nanos,
    is_busy: bool,
    is_leaving: bool,
    is_gone: bool,
}

/// CloudAnalyst: a batch that would take less than 0.01 ms longer is complete.
const CLOUDANALYST_SLACK_NS: f64 = 1e4;

impl Instance {
    /// Removes the next batch that is complete by now.
    #[inline]
    pub fn pop_completed(&mut self, now: Nanos, compat: bool) -> Option<RequestBatch> {
        if compat {
            self.server.pop_almost_completed(now, CLOUDANALYST_SLACK_NS)
        } else {
            self.server.pop_completed(now)
        }
    }
}

/// Means of a number by hour of the day.
#[derive(Clone, Debug)]
pub struct HourlyMeans {
    day_offset: Nanos,
    last_change: Nanos,
    value: f64,
    area: [f64; 24],
    time: [f64; 24],
}

impl HourlyMeans {
    /// day_offset: time of the day at time 0.
    pub fn new(day_offset: Nanos) -> Self {
        Self { day_offset, last_change: 0, value: 0.0, area: [0.0; 24], time: [0.0; 24] }
    }

    /// Changes the value at `now`.
    pub fn set(&mut self, now: Nanos, value: f64) {
        while self.last_change < now {
            let time_of_day = (self.last_change + self.day_offset) % DAY;
            let hour = (time_of_day / HOUR) as usize;
            let step = (HOUR - time_of_day % HOUR).min(now - self.last_change);
            self.area[hour] += step as f64 * self.value;
            self.time[hour] += step as f64;
            self.last_change += step;
        }
        self.value = value;
    }

    /// Discards the past; the present value stays.
    pub fn restart(&mut self, now: Nanos) {
        *self = Self { last_change: now, value: self.value, ..Self::new(self.day_offset) };
    }

    /// Returns the mean in each hour of the day that was simulated.
    pub fn means(&self) -> Vec<(usize, f64)> {
        let hours = (0..24).filter(|hour| self.time[*hour] > 0.0);
        hours.map(|hour| (hour, self.area[hour] / self.time[hour])).collect()
    }
}

/// The instances of one site.
#[derive(Clone, Debug)]
pub struct InstancePool {
    pub site: Site,
    /// Entries of instances that are gone are reused.
    pub instances: Vec<Instance>,
    pub balancer: LoadBalancer,
    /// Batches that wait for an instance.
    pub waiting: VecDeque<RequestBatch>,
    /// Instances that are starting.
    pub starting: u32,
    /// Requests in flight to the site or in service.
    pub assigned: u64,
    /// Number of failures that keep the site down, and of those that brokers know.
    pub failures: u32,
    pub known_failures: u32,
    /// Number of busy instances.
    pub busy: TimeWeighted,
    /// Number of instances.
    pub count: TimeWeighted,
    pub count_by_hour: HourlyMeans,
    /// Requests in service or waiting.
    pub in_system: TimeWeighted,
    /// Sum of the times that requests spent here.
    pub time_in_system: u128,
    /// Busy area at the last check of the autoscaler.
    checked_area: u128,
    /// Busy area between the last check and the end of the warm-up.
    unchecked_area: u128,
    /// Billed time of instances that are gone.
    billed_ns: f64,
    /// End of the warm-up.
    measured_from: Nanos,
    /// Number of instances on each host.
    hosts: Vec<u32>,
    free: Vec<usize>,
}

impl InstancePool {
    pub fn new(site: Site, balancer: Balancer, compat: bool, day_offset: Nanos) -> Self {
        let mut pool = Self {
            instances: Vec::new(),
            balancer: LoadBalancer::new(balancer, compat),
            waiting: VecDeque::new(),
            starting: 0,
            assigned: 0,
            failures: 0,
            known_failures: 0,
            busy: TimeWeighted::default(),
            count: TimeWeighted::default(),
            count_by_hour: HourlyMeans::new(day_offset),
            in_system: TimeWeighted::default(),
            time_in_system: 0,
            checked_area: 0,
            unchecked_area: 0,
            billed_ns: 0.0,
            measured_from: 0,
            hosts: vec![0; site.hosts as usize],
            free: Vec::new(),
            site,
        };
        for _ in 0..pool.site.instances {
            pool.add_instance(0);
        }
        pool
    }

    /// Adds an instance on the host with most free processors. Returns the instances whose speed
    /// changes.
    pub fn add_instance(&mut self, now: Nanos) -> Vec<usize> {
        let host = (0..self.hosts.len()).min_by_key(|host| self.hosts[*host]).unwrap_or(0);
        let instance = Instance {
            server: InstanceServer::new(self.site.discipline),
            speed: self.site.speed,
            scheduled: Nanos::MAX,
            host,
            started: now,
            is_busy: false,
            is_leaving: false,
            is_gone: false,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.instances[number] = instance;
                number
            }
            None => {
                self.instances.push(instance);
                self.instances.len() - 1
            }
        };
        self.balancer.open(number, now);
        self.hosts[host] += 1;
        self.set_count(now, self.count.value() + 1);
        self.update_speeds(host, now)
    }

    /// Retires the last instance: it receives no more requests, and is removed when it has completed
    /// those that it has. Returns the instances whose speed changes.
    pub fn retire_instance(&mut self, now: Nanos) -> Vec<usize> {
        let is_serving = |number: &usize| {
            !self.instances[*number].is_leaving && !self.instances[*number].is_gone
        };
        let last = (0..self.instances.len()).rev().find(is_serving);
        let Some(number) = last else { return Vec::new() };
        self.balancer.close(number);
        let instance = &mut self.instances[number];
        instance.is_leaving = true;
        if instance.server.is_empty() {
            self.remove_instance(number, now)
        } else {
            Vec::new()
        }
    }

    fn remove_instance(&mut self, number: usize, now: Nanos) -> Vec<usize> {
        let instance = &mut self.instances[number];
        (instance.is_leaving, instance.is_gone) = (false, true);
        let (host, started) = (instance.host, instance.started);
        self.billed_ns += self.billed(started.max(self.measured_from), now);
        self.free.push(number);
        self.hosts[host] -= 1;
        self.set_count(now, self.count.value() - 1);
        self.update_speeds(host, now)
    }

    #[inline]
    pub fn mark_busy(&mut self, number: usize, now: Nanos) {
        let was_busy = std::mem::replace(&mut self.instances[number].is_busy, true);
        if !was_busy {
            self.busy.increment(now);
        }
    }

    /// Marks an instance without work as idle, and removes it if it is leaving. Returns the instances
    /// whose speed changes; None if it was not removed.
    #[inline]
    pub fn mark_idle(&mut self, number: usize, now: Nanos) -> Option<Vec<usize>> {
        let instance = &mut self.instances[number];
        if !instance.is_busy || !instance.server.is_empty() {
            return None;
        }
        instance.is_busy = false;
        self.busy.decrement(now);
        instance.is_leaving.then(|| self.remove_instance(number, now))
    }

    fn set_count(&mut self, now: Nanos, count: u64) {
        self.count.set(now, count);
        self.count_by_hour.set(now, count as f64);
    }

    /// Returns the billed time of an instance in nanoseconds.
    fn billed(&self, from: Nanos, until: Nanos) -> f64 {
        let step = self.site.price.billed_s * SECOND as f64;
        (until.saturating_sub(from) as f64 / step).ceil() * step
    }

    /// Returns the billed hours of all instances since the end of the warm-up.
    pub fn billed_h(&self, until: Nanos) -> f64 {
        let present = self.instances.iter().filter(|instance| !instance.is_gone);
        let rest: f64 = present
            .map(|instance| self.billed(instance.started.max(self.measured_from), until))
            .sum();
        (self.billed_ns + rest) / HOUR as f64
    }

    /// Updates the speed of the instances on a host, which share its processors.
    fn update_speeds(&mut self, host: usize, now: Nanos) -> Vec<usize> {
        let (count, processors) = (self.hosts[host], self.site.processors);
        let speed = self.site.speed * f64::from(count.min(processors)) / f64::from(count.max(1));
        let mut changed = Vec::new();
        for (number, instance) in self.instances.iter_mut().enumerate() {
            if instance.is_gone || instance.host != host || instance.speed == speed {
                continue;
            }
            let ratio = instance.speed / speed;
            instance.speed = speed;
            instance.server.scale_remaining(now, ratio);
            self.balancer.scale_remaining(number, now, ratio);
            changed.push(number);
        }
        changed
    }

    /// Returns the busy instances integrated over time since the last check.
    pub fn busy_since_check(&mut self, now: Nanos) -> f64 {
        let area = self.busy.area(now);
        let since = area - self.checked_area + std::mem::take(&mut self.unchecked_area);
        self.checked_area = area;
        since as f64
    }

    /// Ends the warm-up: discards the statistics so far.
    pub fn end_warm_up(&mut self, now: Nanos) {
        // What the autoscaler has not checked yet is kept for it.
        self.unchecked_area += self.busy.area(now) - self.checked_area;
        self.checked_area = 0;
        self.busy.restart(now);
        self.count.restart(now);
        self.count_by_hour.restart(now);
        (self.billed_ns, self.measured_from) = (0.0, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(text: &str) -> InstancePool {
        InstancePool::new(serde_json::from_str(text).unwrap(), Balancer::RoundRobin, false, 0)
    }

    fn speeds(pool: &InstancePool) -> Vec<f64> {
        pool.instances.iter().map(|instance| instance.speed).collect()
    }

    #[test]
    fn instances_share_processors_only_where_they_must() {
        let mut pool = pool(r#"{"hosts":2,"processors":2,"speed":12,"instances":4}"#);
        assert_eq!(speeds(&pool), [12.0; 4]);
        // The fifth and the sixth: three on two processors each.
        assert_eq!(pool.add_instance(0), [0, 2, 4]);
        pool.add_instance(0);
        assert_eq!(speeds(&pool), [8.0; 6]);
        pool.retire_instance(0);
        assert_eq!(speeds(&pool)[..5], [8.0, 12.0, 8.0, 12.0, 8.0]);
    }

    #[test]
    fn instances_are_billed_in_whole_steps() {
        let mut pool = pool(r#"{"instances":2,"price":{"billed_s":3600}}"#);
        pool.add_instance(HOUR);
        pool.retire_instance(HOUR + 1);
        // Two for two hours, one for one nanosecond: that is an hour.
        assert!((pool.billed_h(2 * HOUR) - 5.0).abs() < 1e-12);
        pool.end_warm_up(2 * HOUR);
        assert!((pool.billed_h(2 * HOUR + 5) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn means_by_hour_of_the_day() {
        let mut count = HourlyMeans::new(23 * HOUR);
        count.set(0, 2.0);
        count.set(HOUR + HOUR / 2, 4.0);
        count.set(2 * HOUR, 0.0);
        assert_eq!(count.means(), [(0, 3.0), (23, 2.0)]);
    }
}
