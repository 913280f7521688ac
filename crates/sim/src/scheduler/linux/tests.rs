//! Reservations and quotas in ticks, weights, and what must hold of any host.
use super::super::observer::VcpuObserver;
use super::super::{simulate, Domain, Host, Reservation, RunInterval, Scheduler, Workload};
use super::{LinuxSettings, Quota};
use crate::random::Distribution;
use crate::{Nanos, SECOND};
use proptest::prelude::*;

const MS: Nanos = 1_000_000;

fn host(processors: usize, domains: Vec<Domain>) -> Host {
    Host { processors, domains, scheduler: Scheduler::Linux(LinuxSettings::of(processors)) }
}

fn domain(weight: u32, cpus: &[usize]) -> Domain {
    let vcpus = vec![Workload::Spinning; cpus.len()];
    Domain { weight, cpus: cpus.to_vec(), vcpus, ..Domain::default() }
}

fn reserved(slice_ms: u64, period_ms: u64, phase_ms: u64) -> Domain {
    let (slice_ns, period_ns, phase_ns) = (slice_ms * MS, period_ms * MS, phase_ms * MS);
    let reservation = Some(Reservation { slice_ns, period_ns, phase_ns, extra: false });
    Domain { reservation, ..domain(100, &[0]) }
}

fn limited(cap: f64, period_ms: u64, phase_ms: u64, cpus: &[usize]) -> Domain {
    let (period_ns, phase_ns) = (period_ms * MS, phase_ms * MS);
    let quota_ns = (cap * period_ns as f64) as Nanos;
    let quota = Some(Quota { quota_ns, period_ns, burst_ns: 0, phase_ns });
    Domain { quota, ..domain(100, cpus) }
}

/// What each virtual CPU sees of ten seconds, after one.
fn observe_host(host: &Host) -> Vec<VcpuObserver> {
    let vcpus: usize = host.domains.iter().map(|domain| domain.vcpus.len()).sum();
    let (from, to) = (SECOND, 11 * SECOND);
    let mut all: Vec<VcpuObserver> = vec![VcpuObserver::new(from, to, MS / 10); vcpus];
    simulate(host, 1, to, 0, |run| all[run.vcpu].add(&run)).unwrap();
    all
}

/// Distribution of its runs in ms, and how often.
fn runs(host: &Host) -> Vec<(u64, u64)> {
    observe_host(host)[0].runs.pairs().map(|(length, count)| (length / MS, count)).collect()
}

fn close(host: &Host, wanted: &[f64], off: f64) {
    let shares: Vec<f64> = observe_host(host).iter().map(VcpuObserver::share).collect();
    assert!(shares.len() >= wanted.len());
    for (share, wanted) in shares.iter().zip(wanted) {
        assert!((share - wanted).abs() <= off, "{shares:?}, not {wanted:?}");
    }
}

/// 30 of 40 ms: enforcement waits for a tick, and the next period pays it back.
#[test]
fn a_reservation_runs_in_whole_ticks() {
    let (odd, even) = match runs(&host(1, vec![reserved(30, 40, 0)]))[..] {
        [(28, odd), (32, even)] => (odd, even),
        ref lengths => panic!("{lengths:?}"),
    };
    assert!(odd.abs_diff(even) <= 1, "{odd} and {even}");
    // Two ms after a tick, 30 ms end at a tick.
    assert_eq!(runs(&host(1, vec![reserved(30, 40, 2)])).len(), 1);
    for phase in 0..4 {
        // A window cuts a period: at most 10 ms of 10 s.
        close(&host(1, vec![reserved(30, 40, phase)]), &[0.75], 0.0011);
    }
}

#[test]
fn a_quota_runs_in_whole_ticks() {
    let pieces = runs(&host(1, vec![limited(0.5, 100, 0, &[0])]));
    assert_eq!(pieces.iter().map(|(run, _)| *run).collect::<Vec<_>>(), [48, 52]);
    close(&host(1, vec![limited(0.5, 100, 3, &[0])]), &[0.5], 0.003);
}

#[test]
fn a_quota_holds_for_all_virtual_cpus_together() {
    for (cap, period) in [(1.33, 31), (1.07, 28), (0.5, 20), (1.9, 100)] {
        for phase in [0, 1, 5] {
            let host = host(2, vec![limited(cap, period, phase, &[0, 1])]);
            let total: f64 = observe_host(&host).iter().map(VcpuObserver::share).sum();
            // A period more or less of ten seconds, and what each processor has taken ahead.
            let off = cap * period as f64 / 1e4 + 2.0 * 5.0 / 1e4;
            assert!((total - cap).abs() <= off, "{total} of {cap}");
        }
    }
}

/// Two processors that take slices of a quota at the same ticks leave the rest of it to one of them;
/// when something else wakes now and then, they take them at different moments and share it.
#[test]
fn other_wake_ups_even_out_the_rest_of_a_quota() {
    let apart = |period_ns: u64| {
        let mut host = host(2, vec![limited(1.13, 65, 1, &[0, 1])]);
        let settings = LinuxSettings { wakeup_interval_ns: period_ns, ..LinuxSettings::of(2) };
        host.scheduler = Scheduler::Linux(settings);
        let mut ends = [Vec::new(), Vec::new()];
        let mut last = [0; 2];
        simulate(&host, 1, 60 * SECOND, 0, |step| {
            let own_ends: &mut Vec<Nanos> = &mut ends[step.vcpu];
            if step.from > last[step.vcpu] {
                own_ends.push(last[step.vcpu]);
            }
            last[step.vcpu] = step.to;
        })
        .unwrap();
        let pairs = ends[0].iter().zip(&ends[1]);
        let off: Vec<Nanos> = pairs.map(|(left, right)| left.abs_diff(*right)).collect();
        assert!(off.len() > 900, "{}", off.len());
        let far = off.iter().filter(|off| **off > 6 * MS).count();
        far as f64 / off.len() as f64
    };
    let (alone, disturbed) = (apart(0), apart(12 * MS));
    // Nearly independent moments end two ticks apart in a tenth of periods, common ones in two fifths.
    assert!(alone > 0.3 && disturbed < 0.6 * alone, "{alone} and {disturbed}");
}

fn with(mut host: Host, change: impl Fn(&mut LinuxSettings)) -> Host {
    if let Scheduler::Linux(settings) = &mut host.scheduler {
        change(settings);
    }
    host
}

/// 2 ms 20 times a second are 4 % of a processor. Who is limited to half of it has his half all the
/// same: 50 ms take him 50 / 0.96 = 52.1, and he waits for the other 47.9.
#[test]
fn what_something_else_takes_is_charged_to_nobody() {
    let taking = |domains| {
        with(host(1, domains), |host| {
            (host.interruption_interval_ns, host.interruption_ns) = (50 * MS, 2 * MS)
        })
    };
    close(&taking(vec![domain(100, &[0])]), &[0.96], 0.01);
    close(&taking(vec![reserved(30, 40, 1)]), &[0.75], 0.0011);
    let limited = taking(vec![limited(0.5, 100, 3, &[0])]);
    close(&limited, &[0.5], 0.003);
    let seen = observe_host(&limited);
    let stops = seen[0].waits.pairs().filter(|(length, _)| *length > 30 * MS);
    let (total, count) =
        stops.fold((0, 0), |(total, all), (length, count)| (total + length * count, all + count));
    // In 100 periods the mean of sums of exponential lengths is off by 0.3 ms.
    let mean = total as f64 / count as f64 / MS as f64;
    assert!((95..=100).contains(&count) && (mean - 47.9).abs() < 0.9, "{mean} ms, {count}");
}

/// Work takes as long as it takes, beside another and with the processor taken now and then, and
/// nobody runs while it is taken.
#[test]
fn work_goes_on_after_what_something_else_takes() {
    let work = Workload::Periodic { period_ns: 50 * MS, work_ns: 10 * MS };
    let worker = Domain { vcpus: vec![work], ..domain(100, &[0]) };
    let host = with(host(1, vec![worker, domain(100, &[0])]), |host| {
        (host.interruption_interval_ns, host.interruption_ns) = (20 * MS, 3 * MS);
    });
    // 3 of 20 ms are taken; what is left is more than the worker needs.
    close(&host, &[0.2, 0.65], 0.015);
    let mut end = 0;
    simulate(&host, 1, 10 * SECOND, 0, |run| {
        assert!(run.from >= end && run.from < run.to, "{run:?} after {end}");
        end = run.to;
    })
    .unwrap();
}

#[test]
fn what_a_quota_has_not_used_is_saved_for_a_burst() {
    // 5 of 100 ms on average, in pieces of 40 ms every 800: within a quota of 10 and a burst of 10.
    let work = Workload::Periodic { period_ns: 800 * MS, work_ns: 40 * MS };
    let with = |burst_ms: u64| {
        let mut domain = limited(0.1, 100, 0, &[0]);
        domain.quota = domain.quota.map(|quota| Quota { burst_ns: burst_ms * MS, ..quota });
        domain.vcpus = vec![work.clone()];
        let mut ran = Vec::new();
        simulate(&host(1, vec![domain]), 1, 8 * SECOND, 0, |run| {
            ran.push((run.from, run.to));
        })
        .unwrap();
        // How long the third piece takes from its wake-up to its end.
        let third = ran.iter().filter(|(from, _)| (1600 * MS..2400 * MS).contains(from));
        third.map(|(_, to)| to - 1600 * MS).max().unwrap() / MS
    };
    let (without, burst) = (with(0), with(10));
    assert!(without > burst + 80, "{without} ms and {burst} ms");
}

#[test]
fn weights_divide_a_processor() {
    let two = |first, second| host(1, vec![domain(first, &[0]), domain(second, &[0])]);
    close(&two(100, 100), &[0.5, 0.5], 0.001);
    close(&two(300, 100), &[0.75, 0.25], 0.001);
    let three = host(1, vec![domain(300, &[0]), domain(50, &[0]), domain(50, &[0])]);
    close(&three, &[0.75, 0.125, 0.125], 0.001);
    // Equals take turns at every tick.
    assert_eq!(runs(&two(100, 100)).iter().max_by_key(|(_, count)| *count).unwrap().0, 4);
}

/// A machine's weight is shared by the processors on which it wants to run.
#[test]
fn a_machine_of_two_virtual_cpus_has_half_its_weight_on_each() {
    let host = host(2, vec![domain(200, &[0]), domain(200, &[0, 1])]);
    close(&host, &[2.0 / 3.0, 1.0 / 3.0, 1.0], 0.001);
}

#[test]
fn the_processor_of_a_reservation_is_free_for_others_meanwhile() {
    let host = host(1, vec![reserved(30, 40, 0), domain(100, &[0])]);
    close(&host, &[0.75, 0.25], 0.0011);
}

/// Three of 60 % on two processors: none stays on one, and all have theirs.
#[test]
fn reservations_go_where_they_may_run() {
    let host = host(2, vec![reserved(60, 100, 0), reserved(60, 100, 33), reserved(60, 100, 71)]);
    close(&host, &[0.6, 0.6, 0.6], 0.01);
    let mut seen = [[false; 2]; 3];
    simulate(&host, 1, 10 * SECOND, 0, |run| seen[run.vcpu][run.processor] = true).unwrap();
    assert!(seen.iter().any(|on| on[0] && on[1]), "{seen:?}");
}

/// One that sleeps runs soon after it wakes, whatever spins beside it: within the other's slice and
/// the tick that ends it.
#[test]
fn one_that_sleeps_waits_for_a_tick_at_most() {
    let work = Workload::Periodic { period_ns: 37 * MS, work_ns: MS };
    let sleeper = Domain { vcpus: vec![work], ..domain(100, &[0]) };
    let host = host(1, vec![sleeper, domain(100, &[0])]);
    let mut longest = 0;
    simulate(&host, 1, 10 * SECOND, 0, |run| {
        if run.vcpu == 0 {
            longest = longest.max(run.from % (37 * MS));
        }
    })
    .unwrap();
    assert!(longest <= 4 * MS, "{longest} ns");
}

#[test]
fn what_linux_refuses_is_refused() {
    let refused =
        |domains: Vec<Domain>| simulate(&host(1, domains), 1, SECOND, 0, |_| {}).unwrap_err();
    assert!(refused(vec![domain(0, &[0])]).message.contains("weight"));
    assert!(refused(vec![domain(10_001, &[0])]).message.contains("weight"));
    assert!(refused(vec![reserved(50, 40, 0)]).message.contains("50 ms in 40 ms"));
    assert!(refused(vec![reserved(39, 40, 0)]).message.contains("98 %"));
    assert!(refused(vec![limited(0.01, 20, 0, &[0])]).message.contains("quota"));
    assert!(refused(vec![limited(0.5, 2000, 0, &[0])]).message.contains("2000 ms"));
}

fn workload() -> impl Strategy<Value = Workload> {
    prop_oneof![
        Just(Workload::Spinning),
        (5u64..50, 1u64..30).prop_map(|(every, work)| Workload::Periodic {
            period_ns: every * MS,
            work_ns: work * MS
        }),
        (1e5f64..2e7, 1e5f64..2e7).prop_map(|(work, sleep)| Workload::Bursty {
            work: Distribution::Exponential(work),
            sleep: Distribution::Exponential(sleep),
        }),
    ]
}

fn any_domain() -> impl Strategy<Value = Domain> {
    let quota = prop::option::of((0.1f64..1.5, 5u64..100, 0u64..5));
    let reservation = prop::option::weighted(0.2, (1u64..5, 10u64..60));
    (1u32..1000, prop::collection::vec(workload(), 1..3), quota, reservation).prop_map(
        |(weight, vcpus, quota, reservation)| {
            let mut drawn = match (quota, reservation) {
                (_, Some((slice, period))) => reserved(slice, period, slice),
                (Some((cap, period, phase)), _) => limited(cap.max(0.3), period, phase, &[0]),
                _ => domain(weight, &[0]),
            };
            drawn.cpus = Vec::new();
            Domain { weight, vcpus, ..drawn }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Nobody runs twice at once, no processor runs two at once, no time is lost that somebody
    /// without a quota could use, and the same seed gives the same.
    #[test]
    fn whatever_runs(domains in prop::collection::vec(any_domain(), 1..5), processors in 1usize..3) {
        let host = host(processors, domains);
        // A few of the hosts promise more than there is.
        prop_assume!(super::check(&host).is_ok());
        let length = 2 * SECOND;
        let mut all = Vec::new();
        simulate(&host, 3, length, 0, |run| all.push(run)).unwrap();
        let mut again = Vec::new();
        simulate(&host, 3, length, 0, |run| again.push(run)).unwrap();
        prop_assert_eq!(&all, &again);
        let mut processor_ends = vec![0; processors];
        let mut ran = vec![0; host.vcpus().len()];
        let mut vcpu_ends = vec![0; ran.len()];
        for RunInterval { vcpu, processor, from, to } in all {
            prop_assert!(from >= processor_ends[processor] && from >= vcpu_ends[vcpu] && from < to);
            (processor_ends[processor], vcpu_ends[vcpu]) = (to, to);
            ran[vcpu] += to - from;
        }
        let (homes, of): (Vec<_>, Vec<_>) = host.vcpus().into_iter().unzip();
        for (home, end) in processor_ends.iter().enumerate() {
            let greedy = (0..ran.len()).any(|vcpu| {
                let domain = &host.domains[of[vcpu]];
                let number = vcpu - of.iter().position(|home| *home == of[vcpu]).unwrap();
                let spins = matches!(domain.vcpus[number], Workload::Spinning);
                spins && homes[vcpu] == home && domain.quota.is_none() && domain.reservation.is_none()
            });
            if greedy {
                prop_assert_eq!(*end, length);
            }
        }
        for (number, domain) in host.domains.iter().enumerate() {
            let Some(quota) = domain.quota else { continue };
            let machine_ns: u64 = (0..ran.len()).filter(|vcpu| of[*vcpu] == number).map(|vcpu| ran[vcpu]).sum();
            // Each period's quota, the one at the beginning too, and a tick too much on each processor.
            let periods = length / quota.period_ns + 2;
            prop_assert!(machine_ns <= periods * quota.quota_ns + processors as u64 * 4 * MS);
        }
    }
}
