//! Stores the values that a workload reads, and deletes its keys in the end.
use super::{Dialect, KeyOperation, KeyWorkload, ReplyReader};
use crate::error::{FailureKind, ProbeError, Result};
use crate::http::requests::failures::{self, Failure};
use crate::trial::session::Session;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Commands and bytes that are sent before their replies are read.
const BATCH: u64 = 1000;
const BATCH_BYTES: usize = 1 << 20;
/// A server that says nothing for this long has gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// How a server is spoken to.
#[derive(Clone, Copy)]
pub struct StoreAccess<'a> {
    pub dialect: Dialect,
    /// Length of the values that a reply may have.
    pub value_bytes: u64,
    /// What is presented first; empty for nothing.
    pub password: &'a [u8],
}

impl KeyWorkload {
    fn access(&self) -> StoreAccess<'_> {
        let Self { dialect, value_bytes, ref password, .. } = *self;
        StoreAccess { dialect, value_bytes, password }
    }
}

/// Stores every value that the workload expects to find.
pub fn fill(workload: &KeyWorkload, address: SocketAddr, session: Session) -> Result<()> {
    let mut client = FillingClient::connect(workload.access(), address, session)?;
    for operation in workload.operations() {
        if let Some(command) = &workload.commands.fills[operation as usize] {
            client.run(workload.key_count, "Storing the values", |key, out| {
                command.write(key, out);
                1
            })?;
        }
    }
    Ok(())
}

/// Deletes every key that the workload may have written.
pub fn delete(workload: &KeyWorkload, address: SocketAddr, session: Session) -> Result<()> {
    let mut client = FillingClient::connect(workload.access(), address, session)?;
    for operation in workload.operations() {
        let command = &workload.commands.deletes[operation as usize];
        client.run(workload.key_count, "Deleting the keys", |key, out| {
            command.write(key, out);
            1
        })?;
    }
    Ok(())
}

pub struct FillingClient<'a> {
    access: StoreAccess<'a>,
    address: SocketAddr,
    session: Session,
    stream: TcpStream,
    reader: ReplyReader,
    input: Vec<u8>,
}

impl<'a> FillingClient<'a> {
    pub fn connect(access: StoreAccess<'a>, address: SocketAddr, session: Session) -> Result<Self> {
        let open = || {
            let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Ok(stream)
        };
        let stream = open().map_err(|error: Error| gone("Connecting", address, &error))?;
        let (reader, input) = (ReplyReader::default(), Vec::new());
        let mut client = Self { access, address, session, stream, reader, input };
        if !access.password.is_empty() {
            client.send(access.password, "Authentication")?;
            client.receive(1, "Authentication")?;
        }
        Ok(client)
    }

    /// Sends the commands of each key, 0 to `count` - 1. write: appends them, returns their number.
    pub fn run(
        &mut self,
        count: u64,
        what: &str,
        mut write: impl FnMut(u64, &mut Vec<u8>) -> u64,
    ) -> Result<()> {
        let (mut out, mut unanswered) = (Vec::new(), 0);
        for key in 0..count {
            unanswered += write(key, &mut out);
            if unanswered >= BATCH || out.len() >= BATCH_BYTES {
                self.send(&out, what)?;
                self.receive(unanswered, what)?;
                out.clear();
                unanswered = 0;
            }
        }
        self.send(&out, what)?;
        self.receive(unanswered, what)
    }

    fn send(&mut self, bytes: &[u8], what: &str) -> Result<()> {
        self.session.check()?;
        self.stream.write_all(bytes).map_err(|error| gone(what, self.address, &error))
    }

    /// Reads so many replies, which have to be good.
    fn receive(&mut self, replies: u64, what: &str) -> Result<()> {
        let (mut left, mut buffer) = (replies, [0u8; 16 << 10]);
        while left > 0 {
            let StoreAccess { dialect, value_bytes: bytes, .. } = self.access;
            let read = self.reader.read(dialect, KeyOperation::Set, bytes, &self.input);
            let (used, reply) = read.map_err(|kind| self.refused(what, kind))?;
            self.input.drain(..used);
            match reply {
                Some(reply) => {
                    if let Some(kind) = reply.failure {
                        return Err(self.refused(what, kind));
                    }
                    left -= 1;
                }
                None => {
                    let read = match self.stream.read(&mut buffer) {
                        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
                        result => result,
                    };
                    let count = read.map_err(|error| gone(what, self.address, &error))?;
                    self.input.extend_from_slice(&buffer[..count]);
                }
            }
        }
        Ok(())
    }

    fn refused(&self, what: &str, kind: Failure) -> ProbeError {
        let protocol = match self.access.dialect {
            Dialect::Redis => "Redis",
            Dialect::Memcached | Dialect::MemcachedMeta => "memcached",
        };
        let why = failures::words(kind);
        let message = format!("{what} at {} failed: {why}.", self.address);
        let hint = format!(
            "Check that it is a {protocol} server, its memory, and `password_file` where it has one."
        );
        ProbeError::new(FailureKind::Failed, "server_refused", message, hint)
    }
}

fn gone(what: &str, address: SocketAddr, error: &Error) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "server_gone",
        format!("{what} at {address} failed: {error}."),
        "See whether the server still runs, and its log.",
    )
}
