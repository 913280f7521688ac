//! Who asks, from where and when.
use crate::geo::web::Page;
use serde::{Deserialize, Serialize};

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

pub(super) fn factor_one() -> f64 {
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
