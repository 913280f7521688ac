//! The header block of a request (RFC 9113, section 8.3). Fields that are the same in all requests of
//! a trial are sent once per connection and named by their place in the server's table afterwards.
use super::hpack::{write_integer, write_text};
use crate::http::http1::request::{pieces, write_pieces, Common, Piece, AGENT};

/// Bytes that the server's table has room for unless it says otherwise.
pub const TABLE_BYTES: usize = 4096;
/// The first place of the table behind the static one.
const FIRST_PLACE: usize = 62;
/// Fields that mean something for a connection of HTTP/1.1 only.
const OF_CONNECTIONS: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
const PATH: usize = 4;
const CONTENT_LENGTH: usize = 28;
const COOKIE: usize = 32;

/// What the server's table holds of the shared fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderTable {
    #[default]
    Empty,
    Filled,
    /// The server keeps none, or one that is too small.
    Unused,
}

#[derive(Clone, Debug)]
pub struct Block {
    /// Method, scheme and, where it is always the same, the path.
    start: Vec<u8>,
    path: Option<Vec<Piece>>,
    /// The shared fields in full, to be put into the table; by their places there; in full.
    shared: [Vec<u8>; 3],
    fits: bool,
    own: Vec<(Vec<u8>, Vec<Piece>)>,
}

impl Block {
    /// The error is a sentence.
    pub fn new(
        common: &Common,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, String> {
        let host = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let authority =
            host.map_or_else(|| common.url.authority(), |(_, value)| (*value).to_owned());
        let mut fields = vec![(":authority".to_owned(), authority)];
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            if OF_CONNECTIONS.contains(&name.as_str()) {
                return Err(format!("HTTP/2 has no header '{name}'."));
            }
            if name != "host" {
                fields.push((name, (*value).to_owned()));
            }
        }
        if !fields.iter().any(|(name, _)| name == "user-agent") {
            fields.push(("user-agent".to_owned(), AGENT.to_owned()));
        }
        let mut block = Self::of_start(common, method, target)?;
        let mut shared: Vec<(String, String)> = Vec::new();
        for (name, value) in fields {
            match pieces(&value, common.columns, Piece::Column)?.as_slice() {
                [Piece::Text(_)] => shared.push((name, value)),
                pieces => block.own.push((named(0, &name), pieces.to_vec())),
            }
        }
        block.share(&shared);
        Ok(block)
    }

    fn of_start(common: &Common, method: &str, target: &str) -> Result<Self, String> {
        let mut start = match method {
            "GET" => vec![0x82],
            "POST" => vec![0x83],
            _ => {
                let mut field = vec![0x02];
                write_text(method.as_bytes(), &mut field);
                field
            }
        };
        start.push(if common.url.is_tls { 0x87 } else { 0x86 });
        let target = pieces(target, common.columns, Piece::EncodedColumn)?;
        let path = match target.as_slice() {
            [Piece::Text(text)] => {
                write_integer(0, 4, PATH, &mut start);
                write_text(text, &mut start);
                None
            }
            _ => Some(target),
        };
        Ok(Self { start, path, shared: Default::default(), fits: true, own: Vec::new() })
    }

    fn share(&mut self, fields: &[(String, String)]) {
        let bytes: usize = fields.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        self.fits = bytes <= TABLE_BYTES;
        let [filling, filled, unused] = &mut self.shared;
        for (index, (name, value)) in fields.iter().enumerate() {
            filling.extend(named(0x40, name));
            write_text(value.as_bytes(), filling);
            // The newest entry comes first.
            write_integer(0x80, 7, FIRST_PLACE + fields.len() - 1 - index, filled);
            unused.extend(named(0, name));
            write_text(value.as_bytes(), unused);
        }
    }

    /// Appends the block with the values of a row, the cookies and the length of the body, if it is
    /// stated. table: what the server's table holds, which may be more afterwards.
    #[inline]
    pub fn write(
        &self,
        row: &[String],
        cookies: &str,
        length: Option<usize>,
        table: &mut HeaderTable,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&self.start);
        if let Some(path) = &self.path {
            write_field(&[PATH as u8], path, row, out);
        }
        match table {
            HeaderTable::Empty if self.fits => {
                out.extend_from_slice(&self.shared[0]);
                *table = HeaderTable::Filled;
            }
            HeaderTable::Filled => out.extend_from_slice(&self.shared[1]),
            HeaderTable::Empty | HeaderTable::Unused => out.extend_from_slice(&self.shared[2]),
        }
        for (name, value) in &self.own {
            write_field(name, value, row, out);
        }
        if !cookies.is_empty() {
            write_integer(0, 4, COOKIE, out);
            write_text(cookies.as_bytes(), out);
        }
        if let Some(length) = length {
            write_integer(0, 4, CONTENT_LENGTH, out);
            write_text(length.to_string().as_bytes(), out);
        }
    }
}

/// Returns a name as the start of a field; kind: the first bits of the field.
fn named(kind: u8, name: &str) -> Vec<u8> {
    let mut start = vec![kind];
    match name {
        ":authority" => start[0] |= 1,
        _ => write_text(name.as_bytes(), &mut start),
    }
    start
}

fn write_field(name: &[u8], value: &[Piece], row: &[String], out: &mut Vec<u8>) {
    let mut text = Vec::new();
    write_pieces(value, row, &mut text);
    out.extend_from_slice(name);
    write_text(&text, out);
}
