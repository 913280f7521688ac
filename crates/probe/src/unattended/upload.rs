//! One object on its way to where its address was signed for: tried again and again, within limits.
use super::job::Destination;
use crate::error::{ProbeError, Result};
use crate::http::observe::failure::{Deadline, ProbeFailure};
use crate::http::observe::stream::StreamProbe;
use crate::net::random_bytes;
use std::fmt::Write;
use std::time::{Duration, Instant};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// For one attempt, besides the time for its bytes.
const ATTEMPT: Duration = Duration::from_secs(30);
const SLOWEST_BYTES_PER_S: u64 = 100_000;
/// Attempts at what the store refuses: services answer some of their own troubles so.
const REFUSALS: u32 = 4;

pub struct Upload {
    request: StreamProbe,
    timeout: Duration,
}

/// How an attempt ended.
enum Outcome {
    Stored,
    /// The store refused it, and will again.
    Refused(String),
    Passes(String),
}

impl Upload {
    /// authorities: a file of the certificates that servers over TLS are checked by.
    pub fn new(to: &Destination, content: &[u8], authorities: &str) -> Result<Self> {
        let mut headers = format!("Content-Length: {}\r\n", content.len());
        for (name, value) in &to.headers {
            if [name, value].into_iter().any(|text| text.chars().any(char::is_control)) {
                return Err(refused("a header of it has a control character"));
            }
            let _ = write!(headers, "{name}: {value}\r\n");
        }
        let request = StreamProbe::request("PUT", &to.url, &headers, content, authorities);
        let request = request.map_err(|error| match error.name {
            // Its words have the address in them, which is a permission.
            "usage" => refused("it is no URL"),
            _ => error,
        })?;
        let bytes = u64::try_from(content.len()).unwrap_or(u64::MAX);
        Ok(Self { request, timeout: ATTEMPT + Duration::from_secs(bytes / SLOWEST_BYTES_PER_S) })
    }

    /// Tries until it is stored. The error says why it is not.
    pub fn repeat(&self, end: Instant) -> Result<(), String> {
        let (mut pause, mut refusals) = (FIRST_PAUSE, 0);
        loop {
            let why = match self.attempt() {
                Outcome::Stored => return Ok(()),
                Outcome::Refused(why) if refusals + 1 == REFUSALS => return Err(why),
                Outcome::Refused(why) => {
                    refusals += 1;
                    why
                }
                Outcome::Passes(why) => why,
            };
            if Instant::now() + pause >= end {
                return Err(why);
            }
            std::thread::sleep(drawn(pause));
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    fn attempt(&self) -> Outcome {
        match self.request.status(Deadline::after(self.timeout)) {
            Ok(200..=299) => Outcome::Stored,
            // Its first copy arrived, and the answer to that did not: an address stores one object.
            Ok(412) => Outcome::Stored,
            Ok(status @ (400..=407 | 409..=428 | 430..=499)) => {
                Outcome::Refused(format!("the object store answered with status {status}"))
            }
            Ok(status) => {
                Outcome::Passes(format!("the object store answered with status {status}"))
            }
            Err(ProbeFailure::Answer(why) | ProbeFailure::NoAnswer(why)) => Outcome::Passes(why),
            Err(ProbeFailure::Timeout) => {
                Outcome::Passes(format!("no answer within {} s", self.timeout.as_secs()))
            }
            Err(ProbeFailure::Observer(error)) => Outcome::Passes(error.message),
        }
    }
}

/// Between half of a pause and all of it: machines of a fleet do not come back together.
fn drawn(pause: Duration) -> Duration {
    let byte = random_bytes::<1>().map_or(255, |[byte]| byte);
    pause.mul_f64(0.5 + f64::from(byte) / 510.0)
}

fn refused(why: &str) -> ProbeError {
    ProbeError::usage(
        format!("The address for an object cannot be used: {why}."),
        "It is signed by `nephoscope cloud fleet`.",
    )
}
