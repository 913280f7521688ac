//! Network ports: driver, line rate, duplex. The loopback is left out; ports without a device
//! behind them are named as virtual.
use super::Section;
use nephoscope_linux::files::{Fact, Files};

const NET: &str = "/sys/class/net";
const DOWN: &str = "the port is down";

pub fn section(files: &Files) -> Section {
    let mut section = Section::new("nics");
    match names(files) {
        Ok(names) => {
            let physical = names.iter().filter(|name| *name != "lo");
            section.list("ports", physical.map(|name| port(files, name)).collect());
        }
        Err(reason) => section.put::<()>("ports", Err(reason)),
    }
    section
}

/// Names from `/sys`, or from `/proc/net/dev` where that is hidden. `bonding_masters` and other
/// plain files have no type.
fn names(files: &Files) -> Fact<Vec<String>> {
    files.names(NET).map_or_else(
        |reason| {
            let text = files.text("/proc/net/dev").map_err(|_| reason)?;
            let lines = text.lines().skip(2);
            let name = |line: &str| Some(line.split_once(':')?.0.trim().to_owned());
            Ok(lines.filter_map(name).collect())
        },
        |names| {
            let real = |name: &String| files.exists(format!("{NET}/{name}/type"));
            Ok(names.into_iter().filter(real).collect())
        },
    )
}

fn port(files: &Files, name: &str) -> Section {
    let folder = format!("{NET}/{name}");
    let physical = files.exists(format!("{folder}/device"));
    let mut port = Section::new(format!("nics.{name}"));
    port.set("name", name);
    port.put("virtual", if files.exists(&folder) { Ok(!physical) } else { hidden() });
    let driver = if physical || !files.exists(&folder) {
        files.link_name(format!("{folder}/device/driver"))
    } else {
        Err("a virtual port has no device driver".to_owned())
    };
    port.put("driver", driver);
    let state = files.line(format!("{folder}/operstate"));
    // The kernel refuses to tell speed and duplex of a port that is down.
    let down = |reason| if state == Ok("down".to_owned()) { DOWN.to_owned() } else { reason };
    port.put("speed_bits_per_s", speed(files, &folder).map_err(down));
    port.put("duplex", duplex(files, &folder).map_err(down));
    port.put("state", state.clone());
    port.put("mtu_bytes", files.number::<u64>(format!("{folder}/mtu")));
    let queues = files.names(format!("{folder}/queues"));
    let count = |kind: &str| {
        queues.clone().map(|names| names.iter().filter(|name| name.starts_with(kind)).count())
    };
    port.put("receive_queues", count("rx-"));
    port.put("transmit_queues", count("tx-"));
    // What a wrong duplex shows itself by.
    for counter in ["rx_errors", "tx_errors", "collisions", "rx_dropped"] {
        let value = files.number::<u64>(format!("{folder}/statistics/{counter}"));
        port.put(&format!("{counter}_since_boot"), value);
    }
    port
}

fn hidden<T>() -> Fact<T> {
    Err(format!("{NET} is hidden"))
}

/// The line rate. The kernel writes -1 (or 2^32-1) where the driver does not know.
fn speed(files: &Files, folder: &str) -> Fact<u64> {
    let megabits: i64 = files.number(format!("{folder}/speed"))?;
    if megabits <= 0 || megabits >= i64::from(u32::MAX) {
        return Err("the driver does not tell the speed".to_owned());
    }
    Ok(megabits.cast_unsigned() * 1_000_000)
}

fn duplex(files: &Files, folder: &str) -> Fact<String> {
    let word = files.line(format!("{folder}/duplex"))?;
    if word == "unknown" {
        return Err("the driver does not tell the duplex".to_owned());
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;
    use serde_json::json;

    fn captured(speed: &str, duplex: &str) -> Captured {
        let captured = Captured::new(&[
            ("/sys/class/net/lo/type", "772\n"),
            ("/sys/class/net/bonding_masters", "\n"),
            ("/sys/class/net/eth0/type", "1\n"),
            ("/sys/class/net/eth0/speed", speed),
            ("/sys/class/net/eth0/duplex", duplex),
            ("/sys/class/net/eth0/operstate", "up\n"),
            ("/sys/class/net/eth0/mtu", "1500\n"),
            ("/sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
            ("/sys/class/net/eth0/queues/tx-0/xps_cpus", "0\n"),
            ("/sys/class/net/eth0/queues/tx-1/xps_cpus", "0\n"),
            ("/sys/class/net/eth0/statistics/collisions", "12345\n"),
            ("/sys/class/net/ifb0/type", "1\n"),
        ]);
        captured
            .link("/sys/class/net/eth0/device/driver", "../../../bus/virtio/drivers/virtio_net");
        captured
    }

    #[test]
    fn a_virtio_port_has_a_driver_and_no_speed() {
        let captured = captured("-1\n", "unknown\n");
        let (facts, missing) = section(&captured.files()).into_parts();
        let ports = facts["ports"].as_array().unwrap();
        assert_eq!(ports.len(), 2, "neither lo nor bonding_masters is a port");
        let eth0 = &ports[0];
        assert_eq!((&eth0["driver"], &eth0["virtual"]), (&json!("virtio_net"), &json!(false)));
        assert!(eth0["speed_bits_per_s"].is_null() && eth0["duplex"].is_null());
        assert_eq!((&eth0["receive_queues"], &eth0["transmit_queues"]), (&json!(1), &json!(2)));
        assert!(missing.iter().any(|entry| entry["fact"] == "nics.eth0.speed_bits_per_s"
            && entry["reason"] == "the driver does not tell the speed"));
        assert_eq!(ports[1]["virtual"], true);
    }

    #[test]
    fn a_10_megabit_half_duplex_port_is_reported_as_such() {
        let captured = captured("10\n", "half\n");
        let facts = section(&captured.files()).into_parts().0;
        let eth0 = &facts["ports"][0];
        assert_eq!(eth0["speed_bits_per_s"], 10_000_000);
        assert_eq!(
            (&eth0["duplex"], &eth0["collisions_since_boot"]),
            (&json!("half"), &json!(12345))
        );
    }

    #[test]
    fn with_sys_hidden_the_names_still_come_from_proc() {
        let dev = "Inter-|   Receive\n face |bytes\n    lo: 1 2\n  eth0: 3 4\n";
        let captured = Captured::new(&[("/proc/net/dev", dev)]);
        let facts = section(&captured.files()).into_parts().0;
        let ports = facts["ports"].as_array().unwrap();
        assert_eq!((ports.len(), &ports[0]["name"]), (1, &json!("eth0")));
        assert!(ports[0]["virtual"].is_null() && ports[0]["driver"].is_null());
    }
}
