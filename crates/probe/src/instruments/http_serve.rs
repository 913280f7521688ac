//! # What it measures
//! Nothing by itself: an HTTP/1.1 server whose behaviour is known, so that load generators, load
//! balancers and proxies can be checked against it. Its own counters state what it answered.
//!
//! # How
//! One thread serves all connections. The path selects the work: `/` a body of `body_bytes`,
//! `/bytes/N` one of N bytes, `/sum` the sum of 1 to 100, `/cpu/NS` so much CPU time of a worker,
//! `/service` a service time of a worker, drawn, `/service/NS` a stated one. `?bytes=N` sets the
//! length of the body. Requests for workers wait in one queue in the order of their arrival; a
//! request is answered when its service ends. `/stall/NS` answers, then stalls the server;
//! `/counters` returns its counters as JSON.
//!
//! The n-th request to `/service` takes the n-th time drawn: with u uniform and z standard normal of
//! SplitMix64 with `seed` (u: the upper 53 bits over 2^53; z: sqrt(-2 ln(1 - u1)) cos(2 pi u2)), it
//! is the mean times 1, times -ln(1 - u), or times exp(s z - s^2 / 2) with s^2 = ln(1 + cv^2).
//! During a stall no answer is sent and no service proceeds. The first scheduled stall begins
//! `stall_every_ns` after the start (`started_wall_ns` in the last line), each next one as much later.
//!
//! `run` listens on `address`, loopback by default, and needs no token; `serve` is the far side of a
//! session: on another address than loopback each request has to carry `Authorization: Bearer` and
//! the session's token, unless `check_token` is false.
//!
//! # Known truth
//! With one worker the start times obey Lindley's recursion exactly: a start is the later of the
//! arrival and the end of the service before. A late timer delays an answer, counted in
//! `late_ns`, but no further service. Clients and server count the same requests and bytes.
//!
//! # Cross-check
//! wrk and ab, whose counts agree with the server's own; curl.
//!
//! # Overhead
//! One thread, and one more for each worker that uses CPU time.
//!
//! # Caveats
//! One thread limits the rate: see `used_cpus`. The arrival is the moment when the server saw the
//! request, not when it reached the machine. Bodies of requests are dropped; chunked ones are
//! refused (411). There is no TLS.
use crate::error::{ProbeError, Result};
use crate::http::server::{self, Served, ServerSettings, BODY_BYTES_MAX, KIND_NAMES};
use crate::load;
use crate::trial::idle_cpu;
use crate::trial::{factors, ListenConfig, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Domain, Metric, Param, Resource, Spec};
use serde_json::{json, Value};
use std::net::IpAddr;

const HOUR_NS: i64 = 3_600_000_000_000;

pub const SPEC: Spec = Spec {
    id: "http.serve",
    summary: "HTTP server with known bodies, service times and stalls",
    params: &[
        Param::text("address", "127.0.0.1").doc("IP address of this machine to listen on."),
        Param::int("port", 0, 0..=65_535).doc("TCP port to listen on; 0 takes a free one."),
        Param::switch("check_token", true)
            .doc("Require the session's token on addresses other than loopback (serve only)."),
        Param::int("body_bytes", 128, 0..=BODY_BYTES_MAX.cast_signed())
            .doc("Length of a body whose length the request does not state."),
        Param::count("workers", 1, 1..=1024).doc("Number of workers for /cpu and /service."),
        Param::choice("service", "fixed", &["fixed", "exponential", "lognormal"])
            .doc("Distribution of the service times of /service."),
        Param::int("service_mean_ns", 1_000_000, 0..=HOUR_NS).doc("Mean service time."),
        Param::float("service_cv_ratio", 1.0, 0.0..=100.0)
            .doc("Coefficient of variation of log-normal service times."),
        Param::seed().doc("Seed of the service times; 0 draws another one each time."),
        Param::int("spin_ns", 0, 0..=10_000_000)
            .doc("Time of busy waiting before a service ends, so that its answer is less late."),
        Param::int("stall_every_ns", 10_000_000_000, 0..=24 * HOUR_NS)
            .doc("Time from the start of one scheduled stall to the next."),
        Param::int("stall_ns", 0, 0..=HOUR_NS)
            .doc("Length of a scheduled stall; 0 schedules none."),
        Param::count("requests_per_connection", 0, 0..=1_000_000_000)
            .doc("Requests after which a connection is closed; 0 for no limit."),
        Param::int("idle_timeout_ns", 60_000_000_000, 1_000_000..=24 * HOUR_NS)
            .doc("Time after which a connection without a request is closed."),
        Param::int("request_timeout_ns", 10_000_000_000, 1_000_000..=HOUR_NS)
            .doc("Time in which a request has to be complete, and in which a client has to read."),
        Param::int("request_body_bytes", 64 << 20, 0..=BODY_BYTES_MAX.cast_signed())
            .doc("Maximum length of a request's body."),
        Param::count("connections", 50_000, 1..=1_000_000)
            .doc("Maximum number of open connections; further ones get status 503."),
        Param::count("records", 0, 0..=100_000)
            .doc("Number of requests whose times are kept one by one; of later ones none are."),
        load::CPUS,
        load::DURATION,
    ],
    metrics: &[
        Metric::neutral("answered_per_s").headline().doc("Requests answered per second."),
        Metric::neutral("requests_count").doc("Number of requests, by kind."),
        Metric::neutral("answered_count").doc("Number of answers sent, by kind."),
        Metric::neutral("accepted_count").doc("Number of connections accepted."),
        Metric::neutral("refused_count").doc("Number of connections beyond the limit."),
        Metric::neutral("open_max_count").doc("Maximum number of open connections."),
        Metric::neutral("received_bytes").doc("Bytes received."),
        Metric::neutral("sent_bytes").doc("Bytes sent."),
        Metric::lower("errors_count").doc("Refused requests and closed connections, by cause."),
        Metric::lower("wait_ns").histogram().doc("Time that requests waited for a worker."),
        Metric::lower("late_ns")
            .histogram()
            .doc("Time from the end of a service to the end of its answer."),
        Metric::lower("used_cpus").doc("CPU time of the probe per elapsed time."),
        Metric::document("served").doc("Counters, seed of the service times, times of requests."),
    ],
    overhead: "one thread, and one more for each worker that uses CPU time",
    source: "RFC 9110, RFC 9112 (HTTP/1.1); Lindley 1952 (single-server queue)",
    load: true,
    domain: Domain::Web,
    response_counter: "answered_count",
    ..Spec::about(Resource::None)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let address = trial.params.text("address");
    let address: IpAddr = address.parse().map_err(|_| {
        let message = format!("{}: address must be an IP address, not '{address}'.", SPEC.id);
        ProbeError::usage(message, "Name one of this machine (ip address), such as 127.0.0.1.")
    })?;
    let duration_ns = match load::duration_ns(trial)? {
        0 => u64::MAX / 2,
        ns => ns,
    };
    let settings = settings(trial)?;
    let (listener, address) = server::listen(address, trial.params.u64("port") as u16)?;
    trial.prepared_at(Some(address))?;
    let (began_ns, cpu_ns) = (trial.started_ns(), idle_cpu::benchmark_cpu_ns());
    let life_ns = (began_ns, began_ns + duration_ns);
    let served = server::serve(&settings, trial.session, listener, None, life_ns)?;
    let elapsed_ns = (clock::monotonic_ns() - began_ns).max(1) as f64;
    let cpu_ns = (idle_cpu::benchmark_cpu_ns() - cpu_ns) as f64;
    trial.out.emit("used_cpus", cpu_ns / elapsed_ns, factors! {})?;
    emit(trial, &served, elapsed_ns)
}

/// The far side of a session: any number of connections, each request with the token if it must.
pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value> {
    let settings = settings(trial)?;
    let (listener, address) = server::listen(listen.bind, trial.params.u64("port") as u16)?;
    let checks = trial.params.bool("check_token") && !listen.bind.is_loopback();
    trial.listens_at(address)?;
    let life_ns = (trial.started_ns(), u64::MAX);
    let token = checks.then(|| listen.token.clone());
    let served = server::serve(&settings, trial.session, listener, token, life_ns)?;
    Ok(document(&served, trial.started_ns()))
}

fn settings(trial: &mut Trial) -> Result<ServerSettings> {
    let settings = ServerSettings::of(SPEC.id, &trial.params)?;
    let (wanted, possible) = (trial.params.size("connections"), settings.connections);
    if possible < wanted {
        trial.out.note(format!(
            "At most {possible} connections instead of {wanted}: this process may not open more files."
        ));
    }
    Ok(settings)
}

fn document(served: &Served, started_ns: u64) -> Value {
    let mut document = served.counters.as_json();
    document["seed"] = json!(served.seed);
    document["records"] = served.records.as_json(started_ns);
    document
}

fn emit(trial: &mut Trial, served: &Served, elapsed_ns: f64) -> Result<()> {
    let counters = &served.counters;
    let answered_per_s = counters.answered_in_all() as f64 * 1e9 / elapsed_ns;
    trial.out.emit("answered_per_s", answered_per_s, factors! {})?;
    for (kind, name) in KIND_NAMES.iter().enumerate() {
        let (requests, answered) = (counters.requests[kind], counters.answered[kind]);
        if requests > 0 {
            trial.out.emit("requests_count", requests as f64, factors! {"kind": *name})?;
            trial.out.emit("answered_count", answered as f64, factors! {"kind": *name})?;
        }
    }
    for (cause, count) in counters.errors() {
        trial.out.emit("errors_count", count as f64, factors! {"cause": cause})?;
    }
    for (metric, value) in [
        ("accepted_count", counters.accepted),
        ("refused_count", counters.refused),
        ("open_max_count", counters.open_max),
        ("received_bytes", counters.received_bytes),
        ("sent_bytes", counters.sent_bytes),
    ] {
        trial.out.emit(metric, value as f64, factors! {})?;
    }
    trial.emit_histogram("wait_ns", &served.records.wait, &factors! {})?;
    trial.emit_histogram("late_ns", &served.records.late, &factors! {})?;
    trial.out.emit_document("served", document(served, trial.started_ns()))
}
