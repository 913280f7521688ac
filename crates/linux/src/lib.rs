//! Linux as the static programs see it: small files of `/proc` and `/sys`, control groups, namespaces,
//! signals, clocks and scheduling. Nothing here knows about trials or labs.
pub mod affinity;
pub mod call;
#[cfg(any(test, feature = "captured"))]
pub mod captured;
pub mod cgroup;
pub mod clock;
pub mod files;
pub mod mounts;
pub mod namespaces;
pub mod orphans;
pub mod proc;
pub mod scheduling;
pub mod signals;
