//! What a set of sites gives its users and what it costs, in closed form.
//!
//! Users ask the site of least latency among the chosen ones. A response takes the way, which is
//! normal around its mean; the service; and, as often as an instance is busy, a wait that is
//! exponential, with the mean of M/G/1 shared or in order of arrival. Hours are taken one by one.
//! Requests dealt in turn come more evenly to an instance than at random, so waits are given rather
//! too long than too short; the winners are simulated afterwards.
use crate::theory;

/// Hours of the day that is evaluated.
pub const HOURS: usize = 24;

/// Users of one place.
#[derive(Clone, Debug)]
pub struct Base {
    /// What they are called.
    pub name: String,
    /// Responses that they wait for in each hour (a page counts once).
    pub responses: [f64; HOURS],
    /// Requests that reach a site for each response.
    pub requests: f64,
    /// 2^30 bytes that each response moves, both ways.
    pub gigabytes: f64,
}

/// What lies between users and a site, for one response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// Latency one way, in ms; infinite where there is no way.
    pub latency_ms: f64,
    /// Mean time that a response spends outside the site.
    pub mean_ms: f64,
    /// Its standard deviation.
    pub deviation_ms: f64,
    /// How often the site is waited for, one time after another.
    pub visits: f64,
    /// So many of these times with several requests at once,
    pub turns: f64,
    /// so many, which share the instances that there are.
    pub parallel: f64,
}

impl Way {
    /// No way at all.
    pub const NONE: Self = Self::plain(f64::INFINITY, f64::INFINITY, 0.0);

    /// One request, one answer.
    pub const fn plain(latency_ms: f64, mean_ms: f64, deviation_ms: f64) -> Self {
        Self { latency_ms, mean_ms, deviation_ms, visits: 1.0, turns: 0.0, parallel: 1.0 }
    }

    /// Services that are waited for one after another at a site of so many instances.
    fn services(&self, instances: f64) -> f64 {
        self.visits + self.turns * ((self.parallel / instances).ceil() - 1.0).max(0.0)
    }
}

/// How many instances a site has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instances {
    /// Always so many.
    Given(f64),
    /// As many as the hour's load needs to stay below that utilisation, within limits.
    Hourly { least: f64, most: f64, utilisation: f64 },
    /// As many as the busiest hour's load needs to stay below that utilisation, all day.
    Sized { most: f64, utilisation: f64 },
}

/// A place where a site could be.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// What it is called.
    pub name: String,
    /// It is there already, and is part of every set.
    pub kept: bool,
    /// How many instances.
    pub instances: Instances,
    /// What an instance needs for a request, in ms.
    pub service_ms: f64,
    /// Squared coefficient of variation of that.
    pub variation2: f64,
    /// In order of arrival, not shared.
    pub fifo: bool,
    /// US dollars for an instance and hour.
    pub instance_usd_per_h: f64,
    /// US dollars for 2^30 bytes.
    pub transfer_usd_per_gb: f64,
}

/// Users, candidates, and the objective.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Who asks.
    pub bases: Vec<Base>,
    /// Where sites could be.
    pub candidates: Vec<Candidate>,
    /// By base and candidate.
    pub ways: Vec<Vec<Way>>,
    /// A response within so many ms satisfies.
    pub objective_ms: f64,
}

/// What a set of sites is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Numbers of the candidates, ascending.
    pub sites: Vec<usize>,
    /// Instances of each, mean over the day.
    pub instances: Vec<f64>,
    /// Cost of an hour, mean over the day.
    pub cost_usd_per_h: f64,
    /// Part of all responses that come within the objective.
    pub within_ratio: f64,
    /// Mean of the responses that come; None where none does.
    pub response_ms: Option<f64>,
    /// Largest utilisation of any site in any hour; from 1 on, lines only grow.
    pub utilisation: f64,
}

impl Candidate {
    /// Part of a server that a load of so many requests an hour takes.
    pub(super) fn servers(&self, requests_per_h: f64) -> f64 {
        requests_per_h * self.service_ms / 3.6e6
    }

    fn count(&self, servers: f64, busiest: f64) -> f64 {
        match self.instances {
            Instances::Given(count) => count,
            Instances::Hourly { least, most, utilisation } => {
                (servers / utilisation).ceil().clamp(least, most.max(least))
            }
            Instances::Sized { most, utilisation } => {
                (busiest / utilisation).ceil().clamp(1.0, most.max(1.0))
            }
        }
    }

    /// Mean wait of a request, at a utilisation below 1.
    fn wait_ms(&self, utilisation: f64) -> f64 {
        let rate = utilisation / self.service_ms;
        let response = if self.fifo {
            theory::mg1_response(rate, self.service_ms, self.variation2)
        } else {
            theory::mg1_sharing_response(rate, self.service_ms)
        };
        response - self.service_ms
    }
}

/// One site's hour: the mean of service and wait, and how often an instance is busy.
#[derive(Clone, Copy)]
struct Busy {
    service_ms: f64,
    wait_ms: f64,
    utilisation: f64,
}

impl Problem {
    /// All responses of a day.
    pub fn responses(&self) -> f64 {
        self.bases.iter().flat_map(|base| base.responses).sum()
    }

    /// The nearest of the sites for a base; None where no way leads to any.
    pub fn nearest(&self, base: usize, sites: &[usize]) -> Option<usize> {
        let latency = |site: &usize| self.ways[base][*site].latency_ms;
        let near = sites.iter().filter(|site| latency(site).is_finite());
        near.copied().min_by(|a, b| latency(a).total_cmp(&latency(b)))
    }

    /// What that set is worth. sites: ascending numbers of candidates, one at least.
    pub fn evaluate(&self, sites: &[usize]) -> Evaluation {
        let nearest: Vec<_> = (0..self.bases.len()).map(|base| self.nearest(base, sites)).collect();
        let mut day = Day::default();
        let mut instances = Vec::with_capacity(sites.len());
        for site in sites {
            let own: Vec<usize> =
                (0..self.bases.len()).filter(|base| nearest[*base] == Some(*site)).collect();
            instances.push(self.site_day(*site, &own, &mut day));
        }
        let responses = self.responses();
        let ratio = |part: f64, of: f64| (of > 0.0).then(|| part / of);
        Evaluation {
            sites: sites.to_vec(),
            instances,
            cost_usd_per_h: day.cost_usd / HOURS as f64,
            within_ratio: ratio(day.within, responses).unwrap_or(0.0),
            response_ms: ratio(day.response_ms, day.served),
            utilisation: day.utilisation,
        }
    }

    /// Adds a site's day with the users that ask it; gives its mean number of instances.
    fn site_day(&self, site: usize, own: &[usize], day: &mut Day) -> f64 {
        let candidate = &self.candidates[site];
        let servers: Vec<f64> = (0..HOURS)
            .map(|hour| {
                let load =
                    |base: &usize| self.bases[*base].responses[hour] * self.bases[*base].requests;
                candidate.servers(own.iter().map(load).sum())
            })
            .collect();
        let busiest = servers.iter().copied().fold(0.0, f64::max);
        let mut counted = 0.0;
        for (hour, servers) in servers.iter().enumerate() {
            let count = candidate.count(*servers, busiest);
            counted += count;
            let utilisation = servers / count;
            day.utilisation = day.utilisation.max(utilisation);
            day.cost_usd += count * candidate.instance_usd_per_h;
            let wait_ms =
                if utilisation < 1.0 { candidate.wait_ms(utilisation) } else { f64::INFINITY };
            let busy = Busy { service_ms: candidate.service_ms, wait_ms, utilisation };
            for base in own {
                let responses = self.bases[*base].responses[hour];
                let way = &self.ways[*base][site];
                let gigabytes = responses * self.bases[*base].gigabytes;
                day.cost_usd += gigabytes * candidate.transfer_usd_per_gb;
                let services = way.services(count);
                day.within += responses * within(self.objective_ms, way, services, busy);
                if wait_ms.is_finite() {
                    let mean_ms = way.mean_ms + services * (candidate.service_ms + wait_ms);
                    day.response_ms += responses * mean_ms;
                    day.served += responses;
                }
            }
        }
        counted / HOURS as f64
    }

    /// The largest part of a base's responses that a site could bring in time: nobody else there.
    pub fn within_at_best(&self, base: usize, site: usize) -> f64 {
        let service_ms = self.candidates[site].service_ms;
        let idle = Busy { service_ms, wait_ms: 0.0, utilisation: 0.0 };
        let way = &self.ways[base][site];
        within(self.objective_ms, way, way.visits, idle)
    }
}

/// Sums over the day and the sites.
#[derive(Default)]
struct Day {
    cost_usd: f64,
    within: f64,
    served: f64,
    response_ms: f64,
    utilisation: f64,
}

/// Probability that way, service and wait end within the objective: a normal, a constant, and an
/// exponential that comes with the probability of finding the instance busy.
fn within(objective_ms: f64, way: &Way, services: f64, busy: Busy) -> f64 {
    if !way.mean_ms.is_finite() || (services > 0.0 && !busy.wait_ms.is_finite()) {
        return 0.0;
    }
    let left = objective_ms - way.mean_ms - services * busy.service_ms;
    let deviation = way.deviation_ms;
    let idle = normal_below(left, deviation);
    if busy.utilisation <= 0.0 || busy.wait_ms <= 0.0 || services <= 0.0 || idle == 0.0 {
        return idle;
    }
    let rate = busy.utilisation / (services * busy.wait_ms);
    if deviation <= 0.0 {
        return 1.0 - busy.utilisation * (-rate * left).exp();
    }
    // The exponential over the normal: exp((y^2 - z^2) / 2) times the tail beyond y.
    let z = left / deviation;
    let y = rate * deviation - z;
    let late = if y > 7.0 {
        // The tail's asymptotic series: its first term left out is 15 / y^6, a ten-thousandth.
        density(z) / y * (1.0 - 1.0 / (y * y) + 3.0 / y.powi(4))
    } else {
        (rate * (rate * deviation * deviation / 2.0 - left)).exp() * normal_below(-y, 1.0)
    };
    (idle - busy.utilisation * late).clamp(0.0, 1.0)
}

/// Density of the standard normal.
fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Probability that a normal of mean 0 and that deviation is at most `x`.
fn normal_below(x: f64, deviation: f64) -> f64 {
    if deviation <= 0.0 {
        return if x >= 0.0 { 1.0 } else { 0.0 };
    }
    let z = x / deviation;
    if z.abs() > 7.0 {
        // Less than 10^-11 of the tail.
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    // Marsaglia, Evaluating the normal distribution, J. Stat. Software 11(4), 2004.
    let (mut sum, mut term, mut n) = (z, z, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        n += 2.0;
        term *= z * z / n;
        sum += term;
    }
    0.5 + sum * density(z)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution() {
        // Any table: 0.5, 0.8413, 0.9772, 0.0228.
        for (z, wanted) in
            [(0.0, 0.5), (1.0, 0.841_344_746), (2.0, 0.977_249_868), (-2.0, 0.022_750_132)]
        {
            assert!((normal_below(z * 3.0, 3.0) - wanted).abs() < 1e-9);
        }
        assert_eq!((normal_below(-1e-9, 0.0), normal_below(0.0, 0.0)), (0.0, 1.0));
    }

    #[test]
    fn a_wait_is_added_to_the_way() {
        let way = |deviation_ms| Way::plain(50.0, 100.0, deviation_ms);
        // M/M/1 in order of arrival, utilisation 0.5, service 10: a wait of 10 in the mean, above t
        // with probability 0.5 exp(-t / 20).
        let busy = Busy { service_ms: 10.0, wait_ms: 10.0, utilisation: 0.5 };
        let wanted = 1.0 - 0.5 * (-30.0f64 / 20.0).exp();
        assert!((within(140.0, &way(0.0), 1.0, busy) - wanted).abs() < 1e-12);
        assert!((within(140.0, &way(0.01), 1.0, busy) - wanted).abs() < 1e-6);
        // Against a sum over the normal in 20,000 slices.
        let slices = 20_000;
        let mut sum = 0.0;
        for slice in 0..slices {
            let x = -60.0 + 120.0 * (f64::from(slice) + 0.5) / f64::from(slices);
            let density =
                (-0.5 * x * x / 100.0f64).exp() / (10.0 * (2.0 * std::f64::consts::PI).sqrt());
            let left = 30.0 - x;
            let in_time = if left > 0.0 { 1.0 - 0.5 * (-left / 20.0).exp() } else { 0.0 };
            sum += density * in_time * 120.0 / f64::from(slices);
        }
        assert!((within(140.0, &way(10.0), 1.0, busy) - sum).abs() < 1e-6);
        // A wait of a thousandth changes next to nothing, far out on either side of the series' seam.
        let short = |wait_ms| Busy { service_ms: 10.0, wait_ms, utilisation: 0.5 };
        let idle = within(140.0, &way(10.0), 1.0, short(0.0));
        for wait_ms in [1e-6, 0.01, 0.6, 0.7, 0.8] {
            let off = idle - within(140.0, &way(10.0), 1.0, short(wait_ms));
            // The mean moves by the wait, the density there is 0.00044 a ms, and steeper to the left.
            assert!((0.0..=0.001 * wait_ms + 1e-12).contains(&off), "{wait_ms}: {off}");
        }
        assert_eq!(within(140.0, &Way::NONE, 1.0, busy), 0.0);
    }
}
