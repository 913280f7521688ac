//! `enter` against the kernel: exit codes and signals are the program's own, the joined namespaces
//! and groups are the named ones. Tests that need root say so and count as failed without it only
//! where the suite runs as root.
use nephoscope_programs::path_of;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn lab() -> Command {
    Command::new(path_of("nephoscope-lab"))
}

fn enter(words: &[&str]) -> Output {
    lab().arg("enter").args(words).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

fn root() -> bool {
    // SAFETY: reads a number.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root {
        eprintln!("skipped: needs root");
    }
    is_root
}

#[test]
fn exit_code_and_output_are_the_programs_own() {
    let done = enter(&["--", "sh", "-c", "echo out; echo err >&2; exit 41"]);
    assert_eq!(done.status.code(), Some(41));
    assert_eq!((text(&done.stdout), text(&done.stderr)), ("out".into(), "err".into()));
}

#[test]
fn no_process_of_ours_stays() {
    let mut child = lab().args(["enter", "--", "sleep", "60"]).spawn().expect("it starts");
    let name = || fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap_or_default();
    let start = Instant::now();
    while name().trim() != "sleep" {
        assert!(start.elapsed() < Duration::from_secs(120), "it never became the program");
        std::thread::yield_now();
    }
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
}

#[test]
fn failures_are_one_sentence_with_their_code() {
    for (words, code, said) in [
        (&["--", "/nowhere/program"][..], 127, "cannot be executed there"),
        (&["--", "/etc/passwd"], 126, "cannot be executed there"),
        (&["--netns", "/run/netns/neph-none", "--", "true"], 3, "neph-none failed"),
        (&["--cgroup", "/nowhere", "--", "true"], 3, "control group /nowhere failed"),
        (&["--pid", "2147483647", "--", "true"], 3, "process 2147483647 failed"),
        (&["--nice"], 2, "--nice needs a value"),
    ] {
        let done = enter(words);
        let error = text(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
        assert!(done.stdout.is_empty());
    }
}

#[test]
fn niceness_is_set() {
    let done = enter(&["--nice", "7", "--", "nice"]);
    assert_eq!(text(&done.stdout), "7");
}

/// A v1 cpu group or a v2 group of this test, removed at its end.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Self {
        let v1 = Path::new("/sys/fs/cgroup/cpu");
        let base = if v1.join("cgroup.procs").exists() { v1 } else { Path::new("/sys/fs/cgroup") };
        let path = base.join(format!("nephoscope-test-{}-{name}", std::process::id()));
        fs::create_dir(&path).expect("a control group can be made");
        Self(path)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let start = Instant::now();
        while fs::remove_dir(&self.0).is_err() && start.elapsed() < Duration::from_secs(120) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn the_group_is_joined_before_the_program_starts() {
    if !root() {
        return;
    }
    let group = Group::new("join");
    let done = enter(&["--cgroup", group.0.to_str().unwrap(), "--", "cat", "/proc/self/cgroup"]);
    let name = group.0.file_name().unwrap().to_str().unwrap();
    assert!(text(&done.stdout).contains(name), "{}", text(&done.stdout));
}

/// A process in namespaces of its own, ended at the end of the test.
struct Container(std::process::Child);

impl Container {
    fn new() -> Self {
        let child = Command::new("unshare")
            .args(["--net", "--uts", "--ipc", "--pid", "--mount", "--fork", "--mount-proc"])
            .args(["sh", "-c", "hostname inside; echo ready; exec sleep 60"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut container = Self(child);
        let mut line = [0; 6];
        use std::io::Read;
        container.0.stdout.as_mut().unwrap().read_exact(&mut line).expect("it says ready");
        container
    }

    /// The process inside: the only child of `unshare`.
    fn inner(&self) -> u32 {
        let path = format!("/proc/{0}/task/{0}/children", self.0.id());
        fs::read_to_string(path).expect("its children").trim().parse().expect("one child")
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // SAFETY: ends the process inside, which is process 1 of its namespace; unshare follows.
        unsafe { libc::kill(self.inner() as i32, libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

#[test]
fn every_namespace_of_a_process_is_joined() {
    if !root() {
        return;
    }
    let container = Container::new();
    let pid = container.inner();
    let script = "hostname; for n in net uts ipc mnt pid; do readlink /proc/self/ns/$n; done";
    let done = enter(&["--pid", &pid.to_string(), "--", "sh", "-c", script]);
    let mut expected = vec!["inside".to_owned()];
    for name in ["net", "uts", "ipc", "mnt", "pid"] {
        let link = fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
        expected.push(link.to_str().unwrap().to_owned());
    }
    assert_eq!(text(&done.stdout).lines().collect::<Vec<_>>(), expected, "{}", text(&done.stderr));
}

#[test]
fn through_a_pid_namespace_code_signal_and_death_go_on() {
    if !root() {
        return;
    }
    use std::os::unix::process::ExitStatusExt;
    let container = Container::new();
    let pid = container.inner().to_string();
    let inside = |script: &str| enter(&["--pid", &pid, "--", "sh", "-c", script]);
    assert_eq!(inside("exit 43").status.code(), Some(43));
    assert_eq!(inside("kill -KILL $$").status.signal(), Some(libc::SIGKILL));
    let script = "trap 'exit 44' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child = lab()
        .args(["enter", "--pid", &pid, "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    use std::io::Read;
    let mut line = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut line).expect("it says ready");
    // SAFETY: our own child.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().code(), Some(44));
}

#[test]
fn a_program_inside_ends_with_the_process_that_started_it() {
    let script = format!(
        "{} enter --die-with-parent -- sleep 60 & echo $!; sleep 60",
        path_of("nephoscope-lab").display()
    );
    let mut parent =
        Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().expect("sh");
    let mut line = String::new();
    use std::io::BufRead;
    std::io::BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let status = format!("/proc/{}/comm", line.trim());
    let start = Instant::now();
    while fs::read_to_string(&status).unwrap_or_default().trim() != "sleep" {
        assert!(start.elapsed() < Duration::from_secs(120), "it never became the program");
    }
    parent.kill().unwrap();
    parent.wait().unwrap();
    while fs::read_to_string(&status).is_ok_and(|name| name.trim() == "sleep") {
        assert!(start.elapsed() < Duration::from_secs(120), "it outlived its parent");
    }
}

#[test]
fn sysfs_shows_the_network_that_was_joined() {
    if !root() {
        return;
    }
    let container = Container::new();
    let netns = format!("/proc/{}/ns/net", container.inner());
    let script = "ls /sys/class/net; ls /sys/fs/cgroup | head -1";
    let done = enter(&["--netns", &netns, "--sysfs", "--", "sh", "-c", script]);
    let shown = text(&done.stdout);
    let names: Vec<_> = shown.lines().collect();
    assert_eq!(names[0], "lo", "{}", text(&done.stderr));
    assert_eq!(names.len(), 2, "/sys/fs/cgroup is empty or another network shows: {names:?}");
}

#[test]
fn hidden_limits_hold_and_cannot_be_seen() {
    if !root() {
        return;
    }
    let group = Group::new("hide");
    let container = Container::new();
    let netns = format!("/proc/{}/ns/net", container.inner());
    let folder = group.0.to_str().unwrap();
    let script = "grep -c cgroup /proc/self/mounts; cat /proc/self/cgroup; \
                  find /sys/fs/cgroup -type f | wc -l";
    for sysfs in [&["--netns", netns.as_str(), "--sysfs"][..], &[]] {
        let words = [&["--cgroup", folder, "--hide-limits"], sysfs, &["--", "sh", "-c", script]];
        let done = enter(&words.concat());
        let shown = text(&done.stdout);
        let name = group.0.file_name().unwrap().to_str().unwrap();
        assert!(done.status.success() && !shown.contains(name), "{shown}{}", text(&done.stderr));
        assert_eq!(shown.lines().last(), Some("0"), "files of groups are left: {shown}");
    }
    // It is in the group all the same, and the machine's own mounts are as they were.
    let words = ["--cgroup", folder, "--hide-limits", "--", "sleep", "60"];
    let mut child = lab().arg("enter").args(words).spawn().expect("it starts");
    let listed = || fs::read_to_string(group.0.join("cgroup.procs")).unwrap_or_default();
    let start = Instant::now();
    while !listed().lines().any(|line| line == child.id().to_string()) {
        assert!(start.elapsed() < Duration::from_secs(120), "it never came into the group");
    }
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
    assert!(group.0.join("cgroup.procs").is_file());
}
