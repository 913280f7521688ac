//! Key-value stores as protocols of the request engine: Redis (RESP2), memcached.
mod commands;
pub mod filling;
pub mod keys;
mod reader;
pub mod records;

use crate::http::requests::failures::{Failure, AUTHENTICATION};
use crate::http::requests::{CompleteResponse, ParseProgress, Protocol};
use commands::KeyCommands;
use keys::Keys;
use nephoscope_wire::random::Random;
pub use reader::ReplyReader;
use serde::Deserialize;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    Redis,
    Memcached,
    MemcachedMeta,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    Get,
    Set,
    Incr,
    Lpush,
    Lrange,
}

impl KeyOperation {
    pub const ALL: [Self; 5] = [Self::Get, Self::Set, Self::Incr, Self::Lpush, Self::Lrange];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Incr => "incr",
            Self::Lpush => "lpush",
            Self::Lrange => "lrange",
        }
    }
}

/// What is asked for, of all threads.
#[derive(Debug)]
pub struct KeyWorkload {
    pub dialect: Dialect,
    /// Weight of each operation; their sum is not 0.
    pub weights: [u64; KeyOperation::ALL.len()],
    pub keys: Keys,
    pub key_count: u64,
    pub value_bytes: u64,
    /// What is presented on each connection; empty for nothing.
    password: Vec<u8>,
    commands: KeyCommands,
}

impl KeyWorkload {
    /// range_items: elements of a list. A password is one of Redis.
    pub fn new(
        dialect: Dialect,
        weights: [u64; KeyOperation::ALL.len()],
        (key_prefix, keys, key_count): (&str, Keys, u64),
        (value_bytes, range_items): (u64, u64),
        password: &str,
    ) -> Self {
        let commands = KeyCommands::new(dialect, key_prefix, value_bytes as usize, range_items);
        let password = match password {
            "" => Vec::new(),
            password => commands::authenticate(password),
        };
        Self { dialect, weights, keys, key_count, value_bytes, password, commands }
    }

    /// The operations of the mix.
    pub fn operations(&self) -> impl Iterator<Item = KeyOperation> + '_ {
        KeyOperation::ALL.into_iter().filter(|operation| self.weights[*operation as usize] > 0)
    }

    fn draw_operation(&self, random: &mut Random) -> KeyOperation {
        let mut left = random.below(self.weights.iter().sum());
        for operation in KeyOperation::ALL {
            let weight = self.weights[operation as usize];
            if left < weight {
                return operation;
            }
            left -= weight;
        }
        unreachable!("the number is below the sum of the weights")
    }
}

/// The protocol of one thread.
pub struct Kv {
    workload: Arc<KeyWorkload>,
    /// The only operation of the mix, where there is one alone.
    only: Option<KeyOperation>,
    random: Random,
    /// Keys that were there and that were not, where a reply tells.
    pub hits: u64,
    pub misses: u64,
}

impl Kv {
    pub fn new(workload: Arc<KeyWorkload>, random: Random) -> Self {
        let mut operations = workload.operations();
        let only = operations.next().filter(|_| operations.next().is_none());
        drop(operations);
        Self { workload, only, random, hits: 0, misses: 0 }
    }
}

impl Protocol for Kv {
    type Parser = ReplyReader;

    fn classes(&self) -> usize {
        KeyOperation::ALL.len()
    }

    fn draw_class(&mut self) -> u8 {
        self.only.unwrap_or_else(|| self.workload.draw_operation(&mut self.random)) as u8
    }

    #[inline]
    fn encode(&mut self, reader: &mut ReplyReader, out: &mut Vec<u8>) -> u8 {
        let workload = &*self.workload;
        if !reader.presented && !workload.password.is_empty() {
            reader.presented = true;
            out.extend_from_slice(&workload.password);
        }
        let operation = match self.only {
            Some(operation) => operation,
            None => workload.draw_operation(&mut self.random),
        };
        let key = workload.keys.draw(&mut self.random);
        workload.commands.operations[operation as usize].write(key, out);
        operation as u8
    }

    #[inline]
    fn parse(
        &mut self,
        reader: &mut ReplyReader,
        class: u8,
        bytes: &[u8],
    ) -> Result<ParseProgress, Failure> {
        let KeyWorkload { dialect, value_bytes, .. } = *self.workload;
        let mut used = 0;
        if reader.presented && !reader.accepted {
            let (count, reply) = reader.read(dialect, KeyOperation::Set, value_bytes, bytes)?;
            used = count;
            match reply {
                None => return Ok(ParseProgress::Partial(used)),
                Some(reply) if reply.failure.is_some() => return Err(AUTHENTICATION),
                Some(_) => reader.accepted = true,
            }
            if used == bytes.len() {
                return Ok(ParseProgress::Partial(used));
            }
        }
        let operation = KeyOperation::ALL[usize::from(class)];
        let (count, reply) = reader.read(dialect, operation, value_bytes, &bytes[used..])?;
        used += count;
        let Some(reply) = reply else { return Ok(ParseProgress::Partial(used)) };
        match reply.is_hit {
            Some(true) => self.hits += 1,
            Some(false) => self.misses += 1,
            None => {}
        }
        Ok(ParseProgress::Complete(
            used,
            CompleteResponse { failure: reply.failure, keeps_alive: true },
        ))
    }
}
