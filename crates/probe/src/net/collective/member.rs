//! A rank that the coordinator assigns: it waits for connections, takes part in all steps, and reports
//! its times.
use super::mesh::Mesh;
use super::{failed, steps, Assignment, Join, RANKS_MAX};
use crate::error::{ProbeError, Result};
use crate::net::connection::{is_wait, readable, End};
use crate::net::messages::{receive_message, send_message, Signal};
use crate::trial::session::Session;
use nephoscope_linux::clock;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

const CHECK_INTERVAL_MS: libc::c_int = 100;
/// A handshake over the longest way takes less.
const PATIENCE: Duration = Duration::from_secs(5);
/// Other ranks have connected by then, or never will.
const MESH_NS: u64 = 10_000_000_000;

/// What a member did.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemberCounts {
    /// Trials in which it took part to their end.
    pub sessions: u64,
    pub steps: u64,
    /// Trials that ended before their last step.
    pub failed_sessions: u64,
    /// Connections from addresses that may not take part.
    pub refused: u64,
}

/// A listening rank.
pub struct Member<'a> {
    session: Session,
    listener: &'a TcpListener,
    /// Addresses that may connect, and to which it connects.
    hosts: &'a [IpAddr],
    pub counts: MemberCounts,
    /// Connections of other ranks whose trial has no assignment yet.
    early: Vec<(Join, End)>,
}

impl<'a> Member<'a> {
    /// A rank that listens; the listener must not block.
    pub fn new(session: Session, listener: &'a TcpListener, hosts: &'a [IpAddr]) -> Self {
        Self { session, listener, hosts, counts: MemberCounts::default(), early: Vec::new() }
    }

    /// Takes part in trials until `is_over`. Errors of single trials are counted.
    pub fn serve(&mut self, is_over: impl Fn(&MemberCounts) -> bool) -> Result<()> {
        while !is_over(&self.counts) && !self.session.is_stopped() {
            self.session.check()?;
            let Some((join, end)) = self.next_connection()? else { continue };
            match join.assignment {
                None => self.remember(join, end),
                Some(ref assignment) => match self.take_part(join.session, assignment, end) {
                    Ok(()) => {
                        self.counts.sessions += 1;
                        self.counts.steps += assignment.settings.steps as u64;
                    }
                    Err(_) => self.counts.failed_sessions += 1,
                },
            }
        }
        Ok(())
    }

    fn remember(&mut self, join: Join, end: End) {
        if self.early.len() >= RANKS_MAX {
            self.early.remove(0);
        }
        self.early.push((join, end));
    }

    /// Waits a moment for a connection of an allowed host, and reads how it introduces itself.
    fn next_connection(&mut self) -> Result<Option<(Join, End)>> {
        if !readable([self.listener.as_raw_fd()], CHECK_INTERVAL_MS)[0] {
            return Ok(None);
        }
        let (stream, address) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if is_wait(&error) || error.kind() == ErrorKind::ConnectionAborted => {
                return Ok(None);
            }
            Err(error) => return Err(ProbeError::os("Accepting a connection", &error)),
        };
        if !self.hosts.contains(&address.ip().to_canonical()) {
            self.counts.refused += 1;
            return Ok(None);
        }
        let introduced = stream.set_nonblocking(false).ok().and_then(|()| {
            let mut end = End::of(self.session, stream).ok()?;
            Some((receive_message::<Join>(&mut end).ok()?, end.patient()))
        });
        Ok(introduced)
    }

    fn take_part(&mut self, session: u64, assignment: &Assignment, control: End) -> Result<()> {
        let (rank, ranks) = (assignment.rank, assignment.addresses.len() + 1);
        if !(1..ranks).contains(&rank) || ranks > RANKS_MAX {
            return Err(failed("wrong_message", "The coordinator assigned an impossible rank."));
        }
        let mut ends: Vec<Option<End>> = (0..ranks).map(|_| None).collect();
        ends[0] = Some(control);
        for (peer_rank, address) in (1..).zip(&assignment.addresses).skip(rank) {
            if !self.hosts.contains(&address.ip()) {
                return Err(failed("wrong_message", format!("{address} may not take part.")));
            }
            let join = Join { session, rank, assignment: None };
            ends[peer_rank] = Some(connect(self.session, peer_rank, *address, &join)?);
        }
        let until_ns = clock::monotonic_ns() + MESH_NS;
        while let Some(missing) = (1..rank).find(|peer_rank| ends[*peer_rank].is_none()) {
            self.session.check()?;
            if clock::monotonic_ns() > until_ns || self.session.is_stopped() {
                return Err(failed("rank_gone", format!("Rank {missing} did not connect.")));
            }
            let (join, end) = match self.early.pop() {
                Some(early) => early,
                None => match self.next_connection()? {
                    Some(connection) => connection,
                    None => continue,
                },
            };
            if join.session == session && (1..rank).contains(&join.rank) {
                ends[join.rank] = Some(end);
            }
        }
        let mut mesh = Mesh::new(self.session, rank, ends, assignment.settings.message_bytes);
        send_message(mesh.end(0), &Signal::Accepted)?;
        let times = steps::run(&mut mesh, &assignment.settings)?;
        send_message(mesh.end(0), &times)
    }
}

/// Connects to another rank and introduces this one.
pub(super) fn connect(
    session: Session,
    rank: usize,
    address: SocketAddr,
    join: &Join,
) -> Result<End> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| {
        session.check().err().unwrap_or_else(|| {
            failed("no_far_side", format!("Rank {rank} at {address} cannot be reached: {error}."))
        })
    })?;
    let mut end = End::of(session, stream)?;
    send_message(&mut end, join)?;
    Ok(end.patient())
}
