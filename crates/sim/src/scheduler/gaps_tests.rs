//! Scenarios from JSON, and what probes inside them read.
use super::gaps::{self, GapConfig};
use super::scenario::{run, SchedulerOutcome, SchedulerScenario};
use crate::samples::Sink;
use crate::scenarios;
use crate::{closed_forms, Nanos, SECOND};
use std::collections::BTreeMap;

const MS: Nanos = 1_000_000;

fn scenario(policy: &str, processors: usize, rest: &str) -> SchedulerScenario {
    let text =
        format!(r#"{{"version": 1, "policy": "{policy}", "processors": {processors}, {rest}}}"#);
    parsed(&text).unwrap()
}

/// Returns the scenario of a JSON text, checked.
fn parsed(text: &str) -> crate::error::Result<SchedulerScenario> {
    let scenario: SchedulerScenario = scenarios::parse(text)?;
    scenario.check().map(|()| scenario)
}

/// Returns the parameters of one loop on each CPU for a second.
fn one_second_window() -> GapConfig {
    GapConfig {
        duration_ns: SECOND,
        threshold_ns: 100_000,
        cpus: Vec::new(),
        cpus_max: 0,
        processes_per_cpu: 1,
        events_max: 1000,
        sleep_ns: 0,
        busy_ns: SECOND / 2,
    }
}

fn outcome(policy: &str, processors: usize, rest: &str) -> SchedulerOutcome {
    run(&scenario(policy, processors, rest), 1).unwrap()
}

/// Lengths in ms and their share of all, from 1 % on.
fn spread(outcome: &SchedulerOutcome, vcpu: usize) -> Vec<(u64, f64)> {
    let runs = &outcome.vcpus[vcpu].observer.runs;
    let all = runs.pairs().map(|pair| pair.1).sum::<u64>() as f64;
    runs.pairs()
        .map(|(length, count)| (length / MS, count as f64 / all))
        .filter(|pair| pair.1 >= 0.01)
        .collect()
}

fn near(measured: &[(u64, f64)], wanted: &[(u64, f64)]) {
    assert_eq!(measured.len(), wanted.len(), "{measured:?}");
    for (run, wanted) in measured.iter().zip(wanted) {
        // A hundredth: the page gives whole per cent.
        assert!(run.0 == wanted.0 && (run.1 - wanted.1).abs() <= 0.01, "{run:?}, {wanted:?}");
    }
}

/// Shapes of the runs under a cap on one processor, as published for Credit.
#[test]
fn a_cap_runs_in_pieces_of_thirty_and_sixty() {
    let two =
        outcome("credit", 1, r#""vms": {"a": {"cap_percent": 40}, "b": {"cap_percent": 40}}"#);
    near(&spread(&two, 0), &[(30, 0.67), (60, 0.33)]);
    let alone = outcome("credit", 1, r#""vms": {"a": {"cap_percent": 44}}"#);
    near(&spread(&alone, 0), &[(30, 0.17), (60, 0.83)]);
    let few =
        outcome("sedf", 1, r#""vms": {"a": {"reservation": {"slice_ms": 10, "period_ms": 26}}}"#);
    near(&spread(&few, 0), &[(10, 1.0)]);
    assert!((few.vcpus[0].observer.share() - 0.3846).abs() < 0.002);
}

/// The published residuals: a fixed amount of work sees one of two numbers of pauses.
#[test]
fn fixed_work_reads_one_of_two_shares() {
    let read = |work: u32, vms: &str| -> Vec<f64> {
        let rest = format!(r#""fixed_work": {{"work_ms": {work}, "starts": 400}}, "vms": {vms}"#);
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        outcome("sedf", 1, &rest).emit(&mut Sink(&mut |metric, _, value, count, _| {
            if metric == "fixed_work_share_ratio" {
                *all.entry((value * 1000.0).round() as u64).or_default() += count;
            }
        }));
        all.into_keys().map(|share| share as f64 / 10.0).collect()
    };
    let vms = r#"{"a": {"reservation": {"slice_ms": 150, "period_ms": 210}}}"#;
    assert_eq!(read(500, vms), [67.6, 73.5]);
    assert_eq!(read(1000, vms), [70.4, 73.5]);
}

fn value(samples: &[(String, String, f64, u64)], metric: &str) -> Vec<(f64, u64)> {
    samples.iter().filter(|sample| sample.0 == metric).map(|sample| (sample.2, sample.3)).collect()
}

/// (metric, factors as JSON, value, count) of a look.
fn measure_gaps(
    scenario: &SchedulerScenario,
    config: &GapConfig,
) -> Vec<(String, String, f64, u64)> {
    let mut all = Vec::new();
    let gaps = gaps::run(scenario, None, config, 5).unwrap();
    gaps.emit(&mut Sink(&mut |metric, factors, value, count, _| {
        let factors: BTreeMap<_, _> = factors.iter().cloned().collect();
        all.push((metric.to_owned(), serde_json::to_string(&factors).unwrap(), value, count));
    }));
    all
}

#[test]
fn a_loop_sees_a_reservation_from_inside() {
    let host = scenario(
        "sedf",
        2,
        r#""vms": {"a": {"vcpus": 2, "reservation": {"slice_ms": 30, "period_ms": 40}}}"#,
    );
    let config = GapConfig { duration_ns: 2 * SECOND, ..one_second_window() };
    let samples = measure_gaps(&host, &config);
    for (share, _) in value(&samples, "cpu_share_cycles_ratio") {
        assert!((share - 0.75).abs() < 1e-9, "{share}");
    }
    let gaps = value(&samples, "gap_length_ns");
    assert_eq!(gaps.len(), 2, "one length on each CPU: {gaps:?}");
    // Three digits of the histogram.
    assert!(gaps.iter().all(|(length, _)| (length / 10e6 - 1.0).abs() < 1e-3), "{gaps:?}");
    let obtained = value(&samples, "obtained_cycles_cpus")[0].0;
    assert!((obtained - 1.5).abs() < 1e-9, "{obtained}");
    let events: Vec<_> = samples.iter().filter(|sample| sample.0 == "gap_event_ns").collect();
    assert_eq!(events.len() as u64, gaps.iter().map(|(_, count)| count).sum::<u64>());
    assert!(
        events[0].1.contains(r#""cause":"unexplained","cpu":0,"process":0"#),
        "{}",
        events[0].1
    );
}

#[test]
fn loops_of_one_cpu_share_it() {
    for (policy, vm) in [
        ("credit", r#"{"weight": 256}"#),
        ("linux", r#"{"weight": 100}"#),
        ("linux", r#"{"quota": {"cpus": 0.5, "period_ms": 40}}"#),
        ("linux", r#"{"reservation": {"slice_ms": 20, "period_ms": 40}}"#),
    ] {
        let host = scenario(policy, 1, &format!(r#""vms": {{"a": {vm}}}"#));
        let whole = if vm.contains("weight") { 1.0 } else { 0.5 };
        let config =
            GapConfig { duration_ns: 4 * SECOND, processes_per_cpu: 2, ..one_second_window() };
        let shares = value(&measure_gaps(&host, &config), "cpu_share_ratio");
        assert_eq!(shares.len(), 2);
        for (share, _) in shares {
            // A period more or less at the edges, and a turn.
            assert!((share - whole / 2.0).abs() < 0.012, "{policy} {vm}: {share}");
        }
    }
}

#[test]
fn sleeps_are_told_and_count_for_nothing() {
    let host = scenario("linux", 1, r#""vms": {"a": {}}"#);
    let config = GapConfig {
        duration_ns: 2 * SECOND,
        sleep_ns: 230 * MS,
        busy_ns: 420 * MS,
        ..one_second_window()
    };
    let samples = measure_gaps(&host, &config);
    let sleeps = value(&samples, "sleep_event_ns");
    assert_eq!(sleeps, [(230e6, 1), (230e6, 1), (230e6, 1)]);
    assert_eq!(value(&samples, "cpu_share_ratio"), [(1.0, 1)]);
    assert!(value(&samples, "gap_length_ns").is_empty());
}

/// Alone on a processor a server is M/M/1.
#[test]
fn a_web_server_alone_is_a_queue() {
    let host = |seed| {
        let rest = r#""duration_s": 400, "vms": {"web": {"workload": {"web": {"requests_per_s": 700, "service_ms": 1}}}}"#;
        run(&scenario("linux", 1, rest), seed).unwrap()
    };
    let means: Vec<f64> =
        (0..6).map(|seed| host(seed).responses[0].1.moments().mean().unwrap() / 1e9).collect();
    let interval = crate::testing::interval(&means, 0.99);
    let wanted = closed_forms::mmc_response(1, 700.0, 1e-3);
    assert!(interval.low <= wanted && wanted <= interval.high, "{interval:?}, {wanted}");
}

#[test]
fn what_a_scheduler_costs_a_web_server() {
    let p99 = |policy: &str, web: &str| {
        let rest = format!(
            r#""duration_s": 120, "vms": {{"spin": {{}}, "web": {{"workload":
            {{"web": {{"requests_per_s": 100, "service_ms": 1}}}} {web}}}}}"#
        );
        let outcome = outcome(policy, 1, &rest);
        outcome.responses[0].1.histogram().value_at_quantile(0.99) as f64 / 1e6
    };
    let credit = p99("credit", "");
    let linux = p99("linux", "");
    let sedf = p99("sedf", r#", "reservation": {"slice_ms": 30, "period_ms": 100}"#);
    assert!(linux < credit && linux < sedf, "linux {linux}, credit {credit}, sedf {sedf}");
}

#[test]
fn the_timeline_merges_adjacent_runs() {
    let outcome = outcome("linux", 1, r#""timeline_s": 1, "vms": {"a": {"quota": {"cpus": 0.5}}}"#);
    let timeline = &outcome.vcpus[0].timeline;
    let ran: Nanos = timeline.iter().map(|interval| interval.1 - interval.0).sum();
    assert!((9..=11).contains(&timeline.len()), "{timeline:?}");
    assert!(ran.abs_diff(SECOND / 2) <= 60 * MS, "{ran}");
    let document = outcome.timeline_document();
    assert_eq!(document["vcpus"][0]["vm"], "a");
}

#[test]
fn invalid_scenarios_are_refused_in_one_sentence() {
    let refused = |text: &str| {
        let text = format!(r#"{{"version": 1, {text}}}"#);
        parsed(&text).unwrap_err().to_string()
    };
    let cases = [
        (r#""policy": "cfs", "processors": 1, "vms": {"a": {}}"#, "unknown variant `cfs`"),
        (r#""policy": "linux", "processors": 0, "vms": {"a": {}}"#, "processors"),
        (r#""policy": "linux", "processors": 1, "vms": {}"#, "virtual CPU"),
        (
            r#""policy": "linux", "processors": 1, "vms": {"a": {"cap_percent": 40}}"#,
            "vms.a: cap_percent has no meaning under Linux",
        ),
        (
            r#""policy": "credit", "processors": 1, "vms": {"a": {"quota": {"cpus": 1}}}"#,
            "quota has no meaning",
        ),
        (r#""policy": "linux", "processors": 1, "vms": {"a": {"cpus": [3]}}"#, "processor 3"),
        (
            r#""policy": "linux", "processors": 1, "vms": {"a": {"cpu": [3]}}"#,
            "unknown field `cpu`",
        ),
        (r#""policy": "linux", "processors": 1, "duration_s": -1, "vms": {"a": {}}"#, "duration_s"),
        (
            r#""policy": "linux", "processors": 1, "vms": {"a": {"workload": {"web": {"requests_per_s": 2000, "service_ms": 1}}}}"#,
            "2.00 times",
        ),
        (
            r#""policy": "sedf", "processors": 1, "linux": {"tick_ms": 1}, "vms": {"a": {}}"#,
            "linux is set",
        ),
        (
            r#""policy": "linux", "processors": 1, "linux": {"wakeups_per_s": -1}, "vms": {"a": {}}"#,
            "wakeups_per_s",
        ),
        (
            r#""policy": "linux", "processors": 1, "linux": {"interruptions_per_s": 3}, "vms": {"a": {}}"#,
            "interruption_ms 0",
        ),
        (
            r#""policy": "linux", "processors": 1, "linux": {"interruptions_per_s": 50, "interruption_ms": 19}, "vms": {"a": {}}"#,
            "95 %",
        ),
    ];
    for (text, wanted) in cases {
        let sentence = refused(text);
        assert!(sentence.contains(wanted) && !sentence.contains('\n'), "{sentence}");
    }
    let two = scenario("linux", 1, r#""vms": {"a": {}, "b": {}}"#);
    let sentence = gaps::run(&two, None, &one_second_window(), 1).unwrap_err().to_string();
    assert!(sentence.contains("a, b"), "{sentence}");
    assert!(gaps::run(&two, Some("c"), &one_second_window(), 1).is_err());
    let config = GapConfig { cpus: vec![1], ..one_second_window() };
    assert!(gaps::run(&two, Some("a"), &config, 1).unwrap_err().message.contains("CPU 1"));
}

/// Shares of the published table; one virtual CPU has all of a processor where the cap allows it.
#[test]
fn built_in_scenarios_give_the_published_shares() {
    let wanted = [
        ("xen-sedf-30-40", 75.0),
        ("xen-sedf-150-210", 71.43),
        ("xen-credit-150", 75.0),
        ("xen-credit-256-200", 100.0),
        ("xen-credit-512-200", 100.0),
        ("xen-credit-512-190", 95.0),
        ("xen-credit-cap-40-two", 40.0),
        ("xen-credit-cap-44", 44.0),
        ("xen-sedf-10-26", 38.46),
    ];
    for (name, text) in scenarios::SCHEDULER {
        let outcome = run(&parsed(text).unwrap(), 1).unwrap();
        let Some((_, wanted)) = wanted.iter().find(|(known, _)| known == name) else { continue };
        for vcpu in &outcome.vcpus {
            let share = 100.0 * vcpu.observer.share();
            assert!((share - wanted).abs() <= 0.2, "{name}: {share}");
        }
    }
    let known = |name: &str| scenarios::SCHEDULER.iter().any(|(scenario, _)| *scenario == name);
    assert!(wanted.iter().all(|(name, _)| known(name)));
}
