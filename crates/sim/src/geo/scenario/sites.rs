//! Who answers: sites and caches, what they cost and when they fail.
use serde::{Deserialize, Serialize};

/// Hosts in one place, with the instances that run on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Region; without one, the site is a region of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Latitude; without one, the region's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lat: Option<f64>,
    /// Longitude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lon: Option<f64>,
    /// Hosts.
    #[serde(default = "hosts")]
    pub hosts: u32,
    /// Processors of each host.
    #[serde(default = "processors")]
    pub processors: u32,
    /// Instructions that a processor does in a millisecond.
    #[serde(default = "speed")]
    pub speed: f64,
    /// Instances at the beginning. Each has one processor, or its part of the host's when there are
    /// more instances than processors.
    #[serde(default = "instances")]
    pub instances: u32,
    /// How an instance serves several requests.
    #[serde(default)]
    pub discipline: Discipline,
    /// More and fewer instances as the load asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// What it costs.
    #[serde(default)]
    pub price: Price,
    /// Its part of the requests with the broker `weighted`.
    #[serde(default = "super::users::factor_one")]
    pub weight: f64,
    /// When it is down.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fails: Vec<Outage>,
    /// How often it is down by chance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
}

fn hosts() -> u32 {
    2
}

fn processors() -> u32 {
    4
}

fn speed() -> f64 {
    10_000.0
}

fn instances() -> u32 {
    5
}

/// How an instance serves several requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// All at once, equally.
    #[default]
    Sharing,
    /// In the order of arrival, each to its end.
    Fifo,
}

/// More and fewer instances as the load asks for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Autoscaling {
    /// Never fewer instances.
    pub least: u32,
    /// Never more instances.
    pub most: u32,
    /// Utilisation above which instances are added, so many that it would fall to this.
    pub up_at: f64,
    /// Utilisation below which one instance is taken away when its requests are done.
    pub down_at: f64,
    /// Seconds over which utilisation is taken.
    pub every_s: f64,
    /// Seconds from the order of an instance to its first request.
    pub delay_s: f64,
}

impl Default for Autoscaling {
    fn default() -> Self {
        Self { least: 1, most: 100, up_at: 0.7, down_at: 0.3, every_s: 60.0, delay_s: 120.0 }
    }
}

/// What a site costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
    /// Of an instance, US dollars an hour.
    pub instance_usd_per_h: f64,
    /// Of what goes in and out, US dollars for 2^30 bytes.
    pub transfer_usd_per_gb: f64,
    /// An instance is paid in whole steps of so many seconds.
    pub billed_s: f64,
}

impl Default for Price {
    fn default() -> Self {
        Self { instance_usd_per_h: 0.10, transfer_usd_per_gb: 0.10, billed_s: 1.0 }
    }
}

/// Hours in which something is down.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// First moment, in hours of the run.
    pub from_h: f64,
    /// Last moment.
    pub to_h: f64,
}

/// Failures by chance; times between them and until repair are exponential.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reliability {
    /// Mean hours until a failure.
    pub up_h: f64,
    /// Mean hours until it is repaired.
    pub down_h: f64,
}

/// A cache: users for whom it is nearer than the nearest site ask it first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Region.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Latitude; without one, the region's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lat: Option<f64>,
    /// Longitude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lon: Option<f64>,
    /// Part of the requests that it answers itself; the others it passes on to a site.
    pub hit_ratio: f64,
    /// Milliseconds that it takes itself.
    #[serde(default)]
    pub serves_ms: f64,
    /// Of what it sends to users, US dollars for 2^30 bytes.
    #[serde(default)]
    pub transfer_usd_per_gb: f64,
}
