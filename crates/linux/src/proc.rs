//! Parsers of the texts that `/proc` shows. Pure: text in, numbers out; what a text lacks is
//! `None`, never 0. Formats: Linux `Documentation/filesystems/proc.rst`, `accounting/psi.rst`.

/// Ticks that all CPUs together spent, from the `cpu` line of `/proc/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTimes {
    /// user, nice, system, irq and softirq; guest time is inside user and nice.
    pub busy: i64,
    /// idle and iowait.
    pub idle: i64,
    /// Time that the hypervisor gave to somebody else; `None` when the line ends before it.
    pub steal: Option<i64>,
}

impl CpuTimes {
    pub fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<i64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, idle, rest @ ..] = ticks.as_slice() else { return None };
        let at = |index: usize| rest.get(index).copied();
        Some(Self {
            busy: user + nice + system + at(1).unwrap_or(0) + at(2).unwrap_or(0),
            idle: idle + at(0).unwrap_or(0),
            steal: at(3),
        })
    }

    pub fn total(&self) -> i64 {
        self.busy + self.idle + self.steal.unwrap_or(0)
    }

    /// Share of all CPU time since `before` that was stolen,
    /// `Δsteal / Δ(user+nice+system+idle+iowait+irq+softirq+steal)`.
    pub fn steal_ratio(&self, before: &Self) -> Option<f64> {
        share(self.steal? - before.steal?, self.total() - before.total())
    }

    /// Share of all CPU time since `before` in which this machine's own work ran.
    pub fn busy_ratio(&self, before: &Self) -> Option<f64> {
        share(self.busy - before.busy, self.total() - before.total())
    }
}

/// Fewer ticks (10 ms of one CPU each, as a rule) than this make no share: one of them would be
/// more than 10 %.
const MIN_TICKS: i64 = 10;

/// `part / whole`; nothing when too few ticks passed, or when a counter went back (a CPU went
/// offline).
fn share(part: i64, whole: i64) -> Option<f64> {
    (whole >= MIN_TICKS && (0..=whole).contains(&part)).then(|| part as f64 / whole as f64)
}

/// Cumulative stall time in microseconds of one line (`some`, `full`) of a pressure file.
pub fn psi_total_us(pressure: &str, line: &str) -> Option<u64> {
    let line = pressure.lines().find(|text| text.split_whitespace().next() == Some(line))?;
    line.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
}

/// Nanoseconds that a thread waited for a CPU while it could have run (`schedstat`; Linux
/// `Documentation/scheduler/sched-stats.rst`).
pub fn run_queue_wait_ns(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// Value of `key` in a text of `key value` lines (`/proc/vmstat`, `cpu.stat`).
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        if name == key {
            value.trim().parse().ok()
        } else {
            None
        }
    })
}

/// Value of `key` in a text of `key : value` lines (`/proc/self/status`, `/proc/cpuinfo`); the
/// first one, without the white space around it. An empty value is `None`.
pub fn field<'text>(text: &'text str, key: &str) -> Option<&'text str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        (name.trim() == key && !value.is_empty()).then_some(value)
    })
}

/// Bytes of a `Key:   123 kB` line (`/proc/meminfo`, `/proc/self/status`).
pub fn kib_field(text: &str, key: &str) -> Option<u64> {
    let kib: u64 = field(text, key)?.strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Bytes of a cache's size as `/sys` writes it: `36608K`, `1M` or `512`. 0, which stands for a size that
/// the kernel does not know, is `None`.
pub fn cache_bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

pub fn load_1m(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

/// CPUs of a list such as `0-3,8,10-11`; `None` when it is none. An empty list has no CPU.
pub fn cpu_list(text: &str) -> Option<Vec<usize>> {
    /// More CPUs than Linux can be built for: a longer range is no CPU list.
    const MAX_CPUS: usize = 8192;
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.trim().is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let first: usize = first.trim().parse().ok()?;
        let last: usize = last.trim().parse().ok()?;
        if first > last || last >= MAX_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  16761 5 3129 224830 1429 2 165 4024 7 0\ncpu0 6800 0 1275 1 1 0 73 1\n";

    #[test]
    fn the_cpu_line_is_read_without_counting_guests_twice() {
        let times = CpuTimes::parse(STAT).unwrap();
        let busy = 16761 + 5 + 3129 + 2 + 165;
        assert_eq!(times, CpuTimes { busy, idle: 224_830 + 1429, steal: Some(4024) });
        assert_eq!(times.total(), busy + 224_830 + 1429 + 4024);
    }

    #[test]
    fn sizes_of_caches_have_units() {
        let sizes = [("512", 512), ("32K", 32 << 10), ("36608K", 36_608 << 10), ("2M", 2 << 20)];
        for (text, bytes) in sizes {
            assert_eq!(cache_bytes(text), Some(bytes), "{text}");
        }
        for nonsense in ["", "K", "12X", "-1K", "0K", "big"] {
            assert_eq!(cache_bytes(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn steal_follows_its_formula() {
        let before = CpuTimes { busy: 5000, idle: 4650, steal: Some(350) };
        let after = CpuTimes { busy: 5900, idle: 4980, steal: Some(620) };
        assert_eq!((before.total(), after.total()), (10_000, 11_500));
        assert!((after.steal_ratio(&before).unwrap() - 0.18).abs() < 1e-12);
        assert!((after.busy_ratio(&before).unwrap() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn a_hidden_or_backward_counter_is_no_zero() {
        let old = CpuTimes::parse("cpu  100 0 100 800\n").unwrap();
        assert_eq!(old.steal, None);
        let later = CpuTimes::parse("cpu  150 0 150 900\n").unwrap();
        assert_eq!(later.steal_ratio(&old), None);
        assert_eq!(later.busy_ratio(&old), Some(0.5));
        assert_eq!(old.busy_ratio(&later), None);
        assert_eq!(old.busy_ratio(&old), None);
        let soon = CpuTimes::parse("cpu  101 0 100 802\n").unwrap();
        assert_eq!(soon.busy_ratio(&old), None, "three ticks are no share");
        for text in ["", "cpu  1 2\n", "intr 1 2 3 4 5"] {
            assert_eq!(CpuTimes::parse(text), None);
        }
    }

    #[test]
    fn pressure_lines_are_distinguished() {
        let text = "some avg10=0.22 avg60=0.21 avg300=0.25 total=11568560\n\
                    full avg10=0.22 avg60=0.21 avg300=0.25 total=11308186\n";
        assert_eq!(psi_total_us(text, "some"), Some(11_568_560));
        assert_eq!(psi_total_us(text, "full"), Some(11_308_186));
        assert_eq!(psi_total_us("some avg10=0.00\n", "some"), None);
        assert_eq!(psi_total_us("", "full"), None);
    }

    #[test]
    fn the_wait_for_a_cpu_is_the_second_number() {
        assert_eq!(run_queue_wait_ns("1017 69323 4\n"), Some(69323));
        assert_eq!(run_queue_wait_ns("1017\n"), None);
    }

    #[test]
    fn keys_are_matched_whole() {
        assert_eq!(keyed("nr_periods 7\nnr_throttled 3\n", "nr_throttled"), Some(3));
        assert_eq!(keyed("pswpin_more 7\n", "pswpin"), None);
        let status = "Name:\tx\nVmSwap:\t      12 kB\nCapEff:\t0000000000000000\n";
        assert_eq!(kib_field(status, "VmSwap"), Some(12_288));
        assert_eq!(field(status, "CapEff"), Some("0000000000000000"));
        assert_eq!(field(status, "Vm"), None);
        assert_eq!(load_1m("2.86 1.00 0.42 2/93 6814\n"), Some(2.86));
    }

    #[test]
    fn cpu_lists_are_ranges_and_single_cpus() {
        assert_eq!(cpu_list("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpu_list("\n"), Some(vec![]));
        for text in ["a", "3-1", "0-99999999", "1-"] {
            assert_eq!(cpu_list(text), None, "{text}");
        }
    }
}
