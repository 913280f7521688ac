//! The CPU by the `cpuid` instruction, by `/proc/cpuinfo`, and whether the two agree.
use super::cpuid::Cpuid;
use super::Section;
use nephoscope_linux::files::{Fact, Files};
use nephoscope_linux::proc;
use serde::Serialize;
use serde_json::{json, Value};

/// Instruction sets that change what a benchmark can do; the full list has no reader.
const NOTABLE: [&str; 19] = [
    "sse4_2",
    "avx",
    "avx2",
    "avx512f",
    "amx_tile",
    "aes",
    "sha_ni",
    "vaes",
    "pclmulqdq",
    "rdtscp",
    "erms",
    "vmx",
    "svm",
    "asimd",
    "sve",
    "sve2",
    "atomics",
    "sha2",
    "crc32",
];

/// Arm cores of servers by implementer and part: Arm's technical reference manuals (MIDR_EL1),
/// Linux `arch/arm64/include/asm/cputype.h`.
const ARM_CORES: [(&str, &str, &str); 11] = [
    ("0x41", "0xd07", "Cortex-A57"),
    ("0x41", "0xd08", "Cortex-A72"),
    ("0x41", "0xd0b", "Cortex-A76"),
    ("0x41", "0xd0c", "Neoverse-N1"),
    ("0x41", "0xd40", "Neoverse-V1"),
    ("0x41", "0xd49", "Neoverse-N2"),
    ("0x41", "0xd4f", "Neoverse-V2"),
    ("0x41", "0xd84", "Neoverse-V3"),
    ("0x41", "0xd8e", "Neoverse-N3"),
    ("0xc0", "0xac3", "Ampere-1"),
    ("0xc0", "0xac4", "Ampere-1A"),
];

/// What `/proc/cpuinfo` says of the first CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuInfo {
    pub vendor: Option<String>,
    /// `model name`, or the name that implementer and part stand for.
    pub model_name: Option<String>,
    pub family: Option<u32>,
    pub model: Option<u32>,
    pub stepping: Option<u32>,
    /// Arm: `CPU implementer`.
    pub implementer: Option<String>,
    /// Arm: `CPU part`.
    pub part: Option<String>,
    /// Different models among all listed CPUs.
    pub distinct_models: usize,
}

impl CpuInfo {
    /// Reads the text; `None` when it describes no CPU.
    pub fn parse(text: &str) -> Option<Self> {
        let first = text.split("\n\n").find(|block| proc::field(block, "processor").is_some())?;
        let word = |key: &str| proc::field(first, key).map(str::to_owned);
        let number = |key: &str| proc::field(first, key).and_then(|value| value.parse().ok());
        let (implementer, part) = (word("CPU implementer"), word("CPU part"));
        let arm = implementer.as_deref().zip(part.as_deref());
        let arm = arm.and_then(|(i, p)| ARM_CORES.iter().find(|core| (core.0, core.1) == (i, p)));
        let names = ["model name", "CPU part"];
        let mut models: Vec<&str> = text
            .split("\n\n")
            .filter_map(|block| names.iter().find_map(|name| proc::field(block, name)))
            .collect();
        models.sort_unstable();
        models.dedup();
        Some(Self {
            vendor: word("vendor_id"),
            model_name: word("model name").or_else(|| arm.map(|core| core.2.to_owned())),
            family: number("cpu family"),
            model: number("model"),
            stepping: number("stepping"),
            implementer,
            part,
            distinct_models: models.len(),
        })
    }
}

/// In what `cpuid` and `/proc/cpuinfo` differ; `None` when they have nothing in common to compare.
pub fn disagreements(cpuid: &Cpuid, info: &CpuInfo) -> Option<Vec<String>> {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let number = |value: u32| Some(value.to_string());
    let pairs = [
        ("vendor", cpuid.vendor.clone(), info.vendor.clone()),
        ("model name", cpuid.brand.clone(), info.model_name.as_deref().map(squeeze)),
        ("family", number(cpuid.family), info.family.and_then(number)),
        ("model", number(cpuid.model), info.model.and_then(number)),
        ("stepping", number(cpuid.stepping), info.stepping.and_then(number)),
    ];
    let comparable: Vec<_> =
        pairs.into_iter().filter_map(|(what, a, b)| Some((what, a?, b?))).collect();
    if comparable.is_empty() {
        return None;
    }
    let differ = comparable.into_iter().filter(|(_, a, b)| a != b);
    Some(differ.map(|(what, a, b)| format!("{what}: cpuid '{a}', /proc/cpuinfo '{b}'")).collect())
}

pub fn section(files: &Files, cpuid: &Fact<Cpuid>) -> Section {
    let text = files.text("/proc/cpuinfo");
    let info = text.clone().and_then(|text| {
        CpuInfo::parse(&text).ok_or_else(|| "/proc/cpuinfo describes no CPU".to_owned())
    });
    let mut section = Section::new("cpu");
    section.put("model", model(cpuid, &info));
    section.put("by_cpuid", cpuid.as_ref().map(by_cpuid).map_err(Clone::clone));
    section.put("by_cpuinfo", info.clone());
    let compared = cpuid.clone().and_then(|cpuid| {
        disagreements(&cpuid, info.as_ref().map_err(Clone::clone)?)
            .ok_or_else(|| "the two have no fact in common".to_owned())
    });
    section.put("agree", compared.as_ref().map(Vec::is_empty).map_err(Clone::clone));
    section.put("disagreements", compared);
    let microcode = text.clone().and_then(|text| {
        let microcode = proc::field(&text, "microcode").map(str::to_owned);
        microcode.map_or_else(|| files.line("/sys/devices/system/cpu/cpu0/microcode/version"), Ok)
    });
    section.put("microcode", microcode);
    section.put("features", text.clone().and_then(|text| features(&text)));
    let mhz = text.and_then(|text| {
        let mhz = proc::field(&text, "cpu MHz").and_then(|mhz| mhz.parse::<f64>().ok());
        mhz.ok_or_else(|| "/proc/cpuinfo has no 'cpu MHz'".to_owned())
    });
    section.put("frequency_hz", mhz.map(|mhz| mhz * 1e6));
    let policy = "/sys/devices/system/cpu/cpufreq/policy0";
    let hz = |name: &str| files.number::<u64>(format!("{policy}/{name}")).map(|khz| khz * 1000);
    section.put("governor", files.line(format!("{policy}/scaling_governor")));
    section.put("frequency_driver", files.line(format!("{policy}/scaling_driver")));
    section.put("frequency_min_hz", hz("scaling_min_freq"));
    section.put("frequency_max_hz", hz("scaling_max_freq"));
    section.put("boost", boost(files));
    section
}

fn model(cpuid: &Fact<Cpuid>, info: &Fact<CpuInfo>) -> Fact<String> {
    let by_cpuid = cpuid.as_ref().ok().and_then(|cpuid| cpuid.brand.clone());
    let by_info = info.as_ref().ok().and_then(|info| info.model_name.clone());
    by_cpuid.or(by_info).ok_or_else(|| "neither cpuid nor /proc/cpuinfo has a name".to_owned())
}

fn by_cpuid(cpuid: &Cpuid) -> Value {
    json!({
        "vendor": cpuid.vendor,
        "brand": cpuid.brand,
        "family": cpuid.family,
        "model": cpuid.model,
        "stepping": cpuid.stepping,
    })
}

fn features(cpuinfo: &str) -> Fact<Vec<&'static str>> {
    let listed = proc::field(cpuinfo, "flags").or_else(|| proc::field(cpuinfo, "Features"));
    let listed = listed.ok_or_else(|| "/proc/cpuinfo lists no features".to_owned())?;
    let listed: std::collections::HashSet<&str> = listed.split(' ').collect();
    Ok(NOTABLE.into_iter().filter(|name| listed.contains(name)).collect())
}

fn boost(files: &Files) -> Fact<bool> {
    let no_turbo = files.number::<u8>("/sys/devices/system/cpu/intel_pstate/no_turbo");
    let turbo = no_turbo.map(|off| off == 0);
    turbo.or_else(|_| files.number::<u8>("/sys/devices/system/cpu/cpufreq/boost").map(|on| on != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    const INTEL: &str =
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
        model name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\nstepping\t: 7\nmicrocode\t: 0x1\n\
        cpu MHz\t\t: 2499.998\nflags\t\t: fpu avx2 hypervisor aes\n\npower management:\n\n\
        processor\t: 1\nmodel name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\n";
    const AMD: &str = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n\
        model name\t: AMD EPYC 7R13 Processor\nstepping\t: 1\nmicrocode\t: 0xa0011d5\n";
    const ARM: &str =
        "processor\t: 0\nBogoMIPS\t: 243.75\nFeatures\t: fp asimd aes crc32 atomics\n\
        CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x3\nCPU part\t: 0xd0c\n\
        CPU revision\t: 1\n";

    fn facts(cpuinfo: &str, cpuid: Fact<Cpuid>) -> serde_json::Map<String, Value> {
        let captured = Captured::new(&[("/proc/cpuinfo", cpuinfo)]);
        section(&captured.files(), &cpuid).into_parts().0
    }

    fn cpuid() -> Cpuid {
        Cpuid {
            vendor: Some("GenuineIntel".into()),
            brand: Some("Intel(R) Xeon(R) Processor @ 2.50GHz".into()),
            family: 6,
            model: 85,
            stepping: 7,
            ..Cpuid::default()
        }
    }

    #[test]
    fn intel_and_amd_are_read() {
        let info = CpuInfo::parse(INTEL).unwrap();
        assert_eq!((info.family, info.model, info.stepping), (Some(6), Some(85), Some(7)));
        assert_eq!(info.distinct_models, 1);
        let info = CpuInfo::parse(AMD).unwrap();
        assert_eq!(info.model_name.as_deref(), Some("AMD EPYC 7R13 Processor"));
        assert_eq!(facts(AMD, Err("no".into()))["microcode"], "0xa0011d5");
    }

    #[test]
    fn arm_gets_its_name_from_implementer_and_part() {
        let facts = facts(ARM, Err("this architecture has no cpuid instruction".into()));
        assert_eq!(facts["model"], "Neoverse-N1");
        assert_eq!(facts["by_cpuinfo"]["implementer"], "0x41");
        assert_eq!(facts["features"], json!(["aes", "asimd", "atomics", "crc32"]));
        assert!(facts["agree"].is_null() && facts["by_cpuid"].is_null());
    }

    #[test]
    fn agreement_and_each_disagreement_are_reported() {
        let same = facts(INTEL, Ok(cpuid()));
        assert_eq!((&same["agree"], &same["disagreements"]), (&json!(true), &json!([])));
        // As after a live migration, or where a container shows an invented cpuinfo.
        let moved = Cpuid { brand: Some("Intel(R) Xeon(R) Gold".into()), model: 106, ..cpuid() };
        let changed = facts(INTEL, Ok(moved));
        assert_eq!(changed["agree"], false);
        assert_eq!(changed["disagreements"][1], "model: cpuid '106', /proc/cpuinfo '85'");
    }

    #[test]
    fn spaces_in_a_name_are_no_disagreement() {
        let info = CpuInfo {
            model_name: Some("Intel(R)  Xeon(R) Processor @ 2.50GHz ".into()),
            ..CpuInfo::default()
        };
        assert_eq!(disagreements(&cpuid(), &info), Some(vec![]));
    }

    #[test]
    fn a_hidden_cpuinfo_leaves_what_cpuid_knows() {
        let facts = section(&Captured::new(&[]).files(), &Ok(cpuid())).into_parts().0;
        assert_eq!(facts["model"], "Intel(R) Xeon(R) Processor @ 2.50GHz");
        assert!(facts["by_cpuinfo"].is_null() && facts["microcode"].is_null());
    }
}
