//! Locations, and the latency and bandwidth between them.
use super::ordered_map::OrderedMap;
use super::random_factor::RandomFactor;
use super::regions;
use super::scenario::{Bandwidth, Distance, GeoScenario, Latency, Position};
use crate::error::{refuse, Result};
use crate::random::RandomStream;
use std::sync::Arc;

/// Nanoseconds in a millisecond.
pub const MS: f64 = 1e6;

/// Location of a user base, a cache or a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    pub name: String,
    /// Its own name if it has no region.
    pub region: String,
    pub position: Option<Position>,
}

impl Location {
    /// Returns an error for half a position, and for one that is not on the Earth.
    pub fn new(
        scenario: &GeoScenario,
        name: &str,
        region: Option<&str>,
        lat: Option<f64>,
        lon: Option<f64>,
    ) -> Result<Self> {
        let own = match (lat, lon) {
            (Some(lat), Some(lon)) => Some(Position { lat, lon }),
            (None, None) => None,
            _ => {
                let hint = "Give both, or neither and a region.";
                return refuse(format!("`{name}` has only one of lat and lon."), hint);
            }
        };
        let region = region.unwrap_or(name);
        let of_region = || scenario.regions.get(region).copied();
        let of_known = || regions::index(region).map(|index| regions::REGIONS[index].1);
        let position = own.or_else(of_region).or_else(of_known);
        if let Some(Position { lat, lon }) = position {
            if !(lat.abs() <= 90.0 && lon.abs() <= 180.0) {
                return refuse(
                    format!("`{name}` has position {lat}, {lon}, which is not on the Earth."),
                    "Give degrees: lat from -90 to 90, lon from -180 to 180.",
                );
            }
        }
        Ok(Self { name: name.into(), region: region.into(), position })
    }
}

/// One-way latency in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Varies around that mean.
    Mean(f64),
    /// Is resampled from these.
    Measured(Arc<[f64]>),
}

impl Delay {
    pub fn mean_ns(&self) -> f64 {
        match self {
            Self::Mean(mean) => *mean,
            Self::Measured(values) => values.iter().sum::<f64>() / values.len() as f64,
        }
    }

    #[inline]
    pub fn draw(&self, factor: &RandomFactor, stream: &mut RandomStream) -> f64 {
        match self {
            Self::Mean(mean) => mean * factor.draw(stream),
            Self::Measured(values) => values[stream.below(values.len() as u64) as usize],
        }
    }
}

/// Looks a pair up by names first, then by regions, in either order.
fn find_pair<'a, T>(
    table: &'a OrderedMap<OrderedMap<T>>,
    from: &Location,
    to: &Location,
) -> Option<&'a T> {
    let names = [(&from.name, &to.name), (&from.name, &to.region)];
    let regions = [(&from.region, &to.name), (&from.region, &to.region)];
    names.iter().chain(&regions).find_map(|(a, b)| {
        let forward = table.get(a).and_then(|row| row.get(b));
        forward.or_else(|| table.get(b).and_then(|row| row.get(a)))
    })
}

/// Returns the great-circle distance in kilometres. Source: the haversine formula, mean radius
/// 6371.0088 km (IUGG).
pub fn great_circle_km(from: Position, to: Position) -> f64 {
    let half = |a: f64, b: f64| ((b - a).to_radians() / 2.0).sin().powi(2);
    let cosines = from.lat.to_radians().cos() * to.lat.to_radians().cos();
    let chord = half(from.lat, to.lat) + cosines * half(from.lon, to.lon);
    2.0 * 6371.0088 * chord.sqrt().min(1.0).asin()
}

/// Returns the one-way latency in milliseconds that follows from the distance.
fn latency_by_distance(rule: &Distance, from: &Location, to: &Location) -> Result<f64> {
    let position = |location: &Location| match location.position {
        Some(position) => Ok(position),
        None => refuse(
            format!("`{}` has no position, from which latency could follow.", location.name),
            "Give it lat and lon, or a region that has them, or give latency as a matrix.",
        ),
    };
    let km = great_circle_km(position(from)?, position(to)?);
    Ok(rule.fixed_ms + rule.detour * km / rule.km_per_ms)
}

/// Returns the latency between two locations; None if they are not connected.
pub fn latency(scenario: &GeoScenario, from: &Location, to: &Location) -> Result<Option<Delay>> {
    let check = |ms: f64| {
        // A latency of an hour is a mistake in the unit.
        if (0.0..3.6e6).contains(&ms) {
            return Ok(());
        }
        let what = format!("The latency between `{}` and `{}` is {ms} ms.", from.name, to.name);
        refuse(what, "Give milliseconds from zero on.")
    };
    let ms = match &scenario.latency {
        Latency::Cloudanalyst => regions::latency_ms(&from.region, &to.region),
        Latency::Matrix(matrix) => find_pair(matrix, from, to).copied(),
        Latency::Distance(rule) => Some(latency_by_distance(rule, from, to)?),
        Latency::Measured(matrix) => {
            let Some(values) = find_pair(matrix, from, to) else { return Ok(None) };
            if values.is_empty() {
                check(f64::NAN)?;
            }
            values.iter().try_for_each(|ms| check(*ms))?;
            return Ok(Some(Delay::Measured(values.iter().map(|ms| ms * MS / 2.0).collect())));
        }
    };
    ms.map(|ms| check(ms).map(|()| Delay::Mean(ms * MS))).transpose()
}

/// Returns the bandwidth between two locations; None for no limit.
pub fn bandwidth_mbps(
    scenario: &GeoScenario,
    from: &Location,
    to: &Location,
) -> Result<Option<f64>> {
    let mbps_limit = match &scenario.bandwidth {
        Bandwidth::Unlimited => None,
        Bandwidth::Cloudanalyst => regions::bandwidth_mbps(&from.region, &to.region),
        Bandwidth::Matrix(matrix) => find_pair(matrix, from, to).copied(),
    };
    match mbps_limit {
        Some(mbps) if !(mbps.is_finite() && mbps > 0.0) => refuse(
            format!("The bandwidth between `{}` and `{}` is {mbps}.", from.name, to.name),
            "Give Mbit/s above zero, or remove the pair for no limit.",
        ),
        mbps_limit => Ok(mbps_limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn great_circles() {
        let position = |lat, lon| Position { lat, lon };
        // A quarter of the way around, and New York to London (airports: 5,540 km).
        let quarter = great_circle_km(position(0.0, 0.0), position(0.0, 90.0));
        assert!((quarter - 10_007.557).abs() < 0.01, "{quarter}");
        let ocean = great_circle_km(position(40.64, -73.78), position(51.47, -0.45));
        assert!((ocean - 5540.0).abs() < 10.0, "{ocean}");
        assert_eq!(great_circle_km(position(3.0, 4.0), position(3.0, 4.0)), 0.0);
    }

    #[test]
    fn names_come_before_regions_in_either_order() {
        let text = r#"{"eu":{"us":80,"site":70},"base":{"us":60}}"#;
        let table: OrderedMap<OrderedMap<f64>> = serde_json::from_str(text).unwrap();
        let location = |name: &str, region: &str| Location {
            name: name.into(),
            region: region.into(),
            position: None,
        };
        assert_eq!(find_pair(&table, &location("a", "us"), &location("b", "eu")), Some(&80.0));
        assert_eq!(find_pair(&table, &location("a", "eu"), &location("site", "us")), Some(&70.0));
        assert_eq!(find_pair(&table, &location("base", "eu"), &location("c", "us")), Some(&60.0));
        assert_eq!(find_pair(&table, &location("a", "asia"), &location("b", "eu")), None);
    }
}
