//! A parallel program of 2 to 8 ranks that compute, then wait for each other in a barrier or exchange
//! messages, step by step.
pub mod coordinator;
pub mod expected_maximum;
pub mod member;
mod mesh;
mod steps;

use crate::error::{FailureKind, ProbeError};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// Ranks at most; one word of a message holds a set of them.
pub const RANKS_MAX: usize = 8;
/// Bytes that state step, rank and round at the beginning of each message.
pub const HEADER_BYTES: usize = 16;

/// What all ranks do at the end of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Barrier,
    AllToAll,
}

impl Operation {
    pub const NAMES: &[&str] = &["barrier", "all_to_all"];
}

/// Distribution of the planted delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delay {
    Fixed,
    Exponential,
}

impl Delay {
    pub const NAMES: &[&str] = &["fixed", "exponential"];
}

/// What each rank does, by the names of the parameters of `net.collective`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StepSettings {
    pub operation: Operation,
    pub message_bytes: usize,
    pub steps: usize,
    pub work_rounds: u64,
    pub delay: Delay,
    pub delay_mean_ns: u64,
    /// The only rank that is delayed; -1 delays all.
    pub delayed_rank: i64,
    pub seed: u64,
}

/// Times of each step on one rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RankTimes {
    /// From the end of the operation before until the rank enters the next one.
    pub work_ns: Vec<u64>,
    /// From then until the rank leaves it.
    pub wait_ns: Vec<u64>,
}

/// The first message on each connection.
#[derive(Debug, Serialize, Deserialize)]
struct Join {
    /// Of all connections of one trial.
    session: u64,
    /// Of the sender.
    rank: usize,
    /// What the coordinator assigns.
    assignment: Option<Assignment>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Assignment {
    rank: usize,
    /// Of the ranks from 1 on.
    addresses: Vec<SocketAddr>,
    settings: StepSettings,
}

fn failed(name: &'static str, message: impl Into<String>) -> ProbeError {
    let hint = "See whether net.member still runs on each host, then run it again.";
    ProbeError::new(FailureKind::Failed, name, message, hint)
}
