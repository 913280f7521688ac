//! The six known regions, with CloudAnalyst's latencies and bandwidths between them.
//! Source: Wickremasinghe, Calheiros and Buyya, CloudAnalyst, AINA 2010, and the tool's defaults.
use super::scenario::Position;

/// Names of the regions, in the tool's order, and a point near most of their users.
pub const REGIONS: [(&str, Position); 6] = [
    ("north_america", Position { lat: 39.0, lon: -95.0 }),
    ("south_america", Position { lat: -17.0, lon: -55.0 }),
    ("europe", Position { lat: 49.5, lon: 10.0 }),
    ("asia", Position { lat: 26.0, lon: 95.0 }),
    ("africa", Position { lat: 6.0, lon: 20.0 }),
    ("oceania", Position { lat: -32.0, lon: 147.0 }),
];

/// One-way latencies in milliseconds.
const LATENCY_MS: [[f64; 6]; 6] = [
    [25.0, 100.0, 150.0, 250.0, 250.0, 100.0],
    [100.0, 25.0, 250.0, 500.0, 350.0, 200.0],
    [150.0, 250.0, 25.0, 150.0, 150.0, 200.0],
    [250.0, 500.0, 150.0, 25.0, 500.0, 500.0],
    [250.0, 350.0, 150.0, 500.0, 25.0, 500.0],
    [100.0, 200.0, 200.0, 500.0, 500.0, 25.0],
];

/// Within a region; the tool calls the unit Mbit/s and computes with megabytes.
const BANDWIDTH_WITHIN: [f64; 6] = [2000.0, 800.0, 2500.0, 1500.0, 500.0, 2000.0];
const BANDWIDTH_BETWEEN: f64 = 1000.0;

/// Returns the index of a known region.
pub fn index(region: &str) -> Option<usize> {
    REGIONS.iter().position(|entry| entry.0 == region)
}

/// Returns the one-way latency between two known regions.
pub fn latency_ms(from: &str, to: &str) -> Option<f64> {
    Some(LATENCY_MS[index(from)?][index(to)?])
}

/// Returns the bandwidth between two known regions.
pub fn bandwidth_mbps(from: &str, to: &str) -> Option<f64> {
    let (from, to) = (index(from)?, index(to)?);
    Some(if from == to { BANDWIDTH_WITHIN[from] } else { BANDWIDTH_BETWEEN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_symmetric() {
        for (from, _) in REGIONS {
            for (to, _) in REGIONS {
                assert_eq!(latency_ms(from, to), latency_ms(to, from));
            }
        }
        assert_eq!((latency_ms("asia", "europe"), latency_ms("asia", "mars")), (Some(150.0), None));
    }
}
