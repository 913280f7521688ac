//! Records of several fields under the YCSB core workloads, as a protocol of the request engine. An
//! operation may take several commands, one after the other.
pub mod choice;
mod commands;
mod reply;

use super::commands::authenticate;
use super::filling::{FillingClient, StoreAccess};
use super::Dialect;
use crate::error::Result;
use crate::http::requests::failures::{Failure, AUTHENTICATION, GARBAGE, WRONG_VALUE};
use crate::http::requests::{CompleteResponse, LoadShare, ParseProgress, Protocol};
use crate::trial::session::Session;
use choice::{CoreWorkload, RecordChoice, RecordOperation, RecordRange};
use commands::RecordCommands;
use nephoscope_wire::random::Random;
use reply::RecordReply;
use std::net::SocketAddr;
use std::sync::Arc;

/// Bytes of a reply besides its values: names, lengths, ends.
const STRING_BYTES: usize = 512;

/// What is asked for, of all threads.
#[derive(Debug)]
pub struct RecordWorkload {
    core: CoreWorkload,
    commands: RecordCommands,
    range: RecordRange,
    scan_records: u64,
    zipf_exponent: f64,
    share: LoadShare,
    /// What is presented on each connection; empty for nothing.
    password: Vec<u8>,
    reply_bytes_max: usize,
}

/// Number, form and use of the records.
pub struct RecordSettings<'a> {
    pub records: u64,
    pub fields: u64,
    pub field_bytes: usize,
    pub scan_records: u64,
    pub zipf_exponent: f64,
    pub key_prefix: &'a str,
    pub password: &'a str,
    pub share: LoadShare,
}

impl RecordWorkload {
    pub fn new(core: CoreWorkload, settings: &RecordSettings) -> Self {
        let RecordSettings { fields, field_bytes, scan_records, .. } = *settings;
        let password = match settings.password {
            "" => Vec::new(),
            password => authenticate(password),
        };
        let record_bytes = 2 * fields as usize * (STRING_BYTES + field_bytes);
        Self {
            core,
            commands: RecordCommands {
                prefix: settings.key_prefix.to_owned(),
                fields,
                field_bytes,
            },
            range: RecordRange::new(settings.records),
            scan_records,
            zipf_exponent: settings.zipf_exponent,
            share: settings.share,
            password,
            reply_bytes_max: record_bytes.max(scan_records as usize * STRING_BYTES),
        }
    }

    /// Returns the number of the record at a position; generators insert different ones.
    fn number(&self, position: u64) -> u64 {
        let loaded = self.range.loaded;
        let (number, of) = (self.share.number as u64, self.share.of as u64);
        position.checked_sub(loaded).map_or(position, |own| loaded + own * of + number)
    }

    fn access(&self) -> StoreAccess<'_> {
        StoreAccess { dialect: Dialect::Redis, value_bytes: 0, password: &self.password }
    }

    /// Stores the records and their index.
    pub fn fill(&self, address: SocketAddr, seed: u64, session: Session) -> Result<()> {
        let mut random = Random::new(seed);
        let mut client = FillingClient::connect(self.access(), address, session)?;
        client.run(self.range.loaded, "Storing the records", |number, out| {
            self.commands.store(number, &mut random, out);
            self.commands.index(number, out);
            2
        })
    }

    /// Deletes the records, those that were inserted too, and the index.
    pub fn delete(&self, address: SocketAddr, session: Session) -> Result<()> {
        let what = "Deleting the records";
        let mut client = FillingClient::connect(self.access(), address, session)?;
        client.run(self.range.written(), what, |position, out| {
            self.commands.delete(self.number(position), out);
            1
        })?;
        client.run(1, what, |_, out| {
            self.commands.delete_index(out);
            1
        })
    }
}

/// How far the operation of a connection came.
#[derive(Debug, Default)]
pub struct RecordProgress {
    presented: bool,
    accepted: bool,
    /// The next command of the operation, until it is sent.
    pending: Vec<u8>,
    /// Whether the first command was answered.
    is_second: bool,
    /// Position of the record, where it is being inserted.
    inserted: Option<u64>,
    /// Number of the record.
    number: u64,
    /// Keys of a range that were not read, from `keys_read` on.
    keys: Vec<u8>,
    keys_read: usize,
}

/// The protocol of one thread.
pub struct Records {
    workload: Arc<RecordWorkload>,
    choice: RecordChoice,
    random: Random,
    /// Records that were there and that were not.
    pub hits: u64,
    pub misses: u64,
    /// Those of them that scans read.
    pub scanned: u64,
}

impl Records {
    pub fn new(workload: Arc<RecordWorkload>, random: Random) -> Self {
        let (is_latest, loaded) = (workload.core.is_latest, workload.range.loaded);
        let choice = RecordChoice::new(is_latest, workload.zipf_exponent, loaded);
        Self { workload, choice, random, hits: 0, misses: 0, scanned: 0 }
    }

    /// Takes the reply to a command. Returns whether the operation is complete, and its failure.
    fn advance(
        &mut self,
        progress: &mut RecordProgress,
        operation: RecordOperation,
        reply: RecordReply,
    ) -> std::result::Result<(bool, Option<Failure>), Failure> {
        use RecordOperation::{Insert, Read, ReadModifyWrite, Scan, Update};
        let is_second = std::mem::replace(&mut progress.is_second, true);
        let commands = &self.workload.commands;
        match (operation, is_second, reply) {
            (_, _, RecordReply::Error(failure)) => return Ok((true, Some(failure))),
            (Update, _, RecordReply::Plain)
            | (Insert | ReadModifyWrite, true, RecordReply::Plain) => {}
            (Insert, false, RecordReply::Plain) => {
                commands.index(progress.number, &mut progress.pending);
                return Ok((false, None));
            }
            (Scan, false, RecordReply::Strings { text, .. }) => {
                progress.keys.clear();
                progress.keys.extend_from_slice(text);
                progress.keys_read = 0;
                return Ok((!progress.request_next_key()?, None));
            }
            (Read, _, RecordReply::Strings { count, text })
            | (Scan, true, RecordReply::Strings { count, text })
            | (ReadModifyWrite, false, RecordReply::Strings { count, text }) => {
                if !self.is_record(count, text)? {
                    return Ok((true, Some(WRONG_VALUE)));
                }
                *(if count > 0 { &mut self.hits } else { &mut self.misses }) += 1;
                let commands = &self.workload.commands;
                if operation == ReadModifyWrite {
                    commands.update(progress.number, &mut self.random, &mut progress.pending);
                    return Ok((false, None));
                }
                if operation == Scan {
                    self.scanned += 1;
                    return Ok((!progress.request_next_key()?, None));
                }
            }
            _ => return Err(GARBAGE),
        }
        Ok((true, None))
    }

    /// Whether strings are the fields of a record, or of none.
    fn is_record(&self, count: u64, mut text: &[u8]) -> std::result::Result<bool, Failure> {
        let RecordCommands { fields, field_bytes, .. } = self.workload.commands;
        for position in 0..count {
            let (whole, length) = reply::first_string(text)?.ok_or(GARBAGE)?;
            if position % 2 == 1 && length != field_bytes {
                return Ok(false);
            }
            text = &text[whole..];
        }
        Ok(count == 0 || count == 2 * fields)
    }
}

impl RecordProgress {
    /// Asks for the next record of a range; false where there is none.
    fn request_next_key(&mut self) -> std::result::Result<bool, Failure> {
        let rest = &self.keys[self.keys_read..];
        if rest.is_empty() {
            return Ok(false);
        }
        let (whole, _) = reply::first_string(rest)?.ok_or(GARBAGE)?;
        RecordCommands::read_key(&rest[..whole], &mut self.pending);
        self.keys_read += whole;
        Ok(true)
    }
}

impl Protocol for Records {
    type Parser = RecordProgress;

    fn classes(&self) -> usize {
        RecordOperation::ALL.len()
    }

    fn draw_class(&mut self) -> u8 {
        self.workload.core.draw(&mut self.random) as u8
    }

    fn reopen(&mut self, progress: &mut RecordProgress) {
        if let Some(position) = progress.inserted {
            self.workload.range.end_insert(position);
        }
        *progress = RecordProgress::default();
    }

    fn encode(&mut self, progress: &mut RecordProgress, out: &mut Vec<u8>) -> u8 {
        let Self { workload, choice, random, .. } = self;
        if !progress.presented && !workload.password.is_empty() {
            progress.presented = true;
            out.extend_from_slice(&workload.password);
        }
        let operation = workload.core.draw(random);
        let position = if operation == RecordOperation::Insert {
            let position = workload.range.begin_insert();
            progress.inserted = Some(position);
            position
        } else {
            choice.draw(&workload.range, random)
        };
        let number = workload.number(position);
        (progress.number, progress.is_second) = (number, false);
        match operation {
            RecordOperation::Read | RecordOperation::ReadModifyWrite => {
                workload.commands.read(number, out);
            }
            RecordOperation::Update => workload.commands.update(number, random, out),
            RecordOperation::Insert => workload.commands.store(number, random, out),
            RecordOperation::Scan => {
                let records = 1 + random.below(workload.scan_records);
                workload.commands.range(number, records, out);
            }
        }
        operation as u8
    }

    fn has_pending(&self, progress: &RecordProgress) -> bool {
        !progress.pending.is_empty()
    }

    fn write_pending(&mut self, progress: &mut RecordProgress, out: &mut Vec<u8>) {
        out.append(&mut progress.pending);
    }

    fn parse(
        &mut self,
        progress: &mut RecordProgress,
        class: u8,
        bytes: &[u8],
    ) -> std::result::Result<ParseProgress, Failure> {
        // Nothing was asked for that it could answer.
        if !progress.pending.is_empty() {
            return Err(GARBAGE);
        }
        let bytes_max = self.workload.reply_bytes_max;
        let Some((used, reply)) = reply::read(bytes, bytes_max)? else {
            return Ok(ParseProgress::Partial(0));
        };
        if progress.presented && !progress.accepted {
            if matches!(reply, RecordReply::Error(_)) {
                return Err(AUTHENTICATION);
            }
            progress.accepted = true;
            return match self.parse(progress, class, &bytes[used..])? {
                ParseProgress::Partial(more) => Ok(ParseProgress::Partial(used + more)),
                ParseProgress::Complete(more, response) => {
                    Ok(ParseProgress::Complete(used + more, response))
                }
                _ => Err(GARBAGE),
            };
        }
        let operation = RecordOperation::ALL[usize::from(class)];
        let (is_complete, failure) = self.advance(progress, operation, reply)?;
        if !is_complete {
            return Ok(ParseProgress::Partial(used));
        }
        if let Some(position) = progress.inserted.take() {
            self.workload.range.end_insert(position);
        }
        Ok(ParseProgress::Complete(used, CompleteResponse { failure, keeps_alive: true }))
    }
}
