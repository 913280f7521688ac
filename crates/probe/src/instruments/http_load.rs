//! # What it measures
//! How an HTTP server answers under load: valid responses per second, and the time from the intended
//! sending of a request to the end of its response.
//!
//! # How
//! One event loop per thread (`epoll`); each connection carries one request at a time, with HTTP/2
//! `streams` of them. In a closed loop (`arrivals` closed) a connection or stream sends its next
//! request after the response and the think time, so that a slow server gets fewer requests. In an
//! open loop the sending times are fixed in advance, evenly spaced, as a Poisson process or from a
//! file: `latency_ns` counts from there, even where a request had to wait for a free connection.
//! `service_time_ns` counts from the actual sending. A request that took longer than `timeout_ns` is
//! given up, with its connection unless that carries other streams; a request that found no free
//! connection until 0.1 s after the end is `unsent`. Both count in `latency_ns` with the time that they
//! waited, and in `unanswered_ns`: their latency is at least that, so that a percentile which they
//! reach is a lower bound. Other failed requests have no latency; they are counted by kind. Valid
//! responses and failed requests add up to the requests that were due (`due_count`).
//! Requests that were due in the warm-up are sent and not timed. Redirects are responses like others
//! and not followed. Requests of HTTP/2 that a server turned away unread (GOAWAY) are sent again.
//!
//! Every response is checked: its syntax, its length, its status (200 to 399 unless
//! `expected_statuses` says otherwise) and, if asked for, size, text or digest of its body. Bodies
//! are checked while they are read and not kept. Only this machine gets load, and hosts that
//! `authorised_hosts` names.
//!
//! # Known truth
//! A server with a known service time and one connection is measured with that time and its inverse
//! as the rate. The server's own count of requests is `sent_count`. Poisson arrivals pass a
//! Kolmogorov-Smirnov test. Responses are the same however the network splits them. Servers that
//! refuse, reset, close early, send garbage, endless headers or a wrong length, or do not answer are
//! counted as such. Both versions of TLS are spoken with a server of another side of the same library.
//! Counts of HTTP/2 are those of nginx's log, through connections that nginx ends with requests on
//! their way; its frames and header blocks are read the same however they are split.
//!
//! # Cross-check
//! wrk, interleaved (`benchmarks/http_load_vs_wrk.py`). wrk counts from the actual sending and leaves
//! out the wait for it.
//!
//! # Overhead
//! `threads` threads, each up to a whole CPU; a socket and a few hundred bytes per connection, with TLS
//! tens of kilobytes. Threads that `cpus` pins wait busily for the responses of a closed loop
//! (`response_spin_ns`), so that no server on the same machine has to wake them up.
//!
//! # Caveats
//! A closed loop hides stalls of the server: while it stalls, nothing is sent. If more than 1 % of the
//! requests left more than 1 ms late although a connection was free (`late_sends_ratio`), the
//! generator was measured, and the trial is invalid; so is one that runs out of local ports or file
//! descriptors. A generator whose thread uses its whole CPU (`generator_busy_ratio`) or waits for one
//! (`generator_wait_ratio`) may be the limit itself.
use crate::error::{ProbeError, Result};
use crate::http::http1::data::DataTable;
use crate::http::http1::expected::Expected;
use crate::http::http1::mix::Mix;
use crate::http::http1::request::Common;
use crate::http::http1::url::Url;
use crate::http::http1::Http;
use crate::http::http2::Http2;
use crate::http::requests::tls::TlsClient;
use crate::http::requests::{self, report, spec, EngineSettings};
use crate::net::target;
use crate::trial::{factors, Trial};
use nephoscope_wire::input::read_text;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{joined, Domain, Metric, Param, RequestLoop, Resource, Spec};
use std::path::Path;
use std::sync::Arc;

/// Statuses with which a server names another address.
const REDIRECTS: [usize; 5] = [301, 302, 303, 307, 308];

/// Each request of a mix has its own histograms.
const REQUESTS_MAX: usize = 32;

/// What is sent, and how.
const REQUEST_PARAMS: [Param; 16] = [
    Param::text("url", "")
        .doc("Address of the requests, such as http://127.0.0.1:8080/path; https for TLS."),
    spec::AUTHORISED_HOSTS,
    Param::text("method", "GET").doc("HTTP method of the requests."),
    Param::texts("headers").doc("Header lines of the requests, as `Name: value`."),
    Param::text("body", "").doc("Body of the requests."),
    Param::texts("requests").doc(
        "Mix of requests to the server of `url`, each as `WEIGHT METHOD TARGET [BODY]`; they \
         replace its path, `method` and `body`.",
    ),
    Param::text("data_file", "").doc(
        "File of comma-separated values with column names in the first line; `{column}` in \
         requests stands for the value of the next row.",
    ),
    Param::switch("keep_cookies", false)
        .doc("Send cookies back that the server set on the same connection."),
    Param::switch("keep_alive", true)
        .doc("Keep connections open; else each request opens its own."),
    Param::choice("version", "1.1", &["1.1", "2"]).doc(
        "Version of HTTP; 2 is negotiated where there is TLS (ALPN), and else assumed of the \
         server (prior knowledge).",
    ),
    Param::count("streams", 1, 1..=10_000).doc("Requests in flight on each connection of HTTP/2."),
    Param::choice("tls_version", "auto", &["auto", "1.2", "1.3"])
        .doc("Version of TLS; auto takes the newest that the server knows."),
    Param::switch("tls_verify", true)
        .doc("Check that the server's certificate is for the host and from a known authority."),
    Param::text("tls_ca_file", "").doc(
        "PEM file of authorities; empty takes SSL_CERT_FILE, else those of the measuring \
         machine.",
    ),
    Param::switch("tls_resume", false)
        .doc("Let connections resume TLS sessions; else each makes a full handshake."),
    spec::CONNECTIONS,
];

/// What a valid response is, and the seed.
const RESPONSE_PARAMS: [Param; 5] = [
    Param::ints("expected_statuses", &[], 200..=999)
        .doc("Statuses of valid responses; an empty list accepts 200 to 399."),
    Param::int("expected_body_bytes", -1, -1..=i64::MAX)
        .doc("Size of the body of valid responses; -1 accepts any."),
    Param::text("expected_body_text", "").doc("Text that the body of valid responses contains."),
    Param::text("expected_body_sha256", "")
        .doc("SHA-256 digest of the body of valid responses, in hexadecimal."),
    Param::seed().doc("Random seed of arrivals and think times; 0 takes the clock."),
];

const TLS_HANDSHAKE: Metric = Metric::lower("tls_handshake_ns")
    .histogram()
    .doc("Time of a TLS handshake on an open TCP connection, those before the start included.");
const RESPONSES_BY_STATUS: Metric = Metric::neutral("responses_count")
    .doc("Number of whole responses by status, including warm-up.");

pub const SPEC: Spec = Spec {
    id: "http.load",
    summary: "Requests per second and latency of an HTTP server under load",
    params: &joined::<_, 38>(&[&REQUEST_PARAMS, &spec::PACING, &RESPONSE_PARAMS]),
    metrics: &joined::<_, 28>(&[
        &spec::RESPONSES,
        &spec::TIMES,
        &[TLS_HANDSHAKE],
        &spec::COUNTS,
        &[RESPONSES_BY_STATUS],
        &spec::CHECKS,
    ]),
    overhead: "threads at up to a CPU each; the server and the link, full or at the offered rate",
    source: "wrk2 and HdrHistogram (Tene: coordinated omission); RFC 9112, 9113 and 7541",
    two_sided: false,
    load: true,
    domain: Domain::Web,
    request_loop: RequestLoop::Arrivals,
    ..Spec::about(Resource::Several)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let params = &trial.params;
    let url = url(params.text("url"))?;
    let keeps_alive = params.bool("keep_alive");
    let mix = Arc::new(mix(&url, params)?);
    let expected = Arc::new(expected(params)?);
    let address = target::reach(&url.host, url.port, &params.texts("authorised_hosts"))?;
    let tls = url.is_tls.then(|| TlsClient::of(trial, &url.host)).transpose()?;
    if let Some(tls) = &tls {
        tls.check(&address)?;
    }
    let depth = streams(params)?;
    let common = EngineSettings::of(trial, address)?;
    let settings = EngineSettings { tls, depth, connect_ahead: keeps_alive, ..common };
    let (share, seed) = (settings.share, settings.seed);
    let (before, threads) =
        (share.number * settings.threads.len(), share.of * settings.threads.len());
    let http = |thread| Http::new(&mix, &expected, before + thread, threads, seed);
    let (recorder, threads) = if is_http2(params) {
        let (recorder, threads) = requests::run(trial, &settings, |thread| Http2(http(thread)))?;
        (recorder, threads.into_iter().map(|Http2(http)| http).collect())
    } else {
        requests::run(trial, &settings, http)?
    };
    let classes: Vec<_> = match mix.names.as_slice() {
        [_] => vec![factors! {}],
        names => names.iter().map(|name| factors! {"request": name}).collect(),
    };
    report::emit(trial, &settings, &recorder, &classes)?;
    trial.emit_histogram("tls_handshake_ns", &recorder.handshake, &factors! {})?;
    let mut redirects = 0;
    for status in 0..threads[0].statuses.len() {
        let count: u64 = threads.iter().map(|http| http.statuses[status]).sum();
        if count > 0 {
            trial.out.emit("responses_count", count as f64, factors! {"status": status})?;
        }
        redirects += if REDIRECTS.contains(&status) { count } else { 0 };
    }
    if redirects > 0 && expected.statuses.is_empty() {
        trial.out.note(
            "The server answered with redirects, which are not followed: they were measured, and not \
             what they lead to. Name the address that they lead to, or `expected_statuses`.",
        );
    }
    Ok(())
}

fn is_http2(params: &Params) -> bool {
    params.text("version") == "2"
}

fn streams(params: &Params) -> Result<usize> {
    let streams = params.size("streams");
    if streams > 1 && !(is_http2(params) && params.bool("keep_alive")) {
        return Err(ProbeError::usage(
            format!("{streams} streams need connections of HTTP/2 that are kept open."),
            "Set `version` to 2 and `keep_alive` to true, or `streams` to 1.",
        ));
    }
    Ok(streams)
}

fn url(text: &str) -> Result<Url> {
    let hint = "Set `url` to an address such as http://127.0.0.1:8080/.";
    if text.is_empty() {
        return Err(ProbeError::usage("http.load needs the address of a server.", hint));
    }
    Url::parse(text).map_err(|why| {
        let start: String = text.chars().take(100).collect();
        ProbeError::usage(format!("'{}' cannot be requested: {why}.", start.escape_debug()), hint)
    })
}

fn mix(url: &Url, params: &Params) -> Result<Mix> {
    let table = table(params.text("data_file"))?;
    let headers = params.texts("headers");
    let columns = table.columns.clone();
    let keeps_alive = params.bool("keep_alive");
    let is_http2 = is_http2(params);
    let common = Common { url, headers: &headers, keeps_alive, is_http2, columns: &columns };
    let requests = params.texts("requests");
    let (method, body) = (params.text("method"), params.text("body"));
    let mix = match requests.len() {
        0 => Mix::of_one(&common, method, &url.target, body, table),
        1..=REQUESTS_MAX => Mix::new(&requests, &common, table),
        number => Err(format!("A mix has at most {REQUESTS_MAX} requests, not {number}.")),
    };
    mix.map_err(|sentence| ProbeError::usage(sentence, "Correct the parameters of http.load."))
}

fn table(path: &str) -> Result<DataTable> {
    if path.is_empty() {
        return Ok(DataTable::default());
    }
    let text = read_text(Path::new(path)).map_err(|error| error.to_string());
    text.and_then(|text| DataTable::parse(&text)).map_err(|why| {
        let hint = "Set `data_file` to a file of comma-separated values.";
        ProbeError::usage(format!("The data in '{path}' cannot be used: {why}."), hint)
    })
}

fn expected(params: &Params) -> Result<Expected> {
    let statuses = params.ints("expected_statuses");
    let mut expected = Expected::containing(params.text("expected_body_text").as_bytes());
    expected.statuses = statuses.iter().filter_map(|status| u16::try_from(*status).ok()).collect();
    expected.body_bytes = u64::try_from(params.int("expected_body_bytes")).ok();
    expected.keep_cookies = params.bool("keep_cookies");
    let digest = params.text("expected_body_sha256");
    if !digest.is_empty() {
        expected.sha256 = Some(hexadecimal(digest).ok_or_else(|| {
            ProbeError::usage(
                "expected_body_sha256 is not a SHA-256 digest in hexadecimal.",
                "Compute it with `sha256sum`.",
            )
        })?);
    }
    Ok(expected)
}

fn hexadecimal(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> =
        text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[pair.len() - 1]).collect();
    (digits.len() == 64).then(|| bytes.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_64_hexadecimal_digits() {
        let text = "00ff".repeat(16);
        assert_eq!(hexadecimal(&text).unwrap()[..2], [0, 255]);
        for text in [&text[1..], "", "zz", &"0g".repeat(32)] {
            assert_eq!(hexadecimal(text), None);
        }
    }
}
