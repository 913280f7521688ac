//! Autoscaling of the instances of a site.
use super::model::{GeoEvent, GeoEvents, GeoSimulation};
use super::scenario::{Autoscaling, Broker};
use super::transfer::from_ms;
use crate::{Nanos, SECOND};

/// CloudAnalyst checks its sites every minute, and gives none more instances than this.
const CLOUDANALYST_INTERVAL: Nanos = 60 * SECOND;
const CLOUDANALYST_MAX: usize = 100;

impl GeoSimulation<'_> {
    /// Returns the interval at which the autoscaler checks a site; None for never.
    pub(super) fn scaling_interval(&self, site: usize) -> Option<Nanos> {
        if self.compat {
            let is_scaled = self.scenario.broker == Broker::Reconfiguring;
            return is_scaled.then_some(CLOUDANALYST_INTERVAL);
        }
        Some(from_ms(self.pools[site].site.autoscaling?.every_s * 1e3))
    }

    /// Checks whether a site needs more or fewer instances.
    pub(super) fn check_scaling(&mut self, site: usize, events: &mut GeoEvents) {
        let now = events.now();
        let interval = self.scaling_interval(site);
        if let Some(interval) = interval.filter(|interval| now + interval <= self.end) {
            events.schedule_after(interval, GeoEvent::ScalingCheck(site as u16));
        }
        if self.compat {
            self.scale_as_cloudanalyst(site, events);
        } else if let Some(rule) = self.pools[site].site.autoscaling {
            self.scale(site, &rule, events);
        }
    }

    /// Starts as many instances as lower the utilisation to the upper bound, or retires one.
    fn scale(&mut self, site: usize, rule: &Autoscaling, events: &mut GeoEvents) {
        let now = events.now();
        let pool = &mut self.pools[site];
        let busy_ns = pool.busy_since_check(now);
        let open = pool.balancer.open_count();
        let utilisation = busy_ns / (rule.every_s * SECOND as f64) / open.max(1) as f64;
        let present = open as u32 + pool.starting;
        // Rounded so that a hair above the bound does not start two.
        let needed = (open as f64 * utilisation / rule.up_at - 1e-9).ceil() as u32;
        let needed = needed.min(rule.max);
        if utilisation > rule.up_at && present < needed {
            pool.starting += needed - present;
            for _ in present..needed {
                let delay = from_ms(rule.delay_s * 1e3);
                events.schedule_after(delay, GeoEvent::InstanceReady(site as u16));
            }
        } else if utilisation < rule.down_at && pool.starting == 0 && open as u32 > rule.min {
            let changed = pool.retire_instance(now);
            self.reschedule(site, changed, events);
        }
    }

    /// Puts a starting instance into service.
    pub(super) fn start_instance(&mut self, site: usize, events: &mut GeoEvents) {
        let pool = &mut self.pools[site];
        pool.starting -= 1;
        let changed = pool.add_instance(events.now());
        self.reschedule(site, changed, events);
        self.serve_waiting(site, events);
    }

    /// CloudAnalyst: adds an instance whenever the last processing time is not the best so far.
    fn scale_as_cloudanalyst(&mut self, site: usize, events: &mut GeoEvents) {
        let times = &mut self.broker.processing[site];
        let Some((last, _)) = times.last else { return };
        if times.best.is_none_or(|best| last <= best) {
            times.best = Some(last);
        } else if self.pools[site].balancer.open_count() <= CLOUDANALYST_MAX {
            self.pools[site].starting += 1;
            self.start_instance(site, events);
        }
    }
}
