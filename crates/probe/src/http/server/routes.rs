//! The paths that the server answers.
use super::request::Refusal;
use crate::http::decimal;

/// Longest body; it is sent from a small buffer, again and again.
pub const BODY_BYTES_MAX: u64 = 1 << 40;
const CPU_NS_MAX: u64 = 60_000_000_000;
const SERVICE_NS_MAX: u64 = 3_600_000_000_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Route {
    /// A body from memory, without other work.
    #[default]
    Body,
    /// The sum of 1 to 100.
    Sum,
    /// CPU time of a worker.
    Cpu(u64),
    /// Time of a worker, drawn if there is none.
    Service(Option<u64>),
    /// Stalls the server from now on.
    Stall(u64),
    /// The server's counters.
    Counters,
    Refused(Refusal),
}

/// Number of kinds of requests that are counted.
pub const KINDS: usize = 6;
pub const KIND_NAMES: [&str; KINDS] = ["body", "sum", "cpu", "service", "stall", "counters"];

pub const CPU: usize = 2;
pub const SERVICE: usize = 3;

impl Route {
    /// Returns the place among the kinds; `None` for a refused request.
    pub fn kind(self) -> Option<usize> {
        match self {
            Self::Body => Some(0),
            Self::Sum => Some(1),
            Self::Cpu(_) => Some(CPU),
            Self::Service(_) => Some(SERVICE),
            Self::Stall(_) => Some(4),
            Self::Counters => Some(5),
            Self::Refused(_) => None,
        }
    }
}

/// Returns what a target asks for, and the length of the body if it states one.
pub fn find(target: &str) -> Result<(Route, Option<u64>), Refusal> {
    // A proxy may send the whole address.
    let path = match target.strip_prefix("http://") {
        Some(rest) => rest.find('/').map_or("/", |at| &rest[at..]),
        None => target,
    };
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let mut bytes = None;
    for pair in query.split('&') {
        if let Some(text) = pair.strip_prefix("bytes=") {
            bytes = Some(number(text, BODY_BYTES_MAX)?);
        }
    }
    let mut words = path.strip_prefix('/').ok_or(Refusal::Malformed)?.splitn(2, '/');
    let route = match (words.next().unwrap_or_default(), words.next()) {
        ("", None) => Route::Body,
        ("bytes", Some(text)) => {
            bytes = Some(number(text, BODY_BYTES_MAX)?);
            Route::Body
        }
        ("sum", None) => Route::Sum,
        ("cpu", Some(text)) => Route::Cpu(number(text, CPU_NS_MAX)?),
        ("service", None) => Route::Service(None),
        ("service", Some(text)) => Route::Service(Some(number(text, SERVICE_NS_MAX)?)),
        ("stall", Some(text)) => Route::Stall(number(text, SERVICE_NS_MAX)?),
        ("counters", None) => Route::Counters,
        _ => return Err(Refusal::UnknownPath),
    };
    Ok((route, bytes))
}

fn number(text: &str, max: u64) -> Result<u64, Refusal> {
    decimal::parse(text.as_bytes()).filter(|number| *number <= max).ok_or(Refusal::UnknownPath)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_lengths_are_read() {
        for (target, wanted) in [
            ("/", (Route::Body, None)),
            ("/?bytes=7", (Route::Body, Some(7))),
            ("/bytes/0", (Route::Body, Some(0))),
            ("http://[::1]:80/sum", (Route::Sum, None)),
            ("http://host", (Route::Body, None)),
            ("/cpu/1000?x=1&bytes=5", (Route::Cpu(1000), Some(5))),
            ("/service", (Route::Service(None), None)),
            ("/service/9", (Route::Service(Some(9)), None)),
            ("/stall/1", (Route::Stall(1), None)),
            ("/counters", (Route::Counters, None)),
        ] {
            assert_eq!(find(target), Ok(wanted), "{target}");
        }
    }

    #[test]
    fn other_paths_are_refused() {
        for target in
            ["/bytes", "/bytes/-1", "/bytes/+1", "/bytes/2000000000000", "/cpu/", "/sum/1", "/x"]
        {
            assert_eq!(find(target), Err(Refusal::UnknownPath), "{target}");
        }
        assert_eq!(find("*"), Err(Refusal::Malformed));
    }
}
