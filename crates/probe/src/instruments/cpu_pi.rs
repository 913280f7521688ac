//! # What it measures
//! Integer arithmetic: digits of π on 1 to N threads, without memory traffic, system calls or
//! special instructions. Over thread counts it is the scaling curve: the effect of sibling threads,
//! the shared clock limit and neighbours.
//!
//! # How
//! Each thread is pinned to a CPU and computes `digits` decimals `repeats` times by Machin's
//! formula, 16 arctan(1/5) - 4 arctan(1/239), in fixed point of base 10^9: 64-bit divisions,
//! multiplications and additions over some kilobytes. All threads start together; the rate is all
//! digits over the time from the first start to the last end.
//!
//! # Known truth
//! Every digit of every thread is checked: the first 50 against the constant, all against a digest
//! (default length) or against Størmer's formula, computed outside the measurement. A wrong digit
//! is an error. The tests derive the digests with both formulas.
//!
//! # Cross-check
//! `pi_digits_per_s` of one thread is `digits` over `pi_time_ns`. Under a CPU quota the rate falls
//! in proportion to the CPU share of `cpu.gaps`.
//!
//! # Overhead
//! One CPU per thread for `repeats` times about 100 ms at the default length; other lengths cost
//! one more computation outside the measurement.
//!
//! # Caveats
//! 64-bit division dominates, whose cost differs between CPU generations. Threads beyond the
//! allowed CPUs share them.
use crate::error::{wrong_result, Result};
mod pi;

use crate::threads::team::{self, ThreadPlacement};
use crate::trial::factors;
use crate::trial::session::Session;
use crate::trial::Trial;
use nephoscope_linux::clock;
use nephoscope_wire::meaning::{Contended, Headline, Literal, Victim};
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use pi::{Pi, MACHIN, STORMER};
use sha2::{Digest, Sha256};

/// About 100 ms on a core of 2.5 GHz.
const DEFAULT_DIGITS: usize = 10_000;

pub const SPEC: Spec = Spec {
    id: "cpu.pi",
    summary: "Integer arithmetic: digits of π on 1 to N threads",
    params: &[
        Param::count("digits", DEFAULT_DIGITS as i64, 50..=200_000)
            .doc("Number of decimals; the time grows with their square."),
        team::THREADS,
        Param::count("repeats", 1, 1..=10_000).doc("Number of computations per thread."),
    ],
    metrics: &[
        Metric::higher("pi_digits_per_s")
            .headline()
            .scales_with_threads()
            .in_summary(
                Headline::of("Digits of π, one thread")
                    .prefer(&[("threads", Literal::Text("minimum"))])
                    .without(&["threads"]),
            )
            .doc("Digits of all threads per second, from the first start to the last end."),
        Metric::lower("pi_time_ns").doc("Elapsed time of one computation of one thread."),
    ],
    overhead: "occupies one CPU per thread, 100 ms per repeat by default",
    source: "Machin 1706; seed workload of digits-of-π benchmarks (Nadeem 2015, Super PI kind)",
    victim_for: &[Victim {
        resource: Contended::Cpu,
        metric: "pi_digits_per_s",
        params: &[
            ("threads", Literal::Int(1)),
            ("digits", Literal::Int(10_000)),
            ("repeats", Literal::Int(2)),
        ],
    }],
    ..Spec::about(Resource::Cpu)
};

const FIRST: &str = "14159265358979323846264338327950288419716939937510";

/// SHA-256 of the first so many decimals as text; the tests derive them with two formulas.
const KNOWN: &[(usize, &str)] =
    &[(10_000, "7406a2be66766f832c8d1e1b66491ef7b2f366b0393d21c4684181044b507ab5")];

struct PiWork {
    pi: Pi,
    times_ns: Vec<u64>,
}

pub fn run(trial: &mut Trial) -> Result<()> {
    let digits = trial.params.size("digits");
    let repeats = trial.params.size("repeats");
    let session = trial.session;
    let placement = ThreadPlacement::of(trial)?;
    let prepare = |_| Ok(PiWork { pi: Pi::prepare(session, digits), times_ns: vec![1; repeats] });
    let compute = |_, work: &mut PiWork| {
        for time_ns in &mut work.times_ns {
            let started_ns = clock::monotonic_ns();
            work.pi.compute(MACHIN)?;
            *time_ns = clock::monotonic_ns() - started_ns;
        }
        Ok(())
    };
    let members = team::run_behind(|| trial.prepared(), &placement, prepare, compute)?;
    let reference = reference(session, digits)?;
    for member in &members {
        verify(&member.state.pi, &reference)?;
        for time_ns in &member.state.times_ns {
            trial.out.emit("pi_time_ns", *time_ns as f64, member.factors())?;
        }
    }
    let total = (digits * repeats * members.len()) as f64;
    let rate = total / (team::window_ns(&members) as f64 / 1e9);
    trial.out.emit("pi_digits_per_s", rate, factors! {})
}

fn reference(session: Session, digits: usize) -> Result<String> {
    if let Some((_, digest)) = KNOWN.iter().find(|(known, _)| *known == digits) {
        return Ok((*digest).to_owned());
    }
    let mut pi = Pi::prepare(session, digits);
    pi.compute(STORMER)?;
    Ok(digest(&pi.decimals()))
}

fn digest(decimals: &str) -> String {
    Sha256::digest(decimals).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn verify(pi: &Pi, reference: &str) -> Result<()> {
    let decimals = pi.decimals();
    if pi.whole() == 3 && decimals.starts_with(FIRST) && digest(&decimals) == reference {
        return Ok(());
    }
    let message =
        format!("This machine computed wrong digits of π (of {} decimals).", decimals.len());
    Err(wrong_result("wrong_digits", message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machin(digits: usize) -> Pi {
        let mut pi = Pi::prepare(Session::detached(), digits);
        pi.compute(MACHIN).unwrap();
        pi
    }

    #[test]
    fn the_known_digests_follow_from_two_formulas() {
        for (digits, known) in KNOWN {
            let mut stormer = Pi::prepare(Session::detached(), *digits);
            stormer.compute(STORMER).unwrap();
            assert_eq!(digest(&machin(*digits).decimals()), *known);
            assert_eq!(digest(&stormer.decimals()), *known);
        }
    }

    #[test]
    fn the_well_known_digits_stand_where_they_do() {
        let decimals = machin(10_000).decimals();
        assert!(decimals.starts_with(FIRST));
        // Six nines from decimal 762 on (the Feynman point).
        assert_eq!(&decimals[761..767], "999999");
        assert_eq!(&decimals[990..1000], "2164201989");
        assert_eq!(&decimals[9990..], "5256375678");
    }

    #[test]
    fn a_wrong_digit_is_an_error() {
        let reference = reference(Session::detached(), 100).unwrap();
        verify(&machin(100), &reference).unwrap();
        let error = verify(&machin(101), &reference).unwrap_err();
        assert_eq!(error.name, "wrong_digits");
    }
}
