//! Scenarios that come with the program.
use super::scenario::Scenario;

/// Names and JSON texts of the scenarios that come with the program.
pub const SCENARIOS: [(&str, &str); 11] = [
    ("cloudanalyst-default", include_str!("../../scenarios/cloudanalyst-default.json")),
    ("facebook-1", include_str!("../../scenarios/facebook-1.json")),
    ("facebook-2", include_str!("../../scenarios/facebook-2.json")),
    ("facebook-3", include_str!("../../scenarios/facebook-3.json")),
    ("facebook-4", include_str!("../../scenarios/facebook-4.json")),
    ("twitter-2008-as-printed-us", include_str!("../../scenarios/twitter-2008-as-printed-us.json")),
    ("twitter-2008-as-printed-eu", include_str!("../../scenarios/twitter-2008-as-printed-eu.json")),
    (
        "twitter-2008-as-printed-two",
        include_str!("../../scenarios/twitter-2008-as-printed-two.json"),
    ),
    ("twitter-2008-consistent-us", include_str!("../../scenarios/twitter-2008-consistent-us.json")),
    ("twitter-2008-consistent-eu", include_str!("../../scenarios/twitter-2008-consistent-eu.json")),
    (
        "twitter-2008-consistent-two",
        include_str!("../../scenarios/twitter-2008-consistent-two.json"),
    ),
];

/// The scenario of that name; None if there is none.
pub fn scenario(name: &str) -> Option<Scenario> {
    let (_, text) = SCENARIOS.iter().find(|entry| entry.0 == name)?;
    Some(Scenario::from_json(text).expect("what comes with the program is right"))
}
