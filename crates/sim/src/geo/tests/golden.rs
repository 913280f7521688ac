//! CloudAnalyst's figures, as the tool gave them, from its model with all its quirks.
//!
//! Ours differ by chance (another generator) and by nothing else.
use crate::geo::{run, GeoOutcome, GeoScenario};
use crate::scenarios::{built_in, GEO};

fn named(name: &str) -> GeoScenario {
    built_in::<GeoScenario>(GEO, name).unwrap()
}

fn overall_ms(outcome: &GeoOutcome) -> f64 {
    outcome.mean_ns(|_| true).unwrap() / 1e6
}

fn region_ms(outcome: &GeoOutcome, region: &str) -> f64 {
    let number = outcome.regions.iter().position(|share| share.name == region).unwrap();
    outcome.mean_ns(|base| base.region == number).unwrap() / 1e6
}

fn near(what: &str, simulated: f64, wanted: f64, tolerance: f64) {
    let off = (simulated / wanted - 1.0).abs();
    eprintln!("{what}: {simulated:.3} against {wanted:.3}, off by {:.2} %", 100.0 * off);
    assert!(off <= tolerance, "{what}: {simulated} against {wanted}");
}

#[test]
fn what_comes_with_the_program_can_be_run() {
    for (name, _) in GEO {
        let scenario = named(name);
        assert_eq!(scenario.name, *name);
        assert!(run(&GeoScenario { duration_h: 0.1, ..scenario }, 1).unwrap().requests() > 0);
    }
    assert!(built_in::<GeoScenario>(GEO, "facebook-9").is_none());
}

#[test]
fn the_default_scenario() {
    // One hour has some 630 messages: the standard error of its mean is 0.2 %. Ten seeds.
    let scenario = named("cloudanalyst-default");
    let runs: Vec<GeoOutcome> = (0..10).map(|seed| run(&scenario, seed).unwrap()).collect();
    let mean =
        |of: &dyn Fn(&GeoOutcome) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    near("response", mean(&overall_ms), 300.06, 0.005);
    let processing = |outcome: &GeoOutcome| outcome.sites[0].processing.mean().unwrap() / 1e6;
    // Given to 0.01 ms, which is 3 %.
    near("processing", mean(&processing), 0.34, 0.03);
    let minimum = |outcome: &GeoOutcome| outcome.overall().moments().range().unwrap().0 / 1e6;
    let largest = |outcome: &GeoOutcome| outcome.overall().moments().range().unwrap().1 / 1e6;
    near("least", mean(&minimum), 237.06, 0.03);
    near("largest", mean(&largest), 369.12, 0.03);
    // Users vary by a tenth with each of 60 bursts: 1.3 %, over ten seeds 0.4 %; four of them, and
    // the 1.7 % by which the published run may lie off itself.
    near("requests", mean(&|seen| seen.requests() as f64), 6058.0, 0.03);
    near("instances", mean(&|seen| seen.sites[0].instances_usd), 0.507, 0.015);
    near("transfer", mean(&|seen| seen.sites[0].transfer_usd), 0.0638, 0.03);
}

/// The tool's figure is of one seed: it may lie as far from ours as the next seed would, three
/// deviations. These are bounded, so that a model that is off cannot hide behind them.
fn as_a_seed(what: &str, simulated: &[f64], wanted: f64, most: f64) {
    let mut all = crate::statistics::Moments::default();
    simulated.iter().for_each(|mean| all.add(*mean));
    let (mean, deviation) = (all.mean().unwrap(), all.variance().unwrap().sqrt());
    let off = 100.0 * (mean / wanted - 1.0);
    eprintln!("{what}: {mean:.2} +- {deviation:.2} against {wanted}, off by {off:.2} %");
    assert!((mean - wanted).abs() < 3.0 * deviation, "{what}: {mean} +- {deviation}");
    assert!(deviation < most * mean, "{what}: {deviation} of {mean}");
}

#[test]
fn four_deployments_of_a_social_network() {
    // A day has 288 bursts of each base. The 24 at its peak hold half of its messages, and a burst
    // that is larger by a tenth waits longer by a tenth: means of seeds differ by 0.5 % with 50
    // instances, by 1.5 % with 25.
    for (name, wanted) in [
        ("facebook-1", 284.97),
        ("facebook-2", 249.22),
        ("facebook-3", 183.84),
        ("facebook-4", 156.51),
    ] {
        let scenario = named(name);
        let runs: Vec<GeoOutcome> = (0..10).map(|seed| run(&scenario, seed).unwrap()).collect();
        let means: Vec<f64> = runs.iter().map(overall_ms).collect();
        as_a_seed(name, &means, wanted, 0.02);
        if name == "facebook-1" {
            let processing = |seen: &GeoOutcome| seen.sites[0].processing.mean().unwrap() / 1e6;
            let means: Vec<f64> = runs.iter().map(processing).collect();
            as_a_seed("processing", &means, 46.78, 0.05);
        }
    }
}

/// Table 4.2 of Delgado, 2010, and what CloudAnalyst gave for the same parameters.
#[test]
fn a_micro_blogging_service_as_printed() {
    let regions = ["north_america", "south_america", "europe", "asia"];
    for (name, overall, printed, tool) in [
        ("us", 217.29, [80.54, 203.51, 269.91, 504.91], [81.39, 202.96, 269.76, 503.60]),
        ("eu", 309.54, [262.36, 503.40, 60.54, 624.96], [261.97, 502.97, 60.49, 623.44]),
        ("two", 143.51, [101.83, 203.44, 68.84, 305.87], [101.09, 203.57, 68.78, 305.59]),
    ] {
        let outcome = run(&named(&format!("twitter-2008-as-printed-{name}")), 1).unwrap();
        near(name, overall_ms(&outcome), overall, 0.005);
        for ((region, printed), tool) in regions.iter().zip(printed).zip(tool) {
            let simulated = region_ms(&outcome, region);
            near(&format!("{name}, {region}, printed"), simulated, printed, 0.02);
            near(&format!("{name}, {region}, tool"), simulated, tool, 0.01);
        }
    }
}

/// With the tool's own latencies for all three: what the tool gave.
#[test]
fn a_micro_blogging_service_with_one_table_of_latencies() {
    for (name, overall, region, wanted) in
        [("us", 225.29, "europe", 304.65), ("eu", 269.07, "north_america", 310.22)]
    {
        let mut scenario = named(&format!("twitter-2008-as-printed-{name}"));
        scenario.latency = crate::geo::scenario::Latency::Cloudanalyst;
        let seen = run(&scenario, 1).unwrap();
        near(name, overall_ms(&seen), overall, 0.005);
        near(region, region_ms(&seen, region), wanted, 0.005);
    }
}
