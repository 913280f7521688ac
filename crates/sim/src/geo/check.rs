//! A scenario that cannot be simulated is refused, with the place and what to do.
use super::scenario::{Broker, Outage, Scenario, Site, UserBase};
use crate::error::Refused;

/// The version that is read here.
const VERSION: u32 = 1;
/// More hours than anything is simulated for: ten years.
const MOST_HOURS: f64 = 87_600.0;

fn refused<T>(what: String, hint: &str) -> Result<T, Refused> {
    Err(Refused::new(what, hint))
}

/// The value, if it lies within the bounds.
fn within(place: &str, value: f64, least: f64, most: f64) -> Result<(), Refused> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    refused(format!("{place} is {value}."), &format!("Give a number from {least} to {most}."))
}

/// The value, if it is above zero and not absurd.
fn above_zero(place: &str, value: f64) -> Result<(), Refused> {
    if value > 0.0 && value <= 1e15 {
        return Ok(());
    }
    refused(format!("{place} is {value}."), "Give a number above zero.")
}

impl Scenario {
    /// Reads a scenario from JSON and checks it. Refused: what cannot be read or simulated.
    pub fn from_json(text: &str) -> Result<Self, Refused> {
        let scenario: Self = serde_json::from_str(text).map_err(|error| {
            Refused::new(
                format!("The scenario cannot be read: {error}."),
                "Correct it there; `describe` lists the keys.",
            )
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// Seconds that are simulated before anything counts.
    pub fn warm_up_s(&self) -> f64 {
        self.warm_up_s.unwrap_or(if self.compat.is_some() { 0.0 } else { 60.0 })
    }

    /// Refuses values that mean nothing, each with its key. Names, ways and loads are checked when
    /// they are resolved.
    pub fn check(&self) -> Result<(), Refused> {
        if self.version != VERSION {
            let what = format!("The scenario is of version {}.", self.version);
            return refused(what, "This program reads version 1.");
        }
        above_zero("duration_h", self.duration_h)?;
        within("duration_h", self.duration_h, 0.0, MOST_HOURS)?;
        within("warm_up_s", self.warm_up_s(), 0.0, 86_400.0)?;
        within("failover_s", self.failover_s, 0.0, 86_400.0)?;
        above_zero("instructions", self.instructions)?;
        if let Some(objective) = self.objective_ms {
            above_zero("objective_ms", objective)?;
        }
        let (users, requests) = (self.grouping.users, self.grouping.requests);
        if users == 0 || requests == 0 || requests > users {
            return refused(
                format!("grouping is {users} users and {requests} requests."),
                "Give at least 1 each, and no more requests than users.",
            );
        }
        if let Broker::Overflow { requests_per_instance } = self.broker {
            above_zero("broker.overflow.requests_per_instance", requests_per_instance)?;
        }
        if self.user_bases.is_empty() {
            return refused("There are no user bases.".into(), "Give at least one.");
        }
        if self.sites.is_empty() {
            return refused("There are no sites.".into(), "Give at least one.");
        }
        self.check_names()?;
        self.user_bases.iter().try_for_each(|(name, base)| base.check(name))?;
        self.sites.iter().try_for_each(|(name, site)| site.check(name, self.broker))?;
        for (name, cache) in self.caches.iter() {
            within(&format!("caches.{name}.hit_ratio"), cache.hit_ratio, 0.0, 1.0)?;
            within(&format!("caches.{name}.serves_ms"), cache.serves_ms, 0.0, 3.6e6)?;
            within(
                &format!("caches.{name}.transfer_usd_per_gb"),
                cache.transfer_usd_per_gb,
                0.0,
                1e6,
            )?;
        }
        for failure in &self.link_failures {
            let place = format!("The failure between {}", failure.between.join(" and "));
            outage(&place, Outage { from_h: failure.from_h, to_h: failure.to_h })?;
        }
        if let super::scenario::Latency::Distance(rule) = &self.latency {
            within("latency.distance.fixed_ms", rule.fixed_ms, 0.0, 1e4)?;
            above_zero("latency.distance.km_per_ms", rule.km_per_ms)?;
            within("latency.distance.detour", rule.detour, 1.0, 100.0)?;
        }
        if self.broker == Broker::Weighted && self.sites.iter().all(|(_, site)| site.weight == 0.0)
        {
            return refused("All sites have weight 0.".into(), "Give one a weight above zero.");
        }
        self.check_compat()
    }

    /// Results are told by name: one name means one place.
    fn check_names(&self) -> Result<(), Refused> {
        let twice = self.caches.names().find(|name| self.sites.get(name).is_some());
        if let Some(name) = twice {
            return refused(
                format!("`{name}` is the name of a site and of a cache."),
                "Give one of them another name.",
            );
        }
        let ends = self.link_failures.iter().flat_map(|failure| &failure.between);
        for end in ends {
            if !self.knows(end) {
                return refused(
                    format!("A link failure names `{end}`, which is no place of the scenario."),
                    "Name a user base, site, cache or region.",
                );
            }
        }
        let most = usize::from(u16::MAX);
        if self.sites.len() > most || self.user_bases.len() > most {
            return refused(
                "The scenario has more than 65,535 sites or user bases.".into(),
                "Put some of them together.",
            );
        }
        Ok(())
    }

    fn knows(&self, name: &String) -> bool {
        let is = |region: &Option<String>| region.as_ref() == Some(name);
        self.user_bases.iter().any(|(known, base)| known == name || is(&base.region))
            || self.sites.iter().any(|(known, site)| known == name || is(&site.region))
            || self.caches.iter().any(|(known, cache)| known == name || is(&cache.region))
    }

    /// What the other tool does not have.
    fn check_compat(&self) -> Result<(), Refused> {
        if self.compat.is_none() {
            return Ok(());
        }
        let base = |is: fn(&UserBase) -> bool| self.user_bases.iter().any(|(_, base)| is(base));
        let site = |is: fn(&Site) -> bool| self.sites.iter().any(|(_, site)| is(site));
        let lacks = [
            ("caches", !self.caches.is_empty()),
            ("link_failures", !self.link_failures.is_empty()),
            ("think_time_s", base(|base| base.think_time_s.is_some())),
            ("page", base(|base| base.page.is_some())),
            ("access_mbps", base(|base| base.access_mbps.is_some())),
            ("fails", site(|site| !site.fails.is_empty())),
            ("reliability", site(|site| site.reliability.is_some())),
            ("autoscaling", site(|site| site.autoscaling.is_some())),
            ("warm_up_s", self.warm_up_s() > 0.0),
        ];
        let lack = lacks.iter().find(|(_, used)| *used).map(|(key, _)| *key);
        let rule = match self.broker {
            Broker::Weighted => Some("broker weighted"),
            Broker::Overflow { .. } => Some("broker overflow"),
            _ => None,
        };
        match lack.or(rule) {
            Some(key) => refused(
                format!("compat: cloudanalyst knows no {key}."),
                "Leave it out, or leave compat out.",
            ),
            None => Ok(()),
        }
    }
}

impl UserBase {
    fn check(&self, name: &str) -> Result<(), Refused> {
        let place = format!("user_bases.{name}");
        match (self.requests_per_user_h, self.think_time_s) {
            (Some(per_h), None) => above_zero(&format!("{place}.requests_per_user_h"), per_h)?,
            (None, Some(think)) => above_zero(&format!("{place}.think_time_s"), think)?,
            _ => {
                return refused(
                    format!("{place} has not exactly one of requests_per_user_h and think_time_s."),
                    "Give requests_per_user_h, or think_time_s if users wait for their answers.",
                )
            }
        }
        if let Some(mbps) = self.access_mbps {
            above_zero(&format!("{place}.access_mbps"), mbps)?;
        }
        self.page.as_ref().map_or(Ok(()), |page| page.check(&format!("{place}.page")))
    }
}

impl Site {
    fn check(&self, name: &str, broker: Broker) -> Result<(), Refused> {
        let place = format!("sites.{name}");
        for (key, count) in
            [("hosts", self.hosts), ("processors", self.processors), ("instances", self.instances)]
        {
            within(&format!("{place}.{key}"), f64::from(count), 1.0, 1e6)?;
        }
        above_zero(&format!("{place}.speed"), self.speed)?;
        within(&format!("{place}.weight"), self.weight, 0.0, 1e9)?;
        let price = self.price;
        within(&format!("{place}.price.instance_usd_per_h"), price.instance_usd_per_h, 0.0, 1e6)?;
        within(&format!("{place}.price.transfer_usd_per_gb"), price.transfer_usd_per_gb, 0.0, 1e6)?;
        above_zero(&format!("{place}.price.billed_s"), price.billed_s)?;
        for one in &self.fails {
            outage(&place, *one)?;
        }
        if let Some(chance) = self.reliability {
            above_zero(&format!("{place}.reliability.up_h"), chance.up_h)?;
            above_zero(&format!("{place}.reliability.down_h"), chance.down_h)?;
        }
        if broker == Broker::Reconfiguring && self.instances > 100 && self.autoscaling.is_none() {
            return refused(
                format!("{place} begins with {} instances; broker reconfiguring gives it no more than 100.", self.instances),
                "Give the site an autoscaling of its own.",
            );
        }
        self.autoscaling.map_or(Ok(()), |rule| {
            let place = format!("{place}.autoscaling");
            within(&format!("{place}.up_at"), rule.up_at, 0.01, 1.0)?;
            within(&format!("{place}.down_at"), rule.down_at, 0.0, rule.up_at)?;
            within(&format!("{place}.every_s"), rule.every_s, 1.0, 86_400.0)?;
            within(&format!("{place}.delay_s"), rule.delay_s, 0.0, 86_400.0)?;
            within(&format!("{place}.least"), f64::from(rule.least), 1.0, f64::from(rule.most))?;
            let most = f64::from(rule.most);
            within(&format!("{place}.most"), most, f64::from(self.instances), 1e6)
        })
    }
}

fn outage(place: &str, one: Outage) -> Result<(), Refused> {
    if one.from_h >= 0.0 && one.from_h < one.to_h && one.to_h.is_finite() {
        return Ok(());
    }
    refused(
        format!("{place} is down from hour {} to hour {}.", one.from_h, one.to_h),
        "Give the first and a later hour of the run.",
    )
}
