//! Equal work on processors of unequal speed: every machine gets as much work per weight as the slowest
//! processor can give, by a quota on the faster ones.
//!
//! A machine of weight w on a processor of speed v, whose machines have the weights W together, gets the
//! work v w / W by weights alone (generalised processor sharing, Parekh and Gallager 1993). Equal work
//! per weight on all processors is at most the minimum of v / W over them; the machine reaches it with
//! w / v times that level of its processor. For one resource this level is also the first one of
//! progressive filling (Bertsekas and Gallager, Data Networks, 2nd ed. 1992, section 6.5.2), and equal
//! dominant shares (Ghodsi et al., NSDI 2011).
use super::scenario::{Allocation, PolicyName, QuotaConfig, SchedulerScenario, Vm};
use crate::error::{refuse, within, Result};

/// Weight of a machine that states none, as in Linux.
const WEIGHT: u32 = 100;
/// Processors differ by less.
const SPEED_MAX: f64 = 1e3;

impl SchedulerScenario {
    /// Returns the scenario with the quotas that its allocation gives. Returns an error for speeds or
    /// machines for which there are none.
    pub(super) fn allocated(&self) -> Result<Self> {
        self.check_speeds()?;
        let mut scenario = self.clone();
        if self.allocation == Allocation::AsScheduled {
            return Ok(scenario);
        }
        if self.policy != PolicyName::Linux || self.speeds.is_empty() {
            return refuse(
                "allocation equal_work gives quotas to machines on processors of several speeds.",
                "Set policy to linux, and give speeds.",
            );
        }
        let mut weights = vec![0.0; self.processors];
        for (name, vm) in &self.vms {
            weights[self.only_processor(name, vm)?] += weight(vm);
        }
        let level = (self.speeds.iter().zip(&weights))
            .filter(|(_, weight)| **weight > 0.0)
            .map(|(speed, weight)| speed / weight)
            .fold(f64::INFINITY, f64::min);
        for (name, vm) in &mut scenario.vms {
            let speed = self.speeds[self.only_processor(name, vm)?];
            let cpus = level * weight(vm) / speed;
            vm.quota = Some(QuotaConfig::of(cpus));
        }
        Ok(scenario)
    }

    fn check_speeds(&self) -> Result<()> {
        if !self.speeds.is_empty() && self.speeds.len() != self.processors {
            let (speeds, processors) = (self.speeds.len(), self.processors);
            return refuse(
                format!("There are {speeds} speeds for {processors} processors."),
                "Give the speed of each processor, or none.",
            );
        }
        for speed in &self.speeds {
            within("speeds", *speed, 1.0 / SPEED_MAX, SPEED_MAX)?;
        }
        Ok(())
    }

    fn only_processor(&self, name: &str, vm: &Vm) -> Result<usize> {
        match vm.cpus[..] {
            [cpu] if cpu < self.processors && vm.quota.is_none() && vm.reservation.is_none() => {
                Ok(cpu)
            }
            _ => refuse(
                format!("vms.{name}: allocation equal_work sets the quota of each machine."),
                "Pin it to one processor (cpus), and leave out its quota and reservation.",
            ),
        }
    }
}

fn weight(vm: &Vm) -> f64 {
    f64::from(vm.weight.unwrap_or(WEIGHT))
}

#[cfg(test)]
mod tests {
    use super::super::outcome::run;
    use super::*;

    /// Work of each machine by name, in their order.
    fn work(allocation: &str, speeds: &str, vms: &str) -> Vec<f64> {
        let processors = speeds.split(',').count();
        let text = format!(
            r#"{{"version": 1, "policy": "linux", "processors": {processors}, "speeds": [{speeds}],
            "allocation": "{allocation}", "duration_s": 20, "warmup_s": 1, "vms": {{{vms}}}}}"#
        );
        let scenario: SchedulerScenario = serde_json::from_str(&text).unwrap();
        let outcome = run(&scenario, 1).unwrap();
        outcome.vcpus.iter().map(|vcpu| vcpu.work_ns / 20e9).collect()
    }

    fn close(values: &[f64], expected: &[f64]) {
        assert_eq!(values.len(), expected.len());
        for (value, expected) in values.iter().zip(expected) {
            // Quotas are handed out in slices of 5 ms and checked at ticks of 4 ms.
            assert!((value / expected - 1.0).abs() < 0.01, "{values:?} instead of {expected:?}");
        }
    }

    #[test]
    fn alone_on_its_processor_each_machine_works_at_its_speed_or_at_the_slowest() {
        let vms = r#""a": {"cpus": [0]}, "b": {"cpus": [1]}, "c": {"cpus": [2]}"#;
        close(&work("as_scheduled", "1.15, 1, 1.11", vms), &[1.15, 1.0, 1.11]);
        close(&work("equal_work", "1.15, 1, 1.11", vms), &[1.0, 1.0, 1.0]);
    }

    #[test]
    fn work_is_in_the_ratio_of_weights_across_processors() {
        // Levels: 2 / 300 of the first processor, 1 / 200 of the second, which binds.
        let vms = r#""a": {"cpus": [0], "weight": 100}, "b": {"cpus": [0], "weight": 200},
                     "c": {"cpus": [1], "weight": 200}"#;
        close(&work("as_scheduled", "2, 1", vms), &[2.0 / 3.0, 4.0 / 3.0, 1.0]);
        close(&work("equal_work", "2, 1", vms), &[0.5, 1.0, 1.0]);
    }

    #[test]
    fn what_has_no_allocation_is_refused() {
        for (more, word) in [
            (r#""speeds": [1], "vms": {}"#, "speeds"),
            (r#""allocation": "equal_work", "vms": {"a": {"cpus": [0]}}"#, "equal_work"),
            (
                r#""allocation": "equal_work", "speeds": [1, 2], "vms": {"a": {}}"#,
                "vms.a: allocation",
            ),
            (r#""speeds": [1, 0], "vms": {}"#, "speeds"),
        ] {
            let text = format!(r#"{{"version": 1, "policy": "linux", "processors": 2, {more}}}"#);
            let scenario: SchedulerScenario = serde_json::from_str(&text).unwrap();
            let message = scenario.check().unwrap_err().message;
            assert!(message.contains(word), "{message}");
        }
    }
}
