//! What holds for every scenario.
use crate::geo::{run, GeoOutcome, GeoScenario};
use proptest::prelude::*;
use serde_json::{json, Value};

/// A scenario as drawn: any rules, sites that have enough instances by far.
fn drawn() -> impl Strategy<Value = Value> {
    let broker = prop_oneof![
        Just(json!("closest")),
        Just(json!("best_response")),
        Just(json!("reconfiguring")),
        Just(json!("weighted")),
        Just(json!({"overflow": {"requests_per_instance": 1.5}})),
    ];
    let balancer =
        prop::sample::select(vec!["round_robin", "equally_spread", "throttled", "least_time"]);
    let discipline = prop::sample::select(vec!["sharing", "fifo"]);
    let spread = prop::sample::select(vec!["constant", "exponential"]);
    let numbers = (1u32..4, 1u32..4, 0.0..24.0f64, 0.0..24.0f64, 1u32..8);
    (broker, balancer, discipline, spread, numbers, any::<bool>(), any::<bool>()).prop_map(
        |(broker, balancer, discipline, spread, (bases, sites, from, zone, group), fails, thinks)| {
            let regions = ["europe", "asia", "africa", "oceania"];
            let base = |number: u32| {
                let mut base = json!({
                    "region": regions[number as usize],
                    "zone": zone - 12.0,
                    "users": {"peak": 400, "off_peak": 40, "peak_hours": [from, (from + 3.0) % 24.0]},
                });
                let key = if thinks { "think_time_s" } else { "requests_per_user_h" };
                base[key] = json!(60);
                base
            };
            let site = |number: u32| {
                let mut site = json!({
                    "region": regions[3 - number as usize],
                    "hosts": 4,
                    "instances": 3,
                    "discipline": discipline,
                });
                if fails {
                    site["reliability"] = json!({"up_h": 4.0, "down_h": 0.5});
                    site["autoscaling"] = json!({"max": 6, "delay_s": 30});
                }
                site
            };
            let named = |count: u32, name: &str, of: &dyn Fn(u32) -> Value| {
                let things = (0..count).map(|number| (format!("{name}{number}"), of(number)));
                Value::Object(things.collect())
            };
            json!({
                "version": 1, "duration_h": 30, "objective_ms": 300, "broker": broker,
                "balancer": balancer, "instructions": 200_000, "instructions_spread": spread,
                "user_bases": named(bases, "base", &base), "sites": named(sites, "site", &site),
                "latency": "cloudanalyst", "bandwidth": "cloudanalyst",
                "grouping": {"users": group, "requests": group.div_ceil(2)},
            })
        },
    )
}

fn simulate_scenario(scenario: &Value, seed: u64) -> (GeoScenario, GeoOutcome) {
    let scenario = crate::scenarios::parse::<GeoScenario>(&scenario.to_string()).unwrap();
    let seen = run(&scenario, seed).unwrap();
    (scenario, seen)
}

/// All samples, as bytes.
fn bytes(outcome: &GeoOutcome) -> String {
    let mut text = String::new();
    outcome.emit(&mut crate::samples::Sink(&mut |metric, factors, value, count, _| {
        text.push_str(&format!("{metric} {factors:?} {:x} {count}\n", value.to_bits()));
    }));
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn counts_add_up_and_what_is_inside_obeys_littles_law(scenario in drawn(), seed in 0u64..1000) {
        let (_, outcome) = simulate_scenario(&scenario, seed);
        let requests = outcome.requests();
        prop_assert!(requests > 1000, "{requests}");
        let by_site: u64 = outcome.sites.iter().flat_map(|site| site.by_hour).sum();
        let by_base: u64 = outcome.bases.iter().map(|base| base.requests).sum();
        let by_time: u64 = outcome.hours.iter().map(|hour| hour.count()).sum();
        prop_assert_eq!([by_site, by_base, by_time], [requests; 3]);
        prop_assert_eq!(outcome.overall().histogram().len(), requests);
        for site in &outcome.sites {
            // Both sides are whole nanoseconds.
            let ratio = site.little_ratio.unwrap_or(1.0);
            prop_assert!((ratio - 1.0).abs() < 1e-9, "{}: {ratio}", site.name);
            prop_assert!(site.utilisation.is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
        for region in &outcome.regions {
            prop_assert!(region.within <= region.requests);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn the_same_seed_gives_the_same_bytes(scenario in drawn()) {
        let (scenario, first) = simulate_scenario(&scenario, 5);
        prop_assert_eq!(bytes(&first), bytes(&run(&scenario, 5).unwrap()));
        prop_assert_ne!(bytes(&first), bytes(&run(&scenario, 6).unwrap()));
    }
}
