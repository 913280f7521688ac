//! The result of a placement: sites, their cost and response time, and the sensitivity of the choice.
use super::config::PlacementConfig;
use super::problem::{Evaluation, Problem};
use super::problem_from_scenario::Scaling;
use super::search::{search, Goal, SearchResult};
use crate::error::{refuse, Result};
use crate::geo::scenario::GeoScenario;
use crate::samples::Sink;
use serde::Serialize;
use serde_json::{json, Value};

/// Results of the simulation of a set of sites.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// Share of the responses within the objective.
    pub within_ratio: f64,
    pub response_time_mean_ns: f64,
}

/// A set of sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// In closed form.
    pub expected: Evaluation,
    /// Simulated once with the seed of the placement, if it was among the best.
    pub simulated: Option<Simulated>,
}

/// The placement with other latencies or other numbers of users.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub scaling: Scaling,
    /// The chosen sites under this change.
    pub chosen: Evaluation,
    /// Whether they still reach the goal.
    pub is_met: bool,
    /// What would be chosen then.
    pub best: Evaluation,
}

/// The chosen sites.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Names of the candidates, by number.
    pub names: Vec<String>,
    pub chosen: Choice,
    /// Whether the chosen sites reach the goal in closed form; if not, nothing within the limits does
    /// (if `is_exact`), and these come nearest.
    pub is_met: bool,
    /// Whether they did so in the simulation as well; None if they were not simulated.
    pub is_confirmed: Option<bool>,
    /// All sets were compared.
    pub is_exact: bool,
    /// Maximum distance from the best set in closed form; see [`SearchResult::bound_ratio`].
    pub bound_ratio: Option<f64>,
    /// Number of sets compared.
    pub evaluated: u64,
    /// The Pareto front of cost and users within the objective, by cost.
    pub front: Vec<Choice>,
    /// With other latencies and other numbers of users.
    pub sensitivity: Vec<Change>,
}

/// Chooses sites as the key `place` of a scenario asks for, with the default limits if it is left out.
/// Returns an error for a load that no set of sites can serve.
pub fn run(scenario: &GeoScenario, seed: u64) -> Result<Placement> {
    let config = &scenario.place.clone().unwrap_or_default();
    config.check(scenario)?;
    let goal = Goal {
        within_ratio: config.within_ratio,
        budget_usd_per_h: config.budget_usd_per_h,
        sites_max: config.max_sites(scenario),
    };
    let problem = Problem::new(scenario, config, Scaling::NONE)?;
    let names: Vec<String> = problem.candidates.iter().map(|site| site.name.clone()).collect();
    let SearchResult { chosen, mut front, is_exact, bound_ratio, evaluated } =
        search(&problem, &goal);
    if chosen.utilisation >= 1.0 {
        let sites: Vec<&str> = chosen.sites.iter().map(|site| names[*site].as_str()).collect();
        return refuse(
            format!(
                "No {} of the sites can serve the load: even with {} the busiest is offered {:.2} \
                 times its capacity.",
                goal.sites_max,
                sites.join(", "),
                chosen.utilisation
            ),
            "Give the sites more instances or a size_for_utilisation, or allow more sites.",
        );
    }
    if !front.iter().any(|set| set.sites == chosen.sites) {
        front.push(chosen);
        front.sort_by(|a, b| a.cost_usd_per_h.total_cmp(&b.cost_usd_per_h));
    }
    let choice = |expected| Choice { expected, simulated: None };
    let mut front: Vec<Choice> = front.into_iter().map(choice).collect();
    let chosen = confirm(scenario, config, &goal, &names, &mut front, seed)?;
    let is_met = goal.is_met(&chosen.expected);
    let sensitivity = sensitivity(scenario, config, &goal, &chosen.expected.sites)?;
    let is_confirmed = chosen.simulated.map(|simulated| holds(&goal, &simulated) && is_met);
    Ok(Placement {
        names,
        chosen,
        is_met,
        is_confirmed,
        is_exact,
        bound_ratio,
        evaluated,
        front,
        sensitivity,
    })
}

fn holds(goal: &Goal, simulated: &Simulated) -> bool {
    goal.within_ratio.is_none_or(|required| simulated.within_ratio >= required)
}

/// Simulates the best sets of the front. Returns the first that reaches the goal in the simulation, else
/// the best.
fn confirm(
    scenario: &GeoScenario,
    config: &PlacementConfig,
    goal: &Goal,
    names: &[String],
    front: &mut [Choice],
    seed: u64,
) -> Result<Choice> {
    let mut order: Vec<usize> = (0..front.len()).collect();
    order.sort_by(|a, b| goal.compare(&front[*a].expected, &front[*b].expected));
    let mut chosen = None;
    for number in order.iter().copied().take(config.simulate as usize) {
        let choice = &mut front[number];
        let simulated = simulate(scenario, config, names, &choice.expected, seed)?;
        choice.simulated = Some(simulated);
        if chosen.is_none() && goal.is_met(&choice.expected) && holds(goal, &simulated) {
            chosen = Some(number);
        }
    }
    Ok(front[chosen.unwrap_or(order[0])].clone())
}

/// Simulates the scenario with a set of its sites.
fn simulate(
    scenario: &GeoScenario,
    config: &PlacementConfig,
    names: &[String],
    set: &Evaluation,
    seed: u64,
) -> Result<Simulated> {
    let mut part = scenario.clone();
    let index_of = |name: &str| set.sites.iter().position(|site| names[*site] == name);
    part.sites.0.retain(|(name, _)| index_of(name).is_some());
    for (name, site) in &mut part.sites.0 {
        if let Some(index) = index_of(name).filter(|_| config.size_for_utilisation.is_some()) {
            site.instances = set.instances[index] as u32;
            site.autoscaling = None;
        }
    }
    let outcome = crate::geo::run(&part, seed)?;
    let unserved: u64 = outcome.regions.iter().map(|region| region.unserved).sum();
    let within: u64 = outcome.regions.iter().map(|region| region.within).sum();
    let sent = outcome.requests() + unserved;
    Ok(Simulated {
        within_ratio: if sent > 0 { within as f64 / sent as f64 } else { 0.0 },
        response_time_mean_ns: outcome.mean_ns(|_| true).unwrap_or(f64::NAN),
    })
}

fn sensitivity(
    scenario: &GeoScenario,
    config: &PlacementConfig,
    goal: &Goal,
    chosen: &[usize],
) -> Result<Vec<Change>> {
    let latency = |latency: &f64| Scaling { latency: *latency, growth: 1.0 };
    let growth = |growth: &f64| Scaling { latency: 1.0, growth: *growth };
    let latencies = config.latency_factors.iter().map(latency);
    latencies
        .chain(config.growth_factors.iter().map(growth))
        .map(|scaling| {
            let problem = Problem::new(scenario, config, scaling)?;
            let chosen = problem.evaluate(chosen);
            let best = search(&problem, goal).chosen;
            Ok(Change { scaling, is_met: goal.is_met(&chosen), chosen, best })
        })
        .collect()
}

impl Placement {
    pub fn emit(&self, sink: &mut Sink<'_>) {
        let chosen = &self.chosen.expected;
        sink.scalar("within_objective_ratio", &[], chosen.within_ratio);
        sink.scalar("cost_usd_per_h", &[], chosen.cost_usd_per_h);
        sink.scalar("bound_ratio", &[], self.bound_ratio);
    }

    /// Returns the documents `chosen`, `front` and `sensitivity`.
    pub fn documents(&self) -> [(&'static str, Value); 3] {
        let mut chosen = self.choice(&self.chosen);
        chosen["met"] = json!(self.is_met);
        chosen["confirmed"] = json!(self.is_confirmed);
        chosen["exact"] = json!(self.is_exact);
        chosen["bound_ratio"] = json!(self.bound_ratio);
        chosen["tried"] = json!(self.evaluated);
        let front: Vec<Value> = self.front.iter().map(|choice| self.choice(choice)).collect();
        let changes: Vec<Value> =
            self.sensitivity.iter().map(|change| self.change(change)).collect();
        [("chosen", chosen), ("front", json!(front)), ("sensitivity", json!(changes))]
    }

    fn set(&self, set: &Evaluation) -> Value {
        let names: Vec<&str> = set.sites.iter().map(|site| self.names[*site].as_str()).collect();
        let instances = names.iter().zip(&set.instances);
        let instances: serde_json::Map<String, Value> =
            instances.map(|(name, count)| ((*name).to_owned(), json!(count))).collect();
        json!({
            "sites": names,
            "instances": instances,
            "cost_usd_per_h": set.cost_usd_per_h,
            "within_ratio": set.within_ratio,
            "response_time_mean_ns": set.response_ms.map(|ms| ms * 1e6),
            "utilisation_ratio": set.utilisation,
        })
    }

    fn choice(&self, choice: &Choice) -> Value {
        let mut value = self.set(&choice.expected);
        value["simulated"] = json!(choice.simulated);
        value
    }

    fn change(&self, change: &Change) -> Value {
        json!({
            "latency_factor": change.scaling.latency,
            "growth_factor": change.scaling.growth,
            "chosen": self.set(&change.chosen),
            "met": change.is_met,
            "overloaded": change.chosen.utilisation >= 1.0,
            "best": self.set(&change.best),
            "same": change.chosen.sites == change.best.sites,
        })
    }
}
