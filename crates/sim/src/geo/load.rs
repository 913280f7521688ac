//! What is known before the run: more load than can be served, more memory than there is.
use super::network::MS;
use super::scenario::{Autoscaling, Broker, Overload, Scenario, Site};
use super::users::{DAY, HOUR};
use super::world::{Base, World};
use crate::error::Refused;
use crate::{Nanos, SECOND};

/// Bytes of a message in flight: its entry in the agenda, in the list, in an instance.
const MESSAGE_BYTES: f64 = 200.0;
/// Bytes of a histogram of times that reach hours.
const HISTOGRAM_BYTES: f64 = 300_000.0;
/// CloudAnalyst's and the default autoscaling's most instances.
const SCALED_MOST: u32 = 100;

/// Refuses a scenario whose sites or links are offered more than they can do at some hour, or that
/// would take more memory than there is.
pub fn check(scenario: &Scenario, world: &World) -> Result<(), Refused> {
    let memory = memory_bytes(scenario, world);
    let there = available_bytes();
    if memory > there {
        return Err(Refused::new(
            format!(
                "The simulation would take about {:.1} GB of memory, and {:.1} GB are free.",
                memory / 1e9,
                there / 1e9
            ),
            "Group more users (grouping.users), or simulate fewer.",
        ));
    }
    if scenario.overload == Overload::Run {
        return Ok(());
    }
    moments(world).into_iter().try_for_each(|at| {
        sites(scenario, world, at)?;
        links(scenario, world, at)
    })
}

/// Moments of the day at which some number of users changes.
fn moments(world: &World) -> Vec<Nanos> {
    let mut all: Vec<Nanos> =
        world.bases.iter().flat_map(|base| base.profile.starts().collect::<Vec<_>>()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Requests of a base a second at a moment of the day, pages counted once.
pub fn asked_per_s(base: &Base, at: Nanos) -> f64 {
    let users = base.profile.at(at).0;
    match (base.asks.think_time_s, base.asks.requests_per_user_h) {
        (Some(think_s), _) => {
            let nearest = base.nearest.first().and_then(|(site, _)| base.ways[*site].as_ref());
            let way_s = nearest.map_or(0.0, |way| 2.0 * way.mean_ns / SECOND as f64);
            users / (think_s + way_s)
        }
        (None, per_h) => users * per_h.unwrap_or(0.0) / 3600.0,
    }
}

/// The parts of a base's requests that each site gets; None if that depends on the run.
pub fn parts(scenario: &Scenario, world: &World, base: &Base) -> Option<Vec<f64>> {
    let missed = match &base.cache {
        Some((cache, _)) => 1.0 - scenario.caches.0[*cache].1.hit_ratio,
        None => 1.0,
    };
    let mut parts = vec![0.0; world.sites.len()];
    match scenario.broker {
        Broker::Closest | Broker::Reconfiguring => {
            let near = base.nearest.iter().take_while(|entry| entry.1 == 0);
            let count = near.clone().count() as f64;
            near.for_each(|(site, _)| parts[*site] = missed / count);
        }
        Broker::Weighted => {
            let connected = |site: &usize| base.ways[*site].is_some();
            let weight = |site: usize| world.sites[site].1.weight;
            let sum: f64 = (0..parts.len()).filter(connected).map(weight).sum();
            for site in (0..parts.len()).filter(connected) {
                parts[site] = missed * weight(site) / sum;
            }
        }
        Broker::BestResponse | Broker::Overflow { .. } => return None,
    }
    Some(parts)
}

/// Instructions a millisecond of a site with all instances that it may have.
fn capacity(scenario: &Scenario, site: &Site) -> (u32, f64) {
    let scaled = match (scenario.broker, site.autoscaling) {
        (_, Some(Autoscaling { most, .. })) => most,
        (Broker::Reconfiguring, None) => SCALED_MOST,
        _ => site.instances,
    };
    let instances = scaled.max(site.instances);
    let processors = f64::from(site.hosts) * f64::from(site.processors);
    (instances, f64::from(instances).min(processors) * site.speed)
}

fn clock(at: Nanos) -> String {
    format!("{:02}:{:02} UTC", at / HOUR, at % HOUR / (HOUR / 60))
}

fn sites(scenario: &Scenario, world: &World, at: Nanos) -> Result<(), Refused> {
    let mut offered = vec![0.0; world.sites.len()];
    let mut anywhere = 0.0;
    for base in &world.bases {
        let per_ms = asked_per_s(base, at) / 1e3 * base.served_each() * scenario.instructions;
        match parts(scenario, world, base) {
            Some(parts) => {
                offered.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part * per_ms);
            }
            None => anywhere += per_ms,
        }
    }
    let hint = "Give more or faster instances, or fewer users; with overload: run it is simulated \
                all the same.";
    for ((spot, site), offered) in world.sites.iter().zip(&offered) {
        let (instances, able) = capacity(scenario, site);
        if *offered >= able {
            let what = format!(
                "Site `{}` is offered {:.2} times what its {instances} instances can do at {}.",
                spot.name,
                offered / able,
                clock(at)
            );
            return Err(Refused::new(what, hint));
        }
    }
    let all: f64 = world.sites.iter().map(|(_, site)| capacity(scenario, site).1).sum();
    if anywhere >= all {
        let what = format!(
            "All sites together are offered {:.2} times what they can do at {}.",
            anywhere / all,
            clock(at)
        );
        return Err(Refused::new(what, hint));
    }
    Ok(())
}

fn links(scenario: &Scenario, world: &World, at: Nanos) -> Result<(), Refused> {
    let mut bits = vec![0.0; world.links.len()];
    if scenario.compat.is_some() {
        return Ok(());
    }
    for base in &world.bases {
        let Some(parts) = parts(scenario, world, base) else { return Ok(()) };
        let bytes = base.up_bytes().max(base.down_bytes());
        for (way, part) in base.ways.iter().zip(parts) {
            if let Some(way) = way {
                bits[way.link] += part * asked_per_s(base, at) * bytes * 8.0;
            }
        }
    }
    for (link, bits) in world.links.iter().zip(bits) {
        let Some(mbps) = link.mbps.filter(|mbps| bits >= mbps * 1e6) else { continue };
        let (a, b) = &link.between;
        return Err(Refused::new(
            format!(
                "The link between `{a}` and `{b}` is offered {:.2} times its {mbps} Mbit/s at {}.",
                bits / (mbps * 1e6),
                clock(at)
            ),
            "Give it more bandwidth, or smaller answers; with overload: run it is simulated all \
             the same.",
        ));
    }
    Ok(())
}

/// About how many bytes the simulation takes: what is in flight at the busiest moment, instances,
/// histograms.
pub fn memory_bytes(scenario: &Scenario, world: &World) -> f64 {
    let group = f64::from(scenario.grouping.users);
    let splits = group / f64::from(scenario.grouping.requests);
    let in_flight = |base: &Base| {
        let far = base.ways.iter().flatten().map(|way| way.mean_ns).fold(0.0, f64::max);
        let busiest = base.profile.starts().map(|at| base.profile.at(at).0).fold(0.0, f64::max);
        // A burst is in flight at once; a stream for as long as its answers take, waiting included.
        let together = if scenario.compat.is_some() {
            busiest
        } else {
            let rate = base.profile.starts().map(|at| asked_per_s(base, at)).fold(0.0, f64::max);
            rate * (4.0 * far / SECOND as f64 + 100.0 * scenario.instructions * MS / 1e10)
        };
        (together / group).ceil() * (1.0 + splits)
    };
    let messages: f64 = world.bases.iter().map(in_flight).sum();
    let instances: f64 =
        world.sites.iter().map(|(_, site)| f64::from(capacity(scenario, site).0)).sum();
    let histograms = world.regions.len() + world.sites.len() + world.caches.len() + 1;
    messages * MESSAGE_BYTES + instances * 400.0 + histograms as f64 * HISTOGRAM_BYTES
}

/// Bytes that may be taken: what the kernel says is available; 2 GB where it does not say.
fn available_bytes() -> f64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.map_or(2e9, |kilobytes| kilobytes * 1024.0)
}

/// Requests of a whole day, pages counted once.
pub fn requests_a_day(world: &World) -> f64 {
    let of = |base: &Base| {
        let steps: Vec<Nanos> = base.profile.starts().collect();
        let ends = steps.iter().skip(1).copied().chain([DAY]);
        let each = steps.iter().zip(ends);
        each.map(|(at, end)| asked_per_s(base, *at) * (end - at) as f64 / SECOND as f64)
            .sum::<f64>()
    };
    world.bases.iter().map(of).sum()
}
