//! Closed forms of queues, with which simulations are compared. Rates per second, times in seconds.
//!
//! Sources: Kleinrock, Queueing Systems I (1975), chapters 3 and 5; Harchol-Balter, Performance
//! Modeling and Design of Computer Systems (2013), chapters 14, 22, 23.

/// Returns the probability that an arrival waits at `servers` servers with an offered load of `load` =
/// rate times service time (Erlang's C). NaN at or above saturation.
pub fn erlang_c(servers: u32, load: f64) -> f64 {
    let c = f64::from(servers);
    if load >= c {
        return f64::NAN;
    }
    // Erlang's B by its recursion, which neither overflows nor loses digits.
    let blocked = (1..=servers).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
    c * blocked / (c - load * (1.0 - blocked))
}

/// Returns the mean response time of M/M/c.
pub fn mmc_response(servers: u32, rate: f64, service: f64) -> f64 {
    let load = rate * service;
    service + erlang_c(servers, load) * service / (f64::from(servers) - load)
}

/// Returns the mean response time of M/G/1 in order of arrival (Pollaczek-Khinchine).
/// variation2: squared coefficient of variation of the service time.
pub fn mg1_response(rate: f64, service: f64, variation2: f64) -> f64 {
    let load = rate * service;
    service + load * service * (1.0 + variation2) / (2.0 * (1.0 - load))
}

/// Returns the mean response time of M/G/1 with processor sharing, which depends on the mean service time
/// only.
pub fn mg1_sharing_response(rate: f64, service: f64) -> f64 {
    service / (1.0 - rate * service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_cases_agree() {
        let (rate, service) = (0.8, 1.0);
        assert!((mmc_response(1, rate, service) - 5.0).abs() < 1e-12);
        assert!((mg1_response(rate, service, 1.0) - 5.0).abs() < 1e-12);
        assert!((mg1_response(rate, service, 0.0) - 3.0).abs() < 1e-12);
        assert!((mg1_sharing_response(rate, service) - 5.0).abs() < 1e-12);
        // Two servers: C = 2 rho^2/(1 + rho).
        assert!((erlang_c(2, 1.6) - 2.0 * 0.64 / 1.8).abs() < 1e-12);
        assert!((mmc_response(50, 40.0, 1.0) - 1.0087).abs() < 5e-5);
        assert!(erlang_c(2, 2.0).is_nan());
    }
}
