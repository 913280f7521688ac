//! Tests that need an undisturbed core: an attempt is repeated only when the kernel's counters show
//! that something took CPU time during it. Each attempt is printed; the bound is always the same.
//! A test of which every attempt was disturbed is undecided: it is named on standard error and in the
//! file of which tools/test.sh counts them, and too many of them fail the whole run.
use std::env;
use std::fs;
use std::io::{self, Write};
use std::panic::Location;
use std::thread;
use std::time::{Duration, Instant};

/// Before each further attempt: eight attempts over two minutes, longer than most builds and bursts.
const PAUSES_S: [u64; 7] = [1, 2, 5, 10, 20, 30, 40];

/// The part of one CPU's time that may be taken during an attempt: less moves no bound.
const DISTURBING_RATIO: f64 = 0.005;

/// The file to which each measurement's outcome is appended, a line each: `decided: NAME`, or
/// `undecided: NAME: counters`.
const OUTCOMES_FILE: &str = "NEPHOSCOPE_TEST_MEASUREMENTS";

/// Measures once, and again after a pause while the attempt missed its bound and was disturbed. Fails
/// the test at once when nothing disturbed it. Where every attempt was disturbed the test goes on, and
/// is undecided.
#[track_caller]
pub fn attempt(what: &str, measure: impl FnMut() -> Result<String, String>) {
    let caller = Location::caller();
    let name = format!("{}:{}: {what}", caller.file(), caller.line());
    let outcome = match attempts(what, measure, &PAUSES_S, disturbances()) {
        Verdict::Held => format!("decided: {name}"),
        Verdict::Missed(text) => panic!("{what}: {text}"),
        Verdict::Undecided(text) => format!("undecided: {name}: {text}"),
    };
    if outcome.starts_with("undecided") {
        // Not `eprintln`, whose text the test program keeps to itself where a test passes.
        let _ = writeln!(io::stderr(), "{outcome}");
    }
    if let Some(path) = env::var_os(OUTCOMES_FILE) {
        let mut file = fs::File::options().append(true).create(true).open(path).expect("its file");
        file.write_all(format!("{outcome}\n").as_bytes()).expect("a line of it");
    }
}

/// What came of all attempts, in words where the bound was not held.
#[derive(Debug, PartialEq)]
enum Verdict {
    Held,
    Missed(String),
    Undecided(String),
}

/// disturbed: called before and after each measurement; returns what disturbed it.
fn attempts(
    what: &str,
    mut measure: impl FnMut() -> Result<String, String>,
    pauses_s: &[u64],
    mut disturbed: impl FnMut() -> Vec<String>,
) -> Verdict {
    let mut seen = Vec::new();
    for pause_s in std::iter::once(&0).chain(pauses_s) {
        thread::sleep(Duration::from_secs(*pause_s));
        disturbed();
        let outcome = measure();
        let reasons = disturbed();
        let (Ok(text) | Err(text)) = &outcome;
        seen.push(format!("{text} ({})", reasons.join(", ")));
        eprintln!("{what}, attempt {}: {text}; disturbed by: {reasons:?}", seen.len());
        if outcome.is_ok() {
            return Verdict::Held;
        }
        if reasons.is_empty() {
            return Verdict::Missed(format!(
                "the bound was missed, and nothing disturbed it: {text}"
            ));
        }
    }
    Verdict::Undecided(format!(
        "all {} attempts were disturbed and missed the bound: {}",
        seen.len(),
        seen.join("; ")
    ))
}

/// Returns what disturbed this program since the call before.
fn disturbances() -> impl FnMut() -> Vec<String> {
    let mut before = CpuCounters::read();
    move || {
        let now = CpuCounters::read();
        let reasons = now.reasons(&before);
        before = now;
        reasons
    }
}

/// `Ok` where the bound was held.
pub fn holds(held: bool, message: String) -> Result<String, String> {
    if held {
        Ok(message)
    } else {
        Err(message)
    }
}

/// CPU time in seconds, and switches, at one moment.
struct CpuCounters {
    at: Instant,
    /// Taken from each CPU by the hypervisor.
    steal_s: Vec<f64>,
    /// Used by the programs of the whole machine, and by this one and its children.
    all_s: f64,
    own_s: f64,
    /// Of this thread: how often it lost its CPU, and how long it waited for one.
    preempted: i64,
    waited_s: f64,
}

impl CpuCounters {
    fn read() -> Self {
        // SAFETY: sysconf has no preconditions.
        let tick_s = 1.0 / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let cpus: Vec<Vec<f64>> = text
            .lines()
            .filter(|line| line.starts_with("cpu"))
            .map(|line| line.split_whitespace().skip(1).map(|w| w.parse().unwrap_or(0.0)).collect())
            .collect();
        let field =
            |cpu: &Vec<f64>, number: usize| cpu.get(number).copied().unwrap_or(0.0) * tick_s;
        let all_s = cpus.first().map_or(0.0, |cpu| (0..3).map(|number| field(cpu, number)).sum());
        let steal_s = cpus.iter().skip(1).map(|cpu| field(cpu, 7)).collect();
        let thread = usage(libc::RUSAGE_THREAD);
        let waited = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        Self {
            at: Instant::now(),
            steal_s,
            all_s,
            own_s: cpu_s(&usage(libc::RUSAGE_SELF))
                + cpu_s(&usage(libc::RUSAGE_CHILDREN))
                + running_children_s(tick_s),
            preempted: thread.ru_nivcsw,
            waited_s: nth(&waited, 1) / 1e9,
        }
    }

    /// Which counters are too high for the time since `before` to count, each with its value.
    fn reasons(&self, before: &Self) -> Vec<String> {
        let elapsed_s = (self.at - before.at).as_secs_f64();
        let steal_s =
            self.steal_s.iter().zip(&before.steal_s).map(|(b, a)| b - a).fold(0.0, f64::max);
        let others_s = (self.all_s - before.all_s) - (self.own_s - before.own_s);
        let waited_s = self.waited_s - before.waited_s;
        let preempted = self.preempted - before.preempted;
        let allowed_s = DISTURBING_RATIO * elapsed_s;
        // The machine's times are counted by ticks of 10 ms; two of them may be rounding.
        [
            ("steal", steal_s, steal_s > allowed_s.max(0.005)),
            ("other programs", others_s, others_s > allowed_s.max(0.025)),
            ("waiting for a CPU", waited_s, waited_s > allowed_s || preempted > 0),
        ]
        .iter()
        .filter(|(_, _, disturbing)| *disturbing)
        .map(|(name, taken_s, _)| format!("{name} {:.2} ms in {elapsed_s:.3} s", taken_s * 1e3))
        .collect()
    }
}

fn usage(who: libc::c_int) -> libc::rusage {
    // SAFETY: a rusage of zeros is valid, and getrusage writes one into it.
    unsafe {
        let mut usage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    }
}

fn cpu_s(usage: &libc::rusage) -> f64 {
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// CPU time of the children that have not been waited for, with their ended children.
fn running_children_s(tick_s: f64) -> f64 {
    let mut sum = 0.0;
    for task in fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            let text = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            let after_name = text.rsplit(')').next().unwrap_or_default();
            sum += (11..15).map(|number| nth(after_name, number)).sum::<f64>() * tick_s;
        }
    }
    sum
}

/// The number at a position among words; 0 where there is none.
fn nth(text: &str, position: usize) -> f64 {
    text.split_whitespace().nth(position).and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

#[test]
fn a_miss_is_repeated_only_where_something_disturbed_it() {
    // Outcomes of the measurements, whether each was disturbed, and what comes of them.
    type Case = (&'static [bool], &'static [bool], usize, fn(&Verdict) -> bool);
    let cases: [Case; 5] = [
        (&[true], &[false], 1, |verdict| *verdict == Verdict::Held),
        (&[true], &[true], 1, |verdict| *verdict == Verdict::Held),
        (&[false, true], &[true, false], 2, |verdict| *verdict == Verdict::Held),
        (
            &[false, false],
            &[true, false],
            2,
            |verdict| matches!(verdict, Verdict::Missed(text) if text.contains("nothing disturbed it")),
        ),
        (&[false; 3], &[true; 3], 3, |verdict| {
            matches!(verdict, Verdict::Undecided(text)
                if text.contains("all 3 attempts were disturbed") && text.contains("value 2 (steal)"))
        }),
    ];
    for (held, disturbed, wanted, right) in cases {
        let (mut measured, mut read) = (0, 0);
        let measure = || {
            measured += 1;
            holds(held[measured - 1], format!("value {measured}"))
        };
        let verdict = attempts("a truth", measure, &[0, 0], || {
            read += 1;
            let after = read % 2 == 0 && disturbed[read / 2 - 1];
            after.then(|| "steal".to_owned()).into_iter().collect()
        });
        assert!(right(&verdict), "{held:?} {disturbed:?}: {verdict:?}");
        assert_eq!(measured, wanted);
    }
}
