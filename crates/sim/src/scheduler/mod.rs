//! Hosts whose processors are shared by virtual machines: Xen's Credit, SEDF and BVT.
//!
//! A [`Host`] has processors, domains and one [`Policy`]. Domains have virtual CPUs, each with a
//! [`Workload`]. Simulated, it tells every stretch that a virtual CPU ran ([`Stretch`]); shares, and
//! runs, waits and periods as a clock loop inside would see them, are counted from those by
//! [`seen::Seen`].
mod bvt;
mod credit;
mod host;
mod sedf;
pub mod seen;
mod state;
#[cfg(test)]
mod tests;
pub mod workload;

pub use bvt::BvtSettings;
pub use host::{simulate, Domain, Host, Policy, SedfTriple};
pub use state::Stretch;
pub use workload::Workload;
