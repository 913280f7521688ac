//! Requests in the words of a server: each command is written once, and only the number of its key
//! changes.
use super::{Dialect, KeyOperation};

/// Digits of a key's number.
const DIGITS: usize = 12;

/// A command without the number of its key.
#[derive(Clone, Debug, Default)]
pub struct KeyCommand {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl KeyCommand {
    #[inline]
    pub fn write(&self, key: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.before);
        let (mut digits, mut rest) = ([b'0'; DIGITS], key);
        for digit in digits.iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        out.extend_from_slice(&digits);
        out.extend_from_slice(&self.after);
    }

    /// A command of Redis; the key is its second word.
    fn redis(name: &str, key: &str, more: &[&[u8]]) -> Self {
        let length = key.len() + DIGITS;
        let words = more.len() + 2;
        let before = format!("*{words}\r\n${}\r\n{name}\r\n${length}\r\n{key}", name.len());
        let mut after = b"\r\n".to_vec();
        for word in more {
            after.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            after.extend_from_slice(word);
            after.extend_from_slice(b"\r\n");
        }
        Self { before: before.into_bytes(), after }
    }
}

/// The commands of a dialect. Each type of value has keys of its own.
#[derive(Clone, Debug)]
pub struct KeyCommands {
    /// By the number of the operation.
    pub operations: [KeyCommand; KeyOperation::ALL.len()],
    /// What stores the value that the operation needs; `None` where it needs none.
    pub fills: [Option<KeyCommand>; KeyOperation::ALL.len()],
    pub deletes: [KeyCommand; KeyOperation::ALL.len()],
}

impl KeyCommands {
    /// Writes values of a length; lists have `range_items` of them.
    pub fn new(dialect: Dialect, prefix: &str, value_bytes: usize, range_items: u64) -> Self {
        let value: Vec<u8> = (0..value_bytes).map(|at| b'a' + (at % 26) as u8).collect();
        let key = |operation: KeyOperation| {
            let letter = match operation {
                KeyOperation::Get | KeyOperation::Set => 's',
                KeyOperation::Incr => 'n',
                KeyOperation::Lpush | KeyOperation::Lrange => 'l',
            };
            format!("{prefix}{letter}")
        };
        match dialect {
            Dialect::Redis => Self::redis(&key, &value, range_items),
            Dialect::Memcached => Self::memcached(&key, &value, false),
            Dialect::MemcachedMeta => Self::memcached(&key, &value, true),
        }
    }

    fn redis(key: &dyn Fn(KeyOperation) -> String, value: &[u8], range_items: u64) -> Self {
        let last = (range_items - 1).to_string();
        let items = vec![value; range_items as usize];
        let operation = |operation| {
            let key = key(operation);
            match operation {
                KeyOperation::Get => KeyCommand::redis("GET", &key, &[]),
                KeyOperation::Set => KeyCommand::redis("SET", &key, &[value]),
                KeyOperation::Incr => KeyCommand::redis("INCR", &key, &[]),
                KeyOperation::Lpush => KeyCommand::redis("LPUSH", &key, &[value]),
                KeyOperation::Lrange => KeyCommand::redis("LRANGE", &key, &[b"0", last.as_bytes()]),
            }
        };
        let fill = |operation| match operation {
            KeyOperation::Get => Some(KeyCommand::redis("SET", &key(operation), &[value])),
            KeyOperation::Lrange => Some(KeyCommand::redis("RPUSH", &key(operation), &items)),
            _ => None,
        };
        Self {
            operations: KeyOperation::ALL.map(operation),
            fills: KeyOperation::ALL.map(fill),
            deletes: KeyOperation::ALL
                .map(|operation| KeyCommand::redis("DEL", &key(operation), &[])),
        }
    }

    fn memcached(key: &dyn Fn(KeyOperation) -> String, value: &[u8], is_meta: bool) -> Self {
        // What stands before and after the key.
        let [get, set, incr, delete] = if is_meta {
            [("mg", " v"), ("ms", ""), ("ma", ""), ("md", "")]
        } else {
            [("get", ""), ("set", " 0 0"), ("incr", " 1"), ("delete", "")]
        };
        let command = |(word, after): (&str, &str), operation| KeyCommand {
            before: format!("{word} {}", key(operation)).into_bytes(),
            after: format!("{after}\r\n").into_bytes(),
        };
        let store = |operation, value: &[u8]| {
            let after = format!("{} {}", set.1, value.len());
            let mut store = command((set.0, &after), operation);
            store.after.extend_from_slice(value);
            store.after.extend_from_slice(b"\r\n");
            store
        };
        let operation = |operation| match operation {
            KeyOperation::Get => command(get, operation),
            KeyOperation::Set => store(operation, value),
            KeyOperation::Incr => command(incr, operation),
            KeyOperation::Lpush | KeyOperation::Lrange => KeyCommand::default(),
        };
        let fill = |operation| match operation {
            KeyOperation::Get => Some(store(operation, value)),
            KeyOperation::Incr => Some(store(operation, b"0")),
            _ => None,
        };
        Self {
            operations: KeyOperation::ALL.map(operation),
            fills: KeyOperation::ALL.map(fill),
            deletes: KeyOperation::ALL.map(|operation| command(delete, operation)),
        }
    }
}

/// The command that presents a password to Redis.
pub fn authenticate(password: &str) -> Vec<u8> {
    format!("*2\r\n$4\r\nAUTH\r\n${}\r\n{password}\r\n", password.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(dialect: Dialect, operation: KeyOperation) -> String {
        let commands = KeyCommands::new(dialect, "b:", 3, 5);
        let mut out = Vec::new();
        commands.operations[operation as usize].write(42, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn commands_are_those_of_the_protocol() {
        for (dialect, operation, wanted) in [
            (Dialect::Redis, KeyOperation::Get, "*2\r\n$3\r\nGET\r\n$15\r\nb:s000000000042\r\n"),
            (
                Dialect::Redis,
                KeyOperation::Set,
                "*3\r\n$3\r\nSET\r\n$15\r\nb:s000000000042\r\n$3\r\nabc\r\n",
            ),
            (
                Dialect::Redis,
                KeyOperation::Lrange,
                "*4\r\n$6\r\nLRANGE\r\n$15\r\nb:l000000000042\r\n$1\r\n0\r\n$1\r\n4\r\n",
            ),
            (Dialect::Memcached, KeyOperation::Get, "get b:s000000000042\r\n"),
            (Dialect::Memcached, KeyOperation::Set, "set b:s000000000042 0 0 3\r\nabc\r\n"),
            (Dialect::Memcached, KeyOperation::Incr, "incr b:n000000000042 1\r\n"),
            (Dialect::MemcachedMeta, KeyOperation::Get, "mg b:s000000000042 v\r\n"),
            (Dialect::MemcachedMeta, KeyOperation::Set, "ms b:s000000000042 3\r\nabc\r\n"),
        ] {
            assert_eq!(written(dialect, operation), wanted);
        }
        let text = |command: &KeyCommand| {
            let mut out = Vec::new();
            command.write(7, &mut out);
            String::from_utf8(out).unwrap()
        };
        let incr = KeyOperation::Incr as usize;
        for (dialect, fill, delete) in [
            (
                Dialect::Memcached,
                "set b:n000000000007 0 0 1\r\n0\r\n",
                "delete b:n000000000007\r\n",
            ),
            (Dialect::MemcachedMeta, "ms b:n000000000007 1\r\n0\r\n", "md b:n000000000007\r\n"),
        ] {
            let commands = KeyCommands::new(dialect, "b:", 3, 5);
            assert_eq!(commands.fills[incr].as_ref().map(text).as_deref(), Some(fill));
            assert_eq!(text(&commands.deletes[incr]), delete);
        }
        assert_eq!(authenticate("pass"), b"*2\r\n$4\r\nAUTH\r\n$4\r\npass\r\n");
    }
}
