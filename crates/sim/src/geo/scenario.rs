//! Keys of a scenario of sites and users.
//!
//! Hours of a run count from 00:00 UTC of its first day. Latency is one way, in milliseconds; a round
//! trip takes twice as long.
mod network;
mod sites;
mod users;

use super::ordered_map::OrderedMap;
use super::place::PlacementConfig;
use crate::scenarios::{default, default_count};
use serde::Deserialize;

pub use network::{Balancer, Bandwidth, Broker, Distance, Latency, LinkFailure};
pub use sites::{Autoscaling, Cache, Discipline, Outage, Price, Reliability, Site};
pub use users::{Position, UserBase, Users, Zone};

/// Users, sites, and the network between them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeoScenario {
    /// Version of this format: 1.
    pub version: u32,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Purpose, and sources of the values.
    #[serde(default)]
    pub note: String,
    /// Compatibility mode: `cloudanalyst` reproduces the known errors of that tool.
    pub compat: Option<Compat>,
    /// Simulated hours that are measured.
    #[serde(default = "default::<24>")]
    pub duration_h: f64,
    /// Length of the warm-up in seconds; 60 if left out, 0 with `compat`.
    pub warm_up_s: Option<f64>,
    /// Random seed.
    #[serde(default = "default_count::<1, _>")]
    pub seed: u64,
    /// Response time objective in milliseconds.
    pub objective_ms: Option<f64>,
    /// User bases by name.
    pub user_bases: OrderedMap<UserBase>,
    /// Sites by name.
    pub sites: OrderedMap<Site>,
    /// Caches near the users, by name.
    #[serde(default)]
    pub caches: OrderedMap<Cache>,
    /// Positions of regions besides the six that are known: north_america, south_america, europe,
    /// asia, africa, oceania.
    #[serde(default)]
    pub regions: OrderedMap<Position>,
    /// Latency between regions.
    #[serde(default)]
    pub latency: Latency,
    /// Bandwidth between regions.
    #[serde(default)]
    pub bandwidth: Bandwidth,
    /// Failures of network paths.
    #[serde(default)]
    pub link_failures: Vec<LinkFailure>,
    /// Seconds until the broker notices that a site or a network path has failed or recovered.
    #[serde(default = "default::<30>")]
    pub failover_s: f64,
    /// Rule that selects the site of a request.
    #[serde(default)]
    pub broker: Broker,
    /// Rule that selects the instance within a site.
    #[serde(default)]
    pub balancer: Balancer,
    /// Grouping of users and requests.
    #[serde(default)]
    pub grouping: Grouping,
    /// Mean number of instructions of a request.
    #[serde(default = "default::<100>")]
    pub instructions: f64,
    /// Distribution of the instructions around that mean.
    #[serde(default)]
    pub instructions_spread: Spread,
    /// Random variation of latency, bandwidth and users around their means.
    #[serde(default)]
    pub variation: Variation,
    /// Handling of more load than the sites can serve.
    #[serde(default)]
    pub overload: Overload,
    /// Placement: which of the sites to choose, and within which limits.
    pub place: Option<PlacementConfig>,
}

/// Compatibility with the model of another tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// CloudAnalyst of 2010: users send in bursts instead of a stream; a response ends with the first
    /// batch of a message; peak hours are absolute hours in UTC without their ends; the traffic of a
    /// network path is subtracted twice; round robin also advances at completions; messages of fewer
    /// users weigh as much as full ones; bandwidth is in units of 2^20 bytes a second; transfer is
    /// billed by 2^20 bytes.
    Cloudanalyst,
}

/// Grouping of users and requests, which makes the simulation faster and coarser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grouping {
    /// Number of users whose requests are sent as one message.
    pub users: u32,
    /// Number of requests of a message that an instance serves as one batch.
    pub requests: u32,
}

impl Default for Grouping {
    fn default() -> Self {
        Self { users: 1, requests: 1 }
    }
}

/// Distribution of the instructions of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// The same for every request.
    #[default]
    Constant,
    /// Exponential.
    Exponential,
    /// Log-normal with this coefficient of variation.
    LogNormal(f64),
}

/// Coefficients of variation; drawn for every message (users: for every hour).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Variation {
    /// Of the latency; measured latency varies as it was measured.
    pub latency: f64,
    /// Of the bandwidth.
    pub bandwidth: f64,
    /// Of the number of users.
    pub users: f64,
}

impl Default for Variation {
    fn default() -> Self {
        Self { latency: 0.1, bandwidth: 0.1, users: 0.1 }
    }
}

/// Handling of more load than the sites can serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overload {
    /// Refuse to run.
    #[default]
    Refuse,
    /// Run; queues grow as long as the overload lasts.
    Run,
}
