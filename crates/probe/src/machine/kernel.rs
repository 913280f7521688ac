//! The kernel, its mitigations, the distribution, and signs of a container.
use super::Section;
use nephoscope_linux::files::{Fact, Files};

/// Boot flags that change what a benchmark sees. Only these are read out of the command line: the
/// rest of it may hold secrets.
const BOOT_FLAGS: [&str; 17] = [
    "clocksource",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "isolcpus",
    "mitigations",
    "nohz_full",
    "nosmt",
    "nopti",
    "preempt",
    "processor.max_cstate",
    "psi",
    "rcu_nocbs",
    "transparent_hugepage",
];

pub fn kernel(files: &Files) -> Section {
    let mut section = Section::new("kernel");
    let name = uname();
    let part = |at: usize| name.clone().map(|parts| parts[at].clone());
    section.put("release", part(0));
    section.put("version", part(1));
    section.put("arch", part(2));
    let flags = files.line("/proc/cmdline").map(|line| boot_flags(&line));
    section.put("boot_flags", flags);
    section
}

fn boot_flags(cmdline: &str) -> serde_json::Map<String, serde_json::Value> {
    let plain = |value: &str| {
        value.len() <= 64 && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-.,:".contains(c))
    };
    // What follows a lone `--` goes to the first process and is none of the kernel's flags.
    let words = cmdline.split_whitespace().take_while(|word| *word != "--");
    let pairs = words.map(|word| word.split_once('=').unwrap_or((word, "")));
    let wanted = pairs.filter(|(key, value)| BOOT_FLAGS.contains(key) && plain(value));
    wanted.map(|(key, value)| (key.to_owned(), value.into())).collect()
}

fn uname() -> Fact<[String; 3]> {
    // SAFETY: fills a plain struct with strings that end in NUL.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        if libc::uname(&raw mut name) != 0 {
            return Err(format!("uname failed: {}", std::io::Error::last_os_error()));
        }
        let text = |field: &[libc::c_char]| {
            std::ffi::CStr::from_ptr(field.as_ptr()).to_string_lossy().into_owned()
        };
        Ok([text(&name.release), text(&name.version), text(&name.machine)])
    }
}

/// The mitigations section: the kernel's own words for each vulnerability.
pub fn mitigations(files: &Files) -> Section {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let mut section = Section::new("mitigations");
    match files.names(folder) {
        Ok(names) => {
            for name in names {
                section.put(&name, files.line(format!("{folder}/{name}")));
            }
        }
        Err(reason) => {
            section.put::<()>("known", Err(reason));
        }
    }
    section
}

/// The distribution section, from os-release(5).
pub fn os(files: &Files) -> Section {
    let text = files
        .text("/etc/os-release")
        .or_else(|reason| files.text("/usr/lib/os-release").map_err(|_| reason));
    let mut section = Section::new("os");
    let keys =
        [("id", "ID"), ("name", "NAME"), ("version", "VERSION_ID"), ("pretty_name", "PRETTY_NAME")];
    for (fact, key) in keys {
        let value = text.clone().and_then(|text| {
            os_release(&text, key).ok_or_else(|| format!("os-release has no {key}"))
        });
        section.put(fact, value);
    }
    section
}

fn os_release(text: &str, key: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))?;
    let value = value.trim().trim_matches(|c| c == '"' || c == '\'');
    (!value.is_empty()).then(|| value.to_owned())
}

/// The container section: signs that this is one, in words. No sign is no proof of the contrary.
pub fn container(files: &Files) -> Section {
    let mut hints = Vec::new();
    for path in ["/.dockerenv", "/run/.containerenv", "/run/systemd/container", "/proc/vz"] {
        // OpenVZ hosts have /proc/bc as well; its guests only /proc/vz.
        if files.exists(path) && !(path == "/proc/vz" && files.exists("/proc/bc")) {
            hints.push(format!("{path} exists"));
        }
    }
    let init = files.text("/proc/1/environ");
    let named = init
        .as_deref()
        .ok()
        .and_then(|environ| environ.split('\0').find_map(|pair| pair.strip_prefix("container=")));
    hints.extend(named.map(|kind| format!("process 1 has container={kind}")));
    if let Ok(groups) = files.text("/proc/1/cgroup") {
        let words = ["docker", "kubepods", "containerd", "lxc", "libpod", "machine.slice"];
        let named_in = words.iter().find(|word| groups.contains(*word));
        hints.extend(named_in.map(|word| format!("the control group of process 1 names {word}")));
    }
    if files.line("/proc/version").is_ok_and(|version| version.contains("gVisor")) {
        hints.push("the kernel calls itself gVisor".to_owned());
    }
    let mut section = Section::new("container");
    section.set("hints", hints);
    section.put("first_process_readable", init.map(|_| true));
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;
    use serde_json::json;

    #[test]
    fn only_known_boot_flags_leave_the_command_line() {
        let flags = boot_flags(
            "root=/dev/vda mitigations=auto,nosmt nosmt isolcpus=1-3 token=hunter2 \
             nohz_full=$(x) quiet -- --psi=9 idle=poll",
        );
        let wanted = json!({"mitigations": "auto,nosmt", "nosmt": "", "isolcpus": "1-3"});
        assert_eq!(json!(flags), wanted);
    }

    #[test]
    fn os_release_is_unquoted() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\nVERSION_ID='12'\n";
        let facts = os(&Captured::new(&[("/usr/lib/os-release", text)]).files()).into_parts().0;
        assert_eq!((&facts["id"], &facts["version"]), (&json!("debian"), &json!("12")));
        assert_eq!(facts["pretty_name"], "Debian GNU/Linux 12");
        assert!(facts["name"].is_null());
    }

    #[test]
    fn container_signs_are_reported_in_words() {
        let captured = Captured::new(&[
            ("/.dockerenv", ""),
            ("/proc/1/environ", "PATH=/bin\0container=podman\0SECRET=x\0"),
            ("/proc/1/cgroup", "0::/kubepods/pod1\n"),
        ]);
        let facts = container(&captured.files()).into_parts().0;
        assert_eq!(
            facts["hints"],
            json!([
                "/.dockerenv exists",
                "process 1 has container=podman",
                "the control group of process 1 names kubepods"
            ])
        );
        assert!(!json!(facts).to_string().contains("SECRET"));
    }

    #[test]
    fn the_kernel_is_known_with_proc_hidden() {
        let facts = kernel(&Captured::new(&[]).files()).into_parts().0;
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(facts["release"], release.trim());
        assert_eq!(facts["arch"], std::env::consts::ARCH);
        assert!(facts["boot_flags"].is_null());
    }
}
