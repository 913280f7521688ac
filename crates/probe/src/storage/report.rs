//! The samples of a transfer.
use super::passes::StoragePass;
use super::transactions::Transactions;
use crate::error::Result;
use crate::timing::closed_loop::{latency_histogram, pairs};
use crate::trial::{factors, Factors, Trial};
use nephoscope_wire::spec::Metric;

/// Share of the highest throughput that counts as saturated.
const SATURATED: f64 = 0.9;
/// Fewer sizes show no course.
const SIZES_MIN: usize = 3;

pub const THROUGHPUT: Metric = Metric::higher("transfer_bytes_per_s").headline().doc(
    "Bytes per second of all clients together, from the first start to the last acknowledgement \
     or byte.",
);
pub const LATENCY: Metric = Metric::lower("transfer_latency_ns")
    .histogram()
    .doc("Time of an object, from its request to the acknowledgement or the last byte.");
pub const CLIENT_THROUGHPUT: Metric = Metric::higher("client_bytes_per_s")
    .doc("Bytes per second of one client, over the time of its own transfers.");
pub const FAIRNESS: Metric = Metric::higher("fairness_ratio")
    .share()
    .doc("Jain's index of the clients' throughput: 1 if all are equal.");
pub const SATURATION: Metric = Metric::neutral("saturation_bytes").doc(
    "Smallest of at least three sizes with 90 % of the highest throughput; left out where the \
     largest size alone has it.",
);
pub const TRANSACTIONS: Metric = Metric::higher("transactions_per_s")
    .headline()
    .doc("Objects of one byte read or written per second, by one client and by all at once.");
pub const TRANSACTION_LATENCY: Metric =
    Metric::lower("transaction_latency_ns").histogram().doc("Time of an object of one byte.");

impl StoragePass {
    fn factors(&self) -> Factors {
        let mut factors = factors! {"operation": self.operation};
        if let Some(cache) = self.cache {
            factors.insert("cache".to_owned(), cache.into());
        }
        factors
    }

    fn factors_with_size(&self) -> Factors {
        let mut factors = self.factors();
        factors.insert("object_bytes".to_owned(), self.object_bytes.into());
        factors
    }
}

/// Writes the samples of a pass.
pub fn emit_pass(trial: &mut Trial, pass: &StoragePass) -> Result<()> {
    let factors = pass.factors_with_size();
    trial.out.emit(THROUGHPUT.id, pass.bytes_per_s(), factors.clone())?;
    let mut latency = latency_histogram();
    for times in &pass.clients {
        latency.add(&times.latency).expect("histograms of the same bounds");
    }
    trial.out.emit_pairs(LATENCY.id, pairs(&latency), &factors)?;
    if let Some(fairness) = pass.fairness() {
        trial.out.emit(FAIRNESS.id, fairness, factors.clone())?;
    }
    for (client, times) in pass.clients.iter().enumerate() {
        let mut factors = factors.clone();
        factors.insert("client".to_owned(), (client + 1).into());
        trial.out.emit(CLIENT_THROUGHPUT.id, times.bytes_per_s(), factors)?;
    }
    Ok(())
}

/// Writes the size from which the throughput of each operation no longer rises.
pub fn emit_saturation(trial: &mut Trial, passes: &[StoragePass]) -> Result<()> {
    let smallest = passes.first().map(|pass| pass.object_bytes);
    for first in passes.iter().filter(|pass| Some(pass.object_bytes) == smallest) {
        let factors = first.factors();
        let course: Vec<(u64, f64)> = passes
            .iter()
            .filter(|pass| pass.factors() == factors)
            .map(|pass| (pass.object_bytes, pass.bytes_per_s()))
            .collect();
        if let Some(bytes) = saturation(&course) {
            trial.out.emit(SATURATION.id, bytes as f64, factors)?;
        }
    }
    Ok(())
}

/// Returns the smallest size with nearly the highest throughput; `None` where that is the largest.
fn saturation(course: &[(u64, f64)]) -> Option<u64> {
    let highest = course.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let (bytes, _) = course.iter().find(|(_, rate)| *rate >= SATURATED * highest)?;
    (course.len() >= SIZES_MIN && Some(bytes) != course.last().map(|(last, _)| last))
        .then_some(*bytes)
}

/// Writes the rates and times of transactions.
pub fn emit_transactions(trial: &mut Trial, all: &[Transactions]) -> Result<()> {
    for measured in all {
        let factors =
            factors! {"operation": measured.operation, "clients_at_once": measured.clients};
        trial.out.emit(TRANSACTIONS.id, measured.per_s, factors.clone())?;
        trial.out.emit_pairs(TRANSACTION_LATENCY.id, pairs(&measured.latency), &factors)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_saturates_at_the_smallest_size_near_the_highest() {
        let course = |rates: &[f64]| {
            let sizes = rates.iter().enumerate().map(|(index, rate)| (10 << index, *rate));
            saturation(&sizes.collect::<Vec<_>>())
        };
        assert_eq!(course(&[1.0, 50.0, 95.0, 100.0, 99.0]), Some(40));
        assert_eq!(course(&[1.0, 50.0, 89.0, 100.0]), None);
        assert_eq!(course(&[99.0, 100.0]), None);
        assert_eq!(course(&[]), None);
    }
}
