//! Shares and lengths against the tables of a published emulation and of the models' own arithmetic.
use super::observer::VcpuObserver;
use super::{simulate, BvtSettings, Domain, Host, Reservation, RunInterval, Scheduler, Workload};
use crate::random::Distribution;
use crate::{Nanos, SECOND};

const MS: Nanos = 1_000_000;

/// What each virtual CPU sees of a minute, after ten seconds.
fn observe_host(host: &Host) -> Vec<VcpuObserver> {
    let vcpus: usize = host.domains.iter().map(|domain| domain.vcpus.len()).sum();
    let (from, to) = (10 * SECOND, 70 * SECOND);
    let mut all = vec![VcpuObserver::new(from, to, MS); vcpus];
    simulate(host, 1, to, 0, |run| all[run.vcpu].add(&run)).unwrap();
    all
}

fn spinning(n: usize) -> Vec<Workload> {
    vec![Workload::Spinning; n]
}

fn capped(weight: u32, cap: u32, n: usize) -> Domain {
    Domain { weight, cap, vcpus: spinning(n), ..Domain::default() }
}

fn reserved(slice_ms: u64, period_ms: u64, n: usize) -> Domain {
    let (slice_ns, period_ns) = (slice_ms * MS, period_ms * MS);
    let reservation = Some(Reservation { slice_ns, period_ns, extra: false, phase_ns: 0 });
    Domain { reservation, vcpus: spinning(n), ..Domain::default() }
}

fn host(scheduler: Scheduler, processors: usize, domains: Vec<Domain>) -> Host {
    Host { processors, domains, scheduler }
}

/// Shares in per cent within 0.2 points.
fn shares(host: &Host, wanted: &[f64]) {
    let shares: Vec<f64> =
        observe_host(host).iter().map(|observed| observed.share() * 100.0).collect();
    for (share, wanted) in shares.iter().zip(wanted) {
        assert!((share - wanted).abs() <= 0.2, "{shares:?}");
    }
}

/// The only length of each kind, in ms.
fn modes(host: &Host) -> (u64, u64, u64) {
    let seen = &observe_host(host)[0];
    let only = |lengths: &super::observer::LengthCounts| {
        let (length, count) = lengths.pairs().max_by_key(|pair| (pair.1, pair.0)).unwrap();
        let share = count as f64 / lengths.pairs().map(|pair| pair.1).sum::<u64>() as f64;
        assert!(share > 0.99, "{lengths:?}");
        length / MS
    };
    (only(&seen.runs), only(&seen.waits), only(&seen.periods))
}

#[test]
fn sedf_rows() {
    for (slice, period) in [(30, 40), (150, 210)] {
        let share = 100.0 * slice as f64 / period as f64;
        for n in [1, 2] {
            let host = host(Scheduler::Sedf, 4, vec![reserved(slice, period, n)]);
            shares(&host, &[share, share]);
            assert_eq!(modes(&host), (slice, period - slice, period));
        }
    }
}

#[test]
fn credit_rows() {
    for (weight, cap, two) in
        [(256, 150, 75.0), (256, 200, 100.0), (512, 200, 100.0), (512, 190, 95.0)]
    {
        shares(&host(Scheduler::Credit, 4, vec![capped(weight, cap, 1)]), &[100.0]);
        shares(&host(Scheduler::Credit, 4, vec![capped(weight, cap, 2)]), &[two, two]);
    }
    assert_eq!(modes(&host(Scheduler::Credit, 4, vec![capped(256, 150, 2)])), (180, 60, 240));
    assert_eq!(modes(&host(Scheduler::Credit, 4, vec![capped(512, 190, 2)])), (1140, 60, 1200));
}

#[test]
fn weights_divide_one_processor() {
    let two = vec![capped(256, 0, 1), capped(512, 0, 1)];
    shares(&host(Scheduler::Credit, 1, two), &[33.3, 66.7]);
    let two = vec![capped(256, 0, 1), capped(512, 0, 1)];
    shares(&host(Scheduler::Credit2, 1, two), &[33.3, 66.7]);
    let bvt = |advance| Domain { mcu_advance: advance, ..Domain::default() };
    let scheduler = Scheduler::Bvt(BvtSettings::default());
    shares(&host(scheduler, 1, vec![bvt(10), bvt(20)]), &[66.7, 33.3]);
}

#[test]
fn credit_conserves_work() {
    // Three domains on two processors: nobody idles while somebody wants to run.
    let host = host(Scheduler::Credit, 2, vec![capped(256, 0, 1); 3]);
    let total: f64 = observe_host(&host).iter().map(VcpuObserver::share).sum();
    assert!((total - 2.0).abs() < 0.002, "{total}");
}

#[test]
fn credit2_divides_processors_among_all() {
    let three = vec![capped(256, 0, 1); 3];
    shares(&host(Scheduler::Credit2, 2, three), &[66.7, 66.7, 66.7]);
    let four = vec![capped(100, 0, 1), capped(200, 0, 1), capped(300, 0, 1), capped(400, 0, 1)];
    shares(&host(Scheduler::Credit2, 1, four), &[10.0, 20.0, 30.0, 40.0]);
}

#[test]
fn credit2_lets_those_that_sleep_run_soon() {
    // Half of its share, beside two that spin: it has more credit than they have when it wakes.
    let work = Workload::Periodic { period_ns: 20 * MS, work_ns: 3 * MS };
    let sleeper = Domain { vcpus: vec![work], ..Domain::default() };
    let shared = host(Scheduler::Credit2, 1, vec![sleeper, capped(256, 0, 2)]);
    let (mut due, mut latest) = (0, 0);
    simulate(&shared, 1, 20 * SECOND, 0, |run| {
        if run.vcpu == 0 && run.from >= due {
            due = run.from / (20 * MS) * (20 * MS);
            latest = latest.max(run.from - due);
            due += 20 * MS;
        }
    })
    .unwrap();
    // Nobody is preempted within the first millisecond of a run.
    assert!(latest <= MS, "{latest}");
}

#[test]
fn a_cap_on_one_processor_runs_in_whole_accounting_periods() {
    let capped_host = host(Scheduler::Credit, 1, vec![capped(256, 40, 1)]);
    shares(&capped_host, &[40.0]);
    let runs: Vec<u64> =
        observe_host(&capped_host)[0].runs.pairs().map(|(length, _)| length / MS).collect();
    assert!(runs.iter().all(|run| [30, 60].contains(run)), "{runs:?}");
}

#[test]
fn extra_time_goes_to_those_who_may_use_it() {
    let domain = |slice_ms, extra| {
        let (slice_ns, period_ns) = (slice_ms * MS, 100 * MS);
        let reservation = Some(Reservation { slice_ns, period_ns, extra, phase_ns: 0 });
        Domain { reservation, ..Domain::default() }
    };
    let two = vec![domain(30, false), domain(20, true)];
    shares(&host(Scheduler::Sedf, 1, two), &[30.0, 70.0]);
}

#[test]
fn sleeping_is_not_charged() {
    let work = Workload::Periodic { period_ns: 100 * MS, work_ns: 20 * MS };
    let bursty = Workload::Bursty {
        work: Distribution::Exponential(5e6),
        sleep: Distribution::Exponential(15e6),
    };
    for scheduler in [
        Scheduler::Credit,
        Scheduler::Credit2,
        Scheduler::Sedf,
        Scheduler::Bvt(BvtSettings::default()),
    ] {
        let vcpu =
            |workload: &Workload| Domain { vcpus: vec![workload.clone()], ..Domain::default() };
        let alone = host(scheduler, 1, vec![vcpu(&work)]);
        let mut ran = 0;
        simulate(&alone, 1, 10 * SECOND, 0, |run: RunInterval| ran += run.to - run.from).unwrap();
        assert_eq!(ran, 2 * SECOND, "{scheduler:?}");
        let mut all = [0; 2];
        let pair = host(scheduler, 1, vec![vcpu(&bursty), vcpu(&Workload::Spinning)]);
        simulate(&pair, 1, 60 * SECOND, 0, |run: RunInterval| {
            all[run.vcpu] += run.to - run.from;
        })
        .unwrap();
        assert_eq!(all.iter().sum::<u64>(), 60 * SECOND, "{scheduler:?}");
        // At most a quarter is wanted, and something of it is had.
        let share = all[0] as f64 / (60 * SECOND) as f64;
        assert!((0.05..=0.27).contains(&share), "{scheduler:?}: {share}");
    }
}

#[test]
fn stretches_do_not_overlap() {
    let domains = vec![capped(256, 60, 2), capped(512, 0, 2), capped(128, 0, 1)];
    let mut ends = [0; 2];
    let mut on = [(0, 0); 5];
    simulate(&host(Scheduler::Credit, 2, domains), 3, 20 * SECOND, 0, |run| {
        assert!(run.from >= ends[run.processor] && run.from < run.to);
        ends[run.processor] = run.to;
        assert!(run.from >= on[run.vcpu].1, "{run:?} while {on:?}");
        on[run.vcpu] = (run.from, run.to);
    })
    .unwrap();
}

#[test]
fn what_cannot_be_is_refused() {
    let refused = |host: &Host| simulate(host, 1, SECOND, 0, |_| {}).unwrap_err().message;
    assert!(refused(&host(Scheduler::Credit, 0, vec![capped(256, 0, 1)])).contains("processors"));
    assert!(refused(&host(Scheduler::Credit, 1, vec![])).contains("virtual CPU"));
    assert!(refused(&host(Scheduler::Credit, 1, vec![capped(0, 0, 1)])).contains("weight"));
    assert!(refused(&host(Scheduler::Sedf, 1, vec![reserved(50, 40, 1)])).contains("slice"));
    assert!(refused(&host(Scheduler::Sedf, 1, vec![reserved(30, 40, 2)])).contains("150 %"));
}

/// What is counted as an event is pinned: a speed in events a second could else be had by more of
/// them. Two virtual CPUs that spin and two that work 3 of 20 ms, on two processors, for 100 s.
#[test]
fn events_of_a_hundred_seconds() {
    let reserved = r#", "reservation": {"slice_ms": 10, "period_ms": 40}"#;
    let limited = r#", "quota": {"cpus": 0.5, "period_ms": 50}"#;
    for (policy, settings, wanted) in [
        // 20,000 ticks, 3,333 accountings, 10,000 wake-ups, and what ends slices and work.
        ("credit", "", 53_333),
        // Idle time is given out in 0.5 ms.
        ("sedf", "", 410_004),
        // 10,000 wake-ups, 10,000 ends of work, and what begins and ends slices of those that spin.
        ("sedf", reserved, 30_004),
        ("bvt", "", 18_202),
        // 50,000 ticks, 10,000 wake-ups, 10,000 ends of work; four begin.
        ("linux", "", 70_004),
        // And 4,000 refills, or 5,000 new periods of those that have used up theirs.
        ("linux", limited, 74_004),
        ("linux", reserved, 75_004),
    ] {
        let periodic = r#"{"periodic": {"every_ms": 20, "work_ms": 3}}"#;
        let text = format!(
            r#"{{"version": 1, "policy": "{policy}", "processors": 2, "duration_s": 100,
                "warmup_s": 0, "vms": {{"a": {{"vcpus": 2{settings}}},
                "b": {{"vcpus": 2, "workload": {periodic}{settings}}}}}}}"#
        );
        let scenario =
            crate::scenarios::parse::<super::scenario::SchedulerScenario>(&text).unwrap();
        let events = super::outcome::run(&scenario, 1).unwrap().events;
        assert_eq!(events, wanted, "{policy}{settings}");
    }
}
