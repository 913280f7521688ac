//! The event loop of the server: connections, requests, answers, deadlines, all on one thread.
mod answers;
mod clients;

use super::connection::{is_wait, Connection, Input, Pending, BODY_PERIOD};
use super::cpu_workers::CpuWorkers;
use super::queue::{Job, Queue, Service};
use super::records::{Counters, Records, Times};
use super::request::{self, Parsed, Refusal, Request, HEAD_MAX};
use super::routes::{self, Route};
use super::service_times::ServiceTimes;
use super::stalls::Stalls;
use super::Settings;
use crate::clock;
use crate::error::ProbeError;
use crate::requests::epoll::{Epoll, READ, WRITE};
use crate::session::Session;
use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;

/// What events of the listener and of the workers bring back; those of a connection bring its place.
const LISTENER: u32 = u32::MAX;
const WORKERS: u32 = u32::MAX - 1;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Bodies up to this size are sent in one piece with their head.
const SMALL_BODY_BYTES: usize = 16 << 10;
/// Unfinished requests of all connections together.
const INPUT_BYTES_MAX: usize = 64 << 20;
/// Deadlines are looked at so often, of so many connections.
const SWEEP_NS: u64 = 50_000_000;
const SWEEP_SLOTS: usize = 4096;
/// After a refused request the client has so long to read why.
const DRAIN_NS: u64 = 1_000_000_000;
/// The listener rests so long when the system has no descriptor or memory for a connection.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;
const BUSY: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[derive(Debug, Default)]
struct Slot {
    /// How often the slot was used: a job of an earlier connection is none of this one.
    generation: u32,
    connection: Option<Box<Connection>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Close,
}

pub struct Server<'a> {
    settings: &'a Settings,
    session: Session,
    listener: TcpListener,
    /// What every request has to present.
    token: Option<String>,
    epoll: Epoll,
    slots: Vec<Slot>,
    free: Vec<u32>,
    queue: Queue,
    stalls: Stalls,
    times: ServiceTimes,
    cpu: CpuWorkers,
    /// Answers and connections that wait for the end of a stall.
    withheld: VecDeque<(u64, Option<Times>)>,
    /// What bodies consist of.
    pattern: Vec<u8>,
    answer: Vec<u8>,
    buffer: Vec<u8>,
    /// Capacity of all input buffers.
    input_bytes: usize,
    /// When the events that are handled were seen.
    now_ns: u64,
    sweep_slot: usize,
    next_sweep_ns: u64,
    /// When the listener is watched again.
    accepts_from_ns: Option<u64>,
    pub counters: Counters,
    pub records: Records,
}

impl<'a> Server<'a> {
    pub fn new(
        settings: &'a Settings,
        session: Session,
        listener: TcpListener,
        token: Option<String>,
        started_ns: u64,
    ) -> Result<Self, ProbeError> {
        let epoll = Epoll::new().map_err(|error| ProbeError::os("epoll_create1", &error))?;
        let cpu = CpuWorkers::new(session, settings.worker_cpus())?;
        for (fd, data) in [(listener.as_raw_fd(), LISTENER), (cpu.wake_fd(), WORKERS)] {
            epoll.add(fd, READ, data).map_err(|error| ProbeError::os("epoll_ctl", &error))?;
        }
        Ok(Self {
            settings,
            session,
            listener,
            token,
            epoll,
            slots: Vec::new(),
            free: Vec::new(),
            queue: Queue::new(settings.workers),
            stalls: Stalls::new(started_ns, settings.stall_every_ns, settings.stall_ns),
            times: settings.service_times(),
            cpu,
            withheld: VecDeque::new(),
            pattern: super::body_pattern(BODY_PERIOD),
            answer: Vec::with_capacity(SMALL_BODY_BYTES + 512),
            buffer: vec![0; READ_BYTES],
            input_bytes: 0,
            now_ns: started_ns,
            sweep_slot: 0,
            next_sweep_ns: 0,
            accepts_from_ns: None,
            counters: Counters::default(),
            records: Records::new(settings.records),
        })
    }

    /// Serves until `end_ns` or until it is stopped.
    pub fn run(&mut self, end_ns: u64) -> Result<(), ProbeError> {
        loop {
            self.session.check()?;
            let now_ns = clock::monotonic_ns();
            if self.session.is_stopped() || now_ns >= end_ns {
                return Ok(());
            }
            let wake_ns = self.next_wake_ns(now_ns).min(end_ns);
            let waited = self.epoll.wait(wake_ns.saturating_sub(now_ns));
            let count = waited.map_err(|error| ProbeError::os("epoll_pwait2", &error))?;
            self.end_services()?;
            let seen_ns = self.now_ns;
            for index in 0..count {
                // All that came together arrived at once, whatever the earlier ones cost.
                self.now_ns = seen_ns;
                let (token, ready) = self.epoll.event(index);
                self.handle(token, ready)?;
                if self.queue.next_end_ns().is_some() {
                    self.end_services()?;
                }
            }
            if seen_ns >= self.next_sweep_ns {
                self.sweep()?;
            }
        }
    }

    fn next_wake_ns(&self, now_ns: u64) -> u64 {
        let stall = (!self.withheld.is_empty()).then(|| self.stalls.resume_at(now_ns));
        let next = self.next_sweep_ns.max(now_ns);
        let end = self.queue.next_end_ns().map(|ns| ns.saturating_sub(self.settings.spin_ns));
        [end, stall].into_iter().flatten().fold(next, u64::min)
    }

    fn handle(&mut self, token: u32, ready: u32) -> Result<(), ProbeError> {
        match token {
            LISTENER => self.accept(),
            WORKERS => {
                for ended in self.cpu.take_ended() {
                    self.counters.cpu_work_ns += ended.cpu_ns;
                    self.queue.free(ended.job.end_ns);
                    self.end_job(ended.job)?;
                }
                self.start_jobs()
            }
            place => {
                let id = self.id(place as usize);
                self.with_connection(id, |server, connection| {
                    let is_broken = ready & (libc::EPOLLERR | libc::EPOLLHUP) as u32 != 0;
                    if is_broken && (connection.waits || connection.is_sending()) {
                        // One that waits is counted when its service ends.
                        server.counters.aborted += u64::from(!connection.waits);
                        return Ok(Fate::Close);
                    }
                    if connection.is_sending() {
                        return server.send_rest(id, connection);
                    }
                    if connection.waits {
                        // What has come is read when the answer is sent.
                        return server.watch(id, connection, 0);
                    }
                    server.read(id, connection)
                })
            }
        }
    }

    /// Takes a connection out of its slot for `act`, and puts it back or closes it.
    fn with_connection(
        &mut self,
        id: u64,
        act: impl FnOnce(&mut Self, &mut Connection) -> Result<Fate, ProbeError>,
    ) -> Result<(), ProbeError> {
        let Some(slot) = self.slot(id) else { return Ok(()) };
        let Some(mut connection) = slot.connection.take() else { return Ok(()) };
        let before = connection.input.capacity();
        let fate = act(self, &mut connection)?;
        if connection.input.is_empty() && connection.input.capacity() > 1024 {
            connection.input = Vec::new();
        }
        self.input_bytes = self.input_bytes + connection.input.capacity() - before;
        if fate == Fate::Keep && self.input_bytes <= INPUT_BYTES_MAX {
            self.slots[(id & 0xffff_ffff) as usize].connection = Some(connection);
            return Ok(());
        }
        if fate == Fate::Keep {
            self.counters.out_of_memory += 1;
        }
        self.input_bytes -= connection.input.capacity();
        self.counters.open -= 1;
        self.free.push(id as u32);
        Ok(())
    }

    fn read(&mut self, id: u64, connection: &mut Connection) -> Result<Fate, ProbeError> {
        let mut bytes = match connection.read(&mut self.buffer) {
            Input::Nothing => return Ok(Fate::Keep),
            Input::End => {
                let within = connection.pending.is_some() || !connection.input.is_empty();
                self.counters.broken += u64::from(within && !connection.drains);
                return Ok(Fate::Close);
            }
            Input::Bytes(bytes) => &self.buffer[..bytes],
        };
        self.counters.received_bytes += bytes.len() as u64;
        if connection.drains {
            return Ok(Fate::Keep);
        }
        if connection.input.is_empty() && connection.pending.is_none() {
            connection.deadline_ns = self.now_ns + self.settings.request_timeout_ns;
        }
        // The body of a request is dropped.
        let dropped = connection.body_left.min(bytes.len() as u64);
        connection.body_left -= dropped;
        bytes = &bytes[dropped as usize..];
        connection.input.extend_from_slice(bytes);
        self.advance(id, connection)
    }

    /// Goes through the requests that have come, until one is incomplete or waits.
    fn advance(&mut self, id: u64, connection: &mut Connection) -> Result<Fate, ProbeError> {
        loop {
            if connection.drains || connection.is_sending() || connection.waits {
                return Ok(Fate::Keep);
            }
            if connection.pending.is_none() {
                let (pending, body_bytes, head_bytes) = match request::parse(&connection.input) {
                    Parsed::Incomplete if connection.input.len() < HEAD_MAX => {
                        return Ok(Fate::Keep);
                    }
                    Parsed::Incomplete => (refused(Refusal::HeadTooLarge), 0, 0),
                    Parsed::Refused(refusal) => (refused(refusal), 0, 0),
                    Parsed::Complete(request) => {
                        (self.pending(&request), request.content_length, request.head_bytes)
                    }
                };
                connection.requests += 1;
                connection.pending = Some(pending);
                match pending.route {
                    Route::Refused(refusal) => {
                        self.counters.refusal(refusal);
                        connection.input.clear();
                    }
                    _ => {
                        let here = (connection.input.len() - head_bytes) as u64;
                        let dropped = body_bytes.min(here);
                        connection.input.drain(..head_bytes + dropped as usize);
                        connection.body_left = body_bytes - dropped;
                    }
                }
                if connection.body_left > 0 && pending.expects_continue {
                    // A client that does not get it sends its body all the same, later.
                    let _ = connection.stream.write(b"HTTP/1.1 100 Continue\r\n\r\n");
                }
            }
            if connection.body_left > 0 {
                return Ok(Fate::Keep);
            }
            let fate = self.dispatch(id, connection)?;
            if fate == Fate::Close {
                return Ok(fate);
            }
        }
    }

    /// Decides on a request that can be read.
    fn pending(&self, request: &Request<'_>) -> Pending {
        if let Some(token) = &self.token {
            if request.token != Some(token.as_bytes()) {
                return refused(Refusal::NoToken);
            }
        }
        if request.content_length > self.settings.request_body_bytes {
            return refused(Refusal::BodyTooLarge);
        }
        let (route, bytes) = match routes::find(request.target) {
            Ok(found) => found,
            Err(refusal) => return refused(refusal),
        };
        Pending {
            route,
            body_bytes: bytes.unwrap_or(self.settings.body_bytes),
            head_only: request.head_only,
            is_old: request.is_old,
            keep_alive: request.keep_alive,
            expects_continue: request.expects_continue,
        }
    }

    /// Answers the pending request, or has it wait for a worker.
    fn dispatch(&mut self, id: u64, connection: &mut Connection) -> Result<Fate, ProbeError> {
        let now_ns = self.now_ns;
        let route = connection.pending.as_ref().expect("there is one").route;
        if let Some(kind) = route.kind() {
            self.counters.requests[kind] += 1;
        }
        let service = match route {
            Route::Cpu(ns) => Service::Cpu(ns),
            Route::Service(ns) => Service::Time(ns.unwrap_or_else(|| self.times.draw_ns())),
            Route::Stall(ns) => {
                let times = Times { arrival_ns: now_ns, start_ns: now_ns, end_ns: now_ns };
                let fate = self.send(id, connection, times)?;
                self.queue.delay(self.stalls.begin(now_ns, ns));
                return Ok(fate);
            }
            _ => {
                let end_ns = self.stalls.resume_at(now_ns);
                let times = Times { arrival_ns: now_ns, start_ns: end_ns, end_ns };
                return self.deliver(id, connection, times);
            }
        };
        connection.waits = true;
        connection.deadline_ns = u64::MAX;
        self.queue.push(id, service, now_ns);
        self.start_jobs()?;
        Ok(Fate::Keep)
    }

    fn start_jobs(&mut self) -> Result<(), ProbeError> {
        while let Some(job) = self.queue.start(&self.stalls) {
            self.cpu.start(job)?;
        }
        Ok(())
    }

    /// Sends the answers that are due.
    fn end_services(&mut self) -> Result<(), ProbeError> {
        let now_ns = clock::monotonic_ns();
        self.now_ns = now_ns;
        while self.stalls.resume_at(now_ns) == now_ns {
            let Some((id, times)) = self.withheld.pop_front() else { break };
            if times.is_some() {
                self.count_if_gone(id);
            }
            self.with_connection(id, |server, connection| {
                connection.waits = false;
                match times {
                    Some(times) => server.send_and_advance(id, connection, times),
                    None => server.send_rest(id, connection),
                }
            })?;
        }
        while let Some(job) = self.queue.take_ended(now_ns) {
            self.start_jobs()?;
            self.end_job(job)?;
        }
        Ok(())
    }

    fn end_job(&mut self, job: Job) -> Result<(), ProbeError> {
        let times =
            Times { arrival_ns: job.arrival_ns, start_ns: job.start_ns, end_ns: job.end_ns };
        let wait_ns = job.start_ns.saturating_sub(job.arrival_ns);
        self.records.wait.saturating_record(wait_ns.max(1));
        self.count_if_gone(job.connection);
        self.with_connection(job.connection, |server, connection| {
            connection.waits = false;
            let fate = server.deliver(job.connection, connection, times)?;
            if fate == Fate::Close {
                return Ok(fate);
            }
            server.advance(job.connection, connection)
        })
    }

    fn count_if_gone(&mut self, id: u64) {
        let is_there = self.slot(id).is_some_and(|slot| slot.connection.is_some());
        self.counters.aborted += u64::from(!is_there);
    }

    fn send_and_advance(
        &mut self,
        id: u64,
        connection: &mut Connection,
        times: Times,
    ) -> Result<Fate, ProbeError> {
        match self.send(id, connection, times)? {
            Fate::Close => Ok(Fate::Close),
            Fate::Keep => self.advance(id, connection),
        }
    }

    fn is_stalled(&self) -> bool {
        if !self.stalls.are_possible() {
            return false;
        }
        let now_ns = clock::monotonic_ns();
        self.stalls.resume_at(now_ns) > now_ns
    }
}

/// An answer that refuses a request and closes the connection.
fn refused(refusal: Refusal) -> Pending {
    Pending {
        route: Route::Refused(refusal),
        body_bytes: 0,
        head_only: false,
        is_old: false,
        keep_alive: false,
        expects_continue: false,
    }
}
