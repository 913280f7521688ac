//! More and fewer instances as the load asks for.
use super::model::{Event, Running};
use super::scenario::{Autoscaling, Broker};
use crate::{Agenda, Nanos, SECOND};

/// CloudAnalyst looks at its sites every minute, and gives none more instances than this.
const TOOL_EVERY: Nanos = 60 * SECOND;
const TOOL_MOST: usize = 100;

impl Running<'_> {
    /// How often a site looks whether it has instances enough; None if it never does.
    pub(super) fn looks_every(&self, site: usize) -> Option<Nanos> {
        if self.tool {
            return (self.scenario.broker == Broker::Reconfiguring).then_some(TOOL_EVERY);
        }
        let rule = self.farms[site].setup.autoscaling?;
        Some(super::travel::from_ms(rule.every_s * 1e3))
    }

    /// A site looks whether it has instances enough.
    pub(super) fn looks(&mut self, site: usize, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        if let Some(every) = self.looks_every(site).filter(|every| now + every <= self.end) {
            agenda.after(every, Event::Looks(site as u16));
        }
        if self.tool {
            self.tool_looks(site, agenda);
        } else if let Some(rule) = self.farms[site].setup.autoscaling {
            self.scales(site, &rule, agenda);
        }
    }

    /// Orders so many instances that the utilisation would fall to the upper bound, or lets one go.
    fn scales(&mut self, site: usize, rule: &Autoscaling, agenda: &mut Agenda<Event>) {
        let now = agenda.now();
        let farm = &mut self.farms[site];
        let area = farm.busy_since_look(now);
        let serving = farm.balance.open();
        let utilisation = area / (rule.every_s * SECOND as f64) / serving.max(1) as f64;
        let have = serving as u32 + farm.ordered;
        // Rounded so that a hair above the bound does not order two.
        let wanted = (serving as f64 * utilisation / rule.up_at - 1e-9).ceil() as u32;
        if utilisation > rule.up_at && have < wanted.min(rule.most) {
            let more = wanted.min(rule.most) - have;
            farm.ordered += more;
            for _ in 0..more {
                agenda.after(super::travel::from_ms(rule.delay_s * 1e3), Event::Opens(site as u16));
            }
        } else if utilisation < rule.down_at && farm.ordered == 0 && serving as u32 > rule.least {
            for changed in self.farms[site].retires(now) {
                self.announces_anew(site, changed, agenda);
            }
        }
    }

    /// An ordered instance begins to serve.
    pub(super) fn opens(&mut self, site: usize, agenda: &mut Agenda<Event>) {
        let farm = &mut self.farms[site];
        farm.ordered -= 1;
        for changed in farm.opens(agenda.now()) {
            self.announces_anew(site, changed, agenda);
        }
        self.dequeues(site, agenda);
    }

    /// CloudAnalyst: one instance more whenever the last processing time is not the best so far.
    fn tool_looks(&mut self, site: usize, agenda: &mut Agenda<Event>) {
        let seen = &mut self.brokers.processing[site];
        let Some((last, _)) = seen.last else { return };
        if seen.best.is_none_or(|best| last <= best) {
            seen.best = Some(last);
        } else if self.farms[site].balance.open() <= TOOL_MOST {
            self.farms[site].ordered += 1;
            self.opens(site, agenda);
        }
    }
}
