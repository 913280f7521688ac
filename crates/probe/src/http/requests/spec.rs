//! The parameters and metrics that every request generator has, and the settings that follow from
//! them.
use super::arrivals::{parse_times, RateProfile, SendSchedule};
use super::{EngineSettings, LoadShare, Pacing, Think, THREADS_MAX};
use crate::error::{ProbeError, Result};
use crate::load;
use crate::trial::parameters;
use crate::trial::Trial;
use nephoscope_wire::input::read_text;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Metric, Param};
use std::net::SocketAddr;
use std::path::Path;

const HOUR_NS: i64 = 3_600_000_000_000;
const RATE_MAX: f64 = 10_000_000.0;

pub const AUTHORISED_HOSTS: Param = Param::texts("authorised_hosts")
    .doc("Hosts beyond this machine that are yours to put under load, by name or address.");
pub const CONNECTIONS: Param =
    Param::count("connections", 10, 1..=1_000_000).doc("Number of connections, over all threads.");

/// Who sends when, for how long, and with which limits; the order is that of the manual pages.
pub const PACING: [Param; 17] = [
    Param::count("threads", 1, 0..=THREADS_MAX as i64)
        .doc("Number of event loops, each a thread; 0 takes one per allowed CPU."),
    Param::ints("cpus", &[], 0..=1023)
        .doc("CPUs to pin the threads to, round robin; an empty list leaves them to the system."),
    Param::choice("arrivals", "closed", &["closed", "constant", "poisson", "file"]).doc(
        "closed: a connection sends its next request after a response and think time; else \
         an open loop, with evenly spaced or Poisson arrivals or arrival times from a file.",
    ),
    Param::float("rate_per_s", 1000.0, 0.001..=RATE_MAX)
        .doc("Requests per second of an open loop; the initial rate of a ramp."),
    Param::ints("step_rates_per_s", &[], 1..=RATE_MAX as i64)
        .doc("Requests per second of equal parts of the duration; an empty list keeps one rate."),
    Param::float("ramp_end_per_s", 0.0, 0.0..=RATE_MAX)
        .doc("Requests per second at the end of a linear ramp; 0 keeps one rate."),
    Param::text("arrivals_file", "")
        .doc("File of arrival times: seconds since the start, one a line, ascending."),
    Param::int("think_ns", 0, 0..=HOUR_NS)
        .doc("Mean time from a response to the next request of a closed loop."),
    Param::choice("think_distribution", "fixed", &["fixed", "exponential"])
        .doc("Distribution of the think time."),
    Param::int("warmup_ns", 200_000_000, 0..=HOUR_NS)
        .doc("Time under load before the measured time."),
    load::DURATION.doc("Measured time, after the warm-up; 0 runs until stopped."),
    load::INTERVAL,
    Param::int("timeout_ns", 10_000_000_000, 1_000_000..=HOUR_NS)
        .doc("Time limit of a request from its start, connecting included."),
    Param::count("generators", 1, 1..=1000).doc(
        "Number of generators that share the load: each sends every n-th request of the schedule, \
         over its part of the connections.",
    ),
    Param::count("generator", 0, 0..=999)
        .doc("Number of this generator among them, from 0; plans that run them together set it."),
    Param::int("spin_ns", 0, 0..=10_000_000)
        .doc("Time of busy waiting before each request that has a set time, for precise sending."),
    Param::int("response_spin_ns", 8_000, 0..=10_000_000).doc(
        "Longest busy waiting for responses of a closed loop before a thread sleeps, on \
         threads that `cpus` pins; less often while it is in vain. 0 sleeps at once.",
    ),
];

/// Rate and latency of valid responses.
pub const RESPONSES: [Metric; 2] = [
    Metric::higher("requests_per_s")
        .headline()
        .doc("Valid responses per second of the measured time."),
    Metric::lower("latency_ns").histogram().headline().doc(
        "Time from the intended sending of a request to the end of its valid response; a \
         request that timed out or was not sent counts with the time that it waited, a lower bound.",
    ),
];

/// Other times of requests and connections.
pub const TIMES: [Metric; 4] = [
    Metric::lower("unanswered_ns").histogram().doc(
        "Time that requests without a response waited, from their intended sending to the time \
         limit or, of unsent ones, the end of the trial; these are among those of latency_ns.",
    ),
    Metric::lower("service_time_ns")
        .histogram()
        .doc("Time from the actual sending of a request to the end of its valid response."),
    Metric::lower("first_byte_ns")
        .histogram()
        .doc("Time from the actual sending of a request to the first byte of its response."),
    Metric::lower("connect_ns")
        .histogram()
        .doc("Time to open a TCP connection, those before the start included."),
];

/// What was offered, sent and received.
pub const COUNTS: [Metric; 6] = [
    Metric::neutral("due_count").doc(
        "Number of requests due, including warm-up: those with a valid response, and those that \
         errors_count has by kind.",
    ),
    Metric::neutral("pace_ratio").doc(
        "Rate at which requests ended, from the first to the last, relative to the rate at which \
         they were due; only of an open loop. Well below 1 where the server cannot keep up.",
    ),
    Metric::neutral("offered_per_s")
        .doc("Requests due per second of the measured time; only of an open loop."),
    Metric::neutral("received_bytes_per_s")
        .doc("Bytes of responses received per second of the measured time."),
    Metric::neutral("sent_count").doc("Number of requests sent, including warm-up."),
    Metric::neutral("completed_count").doc("Number of valid responses, including warm-up."),
];

/// Failures, the part of the generator itself, and what happened interval by interval.
pub const CHECKS: [Metric; 14] = [
    Metric::lower("errors_count").doc(
        "Number of failed requests by kind, including warm-up, and of times that the server sent \
             bytes that no request asked for (unasked_bytes); `any` is their sum.",
    ),
    Metric::lower("error_ratio").share().doc("Share of failed requests, including warm-up."),
    Metric::neutral("connections_count").doc("Number of connections opened."),
    Metric::lower("late_sends_ratio").share().doc(
        "Share of requests sent more than 1 ms after they were due and a connection was \
         free; only of requests that have a set time.",
    ),
    Metric::lower("send_delay_ns")
        .histogram()
        .doc("Time from when a request was due and a connection was free to its sending."),
    Metric::lower("generator_cpus").doc("CPU time of the generator per elapsed time."),
    Metric::lower("generator_cpu_ns").doc("CPU time of the generator per valid response."),
    Metric::lower("generator_busy_ratio").share().doc(
        "Share of a CPU that the busiest thread of the generator used, without its busy \
         waiting.",
    ),
    Metric::lower("generator_wait_ratio")
        .share()
        .doc("Share of time that the generator's threads waited for a CPU, on average."),
    Metric::higher("interval_requests_per_s")
        .series()
        .doc("Valid responses per second in each interval, including warm-up, at its end."),
    Metric::lower("interval_latency_p50_ns")
        .series()
        .doc("Median of latency_ns in each interval, at its end."),
    Metric::lower("interval_latency_p99_ns")
        .series()
        .doc("99th percentile of latency_ns in each interval, at its end."),
    Metric::lower("interval_latency_max_ns")
        .series()
        .doc("Maximum of latency_ns in each interval, at its end."),
    Metric::lower("interval_errors_count")
        .series()
        .doc("Number of failed requests in each interval, at its end."),
];

impl EngineSettings {
    /// Reads the parameters that every request generator has; the caller sets what is its own.
    pub fn of(trial: &Trial, address: SocketAddr) -> Result<Self> {
        let params = &trial.params;
        let share = share(params)?;
        let connections = share.part_of(params.size("connections"));
        let seed = parameters::seed(params);
        let threads = match params.size("threads") {
            0 => crate::trial::affinity::allowed().len(),
            threads => threads,
        };
        if threads > connections {
            return Err(ProbeError::usage(
                format!("{threads} threads cannot share {connections} connections."),
                "Set `threads` to at most the number of connections.",
            ));
        }
        Ok(Self {
            address,
            tls: None,
            share,
            connections,
            threads: load::places(trial, threads)?,
            depth: 1,
            connect_ahead: true,
            pacing: pacing(params, seed)?,
            warmup_ns: params.u64("warmup_ns"),
            duration_ns: load::duration_ns(trial)?,
            timeout_ns: params.u64("timeout_ns"),
            interval_ns: params.u64("interval_ns"),
            spin_ns: params.u64("spin_ns"),
            response_spin_ns: params.u64("response_spin_ns"),
            seed,
        })
    }
}

/// The generator's share; every generator needs a connection.
pub fn share(params: &Params) -> Result<LoadShare> {
    let share = LoadShare { number: params.size("generator"), of: params.size("generators") };
    if share.number >= share.of {
        return Err(ProbeError::usage(
            format!("There is no generator {} of {}: they count from 0.", share.number, share.of),
            "Set `generator` below `generators`.",
        ));
    }
    let connections = params.size("connections");
    if connections < share.of {
        return Err(ProbeError::usage(
            format!("{} generators cannot share {connections} connections.", share.of),
            "Set `connections` to at least the number of generators.",
        ));
    }
    Ok(share)
}

fn pacing(params: &Params, seed: u64) -> Result<Pacing> {
    let arrivals = params.text("arrivals");
    match arrivals {
        "closed" => {
            let exponential = params.text("think_distribution") == "exponential";
            Ok(Pacing::Closed(Think { mean_ns: params.u64("think_ns"), exponential }))
        }
        "file" => read_arrivals(params.text("arrivals_file")).map(Pacing::Open),
        _ => {
            let poisson = arrivals == "poisson";
            Ok(Pacing::Open(SendSchedule::Drawn { rate: rate(params)?, poisson, seed }))
        }
    }
}

/// The rate over the trial: a ramp and the steps begin after the warm-up.
fn rate(params: &Params) -> Result<RateProfile> {
    let (from_per_s, to_per_s) = (params.float("rate_per_s"), params.float("ramp_end_per_s"));
    let steps: Vec<f64> = params.ints("step_rates_per_s").iter().map(|rate| *rate as f64).collect();
    let (warmup_ns, duration_ns) = (params.u64("warmup_ns"), params.u64("duration_ns"));
    let changes = !steps.is_empty() || to_per_s > 0.0;
    if changes && (duration_ns == 0 || (!steps.is_empty() && to_per_s > 0.0)) {
        return Err(ProbeError::usage(
            "A rate changes in steps or in a ramp, over a set duration.",
            "Set `duration_ns`, and `step_rates_per_s` or `ramp_end_per_s`.",
        ));
    }
    if let Some(first) = steps.first() {
        let step_ns = (duration_ns / steps.len() as u64).max(1);
        let steps = steps.iter().map(|per_s| (*per_s, *per_s, step_ns));
        return Ok(RateProfile::linear(
            std::iter::once((*first, *first, warmup_ns.max(1))).chain(steps),
        ));
    }
    if changes {
        let warmup = (from_per_s, from_per_s, warmup_ns.max(1));
        return Ok(RateProfile::linear([warmup, (from_per_s, to_per_s, duration_ns)]));
    }
    Ok(RateProfile::constant(from_per_s))
}

fn read_arrivals(path: &str) -> Result<SendSchedule> {
    let refused = |why: String| {
        ProbeError::usage(
            format!("The arrival times in '{path}' cannot be used: {why}."),
            "Set `arrivals_file` to a file of seconds since the start, one a line, ascending.",
        )
    };
    if path.is_empty() {
        return Err(refused("no file is named".to_owned()));
    }
    let text = read_text(Path::new(path)).map_err(|error| refused(error.to_string()))?;
    parse_times(&text).map(SendSchedule::Times).map_err(refused)
}
