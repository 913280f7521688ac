//! Response time and cost of a set of sites, in closed form.
//!
//! Users ask the site of minimum latency. A response consists of the network time, which is normal; the
//! service; and, with the probability that an instance is busy, an exponential wait with the mean of
//! M/G/1 in order of arrival or with processor sharing. Hours are independent. Requests assigned in turn
//! arrive more evenly than at random, so waits are overestimated; the best sets are simulated afterwards.
use crate::closed_forms;

/// Hours of the evaluated day.
pub const HOURS: usize = 24;

#[derive(Clone, Debug)]
pub struct PlacementUsers {
    /// Responses in each hour (a page counts once).
    pub responses: [f64; HOURS],
    /// Requests to a site for each response.
    pub requests: f64,
    /// Traffic of each response in 2^30 bytes, both ways.
    pub gigabytes: f64,
}

/// The network between users and a site, for one response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ResponsePath {
    /// One-way latency in ms; infinite if there is no path.
    pub latency_ms: f64,
    /// Mean network time of a response.
    pub mean_ms: f64,
    /// Its standard deviation.
    pub deviation_ms: f64,
    /// Number of successive services.
    pub visits: f64,
    /// Number of these that consist of several parallel requests.
    pub parallel_visits: f64,
    /// Number of requests of such a service, which share the instances.
    pub parallel: f64,
}

impl ResponsePath {
    /// No path.
    pub const NONE: Self = Self::single(f64::INFINITY, f64::INFINITY, 0.0);

    /// One request, one response.
    pub const fn single(latency_ms: f64, mean_ms: f64, deviation_ms: f64) -> Self {
        Self { latency_ms, mean_ms, deviation_ms, visits: 1.0, parallel_visits: 0.0, parallel: 1.0 }
    }

    /// Returns the number of successive services at a site of so many instances.
    fn services(&self, instances: f64) -> f64 {
        self.visits + self.parallel_visits * ((self.parallel / instances).ceil() - 1.0).max(0.0)
    }
}

/// Number of instances of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Instances {
    Constant(f64),
    /// As many as the hour's load needs to stay below that utilisation, within limits.
    Hourly {
        min: f64,
        max: f64,
        utilisation: f64,
    },
    /// As many as the busiest hour's load needs to stay below that utilisation, all day.
    Sized {
        max: f64,
        utilisation: f64,
    },
}

/// A possible site.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub name: String,
    /// It exists already, and is part of every set.
    pub is_kept: bool,
    pub instances: Instances,
    /// Mean service time of a request in ms.
    pub service_ms: f64,
    /// Squared coefficient of variation of the service time.
    pub variation_squared: f64,
    /// In order of arrival, not processor sharing.
    pub is_fifo: bool,
    pub instance_usd_per_h: f64,
    pub transfer_usd_per_gb: f64,
}

/// A placement problem.
#[derive(Clone, Debug)]
pub struct Problem {
    pub bases: Vec<PlacementUsers>,
    pub candidates: Vec<Candidate>,
    /// By base and candidate.
    pub paths: Vec<Vec<ResponsePath>>,
    pub objective_ms: f64,
}

/// The evaluation of a set of sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// Numbers of the candidates, ascending.
    pub sites: Vec<usize>,
    /// Mean number of instances of each over the day.
    pub instances: Vec<f64>,
    /// Mean cost over the day.
    pub cost_usd_per_h: f64,
    /// Share of all responses within the objective.
    pub within_ratio: f64,
    /// Mean response time; None if no site can serve its load.
    pub response_ms: Option<f64>,
    /// Maximum utilisation of any site in any hour; from 1 on, queues only grow.
    pub utilisation: f64,
}

impl Candidate {
    /// Returns the number of busy servers under a load.
    pub(super) fn servers(&self, requests_per_h: f64) -> f64 {
        requests_per_h * self.service_ms / 3.6e6
    }

    fn count(&self, servers: f64, busiest: f64) -> f64 {
        match self.instances {
            Instances::Constant(count) => count,
            Instances::Hourly { min, max, utilisation } => {
                (servers / utilisation).ceil().clamp(min, max.max(min))
            }
            Instances::Sized { max, utilisation } => {
                (busiest / utilisation).ceil().clamp(1.0, max.max(1.0))
            }
        }
    }

    /// Returns the mean wait of a request at a utilisation below 1.
    fn wait_ms(&self, utilisation: f64) -> f64 {
        let rate = utilisation / self.service_ms;
        let response = if self.is_fifo {
            closed_forms::mg1_response(rate, self.service_ms, self.variation_squared)
        } else {
            closed_forms::mg1_sharing_response(rate, self.service_ms)
        };
        response - self.service_ms
    }
}

/// The state of a site in an hour.
#[derive(Clone, Copy)]
struct SiteHour {
    service_ms: f64,
    wait_ms: f64,
    utilisation: f64,
}

impl Problem {
    /// Returns the number of responses of a day.
    pub fn responses(&self) -> f64 {
        self.bases.iter().flat_map(|base| base.responses).sum()
    }

    /// Returns the nearest of the sites for a base; None if there is no path to any.
    pub fn nearest(&self, base: usize, sites: &[usize]) -> Option<usize> {
        let latency = |site: &usize| self.paths[base][*site].latency_ms;
        let connected = sites.iter().filter(|site| latency(site).is_finite());
        connected.copied().min_by(|a, b| latency(a).total_cmp(&latency(b)))
    }

    /// sites: ascending numbers of candidates, at least one.
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
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        Evaluation {
            sites: sites.to_vec(),
            instances,
            cost_usd_per_h: day.cost_usd / HOURS as f64,
            within_ratio: ratio(day.within, responses).unwrap_or(0.0),
            response_ms: ratio(day.response_ms, day.served),
            utilisation: day.utilisation,
        }
    }

    /// Adds the day of a site with its user bases. Returns its mean number of instances.
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
        let mut sum = 0.0;
        for (hour, servers) in servers.iter().enumerate() {
            let count = candidate.count(*servers, busiest);
            sum += count;
            let utilisation = servers / count;
            day.utilisation = day.utilisation.max(utilisation);
            day.cost_usd += count * candidate.instance_usd_per_h;
            let wait_ms =
                if utilisation < 1.0 { candidate.wait_ms(utilisation) } else { f64::INFINITY };
            let site_hour = SiteHour { service_ms: candidate.service_ms, wait_ms, utilisation };
            for base in own {
                let responses = self.bases[*base].responses[hour];
                let path = &self.paths[*base][site];
                let gigabytes = responses * self.bases[*base].gigabytes;
                day.cost_usd += gigabytes * candidate.transfer_usd_per_gb;
                let services = path.services(count);
                day.within += responses * within(self.objective_ms, path, services, site_hour);
                if wait_ms.is_finite() {
                    let mean_ms = path.mean_ms + services * (candidate.service_ms + wait_ms);
                    day.response_ms += responses * mean_ms;
                    day.served += responses;
                }
            }
        }
        sum / HOURS as f64
    }

    /// Returns the maximum share of a base's responses within the objective at a site without other load.
    pub fn best_within(&self, base: usize, site: usize) -> f64 {
        let service_ms = self.candidates[site].service_ms;
        let idle = SiteHour { service_ms, wait_ms: 0.0, utilisation: 0.0 };
        let path = &self.paths[base][site];
        within(self.objective_ms, path, path.visits, idle)
    }
}

/// Sums over the hours of the day and the sites.
#[derive(Default)]
struct Day {
    cost_usd: f64,
    within: f64,
    served: f64,
    response_ms: f64,
    utilisation: f64,
}

/// Returns the probability that network time (normal), service (constant) and wait (exponential, with the
/// probability that the instance is busy) are within the objective.
fn within(objective_ms: f64, path: &ResponsePath, services: f64, site: SiteHour) -> f64 {
    if !path.mean_ms.is_finite() || (services > 0.0 && !site.wait_ms.is_finite()) {
        return 0.0;
    }
    let left = objective_ms - path.mean_ms - services * site.service_ms;
    let deviation = path.deviation_ms;
    let idle = normal_below(left, deviation);
    if site.utilisation <= 0.0 || site.wait_ms <= 0.0 || services <= 0.0 || idle == 0.0 {
        return idle;
    }
    let rate = site.utilisation / (services * site.wait_ms);
    if deviation <= 0.0 {
        return 1.0 - site.utilisation * (-rate * left).exp();
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
    (idle - site.utilisation * late).clamp(0.0, 1.0)
}

/// Returns the density of the standard normal distribution.
fn density(z: f64) -> f64 {
    (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt()
}

/// Returns the probability that a normal of mean 0 and that deviation is at most `x`.
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
        let way = |deviation_ms| ResponsePath::single(50.0, 100.0, deviation_ms);
        // M/M/1 in order of arrival, utilisation 0.5, service 10: a wait of 10 in the mean, above t
        // with probability 0.5 exp(-t / 20).
        let busy = SiteHour { service_ms: 10.0, wait_ms: 10.0, utilisation: 0.5 };
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
        let short = |wait_ms| SiteHour { service_ms: 10.0, wait_ms, utilisation: 0.5 };
        let idle = within(140.0, &way(10.0), 1.0, short(0.0));
        for wait_ms in [1e-6, 0.01, 0.6, 0.7, 0.8] {
            let off = idle - within(140.0, &way(10.0), 1.0, short(wait_ms));
            // The mean moves by the wait, the density there is 0.00044 a ms, and steeper to the left.
            assert!((0.0..=0.001 * wait_ms + 1e-12).contains(&off), "{wait_ms}: {off}");
        }
        assert_eq!(within(140.0, &ResponsePath::NONE, 1.0, busy), 0.0);
    }
}
