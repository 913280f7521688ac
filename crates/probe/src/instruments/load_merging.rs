//! # What it measures
//! Nothing by itself: a load to run together with other benchmarks. It has the kernel merge equal pages
//! of memory (KSM) for as long as it runs, and counts them, so that its presence is verified.
//!
//! # How
//! It writes `pages_to_scan` and `sleep_ms` below `/sys/kernel/mm/ksm`, starts the kernel's thread there,
//! and reads the kernel's counters at every interval. When it ends it separates what was merged and
//! writes the former settings back. Programs offer their pages to it: `mem.stream` with
//! `pages=mergeable`, QEMU, systemd units with `MemoryKSM=`.
//!
//! # Known truth
//! Of n equal pages that a program offers, n − 1 are merged after two scans, and pages that differ are
//! not.
//!
//! # Cross-check
//! `grep . /sys/kernel/mm/ksm/*`; `MergingPages` in `/proc/PID/ksm_stat`.
//!
//! # Overhead
//! A kernel thread that scans, on any CPU of the machine; every program that offers pages is concerned.
//!
//! # Caveats
//! Needs root and a kernel with KSM that nobody else uses: the setting is that of the whole machine. A
//! load that is killed by SIGKILL leaves it on until the next command of this user on that machine; on
//! another machine than the one where commands are given, `echo 2 > /sys/kernel/mm/ksm/run` ends it.
use crate::error::{FailureKind, ProbeError, Result};
use crate::load::{self, DURATION, INTERVAL};
use crate::trial::{factors, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use std::fs;
use std::path::{Path, PathBuf};

pub const SPEC: Spec = Spec {
    id: "load.merging",
    summary: "Merging of equal pages by the kernel (KSM) for the time of the load",
    params: &[
        Param::int("pages_to_scan", 10_000, 1..=1_000_000)
            .doc("Number of pages that are scanned at a time."),
        Param::int("sleep_ms", 10, 0..=60_000)
            .doc("Pause between two scans of so many pages, in milliseconds."),
        INTERVAL,
        DURATION,
    ],
    metrics: &[
        Metric::neutral("merged_pages_count")
            .headline()
            .doc("Maximum number of pages that had no memory of their own, over the intervals."),
        Metric::neutral("full_scans_count")
            .doc("Number of scans of all offered pages that ended meanwhile."),
        Metric::neutral("interval_merged_pages_count")
            .series()
            .doc("Number of pages without memory of their own, at the end of each interval."),
    ],
    overhead: "a kernel thread that scans the offered pages",
    source: "Linux, Documentation/admin-guide/mm/ksm.rst",
    load: true,
    ..Spec::about(Resource::Memory)
};

const FOLDER: &str = "/sys/kernel/mm/ksm";
const OFF: &str = "0";
const ON: &str = "1";
/// Stops the thread and separates all merged pages.
const SEPARATE: &str = "2";
/// Longest sleep between two looks whether the load is to end.
const CHECK_INTERVAL_NS: u64 = 10_000_000;

/// The kernel's settings while the load runs; the former ones come back when it is dropped.
struct Merging {
    folder: PathBuf,
    former: Vec<(&'static str, String)>,
}

impl Merging {
    /// Starts it; an error where the kernel has no KSM, refuses, or merges already.
    fn start(folder: &Path, pages_to_scan: u64, sleep_ms: u64) -> Result<Self> {
        let read = |file: &str| {
            let text = fs::read_to_string(folder.join(file));
            text.map(|text| text.trim().to_owned()).map_err(|error| unavailable(&error.to_string()))
        };
        if read("run")? == ON {
            return Err(unavailable(
                "it is switched on already, so that a comparison has no other side",
            ));
        }
        let mut former = Vec::new();
        for file in ["pages_to_scan", "sleep_millisecs"] {
            former.push((file, read(file)?));
        }
        let merging = Self { folder: folder.to_owned(), former };
        merging.write("pages_to_scan", &pages_to_scan.to_string())?;
        merging.write("sleep_millisecs", &sleep_ms.to_string())?;
        merging.write("run", ON)?;
        Ok(merging)
    }

    fn write(&self, file: &str, value: &str) -> Result<()> {
        fs::write(self.folder.join(file), value).map_err(|error| unavailable(&error.to_string()))
    }

    fn count(&self, file: &str) -> Result<u64> {
        let text = fs::read_to_string(self.folder.join(file));
        text.ok()
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(|| unavailable(&format!("{file} cannot be read")))
    }
}

impl Drop for Merging {
    fn drop(&mut self) {
        let _ = self.write("run", SEPARATE);
        let _ = self.write("run", OFF);
        for (file, value) in &self.former {
            let _ = self.write(file, value);
        }
    }
}

fn unavailable(reason: &str) -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_page_merging",
        format!("The kernel's merging of equal pages cannot be used: {reason} ({FOLDER})."),
        "Run as root on a kernel with CONFIG_KSM, and switch merging off before (echo 2 > /sys/kernel/mm/ksm/run).",
    )
}

pub fn run(trial: &mut Trial) -> Result<()> {
    let duration_ns = load::duration_ns(trial)?;
    let interval_ns = trial.params.u64("interval_ns");
    trial.prepared()?;
    let (pages, sleep_ms) = (trial.params.u64("pages_to_scan"), trial.params.u64("sleep_ms"));
    let merging = Merging::start(Path::new(FOLDER), pages, sleep_ms)?;
    let scans = merging.count("full_scans")?;
    let start_ns = clock::monotonic_ns();
    let end_ns = if duration_ns == 0 { u64::MAX } else { start_ns + duration_ns };
    let (mut maximum, mut due_ns) = (0, start_ns + interval_ns);
    while clock::monotonic_ns() < end_ns && !trial.session.is_stopped() {
        trial.session.check()?;
        let now_ns = clock::monotonic_ns();
        if now_ns < due_ns.min(end_ns) {
            clock::nap((due_ns.min(end_ns) - now_ns).min(CHECK_INTERVAL_NS));
            continue;
        }
        due_ns += interval_ns;
        let merged = merging.count("pages_sharing")?;
        maximum = maximum.max(merged);
        let at_ns = now_ns.saturating_sub(trial.started_ns());
        trial.out.emit_at("interval_merged_pages_count", merged as f64, 1, at_ns, factors! {})?;
    }
    maximum = maximum.max(merging.count("pages_sharing")?);
    let scanned = merging.count("full_scans")?.saturating_sub(scans);
    trial.out.emit("merged_pages_count", maximum as f64, factors! {})?;
    trial.out.emit("full_scans_count", scanned as f64, factors! {})
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the kernel's files, and their values.
    fn folder(name: &str, run: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("neph-ksm-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        for (file, value) in [("run", run), ("pages_to_scan", "100\n"), ("sleep_millisecs", "20\n")]
        {
            fs::write(path.join(file), value).unwrap();
        }
        path
    }

    #[test]
    fn former_settings_come_back() {
        let path = folder("back", "0\n");
        let read = |file: &str| fs::read_to_string(path.join(file)).unwrap();
        let merging = Merging::start(&path, 5_000, 3).unwrap();
        assert_eq!((read("run").as_str(), read("pages_to_scan").as_str()), ("1", "5000"));
        assert_eq!(read("sleep_millisecs"), "3");
        assert!(merging.count("pages_sharing").is_err());
        drop(merging);
        assert_eq!((read("run").as_str(), read("pages_to_scan").as_str()), ("0", "100"));
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn merging_of_somebody_else_is_left_alone() {
        let path = folder("on", "1\n");
        assert_eq!(Merging::start(&path, 1, 1).err().unwrap().name, "no_page_merging");
        assert_eq!(fs::read_to_string(path.join("pages_to_scan")).unwrap(), "100\n");
        fs::remove_dir_all(&path).unwrap();
        assert_eq!(Merging::start(&path, 1, 1).err().unwrap().name, "no_page_merging");
    }
}
