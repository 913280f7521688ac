//! The addresses of requests: `http://host:port/path?query` (RFC 3986).
use crate::net::target::normal_name;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub is_tls: bool,
    /// Without the brackets of an IPv6 address.
    pub host: String,
    pub port: u16,
    /// Path and query, as they are sent.
    pub target: String,
}

impl Url {
    /// The error is the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err("it holds a space or a control character; write %20 for a space");
        }
        let (scheme, rest) = text.split_once("://").ok_or("it does not begin with http://")?;
        let is_tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err("its scheme is neither http nor https"),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        if authority.contains('@') {
            return Err("it holds a user name; send an Authorization header instead");
        }
        let (host, port) = split_port(authority)?;
        let port = match port {
            None if is_tls => 443,
            None => 80,
            Some(port) => {
                port.parse().ok().filter(|port| *port > 0).ok_or("its port is no port")?
            }
        };
        if !host.is_ascii() {
            return Err("its host has letters beyond ASCII; write it in its ASCII form (xn--...)");
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = encoded(&format!("{slash}{target}"));
        Ok(Self { is_tls, host: normal_name(host), port, target })
    }

    /// The value of the Host header.
    pub fn authority(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        match (self.is_tls, self.port) {
            (false, 80) | (true, 443) => host,
            (_, port) => format!("{host}:{port}"),
        }
    }
}

/// Returns a path and query with what is beyond ASCII percent-encoded, as UTF-8 (RFC 3987, 3.1).
pub fn encoded(target: &str) -> String {
    let encode = |byte: u8| match byte.is_ascii() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    target.bytes().map(encode).collect()
}

fn split_port(authority: &str) -> Result<(&str, Option<&str>), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("its IPv6 address has no ]")?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err("it has brackets around what is no IPv6 address");
            }
            match rest.strip_prefix(':') {
                None if !rest.is_empty() => return Err("something follows its IPv6 address"),
                port => (host, port),
            }
        }
        None => match authority.split_once(':') {
            Some((_, port)) if port.contains(':') => return Err("an IPv6 address needs brackets"),
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    Ok((host, port.filter(|port| !port.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        for (text, host, port, target, authority) in [
            ("http://a.org", "a.org", 80, "/", "a.org"),
            ("HTTP://a.org:8080/x?y=1#z", "a.org", 8080, "/x?y=1", "a.org:8080"),
            ("https://a.org?q", "a.org", 443, "/?q", "a.org"),
            ("https://a.org:/", "a.org", 443, "/", "a.org"),
            ("http://[::1]:81/a/b", "::1", 81, "/a/b", "[::1]:81"),
            ("http://127.0.0.1/%20", "127.0.0.1", 80, "/%20", "127.0.0.1"),
            ("http://LOCALHOST:81/A", "localhost", 81, "/A", "localhost:81"),
            ("http://a.org./", "a.org", 80, "/", "a.org"),
            ("http://a.org/ü?q=日", "a.org", 80, "/%C3%BC?q=%E6%97%A5", "a.org"),
        ] {
            let url = Url::parse(text).unwrap();
            assert_eq!((url.host.as_str(), url.port, url.target.as_str()), (host, port, target));
            assert_eq!(
                (url.authority().as_str(), url.is_tls),
                (authority, text.starts_with("https"))
            );
        }
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "a.org",
            "ftp://a.org",
            "http://",
            "http:///x",
            "http://a b",
            "http://a:0",
            "http://a:70000",
            "http://a:x",
            "http://u:p@a",
            "http://::1",
            "http://[::1",
            "http://[::1]x",
            "http://[a]/",
            "http://ä.org",
            "http://a/\r\nX: y",
        ] {
            assert!(Url::parse(text).is_err(), "{text}");
        }
    }
}
