//! Probes that any host answers, without a program of ours at the far side: one thread sends by a
//! schedule that no answer delays, and receives what comes meanwhile.
pub mod icmp;
pub mod icmp_errors;
pub mod icmp_socket;
pub mod one_socket_each;
pub mod path;
pub mod probe_samples;

use super::round_trips::{Arrival, Departure, RecordSettings, RoundTrips};
use super::udp::pace::Pace;
use super::udp::sender::LATE_NS;
use crate::error::Result;
use crate::load;
use crate::net::target::{check_authorised, resolve};
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_linux::scheduling;
use nephoscope_wire::spec::Param;
use std::net::SocketAddr;
use std::os::fd::RawFd;

/// Probes whose sending times are remembered: what was sent longer ago has no round trip any more.
const REMEMBERED: usize = 1 << 17;
/// Longest wait between two looks whether it is over.
const CHECK_INTERVAL_NS: u64 = 50_000_000;

pub const HOST: Param = Param::text("host", "");
pub const WAIT: Param = Param::int("wait_ns", 1_000_000_000, 0..=60_000_000_000)
    .doc("Time to wait for answers after the last probe; later ones count as lost.");
pub const LATE_AFTER: Param = Param::int("late_after_ns", 1_000_000_000, 1..=60_000_000_000)
    .doc("Round-trip time above which an answer counts as late; it is kept, not lost.");
pub const STORED_PROBES: Param = Param::count("stored_probes", 0, 0..=10_000_000)
    .doc("Number of probes whose round trip is stored one by one, as probe_rtt_ns.");

/// So many probes per second are no load, to anybody.
const UNASKED_PER_S: f64 = 100.0;

/// One kind of probe.
pub trait Prober {
    /// Writes the packet of a probe. Its round trip begins afterwards.
    fn prepare(&mut self, _sequence: u64) {}

    /// Sends the probe; false if it cannot leave now.
    fn send(&mut self, sequence: u64) -> Result<bool>;

    /// Waits until `until_ns` at most for answers and appends what came: the numbers of the probes
    /// and the times.
    fn receive(&mut self, until_ns: u64, answers: &mut Vec<(u64, Arrival)>) -> Result<()>;
}

#[derive(Clone, Copy, Debug)]
pub struct ProbingConfig {
    /// 0: each probe when the one before was answered.
    pub per_s: f64,
    /// 0 until told to stop.
    pub duration_ns: u64,
    pub wait_ns: u64,
    pub record: RecordSettings,
}

impl ProbingConfig {
    /// From the parameters of a trial.
    pub fn of(trial: &Trial) -> Result<Self> {
        let params = &trial.params;
        Ok(Self {
            per_s: params.float("rate_per_s"),
            duration_ns: load::duration_ns(trial)?,
            wait_ns: params.u64("wait_ns"),
            record: RecordSettings {
                interval_ns: params.u64("interval_ns"),
                late_after_ns: params.u64("late_after_ns"),
                stored_probes: params.size("stored_probes"),
            },
        })
    }

    /// How many probes that makes; `None` when it is not known in advance.
    pub fn probes(&self) -> Option<u64> {
        let probes = (self.duration_ns as f64 * self.per_s / 1e9).round() as u64;
        (self.duration_ns > 0 && self.per_s > 0.0).then_some(probes.max(1))
    }
}

pub struct ProbingResult {
    pub sent: u64,
    /// Probes that left late.
    pub late_sends: u64,
    pub per_s: Option<f64>,
    pub trips: RoundTrips,
}

/// Sends probes and receives answers; `trial`'s gate opens first.
pub fn run(
    trial: &mut Trial,
    config: &ProbingConfig,
    prober: &mut impl Prober,
) -> Result<ProbingResult> {
    let mut probing = Probing::new(config);
    trial.prepared()?;
    scheduling::minimise_timer_slack();
    probing.begin();
    let session = trial.session;
    while !session.is_stopped() && probing.has_more() {
        session.check()?;
        let now_ns = clock::monotonic_ns();
        let due_ns = probing.next_due_ns(now_ns);
        if due_ns > now_ns && probing.is_all_answered() {
            // No answer is awaited: a sleep takes less CPU time than a wait at the socket.
            clock::nap((due_ns - now_ns).min(CHECK_INTERVAL_NS));
            probing.trips.note_time(clock::monotonic_ns());
        } else if due_ns > now_ns {
            probing.receive(prober, due_ns)?;
        } else {
            probing.send(prober, due_ns)?;
        }
    }
    let end_ns = clock::monotonic_ns() + config.wait_ns;
    while probing.trips.tracker.unique < probing.sent && clock::monotonic_ns() < end_ns {
        session.check()?;
        probing.receive(prober, end_ns)?;
    }
    Ok(probing.end())
}

struct Probing<'a> {
    config: &'a ProbingConfig,
    start_ns: u64,
    sent: u64,
    late_sends: u64,
    /// When the first and the last left.
    first_ns: u64,
    last_ns: u64,
    departures: Vec<Option<Departure>>,
    answers: Vec<(u64, Arrival)>,
    trips: RoundTrips,
}

impl<'a> Probing<'a> {
    /// Takes all memory before the trial: page faults of megabytes would make its first probes late.
    fn new(config: &'a ProbingConfig) -> Self {
        let remembered =
            config.probes().map_or(REMEMBERED, |probes| (probes as usize).clamp(1, REMEMBERED));
        Self {
            config,
            start_ns: 0,
            sent: 0,
            late_sends: 0,
            first_ns: 0,
            last_ns: 0,
            departures: vec![None; remembered],
            answers: Vec::new(),
            trips: RoundTrips::new(config.record),
        }
    }

    fn begin(&mut self) {
        // The first is not late because the gate took its time.
        self.start_ns = clock::monotonic_ns() + LATE_NS / 2;
    }

    fn place(&self, sequence: u64) -> usize {
        sequence as usize % self.departures.len()
    }

    fn is_in_turn(&self) -> bool {
        self.config.per_s == 0.0
    }

    fn has_more(&self) -> bool {
        match (self.config.probes(), self.config.duration_ns) {
            (Some(probes), _) => self.sent < probes,
            (None, 0) => true,
            (None, duration_ns) => clock::monotonic_ns() < self.start_ns + duration_ns,
        }
    }

    fn next_due_ns(&self, now_ns: u64) -> u64 {
        if !self.is_in_turn() {
            return Pace::new(self.start_ns, self.config.per_s).due_ns(self.sent);
        }
        // After a loss fewer are answered than were sent for ever: the time decides then.
        match self.last_ns + self.config.wait_ns {
            _ if self.sent == 0 || self.is_all_answered() => now_ns,
            _ if self.is_last_answered() => now_ns,
            until_ns => until_ns.max(now_ns),
        }
    }

    fn is_all_answered(&self) -> bool {
        self.trips.tracker.unique == self.sent
    }

    fn is_last_answered(&self) -> bool {
        self.departures[self.place(self.sent - 1)].is_none()
    }

    fn send(&mut self, prober: &mut impl Prober, due_ns: u64) -> Result<()> {
        let sequence = self.sent;
        prober.prepare(sequence);
        let (sent_ns, sent_wall_ns) = (clock::monotonic_ns(), clock::realtime_ns());
        if !prober.send(sequence)? {
            return self.receive(prober, sent_ns + LATE_NS);
        }
        // Noted afterwards: its place has mostly left the caches, which would count as travel time.
        let probe = Departure { sequence, intended_ns: due_ns, sent_ns, sent_wall_ns };
        let place = self.place(sequence);
        self.departures[place] = Some(probe);
        self.late_sends += u64::from(sent_ns - due_ns > LATE_NS);
        self.first_ns = if self.sent == 0 { sent_ns } else { self.first_ns };
        self.last_ns = sent_ns;
        self.sent += 1;
        Ok(())
    }

    fn receive(&mut self, prober: &mut impl Prober, until_ns: u64) -> Result<()> {
        let check_ns = clock::monotonic_ns() + CHECK_INTERVAL_NS;
        self.answers.clear();
        prober.receive(until_ns.min(check_ns), &mut self.answers)?;
        for (sequence, arrival) in &self.answers {
            // Each is answered once: what answers again, or what was never sent, has no place.
            let place = self.place(*sequence);
            let place = &mut self.departures[place];
            match place.filter(|probe| probe.sequence == *sequence) {
                Some(probe) => {
                    self.trips.answered(&probe, arrival);
                    *place = None;
                }
                None if *sequence < self.sent => self.trips.tracker.duplicates += 1,
                None => {}
            }
        }
        self.trips.note_time(clock::monotonic_ns());
        Ok(())
    }

    fn end(mut self) -> ProbingResult {
        self.trips.close_interval(clock::monotonic_ns());
        let ns = self.last_ns - self.first_ns;
        let per_s = (self.sent > 1 && ns > 0).then(|| (self.sent - 1) as f64 * 1e9 / ns as f64);
        ProbingResult { sent: self.sent, late_sends: self.late_sends, per_s, trips: self.trips }
    }
}

/// Waits until `socket` can be read, or until a time; returns whether it can be read.
pub fn wait_readable(socket: RawFd, until_ns: u64) -> bool {
    let time = clock::timespec(until_ns.saturating_sub(clock::monotonic_ns()));
    let mut poll = libc::pollfd { fd: socket, events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid entry, and a time that lives as long as the call.
    unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) > 0 }
}

/// Returns the address of `host` with `port` or, without a host, that at which the far side listens.
/// rate_per_s: probes per second; more than a few are load, which only an owner may permit.
pub fn destination(trial: &Trial, host: &str, port: u16, rate_per_s: f64) -> Result<SocketAddr> {
    if host.is_empty() {
        let peer = trial.session.read_peer(trial.spec().id)?;
        return Ok(SocketAddr::new(peer.address, peer.port));
    }
    let addresses = resolve(host, port)?;
    if rate_per_s == 0.0 || rate_per_s > UNASKED_PER_S {
        check_authorised(host, &addresses, &trial.params.texts("authorised_hosts"))?;
    }
    Ok(addresses[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_probes_follows_from_rate_and_time() {
        let config = ProbingConfig {
            per_s: 1000.0,
            duration_ns: 1_500_000_000,
            wait_ns: 0,
            record: RecordSettings { interval_ns: 1, late_after_ns: 1, stored_probes: 0 },
        };
        assert_eq!(config.probes(), Some(1500));
        assert_eq!(ProbingConfig { duration_ns: 1, ..config }.probes(), Some(1));
        assert_eq!(ProbingConfig { duration_ns: 0, ..config }.probes(), None);
        assert_eq!(ProbingConfig { per_s: 0.0, ..config }.probes(), None);
    }
}
