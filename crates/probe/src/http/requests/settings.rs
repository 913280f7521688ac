//! What the engine is to do: toward which server, over how many connections, at which pace.
use super::arrivals::SendSchedule;
use super::tls::TlsClient;
use std::net::SocketAddr;

/// Most threads of one generator.
pub const THREADS_MAX: usize = 1024;

/// What the engine is to do.
#[derive(Clone, Debug)]
pub struct EngineSettings {
    pub address: SocketAddr,
    /// How connections are encrypted, if they are.
    pub tls: Option<TlsClient>,
    /// Which part of the load is sent; `connections` are those of this part.
    pub share: LoadShare,
    pub connections: usize,
    /// CPU of each thread, if it is pinned.
    pub threads: Vec<Option<usize>>,
    /// Requests in flight on each connection.
    pub depth: usize,
    /// Whether connections are opened before the first request is due.
    pub connect_ahead: bool,
    pub pacing: Pacing,
    pub warmup_ns: u64,
    /// Measured time after the warm-up; 0 until stopped.
    pub duration_ns: u64,
    pub timeout_ns: u64,
    pub interval_ns: u64,
    /// Busy waiting before a request is due.
    pub spin_ns: u64,
    /// Longest busy waiting for responses of a closed loop.
    pub response_spin_ns: u64,
    pub seed: u64,
}

/// Part of a load that several generators share: number `number`, from 0, of `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadShare {
    pub number: usize,
    pub of: usize,
}

impl LoadShare {
    #[cfg(test)]
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Returns its part of `count` things, dealt out one by one.
    pub fn part_of(self, count: usize) -> usize {
        (count + self.of - 1 - self.number) / self.of
    }
}

/// What decides when the next request is sent.
#[derive(Clone, Debug)]
pub enum Pacing {
    /// A response, and the time that a user thinks about it.
    Closed(Think),
    Open(SendSchedule),
}

#[derive(Clone, Copy, Debug)]
pub struct Think {
    pub mean_ns: u64,
    pub exponential: bool,
}
