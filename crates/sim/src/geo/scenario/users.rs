//! User bases: where they are, and when they send requests.
use crate::geo::page::Page;
use crate::scenarios::{default, default_count};
use serde::Deserialize;

/// A point on the Earth, in degrees.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Position {
    /// Latitude, north above zero.
    pub lat: f64,
    /// Longitude, east above zero.
    pub lon: f64,
}

/// Users at one location.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserBase {
    /// Region, by which results are grouped; if left out, the user base is a region of its own.
    pub region: Option<String>,
    /// Latitude; the region's if left out.
    pub lat: Option<f64>,
    /// Longitude.
    pub lon: Option<f64>,
    /// Time zone, without daylight saving time: hours ahead of UTC, from -14 to 14, or a name.
    #[serde(default)]
    pub zone: Zone,
    /// Number of active users by local hour.
    pub users: Users,
    /// Factor by which the number of users is multiplied.
    #[serde(default = "default::<1>")]
    pub growth: f64,
    /// Request rate of an active user, independent of responses.
    pub requests_per_user_h: Option<f64>,
    /// Instead of that rate: mean seconds from a response to the user's next request.
    pub think_time_s: Option<f64>,
    /// Size of a request in bytes.
    #[serde(default = "default_count::<100, _>")]
    pub request_bytes: u64,
    /// Size of a response in bytes.
    #[serde(default = "default_count::<100, _>")]
    pub response_bytes: u64,
    /// Bandwidth of a user's access line in Mbit/s; unlimited if left out.
    pub access_mbps: Option<f64>,
    /// Makes each request a page load of several round trips.
    pub page: Option<Page>,
}

/// A time zone: a number of hours, such as -6, or the name of an offset, such as `UTC+5:30`.
///
/// Names of regions, such as `Europe/Berlin`, are refused: their offset changes over the year.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Zone {
    /// Hours ahead of UTC.
    Hours(f64),
    /// `UTC`, `UTC+5:30`, `UTC-6`, or without the letters: `+5:30`, `-6`.
    Text(String),
}

impl Default for Zone {
    fn default() -> Self {
        Self::Hours(0.0)
    }
}

/// Number of active users: 24 values in `by_hour`, or `peak` within `peak_hours` and `off_peak`
/// otherwise.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Users {
    /// Number of users within the peak hours.
    pub peak: Option<f64>,
    /// Number of users in the other hours.
    pub off_peak: Option<f64>,
    /// Start and end of the peak in hours of local time; 22 to 2 extends over midnight.
    pub peak_hours: Option<[f64; 2]>,
    /// Number of users in the local hours 0, 1, …, 23.
    pub by_hour: Option<Vec<f64>>,
}
