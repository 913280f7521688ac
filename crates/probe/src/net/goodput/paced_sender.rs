//! How hard a load presses on the network: during a set share of the time, or at a set rate.
use crate::error::Result;
use crate::load::busy_time::Busy;
use crate::load::duty_cycle::{CycleStep, DutyCycle};
use crate::load::even_rate::Pacer;
use crate::net::set_option;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use serde::{Deserialize, Serialize};
use std::os::fd::RawFd;
use std::time::Duration;

/// Longest sleep between two looks whether the load is over.
const CHECK_INTERVAL_NS: u64 = 10_000_000;
/// Between two looks whether all has left.
const DRAIN_CHECK_INTERVAL: Duration = Duration::from_micros(200);
/// With less than all of the time, so many bytes at most wait in a stream before they are sent: the
/// rest of a stream's time is then short.
const WAITING_BYTES: libc::c_int = 128 << 10;
/// An even rate is at least so many writes a second.
const WRITES_PER_S: f64 = 200.0;

/// What a load is to do; the near side tells it to the far side.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SendingPace {
    /// Share of each period, or of the rate.
    pub intensity_ratio: f64,
    pub period_ns: u64,
    /// Bytes a second of all streams, each way; 0 is as fast as they go.
    pub bytes_per_s: f64,
}

impl SendingPace {
    /// Bytes of one write of one of `streams`.
    pub fn write_bytes(&self, most: usize, streams: usize) -> usize {
        if self.bytes_per_s == 0.0 {
            return most;
        }
        let even = self.bytes_per_s * self.intensity_ratio / streams as f64 / WRITES_PER_S;
        (even as usize).clamp(1, most)
    }
}

pub struct PacedSender<'a> {
    session: Session,
    socket: RawFd,
    busy: &'a Busy,
    busy_ns: u64,
    duty_cycle: DutyCycle,
    pacer: Option<Pacer>,
    /// Something may be left in the socket.
    undrained: bool,
    drains: bool,
}

impl<'a> PacedSender<'a> {
    /// For a sender on the `socket`, whose writes are of `write_bytes`.
    pub fn new(
        session: Session,
        pace: &SendingPace,
        socket: RawFd,
        write_bytes: usize,
        streams: usize,
        patience_ns: u64,
        busy: &'a Busy,
    ) -> Self {
        let now_ns = clock::monotonic_ns();
        let per_s = pace.bytes_per_s * pace.intensity_ratio / (streams * write_bytes) as f64;
        let paced = pace.bytes_per_s > 0.0;
        let drains = !paced && pace.intensity_ratio < 1.0;
        Self {
            session,
            socket,
            busy,
            busy_ns: 0,
            duty_cycle: DutyCycle::begin(pace.intensity_ratio, pace.period_ns, now_ns, 0),
            pacer: paced.then(|| Pacer::begin(per_s, patience_ns, now_ns)),
            undrained: false,
            drains,
        }
    }

    /// Lets few bytes wait in a stream whose time is to be shared.
    pub fn limit_unsent_bytes(&self) {
        if self.drains {
            // Advice: without it the share is kept over a longer time.
            let (level, option) = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
            let _ = set_option(self.socket, level, option, WAITING_BYTES);
        }
    }

    /// Sends by `send`, or waits a little.
    pub fn send_or_wait(
        &mut self,
        send: impl FnOnce() -> Result<u64>,
        over: impl Fn() -> bool,
    ) -> Result<u64> {
        self.session.check()?;
        let now_ns = clock::monotonic_ns();
        let step = match &mut self.pacer {
            Some(pacer) => pacer.next(now_ns),
            None => self.duty_cycle.next(now_ns, self.busy_ns),
        };
        match step {
            CycleStep::Work => {
                self.busy.begin(now_ns);
                let sent = send();
                self.busy_ns = self.busy.end(clock::monotonic_ns());
                self.undrained = self.drains;
                sent
            }
            CycleStep::SleepUntil(_) if self.undrained => {
                // Until all has left the way is in use.
                self.busy.begin(now_ns);
                while waiting_bytes(self.socket) > 0 && !over() && !self.session.is_cancelled() {
                    std::thread::sleep(DRAIN_CHECK_INTERVAL);
                }
                self.busy_ns = self.busy.end(clock::monotonic_ns());
                self.undrained = false;
                Ok(0)
            }
            CycleStep::SleepUntil(at_ns) => {
                let left_ns = at_ns.saturating_sub(now_ns).min(CHECK_INTERVAL_NS);
                std::thread::sleep(Duration::from_nanos(left_ns));
                Ok(0)
            }
        }
    }
}

/// Bytes in a socket that have not left, or are not acknowledged; 0 where the kernel does not tell.
fn waiting_bytes(socket: RawFd) -> libc::c_int {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the kernel writes an int.
    let rc = unsafe { libc::ioctl(socket, libc::TIOCOUTQ, &raw mut bytes) };
    if rc == 0 {
        bytes
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::attempts::{attempt, holds};

    fn sending_pace(intensity_ratio: f64, bytes_per_s: f64) -> SendingPace {
        SendingPace { intensity_ratio, period_ns: 10_000_000, bytes_per_s }
    }

    #[test]
    fn a_slow_rate_is_written_in_small_pieces() {
        assert_eq!(sending_pace(1.0, 0.0).write_bytes(1 << 17, 4), 1 << 17);
        assert_eq!(sending_pace(1.0, 1e6).write_bytes(1 << 17, 1), 5000);
        assert_eq!(sending_pace(0.5, 1e6).write_bytes(1 << 17, 2), 1250);
        assert_eq!(sending_pace(1.0, 1e9).write_bytes(1 << 17, 1), 1 << 17);
        assert_eq!(sending_pace(0.0, 1e6).write_bytes(1 << 17, 1), 1);
    }

    #[test]
    fn turns_keep_the_share_and_the_rate() {
        let busy = Busy::default();
        let spent = |pace: SendingPace, work_ns: u64| {
            let mut sender =
                PacedSender::new(Session::detached(), &pace, -1, 1000, 1, 100_000_000, &busy);
            let (started_ns, mut sent) = (clock::monotonic_ns(), 0);
            while clock::monotonic_ns() - started_ns < 300_000_000 {
                let work = || {
                    std::thread::sleep(Duration::from_nanos(work_ns));
                    Ok(1000)
                };
                sent += sender.send_or_wait(work, || false).unwrap();
            }
            (sender.busy_ns as f64 / (clock::monotonic_ns() - started_ns) as f64, sent)
        };
        attempt("a share of 0.3", || {
            let (share, _) = spent(sending_pace(0.3, 0.0), 200_000);
            // The last piece and the last sleep of thirty periods.
            holds((share - 0.3).abs() < 0.03, share.to_string())
        });
        attempt("200 kB a second", || {
            let (_, sent) = spent(sending_pace(0.5, 400_000.0), 1000);
            // For 0.3 s; 15 ms of them late.
            holds(sent.abs_diff(60_000) <= 3_000, sent.to_string())
        });
    }
}
