//! Hosts whose processors are shared by virtual machines: Xen's Credit, Credit2, SEDF and BVT, and Linux.
//!
//! A [`Host`] has processors, domains with virtual CPUs, each with a [`Workload`], and a
//! [`Scheduler`]. [`simulate`] yields every [`RunInterval`] of a virtual CPU; from those an
//! [`observer`] counts the share, and runs, waits and periods as a clock loop inside would observe
//! them.
//!
//! [`scenario`] defines the keys of a scenario file and runs it; [`gaps`] is the benchmark `cpu.gaps`
//! inside one of its machines, and [`fixed_work`] a probe that times a fixed amount of work.
mod bvt;
mod credit;
mod credit2;
mod divisor;
mod fair_allocation;
pub mod fixed_work;
mod gap_meter;
pub mod gaps;
#[cfg(test)]
mod gaps_tests;
mod host;
mod host_from_scenario;
pub mod linux;
mod machine;
pub mod observer;
pub mod outcome;
mod policy;
pub mod scenario;
mod sedf;
#[cfg(test)]
mod tests;
pub mod workload;

pub use bvt::BvtSettings;
pub use host::{Domain, Host, Reservation, Scheduler};
pub use machine::{simulate, RunCounts};
pub use policy::RunInterval;
pub use workload::Workload;
