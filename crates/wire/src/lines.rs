//! The messages of a trial. On standard output travel JSON objects, one a line: `ready`, a sample
//! each, then one `done` or one `error`. On standard input travel the lines of the control channel.
use crate::error::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// An observed value of a metric, or a document.
#[derive(Serialize)]
pub struct SampleLine<'a> {
    pub metric: &'a str,
    /// In the metric's unit; absent for a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// How often it was observed (histograms), else 1.
    pub count: u64,
    /// Nanoseconds since the measured part began.
    pub at_ns: u64,
    /// What the value depends on inside the trial (vector length, CPU, operation).
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub factors: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub document: Option<Value>,
}

/// The last line of a successful trial. The writer fills in samples and notes.
#[derive(Default, Serialize)]
pub struct Done {
    /// Wall clock at the start of the measured part (nanoseconds since the epoch), from which the
    /// start skew of several probes is computed.
    pub started_wall_ns: u64,
    /// Length of the measured part.
    pub elapsed_ns: u64,
    /// Sample lines printed before this one.
    pub samples: u64,
    /// The machine's counters over the trial (steal, pressure, throttling, faults, clock step);
    /// a counter that this machine hides is null, never 0.
    pub counters: Value,
    /// Sentences about this trial that a reader has to know (a fallback that was taken).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What the far side of a two-sided benchmark counted; absent everywhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served: Option<Value>,
}

/// Reports that a trial is prepared and waits for `go`, or that a server listens.
#[derive(Default, Serialize)]
pub struct Ready {
    /// Where a server listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<std::net::IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    pub pid: u32,
    /// Wall clock of the process, nanoseconds since the epoch.
    pub wall_ns: u64,
}

/// Where the far side of a two-sided benchmark listens (TCP), and the token it requires.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    pub address: std::net::IpAddr,
    pub port: u16,
    pub token: String,
}

/// The token stays out of every log.
impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Peer({}:{})", self.address, self.port)
    }
}

/// A token that is shorter could be guessed.
pub const TOKEN_BYTES: usize = 16;

/// A line of the control channel, which the caller sends on standard input.
#[derive(Clone)]
pub enum ControlLine {
    /// `peer {…}`, first: where the far side is.
    Peer(Peer),
    /// `token TEXT`, first: what the one peer presents that a server serves.
    Token(String),
    /// `credentials {…}`, first: names and values that a service asks for.
    Credentials(BTreeMap<String, String>),
    /// `go [NANOSECONDS]`: start now, or when the wall clock shows that time.
    Go(Option<u64>),
    /// `stop`: end a load or a server with its samples, cancel anything else.
    Stop,
}

impl ControlLine {
    /// Reads a line.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, rest) {
            ("go", "") => Ok(Self::Go(None)),
            ("go", time) => time.parse().map(|wall_ns| Self::Go(Some(wall_ns))).map_err(|_| {
                let message = format!("`go` takes nanoseconds since the epoch, not '{time}'.");
                Error::usage(message, "Send `go`, or `go` and a wall clock time.")
            }),
            ("stop", "") => Ok(Self::Stop),
            ("token", token) => check_token(token).map(Self::Token),
            ("peer", text) => parse_peer(text).map(Self::Peer),
            ("credentials", text) => {
                parse_json("credentials", text, "It takes {NAME: TEXT, …}.").map(Self::Credentials)
            }
            _ => Err(Self::unknown(word)),
        }
    }

    /// The error for a line that means nothing where it came.
    pub fn unknown(word: &str) -> Error {
        let word: String = word.chars().take(20).collect();
        Error::usage(
            format!("'{word}' is no line of the control channel here."),
            "Lines are peer, token or credentials (first), go, go NANOSECONDS and stop.",
        )
    }
}

fn parse_peer(text: &str) -> Result<Peer, Error> {
    let takes = "It takes {\"address\": IP, \"port\": N, \"token\": TEXT}.";
    let peer: Peer = parse_json("peer", text, takes)?;
    check_token(&peer.token)?;
    Ok(peer)
}

fn parse_json<T: DeserializeOwned>(word: &str, text: &str, takes: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| {
        // The parser's words could hold a secret; its kind cannot.
        let message = format!("`{word}` is not understood ({:?} error).", error.classify());
        Error::usage(message, takes)
    })
}

/// Returns a token that may be used.
pub fn check_token(text: &str) -> Result<String, Error> {
    let token = text.trim();
    let printable = token.bytes().all(|byte| byte.is_ascii_graphic());
    if printable && (TOKEN_BYTES..=512).contains(&token.len()) {
        return Ok(token.to_owned());
    }
    Err(Error::usage(
        format!("The token must have {TOKEN_BYTES} to 512 printable characters."),
        "Draw one at random.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_lines_are_read() {
        assert!(matches!(ControlLine::parse("go"), Ok(ControlLine::Go(None))));
        assert!(matches!(ControlLine::parse("go 17"), Ok(ControlLine::Go(Some(17)))));
        assert!(matches!(ControlLine::parse("stop"), Ok(ControlLine::Stop)));
        for line in ["", "go soon", "go -1", "stop now", "start", "token short", "peer {}"] {
            assert_eq!(ControlLine::parse(line).err().unwrap().kind.exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn credentials_are_read_and_never_shown() {
        let line = ControlLine::parse(r#"credentials {"KEY":"secret"}"#);
        assert!(matches!(line, Ok(ControlLine::Credentials(pairs)) if pairs["KEY"] == "secret"));
        for line in [r#"credentials {"KEY":["secret"]}"#, "credentials secret", "credentials"] {
            let error = ControlLine::parse(line).err().unwrap();
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }

    #[test]
    fn a_peer_is_read_and_its_token_never_shown() {
        let token = "0123456789abcdef";
        for address in ["10.0.0.2", "::1"] {
            let text = format!(r#"{{"address":"{address}","port":4242,"token":"{token}"}}"#);
            let peer = parse_peer(&text).unwrap();
            assert_eq!((peer.address.to_string().as_str(), peer.port), (address, 4242));
            assert!(!format!("{peer:?}").contains(token));
            for bad in [
                "{}".to_owned(),
                text.replace(address, "host"),
                text.replace("4242", "70000"),
                text.replace(token, "short"),
                text.replace("port", "prot"),
            ] {
                let error = parse_peer(&bad).unwrap_err();
                assert_eq!(error.kind.exit_code(), 2);
                assert!(!error.message.contains(token), "{}", error.message);
            }
        }
    }
}
