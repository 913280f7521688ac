//! Layouts as they were seen on real machines, and the limits that each of them means.
use super::*;
use crate::captured::Captured;

/// Version 1 beside version 2, as some micro-VMs have it.
const HYBRID_MOUNTS: &str = "\
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
const V2_MOUNTS: &str = "\
30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate
";

fn captured(groups: &str, mounts: &str, rest: &[(&str, &str)]) -> Captured {
    let mut files = vec![("/proc/self/cgroup", groups), ("/proc/self/mountinfo", mounts)];
    files.extend_from_slice(rest);
    Captured::new(&files)
}

#[test]
fn hybrid_takes_each_controller_where_it_is() {
    let machine = captured(
        "4:memory:/api/x\n3:cpuset:/\n1:cpu:/\n0::/\n",
        HYBRID_MOUNTS,
        &[
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
            ("/sys/fs/cgroup/unified/cpu.stat", "usage_usec 5\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/api/memory.limit_in_bytes", "1073741824\n"),
            ("/sys/fs/cgroup/memory/api/x/memory.limit_in_bytes", "9223372036854771712\n"),
        ],
    );
    let files = machine.files();
    let groups = Cgroups::find(&files);
    assert_eq!(groups.version(), Ok("hybrid"));
    assert_eq!(groups.cpu_quota(&files), Ok(None));
    let limit = groups.memory_limit(&files).unwrap().unwrap();
    assert_eq!((limit.value, limit.path), (1 << 30, "/sys/fs/cgroup/memory/api".into()));
    assert_eq!(groups.cpuset(&files).unwrap().value, [0, 1]);
    let levels = groups.throttled(&files).unwrap();
    assert_eq!((levels.len(), levels[0].count, levels[0].time_ns), (1, 0, 0));
}

#[test]
fn v1_controllers_mounted_together_elsewhere_take_the_smallest_ancestor() {
    let machine = captured(
        "5:cpuacct,cpu:/pod/box\n",
        "50 1 0:9 / /mnt/cg\\040v1 rw - cgroup cgroup rw,cpu,cpuacct\n",
        &[
            ("/mnt/cg v1/cpu.cfs_quota_us", "-1\n"),
            ("/mnt/cg v1/cpu.cfs_period_us", "100000\n"),
            ("/mnt/cg v1/pod/cpu.cfs_quota_us", "50000\n"),
            ("/mnt/cg v1/pod/cpu.cfs_period_us", "100000\n"),
            ("/mnt/cg v1/pod/box/cpu.cfs_quota_us", "300000\n"),
            ("/mnt/cg v1/pod/box/cpu.cfs_period_us", "200000\n"),
            ("/mnt/cg v1/pod/box/cpu.stat", "nr_throttled 0\nthrottled_time 0\n"),
            ("/mnt/cg v1/pod/cpu.stat", "nr_throttled 12\nthrottled_time 600000000\n"),
        ],
    );
    let files = machine.files();
    let groups = Cgroups::find(&files);
    assert_eq!(groups.version(), Ok("v1"));
    let quota = groups.cpu_quota(&files).unwrap().unwrap();
    assert_eq!((quota.value, quota.path), (0.5, "/mnt/cg v1/pod".into()));
    let levels = groups.throttled(&files).unwrap();
    assert_eq!(levels.iter().map(|level| level.count).collect::<Vec<_>>(), [0, 12]);
    assert_eq!(levels[1].time_ns, 600_000_000);
}

#[test]
fn v2_reads_max_and_microseconds() {
    let machine = captured(
        "0::/user.slice/box\n",
        V2_MOUNTS,
        &[
            ("/sys/fs/cgroup/cpu.stat", "usage_usec 77\n"),
            ("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/user.slice/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n"),
            ("/sys/fs/cgroup/user.slice/box/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/user.slice/box/cpu.stat", "nr_throttled 3\nthrottled_usec 250\n"),
            ("/sys/fs/cgroup/user.slice/box/memory.max", "max\n"),
            ("/sys/fs/cgroup/user.slice/memory.max", "2147483648\n"),
            ("/sys/fs/cgroup/user.slice/box/cpuset.cpus.effective", "0-3,6\n"),
        ],
    );
    let files = machine.files();
    let groups = Cgroups::find(&files);
    assert_eq!(groups.version(), Ok("v2"));
    assert_eq!(groups.cpu_quota(&files).unwrap().unwrap().value, 1.5);
    assert_eq!(groups.memory_limit(&files).unwrap().unwrap().value, 2 << 30);
    assert_eq!(groups.cpuset(&files).unwrap().value, [0, 1, 2, 3, 6]);
    let levels = groups.throttled(&files).unwrap();
    assert_eq!((levels[0].count, levels[0].time_ns), (3, 250_000));
}

#[test]
fn v2_at_the_real_root_has_no_limit_and_no_throttling_counter() {
    let machine = captured("0::/\n", V2_MOUNTS, &[("/sys/fs/cgroup/cpu.stat", "usage_usec 77\n")]);
    let files = machine.files();
    let groups = Cgroups::find(&files);
    assert_eq!(groups.cpu_quota(&files), Ok(None));
    assert_eq!(groups.memory_limit(&files), Ok(None));
    assert!(groups.throttled(&files).is_err(), "a counter that is not there is not 0");
}

#[test]
fn a_container_that_mounts_its_own_group_is_followed() {
    // Version 1 without a namespace: the path and the mount's root are the same group.
    let machine = captured(
        "2:cpu,cpuacct:/docker/abc\n",
        "60 1 0:9 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n",
        &[
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "200000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.stat", "nr_throttled 1\nthrottled_time 9\n"),
        ],
    );
    let files = machine.files();
    let groups = Cgroups::find(&files);
    assert_eq!(groups.cpu_quota(&files).unwrap().unwrap().value, 2.0);
    assert_eq!(groups.throttled(&files).unwrap()[0].count, 1);
}

#[test]
fn a_path_that_is_not_visible_falls_back_to_the_folder_that_lists_us() {
    let us = format!("1\n{}\n", std::process::id());
    let base: &[(&str, &str)] = &[
        ("/sys/fs/cgroup/cpu.max", "50000 100000\n"),
        ("/sys/fs/cgroup/cpu.stat", "nr_throttled 4\nthrottled_usec 8\n"),
    ];
    let mut listed = base.to_vec();
    listed.push(("/sys/fs/cgroup/cgroup.procs", &us));
    for path in ["0::/kubepods/pod1/box\n", "0::/../other\n"] {
        let machine = captured(path, V2_MOUNTS, &listed);
        let files = machine.files();
        let groups = Cgroups::find(&files);
        assert_eq!(groups.cpu_quota(&files).unwrap().unwrap().value, 0.5, "{path}");
        assert_eq!(groups.throttled(&files).unwrap()[0].count, 4, "{path}");
        // Nobody lists us: a limit of an ancestor still binds, but its counters are not ours.
        let machine = captured(path, V2_MOUNTS, base);
        let files = machine.files();
        let groups = Cgroups::find(&files);
        assert_eq!(groups.cpu_quota(&files).unwrap().unwrap().value, 0.5, "{path}");
        assert!(groups.throttled(&files).is_err(), "{path}");
    }
}

#[test]
fn a_hidden_proc_is_unknown_and_not_unlimited() {
    let machine = Captured::new(&[]);
    let files = machine.files();
    let groups = Cgroups::find(&files);
    let reason = "/proc/self/cgroup does not exist".to_owned();
    assert_eq!(groups.version(), Err(reason.clone()));
    assert_eq!(groups.cpu_quota(&files), Err(reason.clone()));
    assert_eq!(groups.memory_limit(&files), Err(reason.clone()));
    assert_eq!(groups.throttled(&files), Err(reason));
}

#[test]
fn cpu_max_is_read_in_each_of_its_forms() {
    assert_eq!(cpu_max("max 100000"), Some(None));
    assert_eq!(cpu_max("50000 100000"), Some(Some(0.5)));
    assert_eq!(cpu_max("50000"), Some(Some(0.5)));
    assert_eq!(cpu_max("fast"), None);
    assert_eq!(cpu_max("1 0"), None);
}
