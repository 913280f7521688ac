//! What is asked: which sites, within which limits.
use crate::error::Refused;
use crate::geo::scenario::Scenario;
use serde::{Deserialize, Serialize};

/// Which of a scenario's sites should there be? With `within_ratio` the cheapest that bring this
/// part of the responses within the objective; without, those that bring the largest part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Question {
    /// Most sites; without it, as many as there are candidates.
    pub sites_max: Option<u32>,
    /// Part of the responses that has to come within the objective.
    pub within_ratio: Option<f64>,
    /// Most US dollars an hour, averaged over the day.
    pub budget_usd_per_h: Option<f64>,
    /// Sites that are there already, and stay.
    pub keep: Vec<String>,
    /// Sites among which is chosen; all when empty.
    pub candidates: Vec<String>,
    /// Instances are counted so that no hour's utilisation is above this; without it, sites have the
    /// instances that the scenario gives them.
    pub size_for_utilisation: Option<f64>,
    /// The answer is looked for again with latencies multiplied by these.
    pub latency_factors: Vec<f64>,
    /// And with users multiplied by these.
    pub growth_factors: Vec<f64>,
    /// How many sets of the front are simulated: the chosen one first, then its neighbours.
    pub simulate: u32,
}

fn above_zero(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

impl Default for Question {
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

impl Question {
    /// Refused, each in one sentence: parts that are none, money that is none, unknown sites, more
    /// sites kept than allowed, a scenario without an objective or in another tool's model.
    pub fn check(&self, scenario: &Scenario) -> Result<(), Refused> {
        let no = |what: String, hint: &str| Err(Refused::new(what, hint));
        if scenario.objective_ms.is_none() {
            return no(
                "The scenario has no objective_ms, by which sites could be compared.".into(),
                "Give objective_ms: a response within so many milliseconds satisfies.",
            );
        }
        if scenario.compat.is_some() {
            return no(
                "Sites are not chosen in the model of another tool (compat).".into(),
                "Leave compat out: its quirks would decide.",
            );
        }
        for (name, part) in [
            ("within_ratio", self.within_ratio),
            ("size_for_utilisation", self.size_for_utilisation),
        ] {
            if let Some(part) = part.filter(|part| !(*part > 0.0 && *part <= 1.0)) {
                return no(
                    format!("{name} is {part}, which is no part from 0 to 1."),
                    "Write 95 % as 0.95.",
                );
            }
        }
        if let Some(budget) = self.budget_usd_per_h.filter(|budget| !above_zero(*budget)) {
            return no(
                format!("budget_usd_per_h is {budget}: nothing can be had for it."),
                "Give US dollars an hour above zero.",
            );
        }
        let factors = self.latency_factors.iter().chain(&self.growth_factors);
        if let Some(factor) = factors.copied().find(|one| !above_zero(*one)) {
            return no(
                format!("The factor {factor} is no number above zero."),
                "Give factors such as 0.8 and 1.25.",
            );
        }
        if let Some(name) =
            self.keep.iter().chain(&self.candidates).find(|name| scenario.sites.get(name).is_none())
        {
            let known: Vec<&str> = scenario.sites.names().collect();
            return no(
                format!("There is no site `{name}` in the scenario."),
                &format!("Its sites are {}.", known.join(", ")),
            );
        }
        self.check_number(scenario)
    }

    fn check_number(&self, scenario: &Scenario) -> Result<(), Refused> {
        let most = self.most(scenario);
        if most == 0 || self.keep.len() > most {
            return Err(Refused::new(
                format!("At most {most} sites are allowed, and {} are kept.", self.keep.len()),
                "Raise sites_max to one or more, and to the number of the sites in keep.",
            ));
        }
        Ok(())
    }

    /// Most sites of a set.
    pub(super) fn most(&self, scenario: &Scenario) -> usize {
        self.sites_max.map_or(scenario.sites.len(), |most| most as usize)
    }

    /// Names of the sites that can be part of the answer, in the scenario's order.
    pub(super) fn names<'a>(&self, scenario: &'a Scenario) -> Vec<&'a str> {
        let asked = |name: &&str| {
            let name = (*name).to_owned();
            self.candidates.is_empty()
                || self.candidates.contains(&name)
                || self.keep.contains(&name)
        };
        scenario.sites.names().filter(asked).collect()
    }
}
