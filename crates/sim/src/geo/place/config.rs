//! Keys of a placement: which sites to choose, within which limits.
use crate::error::{positive, refuse, within, Result};
use crate::geo::scenario::GeoScenario;
use serde::Deserialize;

/// Placement: which of the sites to choose. With `within_ratio` the cheapest that answer this share of
/// the requests within the objective; without, those that answer the largest share.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PlacementConfig {
    /// Maximum number of sites; no limit if left out.
    pub sites_max: Option<u32>,
    /// Required share of the responses within the objective.
    pub within_ratio: Option<f64>,
    /// Maximum cost in US dollars per hour, averaged over the day.
    pub budget_usd_per_h: Option<f64>,
    /// Existing sites, which are part of every choice.
    pub keep: Vec<String>,
    /// Sites to choose from; empty: all.
    pub candidates: Vec<String>,
    /// Maximum utilisation in any hour, for which sites get as many instances as needed; if left out,
    /// they have the instances of the scenario.
    pub size_for_utilisation: Option<f64>,
    /// Factors of all latencies for the sensitivity analysis.
    pub latency_factors: Vec<f64>,
    /// Factors of the number of users for the sensitivity analysis.
    pub growth_factors: Vec<f64>,
    /// Number of sets of the Pareto front that are simulated, the best first.
    pub simulate: u32,
}

impl Default for PlacementConfig {
    fn default() -> Self {
        Self {
            sites_max: None,
            within_ratio: None,
            budget_usd_per_h: None,
            keep: Vec::new(),
            candidates: Vec::new(),
            size_for_utilisation: None,
            latency_factors: vec![0.8, 0.9, 1.1, 1.25],
            growth_factors: vec![0.75, 1.5, 2.0],
            simulate: 3,
        }
    }
}

impl PlacementConfig {
    /// Returns an error for values out of bounds, unknown sites, more sites kept than allowed, and a
    /// scenario without an objective or in compatibility mode.
    pub fn check(&self, scenario: &GeoScenario) -> Result<()> {
        if scenario.objective_ms.is_none() {
            return refuse(
                "The scenario has no objective_ms, by which sites could be compared.",
                "Give objective_ms, the response time objective in milliseconds.",
            );
        }
        if scenario.compat.is_some() {
            return refuse(
                "compat: sites cannot be chosen in compatibility mode.",
                "Remove compat: its errors would decide.",
            );
        }
        for (key, ratio) in [
            ("within_ratio", self.within_ratio),
            ("size_for_utilisation", self.size_for_utilisation),
        ] {
            if let Some(ratio) = ratio {
                positive(&format!("place.{key}"), ratio)?;
                within(&format!("place.{key}"), ratio, 0.0, 1.0)?;
            }
        }
        let budget = self.budget_usd_per_h.iter().map(|usd| ("budget_usd_per_h", usd));
        let latency = self.latency_factors.iter().map(|factor| ("latency_factors", factor));
        let growth = self.growth_factors.iter().map(|factor| ("growth_factors", factor));
        for (key, value) in budget.chain(latency).chain(growth) {
            positive(&format!("place.{key}"), *value)?;
        }
        let mut named = self.keep.iter().chain(&self.candidates);
        if let Some(name) = named.find(|name| scenario.sites.get(name).is_none()) {
            let known: Vec<&str> = scenario.sites.names().collect();
            let hint = format!("Its sites are {}.", known.join(", "));
            return refuse(format!("place: the scenario has no site `{name}`."), hint);
        }
        let (max, kept_sites) = (self.max_sites(scenario), self.keep.len());
        if max == 0 || kept_sites > max {
            return refuse(
                format!("place.sites_max is {max}, and {kept_sites} sites are kept."),
                "Raise sites_max to at least 1 and to the number of sites in keep.",
            );
        }
        Ok(())
    }

    pub(super) fn max_sites(&self, scenario: &GeoScenario) -> usize {
        self.sites_max.map_or(scenario.sites.len(), |max| max as usize)
    }

    /// Returns the names of the sites that can be chosen, in the scenario's order.
    pub(super) fn names<'a>(&self, scenario: &'a GeoScenario) -> Vec<&'a str> {
        let is_listed = |name: &str| self.candidates.iter().chain(&self.keep).any(|n| n == name);
        let all = self.candidates.is_empty();
        scenario.sites.names().filter(|name| all || is_listed(name)).collect()
    }
}
