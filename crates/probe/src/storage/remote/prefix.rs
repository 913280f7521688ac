//! The name below which a trial has its objects, and whether another trial's has been given up.
use crate::error::Result;
use nephoscope_linux::clock;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;

const MARK: &str = "nephoscope";
/// Clocks of machines that share a bucket differ by less.
const CLOCKS_DIFFER_S: u64 = 600;

/// `nephoscope-OWNER-PID-UNTIL-NOISE`. OWNER stands for the machine, its boot and the process
/// namespace, so that whether the process still runs can be seen; UNTIL is when the trial has ended
/// at the latest, which every other machine goes by.
#[derive(Clone, Debug)]
pub struct Prefix {
    owner: String,
    pid: u32,
    until_s: u64,
    noise: String,
}

impl Prefix {
    /// Draws the name of a trial that lasts no longer than `deadline` from now on.
    pub fn draw(deadline: Duration) -> Result<Self> {
        let noise: [u8; 4] = crate::net::random_bytes()?;
        Ok(Self {
            owner: owner(),
            pid: std::process::id(),
            until_s: clock::realtime_ns() / 1_000_000_000 + deadline.as_secs() + 1,
            noise: format!("{:08x}", u32::from_le_bytes(noise)),
        })
    }

    pub fn name(&self) -> String {
        format!("{MARK}-{}-{}-{}-{}", self.owner, self.pid, self.until_s, self.noise)
    }

    /// Returns whether `name` is that of a trial that has ended.
    pub fn is_abandoned(&self, name: &str) -> bool {
        let now_s = clock::realtime_ns() / 1_000_000_000;
        self.is_abandoned_at(name, now_s, |pid| Path::new("/proc").join(pid.to_string()).exists())
    }

    fn is_abandoned_at(&self, name: &str, now_s: u64, runs: impl Fn(u32) -> bool) -> bool {
        let Some(prefix) = parse(name) else { return false };
        if prefix.owner == self.owner && prefix.pid != self.pid && !runs(prefix.pid) {
            return true;
        }
        prefix.until_s + CLOCKS_DIFFER_S < now_s
    }
}

fn parse(name: &str) -> Option<Prefix> {
    let mut words = name.split('-');
    let is_hex = |word: &&str| word.len() == 8 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let mark = words.next()?;
    let owner = words.next().filter(is_hex)?.to_owned();
    let pid = words.next()?.parse().ok()?;
    let until_s = words.next()?.parse().ok()?;
    let noise = words.next().filter(is_hex)?.to_owned();
    (mark == MARK && words.next().is_none()).then_some(Prefix { owner, pid, until_s, noise })
}

/// Returns a word for this machine since it was started, as seen from this process namespace.
fn owner() -> String {
    let boot = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let mut hash = Sha256::new();
    hash.update(boot);
    hash.update(namespace.as_os_str().as_encoded_bytes());
    hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_that_ended_are_known_by_their_process_or_their_time() {
        let own = Prefix::draw(Duration::from_secs(60)).unwrap();
        assert_eq!(parse(&own.name()).unwrap().name(), own.name());
        let now_s = own.until_s;
        let name_of = |owner: &str, pid: u32, until_s: u64| {
            format!("nephoscope-{owner}-{pid}-{until_s}-0123abcd")
        };
        let gone = |name: &str| own.is_abandoned_at(name, now_s, |pid| pid == 1);
        assert!(!gone(&own.name()));
        assert!(!gone(&name_of(&own.owner, 1, now_s)));
        assert!(gone(&name_of(&own.owner, own.pid + 1, now_s)));
        assert!(!gone(&name_of("ffffffff", 2, now_s)));
        assert!(gone(&name_of("ffffffff", 2, now_s - CLOCKS_DIFFER_S - 1)));
        for name in
            ["nephoscope", "data", "nephoscope-x-1-2-3", "nephoscope-0123abcd-1-2-0123abcd-x"]
        {
            assert!(!gone(name), "{name}");
        }
    }
}
