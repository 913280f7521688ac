//! The commands of records: a hash for each, and a sorted set of all keys for ranges.
use super::choice::hash;
use nephoscope_wire::random::Random;
use std::io::Write;

/// How records are stored: fields of a length each, keys that begin with a prefix.
#[derive(Clone, Debug)]
pub struct RecordCommands {
    pub prefix: String,
    pub fields: u64,
    pub field_bytes: usize,
}

impl RecordCommands {
    /// HGETALL of a record's number.
    pub fn read(&self, number: u64, out: &mut Vec<u8>) {
        begin("HGETALL", 2, out);
        self.key(number, out);
    }

    /// HGETALL of a key that came as a string of a reply.
    pub fn read_key(string: &[u8], out: &mut Vec<u8>) {
        begin("HGETALL", 2, out);
        out.extend_from_slice(string);
    }

    /// HMSET of one field of a record, drawn at random.
    pub fn update(&self, number: u64, random: &mut Random, out: &mut Vec<u8>) {
        begin("HMSET", 4, out);
        self.key(number, out);
        self.field(random.below(self.fields), random, out);
    }

    /// HMSET of all fields of a record.
    pub fn store(&self, number: u64, random: &mut Random, out: &mut Vec<u8>) {
        begin("HMSET", 2 + 2 * self.fields, out);
        self.key(number, out);
        for field in 0..self.fields {
            self.field(field, random, out);
        }
    }

    /// ZADD of a record's key to the index.
    pub fn index(&self, number: u64, out: &mut Vec<u8>) {
        begin("ZADD", 4, out);
        self.index_key(out);
        string(score(number).to_string().as_bytes(), out);
        self.key(number, out);
    }

    /// ZRANGEBYSCORE of the keys from a record's on, at most so many.
    pub fn range(&self, number: u64, records: u64, out: &mut Vec<u8>) {
        begin("ZRANGEBYSCORE", 7, out);
        self.index_key(out);
        string(score(number).to_string().as_bytes(), out);
        for word in ["+inf", "LIMIT", "0"] {
            string(word.as_bytes(), out);
        }
        string(records.to_string().as_bytes(), out);
    }

    pub fn delete(&self, number: u64, out: &mut Vec<u8>) {
        begin("DEL", 2, out);
        self.key(number, out);
    }

    pub fn delete_index(&self, out: &mut Vec<u8>) {
        begin("DEL", 2, out);
        self.index_key(out);
    }

    fn key(&self, number: u64, out: &mut Vec<u8>) {
        let hash = hash(number);
        let length = self.prefix.len() + "user".len() + digits(hash);
        append(out, format_args!("${length}\r\n{}user{hash}\r\n", self.prefix));
    }

    fn index_key(&self, out: &mut Vec<u8>) {
        let length = self.prefix.len() + "indices".len();
        append(out, format_args!("${length}\r\n{}indices\r\n", self.prefix));
    }

    fn field(&self, field: u64, random: &mut Random, out: &mut Vec<u8>) {
        let length = "field".len() + digits(field);
        append(out, format_args!("${length}\r\nfield{field}\r\n${}\r\n", self.field_bytes));
        let mut left = self.field_bytes;
        while left > 0 {
            let letters = random.bits().to_le_bytes().map(|byte| b'a' + byte % 16);
            let count = left.min(letters.len());
            out.extend_from_slice(&letters[..count]);
            left -= count;
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn begin(name: &str, words: u64, out: &mut Vec<u8>) {
    append(out, format_args!("*{words}\r\n"));
    string(name.as_bytes(), out);
}

/// Place of a record in the index: the upper 53 bits of its hash, which a double holds.
fn score(number: u64) -> u64 {
    hash(number) >> 10
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |power| power as usize + 1)
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    append(out, format_args!("${}\r\n", text.len()));
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

fn append(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("memory takes all that is written");
}
