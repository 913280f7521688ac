//! Who runs this machine: the hypervisor's `cpuid` leaf, the firmware's words, Xen's own folder.
use super::cpuid::Cpuid;
use super::Section;
use nephoscope_linux::files::{Fact, Files};

/// Signature words and the names people use. Linux `arch/x86/kernel/cpu/hypervisor.c` and the
/// vendors' interface documents.
const NAMES: [(&str, &str); 11] = [
    ("KVMKVMKVM", "KVM"),
    ("Linux KVM Hv", "KVM"),
    ("XenVMMXenVMM", "Xen"),
    ("Microsoft Hv", "Hyper-V"),
    ("VMwareVMware", "VMware"),
    ("VBoxVBoxVBox", "VirtualBox"),
    ("TCGTCGTCGTCG", "QEMU TCG"),
    ("bhyve bhyve", "bhyve"),
    ("ACRNACRNACRN", "ACRN"),
    (" lrpepyh vr", "Parallels"),
    ("Jailhouse", "Jailhouse"),
];

/// Vendor and product words of the firmware that mean a virtual machine. Lower case.
const FIRMWARE: [(&str, &str); 9] = [
    ("amazon ec2", "Amazon EC2"),
    ("google compute engine", "Google Compute Engine"),
    ("alibaba cloud", "Alibaba Cloud"),
    ("openstack", "OpenStack"),
    ("vmware", "VMware"),
    ("virtualbox", "VirtualBox"),
    ("kvm", "KVM"),
    ("qemu", "QEMU"),
    ("xen", "Xen"),
];

pub fn section(files: &Files, cpuid: &Fact<Cpuid>) -> Section {
    let dmi = |name: &str| files.line(format!("/sys/class/dmi/id/{name}"));
    let (vendor, product) = (dmi("sys_vendor"), dmi("product_name"));
    let xen = files.line("/sys/hypervisor/type").ok();
    let mut section = Section::new("hypervisor");
    section.put("name", name(cpuid, &[&vendor, &product], xen.as_deref()));
    section.put("present", cpuid.as_ref().map(|c| c.hypervisor).map_err(Clone::clone));
    section.put("signatures", cpuid.as_ref().map(|c| &c.signatures).map_err(Clone::clone));
    section.put("sys_vendor", vendor);
    section.put("product_name", product);
    section.put("bios_vendor", dmi("bios_vendor"));
    section
}

/// The name; `none` only where the CPU says that there is no hypervisor.
fn name(cpuid: &Fact<Cpuid>, firmware: &[&Fact<String>], xen: Option<&str>) -> Fact<String> {
    if let Ok(cpuid) = cpuid {
        if !cpuid.hypervisor {
            return Ok("none".to_owned());
        }
        // The last interface is the hypervisor's own: the first may be one it imitates.
        if let Some(word) = cpuid.signatures.last() {
            let known = NAMES.iter().find(|(signature, _)| signature == word);
            return Ok(known.map_or_else(|| word.clone(), |(_, name)| (*name).to_owned()));
        }
    }
    if let Some(kind) = xen {
        return Ok(if kind == "xen" { "Xen".to_owned() } else { kind.to_owned() });
    }
    let words: Vec<_> =
        firmware.iter().filter_map(|word| Some(word.as_ref().ok()?.to_lowercase())).collect();
    let known = FIRMWARE.iter().find(|(part, _)| words.iter().any(|word| word.contains(part)));
    known.map(|(_, name)| (*name).to_owned()).ok_or_else(|| match cpuid {
        Ok(_) => "there is one, but it gives no signature and the firmware names none".to_owned(),
        Err(reason) => format!("{reason}, and the firmware names none"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(signatures: &[&str]) -> Fact<Cpuid> {
        let signatures = signatures.iter().map(|word| (*word).to_owned()).collect();
        Ok(Cpuid { hypervisor: true, signatures, ..Cpuid::default() })
    }

    #[test]
    fn none_is_said_only_when_the_bit_is_clear() {
        assert_eq!(name(&Ok(Cpuid::default()), &[], None).unwrap(), "none");
        assert!(name(&guest(&[]), &[], None).is_err());
        assert!(name(&Err("this architecture has no cpuid instruction".into()), &[], None).is_err());
    }

    #[test]
    fn signatures_come_first_then_xen_then_the_firmware() {
        assert_eq!(name(&guest(&["KVMKVMKVM"]), &[], None).unwrap(), "KVM");
        assert_eq!(name(&guest(&["Microsoft Hv", "KVMKVMKVM"]), &[], None).unwrap(), "KVM");
        assert_eq!(name(&guest(&["NewOneNewOne"]), &[], None).unwrap(), "NewOneNewOne");
        assert_eq!(name(&guest(&[]), &[], Some("xen")).unwrap(), "Xen");
        let arm = Err("no cpuid".to_owned());
        assert_eq!(name(&arm, &[&Ok("Amazon EC2".into())], None).unwrap(), "Amazon EC2");
    }
}
