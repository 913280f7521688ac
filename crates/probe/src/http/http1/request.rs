//! The bytes of a request (RFC 9112), with the values of a table in the places that name its columns.
use super::url::{encoded, Url};
use crate::http::http2::block::Block;

/// The value of the User-Agent header.
pub const AGENT: &str = concat!("nephoscope/", env!("CARGO_PKG_VERSION"));

/// What all requests of a trial have in common.
pub struct Common<'a> {
    pub url: &'a Url,
    /// As `Name: value`; they replace the usual ones.
    pub headers: &'a [&'a str],
    pub keeps_alive: bool,
    /// Whether the requests are sent by HTTP/2.
    pub is_http2: bool,
    /// Columns that `{column}` may name.
    pub columns: &'a [String],
}

#[derive(Clone, Debug)]
pub struct RequestTemplate {
    /// The head without the empty line that ends it.
    head: Vec<Piece>,
    pub body: Vec<Piece>,
    /// The head as HTTP/2 sends it, if the request is sent so.
    pub block: Option<Block>,
    /// The whole request where it is always the same.
    constant: Option<Vec<u8>>,
    /// Whether the length of the body is stated when it is known.
    pub states_length: bool,
    pub is_head: bool,
    /// Whether the connection may carry another request afterwards.
    pub keeps_alive: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(Vec<u8>),
    Column(usize),
    /// In the target, where spaces and the like are percent-encoded.
    EncodedColumn(usize),
}

impl RequestTemplate {
    /// The error is a sentence.
    pub fn new(common: &Common, method: &str, target: &str, body: &str) -> Result<Self, String> {
        if !is_token(method) {
            return Err(format!("'{}' is no HTTP method.", start(method)));
        }
        let target = &encoded(target);
        if !target.starts_with(['/', '*']) || !target.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("'{}' is no path that can be requested.", start(target)));
        }
        let headers = common.headers.iter().map(|line| split(line));
        let headers: Vec<_> = headers.collect::<Result<_, _>>()?;
        let has = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let block = match common.is_http2 {
            true => Some(Block::new(common, method, target, &headers)?),
            false => None,
        };
        let mut lines = String::new();
        let mut add = |name: &str, value: &str| lines += &format!("{name}: {value}\r\n");
        if !has("Host") {
            add("Host", &common.url.authority());
        }
        if !has("User-Agent") {
            add("User-Agent", AGENT);
        }
        if !common.keeps_alive && !has("Connection") {
            add("Connection", "close");
        }
        headers.iter().for_each(|(name, value)| add(name, value));
        let mut head = vec![Piece::Text(format!("{method} ").into_bytes())];
        head.extend(pieces(target, common.columns, Piece::EncodedColumn)?);
        head.push(Piece::Text(b" HTTP/1.1\r\n".to_vec()));
        head.extend(pieces(&lines, common.columns, Piece::Column)?);
        // Methods for which a body has a meaning say that there is none.
        let needs_length = !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH");
        let mut request = Self {
            head,
            body: pieces(body, common.columns, Piece::Column)?,
            block,
            constant: None,
            states_length: needs_length && !has("Content-Length") && !has("Transfer-Encoding"),
            is_head: method == "HEAD",
            keeps_alive: common.keeps_alive,
        };
        let is_text = |piece: &Piece| matches!(piece, Piece::Text(_));
        if request.head.iter().chain(&request.body).all(is_text) {
            let mut bytes = Vec::new();
            request.write(&[], "", &mut bytes);
            request.constant = Some(bytes);
        }
        Ok(request)
    }

    /// Appends the request with the values of a row, and with the cookies.
    #[inline]
    pub fn write(&self, row: &[String], cookies: &str, out: &mut Vec<u8>) {
        if let Some(bytes) = self.constant.as_ref().filter(|_| cookies.is_empty()) {
            return out.extend_from_slice(bytes);
        }
        write_pieces(&self.head, row, out);
        if !cookies.is_empty() {
            out.extend_from_slice(format!("Cookie: {cookies}\r\n").as_bytes());
        }
        if self.states_length {
            let length: usize = self.body.iter().map(|piece| piece.text(row).len()).sum();
            out.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        write_pieces(&self.body, row, out);
    }
}

impl Piece {
    pub fn text<'a>(&'a self, row: &'a [String]) -> &'a [u8] {
        match self {
            Self::Text(text) => text,
            Self::Column(column) | Self::EncodedColumn(column) => row[*column].as_bytes(),
        }
    }
}

pub fn write_pieces(pieces: &[Piece], row: &[String], out: &mut Vec<u8>) {
    for piece in pieces {
        let text = piece.text(row);
        match piece {
            Piece::EncodedColumn(_) => text.iter().for_each(|byte| write_encoded(*byte, out)),
            _ => out.extend_from_slice(text),
        }
    }
}

/// Writes a byte of a target: what may not stand there is percent-encoded (RFC 3986).
fn write_encoded(byte: u8, out: &mut Vec<u8>) {
    if byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte) {
        out.push(byte);
    } else {
        out.extend_from_slice(format!("%{byte:02X}").as_bytes());
    }
}

/// Splits a template at the names of columns in braces. Braces around anything but a name are text,
/// and so are all of them where there is no table.
pub fn pieces(
    template: &str,
    columns: &[String],
    of_column: fn(usize) -> Piece,
) -> Result<Vec<Piece>, String> {
    let (mut pieces, mut text) = (Vec::new(), String::new());
    let mut rest = template;
    while let Some(open) = rest.find('{').filter(|_| !columns.is_empty()) {
        let (before, inside) = (&rest[..open], &rest[open + 1..]);
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let length = inside.find(|c| !is_name(c)).unwrap_or(inside.len());
        text += before;
        if length == 0 || !inside[length..].starts_with('}') {
            text.push('{');
            rest = inside;
            continue;
        }
        let name = &inside[..length];
        let column = columns.iter().position(|column| column == name).ok_or_else(|| {
            format!("The data has no column '{name}'; it has: {}.", columns.join(", "))
        })?;
        pieces.push(Piece::Text(std::mem::take(&mut text).into_bytes()));
        pieces.push(of_column(column));
        rest = &inside[length + 1..];
    }
    pieces.push(Piece::Text((text + rest).into_bytes()));
    Ok(pieces)
}

fn split(line: &str) -> Result<(&str, &str), String> {
    let pair = line.split_once(':').map(|(name, value)| (name, value.trim()));
    pair.filter(|(name, value)| is_token(name) && value.bytes().all(is_text))
        .ok_or_else(|| format!("'{}' is no header; headers are 'Name: value'.", start(line)))
}

/// The start of a text that is not understood.
fn start(text: &str) -> String {
    text.chars().take(40).collect::<String>().escape_debug().to_string()
}

fn is_token(text: &str) -> bool {
    let is_mark = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// Whether a byte may stand in a header's value.
pub fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(
        method: &str,
        target: &str,
        headers: &[&str],
        body: &str,
        columns: &[&str],
    ) -> Result<RequestTemplate, String> {
        let url = Url::parse("http://a.org:81/").unwrap();
        let columns: Vec<String> = columns.iter().map(|&column| column.to_owned()).collect();
        let common =
            Common { url: &url, headers, keeps_alive: true, is_http2: false, columns: &columns };
        RequestTemplate::new(&common, method, target, body)
    }

    fn text(request: &RequestTemplate, row: &[&str], cookies: &str) -> String {
        let row: Vec<String> = row.iter().map(|&value| value.to_owned()).collect();
        let mut bytes = Vec::new();
        request.write(&row, cookies, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn requests_are_written_as_requested() {
        let agent = concat!("User-Agent: nephoscope/", env!("CARGO_PKG_VERSION"));
        let get = request("GET", "/x?y", &[], "", &[]).unwrap();
        let head = format!("GET /x?y HTTP/1.1\r\nHost: a.org:81\r\n{agent}\r\n");
        assert_eq!(text(&get, &[], ""), format!("{head}\r\n"));
        assert_eq!(text(&get, &[], "a=b"), format!("{head}Cookie: a=b\r\n\r\n"));
        let headers = ["host: b", "User-agent: c", "Connection: close", "X:  d "];
        let post = request("POST", "/", &headers, "body", &[]).unwrap();
        assert_eq!(
            text(&post, &[], ""),
            "POST / HTTP/1.1\r\nhost: b\r\nUser-agent: c\r\nConnection: close\r\nX: d\r\n\
             Content-Length: 4\r\n\r\nbody"
        );
        let put = request("PUT", "/", &[], "", &[]).unwrap();
        assert!(text(&put, &[], "").contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn columns_are_filled_in() {
        let headers = ["Host: h", "User-Agent: {b}"];
        let body = r#"{"x": "{a}", {"y": {b}}"#;
        let post = request("POST", "/{a}/{b}", &headers, body, &["a", "b"]).unwrap();
        assert_eq!(
            text(&post, &["1 é/", "2"], ""),
            "POST /1%20%C3%A9//2 HTTP/1.1\r\nHost: h\r\nUser-Agent: 2\r\nContent-Length: 23\r\n\r\n\
             {\"x\": \"1 é/\", {\"y\": 2}"
        );
        let unknown = request("GET", "/{c}", &[], "", &["a", "b"]).unwrap_err();
        assert_eq!(unknown, "The data has no column 'c'; it has: a, b.");
        assert!(text(&request("GET", "/{c}", &[], "", &[]).unwrap(), &[], "").contains("/{c} "));
    }

    #[test]
    fn nothing_can_be_smuggled_in() {
        for header in ["X", "X y: z", ": z", "X: a\r\nY: b", "X\n: a", "X: \u{7f}"] {
            let refused = request("GET", "/", &[header], "", &[]).unwrap_err();
            assert!(refused.contains("is no header"), "{header}");
        }
        for (method, target) in [("", "/"), ("GET /", "/"), ("GET", "x"), ("GET", "/ HTTP/1.1")] {
            assert!(request(method, target, &[], "", &[]).is_err());
        }
    }
}
