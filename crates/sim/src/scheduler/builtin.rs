//! Scenarios that come with the simulator: the parameters of published emulations of Xen, what Linux
//! does with a reservation, a quota and weights, and a web server under each policy.
//!
//! Source of those of Xen: Zhuang 2012, Table 4.3 and Figure 4.3, one machine of two virtual CPUs on
//! four processors, or as the note says.

macro_rules! built_in {
    ($name:literal) => {
        ($name, include_str!(concat!("../../scenarios/scheduler/", $name, ".json")))
    };
}

/// Name and JSON of each.
pub const BUILT_IN: &[(&str, &str)] = &[
    built_in!("linux-quota-150"),
    built_in!("linux-reservation-30-40"),
    built_in!("linux-web-beside-busy"),
    built_in!("linux-weights"),
    built_in!("web-under-bvt"),
    built_in!("web-under-credit"),
    built_in!("web-under-linux-quota"),
    built_in!("web-under-linux"),
    built_in!("web-under-sedf"),
    built_in!("xen-credit-150"),
    built_in!("xen-credit-256-200"),
    built_in!("xen-credit-512-190"),
    built_in!("xen-credit-512-200"),
    built_in!("xen-credit-cap-40-two"),
    built_in!("xen-credit-cap-44"),
    built_in!("xen-sedf-10-26"),
    built_in!("xen-sedf-150-210"),
    built_in!("xen-sedf-30-40"),
];
