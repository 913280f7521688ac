//! Busy waiting for responses. A thread that sleeps has to be woken up by whoever sends the response, so
//! that a fast generator slows a server down on the next CPU.
use crate::http::requests::epoll::Epoll;
use nephoscope_linux::clock;
use std::io::Error;

/// After so many waits in vain in a row, one wait in 2 to this power is a busy one.
const DOUBLINGS_MAX: u32 = 6;
/// A poll takes about a microsecond: what takes longer than this was spent without the CPU.
const POLL_MAX_NS: u64 = 20_000;

pub struct BusyWait {
    /// Longest busy wait; 0 for none.
    limit_ns: u64,
    /// Waits in vain in a row, and waits until the next attempt.
    vain: u32,
    skipped: u32,
    /// When the last poll of a caller that waits itself ended, if it did nothing else since.
    polled_ns: Option<u64>,
    /// CPU time spent so, since the thread began.
    pub spent_ns: u64,
}

impl BusyWait {
    pub fn new(limit_ns: u64) -> Self {
        Self { limit_ns, vain: 0, skipped: 0, polled_ns: None, spent_ns: 0 }
    }

    /// Waits for events, from `now_ns` on; sleeps when busy waiting has been in vain. A timeout of 0
    /// is a poll of a caller that waits busily itself, until the set time of a request.
    pub fn wait(
        &mut self,
        epoll: &mut Epoll,
        now_ns: u64,
        timeout_ns: u64,
    ) -> Result<usize, Error> {
        let begun_ns = self.polled_ns.take().unwrap_or(now_ns);
        if timeout_ns > 0 && !self.is_due() {
            return epoll.wait(timeout_ns);
        }
        let mut count = epoll.wait(0)?;
        if count > 0 {
            return Ok(count);
        }
        if timeout_ns == 0 {
            self.polled_ns = Some(begun_ns + self.spend(begun_ns, 0));
            return Ok(0);
        }
        let mut waited_ns = self.spend(now_ns, 0);
        while count == 0 && waited_ns < self.limit_ns.min(timeout_ns) {
            count = epoll.wait(0)?;
            waited_ns = self.spend(now_ns, waited_ns);
        }
        self.end(count > 0);
        match count {
            0 => epoll.wait(timeout_ns.saturating_sub(waited_ns)),
            count => Ok(count),
        }
    }

    /// States that the caller did something else than wait since its last poll.
    pub fn worked(&mut self) {
        self.polled_ns = None;
    }

    /// Counts a poll that began `waited_ns` after `begun_ns`; returns how long the wait lasts now.
    fn spend(&mut self, begun_ns: u64, waited_ns: u64) -> u64 {
        let now_ns = clock::monotonic_ns().saturating_sub(begun_ns);
        self.spent_ns += now_ns.saturating_sub(waited_ns).min(POLL_MAX_NS);
        now_ns
    }

    fn is_due(&mut self) -> bool {
        let is_due = self.skipped == 0;
        self.skipped = self.skipped.saturating_sub(1);
        is_due && self.limit_ns > 0
    }

    /// Makes the next attempts rarer after one in vain.
    fn end(&mut self, is_event_ready: bool) {
        self.vain = if is_event_ready { 0 } else { (self.vain + 1).min(DOUBLINGS_MAX) };
        self.skipped = (1 << self.vain) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of attempts in so many waits of which all are in vain, or none.
    fn attempts(busy: &mut BusyWait, waits: usize, is_event_ready: bool) -> usize {
        let mut attempt = |_: &usize| {
            let is_due = busy.is_due();
            if is_due {
                busy.end(is_event_ready);
            }
            is_due
        };
        (0..waits).filter(|wait| attempt(wait)).count()
    }

    #[test]
    fn attempts_in_vain_become_rare_until_one_succeeds() {
        let mut busy = BusyWait::new(1000);
        assert_eq!(attempts(&mut busy, 100, true), 100);
        // After 1, 2, 4 up to 64 waits each.
        assert_eq!(attempts(&mut busy, 1 + 2 + 4 + 8 + 16 + 32 + 64 * 10, false), 16);
        assert_eq!(attempts(&mut busy, 100, true), 100 - 63);
        assert_eq!(attempts(&mut BusyWait::new(0), 100, false), 0);
    }

    #[test]
    fn an_event_ends_the_wait_and_silence_lasts_as_long_as_requested() {
        use crate::http::requests::epoll::READ;
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let (near, mut far) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut epoll = Epoll::new().unwrap();
        epoll.add(near.as_raw_fd(), READ, 7).unwrap();
        let mut busy = BusyWait::new(10_000);
        let begun_ns = clock::monotonic_ns();
        assert_eq!(busy.wait(&mut epoll, begun_ns, 2_000_000).unwrap(), 0);
        assert!(clock::monotonic_ns() - begun_ns >= 2_000_000 && busy.spent_ns >= 10_000);
        let spent_ns = busy.spent_ns;
        assert_eq!(busy.wait(&mut epoll, clock::monotonic_ns() - 1_000_000, 0).unwrap(), 0);
        assert_eq!(busy.spent_ns - spent_ns, POLL_MAX_NS);
        far.write_all(b"x").unwrap();
        assert_eq!(BusyWait::new(10_000).wait(&mut epoll, 0, 1_000_000_000).unwrap(), 1);
    }
}
