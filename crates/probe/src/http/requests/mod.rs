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
mod in_flight;
pub mod limits;
mod protocol;
pub mod recorder;
pub mod report;
mod settings;
pub mod socket;
pub mod spec;
#[cfg(test)]
pub mod tests;
pub mod tls;
mod worker;

use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::workers;
use crate::trial::Trial;
use gate::Gate;
use recorder::Recorder;
use std::sync::mpsc;
use worker::EngineWorker;

pub use protocol::{CompleteResponse, ParseProgress, Protocol};
pub use settings::{EngineSettings, LoadShare, Pacing, Think, THREADS_MAX};

/// Runs the trial: connects, opens the trial's gate, sends and measures. Returns what was recorded,
/// and the protocols of the threads with what they counted.
pub fn run<P: Protocol>(
    trial: &mut Trial,
    settings: &EngineSettings,
    protocol: impl Fn(usize) -> P,
) -> Result<(Recorder, Vec<P>)> {
    limits::allow_sockets(settings.connections)?;
    let session = trial.session;
    let gate = Gate::new(session, settings.threads.len());
    std::thread::scope(|scope| {
        let (sender, intervals) = mpsc::channel();
        let start = |(number, cpu): (usize, &Option<usize>)| {
            let worker =
                EngineWorker::new(settings, session, number, protocol(number), sender.clone())?;
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
        merge(threads.into_iter().map(workers::JoinedWorker::join))
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
                Some(first) if first.kind != FailureKind::Cancelled => {}
                _ => failure = Some(error),
            },
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok((whole.expect("there is at least one thread"), protocols)),
    }
}
