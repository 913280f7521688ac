//! Why the loop did not run: what the kernel's counters say, asked by the loop itself right after a
//! gap. A sampler thread would be a disturbance of its own.
use crate::timing::ticks::Ticks;
use nephoscope_linux::cgroup::{Cgroups, Throttled};
use nephoscope_linux::clock;
use nephoscope_linux::files::Files;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::os::fd::AsRawFd;

/// What the kernel knows about a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The own cgroup (or one above it) ran out of its CPU quota.
    Throttled,
    /// The hypervisor ran somebody else, and says so.
    Stolen,
    /// The kernel ran somebody else on this CPU.
    Preempted,
    /// The thread itself was put to sleep: stop signal, debugger, freezer.
    Stopped,
    /// No counter moved: interrupt, firmware, a hypervisor that does not tell.
    Unexplained,
}

/// Gaps from here on are worth reading the cgroup's counters: a quota takes whole milliseconds.
const ASK_CGROUP_NS: u64 = 1_000_000;
/// Gaps from here on can move the steal counter, which counts in ticks of 10 ms.
const ASK_STEAL_NS: u64 = 8_000_000;
/// Levels of control groups that are asked; each costs a few microseconds.
const DEEPEST: usize = 8;

/// The counters of one loop, and what they were when last read.
pub struct Causes {
    switches: Option<Switches>,
    throttling: Vec<Counter>,
    throttled: u64,
    steal: Option<StealFile>,
    stolen_ns: u64,
    /// Ticks that asking takes, by depth.
    usual: [u64; 3],
}

impl Causes {
    /// Opens what this machine shows, for a loop on `cpu`.
    pub fn open(cpu: Option<usize>) -> Self {
        let mut causes = Self {
            switches: None,
            throttling: throttling_files(),
            throttled: 0,
            steal: StealFile::open(cpu),
            stolen_ns: 0,
            usual: [0; 3],
        };
        causes.restart();
        causes
    }

    /// Measures how long asking takes; the least of a few, so that a gap in between does not count.
    pub fn rehearse<C: Ticks>(&mut self) {
        for (depth, length_ns) in [0, ASK_CGROUP_NS, ASK_STEAL_NS].into_iter().enumerate() {
            let once = |_| {
                let before = C::now();
                std::hint::black_box(self.find(length_ns));
                C::now().saturating_sub(before)
            };
            self.usual[depth] = (0..8).map(once).min().unwrap_or(0);
        }
        self.restart();
    }

    /// Takes the counters as they are for the beginning.
    pub fn restart(&mut self) {
        self.switches = Switches::read();
        self.throttled = self.read_throttled();
        self.stolen_ns = self.read_stolen_ns();
    }

    /// Ticks that asking about a gap of this length takes when nothing disturbs.
    pub fn usual_ticks(&self, length_ns: u64) -> u64 {
        self.usual[depth(length_ns)]
    }

    /// Involuntary switches since the beginning of the process's thread.
    pub fn involuntary(&self) -> Option<i64> {
        Switches::read().map(|switches| switches.involuntary)
    }

    /// Why a gap of this length came about. Allocates nothing.
    pub fn find(&mut self, length_ns: u64) -> Cause {
        let before = self.switches;
        self.switches = Switches::read();
        let (mut throttled, mut stolen) = (false, false);
        if depth(length_ns) >= 1 {
            let count = self.read_throttled();
            throttled = count > self.throttled;
            self.throttled = count;
        }
        if depth(length_ns) >= 2 {
            let now_ns = self.read_stolen_ns();
            // A few ticks may have gathered since the last reading; less than half of the gap does
            // not explain it.
            stolen = now_ns.saturating_sub(self.stolen_ns) >= length_ns / 2;
            self.stolen_ns = now_ns;
        }
        let rose = |counter: fn(&Switches) -> i64| matches!((&before, &self.switches), (Some(a), Some(b)) if counter(b) > counter(a));
        let (preempted, stopped) = (rose(|s| s.involuntary), rose(|s| s.voluntary));
        if depth(length_ns) >= 1 {
            self.forget_own_sleep();
        }
        match (throttled, stolen, preempted, stopped) {
            (true, ..) => Cause::Throttled,
            (_, true, ..) => Cause::Stolen,
            (_, _, _, true) => Cause::Stopped,
            (_, _, true, _) => Cause::Preempted,
            _ => Cause::Unexplained,
        }
    }

    /// Reading a file of the kernel may itself sleep for a lock; that is no stop of the next gap.
    pub fn forget_own_sleep(&mut self) {
        if let (Some(latest), Some(now)) = (&mut self.switches, Switches::read()) {
            latest.voluntary = now.voluntary;
        }
    }

    fn read_throttled(&self) -> u64 {
        self.throttling.iter().filter_map(Counter::read).sum()
    }

    fn read_stolen_ns(&mut self) -> u64 {
        self.steal.as_mut().and_then(StealFile::read_ns).unwrap_or(0)
    }
}

fn depth(length_ns: u64) -> usize {
    usize::from(length_ns >= ASK_CGROUP_NS) + usize::from(length_ns >= ASK_STEAL_NS)
}

/// Context switches of this thread.
#[derive(Clone, Copy, Debug)]
pub struct Switches {
    /// It gave the CPU up.
    pub voluntary: i64,
    /// It was taken from it.
    pub involuntary: i64,
}

impl Switches {
    /// So far; `None` where the kernel does not tell.
    pub fn read() -> Option<Self> {
        let usage = clock::usage(libc::RUSAGE_THREAD)?;
        Some(Self { voluntary: usage.ru_nvcsw, involuntary: usage.ru_nivcsw })
    }

    /// Those of the calling thread since `before`.
    pub fn since(before: Option<Self>) -> Option<Self> {
        let (before, now) = (before?, Self::read()?);
        Some(Self {
            voluntary: now.voluntary - before.voluntary,
            involuntary: now.involuntary - before.involuntary,
        })
    }
}

/// `nr_throttled` of a cgroup.
struct Counter(File);

impl Counter {
    fn read(&self) -> Option<u64> {
        let mut text = [0u8; 1024];
        let length = read_at_start(&self.0, &mut text)?;
        number_after(&text[..length], b"nr_throttled ")
    }
}

/// The `cpu.stat` of the own cgroup and of those above it, whose quota stops us too.
fn throttling_files() -> Vec<Counter> {
    let files = Files::machine();
    let levels = Cgroups::find(&files).throttled(&files).unwrap_or_default();
    let open = |level: Throttled| File::open(level.path.join("cpu.stat")).ok().map(Counter);
    levels.into_iter().take(DEEPEST).filter_map(open).collect()
}

/// The steal time of one CPU in `/proc/stat` (of all CPUs for a loop that is not pinned).
struct StealFile {
    file: File,
    label: Vec<u8>,
    text: Vec<u8>,
    tick_ns: u64,
}

impl StealFile {
    fn open(cpu: Option<usize>) -> Option<Self> {
        let label = cpu.map_or_else(|| b"cpu ".to_vec(), |cpu| format!("cpu{cpu} ").into_bytes());
        let whole = std::fs::read("/proc/stat").ok()?;
        // The lines before ours and our own, with room for numbers that grow.
        let line = whole.windows(label.len()).position(|window| window == label)?;
        // SAFETY: asks for a constant of the system.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let mut file = Self {
            file: File::open("/proc/stat").ok()?,
            label,
            text: vec![1; (line * 2 + 1024).next_multiple_of(4096)],
            tick_ns: 1_000_000_000 / u64::try_from(ticks_per_s).ok().filter(|ticks| *ticks > 0)?,
        };
        file.read_ns().is_some().then_some(file)
    }

    fn read_ns(&mut self) -> Option<u64> {
        let length = read_at_start(&self.file, &mut self.text)?;
        let text = &self.text[..length];
        let at = text.windows(self.label.len()).position(|window| window == self.label)?;
        let line = text[at..].split(|byte| *byte == b'\n').next()?;
        // user nice system idle iowait irq softirq steal
        let steal = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).nth(8)?;
        Some(number(steal)? * self.tick_ns)
    }
}

fn read_at_start(file: &File, text: &mut [u8]) -> Option<usize> {
    // SAFETY: the buffer is ours and as long as said.
    let length = unsafe { libc::pread(file.as_raw_fd(), text.as_mut_ptr().cast(), text.len(), 0) };
    usize::try_from(length).ok().filter(|length| *length > 0)
}

fn number_after(text: &[u8], label: &[u8]) -> Option<u64> {
    let at = text.windows(label.len()).position(|window| window == label)?;
    number(&text[at + label.len()..])
}

/// The leading decimal digits.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let mut any = false;
    let value = digits.fold(0u64, |value, digit| {
        any = true;
        value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'))
    });
    any.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::attempts::{attempt, holds};

    #[test]
    fn numbers_are_found_after_their_label() {
        let text = b"nr_periods 12\nnr_throttled 7\nthrottled_time 900\n";
        assert_eq!(number_after(text, b"nr_throttled "), Some(7));
        assert_eq!(number_after(text, b"nr_bursts "), None);
        assert_eq!(number(b"x1"), None);
    }

    #[test]
    fn this_machine_shows_its_steal_and_switches() {
        assert!(Switches::read().is_some());
        let cpu = crate::trial::affinity::allowed()[0];
        assert!(StealFile::open(Some(cpu)).unwrap().read_ns().is_some());
        assert!(StealFile::open(None).unwrap().read_ns().is_some());
    }

    #[test]
    fn a_sleep_is_a_stop_and_nothing_is_unexplained() {
        // Where the thread is preempted between two looks, that is a cause too.
        attempt("nothing, then a sleep", || {
            let mut causes = Causes::open(None);
            let nothing = causes.find(1000);
            std::thread::sleep(std::time::Duration::from_millis(1));
            let slept = causes.find(1000);
            let held = (nothing, slept) == (Cause::Unexplained, Cause::Stopped);
            holds(held, format!("{nothing:?}, {slept:?}"))
        });
    }
}
