//! The control groups that this process lives in: where they are visible, what they limit, how
//! long they held it back. Version 1 (controllers apart or mounted together, anywhere), version 2,
//! and both at once.
//!
//! `/proc/self/cgroup` says the path inside each hierarchy, `/proc/self/mountinfo` which part of
//! the hierarchy is mounted where. In a container the two may not fit each other; then the folder
//! that lists this process in `cgroup.procs` is taken. A limit is the smallest one over the own
//! group and all its visible ancestors. Formats: cgroups(7), `admin-guide/cgroup-v2.rst`,
//! `scheduler/sched-bwc.rst`.
pub mod tasks;

use crate::files::{Fact, Files};
use crate::mounts::{self, Mount};
use crate::proc;
use std::path::{Path, PathBuf};

/// Memory limits from here on mean "none" (version 1 writes 2^63 rounded down to a page).
const NO_MEMORY_LIMIT: u64 = 1 << 60;

/// One value and the folder that sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit<T> {
    pub value: T,
    /// Folder of the group that set it.
    pub path: PathBuf,
}

/// How often and how long a group's CPU quota stopped it since the group was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Throttled {
    pub path: PathBuf,
    /// Periods in which the quota ran out.
    pub count: u64,
    /// Time stopped, summed over CPUs: two CPUs stopped for 1 s count 2 s.
    pub time_ns: u64,
}

/// A mounted hierarchy and the folders of this process in it, the own group first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hierarchy {
    /// Controllers of a version 1 hierarchy; empty for version 2.
    controllers: Vec<String>,
    folders: Vec<PathBuf>,
    /// Whether the first folder is known to be the own group and not just an ancestor.
    own: bool,
}

/// Every hierarchy that this process can see.
#[derive(Clone, Debug)]
pub struct Cgroups {
    hierarchies: Vec<Hierarchy>,
    hidden: Option<String>,
}

impl Cgroups {
    pub fn find(files: &Files) -> Self {
        let texts = files.text("/proc/self/cgroup").and_then(|groups| {
            files.text("/proc/self/mountinfo").map(|mountinfo| (groups, mountinfo))
        });
        match texts {
            Ok((groups, mountinfo)) => {
                let hierarchies = mounted_hierarchies(&mountinfo)
                    .iter()
                    .filter_map(|mount| place(files, mount, &groups))
                    .collect();
                Self { hierarchies, hidden: None }
            }
            Err(reason) => Self { hierarchies: Vec::new(), hidden: Some(reason) },
        }
    }

    /// `v1`, `v2`, `hybrid` (both are mounted), `none`, or why that is not known.
    pub fn version(&self) -> Fact<&'static str> {
        if let Some(reason) = &self.hidden {
            return Err(reason.clone());
        }
        let has_unified = self.hierarchies.iter().any(|mounted| mounted.controllers.is_empty());
        let has_v1 = self.hierarchies.iter().any(|mounted| !mounted.controllers.is_empty());
        Ok(match (has_v1, has_unified) {
            (true, true) => "hybrid",
            (true, false) => "v1",
            (false, true) => "v2",
            (false, false) => "none",
        })
    }

    /// CPU bandwidth limit in CPUs (quota over period); `Ok(None)` when there is no limit.
    pub fn cpu_quota(&self, files: &Files) -> Fact<Option<Limit<f64>>> {
        let quota = |folder: &Path, v2: bool| -> Fact<Option<f64>> {
            let parsed = if v2 {
                cpu_max(&files.line(folder.join("cpu.max"))?)
            } else {
                let quota: i64 = files.number(folder.join("cpu.cfs_quota_us"))?;
                let period: u64 = files.number(folder.join("cpu.cfs_period_us"))?;
                Some((quota > 0 && period > 0).then(|| quota as f64 / period as f64))
            };
            parsed.ok_or_else(|| format!("{} has a cpu.max of unknown form", folder.display()))
        };
        self.smallest("cpu", "cpu.max", files, quota)
    }

    /// Memory limit in bytes; `Ok(None)` when there is no limit.
    pub fn memory_limit(&self, files: &Files) -> Fact<Option<Limit<u64>>> {
        let limit = |folder: &Path, v2: bool| -> Fact<Option<u64>> {
            let file = folder.join(if v2 { "memory.max" } else { "memory.limit_in_bytes" });
            let line = files.line(&file)?;
            if line == "max" {
                return Ok(None);
            }
            let bytes: u64 =
                line.parse().map_err(|_| format!("{} is no number: '{line}'", file.display()))?;
            Ok((bytes < NO_MEMORY_LIMIT).then_some(bytes))
        };
        self.smallest("memory", "memory.max", files, limit)
    }

    /// CPUs that the cpuset of the nearest visible group allows.
    pub fn cpuset(&self, files: &Files) -> Fact<Limit<Vec<usize>>> {
        let names = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
        let cpuset = self.with("cpuset", "cpuset.cpus.effective", files)?;
        for folder in &cpuset.folders {
            for line in names.iter().filter_map(|name| files.line(folder.join(name)).ok()) {
                if let Some(value) = proc::cpu_list(&line) {
                    return Ok(Limit { value, path: folder.clone() });
                }
            }
        }
        Err("no visible group shows its cpuset".to_owned())
    }

    /// Throttling of the own group and of each visible ancestor (an ancestor's quota stops us too).
    pub fn throttled(&self, files: &Files) -> Fact<Vec<Throttled>> {
        let hierarchy = self.with("cpu", "cpu.stat", files)?;
        if !hierarchy.own {
            return Err("the own CPU group is not visible from here".to_owned());
        }
        let levels: Vec<_> = hierarchy
            .folders
            .iter()
            .filter_map(|folder| {
                let stat = files.text(folder.join("cpu.stat")).ok()?;
                let (count, time_ns) = throttled(&stat)?;
                Some(Throttled { path: folder.clone(), count, time_ns })
            })
            .collect();
        if levels.is_empty() {
            return Err("no visible CPU group counts throttling".to_owned());
        }
        Ok(levels)
    }

    /// The hierarchy of a controller: its version 1 mount, or version 2 where the own group or an
    /// ancestor has the controller's file.
    fn with(&self, controller: &str, v2_file: &str, files: &Files) -> Fact<&Hierarchy> {
        if let Some(reason) = &self.hidden {
            return Err(reason.clone());
        }
        let version1 = self
            .hierarchies
            .iter()
            .find(|mounted| mounted.controllers.iter().any(|c| c == controller));
        let version2 = self.hierarchies.iter().find(|mounted| {
            mounted.controllers.is_empty()
                && mounted.folders.iter().any(|folder| files.exists(folder.join(v2_file)))
        });
        version1
            .or(version2)
            .ok_or_else(|| format!("no cgroup with the {controller} controller is visible"))
    }

    fn smallest<T: PartialOrd>(
        &self,
        controller: &str,
        v2_file: &str,
        files: &Files,
        read: impl Fn(&Path, bool) -> Fact<Option<T>>,
    ) -> Fact<Option<Limit<T>>> {
        let hierarchy = match self.with(controller, v2_file, files) {
            Ok(hierarchy) => hierarchy,
            // Version 2 without the file in any group, up to the real root, has no limit to show:
            // the root itself never has the file, so this is "none" and not "hidden".
            Err(_) if self.version() == Ok("v2") => return Ok(None),
            Err(reason) => return Err(reason),
        };
        let mut smallest: Option<Limit<T>> = None;
        let mut unread = None;
        let mut is_any_read = false;
        for folder in &hierarchy.folders {
            match read(folder, hierarchy.controllers.is_empty()) {
                Ok(limit) => {
                    is_any_read = true;
                    let value =
                        limit.filter(|new| smallest.as_ref().is_none_or(|s| *new < s.value));
                    if let Some(value) = value {
                        smallest = Some(Limit { value, path: folder.clone() });
                    }
                }
                Err(reason) => unread = Some(reason),
            }
        }
        match unread {
            Some(reason) if !is_any_read => Err(reason),
            _ => Ok(smallest),
        }
    }
}

/// One mounted cgroup hierarchy.
#[derive(Debug, PartialEq, Eq)]
struct MountedHierarchy {
    root: String,
    point: String,
    /// Empty for version 2.
    controllers: Vec<String>,
}

fn mounted_hierarchies(mountinfo: &str) -> Vec<MountedHierarchy> {
    let hierarchy = |mount: Mount| {
        let controllers = match mount.kind {
            "cgroup2" => Vec::new(),
            "cgroup" => mount.options.split(',').map(str::to_owned).collect(),
            _ => return None,
        };
        Some(MountedHierarchy { root: mount.root, point: mount.point, controllers })
    };
    mounts::parse(mountinfo).filter_map(hierarchy).collect()
}

/// The path of this process inside the hierarchy of `mount`, from `/proc/self/cgroup`.
fn own_path<'text>(groups: &'text str, mount: &MountedHierarchy) -> Option<&'text str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_id, names, path) = (parts.next()?, parts.next()?, parts.next()?);
        let same = if mount.controllers.is_empty() {
            names.is_empty()
        } else {
            !names.is_empty() && names.split(',').all(|n| mount.controllers.iter().any(|c| c == n))
        };
        same.then_some(path)
    })
}

/// The folders of this process below `mount`, own group first, up to the mount point.
fn place(files: &Files, mount: &MountedHierarchy, groups: &str) -> Option<Hierarchy> {
    let path = own_path(groups, mount)?;
    let point = PathBuf::from(&mount.point);
    let join = |rest: &str| if rest.is_empty() { point.clone() } else { point.join(rest) };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    // What the two tables say, when they fit each other.
    let stated = below(path, &mount.root).map(join);
    if let Some(folder) = stated.filter(|folder| files.exists(folder)) {
        return Some(hierarchy(mount, &point, &folder, true));
    }
    // A namespace in between: the longest tail of the path that is visible and lists us.
    let tails = (0..=parts.len()).filter(|at| parts[*at..].iter().all(|part| *part != ".."));
    let folders: Vec<PathBuf> =
        tails.map(|at| join(&parts[at..].join("/"))).filter(|f| files.exists(f)).collect();
    if let Some(folder) = folders.iter().find(|folder| lists_us(files, folder)) {
        return Some(hierarchy(mount, &point, folder, true));
    }
    Some(hierarchy(mount, &point, &point, false))
}

/// What is left of `path` below `root`; `None` when it is not below it.
fn below<'path>(path: &'path str, root: &str) -> Option<&'path str> {
    let rest = path.strip_prefix(root.trim_end_matches('/'))?;
    let fits = rest.is_empty() || rest.starts_with('/');
    let rest = rest.trim_start_matches('/');
    (fits && rest.split('/').all(|part| part != "..")).then_some(rest)
}

fn lists_us(files: &Files, folder: &Path) -> bool {
    let us = std::process::id();
    let lists = |text: String| text.lines().any(|line| line.parse() == Ok(us));
    files.text(folder.join("cgroup.procs")).is_ok_and(lists)
}

fn hierarchy(mount: &MountedHierarchy, point: &Path, folder: &Path, own: bool) -> Hierarchy {
    let folders =
        folder.ancestors().take_while(|up| up.starts_with(point)).map(Path::to_path_buf).collect();
    Hierarchy { controllers: mount.controllers.clone(), folders, own }
}

/// Reads version 2's `cpu.max` (`50000 100000`, `max 100000`) as CPUs; the outer `None` means that
/// the text has another form.
fn cpu_max(line: &str) -> Option<Option<f64>> {
    let mut words = line.split_whitespace();
    let quota = words.next()?;
    let period: f64 = words.next().map_or(Some(100_000.0), |word| word.parse().ok())?;
    if quota == "max" {
        return Some(None);
    }
    let quota: f64 = quota.parse().ok()?;
    (period > 0.0).then_some(Some(quota / period))
}

/// Count and nanoseconds of either version's `cpu.stat`; `None` where it has neither.
fn throttled(stat: &str) -> Option<(u64, u64)> {
    let count = proc::keyed(stat, "nr_throttled")?;
    let time_ns = proc::keyed(stat, "throttled_time")
        .or_else(|| proc::keyed(stat, "throttled_usec")?.checked_mul(1000))?;
    Some((count, time_ns))
}

#[cfg(test)]
mod tests;
