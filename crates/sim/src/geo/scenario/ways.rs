//! What lies between users and sites, and which of them answers.
use crate::geo::named::Named;
use serde::{Deserialize, Serialize};

/// A way that is broken for some hours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFailure {
    /// Its two ends: names of regions, user bases, sites or caches.
    pub between: [String; 2],
    /// First moment, in hours of the run.
    pub from_h: f64,
    /// Last moment.
    pub to_h: f64,
}

/// How long the way takes. Pairs are looked up by the names of user base, cache or site first, then
/// by their regions, in either order; a pair that is not given is not connected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Latency {
    /// CloudAnalyst's table between the six regions.
    Cloudanalyst,
    /// Milliseconds one way, by place and place.
    Matrix(Named<Named<f64>>),
    /// Round trips that were measured, in milliseconds, by place and place: drawn again as they are.
    Measured(Named<Named<Vec<f64>>>),
    /// From the distance on the globe.
    Distance(Distance),
}

impl Default for Latency {
    fn default() -> Self {
        Self::Distance(Distance::default())
    }
}

/// Latency from distance: fixed_ms + detour x great circle / km_per_ms.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Distance {
    /// Milliseconds one way that do not depend on the distance.
    pub fixed_ms: f64,
    /// Kilometres in a millisecond: light in glass.
    pub km_per_ms: f64,
    /// How much longer the cable is than the great circle.
    pub detour: f64,
}

impl Default for Distance {
    fn default() -> Self {
        Self { fixed_ms: 5.0, km_per_ms: 204.0, detour: 1.5 }
    }
}

/// How much the way between two regions carries, in megabits a second, for all users together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Bandwidth {
    /// No limit.
    #[default]
    Unlimited,
    /// CloudAnalyst's table between the six regions.
    Cloudanalyst,
    /// By place and place, as latency is; a pair that is not given has no limit.
    Matrix(Named<Named<f64>>),
}

/// Which site answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Broker {
    /// The one of least latency; one of several such by chance.
    #[default]
    Closest,
    /// The one whose round trip and recent processing time are least together.
    BestResponse,
    /// The closest, and sites without autoscaling of their own get the default one.
    Reconfiguring,
    /// By chance, in proportion to the sites' weights.
    Weighted,
    /// The closest with fewer requests for each instance, in service or on their way, than this.
    Overflow {
        /// Requests for each instance.
        requests_per_instance: f64,
    },
}

/// Which instance of the site answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Balancer {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with fewest requests.
    EquallySpread,
    /// One without requests; until there is one, requests wait in the order of arrival.
    Throttled,
    /// The one that will be through with its requests first.
    LeastTime,
}
