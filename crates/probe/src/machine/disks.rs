//! Block devices, and the file systems that a benchmark would write to.
use super::memory::bracketed;
use super::Section;
use nephoscope_linux::files::{self, Fact, Files};
use nephoscope_linux::mounts::{self, Mount};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub fn section(files: &Files) -> Section {
    let mut section = Section::new("disks");
    match files.names("/sys/block") {
        Ok(names) => {
            let drives = names.iter().filter(|name| !is_empty(files, name));
            section.list("devices", drives.map(|name| device(files, name)).collect());
        }
        Err(reason) => section.put::<()>("devices", Err(reason)),
    }
    let table = files.text("/proc/self/mountinfo");
    let mounts = places().into_iter().map(|(role, path)| mount(&table, role, &path)).collect();
    section.list("mounts", mounts);
    section
}

/// Loop and RAM disks without a size are only places where one could be.
fn is_empty(files: &Files, name: &str) -> bool {
    files.number::<u64>(format!("/sys/block/{name}/size")) == Ok(0)
}

fn device(files: &Files, name: &str) -> Section {
    let folder = format!("/sys/block/{name}");
    let queue = |fact: &str| files.number::<u64>(format!("{folder}/queue/{fact}"));
    let mut device = Section::new(format!("disks.{name}"));
    device.set("name", name);
    device.set("kind", kind(name));
    device.put("model", files.line(format!("{folder}/device/model")));
    device.put("vendor", files.line(format!("{folder}/device/vendor")));
    device.put("driver", files.link_name(format!("{folder}/device/driver")));
    // The size file counts 512-byte sectors, whatever the device's own block size is.
    device.put("size_bytes", files.number::<u64>(format!("{folder}/size")).map(|s| s * 512));
    device.put("rotational", queue("rotational").map(|on| on == 1));
    let scheduler = files.line(format!("{folder}/queue/scheduler"));
    device.put("scheduler", scheduler.map(|line| bracketed(&line)));
    device.put("logical_block_bytes", queue("logical_block_size"));
    device.put("physical_block_bytes", queue("physical_block_size"));
    device.put("queue_depth", queue("nr_requests"));
    device.put("read_ahead_bytes", queue("read_ahead_kb").map(|kib| kib * 1024));
    device.put("write_cache", files.line(format!("{folder}/queue/write_cache")));
    device
}

fn kind(name: &str) -> &'static str {
    let kinds = [
        ("nvme", "nvme"),
        ("vd", "virtio"),
        ("xvd", "xen"),
        ("sd", "scsi"),
        ("hd", "ide"),
        ("mmcblk", "mmc"),
        ("zram", "compressed memory"),
        ("ram", "memory"),
        ("loop", "loop"),
        ("dm-", "device mapper"),
        ("md", "raid"),
        ("nbd", "network"),
        ("rbd", "network"),
        ("sr", "optical"),
    ];
    kinds.iter().find(|(prefix, _)| name.starts_with(prefix)).map_or("other", |(_, kind)| kind)
}

/// Places a benchmark may write to, by role: the paths themselves may be telling.
fn places() -> Vec<(&'static str, PathBuf)> {
    let mut places = vec![("root", PathBuf::from("/")), ("temporary", std::env::temp_dir())];
    places.extend(std::env::current_dir().ok().map(|path| ("working", path)));
    places
}

/// One file system out of the mount table.
#[derive(Debug, PartialEq, Eq)]
struct Mounted {
    point: PathBuf,
    kind: String,
    source: String,
}

fn mount(table: &Fact<String>, role: &'static str, path: &Path) -> Section {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let mounted = table.as_ref().map_err(Clone::clone).and_then(|table| {
        holding(table, &path).ok_or_else(|| "the mount table does not show it".to_owned())
    });
    let space = space(&path);
    let mut mount = Section::new(format!("disks.mount_{role}"));
    let part = |of: fn(&Mounted) -> String| mounted.as_ref().map(of).map_err(Clone::clone);
    mount.set("role", role);
    mount.put("mount_point", part(|mounted| mounted.point.display().to_string()));
    mount.put("file_system", part(|mounted| mounted.kind.clone()));
    mount.put("device", part(|mounted| mounted.source.clone()));
    mount.put("size_bytes", space.clone().map(|(size, _, _)| size));
    mount.put("free_bytes", space.clone().map(|(_, free, _)| free));
    mount.put("read_only", space.map(|(_, _, read_only)| read_only));
    mount
}

/// The mount that holds `path`: the longest mount point above it, the last one if several lie on
/// top of each other.
fn holding(mountinfo: &str, path: &Path) -> Option<Mounted> {
    let mounted = |mount: Mount| {
        let point = PathBuf::from(mount.point);
        let kind = mount.kind.to_owned();
        // A network file system's source names a server and perhaps a user.
        let source = if mount.source.starts_with("/dev/") { mount.source } else { kind.clone() };
        path.starts_with(&point).then_some(Mounted { point, kind, source })
    };
    mounts::parse(mountinfo)
        .filter_map(mounted)
        .max_by_key(|mount| mount.point.components().count())
}

/// (size, free for this user, read-only) of the file system at `path`.
fn space(path: &Path) -> Fact<(u64, u64, bool)> {
    let name =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| "the path holds a NUL".to_owned())?;
    let stat = files::statvfs(&name).map_err(|error| format!("statvfs failed: {error}"))?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok((bytes(stat.f_blocks), bytes(stat.f_bavail), stat.f_flag & libc::ST_RDONLY != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;
    use serde_json::json;

    #[test]
    fn devices_have_their_facts_and_empty_loops_are_left_out() {
        let captured = Captured::new(&[
            ("/sys/block/loop0/size", "0\n"),
            ("/sys/block/vda/size", "2097152\n"),
            ("/sys/block/vda/queue/rotational", "1\n"),
            ("/sys/block/vda/queue/scheduler", "none [mq-deadline] kyber\n"),
            ("/sys/block/vda/queue/logical_block_size", "512\n"),
            ("/sys/block/vda/queue/nr_requests", "256\n"),
            ("/sys/block/vda/queue/read_ahead_kb", "128\n"),
        ]);
        captured.link("/sys/block/vda/device/driver", "../../../bus/virtio/drivers/virtio_blk");
        let (facts, missing) = section(&captured.files()).into_parts();
        assert_eq!(facts["devices"].as_array().unwrap().len(), 1);
        let disk = &facts["devices"][0];
        assert_eq!((&disk["size_bytes"], &disk["rotational"]), (&json!(1 << 30), &json!(true)));
        assert_eq!((&disk["scheduler"], &disk["kind"]), (&json!("mq-deadline"), &json!("virtio")));
        assert_eq!((&disk["driver"], &disk["model"]), (&json!("virtio_blk"), &json!(null)));
        assert!(missing.iter().any(|entry| entry["fact"] == "disks.vda.model"));
    }

    #[test]
    fn the_longest_and_last_mount_holds_a_path() {
        let table = "1 0 254:0 / / rw - ext4 /dev/vda rw\n\
                     2 1 0:25 / /tmp rw - tmpfs tmpfs rw\n\
                     3 2 0:26 / /tmp rw - xfs /dev/vdb rw\n\
                     4 1 0:27 / /tmpfiles rw - btrfs /dev/vdc rw\n\
                     5 1 0:28 / /mnt/a\\040b rw - nfs4 server:/home/me rw\n";
        let at = |path: &str| holding(table, Path::new(path)).unwrap();
        assert_eq!(at("/var/x").kind, "ext4");
        assert_eq!(at("/tmp/x").source, "/dev/vdb");
        assert_eq!(at("/tmpfiles").kind, "btrfs");
        assert_eq!(
            (at("/mnt/a b/c").kind.as_str(), at("/mnt/a b/c").source.as_str()),
            ("nfs4", "nfs4")
        );
    }

    #[test]
    fn the_space_of_the_root_agrees_with_df() {
        let df = std::process::Command::new("df").args(["-B1", "--output=size", "/"]).output();
        let Ok(df) = df else {
            eprintln!("not checked: there is no df here to compare with");
            return;
        };
        let text = String::from_utf8_lossy(&df.stdout).into_owned();
        let blocks: u64 = text.lines().last().unwrap().trim().parse().unwrap();
        assert_eq!(space(Path::new("/")).unwrap().0, blocks);
    }
}
