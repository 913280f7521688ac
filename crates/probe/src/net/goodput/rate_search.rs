//! The highest rate of datagrams without loss, by bisection (RFC 2544, section 26.1).
use super::client::{TwoSided, UdpSession};
use super::datagrams::{loss_ratio, UdpTransferStats};
use super::samples::directions;
use super::TransferTask;
use crate::error::Result;
use crate::trial::Trial;
use nephoscope_wire::lines::Peer;

/// A sender that reaches less of the rate that was asked for is at its own limit.
const REACHED_RATIO: f64 = 0.98;

/// One trial of the search.
#[derive(Clone, Copy, Debug)]
pub struct SearchStep {
    pub end_ns: u64,
    /// Datagrams per second that left, of the slower direction.
    pub offered_per_s: f64,
    /// Loss of the worse direction.
    pub loss_ratio: f64,
}

pub struct RateSearchResult {
    pub steps: Vec<SearchStep>,
    /// The fastest step without loss, and what both sides saw in it.
    pub best: Option<(SearchStep, TwoSided<UdpTransferStats>)>,
    /// Why the search ended before the rate that is the first with loss was found.
    pub note: Option<String>,
}

/// The rates between which the limit lies.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bisection {
    lossless_per_s: f64,
    lossy_per_s: f64,
}

impl Bisection {
    fn middle(&self) -> f64 {
        f64::midpoint(self.lossless_per_s, self.lossy_per_s)
    }

    fn learn(&mut self, per_s: f64, is_lossless: bool) {
        if is_lossless {
            self.lossless_per_s = per_s;
        } else {
            self.lossy_per_s = per_s;
        }
    }
}

/// Searches in at most `steps` trials of `task`, whose rate is tried first; a loss of at most
/// `goal_ratio` counts as none.
pub fn search(
    trial: &mut Trial,
    task: &TransferTask,
    peer: Peer,
    steps: u64,
    goal_ratio: f64,
) -> Result<RateSearchResult> {
    let mut path = UdpSession::open(trial.session, peer)?;
    let mut bounds = Bisection { lossless_per_s: 0.0, lossy_per_s: task.per_s };
    let mut result = RateSearchResult { steps: Vec::new(), best: None, note: None };
    for number in 0..steps {
        if trial.session.is_stopped() {
            break;
        }
        let per_s = if number == 0 { task.per_s } else { bounds.middle() };
        let more_follow = number + 1 < steps;
        let transfer = path.carry(trial, &TransferTask { per_s, number, more_follow, ..*task })?;
        let Some(step) = judge(trial.out.at_ns(), task, &transfer) else { break };
        result.steps.push(step);
        let is_lossless = step.loss_ratio <= goal_ratio;
        bounds.learn(per_s, is_lossless);
        if !is_lossless {
            continue;
        }
        let is_slow = step.offered_per_s < per_s * REACHED_RATIO;
        result.best = Some((step, transfer));
        if is_slow || number == 0 {
            let limit =
                if is_slow { "the sender could not send faster" } else { "it is the set rate" };
            result.note = Some(format!(
                "The search ended at {:.0} datagrams per second without loss: {limit}.",
                step.offered_per_s
            ));
            break;
        }
    }
    Ok(result)
}

/// `None` where a direction sent nothing.
fn judge(
    end_ns: u64,
    task: &TransferTask,
    transfer: &TwoSided<UdpTransferStats>,
) -> Option<SearchStep> {
    let (mut offered_per_s, mut worst) = (f64::INFINITY, 0.0_f64);
    for (_, sender, receiver) in directions(task, transfer) {
        offered_per_s = offered_per_s.min(sender.sent.per_s?);
        worst = worst.max(loss_ratio(&sender.sent, &receiver.received)?);
    }
    Some(SearchStep { end_ns, offered_per_s, loss_ratio: worst })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_found_by_halving() {
        let limit_per_s = 734_567.0;
        let mut bounds = Bisection { lossless_per_s: 0.0, lossy_per_s: 1e6 };
        for _ in 0..20 {
            let per_s = bounds.middle();
            bounds.learn(per_s, per_s <= limit_per_s);
        }
        assert!(bounds.lossless_per_s <= limit_per_s && bounds.lossy_per_s > limit_per_s);
        assert!(bounds.lossy_per_s - bounds.lossless_per_s < 1.0);
    }
}
