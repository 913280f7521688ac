//! A thread of the engine: the event loop over its connections.
use super::arrivals::Schedule;
use super::connection::{is_wait, Connection, InFlight, Standing, State};
use super::epoll::{Epoll, READ, WRITE};
use super::failures::{self, Failure, CLOSED_EARLY, TIMEOUT, WRONG_LENGTH};
use super::gate::{Gate, Message};
use super::recorder::{Recorder, Window};
use super::socket::Socket;
use super::{limits, tls, Pacing, Protocol, Settings, Think};
use crate::error::{Kind, ProbeError};
use crate::session::Session;
use crate::{clock, proc};
use nephoscope_wire::random::Random;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::mem::take;
use std::sync::mpsc::Sender;

/// Bytes read at once.
const INPUT_BYTES: usize = 64 << 10;
/// Longest sleep between two looks whether the trial is over.
const LOOK_AROUND_NS: u64 = 20_000_000;
/// Connections that are being opened at once, so that the server's queue does not overflow.
const CONNECTING_MAX: usize = 128;
/// Requests that are due together are sent so many at a time; then responses are read.
const BURST: usize = 64;
/// A user whose connection failed waits at least this long before the next attempt.
const RETRY_NS: u64 = 10_000_000;
/// Requests that took too long are looked for a hundred times per time limit, within these bounds.
const SWEEP_NS: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000;

pub struct Worker<'a, P: Protocol> {
    settings: &'a Settings,
    session: Session,
    protocol: P,
    messages: Sender<Message>,
    epoll: Epoll,
    connections: Vec<Connection<P::Parser>>,
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
    next_sweep_ns: u64,
    interval_ends_ns: u64,
    usage: Option<Usage>,
    measured: bool,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl<'a, P: Protocol> Worker<'a, P> {
    pub fn new(
        settings: &'a Settings,
        session: Session,
        number: usize,
        protocol: P,
        messages: Sender<Message>,
    ) -> Result<Self, ProbeError> {
        let threads = settings.threads.len();
        let own = (settings.connections + threads - 1 - number) / threads;
        let (think, schedule) = match &settings.pacing {
            Pacing::Closed(think) => (Some(*think), None),
            Pacing::Open(arrivals) => (None, Some(Schedule::new(arrivals, number, threads))),
        };
        Ok(Self {
            settings,
            session,
            messages,
            epoll: Epoll::new().map_err(|error| ProbeError::os("epoll_create1", &error))?,
            connections: (0..own).map(|_| Connection::new()).collect(),
            recorder: Recorder::new(protocol.classes(), settings.timeout_ns),
            protocol,
            think,
            random: Random::stream(settings.seed, 1 + number as u64),
            schedule,
            next_due_ns: u64::MAX,
            free: VecDeque::new(),
            timers: BinaryHeap::new(),
            in_flight: 0,
            next_sweep_ns: 0,
            interval_ends_ns: u64::MAX,
            usage: None,
            measured: false,
            input: vec![0; INPUT_BYTES],
            output: Vec::new(),
        })
    }

    /// Connects, waits for the start, runs to the end. A failure ends the other threads too.
    pub fn run(mut self, gate: &Gate) -> Result<(Recorder, P), ProbeError> {
        let result = self.run_to_end(gate);
        if result.is_err() {
            gate.abandon();
            // The main thread may be gone already.
            let _ = self.messages.send(Message::Failed);
        }
        result.map(|()| (self.recorder, self.protocol))
    }

    fn run_to_end(&mut self, gate: &Gate) -> Result<(), ProbeError> {
        // SAFETY: sets a property of the calling thread: sleeps end up to 50 µs late by default.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
        if self.settings.connect_ahead {
            self.connect_ahead(gate)?;
        }
        // The main thread looks only whether all are ready.
        let _ = self.messages.send(Message::Ready);
        let start_ns = gate.wait().ok_or_else(abandoned)?;
        self.begin_schedule(start_ns);
        loop {
            self.session.check()?;
            if gate.is_abandoned() {
                return Err(abandoned());
            }
            let now_ns = clock::monotonic_ns();
            self.observe(now_ns);
            self.send_due(now_ns)?;
            if now_ns >= self.recorder.window.end_ns {
                self.give_up_unsent(now_ns);
                if self.in_flight == 0 {
                    return Ok(());
                }
            }
            self.poll(now_ns)?;
        }
    }

    /// Opens all connections, not too many at once.
    fn connect_ahead(&mut self, gate: &Gate) -> Result<(), ProbeError> {
        let until_ns = clock::monotonic_ns() + self.settings.timeout_ns;
        let (mut next, count) = (0, self.connections.len());
        loop {
            self.session.check()?;
            let connecting = |c: &&Connection<P::Parser>| {
                matches!(c.state, State::Connecting | State::Handshaking)
            };
            let mut now_connecting = self.connections[..next].iter().filter(connecting).count();
            while next < count && now_connecting < CONNECTING_MAX {
                self.connect(next, clock::monotonic_ns())?;
                next += 1;
                now_connecting += 1;
            }
            let ended = next == count && now_connecting == 0;
            if ended || clock::monotonic_ns() >= until_ns || gate.is_abandoned() {
                return Ok(());
            }
            self.take_events(LOOK_AROUND_NS)?;
        }
    }

    fn begin_schedule(&mut self, start_ns: u64) {
        let Settings { warmup_ns, duration_ns, interval_ns, .. } = *self.settings;
        let warm_ns = start_ns + warmup_ns;
        let end_ns = if duration_ns == 0 { u64::MAX } else { warm_ns + duration_ns };
        self.recorder.window = Window { start_ns, warm_ns, end_ns };
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

    fn advance_schedule(&mut self) {
        let next_ns = self.schedule.as_mut().and_then(Iterator::next);
        let start_ns = self.recorder.window.start_ns;
        self.next_due_ns = next_ns.map_or(u64::MAX, |ns| start_ns.saturating_add(ns));
    }

    /// Reads the counters at the edges of the measured part, ends intervals, looks for a stop.
    fn observe(&mut self, now_ns: u64) {
        if self.session.is_stopped() && now_ns < self.recorder.window.end_ns {
            self.recorder.window.end_ns = now_ns;
        }
        let Window { warm_ns, end_ns, .. } = self.recorder.window;
        if self.usage.is_none() && now_ns >= warm_ns {
            self.usage = Some(Usage::read());
        }
        if now_ns >= end_ns && !self.measured {
            self.measured = true;
            let before = self.usage.take().unwrap_or_else(Usage::read);
            self.recorder.used(&Usage::read(), &before);
            self.usage = Some(before);
        }
        while now_ns >= self.interval_ends_ns && self.interval_ends_ns <= end_ns {
            // Nobody may listen any more.
            let _ = self.messages.send(Message::Interval(self.recorder.next_interval()));
            self.interval_ends_ns += self.settings.interval_ns;
        }
        if self.interval_ends_ns > end_ns {
            self.interval_ends_ns = u64::MAX;
        }
        if now_ns >= self.next_sweep_ns {
            self.sweep(now_ns);
        }
    }

    /// Sends the requests that are due.
    fn send_due(&mut self, now_ns: u64) -> Result<(), ProbeError> {
        for _ in 0..BURST {
            if !self.send_scheduled(now_ns)? && !self.send_after_thinking(now_ns)? {
                break;
            }
        }
        Ok(())
    }

    /// Sends the next request of the schedule; false when none is due or no connection is free.
    fn send_scheduled(&mut self, now_ns: u64) -> Result<bool, ProbeError> {
        let due_ns = self.next_due_ns;
        if due_ns > now_ns || due_ns >= self.recorder.window.end_ns {
            return Ok(false);
        }
        let Some(slot) = self.free.pop_front().map(|slot| slot as usize) else { return Ok(false) };
        let connection = &mut self.connections[slot];
        connection.queued = false;
        let ready_ns = due_ns.max(connection.free_since_ns);
        self.advance_schedule();
        let now_ns = clock::monotonic_ns();
        self.recorder.dispatched(ready_ns, now_ns);
        self.begin(slot, due_ns, now_ns);
        self.flush(slot, now_ns)?;
        self.offer(slot, ready_ns);
        Ok(true)
    }

    /// Sends what the next user of a closed loop has thought about; false when none is ready.
    fn send_after_thinking(&mut self, now_ns: u64) -> Result<bool, ProbeError> {
        let Some(Reverse((due_ns, slot))) = self.timers.peek().copied() else { return Ok(false) };
        if due_ns > now_ns || due_ns >= self.recorder.window.end_ns {
            return Ok(false);
        }
        let now_ns = clock::monotonic_ns();
        // All that this connection is to send now goes out together.
        while self.timers.peek() == Some(&Reverse((due_ns, slot))) {
            self.timers.pop();
            if self.think.is_some_and(|think| think.mean_ns > 0) {
                self.recorder.dispatched(due_ns, now_ns);
            }
            self.begin(slot as usize, due_ns, now_ns);
        }
        self.flush(slot as usize, now_ns)?;
        Ok(true)
    }

    /// At the end: what was due and found no free connection.
    fn give_up_unsent(&mut self, now_ns: u64) {
        let end_ns = self.recorder.window.end_ns;
        while self.next_due_ns < end_ns && self.free.is_empty() {
            self.recorder.unsent(self.next_due_ns, now_ns);
            self.advance_schedule();
        }
    }

    /// Waits until something is due or a socket is ready, and handles that.
    fn poll(&mut self, now_ns: u64) -> Result<(), ProbeError> {
        let window = self.recorder.window;
        let mut until_ns = now_ns + LOOK_AROUND_NS;
        until_ns = until_ns.min(self.next_sweep_ns).min(self.interval_ends_ns);
        for edge_ns in [window.warm_ns, window.end_ns] {
            until_ns = if now_ns < edge_ns { until_ns.min(edge_ns) } else { until_ns };
        }
        if now_ns < window.end_ns {
            let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((due_ns, _))| *due_ns);
            let due_ns = if self.free.is_empty() { u64::MAX } else { self.next_due_ns };
            until_ns = until_ns.min(due_ns.min(timer_ns).saturating_sub(self.settings.spin_ns));
        }
        self.take_events(until_ns.saturating_sub(now_ns))
    }

    fn take_events(&mut self, timeout_ns: u64) -> Result<(), ProbeError> {
        let waited = self.epoll.wait(timeout_ns);
        let count = waited.map_err(|error| ProbeError::os("epoll_pwait2", &error))?;
        for index in 0..count {
            let (token, ready) = self.epoll.event(index);
            let slot = token as usize;
            match self.connections[slot].state {
                State::Closed => {}
                State::Connecting => self.on_connected(slot)?,
                State::Open | State::Handshaking => {
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
        Ok(())
    }

    /// Gives a request to a connection; `flush` sends it.
    #[inline]
    fn begin(&mut self, slot: usize, intended_ns: u64, now_ns: u64) {
        let request = InFlight { intended_ns, begun_ns: now_ns, ..InFlight::default() };
        self.connections[slot].in_flight.push_back(request);
        self.in_flight += 1;
    }

    /// Sends what a connection was given, all at once; connects first where that is needed.
    fn flush(&mut self, slot: usize, now_ns: u64) -> Result<(), ProbeError> {
        let connection = &mut self.connections[slot];
        match connection.state {
            State::Closed => return self.connect(slot, now_ns),
            State::Connecting | State::Handshaking => return Ok(()),
            State::Open => {}
        }
        self.output.clear();
        self.protocol.write_pending(&mut connection.parser, &mut self.output);
        let room = self.protocol.room(&connection.parser);
        let unwritten = connection.in_flight.iter_mut().skip(connection.written).take(room);
        for request in unwritten {
            request.class = self.protocol.encode(&mut connection.parser, &mut self.output);
            // One that a server turned away unread is sent a second time.
            self.recorder.sent += u64::from(request.sent_ns == 0);
            request.sent_ns = now_ns;
            connection.written += 1;
        }
        if self.output.is_empty() {
            return Ok(());
        }
        let written = connection.write(&self.output);
        self.after_write(slot, written, false)
    }

    /// Watches for room in the send buffer where it is full, and no longer where it was (`watched`).
    fn after_write(
        &mut self,
        slot: usize,
        written: Result<bool, std::io::Error>,
        watched: bool,
    ) -> Result<(), ProbeError> {
        match written {
            Ok(all) if all != watched => Ok(()),
            Ok(all) => self.watch(slot, if all { READ } else { READ | WRITE }),
            Err(error) => self.fail(slot, tls::failure_of(&error), clock::monotonic_ns()),
        }
    }

    fn watch(&mut self, slot: usize, interest: u32) -> Result<(), ProbeError> {
        let Some(socket) = &self.connections[slot].socket else { return Ok(()) };
        let changed = self.epoll.change(socket.fd(), interest, slot as u32);
        changed.map_err(|error| ProbeError::os("epoll_ctl", &error))
    }

    fn connect(&mut self, slot: usize, now_ns: u64) -> Result<(), ProbeError> {
        let opened = Socket::connect(&self.settings.address).and_then(|socket| {
            self.epoll.add(socket.fd(), READ | WRITE, slot as u32).map(|()| socket)
        });
        match opened {
            Ok(socket) => {
                let connection = &mut self.connections[slot];
                connection.open(socket, now_ns);
                self.protocol.reopen(&mut connection.parser);
                Ok(())
            }
            Err(error) => self.fail(slot, failures::of_error(&error), now_ns),
        }
    }

    fn on_connected(&mut self, slot: usize) -> Result<(), ProbeError> {
        let now_ns = clock::monotonic_ns();
        let connection = &mut self.connections[slot];
        let Some(socket) = &connection.socket else { return Ok(()) };
        if let Err(error) = socket.connected() {
            return self.fail(slot, failures::of_error(&error), now_ns);
        }
        let taken_ns = now_ns.saturating_sub(connection.connecting_since_ns);
        self.recorder.connect.saturating_record(taken_ns.max(1));
        self.recorder.connections += 1;
        let Some(tls) = &self.settings.tls else {
            connection.state = State::Open;
            self.watch(slot, READ)?;
            return self.flush(slot, now_ns);
        };
        let client = tls.connection().map_err(std::io::Error::other);
        connection.state = State::Handshaking;
        connection.connecting_since_ns = now_ns;
        let written = client.and_then(|client| {
            connection.tls = Some(Box::new(client));
            connection.write_unsent()
        });
        self.after_write(slot, written, true)
    }

    /// Goes on with a handshake: sends its next message, or the requests that waited for its end.
    fn shake_hands(&mut self, slot: usize) -> Result<(), ProbeError> {
        let connection = &mut self.connections[slot];
        let is_over = connection.tls.as_ref().is_some_and(|tls| !tls.is_handshaking());
        let now_ns = clock::monotonic_ns();
        if is_over {
            connection.state = State::Open;
            let taken_ns = now_ns.saturating_sub(connection.connecting_since_ns);
            self.recorder.handshake.saturating_record(taken_ns.max(1));
        }
        let written = connection.write_unsent();
        self.after_write(slot, written, false)?;
        if is_over && self.connections[slot].state == State::Open {
            return self.flush(slot, now_ns);
        }
        Ok(())
    }

    #[inline]
    fn read(&mut self, slot: usize) -> Result<(), ProbeError> {
        let connection = &mut self.connections[slot];
        let before = connection.in_flight.len();
        if connection.tls.is_some() {
            let Self { protocol, input, recorder, .. } = self;
            let standing = match connection.receive_tls(protocol, input, recorder) {
                Ok(standing) => standing,
                Err(error) if is_wait(&error) => return Ok(()),
                Err(error) => Standing::Failed(tls::failure_of(&error)),
            };
            return self.after_read(slot, before, standing, clock::monotonic_ns());
        }
        let Some(socket) = &connection.socket else { return Ok(()) };
        let received = socket.read(&mut self.input);
        let now_ns = clock::monotonic_ns();
        let standing = match received {
            Ok(0) => connection.end(&mut self.protocol, now_ns, &mut self.recorder),
            Ok(count) => {
                self.recorder.received(count, now_ns);
                let bytes = &self.input[..count];
                connection.receive(&mut self.protocol, bytes, now_ns, &mut self.recorder)
            }
            Err(error) if is_wait(&error) => return Ok(()),
            Err(error) => Standing::Failed(failures::of_error(&error)),
        };
        self.after_read(slot, before, standing, now_ns)
    }

    /// Ends what was answered of `before` requests in flight, and decides what follows.
    #[inline]
    fn after_read(
        &mut self,
        slot: usize,
        before: usize,
        standing: Standing,
        now_ns: u64,
    ) -> Result<(), ProbeError> {
        let connection = &mut self.connections[slot];
        let answered = before - connection.in_flight.len();
        self.in_flight -= answered;
        match standing {
            Standing::Open if connection.state == State::Handshaking => {
                return self.shake_hands(slot);
            }
            Standing::Open => {}
            // Whoever waits for the handshake waits in vain.
            Standing::Ended if connection.state == State::Handshaking => {
                self.fail(slot, CLOSED_EARLY, now_ns)?;
            }
            Standing::Ended => connection.close(),
            Standing::Failed(failure) => self.fail(slot, failure, now_ns)?,
        }
        if answered > 0 {
            self.follow(slot, answered, now_ns, 0);
        }
        let connection = &self.connections[slot];
        let has_more = connection.written < connection.in_flight.len();
        if has_more || (P::MULTIPLEXED && connection.state == State::Open) {
            self.flush(slot, now_ns)?;
        }
        Ok(())
    }

    /// Decides what follows `count` requests of a connection that have ended.
    #[inline]
    fn follow(&mut self, slot: usize, count: usize, now_ns: u64, wait_ns: u64) {
        let Some(think) = self.think else { return self.offer(slot, now_ns) };
        for _ in 0..count {
            let due_ns = now_ns + think.draw(&mut self.random).max(wait_ns);
            if due_ns > now_ns {
                self.timers.push(Reverse((due_ns, slot as u32)));
            } else if now_ns < self.recorder.window.end_ns {
                self.begin(slot, now_ns, now_ns);
            }
        }
    }

    /// Makes a connection of an open loop take another request if it can.
    #[inline]
    fn offer(&mut self, slot: usize, now_ns: u64) {
        let connection = &mut self.connections[slot];
        if !connection.queued && connection.in_flight.len() < self.settings.depth {
            connection.queued = true;
            connection.free_since_ns = now_ns;
            self.free.push_back(slot as u32);
        }
    }

    /// Closes a connection that failed, and its requests with it.
    #[cold]
    fn fail(&mut self, slot: usize, failure: Failure, now_ns: u64) -> Result<(), ProbeError> {
        if let Some(error) = limits::met_by(failure) {
            return Err(error);
        }
        let connection = &mut self.connections[slot];
        connection.close();
        let requests = take(&mut connection.in_flight);
        self.in_flight -= requests.len();
        for request in &requests {
            self.recorder.failed(request, failure, now_ns);
        }
        if failure == WRONG_LENGTH && requests.is_empty() {
            self.recorder.unasked();
        }
        self.follow(slot, requests.len(), now_ns, RETRY_NS);
        Ok(())
    }

    /// Ends the requests whose time is over; with their connections, unless the protocol can give
    /// up one request of several.
    fn sweep(&mut self, now_ns: u64) {
        let timeout_ns = self.settings.timeout_ns;
        self.next_sweep_ns = now_ns + (timeout_ns / 100).clamp(*SWEEP_NS.start(), *SWEEP_NS.end());
        for slot in 0..self.connections.len() {
            while self.is_overdue(slot, now_ns) {
                // A time limit is no limit of this machine, so this cannot fail.
                let _ = self.give_up_oldest(slot, now_ns);
            }
        }
    }

    fn is_overdue(&self, slot: usize, now_ns: u64) -> bool {
        let begun_ns = self.connections[slot].in_flight.front().map(|request| request.begun_ns);
        begun_ns.is_some_and(|begun_ns| now_ns.saturating_sub(begun_ns) >= self.settings.timeout_ns)
    }

    fn give_up_oldest(&mut self, slot: usize, now_ns: u64) -> Result<(), ProbeError> {
        let connection = &mut self.connections[slot];
        let shares = connection.state == State::Open && connection.written > 1;
        if !shares || !self.protocol.cancel_oldest(&mut connection.parser) {
            return self.fail(slot, TIMEOUT, now_ns);
        }
        if let Some(request) = connection.take(0) {
            self.recorder.failed(&request, TIMEOUT, now_ns);
            self.in_flight -= 1;
        }
        self.follow(slot, 1, now_ns, RETRY_NS);
        self.flush(slot, now_ns)
    }
}

impl Think {
    fn draw(&self, random: &mut Random) -> u64 {
        if self.exponential {
            (-(1.0 - random.uniform()).ln() * self.mean_ns as f64) as u64
        } else {
            self.mean_ns
        }
    }
}

/// What a thread used so far.
struct Usage {
    at_ns: u64,
    cpu_ns: u64,
    cpu_wait_ns: Option<u64>,
}

impl Usage {
    fn read() -> Self {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat");
        Self {
            at_ns: clock::monotonic_ns(),
            cpu_ns: clock::thread_cpu_ns(),
            cpu_wait_ns: stat.ok().and_then(|stat| proc::run_queue_wait_ns(&stat)),
        }
    }
}

impl Recorder {
    fn used(&mut self, now: &Usage, before: &Usage) {
        self.cpu_ns = now.cpu_ns - before.cpu_ns;
        let elapsed_ns = now.at_ns.saturating_sub(before.at_ns).max(1);
        self.busiest_ratio = self.cpu_ns as f64 / elapsed_ns as f64;
        let waits = now.cpu_wait_ns.zip(before.cpu_wait_ns);
        self.cpu_wait_ns = waits.map(|(now_ns, before_ns)| now_ns.saturating_sub(before_ns));
    }
}

fn abandoned() -> ProbeError {
    ProbeError::new(
        Kind::Cancelled,
        "cancelled",
        "The threads were stopped.",
        "See the first error.",
    )
}
