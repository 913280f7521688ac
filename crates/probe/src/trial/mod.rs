//! One execution of one benchmark: parameters checked, counters read before and after, samples
//! printed as JSON lines.
//!
//! A trial has a gate: the instrument prepares (allocates, fills, connects), calls
//! [`Trial::prepared`], and only then measures. The trial's clock and the machine's counters start
//! there. With a control channel the gate opens when the caller says so.
pub mod affinity;
#[cfg(test)]
pub mod attempts;
pub mod counters;
pub mod idle_cpu;
mod other_programs;
pub mod parameters;
pub mod session;
mod shared_kernel;
mod signals;

use crate::error::Result;
use crate::timing::closed_loop;
use crate::trial::counters::Counters;
use crate::trial::idle_cpu::IdleCpuMonitor;
use crate::trial::session::Session;
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use nephoscope_wire::lines::Done;
use nephoscope_wire::lines::{Peer, Ready};
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::Spec;
use nephoscope_wire::writer::TrialWriter;
use serde_json::{Map, Value};
use std::io::{BufWriter, Stdout};
use std::net::{IpAddr, SocketAddr};

pub use nephoscope_wire::factors;
pub use nephoscope_wire::writer::Factors;

/// The counters are read so many times earlier than a set start as reading them has just taken:
/// others that start at the same moment read theirs on the same CPUs.
const COUNTERS_LEAD: u64 = 4;
/// And by no less and no more than this.
const COUNTERS_LEAD_NS: std::ops::RangeInclusive<u64> = 5_000_000..=50_000_000;

/// One execution of a benchmark: its parameters, what it has to obey, and where its samples go.
pub struct Trial {
    pub params: Params,
    pub session: Session,
    pub out: TrialWriter<BufWriter<Stdout>>,
    /// Of the moment when the gate opened: the wall clock, and the machine's counters.
    opened: Option<(u64, Counters)>,
    /// The far side that was named although the benchmark can do without.
    peer: Option<Peer>,
    /// What watches a CPU that the benchmark leaves free; made ready at the gate.
    idle_cpu_monitor: IdleCpuMonitor,
    /// The CPUs at the beginning, before anything was pinned; `None` where no meter is wanted.
    watchable: Option<Vec<usize>>,
}

/// Where a server listens, and what lets a peer in.
pub struct ListenConfig {
    pub bind: IpAddr,
    /// What the one peer presents.
    pub token: String,
}

/// Runs a benchmark once and prints its lines. gap_meter: whether one runs on a CPU that the
/// benchmark leaves free (never beside a load, which is not what is measured).
pub fn run(
    spec: &'static Spec,
    params: &Map<String, Value>,
    session: Session,
    gap_meter: bool,
    benchmark: impl FnOnce(&mut Trial) -> Result<()>,
) -> Result<()> {
    let mut trial = Trial::new(spec, params, session)?;
    if spec.load {
        session.allow_orderly_stop();
    } else if gap_meter {
        trial.watchable = Some(affinity::allowed());
    }
    benchmark(&mut trial)?;
    trial.finish(None)
}

/// Serves the far side of a benchmark and prints its lines; `far_side` returns what it counted.
pub fn serve(
    spec: &'static Spec,
    params: &Map<String, Value>,
    session: Session,
    far_side: impl FnOnce(&mut Trial) -> Result<Value>,
) -> Result<()> {
    let mut trial = Trial::new(spec, params, session)?;
    session.allow_orderly_stop();
    // A server begins to serve at once; what it is told from now on is to stop.
    session.notice_stop();
    trial.open(Counters::read());
    let served = far_side(&mut trial)?;
    trial.finish(Some(served))
}

impl Trial {
    fn new(spec: &'static Spec, params: &Map<String, Value>, session: Session) -> Result<Self> {
        let out = BufWriter::with_capacity(1 << 16, std::io::stdout());
        Ok(Self {
            params: Params::check(spec, params)?,
            session,
            out: TrialWriter::new(spec, out, clock::monotonic_ns),
            opened: None,
            peer: None,
            idle_cpu_monitor: IdleCpuMonitor::missing("no gap meter was requested"),
            watchable: None,
        })
    }

    /// The gate: called by every instrument when all is prepared, just before its first timed
    /// section. Only the first call does something. With a control channel it says that the probe
    /// is ready and waits for the start.
    pub fn prepared(&mut self) -> Result<()> {
        self.prepared_at(None)
    }

    /// As [`Self::prepared`], for a benchmark that listens at an address, which is told to anybody.
    pub fn prepared_at(&mut self, address: Option<SocketAddr>) -> Result<()> {
        if self.opened.is_some() {
            return Ok(());
        }
        let (mut start_wall_ns, mut lead_ns) = (None, 0);
        if let Some(cpus) = &self.watchable {
            self.idle_cpu_monitor = IdleCpuMonitor::prepare(self.spec(), &self.params, cpus);
        }
        if self.session.has_control() {
            let began_ns = clock::monotonic_ns();
            std::hint::black_box(Counters::read());
            lead_ns = COUNTERS_LEAD * (clock::monotonic_ns() - began_ns);
            self.out.ready(&ready(address))?;
            let go = self.session.wait_for_go()?;
            (start_wall_ns, self.peer) = (go.start_wall_ns, go.peer);
        } else if address.is_some() {
            self.out.ready(&ready(address))?;
        }
        // Read as late as possible, so that they tell of the measured part and not of the waiting;
        // but before a start that was set for a moment, so that reading them does not delay it.
        if let Some(wall_ns) = start_wall_ns {
            let lead_ns = lead_ns.clamp(*COUNTERS_LEAD_NS.start(), *COUNTERS_LEAD_NS.end());
            self.session.wait_until(wall_ns.saturating_sub(lead_ns))?;
        }
        let counters = Counters::read();
        if let Some(wall_ns) = start_wall_ns {
            self.session.wait_until(wall_ns)?;
        }
        self.open(counters);
        Ok(())
    }

    fn open(&mut self, counters: Counters) {
        self.idle_cpu_monitor.begin();
        self.out.start();
        self.opened = Some((clock::realtime_ns(), counters));
    }

    pub fn listens_at(&mut self, address: SocketAddr) -> Result<()> {
        self.out.ready(&ready(Some(address)))
    }

    /// Takes the far side that was named although this benchmark can do without.
    pub fn take_peer(&mut self) -> Option<Peer> {
        self.peer.take()
    }

    /// What the machine's counters did since the measured part began.
    pub fn counters(&self) -> Value {
        let (_, before) = self.opened.as_ref().expect("every instrument says when it is prepared");
        let mut counters = Counters::read().since(before);
        if let Some(keys) = counters.as_object_mut() {
            keys.extend(self.idle_cpu_monitor.report());
        }
        counters
    }

    fn finish(&mut self, served: Option<Value>) -> Result<()> {
        let elapsed_ns = self.out.at_ns();
        let counters = self.counters();
        self.idle_cpu_monitor.end();
        let started_wall_ns = self.opened.as_ref().map_or(0, |(wall_ns, _)| *wall_ns);
        self.out.done(Done { started_wall_ns, elapsed_ns, counters, served, ..Done::default() })
    }

    pub fn spec(&self) -> &'static Spec {
        self.out.spec()
    }

    /// When the measured part began, on the monotonic clock; 0 before that.
    pub fn started_ns(&self) -> u64 {
        self.out.started_ns().unwrap_or(0)
    }

    /// Writes a histogram, as (value, count) pairs.
    pub fn emit_histogram(
        &mut self,
        metric: &str,
        histogram: &Histogram<u64>,
        factors: &Factors,
    ) -> Result<()> {
        self.out.emit_pairs(metric, closed_loop::pairs(histogram), factors)
    }
}

fn ready(address: Option<SocketAddr>) -> Ready {
    Ready {
        address: address.map(|address| address.ip()),
        port: address.map(|address| address.port()),
        pid: std::process::id(),
        wall_ns: clock::realtime_ns(),
    }
}
