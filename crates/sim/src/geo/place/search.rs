//! The search for the best set of sites: exhaustive if there are few sets, else local search with a bound
//! on how much better any other set could be.
use super::bound;
use super::problem::{Evaluation, Problem, HOURS};
use std::cmp::Ordering;

/// Maximum number of evaluations of a base's hour for an exhaustive search: a few seconds.
const MAX_WORK: f64 = 3e7;

/// Tolerance within which shares are equal: sums of thousands of terms differ by less.
const TOLERANCE: f64 = 1e-9;

/// Number of sets from which the local search starts.
const STARTS: usize = 4;

/// The goal of a placement.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The cheapest set with this share of responses within the objective; None: the largest share.
    pub within_ratio: Option<f64>,
    pub budget_usd_per_h: Option<f64>,
    pub sites_max: usize,
}

/// The best set that was found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    pub chosen: Evaluation,
    /// The Pareto front of cost and users within the objective, by cost.
    pub front: Vec<Evaluation>,
    /// The search was exhaustive.
    pub is_exact: bool,
    /// Maximum distance of the chosen set from the best: relative to its cost if the goal is the cheapest
    /// set, else to the share that the best could have. None if no set reaches the goal.
    pub bound_ratio: Option<f64>,
    /// Number of sets evaluated.
    pub evaluated: u64,
}

impl Goal {
    /// Returns by how much a set misses the goal: overload, cost, share.
    fn shortfall(&self, set: &Evaluation) -> [f64; 3] {
        let excess = |value: f64, max: f64| (value - max).max(0.0);
        [
            if set.utilisation < 1.0 { 0.0 } else { set.utilisation },
            self.budget_usd_per_h
                .map_or(0.0, |max| excess(set.cost_usd_per_h, max * (1.0 + TOLERANCE))),
            self.within_ratio.map_or(0.0, |min| excess(min - TOLERANCE, set.within_ratio)),
        ]
    }

    /// Returns whether a set reaches the goal.
    pub fn is_met(&self, set: &Evaluation) -> bool {
        self.shortfall(set) == [0.0; 3]
    }

    /// Orders two sets, the better one first.
    pub fn compare(&self, a: &Evaluation, b: &Evaluation) -> Ordering {
        let order = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|order| order.is_ne())
        };
        if let Some(order) = order(&self.shortfall(a), &self.shortfall(b)) {
            return order;
        }
        let users = |set: &Evaluation| -(set.within_ratio / TOLERANCE).round();
        let cost = |set: &Evaluation| (set.cost_usd_per_h / TOLERANCE).round();
        let time = |set: &Evaluation| set.response_ms.unwrap_or(f64::INFINITY);
        let key = |set: &Evaluation| match self.within_ratio {
            Some(_) => [cost(set), users(set), time(set)],
            None => [users(set), cost(set), time(set)],
        };
        order(&key(a), &key(b)).unwrap_or(Ordering::Equal)
    }
}

/// Searches the best set of a problem with at least one candidate.
pub fn search(problem: &Problem, goal: &Goal) -> SearchResult {
    search_within(problem, goal, MAX_WORK)
}

/// Searches exhaustively only if that takes at most `max_work` evaluations of a base's hour.
pub(super) fn search_within(problem: &Problem, goal: &Goal, max_work: f64) -> SearchResult {
    let (kept_sites, free): (Vec<usize>, Vec<usize>) =
        (0..problem.candidates.len()).partition(|site| problem.candidates[*site].is_kept);
    let more = goal.sites_max.saturating_sub(kept_sites.len()).min(free.len());
    let work = sets(free.len(), more) * (problem.bases.len() * HOURS) as f64;
    let mut search = Search { problem, goal, best: None, front: Vec::new(), evaluated: 0 };
    let is_exact = work <= max_work;
    if is_exact {
        search.try_all(&mut kept_sites.clone(), &free, more);
    } else {
        search.search_locally(&kept_sites, &free, more);
    }
    let Search { best, front, evaluated, .. } = search;
    let chosen = best.expect("a set of one site was tried");
    let bound_ratio = match (goal.is_met(&chosen), is_exact) {
        (false, _) => None,
        (true, true) => Some(0.0),
        (true, false) => Some(bound::ratio(problem, goal, &chosen)),
    };
    SearchResult { chosen, front, is_exact, bound_ratio, evaluated }
}

/// Returns the number of sets of at most `max` of `n` sites.
fn sets(n: usize, max: usize) -> f64 {
    let (mut count, mut sum) = (1.0, 1.0);
    for size in 1..=max {
        count *= (n + 1 - size) as f64 / size as f64;
        sum += count;
    }
    sum
}

/// The state of a search.
struct Search<'a> {
    problem: &'a Problem,
    goal: &'a Goal,
    best: Option<Evaluation>,
    front: Vec<Evaluation>,
    evaluated: u64,
}

impl Search<'_> {
    fn evaluate(&mut self, sites: &[usize]) -> Evaluation {
        let set = self.problem.evaluate(sites);
        self.evaluated += 1;
        let better = |than: &Evaluation| self.goal.compare(&set, than) == Ordering::Less;
        if self.best.as_ref().is_none_or(better) {
            self.best = Some(set.clone());
        }
        if set.utilisation < 1.0 {
            self.add_to_front(&set);
        }
        set
    }

    fn add_to_front(&mut self, set: &Evaluation) {
        let dominates = |a: &Evaluation, b: &Evaluation| {
            a.cost_usd_per_h <= b.cost_usd_per_h * (1.0 + TOLERANCE)
                && a.within_ratio >= b.within_ratio - TOLERANCE
        };
        if self.front.iter().any(|member| dominates(member, set)) {
            return;
        }
        self.front.retain(|member| !dominates(set, member));
        let place = self.front.partition_point(|member| member.cost_usd_per_h < set.cost_usd_per_h);
        self.front.insert(place, set.clone());
    }

    /// Evaluates every set that extends `sites` by at most `more` of the free sites.
    fn try_all(&mut self, sites: &mut Vec<usize>, free: &[usize], more: usize) {
        if !sites.is_empty() {
            let mut ascending = sites.clone();
            ascending.sort_unstable();
            self.evaluate(&ascending);
        }
        if more == 0 {
            return;
        }
        for (number, site) in free.iter().enumerate() {
            sites.push(*site);
            self.try_all(sites, &free[number + 1..], more - 1);
            sites.pop();
        }
    }

    /// Adds the best site repeatedly, once by its gain and once by its gain per cost; then, from the best of
    /// these sets, changes one site as long as that helps. Every set on the way may join the front.
    fn search_locally(&mut self, kept_sites: &[usize], free: &[usize], more: usize) {
        let mut starts = self.grow(kept_sites, free, more, |gain, _| gain);
        starts.extend(self.grow(kept_sites, free, more, |gain, cost| {
            if gain > 0.0 {
                gain / cost.max(TOLERANCE)
            } else {
                gain
            }
        }));
        if starts.is_empty() {
            // No site more is within the budget; no set is without a site.
            let start = if kept_sites.is_empty() {
                self.best.clone()
            } else {
                Some(self.evaluate(kept_sites))
            };
            starts.extend(start);
        }
        starts.sort_by(|a, b| self.goal.compare(a, b));
        // Others lead to the same local optima.
        for start in starts.into_iter().take(STARTS) {
            self.climb(start, kept_sites, free, more + kept_sites.len());
        }
    }

    /// Returns the sets on the way from the kept sites to a full one. value: of more users and more cost.
    fn grow(
        &mut self,
        kept_sites: &[usize],
        free: &[usize],
        more: usize,
        value: impl Fn(f64, f64) -> f64,
    ) -> Vec<Evaluation> {
        let mut sites = kept_sites.to_vec();
        let (mut users, mut cost) = (0.0, 0.0);
        let mut grown = Vec::new();
        for _ in 0..more {
            let added: Vec<usize> =
                free.iter().copied().filter(|site| !sites.contains(site)).collect();
            let sets: Vec<_> =
                added.iter().map(|site| self.evaluate(&with(&sites, *site))).collect();
            let is_within_budget = |set: &Evaluation| {
                self.goal.budget_usd_per_h.is_none_or(|max| set.cost_usd_per_h <= max)
            };
            let value_of =
                |set: &Evaluation| value(set.within_ratio - users, set.cost_usd_per_h - cost);
            let best = sets
                .into_iter()
                .filter(is_within_budget)
                .max_by(|a, b| value_of(a).total_cmp(&value_of(b)));
            let Some(best) = best else { break };
            (users, cost) = (best.within_ratio, best.cost_usd_per_h);
            sites.clone_from(&best.sites);
            grown.push(best);
        }
        grown
    }

    fn climb(&mut self, start: Evaluation, kept_sites: &[usize], free: &[usize], max: usize) {
        let mut current = start;
        loop {
            let mut next: Option<Evaluation> = None;
            for sites in changes(&current.sites, kept_sites, free, max) {
                let set = self.evaluate(&sites);
                let than = next.as_ref().unwrap_or(&current);
                if self.goal.compare(&set, than) == Ordering::Less {
                    next = Some(set);
                }
            }
            match next {
                Some(better) => current = better,
                None => return,
            }
        }
    }
}

fn with(sites: &[usize], site: usize) -> Vec<usize> {
    let mut more = sites.to_vec();
    more.insert(more.partition_point(|member| *member < site), site);
    more
}

/// Returns the sets that differ by one site, which is removed, added or exchanged.
fn changes(sites: &[usize], kept_sites: &[usize], free: &[usize], max: usize) -> Vec<Vec<usize>> {
    let candidates: Vec<usize> =
        free.iter().copied().filter(|site| !sites.contains(site)).collect();
    let without = |site: &usize| -> Vec<usize> {
        sites.iter().copied().filter(|member| member != site).collect()
    };
    let mut all = Vec::new();
    for site in sites.iter().filter(|site| !kept_sites.contains(site)) {
        let fewer = without(site);
        all.extend(candidates.iter().map(|added| with(&fewer, *added)));
        if !fewer.is_empty() {
            all.push(fewer);
        }
    }
    if sites.len() < max {
        all.extend(candidates.iter().map(|added| with(sites, *added)));
    }
    all
}
