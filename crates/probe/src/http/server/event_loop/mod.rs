//! The event loop of the server: connections, requests, answers, deadlines, all on one thread.
mod answers;
mod clients;
mod requests;

use super::connection::{Pending, ReadOutcome, ServerConnection, BODY_PERIOD};
use super::cpu_workers::CpuWorkers;
use super::queue::{QueuedRequest, RequestQueue, WorkKind};
use super::records::{Records, RequestTimes, ServerCounters};
use super::request::{self, ParsedRequest, ReceivedRequest, Refusal, HEAD_MAX};
use super::routes::{self, Route};
use super::service_times::ServiceTimes;
use super::stalls::Stalls;
use super::ServerSettings;
use crate::error::{ProbeError, Result};
use crate::http::requests::epoll::{Epoll, READ, WRITE};
use crate::http::requests::socket::is_wait;
use crate::trial::session::Session;
use nephoscope_linux::clock;
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
struct ConnectionSlot {
    /// How often the slot was used: a job of an earlier connection is none of this one.
    generation: u32,
    connection: Option<Box<ServerConnection>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RequestOutcome {
    Keep,
    Close,
}

pub struct HttpServer<'a> {
    settings: &'a ServerSettings,
    session: Session,
    listener: TcpListener,
    /// What every request has to present.
    token: Option<String>,
    epoll: Epoll,
    slots: Vec<ConnectionSlot>,
    free: Vec<u32>,
    queue: RequestQueue,
    stalls: Stalls,
    times: ServiceTimes,
    cpu: CpuWorkers,
    /// Answers and connections that wait for the end of a stall.
    withheld: VecDeque<(u64, Option<RequestTimes>)>,
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
    pub counters: ServerCounters,
    pub records: Records,
}

impl<'a> HttpServer<'a> {
    pub fn new(
        settings: &'a ServerSettings,
        session: Session,
        listener: TcpListener,
        token: Option<String>,
        started_ns: u64,
    ) -> Result<Self> {
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
            queue: RequestQueue::new(settings.workers),
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
            counters: ServerCounters::default(),
            records: Records::new(settings.records),
        })
    }

    /// Serves until `end_ns` or until it is stopped.
    pub fn run(&mut self, end_ns: u64) -> Result<()> {
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

    fn handle(&mut self, token: u32, ready: u32) -> Result<()> {
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
                        return Ok(RequestOutcome::Close);
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

    fn start_jobs(&mut self) -> Result<()> {
        while let Some(job) = self.queue.start(&self.stalls) {
            self.cpu.start(job)?;
        }
        Ok(())
    }

    /// Sends the answers that are due.
    fn end_services(&mut self) -> Result<()> {
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

    fn end_job(&mut self, job: QueuedRequest) -> Result<()> {
        let times =
            RequestTimes { arrival_ns: job.arrival_ns, start_ns: job.start_ns, end_ns: job.end_ns };
        let wait_ns = job.start_ns.saturating_sub(job.arrival_ns);
        self.records.wait.saturating_record(wait_ns.max(1));
        self.count_if_gone(job.connection);
        self.with_connection(job.connection, |server, connection| {
            connection.waits = false;
            let fate = server.deliver(job.connection, connection, times)?;
            if fate == RequestOutcome::Close {
                return Ok(fate);
            }
            server.advance(job.connection, connection)
        })
    }

    fn count_if_gone(&mut self, id: u64) {
        let is_there = self.slot(id).is_some_and(|slot| slot.connection.is_some());
        self.counters.aborted += u64::from(!is_there);
    }
}
