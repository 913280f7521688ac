//! Messages on their way: how long each takes, and what those before it leave of the bandwidth.
use super::network::MS;
use super::noise::Noise;
use super::scenario::Scenario;
use super::world::{Base, Way, World};
use crate::error::Refused;
use crate::random::Stream;
use crate::{Nanos, SECOND};

/// Bytes a second that CloudAnalyst takes a megabit a second for.
const TOOL_BYTES: f64 = 1_048_576.0;

/// One link, both directions.
#[derive(Clone, Debug)]
struct State {
    /// What a byte takes; 0 without a limit.
    ns_per_byte: f64,
    /// Until when what came before is still being sent, there and back.
    free_at: [f64; 2],
    /// CloudAnalyst: requests on their way.
    traffic: f64,
}

/// All links.
#[derive(Clone, Debug)]
pub struct Network {
    tool: bool,
    latency: Noise,
    bandwidth: Noise,
    links: Vec<State>,
    stream: Stream,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the site.
    Up = 0,
    /// To the user.
    Down = 1,
}

impl Network {
    /// The links of a world, with chance from that stream. Refused: a variation that is none.
    pub fn of(scenario: &Scenario, world: &World, stream: Stream) -> Result<Self, Refused> {
        let tool = scenario.compat.is_some();
        let hundredths = || Noise::Hundredths(Box::default());
        let variation = &scenario.variation;
        let ns_per_byte =
            |mbps: f64| SECOND as f64 / if tool { mbps * TOOL_BYTES } else { mbps * 1e6 / 8.0 };
        let state = |mbps: Option<f64>| State {
            ns_per_byte: mbps.map_or(0.0, ns_per_byte),
            free_at: [0.0; 2],
            traffic: 0.0,
        };
        Ok(Self {
            tool,
            latency: if tool {
                hundredths()
            } else {
                Noise::of(variation.latency, "variation.latency")?
            },
            bandwidth: if tool {
                hundredths()
            } else {
                Noise::of(variation.bandwidth, "variation.bandwidth")?
            },
            links: world.links.iter().map(|link| state(link.mbps)).collect(),
            stream,
        })
    }

    /// A factor of mean 1 as latencies vary, for what goes several times to and fro.
    pub fn factor(&mut self) -> f64 {
        self.latency.draw(&mut self.stream)
    }

    /// True with that probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.stream.uniform() < probability
    }

    /// How long the way to a cache takes and back.
    pub fn round_trip(&mut self, delay: &super::network::Delay) -> f64 {
        delay.draw(&self.latency, &mut self.stream) + delay.draw(&self.latency, &mut self.stream)
    }

    /// Sends a message of so many requests, of so many bytes each, and tells how long it takes.
    #[inline]
    pub fn send(
        &mut self,
        base: &Base,
        way: &Way,
        direction: Direction,
        now: Nanos,
        (requests, bytes): (u32, f64),
    ) -> f64 {
        if self.tool {
            self.links[way.link].traffic += f64::from(requests);
            return self.tool_delay(way, bytes);
        }
        let mut takes = way.served_ns / 2.0;
        for leg in &way.legs {
            takes += leg.draw(&self.latency, &mut self.stream);
        }
        let link = &mut self.links[way.link];
        if link.ns_per_byte > 0.0 {
            let length = bytes * f64::from(requests) * link.ns_per_byte;
            let length = length / self.bandwidth.draw(&mut self.stream).max(1e-3);
            let free_at = &mut link.free_at[direction as usize];
            *free_at = free_at.max(now as f64) + length;
            takes += *free_at - now as f64;
        }
        takes + bytes * base.access_ns_per_byte
    }

    /// CloudAnalyst's delay of a message whose requests are of so many bytes, at the present traffic.
    fn tool_delay(&mut self, way: &Way, bytes: f64) -> f64 {
        let link = &self.links[way.link];
        let share = link.ns_per_byte * link.traffic.max(1.0);
        let latency = way.legs[0].draw(&self.latency, &mut self.stream);
        latency + bytes * share / self.bandwidth.draw(&mut self.stream).max(1e-3)
    }

    /// What CloudAnalyst's broker takes for the way of a request: the delay of one byte.
    pub fn tool_estimate(&mut self, way: &Way) -> f64 {
        self.tool_delay(way, 1.0)
    }

    /// CloudAnalyst: so many requests are on their way no more.
    #[inline]
    pub fn lands(&mut self, way: &Way, requests: u32) {
        let link = &mut self.links[way.link];
        link.traffic = (link.traffic - f64::from(requests)).max(0.0);
    }
}

/// Milliseconds as whole nanoseconds.
pub fn from_ms(ms: f64) -> Nanos {
    (ms * MS).round() as Nanos
}
