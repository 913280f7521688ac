//! # What it measures
//! The response time of one queue: arrivals, a service time, equal servers. It is what every larger
//! model here is made of, and the simulation that can be held against formulas.
//!
//! # How
//! A discrete-event simulation in whole nanoseconds, from empty until the last of `requests`
//! requests has been served. `fifo` serves in order of arrival, each request by one server to its
//! end; `sharing` serves all at once, equally. Arrivals are `poisson`, `constant` or `bursts` of
//! `burst_count` at one moment; service times `exponential`, `constant`, `erlang` (of four stages),
//! `hyper` (a tenth of the requests, eleven times as long as the others) or `log_normal` with the
//! coefficient of variation `variation_ratio`.
//!
//! # Known truth
//! `exact_response_time_ns` is the mean by formula, where there is one for Poisson arrivals: M/M/c,
//! M/G/1 in order of arrival (Pollaczek and Khinchine), M/G/1 shared. The tests ask that the 99 %
//! interval over replications holds it. `little_ratio`, mean number inside over arrival rate times
//! mean response, is 1 in every run but for rounding to nanoseconds.
//!
//! # Cross-check
//! Any simulator of queues: SimPy, salabim, NeXosim.
//!
//! # Overhead
//! One CPU: a million requests take some tenths of a second.
//!
//! # Caveats
//! It begins empty, so that a run of few requests close to saturation has too low a mean. A queue
//! that is offered more than it can serve is refused before it runs.
use super::{leading, metric, SimError, SEED};
use crate::cli::trial::{whole, Factors, Trial};
use nephoscope_sim::arrivals::Arrivals;
use nephoscope_sim::queue::{Discipline, Queue, Seen, Service};
use nephoscope_sim::random::Lengths;
use nephoscope_sim::{theory, SECOND};
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Better, Kind, Param, Shape, Spec, Unit};

/// Declaration.
pub const SPEC: Spec = Spec {
    id: "sim.queue",
    summary: "A simulated queue beside its closed form",
    params: &[
        Param {
            id: "servers",
            unit: Unit::Count,
            kind: Kind::Int { default: 1, min: 1, max: 1_000_000 },
            doc: "Equal servers.",
        },
        Param {
            id: "arrivals_per_s",
            unit: Unit::PerS,
            kind: Kind::Float { default: 800.0, min: 1e-9, max: 1e9 },
            doc: "Mean rate of requests.",
        },
        Param {
            id: "arrivals",
            unit: Unit::None,
            kind: Kind::Choice { default: "poisson", choices: &["poisson", "constant", "bursts"] },
            doc: "How they come.",
        },
        Param {
            id: "burst_count",
            unit: Unit::Count,
            kind: Kind::Int { default: 10, min: 1, max: 1_000_000 },
            doc: "Requests of a burst.",
        },
        Param {
            id: "service_ns",
            unit: Unit::Ns,
            kind: Kind::Float { default: 1e6, min: 1.0, max: 1e15 },
            doc: "Mean time that a request needs of one server.",
        },
        Param {
            id: "service",
            unit: Unit::None,
            kind: Kind::Choice {
                default: "exponential",
                choices: &["exponential", "constant", "erlang", "hyper", "log_normal"],
            },
            doc: "How that time is spread.",
        },
        Param {
            id: "variation_ratio",
            unit: Unit::Ratio,
            kind: Kind::Float { default: 1.5, min: 0.01, max: 100.0 },
            doc: "Coefficient of variation of a log-normal service time.",
        },
        Param {
            id: "discipline",
            unit: Unit::None,
            kind: Kind::Choice { default: "fifo", choices: &["fifo", "sharing"] },
            doc: "How the servers serve.",
        },
        Param {
            id: "requests",
            unit: Unit::Count,
            kind: Kind::Int { default: 400_000, min: 1, max: 10_000_000_000 },
            doc: "Requests of a replication.",
        },
        SEED,
    ],
    metrics: &[
        leading(metric(
            "response_time_mean_ns",
            Unit::Ns,
            Better::Lower,
            Shape::Scalar,
            "Mean time from arrival to end.",
        )),
        metric(
            "exact_response_time_ns",
            Unit::Ns,
            Better::None,
            Shape::Scalar,
            "The same by formula, where there is one.",
        ),
        metric(
            "response_time_ns",
            Unit::Ns,
            Better::Lower,
            Shape::Histogram,
            "Times from arrival to end.",
        ),
        metric(
            "utilisation_ratio",
            Unit::Ratio,
            Better::None,
            Shape::Scalar,
            "Work offered over what the servers can do.",
        ),
        metric(
            "little_ratio",
            Unit::Ratio,
            Better::None,
            Shape::Scalar,
            "Mean number inside over rate times mean response: 1 by Little's law.",
        ),
        metric("events_count", Unit::Count, Better::None, Shape::Scalar, "Events simulated."),
    ],
    overhead: "one CPU for some tenths of a second a million requests",
    source: "Kleinrock, Queueing Systems I (1975); Harchol-Balter, Performance Modeling (2013)",
    two_sided: false,
    load: false,
};

/// Stages of `erlang`.
const STAGES: u32 = 4;
/// `hyper`: that part of the requests is so many times as long as the others.
const LONG: (f64, f64) = (0.1, 11.0);

/// One replication.
pub fn run(trial: &mut Trial) -> Result<(), SimError> {
    let queue = queue(&trial.params)?;
    queue.check()?;
    trial.prepared()?;
    let seen = queue.run(trial.seed(), 0)?;
    tell(trial, &queue, &seen)
}

fn queue(params: &Params) -> Result<Queue, SimError> {
    let rate = params.float("arrivals_per_s");
    let arrivals = match params.text("arrivals") {
        "constant" => Arrivals::constant(rate)?,
        "bursts" => Arrivals::bursts(whole(params, "burst_count") as u32, rate)?,
        _ => Arrivals::poisson(rate)?,
    };
    let mean = params.float("service_ns");
    let service = match params.text("service") {
        "constant" => Lengths::Constant(mean),
        "erlang" => Lengths::Erlang(STAGES, mean),
        "hyper" => {
            let short = mean / (1.0 - LONG.0 + LONG.0 * LONG.1);
            Lengths::Hyper(LONG.0, LONG.1 * short, short)
        }
        "log_normal" => Lengths::log_normal(mean, params.float("variation_ratio"))?,
        _ => Lengths::Exponential(mean),
    };
    let sharing = params.text("discipline") == "sharing";
    Ok(Queue {
        arrivals,
        service: Service(service),
        discipline: if sharing { Discipline::Sharing } else { Discipline::Fifo },
        servers: whole(params, "servers") as u32,
        requests: whole(params, "requests"),
    })
}

/// Mean response by formula; None where there is none.
fn exact_ns(params: &Params, queue: &Queue) -> Option<f64> {
    let Arrivals::Poisson { per_s } = queue.arrivals else { return None };
    let service_s = queue.service.0.mean_ns() / SECOND as f64;
    let variation2 = match queue.service.0 {
        Lengths::Constant(_) => 0.0,
        Lengths::Exponential(_) => 1.0,
        Lengths::Erlang(stages, _) => 1.0 / f64::from(stages),
        Lengths::Hyper(share, long, short) => {
            let mean = share * long + (1.0 - share) * short;
            2.0 * (share * long * long + (1.0 - share) * short * short) / (mean * mean) - 1.0
        }
        Lengths::LogNormal(..) => params.float("variation_ratio").powi(2),
        Lengths::Uniform(..) => return None,
    };
    let response_s = match (queue.discipline, queue.servers, queue.service.0) {
        (Discipline::Fifo, servers, Lengths::Exponential(_)) => {
            theory::mmc_response(servers, per_s, service_s)
        }
        (Discipline::Fifo, 1, _) => theory::mg1_response(per_s, service_s, variation2),
        (Discipline::Sharing, 1, _) => theory::mg1_sharing_response(per_s, service_s),
        _ => return None,
    };
    Some(response_s * SECOND as f64)
}

fn tell(trial: &mut Trial, queue: &Queue, seen: &Seen) -> Result<(), SimError> {
    let none = Factors::new;
    let exact = exact_ns(&trial.params, queue);
    let scalars = [
        ("response_time_mean_ns", seen.response.moments().mean()),
        ("exact_response_time_ns", exact),
        ("utilisation_ratio", queue.utilisation()),
        ("little_ratio", seen.little_ratio()),
        ("events_count", Some(seen.events as f64)),
    ];
    for (metric, value) in scalars {
        if let Some(value) = value {
            trial.emit(metric, value, 1, none())?;
        }
    }
    for (value, count) in seen.response.pairs() {
        trial.emit("response_time_ns", value, count, none())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn given(values: serde_json::Value) -> (Params, Queue) {
        let params = Params::check(&SPEC, values.as_object().unwrap()).unwrap();
        let queue = queue(&params).unwrap();
        (params, queue)
    }

    #[test]
    fn formulas_are_those_of_the_queue() {
        // rho = 0.8, S = 1 ms: M/M/1 and every shared queue 5 ms, M/D/1 3 ms.
        for (values, wanted) in [
            (json!({}), Some(5e6)),
            (json!({"service": "constant"}), Some(3e6)),
            (json!({"service": "hyper", "discipline": "sharing"}), Some(5e6)),
            (json!({"service": "constant", "servers": 2}), None),
            (json!({"arrivals": "bursts"}), None),
        ] {
            let (params, queue) = given(values.clone());
            let exact = exact_ns(&params, &queue);
            assert_eq!(exact.map(|ns| ns.round()), wanted, "{values}");
        }
    }

    #[test]
    fn the_mean_of_every_service_is_the_one_that_was_asked_for() {
        for word in ["exponential", "constant", "erlang", "hyper", "log_normal"] {
            let (_, queue) = given(json!({"service": word, "service_ns": 7e5}));
            assert!((queue.service.0.mean_ns() - 7e5).abs() < 1e-6, "{word}");
        }
    }
}
