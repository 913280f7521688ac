//! What the `cpuid` instruction says. Other architectures have no such instruction: every answer
//! is then missing, with that reason. Leaves: Intel SDM volume 2A, AMD APM volume 3, and for the
//! hypervisor's leaves Linux `virt/kvm/x86/cpuid.rst`.
use nephoscope_linux::files::Fact;
use serde::Serialize;

/// One cache, from whichever source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CpuCache {
    pub level: u8,
    /// `data`, `instruction` or `unified`.
    pub kind: String,
    /// Size of one instance.
    pub size_bytes: u64,
    /// Line size; absent where it is not told.
    pub line_bytes: Option<u64>,
    /// Associativity; absent where it is not told.
    pub ways: Option<u64>,
    /// Logical CPUs that share one instance; from `cpuid` the most that there is room for.
    pub shared_by: Option<u64>,
    /// How many there are; absent where it is not told.
    pub instances: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpuid {
    /// Vendor word, such as `GenuineIntel`.
    pub vendor: Option<String>,
    /// Brand string of leaves 0x80000002 to 4.
    pub brand: Option<String>,
    pub family: u32,
    pub model: u32,
    pub stepping: u32,
    /// Whether a hypervisor says that it is there (leaf 1, ECX bit 31).
    pub hypervisor: bool,
    /// Its signature words (leaf 0x40000000 and, where two interfaces are offered, 0x40000100).
    pub signatures: Vec<String>,
    /// KVM's feature bits, where one of the interfaces is KVM's.
    pub kvm_features: Option<u32>,
    /// Whether the time stamp counter runs at one rate in every power state.
    pub tsc_invariant: Option<bool>,
    /// Caches of leaf 4 or 0x8000001D.
    pub caches: Vec<CpuCache>,
}

pub fn read() -> Fact<Cpuid> {
    #[cfg(target_arch = "x86_64")]
    return Ok(x86::decode(raw_cpuid::native_cpuid::cpuid_count));
    #[cfg(not(target_arch = "x86_64"))]
    Err("this architecture has no cpuid instruction".to_owned())
}

impl Cpuid {
    /// Whether the hypervisor reports stolen time, as [`super::steal::reported`] returns it.
    pub fn reports_steal(&self) -> Option<bool> {
        /// `KVM_FEATURE_STEAL_TIME`.
        const STEAL_TIME: u32 = 1 << 5;
        if !self.hypervisor {
            return Some(true);
        }
        if let Some(features) = self.kvm_features {
            return Some(features & STEAL_TIME != 0);
        }
        match self.signatures.first().map(String::as_str) {
            Some("XenVMMXenVMM") => Some(true),
            Some("Microsoft Hv") => Some(false),
            _ => None,
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{CpuCache, Cpuid};
    use raw_cpuid::{CacheParameter, CacheType, CpuId, CpuIdReader};

    /// Where hypervisors put their interfaces; a second one sits 0x100 higher.
    const HYPERVISOR_LEAVES: [u32; 2] = [0x4000_0000, 0x4000_0100];

    /// Reads all leaves through `reader`.
    pub fn decode(reader: impl CpuIdReader) -> Cpuid {
        let cpuid = CpuId::with_cpuid_reader(reader.clone());
        let mut out = Cpuid {
            vendor: cpuid.get_vendor_info().map(|info| info.as_str().to_owned()),
            brand: cpuid
                .get_processor_brand_string()
                .map(|brand| squeeze(brand.as_str()))
                .filter(|brand| !brand.is_empty()),
            tsc_invariant: cpuid
                .get_advanced_power_mgmt_info()
                .map(|info| info.has_invariant_tsc()),
            ..Cpuid::default()
        };
        if let Some(info) = cpuid.get_feature_info() {
            out.family = info.family_id().into();
            out.model = info.model_id().into();
            out.stepping = info.stepping_id().into();
            out.hypervisor = info.has_hypervisor();
        }
        if out.hypervisor {
            hypervisor(&reader, &mut out);
        }
        if let Some(caches) = cpuid.get_cache_parameters() {
            out.caches = caches.filter_map(|parameters| cache(&parameters)).collect();
        }
        out
    }

    fn hypervisor(reader: &impl CpuIdReader, out: &mut Cpuid) {
        for leaf in HYPERVISOR_LEAVES {
            let registers = reader.cpuid2(leaf, 0);
            let bytes: Vec<u8> = [registers.ebx, registers.ecx, registers.edx]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            let word = String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned();
            let printable = word.chars().all(|c| c.is_ascii_graphic() || c == ' ');
            if word.trim().is_empty() || !printable || out.signatures.contains(&word) {
                continue;
            }
            if word == "KVMKVMKVM" {
                out.kvm_features = Some(reader.cpuid2(leaf + 1, 0).eax);
            }
            out.signatures.push(word);
        }
    }

    fn cache(parameter: &CacheParameter) -> Option<CpuCache> {
        let kind = match parameter.cache_type() {
            CacheType::Data => "data",
            CacheType::Instruction => "instruction",
            CacheType::Unified => "unified",
            _ => return None,
        };
        let line = parameter.coherency_line_size() as u64;
        let ways = parameter.associativity() as u64;
        let size_bytes =
            ways * parameter.physical_line_partitions() as u64 * line * parameter.sets() as u64;
        Some(CpuCache {
            level: parameter.level(),
            kind: kind.to_owned(),
            size_bytes,
            line_bytes: Some(line),
            ways: Some(ways),
            shared_by: Some(parameter.max_cores_for_cache() as u64),
            instances: None,
        })
    }

    fn squeeze(text: &str) -> String {
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use raw_cpuid::CpuIdResult;

        fn words(text: &[u8; 12]) -> [u32; 3] {
            std::array::from_fn(|at| u32::from_le_bytes(text[at * 4..][..4].try_into().unwrap()))
        }

        fn leaf(eax: u32, ebx: u32, ecx: u32, edx: u32) -> CpuIdResult {
            CpuIdResult { eax, ebx, ecx, edx }
        }

        fn brand(text: &str, part: usize) -> CpuIdResult {
            let mut bytes = [0u8; 48];
            bytes[..text.len()].copy_from_slice(text.as_bytes());
            let word =
                |at: usize| u32::from_le_bytes(bytes[part * 16 + at..][..4].try_into().unwrap());
            leaf(word(0), word(4), word(8), word(12))
        }

        /// An AMD EPYC of family 0x19 under KVM, its caches in leaf 0x8000001D.
        fn epyc(eax: u32, ecx: u32) -> CpuIdResult {
            let [b, d, c] = words(b"AuthenticAMD");
            match (eax, ecx) {
                (0, _) => leaf(0x10, b, c, d),
                // Base family 0xf, extended 0xa, model 1, stepping 1; hypervisor bit.
                (1, _) => leaf(0x00A0_0F11, 0, 1 << 31, 0),
                (0x4000_0000, _) => {
                    let [b, c, d] = words(b"KVMKVMKVM\0\0\0");
                    leaf(0, b, c, d)
                }
                (0x4000_0001, _) => leaf(1 << 5 | 1, 0, 0, 0),
                (0x8000_0000, _) => leaf(0x8000_0021, b, c, d),
                (0x8000_0002..=0x8000_0004, _) => {
                    brand("AMD EPYC 7R13  Processor", (eax - 0x8000_0002) as usize)
                }
                (0x8000_0007, _) => leaf(0, 0, 0, 1 << 8),
                // Level 3, unified, shared by 8; 16 ways, 64 byte lines, 32768 sets: 32 MiB.
                (0x8000_001D, 0) => leaf(7 << 14 | 3 << 5 | 3, 15 << 22 | 63, 32_767, 0),
                _ => leaf(0, 0, 0, 0),
            }
        }

        #[test]
        fn amd_is_decoded_with_its_own_cache_leaf() {
            let cpuid = decode(epyc);
            assert_eq!(cpuid.vendor.as_deref(), Some("AuthenticAMD"));
            assert_eq!(cpuid.brand.as_deref(), Some("AMD EPYC 7R13 Processor"));
            assert_eq!((cpuid.family, cpuid.model, cpuid.stepping), (0x19, 1, 1));
            assert_eq!(cpuid.tsc_invariant, Some(true));
            assert_eq!(cpuid.caches.len(), 1);
            let cache = &cpuid.caches[0];
            assert_eq!((cache.level, cache.size_bytes, cache.shared_by), (3, 32 << 20, Some(8)));
        }

        #[test]
        fn kvm_announces_steal_even_when_its_leaf_0x40000000_counts_no_leaves() {
            let cpuid = decode(epyc);
            assert_eq!(
                (cpuid.hypervisor, &cpuid.signatures[..]),
                (true, &["KVMKVMKVM".to_owned()][..])
            );
            assert_eq!(cpuid.reports_steal(), Some(true));
            let silent =
                |eax, ecx| if eax == 0x4000_0001 { leaf(1, 0, 0, 0) } else { epyc(eax, ecx) };
            assert_eq!(decode(silent).reports_steal(), Some(false));
        }

        #[test]
        fn hyper_v_in_front_of_kvm_is_seen_as_both() {
            let two_interfaces = |eax, ecx| match eax {
                0x4000_0000 => {
                    let [b, c, d] = words(b"Microsoft Hv");
                    leaf(0x4000_000B, b, c, d)
                }
                0x4000_0100 => epyc(0x4000_0000, 0),
                0x4000_0101 => epyc(0x4000_0001, 0),
                _ => epyc(eax, ecx),
            };
            let cpuid = decode(two_interfaces);
            assert_eq!(cpuid.signatures, ["Microsoft Hv", "KVMKVMKVM"]);
            assert_eq!(cpuid.reports_steal(), Some(true));
        }

        #[test]
        fn without_the_hypervisor_bit_its_leaves_are_not_believed() {
            let bare =
                |eax, ecx| if eax == 1 { leaf(0x00A0_0F11, 0, 0, 0) } else { epyc(eax, ecx) };
            let cpuid = decode(bare);
            assert!(!cpuid.hypervisor && cpuid.signatures.is_empty());
            assert_eq!(cpuid.reports_steal(), Some(true), "0 is the truth on bare metal");
        }
    }
}
