//! What a line is given: ports, paths between them, a seed. JSON; every bound is checked here.
use crate::error::Result;
use nephoscope_wire::error::Error;
use serde::Deserialize;
use std::path::PathBuf;

/// Longest delay: ten seconds reach the moon and back four times.
const MAX_DELAY_NS: u64 = 10_000_000_000;
const MAX_PORTS: usize = 256;
const MAX_LIMIT: u32 = 1 << 20;
/// What may wait on a path that names no limit: 1 Gbit/s of full packets for 120 ms.
pub const DEFAULT_LIMIT: u32 = 10_000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub ports: Vec<Port>,
    /// Conditions between two ports; what is not named passes at once.
    #[serde(default)]
    pub paths: Vec<PathConfig>,
    #[serde(default)]
    pub seed: u64,
    /// Unix socket that takes new paths while the line runs.
    pub socket: Option<PathBuf>,
    /// Longest time before a release that is spent looking at the clock instead of sleeping.
    #[serde(default = "default::<30_000, _>")]
    pub spin_ns: u64,
    /// Whether to ask for real-time priority.
    #[serde(default = "yes")]
    pub realtime: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Port {
    /// Device name inside its namespace.
    pub name: String,
    /// Network namespace; the own one when absent.
    pub netns: Option<PathBuf>,
    /// Hardware address; the kernel's choice when absent.
    pub mac: Option<String>,
    /// Largest packet, without its Ethernet header.
    #[serde(default = "default::<1500, _>")]
    pub mtu: u32,
}

/// Conditions from one port to another, for that direction alone.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PathConfig {
    /// Port on which packets come in.
    pub from: usize,
    /// Port on which they go out.
    pub to: usize,
    /// Time that each packet is held.
    #[serde(default)]
    pub delay_ns: u64,
    /// Half the width of the uniform distribution around the delay.
    #[serde(default)]
    pub jitter_ns: u64,
    /// Part of the packets that is lost, each by itself.
    #[serde(default)]
    pub loss_ratio: f64,
    /// Part of the packets that arrives twice, each by itself.
    #[serde(default)]
    pub duplicate_ratio: f64,
    /// Rate at which packets follow each other onto the path, Ethernet header included.
    pub rate_bits_per_s: Option<f64>,
    /// Most packets that may wait on this path.
    pub limit_packets: Option<u32>,
    /// Whether jitter may let packets overtake each other.
    #[serde(default)]
    pub reorder: bool,
}

/// A line on the control channel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControlOrder {
    /// New conditions of these pairs; others stay.
    #[serde(default)]
    pub paths: Vec<PathConfig>,
    #[serde(default)]
    pub counters: bool,
}

fn default<const N: u16, T: From<u16>>() -> T {
    T::from(N)
}

fn yes() -> bool {
    true
}

pub fn read(text: &str) -> Result<Config> {
    let config: Config = serde_json::from_str(text).map_err(|error| {
        wrong(format!("The configuration of the line cannot be read: {error}."))
    })?;
    if !(2..=MAX_PORTS).contains(&config.ports.len()) {
        let count = config.ports.len();
        return Err(wrong(format!("A line has 2 to {MAX_PORTS} ports, not {count}.")));
    }
    for port in &config.ports {
        // The kernel's own bound: 15 characters and an end.
        if port.name.is_empty() || port.name.len() > 15 || port.name.contains('/') {
            return Err(wrong(format!("'{}' is no device name.", port.name)));
        }
        if !(68..=65_521).contains(&port.mtu) {
            return Err(wrong(format!("{}: an MTU is 68 to 65521, not {}.", port.name, port.mtu)));
        }
        port.mac.as_deref().map(parse_mac).transpose()?;
    }
    check_paths(&config.paths, config.ports.len())?;
    Ok(config)
}

/// Reads a line of the control channel.
pub fn read_order(text: &str, ports: usize) -> Result<ControlOrder> {
    let order: ControlOrder = serde_json::from_str(text)
        .map_err(|error| wrong(format!("This line of the control channel is wrong: {error}.")))?;
    check_paths(&order.paths, ports)?;
    Ok(order)
}

fn check_paths(paths: &[PathConfig], ports: usize) -> Result<()> {
    for path in paths {
        let name = format!("Path {} to {}", path.from, path.to);
        if path.from >= ports || path.to >= ports || path.from == path.to {
            return Err(wrong(format!("{name} is between no two of {ports} ports.")));
        }
        if path.delay_ns > MAX_DELAY_NS {
            return Err(wrong(format!("{name}: a delay is at most 10 s.")));
        }
        if path.jitter_ns > path.delay_ns {
            return Err(wrong(format!(
                "{name}: the jitter of {} ns is more than the delay of {} ns.",
                path.jitter_ns, path.delay_ns
            )));
        }
        for (what, ratio) in [("loss", path.loss_ratio), ("duplication", path.duplicate_ratio)] {
            if !(0.0..=1.0).contains(&ratio) {
                return Err(wrong(format!("{name}: a {what} of {ratio} is no ratio, 0 to 1.")));
            }
        }
        if path.rate_bits_per_s.is_some_and(|rate| !(1000.0..=1e12).contains(&rate)) {
            return Err(wrong(format!("{name}: a rate is 1 kbit/s to 1 Tbit/s.")));
        }
        if path.limit_packets.is_some_and(|limit| !(1..=MAX_LIMIT).contains(&limit)) {
            return Err(wrong(format!("{name}: a limit is 1 to {MAX_LIMIT} packets.")));
        }
    }
    Ok(())
}

/// Six bytes of `02:00:00:00:00:01`.
pub fn parse_mac(text: &str) -> Result<[u8; 6]> {
    let mut mac = [0; 6];
    let parts: Vec<_> = text.split(':').collect();
    let bytes = parts.iter().map(|part| u8::from_str_radix(part, 16));
    for (to, byte) in mac.iter_mut().zip(bytes) {
        *to = byte.map_err(|_| wrong(format!("'{text}' is no hardware address.")))?;
    }
    if parts.len() != 6 || mac[0] & 1 == 1 {
        return Err(wrong(format!("'{text}' is no hardware address of one device.")));
    }
    Ok(mac)
}

fn wrong(message: String) -> Error {
    Error::usage(message, "Correct it and start the line again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: &str = r#""ports":[{"name":"a"},{"name":"b"}]"#;

    #[test]
    fn what_is_absent_has_its_default() {
        let config = read(&format!(r#"{{{PORTS},"paths":[{{"from":0,"to":1}}]}}"#)).unwrap();
        assert_eq!(config.paths[0], PathConfig { from: 0, to: 1, ..PathConfig::default() });
        assert_eq!((config.ports[0].mtu, config.realtime, config.seed), (1500, true, 0));
    }

    #[test]
    fn wrong_configurations_are_one_sentence_each() {
        let path = |rest: &str| format!(r#"{{{PORTS},"paths":[{{"from":0,"to":1{rest}}}]}}"#);
        for (text, message) in [
            ("{".to_owned(), "cannot be read"),
            (format!(r#"{{{PORTS},"pahts":[]}}"#), "unknown field `pahts`"),
            (r#"{"ports":[{"name":"a"}]}"#.to_owned(), "2 to 256 ports, not 1"),
            (r#"{"ports":[{"name":"a"},{"name":"a/b"}]}"#.to_owned(), "'a/b' is no device name"),
            (format!(r#"{{{PORTS},"paths":[{{"from":1,"to":1}}]}}"#), "between no two"),
            (path(r#","delay_ns":1,"jitter_ns":2"#), "jitter of 2 ns is more than"),
            (path(r#","delay_ns":10000000001"#), "at most 10 s"),
            (path(r#","loss_ratio":1.5"#), "a loss of 1.5 is no ratio"),
            (path(r#","duplicate_ratio":-0.1"#), "a duplication of -0.1"),
            (path(r#","rate_bits_per_s":1"#), "1 kbit/s to 1 Tbit/s"),
            (path(r#","limit_packets":0"#), "a limit is 1 to"),
        ] {
            let error = read(&text).expect_err(&text);
            assert_eq!(error.kind.exit_code(), 2);
            assert!(error.message.contains(message), "{}", error.message);
        }
        assert!(read_order(r#"{"paths":[{"from":0,"to":2}]}"#, 2).is_err());
    }

    #[test]
    fn hardware_addresses_are_six_bytes_of_one_device() {
        assert_eq!(parse_mac("02:00:00:00:0a:ff").unwrap(), [2, 0, 0, 0, 10, 255]);
        for text in ["", "02:00", "02:00:00:00:00:00:00", "zz:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"]
        {
            assert!(parse_mac(text).is_err(), "{text}");
        }
    }
}
