//! Reads replies of Redis (RESP2) and memcached (text and meta protocol) from bytes that come in pieces
//! of any size. Values are counted and not kept.
use super::{Dialect, KeyOperation};
use crate::http::decimal;
use crate::http::requests::failures::{
    Failure, AUTHENTICATION, ERROR_REPLY, GARBAGE, MOVED, OUT_OF_MEMORY, WRONG_VALUE,
};

/// No line of a reply is longer, values aside.
const LINE_BYTES: usize = 4096;
/// A whole reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyReply {
    pub failure: Option<Failure>,
    /// Whether a key was there; `None` where the reply does not tell.
    pub is_hit: Option<bool>,
}

/// How far the reading of one reply came.
#[derive(Clone, Debug, Default)]
pub struct ReplyReader {
    /// Bytes of the current value that have not come, its line feed included.
    value_left: u64,
    /// Elements of an array that have not come.
    elements_left: u64,
    /// Whether a value of memcached came, after which `END` has to come.
    ends: bool,
    reply: KeyReply,
    /// Whether the password was sent, and whether its reply was read.
    pub presented: bool,
    pub accepted: bool,
}

impl ReplyReader {
    /// Reads on. Returns the number of bytes used, and the reply once it is whole. value_bytes: length
    /// of a value that is found.
    #[inline]
    pub fn read(
        &mut self,
        dialect: Dialect,
        operation: KeyOperation,
        value_bytes: u64,
        bytes: &[u8],
    ) -> Result<(usize, Option<KeyReply>), Failure> {
        let mut used = 0;
        loop {
            if self.value_left > 0 {
                let count = self.value_left.min((bytes.len() - used) as u64);
                self.value_left -= count;
                used += count as usize;
                if self.value_left > 0 {
                    return Ok((used, None));
                }
                if self.is_whole() {
                    return Ok((used, Some(self.finish())));
                }
            }
            let Some(length) = line_length(&bytes[used..])? else { return Ok((used, None)) };
            let line = &bytes[used..used + length];
            used += length + 2;
            match dialect {
                Dialect::Redis => self.read_redis(line, value_bytes)?,
                Dialect::Memcached => self.read_memcached(line, operation, value_bytes)?,
                Dialect::MemcachedMeta => self.read_meta(line, value_bytes)?,
            }
            if self.value_left == 0 && self.is_whole() {
                return Ok((used, Some(self.finish())));
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.elements_left == 0 && !self.ends
    }

    fn finish(&mut self) -> KeyReply {
        std::mem::take(&mut self.reply)
    }

    fn read_redis(&mut self, line: &[u8], value_bytes: u64) -> Result<(), Failure> {
        let (kind, rest) = line.split_first().ok_or(GARBAGE)?;
        let is_element = self.elements_left > 0;
        self.elements_left = self.elements_left.saturating_sub(1);
        match kind {
            b'+' => {}
            b':' => _ = number(rest.strip_prefix(b"-").unwrap_or(rest))?,
            b'-' => self.reply.failure = Some(redis_failure(rest)),
            b'$' if rest == b"-1" => self.reply.is_hit = Some(false),
            b'$' => {
                self.reply.is_hit = Some(true);
                self.expect_value(number(rest)?, value_bytes);
            }
            b'*' if rest == b"-1" => self.reply.is_hit = Some(false),
            // Arrays of arrays answer no command that is sent.
            b'*' if !is_element => {
                self.elements_left = number(rest)?;
                self.reply.is_hit = Some(self.elements_left > 0);
            }
            _ => return Err(GARBAGE),
        }
        Ok(())
    }

    fn expect_value(&mut self, length: u64, value_bytes: u64) {
        self.value_left = length.saturating_add(2);
        if length != value_bytes {
            self.reply.failure = Some(WRONG_VALUE);
        }
    }

    fn read_memcached(
        &mut self,
        line: &[u8],
        operation: KeyOperation,
        value_bytes: u64,
    ) -> Result<(), Failure> {
        match line {
            b"END" if operation == KeyOperation::Get => {
                self.reply.is_hit = Some(self.ends);
                self.ends = false;
            }
            _ if self.ends => return Err(GARBAGE),
            b"STORED" | b"DELETED" => {}
            b"NOT_FOUND" => self.reply.is_hit = Some(false),
            _ if line.starts_with(b"VALUE ") => {
                self.ends = true;
                let length = line.split(|byte| *byte == b' ').nth(3).ok_or(GARBAGE)?;
                self.expect_value(number(length)?, value_bytes);
            }
            _ if operation == KeyOperation::Incr && number(line).is_ok() => {
                self.reply.is_hit = Some(true);
            }
            _ => self.reply.failure = Some(memcached_failure(line)?),
        }
        Ok(())
    }

    fn read_meta(&mut self, line: &[u8], value_bytes: u64) -> Result<(), Failure> {
        let mut words = line.split(|byte| *byte == b' ');
        match words.next() {
            Some(b"HD") => {}
            Some(b"EN" | b"NF") => self.reply.is_hit = Some(false),
            Some(b"VA") => {
                self.reply.is_hit = Some(true);
                self.expect_value(number(words.next().ok_or(GARBAGE)?)?, value_bytes);
            }
            _ => self.reply.failure = Some(memcached_failure(line)?),
        }
        Ok(())
    }
}

/// Returns the length of the first line without its end; `None` where that has not come.
#[inline]
pub(super) fn line_length(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    let window = &bytes[..bytes.len().min(LINE_BYTES)];
    match window.iter().position(|byte| *byte == b'\n') {
        Some(at) if at > 0 && bytes[at - 1] == b'\r' => Ok(Some(at - 1)),
        Some(_) => Err(GARBAGE),
        None if window.len() == LINE_BYTES => Err(GARBAGE),
        None => Ok(None),
    }
}

pub(super) fn redis_failure(text: &[u8]) -> Failure {
    match text.split(|byte| *byte == b' ').next() {
        Some(b"NOAUTH" | b"WRONGPASS" | b"NOPERM") => AUTHENTICATION,
        Some(b"OOM") => OUT_OF_MEMORY,
        Some(b"MOVED" | b"ASK") => MOVED,
        _ => ERROR_REPLY,
    }
}

fn memcached_failure(line: &[u8]) -> Result<Failure, Failure> {
    if line.starts_with(b"SERVER_ERROR out of memory") {
        return Ok(OUT_OF_MEMORY);
    }
    let errors: [&[u8]; 4] = [b"ERROR", b"CLIENT_ERROR ", b"SERVER_ERROR ", b"NS"];
    let is_error = errors.iter().any(|error| line.starts_with(error)) || line == b"NOT_STORED";
    if is_error {
        Ok(ERROR_REPLY)
    } else {
        Err(GARBAGE)
    }
}

#[inline]
pub(super) fn number(digits: &[u8]) -> Result<u64, Failure> {
    decimal::parse(digits).ok_or(GARBAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads all replies in `bytes`, which come in pieces of a length, as the engine presents them.
    fn read_all(
        dialect: Dialect,
        operation: KeyOperation,
        bytes: &[u8],
        piece: usize,
    ) -> Result<Vec<KeyReply>, Failure> {
        let (mut reader, mut replies, mut pending) =
            (ReplyReader::default(), Vec::new(), Vec::new());
        for piece in bytes.chunks(piece) {
            pending.extend_from_slice(piece);
            while !pending.is_empty() {
                let (used, reply) = reader.read(dialect, operation, 3, &pending)?;
                pending.drain(..used);
                match reply {
                    Some(reply) => replies.push(reply),
                    None => break,
                }
            }
        }
        assert!(pending.is_empty(), "{pending:?}");
        Ok(replies)
    }

    const HIT: KeyReply = KeyReply { failure: None, is_hit: Some(true) };
    const MISS: KeyReply = KeyReply { failure: None, is_hit: Some(false) };
    const PLAIN: KeyReply = KeyReply { failure: None, is_hit: None };

    fn failed(failure: Failure) -> KeyReply {
        KeyReply { failure: Some(failure), is_hit: None }
    }

    #[test]
    fn replies_are_the_same_in_pieces_of_any_size() {
        let wrong = KeyReply { failure: Some(WRONG_VALUE), is_hit: Some(true) };
        let redis = b"$3\r\nabc\r\n$-1\r\n:9223372036854775807\r\n:-12\r\n*2\r\n$3\r\n\r\n\r\r\n$3\r\nxyz\r\n*0\r\n\
                      -ERR no\r\n-NOAUTH x\r\n-OOM y\r\n$1\r\na\r\n*-1\r\n-MOVED 1 a:1\r\n";
        let of_redis = vec![
            HIT,
            MISS,
            PLAIN,
            PLAIN,
            HIT,
            MISS,
            failed(ERROR_REPLY),
            failed(AUTHENTICATION),
            failed(OUT_OF_MEMORY),
            wrong,
            MISS,
            failed(MOVED),
        ];
        let text = b"VALUE k 0 3\r\nEND\r\nEND\r\nEND\r\nERROR\r\nSERVER_ERROR out of memory x\r\n";
        let of_text = vec![HIT, MISS, failed(ERROR_REPLY), failed(OUT_OF_MEMORY)];
        let meta = b"VA 3\r\nabc\r\nEN\r\nHD\r\nNF\r\nVA 1 t\r\na\r\nCLIENT_ERROR bad\r\n";
        let of_meta = vec![HIT, MISS, PLAIN, MISS, wrong, failed(ERROR_REPLY)];
        let cases = [
            (Dialect::Redis, &redis[..], of_redis),
            (Dialect::Memcached, &text[..], of_text),
            (Dialect::MemcachedMeta, &meta[..], of_meta),
        ];
        for (dialect, bytes, expected) in cases {
            for piece in 1..=bytes.len() {
                let replies = read_all(dialect, KeyOperation::Get, bytes, piece);
                assert_eq!(replies.as_ref(), Ok(&expected), "{dialect:?} in pieces of {piece}");
            }
        }
        let counters = read_all(Dialect::Memcached, KeyOperation::Incr, b"17\r\nNOT_FOUND\r\n", 2);
        assert_eq!(counters.unwrap(), [HIT, MISS]);
    }

    #[test]
    fn what_is_no_reply_is_garbage() {
        let endless = vec![b'+'; LINE_BYTES];
        let cases: [(Dialect, &[u8]); 9] = [
            (Dialect::Redis, b"HTTP/1.1 400 Bad Request\r\n"),
            (Dialect::Redis, b"\r\n"),
            (Dialect::Redis, b"+OK\n"),
            (Dialect::Redis, b"$x\r\n"),
            (Dialect::Redis, b"$99999999999999999999\r\n"),
            (Dialect::Redis, b"*1\r\n*1\r\n"),
            (Dialect::Redis, &endless),
            (Dialect::Memcached, b"HTTP/1.1 400 Bad Request\r\n"),
            (Dialect::MemcachedMeta, b"+OK\r\n"),
        ];
        for (dialect, bytes) in cases {
            assert_eq!(read_all(dialect, KeyOperation::Get, bytes, 7), Err(GARBAGE), "{bytes:?}");
        }
    }
}
