//! The answer to a question: sites, what they cost and bring, and how far that carries.
use super::from::Factors;
use super::problem::{Evaluation, Problem};
use super::question::Question;
use super::search::{search, Found, Goal};
use crate::error::Refused;
use crate::geo::scenario::Scenario;
use crate::geo::Emit;
use serde_json::{json, Value};

/// What a simulation of a set of sites gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Simulated {
    /// Part of the responses within the objective.
    pub within_ratio: f64,
    /// Mean response time.
    pub response_time_mean_ns: f64,
}

/// A set of sites, in closed form, and simulated if it was its turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// In closed form.
    pub expected: Evaluation,
    /// Simulated once, with the seed of the answer.
    pub simulated: Option<Simulated>,
}

/// The answer where latencies or users are others.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// What is another.
    pub factors: Factors,
    /// What the chosen sites give then.
    pub chosen: Evaluation,
    /// Whether they still do what was asked for.
    pub met: bool,
    /// What would be chosen then.
    pub best: Evaluation,
}

/// Which sites.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Names of the candidates, by number.
    pub names: Vec<String>,
    /// The chosen sites.
    pub chosen: Choice,
    /// They do what was asked for, in closed form; if not, nothing does within the limits (where
    /// `exact`), and these come nearest.
    pub met: bool,
    /// They did so in the simulation as well; None if they were not simulated.
    pub confirmed: Option<bool>,
    /// All sets were compared.
    pub exact: bool,
    /// How far from the best they can be at most, in closed form; see [`Found::bound_ratio`].
    pub bound_ratio: Option<f64>,
    /// Sets compared.
    pub tried: u64,
    /// Sets that none beats in both cost and users, by cost.
    pub front: Vec<Choice>,
    /// With other latencies and other users.
    pub sensitivity: Vec<Change>,
}

/// Answers the question under `place` in a scenario, the default one if there is none; simulations
/// begin with that seed.
///
/// Refused: what [`Question::check`] and the scenario's own checks refuse, and a load that no set
/// of sites can serve.
pub fn run(scenario: &Scenario, seed: u64) -> Result<Answer, Refused> {
    let question = &scenario.place.clone().unwrap_or_default();
    question.check(scenario)?;
    let goal = Goal {
        within_ratio: question.within_ratio,
        budget_usd_per_h: question.budget_usd_per_h,
        sites_max: question.most(scenario),
    };
    let problem = Problem::of(scenario, question, Factors::NONE)?;
    let found = search(&problem, &goal);
    if found.chosen.utilisation >= 1.0 {
        return Err(overloaded(&problem, &found, goal.sites_max));
    }
    let Found { chosen, mut front, exact, bound_ratio, tried } = found;
    if !front.iter().any(|one| one.sites == chosen.sites) {
        front.push(chosen.clone());
        front.sort_by(|a, b| a.cost_usd_per_h.total_cmp(&b.cost_usd_per_h));
    }
    let mut front: Vec<Choice> =
        front.into_iter().map(|expected| Choice { expected, simulated: None }).collect();
    let names: Vec<String> = problem.candidates.iter().map(|one| one.name.clone()).collect();
    let chosen = confirm(scenario, question, &goal, &names, &mut front, seed)?;
    let met = goal.met(&chosen.expected);
    let sensitivity = sensitivity(scenario, question, &goal, &chosen.expected.sites)?;
    let confirmed = chosen.simulated.map(|one| holds(&goal, &one) && met);
    Ok(Answer { names, chosen, met, confirmed, exact, bound_ratio, tried, front, sensitivity })
}

fn overloaded(problem: &Problem, found: &Found, most: usize) -> Refused {
    let names: Vec<&str> =
        found.chosen.sites.iter().map(|site| problem.candidates[*site].name.as_str()).collect();
    Refused::new(
        format!(
            "No {most} of the sites can serve the load: even with {} the busiest is offered {:.2} \
             times what it can serve.",
            names.join(", "),
            found.chosen.utilisation
        ),
        "Give the sites more instances or a size_for_utilisation, or allow more sites.",
    )
}

fn holds(goal: &Goal, seen: &Simulated) -> bool {
    goal.within_ratio.is_none_or(|wanted| seen.within_ratio >= wanted)
}

/// Simulates the best sets of the front, in the order of the goal; the first that does in the
/// simulation what was asked for is chosen, else the first.
fn confirm(
    scenario: &Scenario,
    question: &Question,
    goal: &Goal,
    names: &[String],
    front: &mut [Choice],
    seed: u64,
) -> Result<Choice, Refused> {
    let mut order: Vec<usize> = (0..front.len()).collect();
    order.sort_by(|a, b| goal.compare(&front[*a].expected, &front[*b].expected));
    let mut chosen = None;
    for number in order.iter().copied().take(question.simulate as usize) {
        let one = &mut front[number];
        let seen = simulate(scenario, question, names, &one.expected, seed)?;
        one.simulated = Some(seen);
        if chosen.is_none() && goal.met(&one.expected) && holds(goal, &seen) {
            chosen = Some(number);
        }
    }
    Ok(front[chosen.unwrap_or(order[0])].clone())
}

/// The scenario with these sites only, simulated once.
fn simulate(
    scenario: &Scenario,
    question: &Question,
    names: &[String],
    set: &Evaluation,
    seed: u64,
) -> Result<Simulated, Refused> {
    let mut part = scenario.clone();
    let of = |name: &str| set.sites.iter().position(|site| names[*site] == name);
    part.sites.0.retain(|(name, _)| of(name).is_some());
    for (name, site) in &mut part.sites.0 {
        if let Some(place) = of(name).filter(|_| question.size_for_utilisation.is_some()) {
            site.instances = set.instances[place] as u32;
            site.autoscaling = None;
        }
    }
    let (mut within_ratio, mut response_time_mean_ns) = (0.0, f64::NAN);
    crate::geo::run(&part, seed)?.samples(&mut |metric, factors, value, _| match (
        metric,
        factors.is_empty(),
    ) {
        ("within_objective_ratio", true) => within_ratio = value,
        ("response_time_mean_ns", true) => response_time_mean_ns = value,
        _ => {}
    });
    Ok(Simulated { within_ratio, response_time_mean_ns })
}

fn sensitivity(
    scenario: &Scenario,
    question: &Question,
    goal: &Goal,
    chosen: &[usize],
) -> Result<Vec<Change>, Refused> {
    let latencies = question.latency_factors.iter();
    let growths = question.growth_factors.iter();
    latencies
        .map(|latency| Factors { latency: *latency, growth: 1.0 })
        .chain(growths.map(|growth| Factors { latency: 1.0, growth: *growth }))
        .map(|factors| {
            let problem = Problem::of(scenario, question, factors)?;
            let then = problem.evaluate(chosen);
            let best = search(&problem, goal).chosen;
            Ok(Change { factors, met: goal.met(&then), chosen: then, best })
        })
        .collect()
}

impl Answer {
    /// What was found as samples: metric, factors, value, count.
    pub fn samples(&self, emit: Emit<'_>) {
        let chosen = &self.chosen.expected;
        emit("within_objective_ratio", &[], chosen.within_ratio, 1);
        emit("cost_usd_per_h", &[], chosen.cost_usd_per_h, 1);
        if let Some(bound) = self.bound_ratio {
            emit("bound_ratio", &[], bound, 1);
        }
    }

    /// The documents `chosen`, `front` and `sensitivity`.
    pub fn documents(&self) -> Vec<(&'static str, Value)> {
        let mut chosen = self.choice(&self.chosen);
        chosen["met"] = json!(self.met);
        chosen["confirmed"] = json!(self.confirmed);
        chosen["exact"] = json!(self.exact);
        chosen["bound_ratio"] = json!(self.bound_ratio);
        chosen["tried"] = json!(self.tried);
        let front: Vec<Value> = self.front.iter().map(|one| self.choice(one)).collect();
        let changes: Vec<Value> = self.sensitivity.iter().map(|one| self.change(one)).collect();
        vec![("chosen", chosen), ("front", json!(front)), ("sensitivity", json!(changes))]
    }

    fn set(&self, one: &Evaluation) -> Value {
        let names = || one.sites.iter().map(|site| self.names[*site].as_str());
        let instances: serde_json::Map<String, Value> = names()
            .map(str::to_owned)
            .zip(one.instances.iter().map(|count| json!(count)))
            .collect();
        json!({
            "sites": names().collect::<Vec<_>>(),
            "instances": instances,
            "cost_usd_per_h": one.cost_usd_per_h,
            "within_ratio": one.within_ratio,
            "response_time_mean_ns": one.response_ms.map(|ms| ms * 1e6),
            "utilisation_ratio": one.utilisation,
        })
    }

    fn choice(&self, one: &Choice) -> Value {
        let mut value = self.set(&one.expected);
        value["simulated"] = one.simulated.map_or(Value::Null, |seen| {
            json!({
                "within_ratio": seen.within_ratio,
                "response_time_mean_ns": seen.response_time_mean_ns,
            })
        });
        value
    }

    fn change(&self, one: &Change) -> Value {
        json!({
            "latency_factor": one.factors.latency,
            "growth_factor": one.factors.growth,
            "chosen": self.set(&one.chosen),
            "met": one.met,
            "overloaded": one.chosen.utilisation >= 1.0,
            "best": self.set(&one.best),
            "same": one.chosen.sites == one.best.sites,
        })
    }
}
