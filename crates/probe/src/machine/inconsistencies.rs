//! Facts of the fingerprint that a reader has to be told, as plain sentences.
use serde_json::Value;

/// A port this slow or slower is a sign of a wrong setting: servers have had more for decades.
const SLOW_PORT_BITS_PER_S: u64 = 100_000_000;

/// A clock reading above this enters the kernel or a slow device.
const SLOW_CLOCK_NS: f64 = 200.0;

/// The sentences for one document.
pub fn sentences(document: &Value) -> Vec<String> {
    let mut out = Vec::new();
    for port in document["nics"]["ports"].as_array().into_iter().flatten() {
        out.extend(slow_port(port));
    }
    if document["cpu"]["agree"] == false {
        let list = document["cpu"]["disagreements"].as_array().into_iter().flatten();
        let list: Vec<_> = list.filter_map(Value::as_str).collect();
        out.push(format!(
            "The cpuid instruction and /proc/cpuinfo describe different CPUs ({}): the machine was \
             migrated, or one of them is invented.",
            list.join("; ")
        ));
    }
    if document["cpu"]["by_cpuinfo"]["distinct_models"].as_u64().is_some_and(|models| models > 1) {
        out.push("The CPUs of this machine are of different models.".to_owned());
    }
    out.extend(quota(document));
    let cost = document["clock"]["read_median_ns"].as_f64();
    if let Some(cost) = cost.filter(|cost| *cost > SLOW_CLOCK_NS) {
        let source = document["clock"]["source"].as_str().unwrap_or("unknown");
        out.push(format!(
            "Reading the clock (source {source}) costs {cost:.0} ns; short times are measured with \
             that much less resolution."
        ));
    }
    out
}

fn slow_port(port: &Value) -> Option<String> {
    let name = port["name"].as_str()?;
    let half = port["duplex"] == "half";
    let speed = port["speed_bits_per_s"].as_u64();
    let slow = speed.is_some_and(|speed| speed <= SLOW_PORT_BITS_PER_S);
    if port["virtual"] == true || !(half || slow) {
        return None;
    }
    let speed = speed.map_or("an unknown speed".to_owned(), |s| format!("{} Mb/s", s / 1_000_000));
    let duplex = if half { " half duplex" } else { "" };
    Some(format!(
        "Network port {name} runs at {speed}{duplex}: every network figure of this machine is \
         bounded by it."
    ))
}

fn quota(document: &Value) -> Option<String> {
    let limits = &document["limits"];
    let quota = limits["cpu_quota_cpus"].as_f64()?;
    let allowed = document["topology"]["allowed_cpus"].as_array()?.len();
    (quota < allowed as f64).then(|| {
        format!(
            "A CPU quota of {quota:.2} CPUs ({}) holds this process below the {allowed} CPUs it \
             may run on.",
            limits["cpu_quota_path"].as_str().unwrap_or("from an unseen group")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_10_megabit_half_duplex_port_is_a_sentence() {
        let port = |speed: Value, duplex: &str, is_virtual: bool| {
            json!({"nics": {"ports": [{"name": "eth0", "speed_bits_per_s": speed,
                "duplex": duplex, "virtual": is_virtual}]}})
        };
        assert_eq!(
            sentences(&port(json!(10_000_000), "half", false)),
            ["Network port eth0 runs at 10 Mb/s half duplex: every network figure of this machine \
              is bounded by it."]
        );
        assert!(sentences(&port(json!(10_000_000_000u64), "full", false)).is_empty());
        assert!(sentences(&port(json!(null), "full", false)).is_empty(), "unknown is not slow");
        assert!(sentences(&port(json!(10_000_000), "full", true)).is_empty(), "a tap says 10 Mb/s");
    }

    #[test]
    fn a_quota_a_disagreement_and_a_slow_clock_are_reported() {
        let document = json!({
            "cpu": {"agree": false, "disagreements": ["model: cpuid '106', /proc/cpuinfo '85'"],
                "by_cpuinfo": {"distinct_models": 2}},
            "limits": {"cpu_quota_cpus": 0.5, "cpu_quota_path": "/sys/fs/cgroup/box"},
            "topology": {"allowed_cpus": [0, 1]},
            "clock": {"read_median_ns": 900.0, "source": "hpet"},
        });
        let lines = sentences(&document);
        assert_eq!(lines.len(), 4, "{lines:?}");
        assert!(lines[2].contains("0.50 CPUs (/sys/fs/cgroup/box)"), "{lines:?}");
    }
}
