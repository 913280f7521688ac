//! The cloud's own word about this machine, asked for only on request: EC2 (IMDSv2), Google and
//! Azure instance metadata on the link-local address. Only the kind, the place, the image and the
//! hashed identifier are read; paths with credentials or user data are never asked for.
//!
//! Plain HTTP/1.1 with short time limits. Sources: the three providers' metadata documents.
use super::identity::hashed;
use super::Section;
use crate::error::{ProbeError, Result};
use nephoscope_linux::clock;
use nephoscope_linux::files::Fact;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

/// Time for everything that one provider is asked.
const LIMIT_NS: u64 = 300_000_000;
/// Longest answer that is read.
const MAX_ANSWER: u64 = 16 << 10;
/// Longest value that is believed.
const MAX_VALUE: usize = 200;

/// Facts of the section beside `asked`.
const FACTS: [&str; 6] =
    ["provider", "instance_type", "region", "zone", "instance_id_hash", "image"];

/// The section when nobody asked: every fact is null, with one reason for all.
pub fn not_requested() -> Section {
    absent(false, "not asked for (cloud_metadata is false)")
}

fn absent(is_asked: bool, reason: &str) -> Section {
    let mut section = Section::new("cloud");
    section.set("asked", is_asked);
    for fact in FACTS {
        section.put::<()>(fact, Err(reason.to_owned()));
    }
    section
}

/// Reads the parameter `metadata_address`: only link-local and loopback addresses, so that this
/// program cannot be sent elsewhere.
pub fn address(text: &str) -> Result<SocketAddr> {
    let wanted = |address: &SocketAddr| match address.ip() {
        IpAddr::V4(ip) => ip.is_link_local() || ip.is_loopback(),
        // fd00:ec2::254 is EC2's.
        IpAddr::V6(ip) => {
            ip.is_loopback() || ip.segments() == [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        }
    };
    text.parse().ok().filter(wanted).ok_or_else(|| {
        ProbeError::usage(
            format!(
                "metadata_address must be a link-local or loopback ADDRESS:PORT, not '{text}'."
            ),
            "Leave it out to use 169.254.169.254:80.",
        )
    })
}

/// Asks each provider's interface at `address`, until one answers.
pub fn ask(address: SocketAddr) -> Section {
    let providers: [fn(&MetadataClient) -> Fact<Section>; 3] = [ec2, google, azure];
    let mut reasons = Vec::new();
    for provider in providers {
        match provider(&MetadataClient { address, end_ns: clock::monotonic_ns() + LIMIT_NS }) {
            Ok(section) => return section,
            Err(reason) => reasons.push(reason),
        }
        if reasons[0].starts_with(NO_CONNECTION) {
            break;
        }
    }
    absent(true, &format!("no provider answered at {address}: {}", reasons.join("; ")))
}

const NO_CONNECTION: &str = "no connection";

struct MetadataClient {
    address: SocketAddr,
    end_ns: u64,
}

/// Header and body of an answer with status 200.
struct MetadataResponse {
    head: String,
    body: String,
}

impl MetadataClient {
    fn left(&self) -> Fact<Duration> {
        match self.end_ns.saturating_sub(clock::monotonic_ns()) {
            0 => Err("no answer in time".to_owned()),
            left_ns => Ok(Duration::from_nanos(left_ns)),
        }
    }

    /// One request on one connection; `header` ends in CRLF.
    fn ask(&self, method: &str, path: &str, header: &str) -> Fact<MetadataResponse> {
        let mut stream = TcpStream::connect_timeout(&self.address, self.left()?)
            .map_err(|error| format!("{NO_CONNECTION}: {error}"))?;
        let io = |error: std::io::Error| format!("{path}: {error}");
        stream.set_write_timeout(Some(self.left()?)).map_err(io)?;
        let host = self.address.ip();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Length: 0\r\n{header}\r\n"
        )
        .map_err(io)?;
        let bytes = self.read(&mut stream).map_err(|reason| format!("{path}: {reason}"))?;
        answer(&bytes).ok_or_else(|| format!("{path}: no such answer"))
    }

    /// Reads until the answer is whole, the peer closes, or the time is over.
    fn read(&self, stream: &mut TcpStream) -> Fact<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut part = [0u8; 2048];
        while (bytes.len() as u64) < MAX_ANSWER && !is_whole(&bytes) {
            stream.set_read_timeout(Some(self.left()?)).map_err(|error| error.to_string())?;
            match stream.read(&mut part) {
                Ok(0) => break,
                Ok(count) => bytes.extend_from_slice(&part[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(bytes)
    }

    fn get(&self, path: &str, header: &str) -> Fact<String> {
        value(&self.ask("GET", path, header)?.body).ok_or_else(|| format!("{path}: no plain value"))
    }
}

fn split(bytes: &[u8]) -> Option<(String, &[u8])> {
    let at = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8_lossy(&bytes[..at]).into_owned(), &bytes[at + 4..]))
}

fn header<'head>(head: &'head str, name: &str) -> Option<&'head str> {
    head.lines().skip(1).find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

fn is_whole(bytes: &[u8]) -> bool {
    split(bytes).is_some_and(|(head, body)| {
        let length = header(&head, "content-length").and_then(|length| length.parse().ok());
        length.is_some_and(|length: usize| body.len() >= length)
    })
}

fn answer(bytes: &[u8]) -> Option<MetadataResponse> {
    let (head, body) = split(bytes)?;
    let status = head.lines().next()?.split(' ').nth(1)?;
    // None of these interfaces sends chunks for a single value; one that does is not believed.
    let chunked = header(&head, "transfer-encoding").is_some();
    (status == "200" && !chunked)
        .then(|| MetadataResponse { body: String::from_utf8_lossy(body).into_owned(), head })
}

/// A short printable value; anything else is not what was asked for.
fn value(body: &str) -> Option<String> {
    let body = body.trim();
    let plain = body.chars().all(|c| c.is_ascii_graphic() || c == ' ');
    (!body.is_empty() && body.len() <= MAX_VALUE && plain).then(|| body.to_owned())
}

fn section_of(provider: &str, values: [Fact<String>; 5]) -> Section {
    let mut section = Section::new("cloud");
    section.set("asked", true);
    section.set("provider", provider);
    let [kind, region, zone, id, image] = values;
    section.put("instance_type", kind);
    section.put("region", region);
    section.put("zone", zone);
    section.put("instance_id_hash", id.map(|id| hashed(&id)));
    section.put("image", image);
    section
}

fn ec2(asker: &MetadataClient) -> Fact<Section> {
    let ttl = "X-aws-ec2-metadata-token-ttl-seconds: 60\r\n";
    let token = asker.ask("PUT", "/latest/api/token", ttl)?;
    let token = value(&token.body).ok_or_else(|| "/latest/api/token: no token".to_owned())?;
    let header = format!("X-aws-ec2-metadata-token: {token}\r\n");
    let get = |name: &str| asker.get(&format!("/latest/meta-data/{name}"), &header);
    let kind = Ok(get("instance-type")?);
    Ok(section_of(
        "ec2",
        [
            kind,
            get("placement/region"),
            get("placement/availability-zone"),
            get("instance-id"),
            get("ami-id"),
        ],
    ))
}

fn google(asker: &MetadataClient) -> Fact<Section> {
    let wanted = "Metadata-Flavor: Google\r\n";
    let path = |name: &str| format!("/computeMetadata/v1/instance/{name}");
    let first = asker.ask("GET", &path("machine-type"), wanted)?;
    if header(&first.head, "metadata-flavor") != Some("Google") {
        return Err("the answer is not Google's".to_owned());
    }
    // Values are resource names: projects/123/machineTypes/n2-standard-2. The last part is told;
    // the first would name the project.
    let last = |text: String| text.rsplit('/').next().unwrap_or_default().to_owned();
    let get = |name: &str| asker.get(&path(name), wanted).map(last);
    let kind = value(&first.body).map(last).ok_or_else(|| "no machine type".to_owned())?;
    let zone = get("zone");
    // europe-west1-b lies in europe-west1.
    let region = zone.clone().and_then(|zone| {
        let region = zone.rsplit_once('-').map(|(region, _)| region.to_owned());
        region.ok_or_else(|| format!("zone '{zone}' names no region"))
    });
    Ok(section_of("google", [Ok(kind), region, zone, get("id"), get("image")]))
}

fn azure(asker: &MetadataClient) -> Fact<Section> {
    let get = |name: &str| {
        let path = format!("/metadata/instance/compute/{name}?api-version=2021-02-01&format=text");
        asker.get(&path, "Metadata: true\r\n")
    };
    let kind = Ok(get("vmSize")?);
    let image = get("offer").and_then(|offer| Ok(format!("{offer} {}", get("sku")?)));
    Ok(section_of("azure", [kind, get("location"), get("zone"), get("vmId"), image]))
}

#[cfg(test)]
#[path = "cloud_tests.rs"]
mod tests;
