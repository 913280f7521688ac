//! Hosts whose processors are shared by virtual machines: Xen's Credit, SEDF and BVT, and Linux.
//!
//! A [`Host`] has processors, domains and one [`Policy`]. Domains have virtual CPUs, each with a
//! [`Workload`]. Simulated, it tells every stretch that a virtual CPU ran ([`Stretch`]); shares, and
//! runs, waits and periods as a clock loop inside would see them, are counted from those by
//! [`seen::Seen`].
//!
//! [`scenario`] reads a host from JSON, runs it and gives samples; [`gaps`] is what the benchmark
//! `cpu.gaps` would say inside one of its machines, and [`fixed_work`] a probe that times a fixed
//! amount of work.
pub mod builtin;
mod bvt;
mod credit;
mod division;
pub mod fixed_work;
pub mod gaps;
#[cfg(test)]
mod gaps_tests;
mod host;
pub mod linux;
mod machine;
pub mod meter;
pub mod outcome;
pub mod scenario;
mod sedf;
pub mod seen;
mod state;
#[cfg(test)]
mod tests;
mod translate;
pub mod workload;

pub use bvt::BvtSettings;
pub use host::{Domain, Host, Policy, SedfTriple};
pub use machine::{observe, simulate, Told};
pub use state::Stretch;
pub use workload::Workload;
