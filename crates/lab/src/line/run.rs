//! The loop of a line: devices, clock, control channel.
use super::config::{self, Config};
use super::control::{ControlSocket, LineBuffer};
use super::engine::Engine;
use super::tap::Tap;
use super::waiting::Waiting;
use crate::error::{os_error, usage, Result};
use crate::output::report;
use nephoscope_linux::clock::{monotonic_ns, thread_cpu_ns};
use nephoscope_linux::{scheduling, signals};
use serde_json::{json, Value};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Packets taken from one port before what is due goes out: at 1 to 2 us each a release is late by
/// no more than this many.
const BATCH: usize = 16;

/// Runs a line until SIGTERM. `source` is the configuration's file, `-` for the first line of
/// standard input, whose next lines are orders.
pub fn run(source: &std::path::Path) -> Result<i32> {
    let mut input = LineBuffer::default();
    let text = if source.as_os_str() == "-" {
        first_line(&mut input)?
    } else {
        std::fs::read_to_string(source).map_err(|error| {
            os_error(&format!("Reading the configuration {}", source.display()), &error)
        })?
    };
    let config = config::read(&text)?;
    let mut line = Line::start(&config, input)?;
    report(&line.ready());
    line.serve();
    report(&line.counters());
    Ok(0)
}

fn first_line(input: &mut LineBuffer) -> Result<String> {
    // Unbuffered: what follows the first line has to stay readable through the descriptor.
    loop {
        let open = input.fill(&*raw_stdin());
        if let Some(line) = input.next_line() {
            return Ok(line);
        }
        if !open {
            return Err(usage(
                "Standard input ended before a line with the configuration; end it with a newline.",
            ));
        }
    }
}

/// Standard input without a buffer; the descriptor stays open afterwards.
fn raw_stdin() -> std::mem::ManuallyDrop<File> {
    // SAFETY: descriptor 0 is never closed through this handle.
    std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(0) })
}

struct Line {
    engine: Engine,
    taps: Vec<Tap>,
    names: Vec<String>,
    received: Vec<u64>,
    waiting: Waiting,
    signals: OwnedFd,
    socket: Option<ControlSocket>,
    input: LineBuffer,
    spin_ns: u64,
    spun_ns: u64,
    priority: String,
    started_ns: u64,
    ended: bool,
}

impl Line {
    fn start(config: &Config, input: LineBuffer) -> Result<Self> {
        let watched = signals::set_of(&[libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGUSR1]);
        signals::block(&watched);
        let signals = signals::descriptor(&watched)
            .map_err(|error| os_error("Making a descriptor for signals", &error))?;
        let mut engine = Engine::new(config)
            .map_err(|error| os_error("Taking memory for the packets that wait", &error))?;
        let taps = config.ports.iter().map(Tap::make).collect::<Result<Vec<_>, _>>()?;
        for (port, settings) in config.ports.iter().enumerate() {
            if let Some(mac) = &settings.mac {
                engine.learn(config::parse_mac(mac)?, port);
            }
        }
        let socket = config.socket.as_deref().map(ControlSocket::listen).transpose()?;
        let waiting = Waiting::new()?;
        let descriptors = [signals.as_raw_fd(), 0];
        let listening = socket.as_ref().map(ControlSocket::fd);
        for fd in taps.iter().map(Tap::fd).chain(descriptors).chain(listening) {
            waiting.add(fd)?;
        }
        Ok(Self {
            engine,
            received: vec![0; taps.len()],
            taps,
            names: config.ports.iter().map(|port| port.name.clone()).collect(),
            waiting,
            signals,
            socket,
            input,
            spin_ns: config.spin_ns,
            spun_ns: 0,
            priority: scheduling::raise_priority(config.realtime),
            started_ns: monotonic_ns(),
            ended: false,
        })
    }

    fn serve(&mut self) {
        self.orders_of_stdin();
        while !self.ended {
            self.release();
            let now = monotonic_ns();
            match self.engine.next_ns() {
                Some(next) if next <= now + self.spin_ns => {
                    self.waiting.poll();
                    // Only time without work counts as spinning.
                    if self.waiting.ready().next().is_none() {
                        self.spun_ns += monotonic_ns() - now;
                    }
                }
                next => self.waiting.sleep(next.map(|next| next - self.spin_ns)),
            }
            self.take();
        }
    }

    /// Writes what is due.
    #[inline]
    fn release(&mut self) {
        let mut now = monotonic_ns();
        while let Some(held) = self.engine.pop_due(now) {
            let packet = &self.engine.slots.bytes(held.slot)[..held.bytes as usize];
            let accepted = self.taps[usize::from(held.to)].write(packet);
            self.engine.released(held, now, accepted);
            now = monotonic_ns();
        }
    }

    fn take(&mut self) {
        // At most 64 descriptors were looked at; copied, because answering changes the set.
        let mut ready = [-1; 64];
        let mut count = 0;
        for (to, fd) in ready.iter_mut().zip(self.waiting.ready()) {
            *to = fd;
            count += 1;
        }
        for fd in &ready[..count] {
            if let Some(port) = self.taps.iter().position(|tap| tap.fd() == *fd) {
                self.take_packets(port);
            } else {
                self.take_other(*fd);
            }
        }
    }

    #[inline]
    fn take_packets(&mut self, port: usize) {
        for _ in 0..BATCH {
            let Some(slot) = self.engine.slots.take() else {
                // Nothing is free until something goes out; the device keeps, then counts, the rest.
                return;
            };
            let Some(bytes) = self.taps[port].read(self.engine.slots.bytes(slot)) else {
                self.engine.slots.give(slot);
                return;
            };
            self.received[port] += 1;
            self.engine.accept(port, slot, bytes, monotonic_ns());
        }
    }

    fn take_other(&mut self, fd: RawFd) {
        if fd == self.signals.as_raw_fd() {
            self.take_signal();
        } else if fd == 0 {
            if !self.input.fill(&*raw_stdin()) {
                self.waiting.remove(0);
            }
            self.orders_of_stdin();
        } else if let Some(mut socket) = self.socket.take() {
            if fd == socket.fd() {
                if let Some(peer) = socket.accept() {
                    let _ = self.waiting.add(peer);
                }
            } else {
                socket.serve(fd, |line| self.obey(line).to_string());
            }
            self.socket = Some(socket);
        }
    }

    fn take_signal(&mut self) {
        // SAFETY: a plain struct for which zero is a value.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: a signal descriptor gives whole structs of this size.
        let read = unsafe { libc::read(self.signals.as_raw_fd(), (&raw mut info).cast(), size) };
        if read != size as isize {
            return;
        }
        if info.ssi_signo.cast_signed() == libc::SIGUSR1 {
            report(&self.counters());
        } else {
            self.ended = true;
        }
    }

    fn orders_of_stdin(&mut self) {
        while let Some(line) = self.input.next_line() {
            let answer = self.obey(&line);
            report(&answer);
        }
    }

    fn obey(&mut self, line: &str) -> Value {
        match config::read_order(line, self.taps.len()) {
            Ok(order) if order.counters => self.counters(),
            Ok(order) => {
                self.engine.change(&order.paths);
                json!({ "applied": { "paths": order.paths.len() } })
            }
            Err(error) => json!({ "error": { "message": error.message, "hint": error.hint } }),
        }
    }

    fn ready(&self) -> Value {
        json!({ "ready": {
            "pid": std::process::id(), "ports": self.names, "priority": self.priority,
        }})
    }

    fn counters(&self) -> Value {
        let ports: Vec<_> = (0..self.taps.len())
            .map(|port| {
                json!({ "name": self.names[port], "received": self.received[port],
                        "dropped_unread": self.taps[port].dropped() })
            })
            .collect();
        let paths: Vec<_> = self
            .engine
            .paths()
            .filter(|path| path.counters.offered > 0)
            .map(|path| {
                let (c, set) = (path.counters, path.conditions());
                let mean = (c.delivered > 0).then(|| c.late_sum_ns as f64 / c.delivered as f64);
                json!({
                    "from": set.from, "to": set.to, "offered": c.offered, "delivered": c.delivered,
                    "delivered_bytes": c.delivered_bytes, "lost": c.lost,
                    "duplicated": c.duplicated, "full": c.full, "failed": c.failed,
                    "waiting": path.waiting(), "late_mean_ns": mean, "late_max_ns": c.late_max_ns,
                })
            })
            .collect();
        json!({ "counters": {
            "elapsed_ns": monotonic_ns() - self.started_ns, "cpu_ns": thread_cpu_ns(), "spun_ns": self.spun_ns,
            "waiting": self.engine.waiting(), "ports": ports, "paths": paths,
        }})
    }
}
