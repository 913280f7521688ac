//! The line without a kernel: frames in with a time, frames out with a time. Decides where a frame
//! goes, holds it, hands it out when it is due.
use super::config::{self, Config};
use super::path::{path_random, DelayPath, PacketAction};
use super::slots::{Held, PacketBuffers};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;

/// Addresses that a port may be known for; more are flooded.
const MAX_ADDRESSES: usize = 65_536;
const MIN_SLOTS: usize = 16_384;
const MAX_SLOTS: usize = 1 << 20;
/// Ethernet header with a VLAN tag.
const HEADER_BYTES: usize = 18;

#[derive(Debug)]
pub struct Engine {
    ports: usize,
    /// Row `from`, column `to`; the diagonal is never used.
    paths: Vec<DelayPath>,
    addresses: HashMap<[u8; 6], u16>,
    /// Packets that wait, the next one on top. It has room for as many as there are slots.
    queue: BinaryHeap<Reverse<Held>>,
    /// Number of packets that were held so far.
    held: u64,
    pub slots: PacketBuffers,
}

impl Engine {
    /// A line of this configuration; takes all its memory.
    pub fn new(config: &Config) -> io::Result<Self> {
        let ports = config.ports.len();
        let mut paths: Vec<_> = (0..ports * ports)
            .map(|at| {
                let conditions =
                    config::PathConfig { from: at / ports, to: at % ports, ..Default::default() };
                DelayPath::new(conditions, path_random(config.seed, at as u64))
            })
            .collect();
        for path in &config.paths {
            paths[path.from * ports + path.to].change(path.clone());
        }
        let limit = |path: &config::PathConfig| {
            path.limit_packets.unwrap_or(config::DEFAULT_LIMIT) as usize
        };
        let wanted: usize = config.paths.iter().map(limit).sum();
        let count = wanted.clamp(MIN_SLOTS, MAX_SLOTS) + 1;
        let largest = config.ports.iter().map(|port| port.mtu as usize).max().unwrap_or(0);
        Ok(Self {
            ports,
            paths,
            addresses: HashMap::with_capacity(1024),
            queue: BinaryHeap::with_capacity(count),
            held: 0,
            slots: PacketBuffers::new(count, largest + HEADER_BYTES)?,
        })
    }

    /// Other conditions for these pairs from now on.
    pub fn change(&mut self, paths: &[config::PathConfig]) {
        for path in paths {
            self.paths[path.from * self.ports + path.to].change(path.clone());
        }
    }

    /// Every path between two different ports.
    pub fn paths(&self) -> impl Iterator<Item = &DelayPath> {
        self.paths.iter().filter(|path| path.conditions().from != path.conditions().to)
    }

    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// When the next packet is due.
    pub fn next_ns(&self) -> Option<u64> {
        self.queue.peek().map(|held| held.0.release_ns)
    }

    /// Knows from the start behind which port an address is.
    pub fn learn(&mut self, mac: [u8; 6], port: usize) {
        if self.addresses.len() < MAX_ADDRESSES || self.addresses.contains_key(&mac) {
            self.addresses.insert(mac, port as u16);
        }
    }

    /// Takes a frame that lies in `slot`; the slot belongs to the line from now on.
    pub fn accept(&mut self, from: usize, slot: u32, bytes: usize, now_ns: u64) {
        if self.ports == 2 {
            self.hold(from, 1 - from, slot, bytes, now_ns);
            return;
        }
        let Some((to_mac, from_mac)) = addresses_of(&self.slots.bytes(slot)[..bytes]) else {
            self.slots.give(slot);
            return;
        };
        if from_mac[0] & 1 == 0 && self.addresses.get(&from_mac) != Some(&(from as u16)) {
            self.learn(from_mac, from);
        }
        match self.addresses.get(&to_mac) {
            Some(port) if usize::from(*port) == from => self.slots.give(slot),
            Some(port) => self.hold(from, usize::from(*port), slot, bytes, now_ns),
            None => self.flood(from, slot, bytes, now_ns),
        }
    }

    /// A copy to every other port, each over its own path.
    fn flood(&mut self, from: usize, slot: u32, bytes: usize, now_ns: u64) {
        for to in (0..self.ports).filter(|to| *to != from) {
            if let Some(copy) = self.slots.take() {
                self.slots.copy(slot, copy, bytes);
                self.hold(from, to, copy, bytes, now_ns);
            } else {
                let path = &mut self.paths[from * self.ports + to];
                path.counters.offered += 1;
                path.counters.full += 1;
            }
        }
        self.slots.give(slot);
    }

    fn hold(&mut self, from: usize, to: usize, slot: u32, bytes: usize, now_ns: u64) {
        let path = &mut self.paths[from * self.ports + to];
        let PacketAction::Held { release_ns, copy_ns } = path.offer(now_ns, bytes) else {
            self.slots.give(slot);
            return;
        };
        if let Some(copy_ns) = copy_ns {
            if let Some(copy) = self.slots.take() {
                self.slots.copy(slot, copy, bytes);
                self.push(copy_ns, copy, bytes, from, to);
            } else {
                self.paths[from * self.ports + to].refused();
            }
        }
        self.push(release_ns, slot, bytes, from, to);
    }

    fn push(&mut self, release_ns: u64, slot: u32, bytes: usize, from: usize, to: usize) {
        debug_assert!(self.queue.len() < self.queue.capacity(), "a push here would take memory");
        self.held += 1;
        let (number, bytes, from, to) = (self.held, bytes as u32, from as u16, to as u16);
        self.queue.push(Reverse(Held { release_ns, number, slot, bytes, from, to }));
    }

    /// The next frame that is due.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<Held> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.queue.pop().map(|held| held.0)
    }

    /// Counts a frame that was popped and written (or not), and frees its buffer.
    pub fn released(&mut self, held: Held, now_ns: u64, accepted: bool) {
        let path = &mut self.paths[usize::from(held.from) * self.ports + usize::from(held.to)];
        path.released(held.bytes as usize, now_ns.saturating_sub(held.release_ns), accepted);
        self.slots.give(held.slot);
    }
}

/// Destination and source of an Ethernet frame; none of what is too short to be one.
fn addresses_of(frame: &[u8]) -> Option<([u8; 6], [u8; 6])> {
    Some((frame.get(..6)?.try_into().ok()?, frame.get(6..12)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [u8; 6] = [0xff; 6];

    fn mac(port: u8) -> [u8; 6] {
        [2, 0, 0, 0, 0, port]
    }

    fn engine(ports: usize, paths: &str) -> Engine {
        let names: Vec<_> = (0..ports).map(|n| format!(r#"{{"name":"p{n}"}}"#)).collect();
        let text = format!(r#"{{"ports":[{}],"paths":[{paths}],"seed":4}}"#, names.join(","));
        Engine::new(&config::read(&text).unwrap()).unwrap()
    }

    fn send(engine: &mut Engine, from: u8, to: [u8; 6], now_ns: u64) {
        let slot = engine.slots.take().unwrap();
        let frame = engine.slots.bytes(slot);
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&mac(from));
        engine.accept(usize::from(from), slot, 60, now_ns);
    }

    /// (time, from, to) of all that comes out.
    fn drain(engine: &mut Engine) -> Vec<(u64, u16, u16)> {
        let mut out = Vec::new();
        while let Some(now_ns) = engine.next_ns() {
            let held = engine.pop_due(now_ns).unwrap();
            out.push((held.release_ns, held.from, held.to));
            engine.released(held, now_ns, true);
        }
        out
    }

    #[test]
    fn two_ports_pass_everything_to_each_other() {
        let mut engine =
            engine(2, r#"{"from":0,"to":1,"delay_ns":50},{"from":1,"to":0,"delay_ns":7}"#);
        send(&mut engine, 0, mac(9), 100);
        send(&mut engine, 1, ALL, 100);
        assert_eq!(drain(&mut engine), [(107, 1, 0), (150, 0, 1)]);
    }

    #[test]
    fn a_hub_learns_where_addresses_are_and_each_pair_has_its_delay() {
        let mut paths = Vec::new();
        for from in 0..3 {
            for to in (0..3).filter(|to| *to != from) {
                let delay_ns = 100 * from + 10 * to;
                paths.push(format!(r#"{{"from":{from},"to":{to},"delay_ns":{delay_ns}}}"#));
            }
        }
        let mut engine = engine(3, &paths.join(","));
        engine.learn(mac(2), 2);
        send(&mut engine, 0, mac(2), 0);
        assert_eq!(drain(&mut engine), [(20, 0, 2)], "known from the start");
        send(&mut engine, 1, ALL, 0);
        assert_eq!(drain(&mut engine), [(100, 1, 0), (120, 1, 2)], "all the others");
        send(&mut engine, 2, mac(1), 0);
        assert_eq!(drain(&mut engine), [(210, 2, 1)], "learned from the broadcast");
        send(&mut engine, 0, mac(7), 0);
        assert_eq!(drain(&mut engine), [(10, 0, 1), (20, 0, 2)], "unknown goes to all");
        send(&mut engine, 1, mac(1), 0);
        assert!(drain(&mut engine).is_empty(), "its own side has it already");
    }

    #[test]
    fn packets_come_out_in_order_of_release_then_of_arrival() {
        let mut engine = engine(2, "");
        let mut random = path_random(2, 0);
        let mut expected = Vec::new();
        for slot in 0..5000 {
            let release_ns = random.below(100);
            engine.push(release_ns, slot, 60, 0, 1);
            expected.push((release_ns, slot));
        }
        expected.sort_unstable();
        let mut released = Vec::new();
        for now in 0..100 {
            while let Some(held) = engine.pop_due(now) {
                assert_eq!(held.release_ns, now, "it came late or early");
                released.push((held.release_ns, held.slot));
            }
        }
        assert_eq!(released, expected);
        assert_eq!((engine.waiting(), engine.next_ns()), (0, None));
    }

    #[test]
    fn an_address_that_moves_is_followed() {
        let mut engine = engine(3, "");
        send(&mut engine, 0, ALL, 0);
        drain(&mut engine);
        let slot = engine.slots.take().unwrap();
        let frame = engine.slots.bytes(slot);
        frame[..6].copy_from_slice(&ALL);
        frame[6..12].copy_from_slice(&mac(0));
        engine.accept(1, slot, 60, 0);
        drain(&mut engine);
        send(&mut engine, 2, mac(0), 5);
        assert_eq!(drain(&mut engine), [(5, 2, 1)]);
    }

    #[test]
    fn no_buffer_is_ever_lost() {
        let path = r#"{"from":0,"to":1,"loss_ratio":0.3,"duplicate_ratio":0.4,"delay_ns":100,
            "jitter_ns":50,"limit_packets":40,"reorder":true}"#;
        let mut engine = engine(3, path);
        let mut random = path_random(9, 9);
        let free = |engine: &mut Engine| {
            let all: Vec<_> = std::iter::from_fn(|| engine.slots.take()).collect();
            all.iter().for_each(|slot| engine.slots.give(*slot));
            all.len()
        };
        let before = free(&mut engine);
        for now_ns in 0..20_000 {
            let to = [mac(0), mac(1), mac(2), ALL][random.below(4) as usize];
            send(&mut engine, random.below(3) as u8, to, now_ns);
            while let Some(held) = engine.pop_due(now_ns) {
                assert!(held.release_ns <= now_ns);
                engine.released(held, now_ns, random.bernoulli(0.9));
            }
        }
        drain(&mut engine);
        assert_eq!((free(&mut engine), engine.waiting()), (before, 0));
        for path in engine.paths() {
            let c = path.counters;
            assert_eq!(c.offered + c.duplicated, c.delivered + c.lost + c.full + c.failed);
        }
    }

    #[test]
    fn what_is_too_short_for_a_frame_is_dropped() {
        let mut engine = engine(3, "");
        let slot = engine.slots.take().unwrap();
        engine.accept(0, slot, 11, 0);
        assert_eq!(engine.waiting(), 0);
    }
}
