//! The fingerprint and the counters beside a trial, held to control groups that this test makes.
use crate::attempts::{attempt, holds};
use nephoscope_programs::path_of;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PREFIX: &str = "nephoscope-test-";

/// A group of our own with a CPU quota; it goes away with the value.
struct Group {
    folder: PathBuf,
    children: Vec<Child>,
}

impl Group {
    /// Makes one with 50 ms in 100 ms, or says why it cannot.
    fn half_a_cpu(name: &str) -> Result<Self, String> {
        // SAFETY: reads a number of our own process.
        if unsafe { libc::geteuid() } != 0 {
            return Err("making a control group needs root".to_owned());
        }
        let (root, v2) = cpu_root()?;
        sweep(&root);
        let folder = root.join(format!("{PREFIX}{}-{name}", std::process::id()));
        std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let group = Self { folder, children: Vec::new() };
        if v2 {
            group.write("cpu.max", "50000 100000")?;
        } else {
            group.write("cpu.cfs_period_us", "100000")?;
            group.write("cpu.cfs_quota_us", "50000")?;
        }
        Ok(group)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(file);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// A command that starts inside the group.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(program);
        let procs = self.folder.join("cgroup.procs");
        // SAFETY: between fork and exec only one small file is written; nobody else's locks are
        // needed, as the path was built before.
        unsafe {
            command.pre_exec(move || std::fs::write(&procs, "0"));
        }
        command
    }

    /// Starts a loop that wants one whole CPU, in place of an earlier one.
    fn spin(&mut self) {
        self.end_children();
        let mut command = self.command("/bin/sh");
        // It ends by itself when the test was killed.
        command.args([
            "-c",
            "end=$(($(date +%s) + 20)); while :; do i=0; \
            while [ $i -lt 100000 ]; do i=$((i + 1)); done; [ $(date +%s) -gt $end ] && exit; done",
        ]);
        self.children.push(command.stdout(Stdio::null()).spawn().expect("sh starts"));
    }

    fn end_children(&mut self) {
        for mut child in self.children.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// One trial inside the group: its document, and its `done` line.
    fn run(&self, id: &str, params: &str) -> (Option<Value>, Value) {
        let mut command = self.command(path_of("nephoscope-probe"));
        lines(command.args(["run", id, "--params", params]))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end_children();
        // The kernel takes a moment to empty the group.
        for _ in 0..50 {
            if std::fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// Where groups with a CPU quota can be made, and whether that is version 2.
fn cpu_root() -> Result<(PathBuf, bool), String> {
    for path in ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"] {
        if Path::new(path).join("cpu.cfs_quota_us").exists() {
            return Ok((path.into(), false));
        }
    }
    let two = PathBuf::from("/sys/fs/cgroup");
    let control = std::fs::read_to_string(two.join("cgroup.subtree_control")).unwrap_or_default();
    if control.split_whitespace().any(|name| name == "cpu") {
        return Ok((two, true));
    }
    Err("no hierarchy with the cpu controller is mounted where groups can be made".to_owned())
}

/// Removes groups that a killed test left behind.
fn sweep(root: &Path) {
    for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

fn lines(command: &mut Command) -> (Option<Value>, Value) {
    let output = command.output().expect("the probe starts");
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert!(output.status.success(), "{text}");
    let document = lines.iter().find(|line| line["metric"] == "fingerprint");
    (document.map(|line| line["document"].clone()), lines[lines.len() - 1]["done"].clone())
}

#[test]
fn a_quota_of_half_a_cpu_is_seen_and_told() {
    let group = match Group::half_a_cpu("seen") {
        Ok(group) => group,
        Err(reason) => return eprintln!("not checked here: {reason}"),
    };
    let (document, done) = group.run("sys.fingerprint", "{}");
    let limits = &document.expect("a fingerprint")["limits"];
    assert_eq!(limits["cpu_quota_cpus"], 0.5, "{limits}");
    assert_eq!(limits["available_cpus"], 0.5, "{limits}");
    let from = limits["cpu_quota_path"].as_str().unwrap();
    assert_eq!(Path::new(from), group.folder);
    assert!(done["notes"].to_string().contains("0.50 CPUs"), "{done}");
}

#[test]
fn a_spinning_loop_in_half_a_cpu_is_throttled_half_the_time() {
    let mut group = match Group::half_a_cpu("throttled") {
        Ok(group) => group,
        Err(reason) => return eprintln!("not checked here: {reason}"),
    };
    // On a machine whose CPUs others use, the loop may not even get its half; then it is throttled
    // less.
    attempt("half a CPU", || {
        group.spin();
        let (_, done) = group.run("null", r#"{"wait_ns": 1500000000}"#);
        let (ratio, count) = (
            done["counters"]["throttled_ratio"].as_f64(),
            done["counters"]["throttled_count"].as_u64(),
        );
        let said = format!("throttled {ratio:?} of the time, {count:?} times");
        let (ratio, count) = (ratio.expect("shown to its own group"), count.expect("shown too"));
        // 15 periods pass; the first and the last may be cut. Of each the loop runs 50 ms and stands
        // 50 ms; the kernel hands quota out in slices of 5 ms and accounts at ticks of up to 10 ms,
        // so that a period can be off by 10 %, and cut periods add 1/15 of one half.
        holds((0.42..=0.58).contains(&ratio) && (12..=16).contains(&count), said)
    });
}

#[test]
fn outside_of_a_quota_nothing_is_throttled_or_the_counter_is_null() {
    let mut command = Command::new(path_of("nephoscope-probe"));
    let (_, done) = lines(command.args(["run", "null"]));
    let ratio = &done["counters"]["throttled_ratio"];
    let quota = lines(Command::new(path_of("nephoscope-probe")).args(["run", "sys.fingerprint"]));
    if quota.0.expect("a fingerprint")["limits"]["cpu_quota_cpus"].is_null() {
        assert!(ratio.is_null() || ratio == 0.0, "{ratio}");
    }
}

#[test]
fn the_counters_are_those_of_proc() {
    let mut command = Command::new(path_of("nephoscope-probe"));
    let (_, done) = lines(command.args(["run", "null", "--params", r#"{"wait_ns": 200000000}"#]));
    let beside = &done["counters"];
    for (path, key) in [
        ("/proc/pressure/cpu", "psi_cpu_some_ratio"),
        ("/proc/pressure/io", "psi_io_full_ratio"),
        ("/proc/stat", "busy_ratio"),
    ] {
        let shown = std::fs::read_to_string(path).is_ok();
        assert_eq!(shown, beside[key].is_number(), "{path}: {}", beside[key]);
        let ratio = beside[key].as_f64().unwrap_or(0.0);
        // The reading of the file and of the clock are some microseconds apart.
        assert!((0.0..=1.01).contains(&ratio), "{key}: {ratio}");
    }
    assert!(beside["elapsed_ns"].as_u64() >= Some(200_000_000), "{beside}");
    // A wait of 200 ms in pieces of 20 ms gives the CPU up that often.
    assert!(beside["voluntary_switches_count"].as_u64() >= Some(9), "{beside}");
}

#[test]
fn a_wrong_metadata_address_is_one_sentence_and_exit_code_2() {
    let output = Command::new(path_of("nephoscope-probe"))
        .args(["run", "sys.fingerprint", "--params", r#"{"metadata_address": "8.8.8.8:80"}"#])
        .output()
        .expect("the probe starts");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("metadata_address must be a link-local or loopback"), "{said}");
    assert_eq!(said.trim().lines().count(), 1, "{said}");
}
