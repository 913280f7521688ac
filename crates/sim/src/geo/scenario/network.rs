//! The network between users and sites, and the rules that route requests.
use crate::geo::ordered_map::OrderedMap;
use serde::Deserialize;

/// A failure of a network path.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFailure {
    /// Its two ends: names of regions, user bases, sites or caches.
    pub between: [String; 2],
    /// Start, in hours of the run.
    pub from_h: f64,
    /// End, in hours of the run.
    pub to_h: f64,
}

/// Latency between locations. Pairs are looked up by the names of user base, cache or site first, then
/// by their regions, in either order; a pair that is not given is not connected.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Latency {
    /// CloudAnalyst's table between the six regions.
    Cloudanalyst,
    /// One-way latency in milliseconds by pair of locations.
    Matrix(OrderedMap<OrderedMap<f64>>),
    /// Measured round-trip times in milliseconds by pair of locations, which are resampled.
    Measured(OrderedMap<OrderedMap<Vec<f64>>>),
    /// From the great-circle distance.
    Distance(Distance),
}

impl Default for Latency {
    fn default() -> Self {
        Self::Distance(Distance::default())
    }
}

/// Latency from distance: fixed_ms + detour x great-circle distance / km_per_ms.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Distance {
    /// One-way latency in milliseconds that does not depend on the distance.
    pub fixed_ms: f64,
    /// Propagation speed in kilometres per millisecond (light in glass).
    pub km_per_ms: f64,
    /// Length of the cable over the great-circle distance.
    pub detour: f64,
}

impl Default for Distance {
    fn default() -> Self {
        Self { fixed_ms: 5.0, km_per_ms: 204.0, detour: 1.5 }
    }
}

/// Bandwidth between two regions in Mbit/s, for all users together.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Bandwidth {
    /// No limit.
    #[default]
    Unlimited,
    /// CloudAnalyst's table between the six regions.
    Cloudanalyst,
    /// By pair of locations, as for latency; a pair that is not given has no limit.
    Matrix(OrderedMap<OrderedMap<f64>>),
}

/// Rule that selects the site of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Broker {
    /// The site of minimum latency; a random one of several such.
    #[default]
    Closest,
    /// The site of minimum sum of round trip and recent processing time.
    BestResponse,
    /// The closest; sites without autoscaling of their own get the default rule.
    Reconfiguring,
    /// A random site, in proportion to the weights.
    Weighted,
    /// The closest site with fewer requests per instance, in service or in flight, than this.
    Overflow {
        /// Requests per instance.
        requests_per_instance: f64,
    },
}

/// Rule that selects the instance within a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Balancer {
    /// The instances in turn.
    #[default]
    RoundRobin,
    /// The instance with the fewest requests.
    EquallySpread,
    /// An idle instance; until there is one, requests wait in order of arrival.
    Throttled,
    /// The instance that will complete its requests first.
    LeastTime,
}
