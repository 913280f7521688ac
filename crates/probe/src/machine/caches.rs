//! Caches as `/sys` tells them and as the `cpuid` instruction tells them.
use super::cpuid::{CpuCache, Cpuid};
use super::topology;
use super::Section;
use nephoscope_linux::files::{Fact, Files};
use nephoscope_linux::proc;

const CPUS: &str = "/sys/devices/system/cpu";

/// Caches that the kernel lists, all instances of the same kind as one entry.
pub fn by_sysfs(files: &Files) -> Fact<Vec<CpuCache>> {
    let cpus = topology::online(files)?;
    let first = cpus.first().ok_or_else(|| format!("{CPUS}/online lists no CPU"))?;
    let names = files.names(format!("{CPUS}/cpu{first}/cache"))?;
    let mut caches: Vec<CpuCache> = Vec::new();
    for index in names.iter().filter(|name| name.starts_with("index")) {
        // CPUs whose instance is already counted.
        let mut covered = std::collections::HashSet::new();
        for cpu in &cpus {
            if covered.contains(cpu) {
                continue;
            }
            let folder = format!("{CPUS}/cpu{cpu}/cache/{index}");
            let Some(cache) = read_cache(files, &folder, &mut covered) else { continue };
            covered.insert(*cpu);
            match caches.iter_mut().find(|known| same(known, &cache)) {
                Some(known) => known.instances = known.instances.map(|count| count + 1),
                None => caches.push(cache),
            }
        }
    }
    if caches.is_empty() {
        return Err(format!("{CPUS}/cpu{first}/cache lists no cache"));
    }
    caches.sort_by_key(|cache| cache.level);
    Ok(caches)
}

fn same(a: &CpuCache, b: &CpuCache) -> bool {
    (a.level, &a.kind, a.size_bytes) == (b.level, &b.kind, b.size_bytes)
}

fn read_cache(
    files: &Files,
    folder: &str,
    covered: &mut std::collections::HashSet<usize>,
) -> Option<CpuCache> {
    let size_bytes = proc::cache_bytes(&files.line(format!("{folder}/size")).ok()?)?;
    let sharing = files.line(format!("{folder}/shared_cpu_list")).ok();
    let sharing = sharing.and_then(|list| proc::cpu_list(&list));
    covered.extend(sharing.iter().flatten());
    Some(CpuCache {
        level: files.number(format!("{folder}/level")).ok()?,
        kind: files.line(format!("{folder}/type")).ok()?.to_lowercase(),
        size_bytes,
        line_bytes: files.number(format!("{folder}/coherency_line_size")).ok(),
        ways: files.number(format!("{folder}/ways_of_associativity")).ok().filter(|ways| *ways > 0),
        shared_by: sharing.map(|cpus| cpus.len() as u64),
        instances: Some(1),
    })
}

/// Size of one instance of the last level that holds data.
pub fn last_level_bytes(caches: &[CpuCache]) -> Option<u64> {
    let data = caches.iter().filter(|cache| cache.kind != "instruction");
    data.max_by_key(|cache| cache.level).map(|cache| cache.size_bytes)
}

pub fn section(files: &Files, cpuid: &Fact<Cpuid>) -> Section {
    let by_sysfs = by_sysfs(files);
    let by_cpuid = cpuid.clone().and_then(|cpuid| match cpuid.caches {
        none if none.is_empty() => Err("cpuid lists no cache".to_owned()),
        caches => Ok(caches),
    });
    let mut section = Section::new("caches");
    let last = [&by_sysfs, &by_cpuid];
    let last = last.iter().find_map(|caches| last_level_bytes(caches.as_ref().ok()?));
    section.put("last_level_bytes", last.ok_or_else(|| "no source lists a cache".to_owned()));
    section.put("by_sysfs", by_sysfs);
    section.put("by_cpuid", by_cpuid);
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    #[test]
    fn instances_of_one_kind_are_counted_once_each() {
        let mut texts = vec![("/sys/devices/system/cpu/online".to_owned(), "0-3".to_owned())];
        let mut add =
            |cpu: usize, index: usize, level: &str, kind: &str, size: &str, list: &str| {
                let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
                for (name, text) in
                    [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", list)]
                {
                    texts.push((format!("{folder}/{name}"), text.to_owned()));
                }
            };
        for cpu in 0..4 {
            let pair = if cpu < 2 { "0-1" } else { "2-3" };
            add(cpu, 0, "1", "Data", "32K", pair);
            add(cpu, 3, "3", "Unified", "36608K", "0-3");
        }
        let texts: Vec<_> = texts.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let caches = by_sysfs(&Captured::new(&texts).files()).unwrap();
        let seen: Vec<_> =
            caches.iter().map(|c| (c.level, c.size_bytes, c.shared_by, c.instances)).collect();
        assert_eq!(seen, [(1, 32 << 10, Some(2), Some(2)), (3, 36_608 << 10, Some(4), Some(1))]);
        assert_eq!(last_level_bytes(&caches), Some(36_608 << 10));
    }
}
