//! The best set of sites: among all sets where there are few enough, else by adding, dropping and
//! exchanging sites, with a bound on how much better any other set could be.
use super::bound;
use super::problem::{Evaluation, Problem, HOURS};
use std::cmp::Ordering;

/// Evaluations of a base's hour that are spent on trying every set: a few seconds.
const WORK_MAX: f64 = 3e7;

/// Parts of responses closer than this are equal: sums of thousands of terms differ by less.
const SAME: f64 = 1e-9;

/// Sets from which single changes are tried.
const STARTS: usize = 4;

/// What is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The cheapest set that brings this part of the responses in time; None: the largest part.
    pub within_ratio: Option<f64>,
    /// No more than this.
    pub budget_usd_per_h: Option<f64>,
    /// No more sites.
    pub sites_max: usize,
}

/// The best set, and how far from the best it can be at most.
#[derive(Clone, Debug)]
pub struct Found {
    /// The best set that was found.
    pub chosen: Evaluation,
    /// Sets that nothing else beats in both cost and users within the objective, by cost.
    pub front: Vec<Evaluation>,
    /// Every set was tried.
    pub exact: bool,
    /// How far the chosen set is from the best at most: a part of its cost where the cheapest was
    /// asked for, else of the responses in time that the best could have. 0 is exact; None where
    /// no set was found that does what was asked for.
    pub bound_ratio: Option<f64>,
    /// Sets evaluated.
    pub tried: u64,
}

impl Goal {
    /// What keeps an evaluation from doing what was asked for: overload, money, users.
    fn lacks(&self, one: &Evaluation) -> [f64; 3] {
        let over = |value: f64, most: f64| (value - most).max(0.0);
        [
            if one.utilisation < 1.0 { 0.0 } else { one.utilisation },
            self.budget_usd_per_h.map_or(0.0, |most| over(one.cost_usd_per_h, most * (1.0 + SAME))),
            self.within_ratio.map_or(0.0, |least| over(least - SAME, one.within_ratio)),
        ]
    }

    /// Whether it does what was asked for.
    pub fn met(&self, one: &Evaluation) -> bool {
        self.lacks(one) == [0.0; 3]
    }

    /// The better one first.
    pub fn compare(&self, a: &Evaluation, b: &Evaluation) -> Ordering {
        let order = |a: &[f64], b: &[f64]| {
            a.iter().zip(b).map(|(a, b)| a.total_cmp(b)).find(|one| one.is_ne())
        };
        if let Some(found) = order(&self.lacks(a), &self.lacks(b)) {
            return found;
        }
        let users = |one: &Evaluation| -(one.within_ratio / SAME).round();
        let money = |one: &Evaluation| (one.cost_usd_per_h / SAME).round();
        let time = |one: &Evaluation| one.response_ms.unwrap_or(f64::INFINITY);
        let key = |one: &Evaluation| match self.within_ratio {
            Some(_) => [money(one), users(one), time(one)],
            None => [users(one), money(one), time(one)],
        };
        order(&key(a), &key(b)).unwrap_or(Ordering::Equal)
    }
}

/// Looks for the best set of a problem of one candidate at least.
pub fn search(problem: &Problem, goal: &Goal) -> Found {
    search_within(problem, goal, WORK_MAX)
}

/// The same; every set is tried only if that takes no more than so many evaluations of a base's hour.
pub(super) fn search_within(problem: &Problem, goal: &Goal, work_max: f64) -> Found {
    let kept: Vec<usize> =
        (0..problem.candidates.len()).filter(|site| problem.candidates[*site].kept).collect();
    let free: Vec<usize> =
        (0..problem.candidates.len()).filter(|site| !problem.candidates[*site].kept).collect();
    let more = goal.sites_max.saturating_sub(kept.len()).min(free.len());
    let work = sets(free.len(), more) * (problem.bases.len() * HOURS) as f64;
    let mut book = Book { problem, goal, best: None, front: Vec::new(), tried: 0 };
    let exact = work <= work_max;
    if exact {
        book.all(&kept, &free, more);
    } else {
        book.some(&kept, &free, more);
    }
    let Book { best, front, tried, .. } = book;
    let chosen = best.expect("a set of one site was tried");
    let bound_ratio = match (goal.met(&chosen), exact) {
        (false, _) => None,
        (true, true) => Some(0.0),
        (true, false) => Some(bound::ratio(problem, goal, &chosen)),
    };
    Found { chosen, front, exact, bound_ratio, tried }
}

/// How many sets of at most `most` of `n` there are.
fn sets(n: usize, most: usize) -> f64 {
    let (mut one, mut sum) = (1.0, 1.0);
    for size in 1..=most {
        one *= (n + 1 - size) as f64 / size as f64;
        sum += one;
    }
    sum
}

/// What has been tried, and what of it is worth keeping.
struct Book<'a> {
    problem: &'a Problem,
    goal: &'a Goal,
    best: Option<Evaluation>,
    front: Vec<Evaluation>,
    tried: u64,
}

impl Book<'_> {
    fn tries(&mut self, sites: &[usize]) -> Evaluation {
        let one = self.problem.evaluate(sites);
        self.tried += 1;
        let better = |than: &Evaluation| self.goal.compare(&one, than) == Ordering::Less;
        if self.best.as_ref().is_none_or(better) {
            self.best = Some(one.clone());
        }
        if one.utilisation < 1.0 {
            self.onto_front(&one);
        }
        one
    }

    fn onto_front(&mut self, one: &Evaluation) {
        let beats = |a: &Evaluation, b: &Evaluation| {
            a.cost_usd_per_h <= b.cost_usd_per_h * (1.0 + SAME)
                && a.within_ratio >= b.within_ratio - SAME
        };
        if self.front.iter().any(|other| beats(other, one)) {
            return;
        }
        self.front.retain(|other| !beats(one, other));
        let place = self.front.partition_point(|other| other.cost_usd_per_h < one.cost_usd_per_h);
        self.front.insert(place, one.clone());
    }

    /// Every set.
    fn all(&mut self, kept: &[usize], free: &[usize], more: usize) {
        let mut sites = kept.to_vec();
        self.all_after(&mut sites, free, more);
    }

    fn all_after(&mut self, sites: &mut Vec<usize>, free: &[usize], more: usize) {
        if !sites.is_empty() {
            let mut ascending = sites.clone();
            ascending.sort_unstable();
            self.tries(&ascending);
        }
        if more == 0 {
            return;
        }
        for (number, site) in free.iter().enumerate() {
            sites.push(*site);
            self.all_after(sites, &free[number + 1..], more - 1);
            sites.pop();
        }
    }

    /// From nothing: the best site added again and again, once by what it brings and once by what it
    /// brings for its money; then, from the best of these sets, changes of one site for as long as
    /// they help. Every set on the way may come onto the front.
    fn some(&mut self, kept: &[usize], free: &[usize], more: usize) {
        let mut starts = self.grown(kept, free, more, |brings, _| brings);
        starts.extend(self.grown(kept, free, more, |brings, costs| {
            if brings > 0.0 {
                brings / costs.max(SAME)
            } else {
                brings
            }
        }));
        if starts.is_empty() {
            starts.push(self.tries(kept));
        }
        starts.sort_by(|a, b| self.goal.compare(a, b));
        // From the others the same summits are climbed.
        for start in starts.into_iter().take(STARTS) {
            self.climb(start, kept, free, more + kept.len());
        }
    }

    /// The sets on the way from the kept sites to a full one. worth: of users and of dollars more.
    fn grown(
        &mut self,
        kept: &[usize],
        free: &[usize],
        more: usize,
        worth: impl Fn(f64, f64) -> f64,
    ) -> Vec<Evaluation> {
        let mut sites = kept.to_vec();
        let (mut users, mut money) = (0.0, 0.0);
        let mut found = Vec::new();
        for _ in 0..more {
            let added: Vec<usize> =
                free.iter().copied().filter(|site| !sites.contains(site)).collect();
            let tried: Vec<_> = added.iter().map(|site| self.tries(&with(&sites, *site))).collect();
            let within_budget = |one: &Evaluation| {
                self.goal.budget_usd_per_h.is_none_or(|most| one.cost_usd_per_h <= most)
            };
            let value =
                |one: &Evaluation| worth(one.within_ratio - users, one.cost_usd_per_h - money);
            let best = tried
                .into_iter()
                .filter(within_budget)
                .max_by(|a, b| value(a).total_cmp(&value(b)));
            let Some(best) = best else { break };
            (users, money) = (best.within_ratio, best.cost_usd_per_h);
            sites.clone_from(&best.sites);
            found.push(best);
        }
        found
    }

    fn climb(&mut self, start: Evaluation, kept: &[usize], free: &[usize], most: usize) {
        let mut now = start;
        loop {
            let mut next: Option<Evaluation> = None;
            for sites in changes(&now.sites, kept, free, most) {
                let one = self.tries(&sites);
                let than = next.as_ref().unwrap_or(&now);
                if self.goal.compare(&one, than) == Ordering::Less {
                    next = Some(one);
                }
            }
            match next {
                Some(better) => now = better,
                None => return,
            }
        }
    }
}

fn with(sites: &[usize], site: usize) -> Vec<usize> {
    let mut more = sites.to_vec();
    more.insert(more.partition_point(|other| *other < site), site);
    more
}

/// Sets that differ by one site: dropped, added or exchanged.
fn changes(sites: &[usize], kept: &[usize], free: &[usize], most: usize) -> Vec<Vec<usize>> {
    let others: Vec<usize> = free.iter().copied().filter(|site| !sites.contains(site)).collect();
    let without = |site: &usize| -> Vec<usize> {
        sites.iter().copied().filter(|other| other != site).collect()
    };
    let mut all = Vec::new();
    for site in sites.iter().filter(|site| !kept.contains(site)) {
        let fewer = without(site);
        all.extend(others.iter().map(|other| with(&fewer, *other)));
        if !fewer.is_empty() {
            all.push(fewer);
        }
    }
    if sites.len() < most {
        all.extend(others.iter().map(|other| with(sites, *other)));
    }
    all
}
