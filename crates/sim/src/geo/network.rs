//! What lies between places: how long the way takes, and how much it carries.
use super::named::Named;
use super::noise::Noise;
use super::scenario::{Bandwidth, Distance, Latency, Position, Scenario};
use super::table;
use crate::error::Refused;
use crate::random::Stream;
use std::sync::Arc;

/// Nanoseconds in a millisecond.
pub const MS: f64 = 1e6;

/// A place: a user base, a cache or a site.
#[derive(Clone, Debug, PartialEq)]
pub struct Spot {
    /// Its name.
    pub name: String,
    /// Its region: its own name if it was given none.
    pub region: String,
    /// Where it lies, if that is known.
    pub position: Option<Position>,
}

impl Spot {
    /// A place as the scenario gives it. Refused: half a position, or one that is not on the Earth.
    pub fn of(
        scenario: &Scenario,
        name: &str,
        region: Option<&str>,
        lat: Option<f64>,
        lon: Option<f64>,
    ) -> Result<Self, Refused> {
        let given = match (lat, lon) {
            (Some(lat), Some(lon)) => Some(Position { lat, lon }),
            (None, None) => None,
            _ => {
                return Err(Refused::new(
                    format!("`{name}` has only one of lat and lon."),
                    "Give both, or neither and a region.",
                ))
            }
        };
        let region = region.unwrap_or(name);
        let of_region = || scenario.regions.get(region).copied();
        let known = || table::known(region).map(|number| table::REGIONS[number].1);
        let position = given.or_else(of_region).or_else(known);
        if let Some(Position { lat, lon }) = position {
            if !(lat.abs() <= 90.0 && lon.abs() <= 180.0) {
                return Err(Refused::new(
                    format!("`{name}` lies at {lat}, {lon}, which is no place on the Earth."),
                    "Give degrees: lat from -90 to 90, lon from -180 to 180.",
                ));
            }
        }
        Ok(Self { name: name.into(), region: region.into(), position })
    }
}

/// How long a way takes.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Nanoseconds one way, on average.
    Mean(f64),
    /// One of these, nanoseconds one way.
    Drawn(Arc<[f64]>),
}

impl Delay {
    /// Its mean in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match self {
            Self::Mean(mean) => *mean,
            Self::Drawn(values) => values.iter().sum::<f64>() / values.len() as f64,
        }
    }

    /// One draw in nanoseconds.
    #[inline]
    pub fn draw(&self, noise: &Noise, stream: &mut Stream) -> f64 {
        match self {
            Self::Mean(mean) => mean * noise.draw(stream),
            Self::Drawn(values) => values[stream.below(values.len() as u64) as usize],
        }
    }
}

/// Looks a pair up by names first, then by regions, in either order.
fn pair<'a, T>(table: &'a Named<Named<T>>, one: &Spot, other: &Spot) -> Option<&'a T> {
    let names = [(&one.name, &other.name), (&one.name, &other.region)];
    let regions = [(&one.region, &other.name), (&one.region, &other.region)];
    names.iter().chain(&regions).find_map(|(a, b)| {
        let there = table.get(a).and_then(|row| row.get(b));
        there.or_else(|| table.get(b).and_then(|row| row.get(a)))
    })
}

/// Kilometres on the great circle. Source: the haversine formula, mean radius 6371.0088 km (IUGG).
pub fn great_circle_km(from: Position, to: Position) -> f64 {
    let half = |a: f64, b: f64| ((b - a).to_radians() / 2.0).sin().powi(2);
    let cosines = from.lat.to_radians().cos() * to.lat.to_radians().cos();
    let chord = half(from.lat, to.lat) + cosines * half(from.lon, to.lon);
    2.0 * 6371.0088 * chord.sqrt().min(1.0).asin()
}

/// Milliseconds one way from a distance.
fn by_distance(rule: &Distance, one: &Spot, other: &Spot) -> Result<f64, Refused> {
    let place = |spot: &Spot| {
        spot.position.ok_or_else(|| {
            Refused::new(
                format!("`{}` has no position, and latency is to follow from distance.", spot.name),
                "Give it lat and lon, or a region that has them, or give latency as a matrix.",
            )
        })
    };
    let km = great_circle_km(place(one)?, place(other)?);
    Ok(rule.fixed_ms + rule.detour * km / rule.km_per_ms)
}

/// The way between two places; None where there is none. Refused: a latency that is none.
pub fn latency(scenario: &Scenario, one: &Spot, other: &Spot) -> Result<Option<Delay>, Refused> {
    let ms = match &scenario.latency {
        Latency::Cloudanalyst => table::latency_ms(&one.region, &other.region),
        Latency::Matrix(matrix) => pair(matrix, one, other).copied(),
        Latency::Distance(rule) => Some(by_distance(rule, one, other)?),
        Latency::Measured(matrix) => {
            let Some(values) = pair(matrix, one, other) else { return Ok(None) };
            let wrong = values.iter().find(|value| !is_latency(**value));
            if let Some(ms) = wrong.copied().or(values.is_empty().then_some(f64::NAN)) {
                return Err(no_latency(one, other, ms));
            }
            return Ok(Some(Delay::Drawn(values.iter().map(|ms| ms * MS / 2.0).collect())));
        }
    };
    match ms {
        Some(ms) if !is_latency(ms) => Err(no_latency(one, other, ms)),
        ms => Ok(ms.map(|ms| Delay::Mean(ms * MS))),
    }
}

fn is_latency(ms: f64) -> bool {
    // An hour on the way is a mistake in the unit.
    (0.0..3.6e6).contains(&ms)
}

fn no_latency(one: &Spot, other: &Spot, ms: f64) -> Refused {
    Refused::new(
        format!("The latency between `{}` and `{}` is {ms} ms.", one.name, other.name),
        "Give milliseconds from zero on.",
    )
}

/// Bandwidth between two places, as given; None without a limit. Refused: one not above zero.
pub fn bandwidth_mbps(
    scenario: &Scenario,
    one: &Spot,
    other: &Spot,
) -> Result<Option<f64>, Refused> {
    let given = match &scenario.bandwidth {
        Bandwidth::Unlimited => None,
        Bandwidth::Cloudanalyst => table::bandwidth_mbps(&one.region, &other.region),
        Bandwidth::Matrix(matrix) => pair(matrix, one, other).copied(),
    };
    match given {
        Some(mbps) if !(mbps.is_finite() && mbps > 0.0) => Err(Refused::new(
            format!("The bandwidth between `{}` and `{}` is {mbps}.", one.name, other.name),
            "Give megabits a second above zero, or leave the pair out for no limit.",
        )),
        given => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn great_circles() {
        let place = |lat, lon| Position { lat, lon };
        // A quarter of the way around, and New York to London (airports: 5,540 km).
        let quarter = great_circle_km(place(0.0, 0.0), place(0.0, 90.0));
        assert!((quarter - 10_007.557).abs() < 0.01, "{quarter}");
        let ocean = great_circle_km(place(40.64, -73.78), place(51.47, -0.45));
        assert!((ocean - 5540.0).abs() < 10.0, "{ocean}");
        assert_eq!(great_circle_km(place(3.0, 4.0), place(3.0, 4.0)), 0.0);
    }

    #[test]
    fn names_come_before_regions_in_either_order() {
        let text = r#"{"eu":{"us":80,"site":70},"base":{"us":60}}"#;
        let table: Named<Named<f64>> = serde_json::from_str(text).unwrap();
        let spot = |name: &str, region: &str| Spot {
            name: name.into(),
            region: region.into(),
            position: None,
        };
        assert_eq!(pair(&table, &spot("a", "us"), &spot("b", "eu")), Some(&80.0));
        assert_eq!(pair(&table, &spot("a", "eu"), &spot("site", "us")), Some(&70.0));
        assert_eq!(pair(&table, &spot("base", "eu"), &spot("c", "us")), Some(&60.0));
        assert_eq!(pair(&table, &spot("a", "asia"), &spot("b", "eu")), None);
    }
}
