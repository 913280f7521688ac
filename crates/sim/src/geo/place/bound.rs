//! How good any set of sites could be at best: the dual of the problem in which nobody waits, users
//! ask whichever site serves them best, and no site is full. A real set is never better than that.
//!
//! Source: Cornuejols, Fisher & Nemhauser, Location of bank accounts to optimize float, Management
//! Science 23(8), 1977 (Lagrangean bound and subgradient steps), with the money as one more price.
use super::problem::{Candidate, Instances, Problem, HOURS};
use super::search::Goal;
use super::Evaluation;

/// Subgradient steps for one bound.
const STEPS: usize = 2000;
/// Steps without a better bound after which they are made half as long.
const PATIENCE: usize = 30;

/// The relaxed problem: users are parts of all responses.
struct Relaxed {
    /// By base and candidate: the part of all responses that comes in time at best.
    gain: Vec<Vec<f64>>,
    /// By base and candidate: US dollars an hour for serving the base there, at least.
    serving: Vec<Vec<f64>>,
    /// By candidate: US dollars an hour for being there, at least.
    opening: Vec<f64>,
    kept: Vec<bool>,
    sites_max: usize,
}

/// Prices: of serving each base once more, and of a dollar.
#[derive(Clone)]
struct Prices {
    bases: Vec<f64>,
    dollar: f64,
}

/// What prices say: without the budget's worth, the users in time are at most `rest`.
struct Told {
    rest: f64,
    /// How often each base is served, and what is spent, in the relaxed solution.
    served: Vec<f64>,
    spent: f64,
}

/// How far the chosen set is from the best at most: a part of its own cost where the cheapest set
/// was asked for, else of the bound on the responses in time.
pub fn ratio(problem: &Problem, goal: &Goal, chosen: &Evaluation) -> f64 {
    let mut relaxed = Relaxed::of(problem, goal.sites_max);
    if let Some(budget) = goal.budget_usd_per_h {
        relaxed.leave_out_above(budget);
    }
    match goal.within_ratio {
        None => {
            let budget = goal.budget_usd_per_h.unwrap_or(f64::INFINITY);
            let most = relaxed.within_at_most(budget, chosen.within_ratio);
            if most > 0.0 {
                ((most - chosen.within_ratio) / most).max(0.0)
            } else {
                0.0
            }
        }
        Some(wanted) if chosen.cost_usd_per_h > 0.0 => {
            let least = relaxed.cost_at_least(wanted, chosen.cost_usd_per_h);
            ((chosen.cost_usd_per_h - least) / chosen.cost_usd_per_h).max(0.0)
        }
        Some(_) => 0.0,
    }
}

/// The least number of instances: for being there, and for each request an hour.
fn least_instances(candidate: &Candidate, all_requests_per_h: f64) -> (f64, f64) {
    match candidate.instances {
        Instances::Given(count) => (count, 0.0),
        Instances::Hourly { least, utilisation, .. } => {
            one_or_each(candidate, utilisation, least.max(0.0), all_requests_per_h)
        }
        Instances::Sized { utilisation, .. } => {
            one_or_each(candidate, utilisation, 1.0, all_requests_per_h)
        }
    }
}

/// Both the least number and the load over the utilisation are bounds from below; the one that can
/// be larger is taken. (The hour's mean load, and an upper limit on instances only makes a set full.)
fn one_or_each(candidate: &Candidate, utilisation: f64, least: f64, requests: f64) -> (f64, f64) {
    let each = candidate.servers(1.0) / utilisation;
    if each * requests > least {
        (0.0, each)
    } else {
        (least, 0.0)
    }
}

impl Relaxed {
    fn of(problem: &Problem, sites_max: usize) -> Self {
        let all = problem.responses().max(f64::MIN_POSITIVE);
        let day: Vec<f64> =
            problem.bases.iter().map(|base| base.responses.iter().sum::<f64>()).collect();
        let requests_per_h: f64 = problem
            .bases
            .iter()
            .zip(&day)
            .map(|(base, day)| base.requests * day / HOURS as f64)
            .sum();
        let least: Vec<(f64, f64)> = problem
            .candidates
            .iter()
            .map(|candidate| least_instances(candidate, requests_per_h))
            .collect();
        let table = |cell: &dyn Fn(usize, usize) -> f64| -> Vec<Vec<f64>> {
            let row = |base| (0..problem.candidates.len()).map(|site| cell(base, site)).collect();
            (0..problem.bases.len()).map(row).collect()
        };
        Self {
            gain: table(&|base, site| day[base] / all * problem.within_at_best(base, site)),
            serving: table(&|base, site| {
                let (candidate, users) = (&problem.candidates[site], &problem.bases[base]);
                let responses = day[base] / HOURS as f64;
                responses * users.gigabytes * candidate.transfer_usd_per_gb
                    + responses * users.requests * least[site].1 * candidate.instance_usd_per_h
            }),
            opening: problem
                .candidates
                .iter()
                .zip(&least)
                .map(|(candidate, least)| least.0 * candidate.instance_usd_per_h)
                .collect(),
            kept: problem.candidates.iter().map(|candidate| candidate.kept).collect(),
            sites_max,
        }
    }

    /// A site that alone costs more than there is belongs to no set.
    fn leave_out_above(&mut self, budget: f64) {
        for site in 0..self.opening.len() {
            if self.opening[site] > budget * (1.0 + 1e-6) && !self.kept[site] {
                self.gain.iter_mut().for_each(|row| row[site] = 0.0);
            }
        }
    }

    /// For any prices of 0 and more: users in time <= rest + dollar x cost, of every set.
    fn told(&self, prices: &Prices) -> Told {
        let worth = |base: usize, site: usize| {
            self.gain[base][site] - prices.dollar * self.serving[base][site] - prices.bases[base]
        };
        let bases = 0..prices.bases.len();
        let mut sites: Vec<(bool, f64, usize)> = (0..self.opening.len())
            .map(|site| {
                let served: f64 = bases.clone().map(|base| worth(base, site).max(0.0)).sum();
                (self.kept[site], served - prices.dollar * self.opening[site], site)
            })
            .collect();
        // What is kept comes first, whatever it is worth.
        sites.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
        let kept = self.kept.iter().filter(|kept| **kept).count();
        let most = self.sites_max.max(kept);
        let mut told = Told {
            rest: prices.bases.iter().sum(),
            served: vec![0.0; prices.bases.len()],
            spent: 0.0,
        };
        for (kept, value, site) in sites.into_iter().take(most) {
            if !kept && value <= 0.0 {
                break;
            }
            told.rest += value;
            told.spent += self.opening[site];
            for base in bases.clone().filter(|base| worth(*base, site) > 0.0) {
                told.served[base] += 1.0;
                told.spent += self.serving[base][site];
            }
        }
        told
    }

    /// Goes down the bound on the users in time for that budget by subgradient steps; sees every
    /// price on the way. known: what some set reaches.
    fn descend(&self, budget: f64, known: f64, mut see: impl FnMut(&Prices, &Told)) {
        let first = |row: &Vec<f64>| row.iter().copied().fold(0.0, f64::max) / 2.0;
        // A third of all that can be had is a fair price for the whole budget to begin with.
        let dollar = if budget.is_finite() && budget > 0.0 { 0.3 / budget } else { 0.0 };
        let mut prices = Prices { bases: self.gain.iter().map(first).collect(), dollar };
        let (mut least, mut since, mut scale) = (f64::INFINITY, 0, 1.5);
        for _ in 0..STEPS {
            let told = self.told(&prices);
            let money = if budget.is_finite() { prices.dollar * budget } else { 0.0 };
            let bound = told.rest + money;
            see(&prices, &told);
            since += 1;
            if bound < least - 1e-9 {
                (least, since) = (bound, 0);
            } else if since >= PATIENCE {
                (scale, since) = (scale / 2.0, 0);
            }
            // The dollar's price has units of its own: its step is taken in parts of the budget.
            let unit = if budget.is_finite() && budget > 0.0 { 1.0 / budget } else { 0.0 };
            let spare = (budget - told.spent) * unit;
            let spare = if spare.is_finite() { spare } else { 0.0 };
            let slopes: Vec<f64> = told.served.iter().map(|served| 1.0 - served).collect();
            let steep: f64 = slopes.iter().map(|slope| slope * slope).sum::<f64>() + spare * spare;
            if steep <= 0.0 || bound - known < 1e-9 {
                return;
            }
            let step = scale * (bound - known).max(1e-6) / steep;
            for (price, slope) in prices.bases.iter_mut().zip(&slopes) {
                *price = (*price - step * slope).max(0.0);
            }
            prices.dollar = (prices.dollar - step * spare * unit).max(0.0);
        }
    }

    /// No set within the budget brings a larger part of the responses in time.
    fn within_at_most(&self, budget: f64, known: f64) -> f64 {
        let mut least = 1.0f64;
        self.descend(budget, known, |prices, told| {
            let money = if budget.is_finite() { prices.dollar * budget } else { 0.0 };
            least = least.min(told.rest + money);
        });
        least
    }

    /// What is kept, or the cheapest site, has to be paid in any case.
    fn opening_at_least(&self) -> f64 {
        let kept = self.opening.iter().zip(&self.kept).filter(|(_, kept)| **kept);
        if kept.clone().count() > 0 {
            return kept.map(|(usd, _)| usd).sum();
        }
        self.opening.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// No set that brings that part of the responses in time is cheaper. The bound on users for a
    /// cost, turned round: cost >= (users - rest) / dollar.
    fn cost_at_least(&self, wanted: f64, known: f64) -> f64 {
        let mut least = self.opening_at_least();
        // Prices that are right for one budget are good for its neighbours: a few budgets do.
        for part in [1.0, 0.97, 0.9, 0.8, 0.6, 0.4] {
            self.descend(known * part, wanted, |prices, told| {
                if prices.dollar > 0.0 {
                    least = least.max((wanted - told.rest) / prices.dollar);
                }
            });
            if least >= known * part {
                break;
            }
        }
        least.min(known)
    }
}
