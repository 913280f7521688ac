//! # What it measures
//! The response time of one queue: arrivals, service times, equal servers. All larger models consist of
//! queues, and this one can be compared with closed forms.
//!
//! # How
//! A discrete-event simulation in whole nanoseconds, from empty until the last of `requests` requests has
//! been served. `fifo` serves in order of arrival, each request on one server to its end; `sharing` serves
//! all at once, equally. Arrivals are `poisson`, `constant` or `bursts` of `burst_count` simultaneous
//! requests; service times `exponential`, `constant`, `erlang` (of four stages), `hyper` (a tenth of the
//! requests, eleven times as long as the others) or `log_normal` with the coefficient of variation
//! `variation_ratio`.
//!
//! # Known truth
//! `exact_response_time_ns` is the mean in closed form, if there is one for Poisson arrivals: M/M/c, M/G/1
//! in order of arrival (Pollaczek-Khinchine), M/G/1 with processor sharing. The tests require that the 99 %
//! interval over replications contains it. `little_ratio`, mean number in the system over arrival rate
//! times mean response, is 1 in every run except for rounding to nanoseconds.
//!
//! # Cross-check
//! Any simulator of queues: SimPy, salabim, NeXosim.
//!
//! # Overhead
//! One CPU: a million requests take some tenths of a second.
//!
//! # Caveats
//! It starts empty, so that a run of few requests close to saturation underestimates the mean. A queue that
//! is offered more than its capacity is refused before it runs.
use super::SEED;
use crate::cli::trial::SimulationTrial;
use nephoscope_sim::arrivals::Arrivals;
use nephoscope_sim::queue::{Discipline, Queue};
use nephoscope_sim::random::Distribution;
use nephoscope_sim::{closed_forms, SECOND};
use nephoscope_wire::error::Error;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use nephoscope_wire::writer::Factors;

pub const SPEC: Spec = Spec {
    id: "sim.queue",
    summary: "Response time of a simulated queue, compared with its closed form",
    params: &[
        Param::count("servers", 1, 1..=1_000_000).doc("Number of equal servers."),
        Param::float("arrivals_per_s", 800.0, 1e-9..=1e9).doc("Mean arrival rate of requests."),
        Param::choice("arrivals", "poisson", &["poisson", "constant", "bursts"])
            .doc("Arrival process."),
        Param::count("burst_count", 10, 1..=1_000_000).doc("Number of requests of a burst."),
        Param::float("service_ns", 1e6, 1.0..=1e15).doc("Mean service time of a request."),
        Param::choice(
            "service",
            "exponential",
            &["exponential", "constant", "erlang", "hyper", "log_normal"],
        )
        .doc("Distribution of the service time."),
        Param::float("variation_ratio", 1.5, 0.01..=100.0)
            .doc("Coefficient of variation of a log-normal service time."),
        Param::choice("discipline", "fifo", &["fifo", "sharing"]).doc("Order of service."),
        Param::count("requests", 400_000, 1..=10_000_000_000)
            .doc("Number of requests of a replication."),
        SEED,
    ],
    metrics: &[
        Metric::lower("response_time_mean_ns")
            .headline()
            .doc("Mean time from arrival to completion."),
        Metric::neutral("exact_response_time_ns").doc("The same in closed form, if there is one."),
        Metric::lower("response_time_ns").histogram().doc("Times from arrival to completion."),
        Metric::neutral("utilisation_ratio").doc("Offered load over the capacity of the servers."),
        Metric::neutral("little_ratio")
            .doc("Mean number in the system over rate times mean response: 1 by Little's law."),
        Metric::neutral("events_count").doc("Number of simulated events."),
    ],
    overhead: "one CPU for some tenths of a second a million requests",
    source: "Kleinrock, Queueing Systems I (1975); Harchol-Balter, Performance Modeling (2013)",
    ..Spec::about(Resource::None)
};

/// Stages of `erlang`.
const STAGES: u32 = 4;
/// `hyper`: share of long requests, and their length relative to the others.
const LONG: (f64, f64) = (0.1, 11.0);

pub fn run(trial: &mut SimulationTrial) -> Result<(), Error> {
    let queue = queue(&trial.params)?;
    queue.check()?;
    trial.start()?;
    let outcome = queue.run(trial.seed(), 0)?;
    let exact_ns = exact_ns(&trial.params, &queue);
    trial.emit_all(|sink| {
        sink.scalar("response_time_mean_ns", &[], outcome.response.moments().mean());
        sink.scalar("exact_response_time_ns", &[], exact_ns);
        sink.scalar("utilisation_ratio", &[], queue.utilisation());
        sink.scalar("little_ratio", &[], outcome.little_ratio());
        sink.scalar("events_count", &[], outcome.events as f64);
    })?;
    trial.writer.emit_pairs("response_time_ns", outcome.response.pairs(), &Factors::new())
}

fn queue(params: &Params) -> Result<Queue, Error> {
    let rate = params.float("arrivals_per_s");
    let mean = params.float("service_ns");
    Ok(Queue {
        arrivals: match params.text("arrivals") {
            "constant" => Arrivals::constant(rate)?,
            "bursts" => Arrivals::bursts(params.size("burst_count") as u32, rate)?,
            _ => Arrivals::poisson(rate)?,
        },
        service: match params.text("service") {
            "constant" => Distribution::Constant(mean),
            "erlang" => Distribution::Erlang(STAGES, mean),
            "hyper" => {
                let short = mean / (1.0 - LONG.0 + LONG.0 * LONG.1);
                Distribution::Hyper(LONG.0, LONG.1 * short, short)
            }
            "log_normal" => Distribution::log_normal(mean, params.float("variation_ratio"))?,
            _ => Distribution::Exponential(mean),
        },
        discipline: match params.text("discipline") {
            "sharing" => Discipline::Sharing,
            _ => Discipline::Fifo,
        },
        servers: params.size("servers") as u32,
        requests: params.size("requests") as u64,
    })
}

/// Returns the mean response in closed form; None if there is none.
fn exact_ns(params: &Params, queue: &Queue) -> Option<f64> {
    let Arrivals::Poisson { per_s } = queue.arrivals else { return None };
    let service_s = queue.service.mean_ns() / SECOND as f64;
    let variation_squared = match queue.service {
        Distribution::Constant(_) => 0.0,
        Distribution::Exponential(_) => 1.0,
        Distribution::Erlang(stages, _) => 1.0 / f64::from(stages),
        Distribution::Hyper(share, long, short) => {
            let mean = share * long + (1.0 - share) * short;
            2.0 * (share * long * long + (1.0 - share) * short * short) / (mean * mean) - 1.0
        }
        Distribution::LogNormal(..) => params.float("variation_ratio").powi(2),
    };
    let response_s = match (queue.discipline, queue.servers, queue.service) {
        (Discipline::Fifo, servers, Distribution::Exponential(_)) => {
            closed_forms::mmc_response(servers, per_s, service_s)
        }
        (Discipline::Fifo, 1, _) => closed_forms::mg1_response(per_s, service_s, variation_squared),
        (Discipline::Sharing, 1, _) => closed_forms::mg1_sharing_response(per_s, service_s),
        _ => return None,
    };
    Some(response_s * SECOND as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parsed_queue(values: serde_json::Value) -> (Params, Queue) {
        let params = Params::check(&SPEC, values.as_object().unwrap()).unwrap();
        let queue = queue(&params).unwrap();
        (params, queue)
    }

    #[test]
    fn closed_forms_fit_the_queue() {
        // rho = 0.8, S = 1 ms: M/M/1 and every shared queue 5 ms, M/D/1 3 ms.
        for (values, wanted) in [
            (json!({}), Some(5e6)),
            (json!({"service": "constant"}), Some(3e6)),
            (json!({"service": "hyper", "discipline": "sharing"}), Some(5e6)),
            (json!({"service": "constant", "servers": 2}), None),
            (json!({"arrivals": "bursts"}), None),
        ] {
            let (params, queue) = parsed_queue(values.clone());
            let exact = exact_ns(&params, &queue);
            assert_eq!(exact.map(|ns| ns.round()), wanted, "{values}");
        }
    }

    #[test]
    fn every_service_has_the_given_mean() {
        for word in ["exponential", "constant", "erlang", "hyper", "log_normal"] {
            let (_, queue) = parsed_queue(json!({"service": word, "service_ns": 7e5}));
            assert!((queue.service.mean_ns() - 7e5).abs() < 1e-6, "{word}");
        }
    }
}
