//! A thread of the engine: the event loop over its connections.
mod busy_wait;
mod dispatch;
mod ending;
mod exchange;
mod opening;
mod usage;

use super::arrivals::Schedule;
use super::connection::{ConnectionState, EngineConnection};
use super::epoll::{Epoll, WRITE};
use super::gate::Gate;
use super::recorder::{MeasuredWindow, Recorder, RequestInterval};
use super::{EngineSettings, LoadShare, Pacing, Protocol, Think, THREADS_MAX};
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use busy_wait::BusyWait;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use nephoscope_wire::random::Random;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::mpsc::Sender;
use usage::ThreadUsage;

/// Bytes read at once.
const INPUT_BYTES: usize = 64 << 10;
/// Longest sleep between two looks whether the trial is over.
const CHECK_INTERVAL_NS: u64 = 20_000_000;
/// Time after the end in which requests that were due before it are still sent: a server that keeps up
/// has answered them by then, so that what stays unsent is a queue that grew.
const BACKLOG_NS: u64 = 100_000_000;

pub struct EngineWorker<'a, P: Protocol> {
    settings: &'a EngineSettings,
    session: Session,
    protocol: P,
    intervals: Sender<RequestInterval>,
    epoll: Epoll,
    connections: Vec<EngineConnection<P::Parser>>,
    recorder: Recorder,
    /// Think time of a closed loop; `None` in an open one.
    think: Option<Think>,
    random: Random,
    /// What is left of the schedule of an open loop, and its next request.
    schedule: Option<Schedule>,
    next_due_ns: u64,
    /// Connections of an open loop that can take a request.
    free: VecDeque<u32>,
    /// When connections of a closed loop send their next request.
    timers: BinaryHeap<Reverse<(u64, u32)>>,
    in_flight: usize,
    /// Waiting for responses, where the thread has a CPU of its own.
    busy_wait: BusyWait,
    /// Connections that have something to send when all that has come was read.
    unflushed: Vec<usize>,
    next_sweep_ns: u64,
    interval_ends_ns: u64,
    usage: Option<ThreadUsage>,
    measured: bool,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl<'a, P: Protocol> EngineWorker<'a, P> {
    pub fn new(
        settings: &'a EngineSettings,
        session: Session,
        number: usize,
        protocol: P,
        intervals: Sender<RequestInterval>,
    ) -> Result<Self> {
        let threads = settings.threads.len();
        let own = (settings.connections + threads - 1 - number) / threads;
        let (think, schedule) = match &settings.pacing {
            Pacing::Closed(think) => (Some(*think), None),
            Pacing::Open(arrivals) => {
                let thread = LoadShare { number, of: threads };
                (None, Some(Schedule::new(arrivals, settings.share, thread)))
            }
        };
        // Without one it would only keep others from running, maybe the server.
        let spins = think.is_some() && settings.threads[number].is_some();
        Ok(Self {
            settings,
            session,
            intervals,
            epoll: Epoll::new().map_err(|error| ProbeError::os("epoll_create1", &error))?,
            connections: (0..own).map(|_| EngineConnection::default()).collect(),
            recorder: Recorder::new(protocol.classes(), settings.timeout_ns),
            protocol,
            think,
            // Generators that share a load have one seed.
            random: Random::stream(
                settings.seed,
                1 + (settings.share.number * THREADS_MAX + number) as u64,
            ),
            schedule,
            next_due_ns: u64::MAX,
            free: VecDeque::new(),
            timers: BinaryHeap::new(),
            in_flight: 0,
            busy_wait: BusyWait::new(if spins { settings.response_spin_ns } else { 0 }),
            unflushed: Vec::new(),
            next_sweep_ns: 0,
            interval_ends_ns: u64::MAX,
            usage: None,
            measured: false,
            input: vec![0; INPUT_BYTES],
            output: Vec::new(),
        })
    }

    /// Connects, waits for the start, runs to the end. A failure ends the other threads too.
    pub fn run(mut self, gate: &Gate) -> Result<(Recorder, P)> {
        let result = self.run_to_end(gate);
        if result.is_err() {
            gate.abandon();
        }
        result.map(|()| (self.recorder, self.protocol))
    }

    fn run_to_end(&mut self, gate: &Gate) -> Result<()> {
        scheduling::minimise_timer_slack();
        if self.settings.connect_ahead {
            self.connect_ahead(gate)?;
        }
        let start_ns = gate.wait().ok_or_else(abandoned)?;
        self.begin_schedule(start_ns);
        loop {
            self.session.check()?;
            if gate.is_abandoned() {
                return Err(abandoned());
            }
            let now_ns = clock::monotonic_ns();
            self.observe(now_ns);
            let sent = self.recorder.sent;
            self.send_due(now_ns)?;
            let end_ns = self.recorder.window.end_ns;
            if now_ns >= end_ns {
                if now_ns >= end_ns.saturating_add(BACKLOG_NS) {
                    self.give_up_unsent(now_ns);
                }
                if self.in_flight == 0 && !self.has_backlog() {
                    return Ok(());
                }
            }
            if self.recorder.sent == sent {
                self.poll(now_ns)?;
            } else {
                // The time of sending is no time of waiting.
                self.busy_wait.worked();
                self.poll(clock::monotonic_ns())?;
            }
        }
    }

    fn begin_schedule(&mut self, start_ns: u64) {
        let EngineSettings { warmup_ns, duration_ns, interval_ns, .. } = *self.settings;
        let warm_ns = start_ns + warmup_ns;
        let end_ns = if duration_ns == 0 { u64::MAX } else { warm_ns + duration_ns };
        self.recorder.window = MeasuredWindow { start_ns, warm_ns, end_ns };
        self.interval_ends_ns = start_ns + interval_ns;
        for slot in 0..self.connections.len() as u32 {
            match self.think {
                Some(_) => {
                    let users = std::iter::repeat_n(Reverse((start_ns, slot)), self.settings.depth);
                    self.timers.extend(users);
                }
                None => self.offer(slot as usize, start_ns),
            }
        }
        self.advance_schedule();
    }

    /// Reads the counters at the edges of the measured part, ends intervals, looks for a stop.
    fn observe(&mut self, now_ns: u64) {
        if self.session.is_stopped() && now_ns < self.recorder.window.end_ns {
            self.recorder.window.end_ns = now_ns;
        }
        let MeasuredWindow { warm_ns, end_ns, .. } = self.recorder.window;
        if self.usage.is_none() && now_ns >= warm_ns {
            self.usage = Some(ThreadUsage::read(self.busy_wait.spent_ns));
        }
        if now_ns >= end_ns && !self.measured {
            self.measured = true;
            let now = ThreadUsage::read(self.busy_wait.spent_ns);
            self.recorder.used(&now, self.usage.get_or_insert(now));
        }
        while now_ns >= self.interval_ends_ns && self.interval_ends_ns <= end_ns {
            // Nobody may listen any more.
            let _ = self.intervals.send(self.recorder.next_interval());
            self.interval_ends_ns += self.settings.interval_ns;
        }
        if self.interval_ends_ns > end_ns {
            self.interval_ends_ns = u64::MAX;
        }
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns);
        }
    }

    /// Waits until something is due or a socket is ready, and handles that.
    fn poll(&mut self, now_ns: u64) -> Result<()> {
        let window = self.recorder.window;
        let mut until_ns = now_ns + CHECK_INTERVAL_NS;
        until_ns = until_ns.min(self.next_sweep_ns).min(self.interval_ends_ns);
        for edge_ns in [window.warm_ns, window.end_ns] {
            until_ns = if now_ns < edge_ns { until_ns.min(edge_ns) } else { until_ns };
        }
        if now_ns < window.end_ns {
            let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns);
            let due_ns = if self.free.is_empty() { u64::MAX } else { self.next_due_ns };
            until_ns = until_ns.min(due_ns.min(timer_ns).saturating_sub(self.settings.spin_ns));
        }
        self.take_events(now_ns, until_ns.saturating_sub(now_ns))
    }

    /// Reads all that has come before it sends what follows, so that responses are timed as they come.
    fn take_events(&mut self, now_ns: u64, timeout_ns: u64) -> Result<()> {
        let waited = if self.in_flight > 0 || timeout_ns == 0 {
            self.busy_wait.wait(&mut self.epoll, now_ns, timeout_ns)
        } else {
            self.epoll.wait(timeout_ns)
        };
        let count = waited.map_err(|error| ProbeError::os("epoll_pwait2", &error))?;
        for index in 0..count {
            let (token, ready) = self.epoll.event(index);
            let slot = token as usize;
            match self.connections[slot].state {
                ConnectionState::Closed => {}
                ConnectionState::Connecting => self.on_connected(slot)?,
                ConnectionState::Open | ConnectionState::Handshaking => {
                    if ready & WRITE != 0 {
                        let written = self.connections[slot].write_unsent();
                        self.after_write(slot, written, true)?;
                    }
                    if ready & !WRITE != 0 {
                        self.read(slot)?;
                    }
                }
            }
        }
        let mut unflushed = std::mem::take(&mut self.unflushed);
        for slot in unflushed.drain(..) {
            self.flush(slot, clock::monotonic_ns())?;
        }
        self.unflushed = unflushed;
        Ok(())
    }
}

fn abandoned() -> ProbeError {
    ProbeError::new(
        FailureKind::Cancelled,
        "cancelled",
        "The threads were stopped.",
        "See the first error.",
    )
}
