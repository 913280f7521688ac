//! What a scenario of sites and users says: the keys, their units, their defaults.
//!
//! Every key that is not listed here is refused. Hours of a run count from 00:00 UTC of its first
//! day. Latency is one way, in milliseconds; a round trip takes twice as long.
use super::named::Named;
use super::place::Question;
use super::web::Page;
use serde::{Deserialize, Serialize};

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

/// A point on the Earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Latitude, north above zero.
    pub lat: f64,
    /// Longitude, east above zero.
    pub lon: f64,
}

/// Users who live in one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserBase {
    /// Region; results are given by it. Without one, the user base is a region of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Latitude; without one, the region's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lat: Option<f64>,
    /// Longitude.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lon: Option<f64>,
    /// Local time: hours ahead of UTC, or `UTC`, `UTC+5:30`, `UTC-6`.
    #[serde(default)]
    pub zone: Zone,
    /// Users at work, by local hour.
    pub users: Users,
    /// The number of users is multiplied by this.
    #[serde(default = "factor_one")]
    pub growth: f64,
    /// Requests of a user at work, whether answered or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_user_h: Option<f64>,
    /// Instead: mean seconds from an answer to the user's next request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think_time_s: Option<f64>,
    /// Bytes of a request.
    #[serde(default = "hundred_bytes")]
    pub request_bytes: u64,
    /// Bytes of an answer.
    #[serde(default = "hundred_bytes")]
    pub response_bytes: u64,
    /// What a user's own line carries, in megabits a second; without it, no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_mbps: Option<f64>,
    /// Each request is the load of a page, in several round trips.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<Page>,
}

fn factor_one() -> f64 {
    1.0
}

fn hundred_bytes() -> u64 {
    100
}

/// Local time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Zone {
    /// Hours ahead of UTC.
    Hours(f64),
    /// `UTC`, `UTC+5:30`, `UTC-6`.
    Text(String),
}

impl Default for Zone {
    fn default() -> Self {
        Self::Hours(0.0)
    }
}

/// Users at work: 24 values in `by_hour`, or `peak` within `peak_hours` and `off_peak` otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// Users within the peak hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<f64>,
    /// Users in the other hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_peak: Option<f64>,
    /// First and last moment of the peak, in hours of local time; 22 to 2 lies across midnight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_hours: Option<[f64; 2]>,
    /// Users in the local hours 0, 1, …, 23.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_hour: Option<Vec<f64>>,
}

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
    #[serde(default = "factor_one")]
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
