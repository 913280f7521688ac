//! The bytes of a request (RFC 9112).
use super::url::Url;

#[derive(Clone, Debug)]
pub struct Request {
    pub bytes: Vec<u8>,
    pub is_head: bool,
    /// Whether the connection may carry another request afterwards.
    pub keeps_alive: bool,
}

impl Request {
    /// The error is a sentence. headers: as `Name: value`; they replace the usual ones.
    pub fn new(
        url: &Url,
        method: &str,
        headers: &[&str],
        body: &[u8],
        keeps_alive: bool,
    ) -> Result<Self, String> {
        if !is_token(method) {
            return Err(format!("'{method}' is no HTTP method."));
        }
        let headers: Vec<_> = headers.iter().map(|line| split(line)).collect::<Result<_, _>>()?;
        let has = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let mut head = format!("{method} {} HTTP/1.1\r\n", url.target);
        let mut add = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
        if !has("Host") {
            add("Host", &url.authority());
        }
        if !has("User-Agent") {
            add("User-Agent", concat!("nephoscope/", env!("CARGO_PKG_VERSION")));
        }
        // Methods for which a body has a meaning say that there is none.
        let needs_length = !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH");
        if needs_length && !has("Content-Length") && !has("Transfer-Encoding") {
            add("Content-Length", &body.len().to_string());
        }
        if !keeps_alive && !has("Connection") {
            add("Connection", "close");
        }
        headers.iter().for_each(|(name, value)| add(name, value));
        head += "\r\n";
        let bytes = [head.as_bytes(), body].concat();
        Ok(Self { bytes, is_head: method == "HEAD", keeps_alive })
    }
}

fn split(line: &str) -> Result<(&str, &str), String> {
    let start = || line.chars().take(40).collect::<String>();
    let pair = line.split_once(':').map(|(name, value)| (name, value.trim()));
    pair.filter(|(name, value)| is_token(name) && value.bytes().all(is_text)).ok_or_else(|| {
        format!("'{}' is no header; headers are 'Name: value'.", start().escape_debug())
    })
}

fn is_token(text: &str) -> bool {
    let is_mark = |byte| b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
}

/// Whether a byte may stand in a header's value.
fn is_text(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(
        method: &str,
        headers: &[&str],
        body: &str,
        keeps_alive: bool,
    ) -> Result<String, String> {
        let url = Url::parse("http://a.org:81/x?y").unwrap();
        let request = Request::new(&url, method, headers, body.as_bytes(), keeps_alive)?;
        Ok(String::from_utf8(request.bytes).unwrap())
    }

    #[test]
    fn requests_are_written_as_asked() {
        let agent = concat!("User-Agent: nephoscope/", env!("CARGO_PKG_VERSION"));
        assert_eq!(
            text("GET", &[], "", true).unwrap(),
            format!("GET /x?y HTTP/1.1\r\nHost: a.org:81\r\n{agent}\r\n\r\n")
        );
        assert_eq!(
            text("POST", &["host: b", "User-agent: c", "X:  d "], "body", false).unwrap(),
            "POST /x?y HTTP/1.1\r\nContent-Length: 4\r\nConnection: close\r\nhost: b\r\n\
             User-agent: c\r\nX: d\r\n\r\nbody"
        );
        assert!(text("PUT", &[], "", true).unwrap().contains("Content-Length: 0\r\n"));
    }

    #[test]
    fn nothing_can_be_smuggled_in() {
        for header in ["X", "X y: z", ": z", "X: a\r\nY: b", "X\n: a", "X: \u{7f}"] {
            assert!(
                text("GET", &[header], "", true).unwrap_err().contains("is no header"),
                "{header}"
            );
        }
        for method in ["", "GET /", "G\r\n"] {
            assert!(text(method, &[], "", true).is_err());
        }
    }
}
