//! What this machine is: facts for the fingerprint, each with a reason where it is missing.
pub mod cpuid;
