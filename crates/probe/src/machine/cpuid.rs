//! What the `cpuid` instruction says. On other architectures there is no such instruction: every
//! answer is then "not known here".

/// Whether the hypervisor tells this guest of stolen time: `Some(true)` on KVM with the steal-time
/// feature, on Xen and on bare metal (where 0 is the truth), `Some(false)` on a hypervisor that is
/// known to announce features and does not announce this one, `None` where nobody says.
pub fn steal_told() -> Option<bool> {
    None
}
