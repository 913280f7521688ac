//! Sites and caches, their prices and failures.
use crate::scenarios::{default, default_count};
use serde::Deserialize;

/// Hosts at one location, and the instances that run on them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Region; if left out, the site is a region of its own.
    pub region: Option<String>,
    /// Latitude; the region's if left out.
    pub lat: Option<f64>,
    /// Longitude.
    pub lon: Option<f64>,
    /// Number of hosts.
    #[serde(default = "default_count::<2, _>")]
    pub hosts: u32,
    /// Number of processors of each host.
    #[serde(default = "default_count::<4, _>")]
    pub processors: u32,
    /// Speed of a processor in instructions per millisecond.
    #[serde(default = "default::<10000>")]
    pub speed: f64,
    /// Initial number of instances. Each has one processor, or its share of the host's processors if
    /// there are more instances than processors.
    #[serde(default = "default_count::<5, _>")]
    pub instances: u32,
    /// Order in which an instance serves its requests.
    #[serde(default)]
    pub discipline: Discipline,
    /// Autoscaling rule; the number of instances is constant if left out.
    pub autoscaling: Option<Autoscaling>,
    /// Prices.
    #[serde(default)]
    pub price: Price,
    /// Weight under the broker `weighted`.
    #[serde(default = "default::<1>")]
    pub weight: f64,
    /// Scheduled outages.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Random failures.
    pub reliability: Option<Reliability>,
}

/// Order in which an instance serves its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// All at once, equally (processor sharing).
    #[default]
    Sharing,
    /// In order of arrival, each to its end.
    Fifo,
}

/// An autoscaling rule.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Autoscaling {
    /// Minimum number of instances.
    pub min: u32,
    /// Maximum number of instances.
    pub max: u32,
    /// Utilisation above which instances are added, as many as would lower it to this.
    pub up_at: f64,
    /// Utilisation below which one instance is removed when its requests are done.
    pub down_at: f64,
    /// Interval in seconds over which utilisation is measured.
    pub every_s: f64,
    /// Start-up time of an instance in seconds.
    pub delay_s: f64,
}

impl Default for Autoscaling {
    fn default() -> Self {
        Self { min: 1, max: 100, up_at: 0.7, down_at: 0.3, every_s: 60.0, delay_s: 120.0 }
    }
}

/// Prices of a site.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
    /// Price of an instance, in US dollars per hour.
    pub instance_usd_per_h: f64,
    /// Price of incoming and outgoing traffic, in US dollars per 2^30 bytes.
    pub transfer_usd_per_gb: f64,
    /// Billing increment of instances in seconds.
    pub billed_s: f64,
}

impl Default for Price {
    fn default() -> Self {
        Self { instance_usd_per_h: 0.10, transfer_usd_per_gb: 0.10, billed_s: 1.0 }
    }
}

/// A scheduled outage.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Start, in hours of the run.
    pub from_h: f64,
    /// End, in hours of the run.
    pub to_h: f64,
}

/// Random failures; times to failure and to repair are exponentially distributed.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reliability {
    /// Mean time to failure in hours.
    pub up_h: f64,
    /// Mean time to repair in hours.
    pub down_h: f64,
}

/// A cache. Users for whom it is nearer than the nearest site ask it first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// Region.
    pub region: Option<String>,
    /// Latitude; the region's if left out.
    pub lat: Option<f64>,
    /// Longitude.
    pub lon: Option<f64>,
    /// Share of the requests that it answers; it passes the others on to a site.
    pub hit_ratio: f64,
    /// Service time in milliseconds.
    #[serde(default)]
    pub service_ms: f64,
    /// Price of traffic to users, in US dollars per 2^30 bytes.
    #[serde(default)]
    pub transfer_usd_per_gb: f64,
}
