//! Memory, swap and huge pages.
use super::Section;
use nephoscope_linux::files::{Fact, Files};
use nephoscope_linux::proc;
use serde_json::{json, Value};

const MM: &str = "/sys/kernel/mm";

pub fn section(files: &Files) -> Section {
    let meminfo = files.text("/proc/meminfo");
    let field = |key: &str| -> Fact<u64> {
        let text = meminfo.as_ref().map_err(Clone::clone)?;
        proc::kib_field(text, key).ok_or_else(|| format!("/proc/meminfo has no {key}"))
    };
    // The system call knows totals where /proc is hidden.
    let call = sysinfo();
    let or_call = |fact: Fact<u64>, of: fn(&libc::sysinfo) -> libc::c_ulong| {
        fact.or_else(|reason| {
            call.as_ref().map(|info| of(info) * u64::from(info.mem_unit)).ok_or(reason)
        })
    };
    let mut section = Section::new("memory");
    section.put("total_bytes", or_call(field("MemTotal"), |info| info.totalram));
    section.put("available_bytes", field("MemAvailable"));
    section.put("swap_total_bytes", or_call(field("SwapTotal"), |info| info.totalswap));
    section.put("swap_free_bytes", or_call(field("SwapFree"), |info| info.freeswap));
    section.put("swap_devices", files.text("/proc/swaps").map(|text| swap_devices(&text)));
    section.put("swappiness", files.number::<u32>("/proc/sys/vm/swappiness"));
    section.set("page_bytes", page_bytes());
    section.put("huge_pages", huge_pages(files));
    let chosen = |name: &str| {
        files.line(format!("{MM}/transparent_hugepage/{name}")).map(|line| bracketed(&line))
    };
    section.put("transparent_hugepage", chosen("enabled"));
    section.put("transparent_hugepage_defrag", chosen("defrag"));
    section.put("page_merging", files.number::<u8>(format!("{MM}/ksm/run")).map(|run| run == 1));
    section
}

/// What [`sysinfo(2)`] says.
fn sysinfo() -> Option<libc::sysinfo> {
    // SAFETY: fills a plain struct.
    unsafe {
        let mut info: libc::sysinfo = std::mem::zeroed();
        (libc::sysinfo(&raw mut info) == 0).then_some(info)
    }
}

fn page_bytes() -> i64 {
    // SAFETY: reads a constant of the system.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }
}

/// Kinds of swap devices (`partition`, `file`) with their size and priority; never their path,
/// which may be telling.
fn swap_devices(swaps: &str) -> Vec<Value> {
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, kind, size, _used, priority] = words[..] else { return None };
        let compressed = name.starts_with("/dev/zram");
        let size: u64 = size.parse().ok()?;
        let priority: i64 = priority.parse().ok()?;
        let kind = if compressed { "compressed memory" } else { kind };
        Some(json!({"kind": kind, "size_bytes": size * 1024, "priority": priority}))
    };
    swaps.lines().skip(1).filter_map(parse).collect()
}

fn huge_pages(files: &Files) -> Fact<Vec<Value>> {
    let folder = format!("{MM}/hugepages");
    let mut pages = Vec::new();
    for name in files.names(&folder)? {
        let kib = name.strip_prefix("hugepages-").and_then(|name| name.strip_suffix("kB"));
        let Some(kib) = kib.and_then(|kib| kib.parse::<u64>().ok()) else { continue };
        let count = |of: &str| files.number::<u64>(format!("{folder}/{name}/{of}")).ok();
        pages.push(json!({
            "size_bytes": kib * 1024,
            "total": count("nr_hugepages"),
            "free": count("free_hugepages"),
        }));
    }
    pages.sort_by_key(|page| page["size_bytes"].as_u64());
    Ok(pages)
}

/// The chosen word of a list such as `always [madvise] never`; the whole line if none is marked.
pub fn bracketed(line: &str) -> String {
    let marked = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    marked.map_or(line, |(word, _)| word).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    #[test]
    fn totals_equal_the_system_call() {
        let facts = section(&Files::machine()).into_parts().0;
        let info = sysinfo().unwrap();
        let total = info.totalram * u64::from(info.mem_unit);
        assert_eq!(facts["total_bytes"], total);
        // With /proc hidden the same number comes from the call.
        let hidden = section(&Captured::new(&[]).files()).into_parts().0;
        assert_eq!(hidden["total_bytes"], total);
        assert!(hidden["available_bytes"].is_null());
    }

    #[test]
    fn settings_are_the_marked_word() {
        assert_eq!(bracketed("always [madvise] never"), "madvise");
        assert_eq!(bracketed("none"), "none");
    }

    #[test]
    fn swap_devices_are_named_by_kind() {
        let text = "Filename\tType\tSize\tUsed\tPriority\n/dev/zram0 partition 1024 0 100\n\
                    /home/me/swap file 2048 0 -2\n";
        assert_eq!(
            json!(swap_devices(text)),
            json!([
                {"kind": "compressed memory", "size_bytes": 1_048_576, "priority": 100},
                {"kind": "file", "size_bytes": 2_097_152, "priority": -2},
            ])
        );
    }

    #[test]
    fn huge_pages_are_listed_by_size() {
        let captured = Captured::new(&[
            ("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8"),
            ("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "3"),
        ]);
        let pages = huge_pages(&captured.files()).unwrap();
        assert_eq!(pages[0], json!({"size_bytes": 2 << 20, "total": 8, "free": 3}));
        assert_eq!(pages[1], json!({"size_bytes": 1 << 30, "total": 0, "free": null}));
    }
}
