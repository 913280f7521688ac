//! Stolen CPU time: whether the hypervisor reports it, and what a count of 0 means.
use super::cpuid;
use nephoscope_linux::proc::CpuTimes;

/// Whether the hypervisor reports stolen time to this guest: yes on bare metal (where 0 is the
/// truth), on Xen, and on KVM with the steal-time feature; no on KVM without it and on Hyper-V;
/// unknown elsewhere.
pub fn reported() -> Option<bool> {
    cpuid::read().ok().and_then(|cpuid| cpuid.reports_steal())
}

/// Why the steal column says nothing here: a hypervisor that does not tell its guest leaves it at
/// 0 for ever. One tick of steal since boot proves that it does tell.
pub fn hidden_reason(cpu: Option<&CpuTimes>) -> Option<&'static str> {
    let Some(steal) = cpu.and_then(|times| times.steal) else {
        return Some("/proc/stat does not show it");
    };
    let silent = steal == 0 && reported() == Some(false);
    silent.then_some("the hypervisor does not tell its guests, and none was ever counted")
}
