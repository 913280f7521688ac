//! The samples of an outcome. Times are in nanoseconds; hours are those of the day in UTC.
use super::outcome::{GeoOutcome, RegionOutcome};
use crate::samples::{FactorPairs, Sink};
use crate::statistics::Moments;
use serde_json::json;

impl GeoOutcome {
    pub fn emit(&self, sink: &mut Sink<'_>) {
        let overall = self.overall();
        sink.histogram("response_time_ns", &[], overall.pairs());
        emit_range(sink, &[], overall.moments(), self.mean_ns(|_| true));
        sink.scalar("requests", &[], self.requests() as f64);
        sink.scalar("cost_usd", &[], self.cost_usd());
        self.emit_ratios(sink, &[], &self.regions.iter().collect::<Vec<_>>());
        for base in &self.bases {
            emit_range(sink, &[("user_base", json!(base.name))], &base.times, base.times.mean());
        }
        for (number, region) in self.regions.iter().enumerate() {
            let of = [("region", json!(region.name))];
            sink.histogram("response_time_ns", &of, region.times.pairs());
            let mean = self.mean_ns(|base| base.region == number);
            emit_range(sink, &of, region.times.moments(), mean);
            sink.scalar("requests", &of, region.requests as f64);
            self.emit_ratios(sink, &of, &[region]);
        }
        for (hour, times) in self.hours.iter().enumerate() {
            let of = [("hour", json!(hour.to_string()))];
            sink.scalar("response_time_mean_ns", &of, times.mean());
        }
        self.emit_sites(sink);
    }

    fn emit_ratios(&self, sink: &mut Sink<'_>, of: &FactorPairs<'_>, regions: &[&RegionOutcome]) {
        let sum = |count: fn(&RegionOutcome) -> u64| {
            regions.iter().map(|region| count(region)).sum::<u64>() as f64
        };
        let unserved = sum(|region| region.unserved);
        let sent = sum(|region| region.requests) + unserved;
        if sent == 0.0 {
            return;
        }
        sink.scalar("unserved_ratio", of, unserved / sent);
        if self.objective_ns.is_some() {
            sink.scalar("within_objective_ratio", of, sum(|region| region.within) / sent);
        }
    }

    fn emit_sites(&self, sink: &mut Sink<'_>) {
        for site in &self.sites {
            let name = ("site", json!(site.name));
            let of = [name.clone()];
            let with = |factor: &'static str, level: &str| [name.clone(), (factor, json!(level))];
            sink.histogram("response_time_ns", &of, site.times.pairs());
            emit_range(sink, &of, site.times.moments(), site.times.moments().mean());
            sink.scalar("processing_time_mean_ns", &of, site.processing.mean());
            sink.scalar("requests", &of, site.by_hour.iter().sum::<u64>() as f64);
            for (hour, requests) in site.by_hour.iter().enumerate() {
                sink.scalar("requests", &with("hour", &hour.to_string()), *requests as f64);
            }
            sink.scalar("utilisation_ratio", &of, site.utilisation);
            for (hour, mean) in &site.instances {
                sink.scalar("instances", &with("hour", &hour.to_string()), *mean);
            }
            sink.scalar("cost_usd", &with("part", "instances"), site.instances_usd);
            sink.scalar("cost_usd", &with("part", "transfer"), site.transfer_usd);
        }
    }
}

fn emit_range(sink: &mut Sink<'_>, of: &FactorPairs<'_>, times: &Moments, mean: Option<f64>) {
    let Some((min, max)) = times.range() else { return };
    sink.scalar("response_time_mean_ns", of, mean);
    sink.scalar("response_time_min_ns", of, min);
    sink.scalar("response_time_max_ns", of, max);
}
