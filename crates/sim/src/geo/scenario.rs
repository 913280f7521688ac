//! What a scenario of sites and users says: the keys, their units, their defaults.
//!
//! Every key that is not listed here is refused. Hours of a run count from 00:00 UTC of its first
//! day. Latency is one way, in milliseconds; a round trip takes twice as long.
mod sites;
mod users;
mod ways;

use super::named::Named;
use super::place::Question;
use serde::{Deserialize, Serialize};

pub use sites::{Autoscaling, Cache, Discipline, Outage, Price, Reliability, Site};
pub use users::{Position, UserBase, Users, Zone};
pub use ways::{Balancer, Bandwidth, Broker, Distance, Latency, LinkFailure};

/// Users, sites, and what lies between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of this format: 1.
    pub version: u32,
    /// What it is called.
    #[serde(default)]
    pub name: String,
    /// What it shows, and where its figures come from.
    #[serde(default)]
    pub note: String,
    /// `cloudanalyst` keeps that tool's quirks, each of which the model is free of otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Simulated hours that count.
    #[serde(default = "day")]
    pub duration_h: f64,
    /// Seconds simulated before anything counts. Default: 60; with `compat` 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_s: Option<f64>,
    /// Where chance begins.
    #[serde(default = "one")]
    pub seed: u64,
    /// A response within so many milliseconds satisfies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective_ms: Option<f64>,
    /// Who asks.
    pub user_bases: Named<UserBase>,
    /// Who answers.
    pub sites: Named<Site>,
    /// Caches near the users.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub caches: Named<Cache>,
    /// Where regions lie, besides the six that are known: north_america, south_america, europe,
    /// asia, africa, oceania.
    #[serde(default, skip_serializing_if = "Named::is_empty")]
    pub regions: Named<Position>,
    /// How long the way takes.
    #[serde(default)]
    pub latency: Latency,
    /// How much the way carries.
    #[serde(default)]
    pub bandwidth: Bandwidth,
    /// Ways that are broken for some hours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link_failures: Vec<LinkFailure>,
    /// Seconds until brokers notice that a site or a way has failed or is back.
    #[serde(default = "half_a_minute")]
    pub failover_s: f64,
    /// Which site answers.
    #[serde(default)]
    pub broker: Broker,
    /// Which instance of the site answers.
    #[serde(default)]
    pub balancer: Balancer,
    /// Users and requests that are simulated as one.
    #[serde(default)]
    pub grouping: Grouping,
    /// Instructions that a request needs.
    #[serde(default = "hundred")]
    pub instructions: f64,
    /// How the instructions of requests are spread around that mean.
    #[serde(default)]
    pub instructions_spread: Spread,
    /// How much latency, bandwidth and users vary around their means.
    #[serde(default)]
    pub variation: Variation,
    /// What to do with more load than the sites can serve.
    #[serde(default)]
    pub overload: Overload,
    /// Which of the sites there should be: limits for choosing among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Question>,
}

fn day() -> f64 {
    24.0
}

fn one() -> u64 {
    1
}

fn half_a_minute() -> f64 {
    30.0
}

fn hundred() -> f64 {
    100.0
}

/// Another tool's model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// CloudAnalyst of 2010: bursts instead of a stream of requests; the answer counts when the first
    /// part of a message is done; peak hours are absolute hours in UTC, whose ends are left out; a
    /// way's traffic is taken off twice; round robin also steps at completions; messages of fewer
    /// users weigh as much as full ones; bandwidth is in units of 2^20 bytes a second; transfer is
    /// paid by 2^20 bytes.
    Cloudanalyst,
}

/// Users and requests that are simulated as one: faster, and coarser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grouping {
    /// Users whose requests travel as one message.
    pub users: u32,
    /// Requests of a message that an instance serves as one.
    pub requests: u32,
}

impl Default for Grouping {
    fn default() -> Self {
        Self { users: 1, requests: 1 }
    }
}

/// How the instructions of requests are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Every request needs the same.
    #[default]
    Constant,
    /// Exponential.
    Exponential,
    /// Log-normal, of that coefficient of variation.
    LogNormal(f64),
}

/// Standard deviations over means, drawn anew for every message (users: for every hour).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Variation {
    /// Of the latency; measured latency varies as measured.
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

/// What to do with more load than the sites can serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overload {
    /// Say so instead of running.
    #[default]
    Refuse,
    /// Run: lines grow for as long as the load lasts.
    Run,
}
