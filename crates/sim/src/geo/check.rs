//! Checks of a scenario that do not need its names to be resolved.
use super::scenario::{Broker, GeoScenario, Latency, Outage, Site, UserBase};
use crate::error::{check_version, positive, refuse, within, Result};

/// Maximum number of simulated hours: ten years.
const MAX_HOURS: f64 = 87_600.0;
/// Maximum size of a message: a petabyte.
const MAX_BYTES: f64 = 1e15;

impl GeoScenario {
    /// Returns the length of the warm-up in seconds.
    pub fn warm_up_s(&self) -> f64 {
        self.warm_up_s.unwrap_or(if self.compat.is_some() { 0.0 } else { 60.0 })
    }

    /// Returns an error for values out of bounds. Names, network paths and loads are checked when they
    /// are resolved.
    pub fn check(&self) -> Result<()> {
        check_version(self.version)?;
        positive("duration_h", self.duration_h)?;
        within("duration_h", self.duration_h, 0.0, MAX_HOURS)?;
        within("warm_up_s", self.warm_up_s(), 0.0, 86_400.0)?;
        within("failover_s", self.failover_s, 0.0, 86_400.0)?;
        positive("instructions", self.instructions)?;
        if let Some(objective) = self.objective_ms {
            positive("objective_ms", objective)?;
        }
        let (users, requests) = (self.grouping.users, self.grouping.requests);
        if users == 0 || requests == 0 || requests > users {
            return refuse(
                format!("grouping is {users} users and {requests} requests."),
                "Give at least 1 each, and no more requests than users.",
            );
        }
        if let Broker::Overflow { requests_per_instance } = self.broker {
            positive("broker.overflow.requests_per_instance", requests_per_instance)?;
        }
        if self.user_bases.is_empty() {
            return refuse("user_bases: there are no user bases.", "Give at least one.");
        }
        if self.sites.is_empty() {
            return refuse("sites: there are no sites.", "Give at least one.");
        }
        self.check_names()?;
        self.user_bases.iter().try_for_each(|(name, base)| base.check(name))?;
        self.sites.iter().try_for_each(|(name, site)| site.check(name, self.broker))?;
        for (name, cache) in self.caches.iter() {
            let key = |key: &str| format!("caches.{name}.{key}");
            within(&key("hit_ratio"), cache.hit_ratio, 0.0, 1.0)?;
            within(&key("service_ms"), cache.service_ms, 0.0, 3.6e6)?;
            within(&key("transfer_usd_per_gb"), cache.transfer_usd_per_gb, 0.0, 1e6)?;
        }
        for failure in &self.link_failures {
            let key = format!("link_failures: the one between {}", failure.between.join(" and "));
            check_outage(&key, Outage { from_h: failure.from_h, to_h: failure.to_h })?;
        }
        if let Latency::Distance(rule) = &self.latency {
            within("latency.distance.fixed_ms", rule.fixed_ms, 0.0, 1e4)?;
            positive("latency.distance.km_per_ms", rule.km_per_ms)?;
            within("latency.distance.detour", rule.detour, 1.0, 100.0)?;
        }
        let is_weighted = self.broker == Broker::Weighted;
        if is_weighted && self.sites.iter().all(|(_, site)| site.weight == 0.0) {
            return refuse("sites: all have weight 0.", "Give one a weight above zero.");
        }
        self.check_compat()
    }

    /// Results are reported by name, so names of sites and caches have to be unique.
    fn check_names(&self) -> Result<()> {
        if let Some(name) = self.caches.names().find(|name| self.sites.get(name).is_some()) {
            return refuse(
                format!("caches.{name}: a site has the same name."),
                "Give one of them another name.",
            );
        }
        let ends = self.link_failures.iter().flat_map(|failure| &failure.between);
        for end in ends {
            if !self.has_location(end) {
                return refuse(
                    format!("link_failures names `{end}`, which is no location of the scenario."),
                    "Name a user base, site, cache or region.",
                );
            }
        }
        let max = usize::from(u16::MAX);
        if self.sites.len() > max || self.user_bases.len() > max {
            let what = "The scenario has more than 65,535 sites or user bases.";
            return refuse(what, "Combine some of them.");
        }
        Ok(())
    }

    fn has_location(&self, name: &String) -> bool {
        let is = |region: &Option<String>| region.as_ref() == Some(name);
        self.user_bases.iter().any(|(known, base)| known == name || is(&base.region))
            || self.sites.iter().any(|(known, site)| known == name || is(&site.region))
            || self.caches.iter().any(|(known, cache)| known == name || is(&cache.region))
    }

    /// Returns an error for what CloudAnalyst does not have.
    fn check_compat(&self) -> Result<()> {
        if self.compat.is_none() {
            return Ok(());
        }
        let base = |is: fn(&UserBase) -> bool| self.user_bases.iter().any(|(_, base)| is(base));
        let site = |is: fn(&Site) -> bool| self.sites.iter().any(|(_, site)| is(site));
        let unsupported = [
            ("caches", !self.caches.is_empty()),
            ("link_failures", !self.link_failures.is_empty()),
            ("think_time_s", base(|base| base.think_time_s.is_some())),
            ("page", base(|base| base.page.is_some())),
            ("access_mbps", base(|base| base.access_mbps.is_some())),
            ("outages", site(|site| !site.outages.is_empty())),
            ("reliability", site(|site| site.reliability.is_some())),
            ("autoscaling", site(|site| site.autoscaling.is_some())),
            ("warm_up_s", self.warm_up_s() > 0.0),
            ("broker weighted", self.broker == Broker::Weighted),
            ("broker overflow", matches!(self.broker, Broker::Overflow { .. })),
        ];
        match unsupported.iter().find(|(_, is_used)| *is_used) {
            Some((key, _)) => {
                let what = format!("compat: cloudanalyst does not support {key}.");
                refuse(what, "Remove it, or remove compat.")
            }
            None => Ok(()),
        }
    }
}

impl UserBase {
    fn check(&self, name: &str) -> Result<()> {
        let key = format!("user_bases.{name}");
        match (self.requests_per_user_h, self.think_time_s) {
            (Some(per_h), None) => positive(&format!("{key}.requests_per_user_h"), per_h)?,
            (None, Some(think_s)) => positive(&format!("{key}.think_time_s"), think_s)?,
            _ => {
                return refuse(
                    format!("{key} has not exactly one of requests_per_user_h and think_time_s."),
                    "Give requests_per_user_h, or think_time_s if users wait for responses.",
                )
            }
        };
        within(&format!("{key}.request_bytes"), self.request_bytes as f64, 0.0, MAX_BYTES)?;
        within(&format!("{key}.response_bytes"), self.response_bytes as f64, 0.0, MAX_BYTES)?;
        if let Some(mbps) = self.access_mbps {
            positive(&format!("{key}.access_mbps"), mbps)?;
        }
        self.page.as_ref().map_or(Ok(()), |page| page.check(&format!("{key}.page")))
    }
}

impl Site {
    fn check(&self, name: &str, broker: Broker) -> Result<()> {
        let site = format!("sites.{name}");
        let key = |key: &str| format!("{site}.{key}");
        within(&key("hosts"), f64::from(self.hosts), 1.0, 1e6)?;
        within(&key("processors"), f64::from(self.processors), 1.0, 1e6)?;
        within(&key("instances"), f64::from(self.instances), 1.0, 1e6)?;
        positive(&key("speed"), self.speed)?;
        within(&key("weight"), self.weight, 0.0, 1e9)?;
        let price = self.price;
        within(&key("price.instance_usd_per_h"), price.instance_usd_per_h, 0.0, 1e6)?;
        within(&key("price.transfer_usd_per_gb"), price.transfer_usd_per_gb, 0.0, 1e6)?;
        positive(&key("price.billed_s"), price.billed_s)?;
        for outage in &self.outages {
            check_outage(&site, *outage)?;
        }
        if let Some(failures) = self.reliability {
            positive(&key("reliability.up_h"), failures.up_h)?;
            positive(&key("reliability.down_h"), failures.down_h)?;
        }
        let Some(rule) = self.autoscaling else {
            if broker == Broker::Reconfiguring && self.instances > 100 {
                return refuse(
                    format!(
                        "{site}.instances is {}; broker reconfiguring allows 100.",
                        self.instances
                    ),
                    "Give the site an autoscaling rule of its own.",
                );
            }
            return Ok(());
        };
        let max = f64::from(rule.max);
        within(&key("autoscaling.up_at"), rule.up_at, 0.01, 1.0)?;
        within(&key("autoscaling.down_at"), rule.down_at, 0.0, rule.up_at)?;
        within(&key("autoscaling.every_s"), rule.every_s, 1.0, 86_400.0)?;
        within(&key("autoscaling.delay_s"), rule.delay_s, 0.0, 86_400.0)?;
        within(&key("autoscaling.min"), f64::from(rule.min), 1.0, max)?;
        within(&key("autoscaling.max"), max, f64::from(self.instances), 1e6)?;
        Ok(())
    }
}

fn check_outage(key: &str, outage: Outage) -> Result<()> {
    let Outage { from_h, to_h } = outage;
    if from_h >= 0.0 && from_h < to_h && to_h.is_finite() {
        return Ok(());
    }
    refuse(
        format!("{key} is down from hour {from_h} to hour {to_h}."),
        "Give the start and a later hour of the run.",
    )
}
