//! Connections between all ranks, and messages over several of them at once.
use super::{failed, HEADER_BYTES, RANKS_MAX};
use crate::error::{FailureKind, ProbeError, Result};
use crate::net::connection::End;
use crate::trial::session::Session;
use std::io::{Error, ErrorKind};
use std::os::fd::{AsRawFd, RawFd};

const CHECK_INTERVAL_MS: libc::c_int = 100;

/// What identifies a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub step: u64,
    pub rank: usize,
    pub round: usize,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.step.to_le_bytes());
        bytes[8..12].copy_from_slice(&(self.rank as u32).to_le_bytes());
        bytes[12..].copy_from_slice(&(self.round as u32).to_le_bytes());
        bytes
    }
}

/// The connections of one rank. `ends` has one for each other rank.
pub struct Mesh {
    session: Session,
    pub rank: usize,
    ends: Vec<Option<End>>,
    outgoing: Vec<u8>,
    incoming: Vec<Vec<u8>>,
}

impl Mesh {
    /// The connections of `rank`; messages have at most `message_bytes`.
    pub fn new(
        session: Session,
        rank: usize,
        ends: Vec<Option<End>>,
        message_bytes: usize,
    ) -> Self {
        let bytes = message_bytes.max(HEADER_BYTES);
        let incoming = vec![vec![0; bytes]; ends.len()];
        Self { session, rank, ends, outgoing: vec![0x5a; bytes], incoming }
    }

    pub fn ranks(&self) -> usize {
        self.ends.len()
    }

    /// The connection to another rank.
    pub fn end(&mut self, rank: usize) -> &mut End {
        self.ends[rank].as_mut().expect("a mesh has an end for each other rank")
    }

    /// Sends one message of `bytes` to each rank in `to` while it receives one from each in `from`
    /// (bit sets); checks that those are of the same step and round.
    pub fn transfer(
        &mut self,
        (step, round): (u64, usize),
        (to, from): (u32, u32),
        bytes: usize,
    ) -> Result<()> {
        let header = Header { step, rank: self.rank, round };
        self.outgoing[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
        let mut unsent = [0; RANKS_MAX];
        let mut missing = [0; RANKS_MAX];
        for rank in 0..self.ranks() {
            unsent[rank] = bytes * (to >> rank & 1) as usize;
            missing[rank] = bytes * (from >> rank & 1) as usize;
        }
        while self.advance(bytes, &mut unsent, &mut missing)? {
            self.session.check()?;
            if self.session.is_stopped() {
                return Err(stopped());
            }
        }
        for rank in (0..self.ranks()).filter(|rank| from >> rank & 1 == 1) {
            let expected = Header { rank, ..header }.to_bytes();
            if self.incoming[rank][..HEADER_BYTES] != expected {
                return Err(failed(
                    "wrong_message",
                    format!("Rank {rank} sent a message of another step to rank {}.", self.rank),
                ));
            }
        }
        Ok(())
    }

    /// Sends and receives what is possible at once; true where something is left, after a wait for it.
    fn advance(
        &mut self,
        bytes: usize,
        unsent: &mut [usize; RANKS_MAX],
        missing: &mut [usize; RANKS_MAX],
    ) -> Result<bool> {
        let mut polls = [libc::pollfd { fd: -1, events: 0, revents: 0 }; RANKS_MAX];
        for rank in 0..self.ranks() {
            let Some(end) = &self.ends[rank] else { continue };
            let fd = end.as_raw_fd();
            if unsent[rank] > 0 {
                unsent[rank] -= send_some(fd, &self.outgoing[bytes - unsent[rank]..bytes], rank)?;
            }
            if missing[rank] > 0 {
                let rest = &mut self.incoming[rank][bytes - missing[rank]..bytes];
                missing[rank] -= receive_some(fd, rest, rank)?;
            }
            let writes = if unsent[rank] > 0 { libc::POLLOUT } else { 0 };
            let reads = if missing[rank] > 0 { libc::POLLIN } else { 0 };
            if writes | reads != 0 {
                polls[rank] = libc::pollfd { fd, events: writes | reads, revents: 0 };
            }
        }
        if polls.iter().all(|poll| poll.fd < 0) {
            return Ok(false);
        }
        // SAFETY: RANKS_MAX valid entries; those with a negative descriptor are ignored.
        unsafe { libc::poll(polls.as_mut_ptr(), RANKS_MAX as libc::nfds_t, CHECK_INTERVAL_MS) };
        Ok(true)
    }
}

fn send_some(fd: RawFd, data: &[u8], rank: usize) -> Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the slice is readable for its whole length.
    let sent = unsafe { libc::send(fd, data.as_ptr().cast(), data.len(), flags) };
    moved(sent, "Sending to", rank)
}

fn receive_some(fd: RawFd, buffer: &mut [u8], rank: usize) -> Result<usize> {
    // SAFETY: the slice is writable for its whole length.
    let got =
        unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    if got == 0 {
        return Err(failed("rank_gone", format!("Rank {rank} hung up in the middle of a step.")));
    }
    moved(got, "Receiving from", rank)
}

fn moved(bytes: isize, what: &str, rank: usize) -> Result<usize> {
    if let Ok(bytes) = usize::try_from(bytes) {
        return Ok(bytes);
    }
    let error = Error::last_os_error();
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(0),
        _ => Err(failed("rank_gone", format!("{what} rank {rank} failed: {error}."))),
    }
}

fn stopped() -> ProbeError {
    ProbeError::new(
        FailureKind::Cancelled,
        "cancelled",
        "It was stopped in the middle of a step.",
        "Stop members after the trial has ended.",
    )
}
