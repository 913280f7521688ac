//! An outcome as the samples of a trial: metric, factors, value, how often.
use super::seen::{Outcome, RegionSeen};
use crate::tally::{Moments, Times};

/// Takes a sample: metric, factors, value, how often it was seen.
pub type Emit<'a> = &'a mut dyn FnMut(&str, &[(&str, String)], f64, u64);

/// What a sample is about.
type Factors<'a> = [(&'a str, String)];

impl Outcome {
    /// Tells every sample. Times are in nanoseconds; hours are those of the day in UTC.
    pub fn samples(&self, emit: Emit<'_>) {
        let overall = self.overall();
        histogram(emit, &[], &overall);
        extremes(emit, &[], overall.moments(), self.mean_ns(|_| true));
        emit("requests", &[], self.requests() as f64, 1);
        emit("cost_usd", &[], self.cost_usd(), 1);
        self.shares(emit, &[], &self.regions.iter().collect::<Vec<_>>());
        for base in &self.bases {
            extremes(emit, &[("user_base", base.name.clone())], &base.times, base.times.mean());
        }
        for (number, region) in self.regions.iter().enumerate() {
            let of = [("region", region.name.clone())];
            histogram(emit, &of, &region.times);
            let mean = self.mean_ns(|base| base.region == number);
            extremes(emit, &of, region.times.moments(), mean);
            emit("requests", &of, region.requests as f64, 1);
            self.shares(emit, &of, &[region]);
        }
        for (hour, times) in self.hours.iter().enumerate() {
            if let Some(mean) = times.mean() {
                emit("response_time_mean_ns", &[("hour", hour.to_string())], mean, 1);
            }
        }
        self.sites(emit);
    }

    fn shares(&self, emit: Emit<'_>, of: &Factors<'_>, regions: &[&RegionSeen]) {
        let sum = |count: fn(&RegionSeen) -> u64| {
            regions.iter().map(|region| count(region)).sum::<u64>() as f64
        };
        let unserved = sum(|region| region.unserved);
        let asked = sum(|region| region.requests) + unserved;
        if asked == 0.0 {
            return;
        }
        emit("unserved_ratio", of, unserved / asked, 1);
        if self.objective_ns.is_some() {
            emit("within_objective_ratio", of, sum(|region| region.within) / asked, 1);
        }
    }

    fn sites(&self, emit: Emit<'_>) {
        for site in &self.sites {
            let of = [("site", site.name.clone())];
            histogram(emit, &of, &site.times);
            extremes(emit, &of, site.times.moments(), site.times.moments().mean());
            if let Some(mean) = site.processing.mean() {
                emit("processing_time_mean_ns", &of, mean, 1);
            }
            emit("requests", &of, site.by_hour.iter().sum::<u64>() as f64, 1);
            for (hour, requests) in site.by_hour.iter().enumerate() {
                emit("requests", &at_hour(&site.name, hour), *requests as f64, 1);
            }
            if let Some(utilisation) = site.utilisation {
                emit("utilisation_ratio", &of, utilisation, 1);
            }
            for (hour, mean) in &site.instances {
                emit("instances", &at_hour(&site.name, *hour), *mean, 1);
            }
            for (part, usd) in [("instances", site.instances_usd), ("transfer", site.transfer_usd)]
            {
                let of = [("site", site.name.clone()), ("part", part.to_string())];
                emit("cost_usd", &of, usd, 1);
            }
        }
    }
}

fn at_hour(site: &str, hour: usize) -> [(&'static str, String); 2] {
    [("site", site.to_string()), ("hour", hour.to_string())]
}

fn histogram(emit: Emit<'_>, of: &Factors<'_>, times: &Times) {
    let histogram = times.histogram();
    for step in histogram.iter_recorded() {
        let value = histogram.median_equivalent(step.value_iterated_to()) as f64;
        emit("response_time_ns", of, value, step.count_at_value());
    }
}

fn extremes(emit: Emit<'_>, of: &Factors<'_>, times: &Moments, mean: Option<f64>) {
    let Some((least, largest)) = times.range() else { return };
    if let Some(mean) = mean {
        emit("response_time_mean_ns", of, mean, 1);
    }
    emit("response_time_min_ns", of, least, 1);
    emit("response_time_max_ns", of, largest, 1);
}
