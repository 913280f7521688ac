//! Probes over TCP: a connection, or an HTTP request and its whole answer, with or without TLS.
use super::failure::{addresses, Deadline, ProbeFailure};
use crate::error::{FailureKind, ProbeError, Result};
use crate::http::http1::expected::Expected;
use crate::http::http1::request::AGENT;
use crate::http::http1::response::ResponseReader;
use crate::http::http1::url::Url;
use crate::http::requests::failures;
use crate::http::requests::tls::TlsClient;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

const BODY_BYTES: usize = 64 << 20;
const BLOCK_BYTES: usize = 16 << 10;

pub struct StreamProbe {
    host: String,
    port: u16,
    http: Option<HttpProbe>,
}

struct HttpProbe {
    request: Vec<u8>,
    tls: Option<TlsClient>,
}

impl StreamProbe {
    pub fn tcp(host: String, port: u16) -> Self {
        Self { host, port, http: None }
    }

    /// authorities: a file of the certificates that servers over TLS are checked by.
    pub fn http(text: &str, authorities: &str) -> Result<Self> {
        Self::request("GET", text, "Accept: */*\r\n", &[], authorities)
    }

    /// A request that sends something. headers: whole lines.
    pub fn request(
        method: &str,
        text: &str,
        headers: &str,
        body: &[u8],
        authorities: &str,
    ) -> Result<Self> {
        let url = Url::parse(text).map_err(|why| {
            ProbeError::usage(format!("'{text}' is no URL: {why}."), "Correct the address.")
        })?;
        let tls = if url.is_tls { Some(trusting(&url.host, authorities)?) } else { None };
        let head = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {AGENT}\r\n{headers}\
             Connection: close\r\n\r\n",
            url.target,
            url.authority()
        );
        let http = Some(HttpProbe { request: [head.as_bytes(), body].concat(), tls });
        Ok(Self { host: url.host, port: url.port, http })
    }

    pub fn run(&self, deadline: Deadline) -> Result<(), ProbeFailure> {
        let status = self.status(deadline)?;
        if self.http.is_some() && Expected::default().refuses(status).is_some() {
            return Err(ProbeFailure::Answer(format!("status {status}")));
        }
        Ok(())
    }

    /// Returns the status of a whole answer, or of one that refuses; 0 without a request.
    pub fn status(&self, deadline: Deadline) -> Result<u16, ProbeFailure> {
        let stream = connect(&self.host, self.port, deadline)?;
        let Some(http) = &self.http else { return Ok(0) };
        let mut stream = TimedStream { stream, deadline };
        let result = match &http.tls {
            None => exchange(&mut stream, &http.request, deadline),
            Some(tls) => {
                let connection = tls.connection().map_err(Error::other);
                let mut connection =
                    connection.map_err(|error| ProbeFailure::of(&error, deadline))?;
                let mut inside = rustls::Stream::new(&mut connection, &mut stream);
                exchange(&mut inside, &http.request, deadline)
            }
        };
        let _ = stream.stream.shutdown(Shutdown::Both);
        result
    }
}

fn trusting(host: &str, authorities: &str) -> Result<TlsClient> {
    if authorities.is_empty() {
        return Err(ProbeError::new(
            FailureKind::Lacks,
            "no_authorities",
            "This host has no certificates of authorities to check a server's by.",
            "Install them there (Debian: ca-certificates).",
        ));
    }
    TlsClient::new(host, Some(authorities), "auto", false, b"http/1.1")
}

/// Tries the addresses of the host in turn.
fn connect(host: &str, port: u16, deadline: Deadline) -> Result<TcpStream, ProbeFailure> {
    let mut failure = ProbeFailure::Timeout;
    for address in addresses(host, port, deadline)? {
        match TcpStream::connect_timeout(&address, deadline.left()?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = ProbeFailure::of(&error, deadline),
        }
    }
    Err(failure)
}

/// Sends a request and reads the whole answer, unless its status refuses; returns the status.
fn exchange(
    stream: &mut (impl Read + Write),
    request: &[u8],
    deadline: Deadline,
) -> Result<u16, ProbeFailure> {
    let failed = |error: Error| ProbeFailure::of(&error, deadline);
    stream.write_all(request).map_err(failed)?;
    stream.flush().map_err(failed)?;
    let (expected, mut reader) = (Expected::default(), ResponseReader::default());
    let (mut unread, mut total) = (Vec::new(), 0);
    let mut block = [0; BLOCK_BYTES];
    loop {
        let bytes = match stream.read(&mut block) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            // The end of a TLS connection without notice.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => 0,
            Err(error) => return Err(failed(error)),
        };
        if bytes == 0 {
            return match reader.status() {
                0 => Err(ProbeFailure::Answer("no HTTP answer".to_owned())),
                status if reader.ends_with_connection() => Ok(status),
                _ => Err(ProbeFailure::Answer("the answer was cut off".to_owned())),
            };
        }
        total += bytes;
        if total > BODY_BYTES {
            return Err(ProbeFailure::Answer("the answer is longer than 64 MiB".to_owned()));
        }
        unread.extend_from_slice(&block[..bytes]);
        let (used, is_whole) =
            reader.read(&expected, false, &unread).map_err(|why| match reader.status() {
                0 => ProbeFailure::Answer("no HTTP answer".to_owned()),
                _ => ProbeFailure::Answer(failures::words(why).to_owned()),
            })?;
        unread.drain(..used);
        match reader.status() {
            0 => {}
            status if is_whole || expected.refuses(status).is_some() => return Ok(status),
            _ => {}
        }
    }
}

/// A connection whose calls end with the probe's deadline.
struct TimedStream {
    stream: TcpStream,
    deadline: Deadline,
}

impl Read for TimedStream {
    fn read(&mut self, bytes: &mut [u8]) -> Result<usize, Error> {
        let left = self.deadline.left().map_err(|_| ErrorKind::TimedOut)?;
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(bytes)
    }
}

impl Write for TimedStream {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let left = self.deadline.left().map_err(|_| ErrorKind::TimedOut)?;
        self.stream.set_write_timeout(Some(left))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.stream.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::requests::tests::tls_server;
    use crate::http::requests::tls::system_authorities;
    use std::time::Duration;

    #[test]
    fn https_is_good_with_a_certificate_for_the_host() {
        const CA: &str =
            concat!(env!("CARGO_MANIFEST_DIR"), "/src/http/requests/test_certificates/ca.pem");
        let server = tls_server(rustls::ALL_VERSIONS);
        let port = server.address.port();
        let url = format!("https://localhost:{port}/");
        let deadline = Deadline::after(Duration::from_secs(60));
        StreamProbe::http(&url, CA).unwrap().run(deadline).unwrap();
        // The authorities of the system, where it has any, did not sign it.
        if let Ok(probe) = StreamProbe::http(&url, &system_authorities()) {
            let Err(ProbeFailure::NoAnswer(reason)) = probe.run(deadline) else { panic!() };
            assert!(reason.contains("certificate"), "{reason}");
        }
        let Err(error) = StreamProbe::http("https://localhost/", "") else { panic!() };
        assert_eq!(error.name, "no_authorities");
        assert!(StreamProbe::http("http://localhost/", "").is_ok());
    }
}
