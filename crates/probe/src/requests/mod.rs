//! The engine of request generators: connections to one server, requests in a closed or an open loop,
//! responses timed from the moment at which each request was intended to be sent.
//!
//! A protocol says how a request is written and how a response is read ([`Protocol`]); the engine
//! does the rest. Each thread has its own event loop, connections, protocol and recorder: threads
//! share nothing while they measure. A connection costs a few hundred bytes, whatever it receives.
pub mod arrivals;
pub mod connection;
pub mod epoll;
pub mod failures;
mod gate;
pub mod limits;
pub mod recorder;
pub mod report;
mod socket;
pub mod spec;
pub mod target;
#[cfg(test)]
pub mod tests;
pub mod tls;
mod worker;

use crate::error::{Kind, ProbeError, Result};
use crate::trial::Trial;
use crate::workers;
use arrivals::Arrivals;
use failures::Failure;
use gate::Gate;
use recorder::Recorder;
use std::net::SocketAddr;
use std::sync::mpsc;
use tls::Tls;
use worker::Worker;

/// The language of a server. Each thread of the engine has its own value.
pub trait Protocol: Send {
    /// State of one connection.
    type Parser: Default + Send;

    /// Whether a connection carries several requests that are answered in any order, and the server
    /// sends more than responses.
    const MULTIPLEXED: bool = false;

    /// Number of classes of requests that latencies are kept apart for.
    fn classes(&self) -> usize {
        1
    }

    /// Begins anew with a connection that was opened again.
    fn reopen(&mut self, parser: &mut Self::Parser) {
        *parser = Self::Parser::default();
    }

    /// Appends the next request to `out`; returns its class.
    fn encode(&mut self, parser: &mut Self::Parser, out: &mut Vec<u8>) -> u8;

    /// Draws the class that a request would have, of one that is not sent.
    fn draw_class(&mut self) -> u8 {
        0
    }

    /// Returns the number of further requests that a connection can carry now.
    #[inline]
    fn room(&self, _parser: &Self::Parser) -> usize {
        usize::MAX
    }

    /// Appends what a connection is to send besides new requests.
    #[inline]
    fn write_pending(&mut self, _parser: &mut Self::Parser, _out: &mut Vec<u8>) {}

    /// Gives up the oldest request without its connection; false where that is not possible.
    fn cancel_oldest(&mut self, _parser: &mut Self::Parser) -> bool {
        false
    }

    /// Reads of the response to a request of `class`, the oldest that was not answered. The engine
    /// presents what was not consumed again, followed by what came next; so a protocol consumes what
    /// it can, and refuses what it would have to wait for without an end.
    fn parse(
        &mut self,
        parser: &mut Self::Parser,
        class: u8,
        bytes: &[u8],
    ) -> Result<Parsed, Failure>;

    /// Returns the response that the end of the connection completes, if it does.
    fn end(&mut self, _parser: &mut Self::Parser, _class: u8) -> Option<Response> {
        None
    }
}

/// How far a protocol came with the bytes that it was given: the number of bytes consumed.
pub enum Parsed {
    Partial(usize),
    Complete(usize, Response),
    /// The response to the request at this position, of those in flight, has begun.
    BegunAt(usize, usize),
    CompleteAt(usize, usize, Response),
    /// The connection carries no more: requests in flight are sent again on a new one.
    Ended,
}

/// A whole response.
#[derive(Clone, Copy, Debug)]
pub struct Response {
    /// Why it is not the one that was wanted.
    pub failure: Option<Failure>,
    /// Whether the connection can carry another request.
    pub keeps_alive: bool,
}

/// What the engine is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    pub address: SocketAddr,
    /// How connections are encrypted, if they are.
    pub tls: Option<Tls>,
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

/// What decides when the next request is sent.
#[derive(Clone, Debug)]
pub enum Pacing {
    /// A response, and the time that a user thinks about it.
    Closed(Think),
    Open(Arrivals),
}

#[derive(Clone, Copy, Debug)]
pub struct Think {
    pub mean_ns: u64,
    pub exponential: bool,
}

/// Runs the trial: connects, opens the trial's gate, sends and measures. Returns what was recorded,
/// and the protocols of the threads with what they counted.
pub fn run<P: Protocol>(
    trial: &mut Trial,
    settings: &Settings,
    protocol: impl Fn(usize) -> P,
) -> Result<(Recorder, Vec<P>)> {
    limits::allow_sockets(settings.connections)?;
    let session = trial.session;
    let gate = Gate::new(session, settings.threads.len());
    std::thread::scope(|scope| {
        let (sender, intervals) = mpsc::channel();
        let start = |(number, cpu): (usize, &Option<usize>)| {
            let worker = Worker::new(settings, session, number, protocol(number), sender.clone())?;
            let gate = &gate;
            workers::start(scope, *cpu, move || worker.run(gate))
        };
        let threads: Result<Vec<_>> = settings.threads.iter().enumerate().map(start).collect();
        let threads = threads.inspect_err(|_| gate.abandon())?;
        drop(sender);
        let measured = gate.open(|| trial.prepared()).and_then(|start_ns| match start_ns {
            Some(start_ns) => report::emit_intervals(trial, settings, start_ns, &intervals),
            None => Ok(()),
        });
        measured.inspect_err(|_| gate.abandon())?;
        merge(threads.into_iter().map(workers::Worker::join))
    })
}

fn merge<P>(results: impl Iterator<Item = Result<(Recorder, P)>>) -> Result<(Recorder, Vec<P>)> {
    let (mut whole, mut protocols): (Option<Recorder>, _) = (None, Vec::new());
    let mut failure: Option<ProbeError> = None;
    for result in results {
        match result {
            Ok((recorder, protocol)) => {
                protocols.push(protocol);
                match &mut whole {
                    Some(whole) => whole.add(&recorder),
                    None => whole = Some(recorder),
                }
            }
            // The cause, and not that the others were stopped for it.
            Err(error) => match &failure {
                Some(first) if first.kind != Kind::Cancelled => {}
                _ => failure = Some(error),
            },
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok((whole.expect("there is at least one thread"), protocols)),
    }
}
