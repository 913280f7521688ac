//! Transfers of messages: how long each takes, and the bandwidth that earlier ones leave.
use super::network::{Delay, MS};
use super::random_factor::RandomFactor;
use super::scenario::GeoScenario;
use super::topology::{Base, NetworkPath, Topology};
use crate::error::Result;
use crate::random::RandomStream;
use crate::{Nanos, SECOND};

/// Bytes a second that CloudAnalyst takes a Mbit/s for.
const CLOUDANALYST_BYTES: f64 = 1_048_576.0;

/// State of one link, both directions.
#[derive(Clone, Debug)]
struct LinkState {
    /// Transmission time of a byte; 0 without a limit.
    ns_per_byte: f64,
    /// End of the transmission of earlier messages, up and down.
    free_at: [f64; 2],
    /// CloudAnalyst: requests in flight.
    traffic: f64,
}

#[derive(Clone, Debug)]
pub struct Network {
    compat: bool,
    latency: RandomFactor,
    bandwidth: RandomFactor,
    links: Vec<LinkState>,
    stream: RandomStream,
}

/// Direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the site.
    Up = 0,
    /// To the user.
    Down = 1,
}

impl Network {
    pub fn new(scenario: &GeoScenario, topology: &Topology, stream: RandomStream) -> Result<Self> {
        let compat = scenario.compat.is_some();
        let factor = |variation: f64, key: &str| match compat {
            true => Ok(RandomFactor::cloudanalyst()),
            false => RandomFactor::new(variation, key),
        };
        let bytes_per_mbit = if compat { CLOUDANALYST_BYTES } else { 1e6 / 8.0 };
        let ns_per_byte = |mbps: f64| SECOND as f64 / (mbps * bytes_per_mbit);
        let state = |mbps: Option<f64>| LinkState {
            ns_per_byte: mbps.map_or(0.0, ns_per_byte),
            free_at: [0.0; 2],
            traffic: 0.0,
        };
        Ok(Self {
            compat,
            latency: factor(scenario.variation.latency, "variation.latency")?,
            bandwidth: factor(scenario.variation.bandwidth, "variation.bandwidth")?,
            links: topology.links.iter().map(|link| state(link.mbps)).collect(),
            stream,
        })
    }

    /// Draws a factor of latencies, for several round trips of one load.
    pub fn latency_factor(&mut self) -> f64 {
        self.latency.draw(&mut self.stream)
    }

    /// Returns true with that probability.
    pub fn draw_bool(&mut self, probability: f64) -> bool {
        self.stream.uniform() < probability
    }

    pub fn round_trip(&mut self, delay: &Delay) -> f64 {
        delay.draw(&self.latency, &mut self.stream) + delay.draw(&self.latency, &mut self.stream)
    }

    /// Sends a message of so many requests of so many bytes each. Returns how long that takes.
    #[inline]
    pub fn send(
        &mut self,
        base: &Base,
        path: &NetworkPath,
        direction: Direction,
        now: Nanos,
        (requests, bytes): (u32, f64),
    ) -> f64 {
        if self.compat {
            self.links[path.link].traffic += f64::from(requests);
            return self.cloudanalyst_delay(path, bytes);
        }
        let mut duration = path.cache_ns / 2.0;
        for leg in &path.legs {
            duration += leg.draw(&self.latency, &mut self.stream);
        }
        let link = &mut self.links[path.link];
        if link.ns_per_byte > 0.0 {
            let transmission = bytes * f64::from(requests) * link.ns_per_byte;
            let transmission = transmission / self.bandwidth.draw(&mut self.stream).max(1e-3);
            let free_at = &mut link.free_at[direction as usize];
            *free_at = free_at.max(now as f64) + transmission;
            duration += *free_at - now as f64;
        }
        duration + bytes * base.access_ns_per_byte
    }

    /// Returns CloudAnalyst's delay of a message of requests of so many bytes at the current traffic.
    pub fn cloudanalyst_delay(&mut self, path: &NetworkPath, bytes: f64) -> f64 {
        let link = &self.links[path.link];
        let ns_per_byte = link.ns_per_byte * link.traffic.max(1.0);
        let latency = path.legs[0].draw(&self.latency, &mut self.stream);
        latency + bytes * ns_per_byte / self.bandwidth.draw(&mut self.stream).max(1e-3)
    }

    /// CloudAnalyst: subtracts requests from the traffic.
    #[inline]
    pub fn subtract_traffic(&mut self, path: &NetworkPath, requests: u32) {
        let link = &mut self.links[path.link];
        link.traffic = (link.traffic - f64::from(requests)).max(0.0);
    }
}

/// Converts milliseconds to whole nanoseconds.
pub fn from_ms(ms: f64) -> Nanos {
    (ms * MS).round() as Nanos
}
