//! `dirty`: rewrites memory at a rate that datagrams set, computes in the rest of the time, and
//! answers each datagram with its counters.
//!
//! It is the only program of the guests whose live migration is measured, so that the rate at which
//! their memory changes is known. Pages are written in order, and each is rewritten only after all
//! others: within a time that is shorter than a sweep, every write makes another page dirty.
//! A datagram is a number, the time when it was sent, and the pages to write per second, 64 bits each;
//! the answer repeats the first two, then has the pages written, the units of work, and the time here.
use crate::error::{os_error, require, Result};
use crate::output::announce_ready;
use nephoscope_linux::clock;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};

/// Pages of a virtual machine on x86-64 and aarch64 as QEMU tracks them.
const PAGE_BYTES: usize = 4096;
/// Pages between two looks at the socket, so that a high rate does not delay answers.
const PAGES_AT_ONCE: u64 = 64;
/// Rounds of a unit of work: about 20 us on an emulated CPU.
const ROUNDS: u32 = 2_000;
const REQUEST_BYTES: usize = 24;
const ANSWER_BYTES: usize = 40;
const SECOND_NS: u128 = 1_000_000_000;

/// What to rewrite, and where the rate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirtyConfig {
    pub listen: SocketAddr,
    /// Memory that is rewritten.
    pub working_set_bytes: usize,
    /// Memory that is filled once, and then only read by a migration.
    pub filled_bytes: usize,
}

/// The writes that are due by a rate, as a count since that rate was set.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    pages_per_s: u64,
    since_ns: u64,
    written: u64,
}

impl Pace {
    fn set(&mut self, pages_per_s: u64, now_ns: u64) {
        if pages_per_s != self.pages_per_s {
            *self = Self { pages_per_s, since_ns: now_ns, written: 0 };
        }
    }

    /// Returns the pages to write now. Work that is more than a batch late is dropped: after a pause, a burst
    /// would make more pages dirty than the rate.
    fn due(&mut self, now_ns: u64) -> u64 {
        let elapsed_ns = u128::from(now_ns.saturating_sub(self.since_ns));
        let wanted = (elapsed_ns * u128::from(self.pages_per_s) / SECOND_NS) as u64;
        let late = wanted.saturating_sub(self.written);
        self.written = wanted;
        late.min(PAGES_AT_ONCE)
    }
}

struct Guest {
    socket: UdpSocket,
    memory: &'static mut [u8],
    next_page: usize,
    pages_written: u64,
    work: u64,
    state: u64,
    pace: Pace,
}

/// Runs until it is killed.
pub fn run(config: &DirtyConfig) -> Result<i32> {
    let socket = UdpSocket::bind(config.listen)
        .and_then(|socket| socket.set_nonblocking(true).map(|()| socket))
        .map_err(|error| os_error(&format!("Listening on {}", config.listen), &error))?;
    let _filled = filled(config.filled_bytes)?;
    let memory = filled(config.working_set_bytes)?;
    let (next_page, pages_written, work) = (0, 0, 0);
    let pace = Pace::default();
    let mut guest = Guest { socket, memory, next_page, pages_written, work, state: 1, pace };
    announce_ready();
    loop {
        guest.answer()?;
        for _ in 0..guest.pace.due(clock::monotonic_ns()) {
            guest.write_page();
        }
        guest.compute();
    }
}

impl Guest {
    fn answer(&mut self) -> Result<()> {
        let mut request = [0_u8; REQUEST_BYTES];
        loop {
            match self.socket.recv_from(&mut request) {
                Ok((REQUEST_BYTES, from)) => {
                    let now_ns = clock::monotonic_ns();
                    self.pace.set(word(&request, 2), now_ns);
                    let mut answer = [0_u8; ANSWER_BYTES];
                    answer[..16].copy_from_slice(&request[..16]);
                    for (number, value) in
                        [self.pages_written, self.work, now_ns].into_iter().enumerate()
                    {
                        answer[16 + 8 * number..][..8].copy_from_slice(&value.to_le_bytes());
                    }
                    // A lost answer is what the other side counts.
                    let _ = self.socket.send_to(&answer, from);
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(os_error("Reading a datagram", &error)),
            }
        }
    }

    fn write_page(&mut self) {
        let page = self.next_page * PAGE_BYTES;
        self.pages_written += 1;
        let count = self.pages_written.to_le_bytes();
        self.memory[page..page + count.len()].copy_from_slice(&count);
        self.next_page = (self.next_page + 1) % (self.memory.len() / PAGE_BYTES);
    }

    fn compute(&mut self) {
        for _ in 0..ROUNDS {
            self.state = scrambled(self.state);
        }
        self.work += 1;
    }
}

fn word(bytes: &[u8], number: usize) -> u64 {
    let part = &bytes[8 * number..8 * (number + 1)];
    u64::from_le_bytes(part.try_into().expect("eight bytes"))
}

/// Xorshift. Source: Marsaglia, Journal of Statistical Software 8(14), 2003.
const fn scrambled(mut state: u64) -> u64 {
    state ^= state << 13;
    state ^= state >> 7;
    state ^ (state << 17)
}

/// Returns memory without a page of zeros, which a migration would not send, that stays for ever.
fn filled(bytes: usize) -> Result<&'static mut [u8]> {
    let bytes = bytes.max(PAGE_BYTES).div_ceil(PAGE_BYTES) * PAGE_BYTES;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new anonymous mapping, at an address that the kernel chooses.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
    let outcome = if start == libc::MAP_FAILED { -1 } else { 0 };
    require(outcome, &format!("Mapping {bytes} bytes"))?;
    // SAFETY: the mapping has so many bytes, belongs to nobody else and is never unmapped.
    let memory = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), bytes) };
    let mut state = bytes as u64 | 1;
    for part in memory.chunks_exact_mut(8) {
        state = scrambled(state);
        part.copy_from_slice(&state.to_le_bytes());
    }
    Ok(memory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest() -> Guest {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        Guest {
            socket,
            memory: filled(3 * PAGE_BYTES).unwrap(),
            next_page: 0,
            pages_written: 0,
            work: 0,
            state: 1,
            pace: Pace::default(),
        }
    }

    #[test]
    fn pages_are_due_by_the_rate_and_a_pause_is_not_made_up_for() {
        let mut pace = Pace::default();
        pace.set(1000, 5_000_000_000);
        assert_eq!(pace.due(5_010_000_000), 10);
        assert_eq!(pace.due(5_010_000_000), 0);
        assert_eq!(pace.due(7_000_000_000), PAGES_AT_ONCE);
        assert_eq!(pace.due(7_003_000_000), 3);
        pace.set(1000, 7_003_000_000);
        assert_eq!(pace.due(7_004_000_000), 1, "the same rate is not a new one");
        pace.set(0, 7_004_000_000);
        assert_eq!(pace.due(9_000_000_000), 0);
    }

    #[test]
    fn pages_are_written_in_order_and_none_is_zero() {
        let mut guest = guest();
        assert!(guest
            .memory
            .chunks_exact(PAGE_BYTES)
            .all(|page| page.iter().any(|byte| *byte != 0)));
        for _ in 0..4 {
            guest.write_page();
        }
        let first: Vec<u64> =
            (0..3).map(|page| word(&guest.memory[page * PAGE_BYTES..], 0)).collect();
        assert_eq!(first, [4, 2, 3]);
    }

    #[test]
    fn an_answer_repeats_the_request_and_has_the_counters() {
        let mut guest = guest();
        guest.pages_written = 7;
        guest.work = 11;
        let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let request: Vec<u8> = [3_u64, 99, 500].into_iter().flat_map(u64::to_le_bytes).collect();
        peer.send_to(&request[..5], guest.socket.local_addr().unwrap()).unwrap();
        peer.send_to(&request, guest.socket.local_addr().unwrap()).unwrap();
        let mut answer = [0_u8; 64];
        peer.set_nonblocking(true).unwrap();
        let bytes = loop {
            guest.answer().unwrap();
            if let Ok(bytes) = peer.recv(&mut answer) {
                break bytes;
            }
        };
        assert_eq!(bytes, ANSWER_BYTES);
        assert_eq!([0, 1, 2, 3].map(|number| word(&answer, number)), [3, 99, 7, 11]);
        assert_eq!(guest.pace.pages_per_s, 500);
    }
}
