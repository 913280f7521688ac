//! A bound on how good any set of sites can be: the dual of the relaxed problem in which no request waits,
//! users ask whichever site serves them best, and no site is full.
//!
//! Source: Cornuejols, Fisher & Nemhauser, Location of bank accounts to optimize float, Management
//! Science 23(8), 1977 (Lagrangean bound and subgradient steps), with the budget as one more price.
use super::problem::{Candidate, Instances, Problem, HOURS};
use super::search::Goal;
use super::Evaluation;

/// Subgradient steps for one bound.
const STEPS: usize = 2000;
/// Number of steps without a better bound after which the step size is halved.
const PATIENCE: usize = 30;

/// The relaxed problem, in shares of all responses.
struct RelaxedProblem {
    /// By base and candidate: the share of all responses within the objective at best.
    gain: Vec<Vec<f64>>,
    /// By base and candidate: minimum cost of serving the base there, per hour.
    serving: Vec<Vec<f64>>,
    /// By candidate: minimum cost of the site itself, per hour.
    opening: Vec<f64>,
    is_kept: Vec<bool>,
    sites_max: usize,
}

/// Dual prices: of serving each base once more, and of a dollar.
#[derive(Clone)]
struct Prices {
    bases: Vec<f64>,
    dollar: f64,
}

/// The solution of the relaxed problem under given prices.
struct Relaxation {
    /// Bound on the responses within the objective, without the value of the budget.
    rest: f64,
    /// How often each base is served, and what is spent.
    served: Vec<f64>,
    spent: f64,
}

/// Returns the maximum distance of the chosen set from the best: relative to its own cost if the goal is
/// the cheapest set, else to the bound on the responses within the objective.
pub fn ratio(problem: &Problem, goal: &Goal, chosen: &Evaluation) -> f64 {
    let mut relaxed = RelaxedProblem::new(problem, goal.sites_max);
    if let Some(budget) = goal.budget_usd_per_h {
        relaxed.exclude_above(budget);
    }
    match goal.within_ratio {
        None => {
            let budget = goal.budget_usd_per_h.unwrap_or(f64::INFINITY);
            let max = relaxed.max_within(budget, chosen.within_ratio);
            if max > 0.0 {
                ((max - chosen.within_ratio) / max).max(0.0)
            } else {
                0.0
            }
        }
        Some(required) if chosen.cost_usd_per_h > 0.0 => {
            let min = relaxed.min_cost(required, chosen.cost_usd_per_h);
            ((chosen.cost_usd_per_h - min) / chosen.cost_usd_per_h).max(0.0)
        }
        Some(_) => 0.0,
    }
}

/// Returns the minimum number of instances of a site, and for each request per hour. Both the minimum
/// number and the load over the utilisation are lower bounds; the one that can be larger is taken. (The
/// mean load of an hour; an upper limit on instances only makes a set full.)
fn min_instances(candidate: &Candidate, all_requests_per_h: f64) -> (f64, f64) {
    let (min, utilisation) = match candidate.instances {
        Instances::Constant(count) => return (count, 0.0),
        Instances::Hourly { min, utilisation, .. } => (min.max(0.0), utilisation),
        Instances::Sized { utilisation, .. } => (1.0, utilisation),
    };
    let each = candidate.servers(1.0) / utilisation;
    if each * all_requests_per_h > min {
        (0.0, each)
    } else {
        (min, 0.0)
    }
}

impl RelaxedProblem {
    fn new(problem: &Problem, sites_max: usize) -> Self {
        let all = problem.responses().max(f64::MIN_POSITIVE);
        let day: Vec<f64> =
            problem.bases.iter().map(|base| base.responses.iter().sum::<f64>()).collect();
        let requests_per_h: f64 = problem
            .bases
            .iter()
            .zip(&day)
            .map(|(base, day)| base.requests * day / HOURS as f64)
            .sum();
        let instances: Vec<(f64, f64)> = problem
            .candidates
            .iter()
            .map(|candidate| min_instances(candidate, requests_per_h))
            .collect();
        let table = |cell: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            let row = |base| (0..problem.candidates.len()).map(|site| cell(base, site)).collect();
            (0..problem.bases.len()).map(row).collect()
        };
        Self {
            gain: table(&|base, site| day[base] / all * problem.best_within(base, site)),
            serving: table(&|base, site| {
                let (candidate, users) = (&problem.candidates[site], &problem.bases[base]);
                let responses = day[base] / HOURS as f64;
                responses * users.gigabytes * candidate.transfer_usd_per_gb
                    + responses * users.requests * instances[site].1 * candidate.instance_usd_per_h
            }),
            opening: problem
                .candidates
                .iter()
                .zip(&instances)
                .map(|(candidate, instances)| instances.0 * candidate.instance_usd_per_h)
                .collect(),
            is_kept: problem.candidates.iter().map(|candidate| candidate.is_kept).collect(),
            sites_max,
        }
    }

    /// Excludes sites that alone cost more than the budget.
    fn exclude_above(&mut self, budget: f64) {
        for site in 0..self.opening.len() {
            if self.opening[site] > budget * (1.0 + 1e-6) && !self.is_kept[site] {
                self.gain.iter_mut().for_each(|row| row[site] = 0.0);
            }
        }
    }

    /// Solves the relaxed problem. For any prices from 0 on, every set has at most rest + dollar x cost
    /// responses within the objective.
    fn solve(&self, prices: &Prices) -> Relaxation {
        let worth = |base: usize, site: usize| {
            self.gain[base][site] - prices.dollar * self.serving[base][site] - prices.bases[base]
        };
        let bases = 0..prices.bases.len();
        let mut sites: Vec<(bool, f64, usize)> = (0..self.opening.len())
            .map(|site| {
                let served: f64 = bases.clone().map(|base| worth(base, site).max(0.0)).sum();
                (self.is_kept[site], served - prices.dollar * self.opening[site], site)
            })
            .collect();
        // Kept sites come first, whatever they are worth.
        sites.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        let kept_sites = self.is_kept.iter().filter(|is_kept| **is_kept).count();
        let max = self.sites_max.max(kept_sites);
        let mut solution = Relaxation {
            rest: prices.bases.iter().sum(),
            served: vec![0.0; prices.bases.len()],
            spent: 0.0,
        };
        for (is_kept, value, site) in sites.into_iter().take(max) {
            if !is_kept && value <= 0.0 {
                break;
            }
            solution.rest += value;
            solution.spent += self.opening[site];
            for base in bases.clone().filter(|base| worth(*base, site) > 0.0) {
                solution.served[base] += 1.0;
                solution.spent += self.serving[base][site];
            }
        }
        solution
    }

    /// Lowers the bound on the responses within the objective for a budget by subgradient steps, and calls
    /// `visit` for all prices on the way, with the bound that they give. known: what some set reaches.
    fn descend(&self, budget: f64, known: f64, mut visit: impl FnMut(&Prices, &Relaxation, f64)) {
        let first = |row: &Vec<f64>| row.iter().copied().fold(0.0, f64::max) / 2.0;
        // Start with a third of all responses as the price of the whole budget.
        let dollar = if budget.is_finite() && budget > 0.0 { 0.3 / budget } else { 0.0 };
        let mut prices = Prices { bases: self.gain.iter().map(first).collect(), dollar };
        let (mut min, mut since, mut scale) = (f64::INFINITY, 0, 1.5);
        for _ in 0..STEPS {
            let solution = self.solve(&prices);
            let money = if budget.is_finite() { prices.dollar * budget } else { 0.0 };
            let bound = solution.rest + money;
            visit(&prices, &solution, bound);
            since += 1;
            if bound < min - 1e-9 {
                (min, since) = (bound, 0);
            } else if since >= PATIENCE {
                (scale, since) = (scale / 2.0, 0);
            }
            // The price of a dollar has its own unit: its step is relative to the budget.
            let unit = if budget.is_finite() && budget > 0.0 { 1.0 / budget } else { 0.0 };
            let spare = (budget - solution.spent) * unit;
            let spare = if spare.is_finite() { spare } else { 0.0 };
            let slopes: Vec<f64> = solution.served.iter().map(|served| 1.0 - served).collect();
            let norm: f64 = slopes.iter().map(|slope| slope * slope).sum::<f64>() + spare * spare;
            if norm <= 0.0 || bound - known < 1e-9 {
                return;
            }
            let step = scale * (bound - known).max(1e-6) / norm;
            for (price, slope) in prices.bases.iter_mut().zip(&slopes) {
                *price = (*price - step * slope).max(0.0);
            }
            prices.dollar = (prices.dollar - step * spare * unit).max(0.0);
        }
    }

    /// Returns an upper bound on the share of responses within the objective for a budget.
    fn max_within(&self, budget: f64, known: f64) -> f64 {
        let mut max = 1.0f64;
        self.descend(budget, known, |_, _, bound| max = max.min(bound));
        max
    }

    /// Returns the cost of the kept sites, or of the cheapest site.
    fn min_opening_cost(&self) -> f64 {
        let kept_sites =
            self.opening.iter().zip(&self.is_kept).filter(|(_, kept_sites)| **kept_sites);
        if kept_sites.clone().count() > 0 {
            return kept_sites.map(|(usd, _)| usd).sum();
        }
        self.opening.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns a lower bound on the cost of the required share, the inverse of the bound for a budget: cost
    /// >= (share - rest) / dollar.
    fn min_cost(&self, required: f64, known: f64) -> f64 {
        let mut min = self.min_opening_cost();
        // Prices for one budget are nearly right for similar ones: a few budgets suffice.
        for part in [1.0, 0.97, 0.9, 0.8, 0.6, 0.4] {
            self.descend(known * part, required, |prices, solution, _| {
                if prices.dollar > 0.0 {
                    min = min.max((required - solution.rest) / prices.dollar);
                }
            });
            if min >= known * part {
                break;
            }
        }
        min.min(known)
    }
}
