//! The samples that an outcome consists of.
use crate::Nanos;
use serde_json::Value;

/// What a sample depends on inside a replication.
pub type FactorPairs<'a> = [(&'a str, Value)];

/// Receives samples: metric, factors, value, count, time within the replication.
pub struct Sink<'a>(pub &'a mut dyn FnMut(&str, &FactorPairs<'_>, f64, u64, Nanos));

impl Sink<'_> {
    /// Takes a value of the whole replication, if there is one.
    pub fn scalar(
        &mut self,
        metric: &str,
        factors: &FactorPairs<'_>,
        value: impl Into<Option<f64>>,
    ) {
        if let Some(value) = value.into() {
            (self.0)(metric, factors, value, 1, 0);
        }
    }

    /// Takes a histogram as values with their counts.
    pub fn histogram(
        &mut self,
        metric: &str,
        factors: &FactorPairs<'_>,
        pairs: impl Iterator<Item = (f64, u64)>,
    ) {
        pairs.for_each(|(value, count)| (self.0)(metric, factors, value, count, 0));
    }

    /// Takes an event.
    pub fn event(&mut self, metric: &str, factors: &FactorPairs<'_>, value: f64, time: Nanos) {
        (self.0)(metric, factors, value, 1, time);
    }
}
