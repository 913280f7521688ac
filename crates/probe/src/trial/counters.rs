//! Counters of the machine read before and after every trial: what the kernel knows about why a
//! trial was slow. A counter that this machine hides is null, never 0.
//!
//! Machine-wide: steal, busy, pressure, swap pages, load. Of the own control group and its visible
//! ancestors: throttling. Of this process and the children it waited for: CPU time, faults, context
//! switches, swapped bytes. Of the other programs in sight: CPU time and disk traffic. Of a kernel
//! that others out of sight use too: what it did. Formulas: time counted over time elapsed;
//! pressure comes from the cumulative counter, not from the kernel's averages.
use crate::machine::steal;
use crate::trial::idle_cpu;
use crate::trial::other_programs::{self, OtherProgramUse};
use crate::trial::shared_kernel::KernelCounters;
use nephoscope_linux::cgroup::{Cgroups, Throttled};
use nephoscope_linux::clock;
use nephoscope_linux::files::Files;
use nephoscope_linux::proc::{self, CpuTimes};
use serde_json::{json, Value};

/// Ticks of `/proc/stat` in a second: fixed in the kernel's interface (USER_HZ).
const TICKS_PER_S: f64 = 100.0;

/// Cumulative stall times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pressure {
    cpu_some: Option<u64>,
    memory_some: Option<u64>,
    memory_full: Option<u64>,
    io_some: Option<u64>,
    io_full: Option<u64>,
}

/// What the kernel counted for this process and its waited-for children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProcessUsage {
    major_faults: i64,
    minor_faults: i64,
    voluntary_switches: i64,
    involuntary_switches: i64,
    cpu_us: i64,
}

#[derive(Clone, Debug, Default)]
pub struct Counters {
    read_ns: u64,
    /// Wall clock minus monotonic clock.
    clock_offset_ns: i64,
    cpu: Option<CpuTimes>,
    /// Why a steal of 0 would mean nothing here.
    steal_hidden: Option<&'static str>,
    pressure: Pressure,
    throttled: Option<Vec<Throttled>>,
    usage: Option<ProcessUsage>,
    swap_in_pages: Option<u64>,
    swap_out_pages: Option<u64>,
    swapped_bytes: Option<u64>,
    load_1m: Option<f64>,
    other_programs: OtherProgramUse,
    kernel: KernelCounters,
}

impl Counters {
    pub fn read() -> Self {
        let usage = usage();
        let mut counters = Self::read_files(&Files::machine(), usage.as_ref());
        counters.steal_hidden = steal::hidden_reason(counters.cpu.as_ref());
        counters.usage = usage;
        counters.clock_offset_ns = clock_offset_ns();
        counters.read_ns = clock::monotonic_ns();
        counters
    }

    fn read_files(files: &Files, usage: Option<&ProcessUsage>) -> Self {
        let throttled = Cgroups::find(files).throttled(files).ok();
        let vmstat = files.text("/proc/vmstat").unwrap_or_default();
        let status = files.text("/proc/self/status").unwrap_or_default();
        let loadavg = files.text("/proc/loadavg").unwrap_or_default();
        let stat = files.text("/proc/stat").unwrap_or_default();
        let cpu = CpuTimes::parse(&stat);
        let own_ticks = usage.map(|usage| (usage.cpu_us as f64 / 1e6 * TICKS_PER_S) as i64);
        let whole = other_programs::whole_kernel(files);
        let other_programs = OtherProgramUse::read(files, whole, cpu.as_ref(), &vmstat, own_ticks);
        Self {
            other_programs,
            kernel: KernelCounters::read(files, whole == Some(false), &stat, &vmstat),
            cpu,
            pressure: pressure(files),
            throttled,
            swap_in_pages: proc::keyed(&vmstat, "pswpin"),
            swap_out_pages: proc::keyed(&vmstat, "pswpout"),
            swapped_bytes: proc::kib_field(&status, "VmSwap"),
            load_1m: proc::load_1m(&loadavg),
            ..Self::default()
        }
    }

    /// The change from `before` to `self`, as the `counters` object of the `done` line.
    ///
    /// Ratios are shares of the time between the two readings, from 0 to 1, but for
    /// `throttled_ratio`: the kernel adds the CPUs of a group up, so that a group stopped on two
    /// CPUs the whole time has 2. It is the largest over the own group and its visible ancestors.
    /// Steal, busy and the CPUs of others are null too when the trial was so short that the kernel
    /// counted under ten ticks. `swapped_bytes` and `load_1m` are the later reading, the counts are changes (swap in pages).
    pub fn since(&self, before: &Self) -> Value {
        let elapsed_ns = self.read_ns.saturating_sub(before.read_ns);
        let cpu = self.cpu.as_ref().zip(before.cpu.as_ref());
        let steal = match self.steal_hidden {
            Some(_) => None,
            None => cpu.and_then(|(now, then)| now.steal_ratio(then)),
        };
        let psi = |of: fn(&Pressure) -> Option<u64>| {
            stall_ratio(of(&self.pressure)?, of(&before.pressure)?, elapsed_ns)
        };
        let usage = self.usage.zip(before.usage);
        let used = |of: fn(&ProcessUsage) -> i64| usage.map(|(now, then)| of(&now) - of(&then));
        let pages = |now: Option<u64>, then: Option<u64>| now?.checked_sub(then?);
        let kernel = |of: fn(&KernelCounters) -> Option<u64>| {
            let change = of(&self.kernel)?.checked_sub(of(&before.kernel)?)?;
            (elapsed_ns > 0).then(|| change as f64 * 1e9 / elapsed_ns as f64)
        };
        let (throttled_ratio, throttled_count) = self.throttling_since(before, elapsed_ns).unzip();
        json!({
            "elapsed_ns": elapsed_ns,
            "steal_ratio": steal,
            "busy_ratio": cpu.and_then(|(now, then)| now.busy_ratio(then)),
            "psi_cpu_some_ratio": psi(|pressure| pressure.cpu_some),
            "psi_memory_some_ratio": psi(|pressure| pressure.memory_some),
            "psi_memory_full_ratio": psi(|pressure| pressure.memory_full),
            "psi_io_some_ratio": psi(|pressure| pressure.io_some),
            "psi_io_full_ratio": psi(|pressure| pressure.io_full),
            "throttled_ratio": throttled_ratio,
            "throttled_count": throttled_count,
            "major_faults_count": used(|usage| usage.major_faults),
            "minor_faults_count": used(|usage| usage.minor_faults),
            "voluntary_switches_count": used(|usage| usage.voluntary_switches),
            "involuntary_switches_count": used(|usage| usage.involuntary_switches),
            "swap_in_count": pages(self.swap_in_pages, before.swap_in_pages),
            "swap_out_count": pages(self.swap_out_pages, before.swap_out_pages),
            "swapped_bytes": self.swapped_bytes,
            "clock_step_ns": self.clock_offset_ns - before.clock_offset_ns,
            "load_1m": self.load_1m,
            "own_busy_cpus": used(|usage| usage.cpu_us)
                .filter(|_| elapsed_ns > 0)
                .map(|cpu_us| cpu_us as f64 * 1e3 / elapsed_ns as f64),
            "others_busy_cpus": self.others_busy_cpus(before, elapsed_ns),
            "others_io_bytes_per_s": self.others_io_rate(before, elapsed_ns),
            "kernel_read_bytes_per_s": kernel(|kernel| kernel.read_bytes),
            "kernel_written_bytes_per_s": kernel(|kernel| kernel.written_bytes),
            "kernel_flushes_per_s": kernel(|kernel| kernel.flushes),
            "kernel_packets_per_s": kernel(|kernel| kernel.packets),
            "kernel_switches_per_s": kernel(|kernel| kernel.switches),
        })
    }

    /// CPUs that the other programs in sight used; the ticks of the own and of all are rounded
    /// apart, so that a little below 0 is 0.
    fn others_busy_cpus(&self, before: &Self, elapsed_ns: u64) -> Option<f64> {
        let ticks = (self.other_programs.ticks? - before.other_programs.ticks?).max(0) as f64;
        let seconds = elapsed_ns as f64 / 1e9;
        (seconds * TICKS_PER_S >= 10.0).then(|| ticks / TICKS_PER_S / seconds)
    }

    /// Bytes a second between the disks and others; our own, still to be written, count before.
    fn others_io_rate(&self, before: &Self, elapsed_ns: u64) -> Option<f64> {
        let bytes = (self.other_programs.io_bytes? - before.other_programs.io_bytes?).max(0) as f64;
        (elapsed_ns > 0).then(|| bytes * 1e9 / elapsed_ns as f64)
    }

    /// Largest (ratio, count) over the levels that both readings have; `None` when the process was
    /// moved to another group in between.
    fn throttling_since(&self, before: &Self, elapsed_ns: u64) -> Option<(f64, u64)> {
        let (now, then) = (self.throttled.as_ref()?, before.throttled.as_ref()?);
        if elapsed_ns == 0 || now.first()?.path != then.first()?.path {
            return None;
        }
        let change = |level: &Throttled| {
            let old = then.iter().find(|old| old.path == level.path)?;
            let time_ns = level.time_ns.checked_sub(old.time_ns)?;
            Some((time_ns as f64 / elapsed_ns as f64, level.count.checked_sub(old.count)?))
        };
        let changes: Vec<_> = now.iter().filter_map(change).collect();
        let ratio = changes.iter().map(|(ratio, _)| *ratio).max_by(f64::total_cmp)?;
        Some((ratio, changes.iter().map(|(_, count)| *count).max()?))
    }
}

fn pressure(files: &Files) -> Pressure {
    let text = |what: &str| files.text(format!("/proc/pressure/{what}")).unwrap_or_default();
    let (cpu, memory, io) = (text("cpu"), text("memory"), text("io"));
    Pressure {
        cpu_some: proc::psi_total_us(&cpu, "some"),
        memory_some: proc::psi_total_us(&memory, "some"),
        memory_full: proc::psi_total_us(&memory, "full"),
        io_some: proc::psi_total_us(&io, "some"),
        io_full: proc::psi_total_us(&io, "full"),
    }
}

/// `Δtotal_µs / Δt`, from the cumulative counter.
fn stall_ratio(now_us: u64, before_us: u64, elapsed_ns: u64) -> Option<f64> {
    let stalled_us = now_us.checked_sub(before_us)?;
    (elapsed_ns > 0).then(|| stalled_us as f64 * 1e3 / elapsed_ns as f64)
}

fn usage() -> Option<ProcessUsage> {
    let own = clock::usage(libc::RUSAGE_SELF)?;
    let children = clock::usage(libc::RUSAGE_CHILDREN)?;
    let meter = idle_cpu::switches();
    Some(ProcessUsage {
        major_faults: own.ru_majflt + children.ru_majflt,
        minor_faults: own.ru_minflt + children.ru_minflt,
        voluntary_switches: own.ru_nvcsw + children.ru_nvcsw - meter.0,
        involuntary_switches: own.ru_nivcsw + children.ru_nivcsw - meter.1,
        cpu_us: [own.ru_utime, own.ru_stime, children.ru_utime, children.ru_stime]
            .iter()
            .map(|time| time.tv_sec * 1_000_000 + time.tv_usec)
            .sum(),
    })
}

/// Wall clock minus monotonic clock. Both are slewed alike, so that only a step changes it. Of
/// several tries the one counts whose two monotonic readings lie closest together.
fn clock_offset_ns() -> i64 {
    let measured_offset = || {
        let before = clock::monotonic_ns();
        let wall = clock::realtime_ns();
        let after = clock::monotonic_ns();
        let middle = before + (after - before) / 2;
        (after - before, wall.cast_signed() - middle.cast_signed())
    };
    (0..5)
        .map(|_| measured_offset())
        .min_by_key(|(width, _)| *width)
        .map_or(0, |(_, offset)| offset)
}

#[cfg(test)]
#[path = "counters_tests.rs"]
mod tests;
