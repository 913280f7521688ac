//! Checks before a run: offered load against capacity, and memory.
use super::network::MS;
use super::profile::HOUR;
use super::scenario::{Autoscaling, Broker, GeoScenario, Overload, Site};
use super::topology::{Base, Topology};
use crate::error::{refuse, Result};
use crate::{Nanos, SECOND};

/// Bytes of a message in flight: its event, its entry in the list, its entry in an instance.
const MESSAGE_BYTES: f64 = 200.0;
/// Bytes of a histogram of durations up to hours.
const HISTOGRAM_BYTES: f64 = 300_000.0;
/// Maximum number of instances of CloudAnalyst and of the default autoscaling rule.
const MAX_INSTANCES: u32 = 100;

/// Returns an error if a site or a link is offered more than its capacity at some hour, or if the run
/// would take more memory than is available.
pub fn check(scenario: &GeoScenario, topology: &Topology) -> Result<()> {
    let (needed, available) = (memory_bytes(scenario, topology), available_bytes());
    if needed > available {
        return refuse(
            format!(
                "The simulation would take about {:.1} GB of memory, and {:.1} GB are available.",
                needed / 1e9,
                available / 1e9
            ),
            "Group more users (grouping.users), or simulate fewer.",
        );
    }
    if scenario.overload == Overload::Run {
        return Ok(());
    }
    let mut starts: Vec<Nanos> =
        topology.bases.iter().flat_map(|base| base.profile.starts()).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.into_iter().try_for_each(|time| {
        check_sites(scenario, topology, time)?;
        check_links(scenario, topology, time)
    })
}

/// Returns the request rate of a base at a time of the day; a page counts once.
pub fn requests_per_s(base: &Base, time: Nanos) -> f64 {
    let users = base.profile.at(time).0;
    match (base.config.think_time_s, base.config.requests_per_user_h) {
        (Some(think_s), _) => {
            let nearest = base.nearest.first().and_then(|(site, _)| base.paths[*site].as_ref());
            let round_trip_s = nearest.map_or(0.0, |path| 2.0 * path.mean_ns / SECOND as f64);
            users / (think_s + round_trip_s)
        }
        (None, per_h) => users * per_h.unwrap_or(0.0) / 3600.0,
    }
}

/// Returns the share of a base's requests that each site receives; None if that depends on the run.
pub fn site_shares(scenario: &GeoScenario, topology: &Topology, base: &Base) -> Option<Vec<f64>> {
    let missed = match &base.cache {
        Some((cache, _)) => 1.0 - scenario.caches.0[*cache].1.hit_ratio,
        None => 1.0,
    };
    let mut shares = vec![0.0; topology.sites.len()];
    match scenario.broker {
        Broker::Closest | Broker::Reconfiguring => {
            let nearest = base.nearest.iter().take_while(|entry| entry.1 == 0);
            let count = nearest.clone().count() as f64;
            nearest.for_each(|(site, _)| shares[*site] = missed / count);
        }
        Broker::Weighted => {
            let is_connected = |site: &usize| base.paths[*site].is_some();
            let weight = |site: usize| topology.sites[site].1.weight;
            let sum: f64 = (0..shares.len()).filter(is_connected).map(weight).sum();
            for site in (0..shares.len()).filter(is_connected) {
                shares[site] = missed * weight(site) / sum;
            }
        }
        Broker::BestResponse | Broker::Overflow { .. } => return None,
    }
    Some(shares)
}

/// Returns the maximum number of instances of a site, and their instructions per millisecond.
fn capacity(scenario: &GeoScenario, site: &Site) -> (u32, f64) {
    let scaled = match (scenario.broker, site.autoscaling) {
        (_, Some(Autoscaling { max, .. })) => max,
        (Broker::Reconfiguring, None) => MAX_INSTANCES,
        _ => site.instances,
    };
    let instances = scaled.max(site.instances);
    let processors = f64::from(site.hosts) * f64::from(site.processors);
    (instances, f64::from(instances).min(processors) * site.speed)
}

fn clock(time: Nanos) -> String {
    format!("{:02}:{:02} UTC", time / HOUR, time % HOUR / (HOUR / 60))
}

fn check_sites(scenario: &GeoScenario, topology: &Topology, time: Nanos) -> Result<()> {
    let mut offered = vec![0.0; topology.sites.len()];
    let mut undirected = 0.0;
    for base in &topology.bases {
        let requests_per_ms = requests_per_s(base, time) / 1e3 * base.requests_per_response();
        let load = requests_per_ms * scenario.instructions;
        match site_shares(scenario, topology, base) {
            Some(shares) => {
                offered.iter_mut().zip(shares).for_each(|(sum, share)| *sum += share * load);
            }
            None => undirected += load,
        }
    }
    let hint = "Give more or faster instances, or fewer users; with `overload: run` it is \
                simulated all the same.";
    for ((location, site), offered) in topology.sites.iter().zip(&offered) {
        let (instances, capacity) = capacity(scenario, site);
        if *offered >= capacity {
            let (name, factor, clock) = (&location.name, offered / capacity, clock(time));
            return refuse(
                format!(
                    "sites.{name} is offered {factor:.2} times the capacity of its {instances} \
                     instances at {clock}."
                ),
                hint,
            );
        }
    }
    let all: f64 = topology.sites.iter().map(|(_, site)| capacity(scenario, site).1).sum();
    if undirected >= all {
        let (factor, clock) = (undirected / all, clock(time));
        let what = format!("sites: all are offered {factor:.2} times their capacity at {clock}.");
        return refuse(what, hint);
    }
    Ok(())
}

fn check_links(scenario: &GeoScenario, topology: &Topology, time: Nanos) -> Result<()> {
    let mut bits_per_s = vec![0.0; topology.links.len()];
    if scenario.compat.is_some() {
        return Ok(());
    }
    for base in &topology.bases {
        let Some(shares) = site_shares(scenario, topology, base) else { return Ok(()) };
        let bytes = base.up_bytes().max(base.down_bytes());
        for (path, share) in base.paths.iter().zip(shares) {
            if let Some(path) = path {
                bits_per_s[path.link] += share * requests_per_s(base, time) * bytes * 8.0;
            }
        }
    }
    for (link, bits_per_s) in topology.links.iter().zip(bits_per_s) {
        let Some(mbps) = link.mbps.filter(|mbps| bits_per_s >= mbps * 1e6) else { continue };
        let ((a, b), factor, clock) = (&link.between, bits_per_s / (mbps * 1e6), clock(time));
        return refuse(
            format!(
                "The link between `{a}` and `{b}` is offered {factor:.2} times its {mbps} Mbit/s \
                 at {clock}."
            ),
            "Give it more bandwidth, or smaller responses; with `overload: run` it is simulated all \
             the same.",
        );
    }
    Ok(())
}

/// Estimates the memory of a run: what is in flight at the busiest time, instances, histograms.
pub fn memory_bytes(scenario: &GeoScenario, topology: &Topology) -> f64 {
    let group = f64::from(scenario.grouping.users);
    let batches = group / f64::from(scenario.grouping.requests);
    let in_flight = |base: &Base| {
        let max = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        // A burst is in flight at once; a stream for as long as its responses take, with waiting.
        let simultaneous = if scenario.compat.is_some() {
            max(&mut base.profile.starts().map(|time| base.profile.at(time).0))
        } else {
            let latency_ns = max(&mut base.paths.iter().flatten().map(|path| path.mean_ns));
            let rate = max(&mut base.profile.starts().map(|time| requests_per_s(base, time)));
            rate * (4.0 * latency_ns / SECOND as f64 + 100.0 * scenario.instructions * MS / 1e10)
        };
        (simultaneous / group).ceil() * (1.0 + batches)
    };
    let messages: f64 = topology.bases.iter().map(in_flight).sum();
    let instances: f64 =
        topology.sites.iter().map(|(_, site)| f64::from(capacity(scenario, site).0)).sum();
    let histograms = topology.regions.len() + topology.sites.len() + topology.caches.len() + 1;
    messages * MESSAGE_BYTES + instances * 400.0 + histograms as f64 * HISTOGRAM_BYTES
}

/// Returns the memory that the kernel says is available; 2 GB if it does not say.
fn available_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(2e9, |kilobytes| kilobytes * 1024.0)
}
