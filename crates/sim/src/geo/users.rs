//! How many users are at work at which moment of the day.
use super::scenario::{UserBase, Users, Zone};
use crate::error::Refused;
use crate::{Nanos, SECOND};

/// Nanoseconds in an hour.
pub const HOUR: Nanos = 3600 * SECOND;
/// Nanoseconds in a day.
pub const DAY: Nanos = 24 * HOUR;

impl Zone {
    /// Hours ahead of UTC; None of a text that says no offset.
    pub fn hours(&self) -> Option<f64> {
        let hours = match self {
            Self::Hours(hours) => *hours,
            Self::Text(text) => offset(text)?,
        };
        (-14.0..=14.0).contains(&hours).then_some(hours)
    }
}

fn offset(text: &str) -> Option<f64> {
    let rest = text.trim();
    let rest = rest.strip_prefix("UTC").or_else(|| rest.strip_prefix("GMT")).unwrap_or(rest);
    if rest.is_empty() {
        return (!text.trim().is_empty()).then_some(0.0);
    }
    let (sign, rest) = match rest.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, rest.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60).then(|| sign * (f64::from(hours) + f64::from(minutes) / 60.0))
}

/// Users by moment of the UTC day: constant from each start to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// From when in the day, and how many. The first start is 0.
    steps: Vec<(Nanos, f64)>,
}

/// Hours of the day as nanoseconds of the UTC day.
fn in_day(local_hour: f64, zone_h: f64) -> Nanos {
    ((local_hour - zone_h).rem_euclid(24.0) * HOUR as f64).round() as Nanos % DAY
}

impl Profile {
    /// The profile of a user base. Refused: neither or both ways to give users, an unknown zone,
    /// hours that are none, users below zero or none at all.
    pub fn of(name: &str, base: &UserBase) -> Result<Self, Refused> {
        let zone_h = base.zone.hours().ok_or_else(|| {
            let given = match &base.zone {
                Zone::Hours(hours) => hours.to_string(),
                Zone::Text(text) => format!("`{text}`"),
            };
            Refused::new(
                format!("User base `{name}`: the zone {given} is no offset from UTC."),
                "Give hours ahead of UTC from -14 to 14, such as -6, or a text such as UTC+5:30.",
            )
        })?;
        let growth = base.growth;
        if !(growth.is_finite() && growth > 0.0) {
            return Err(Refused::new(
                format!("User base `{name}`: growth is {growth}, which is no number above zero."),
                "Give the factor that the users are multiplied by, such as 1.5.",
            ));
        }
        let hours = match &base.users {
            Users { by_hour: Some(hours), peak: None, off_peak: None, peak_hours: None } => {
                by_hour(name, hours)?
            }
            Users { by_hour: None, peak: Some(peak), off_peak: Some(off), peak_hours } => {
                peaks(name, *peak, *off, *peak_hours)?
            }
            _ => {
                return Err(Refused::new(
                    format!("User base `{name}`: users are given neither by peak and off_peak nor by_hour alone."),
                    "Give peak, off_peak and peak_hours, or by_hour with 24 values.",
                ))
            }
        };
        Self::from_hours(name, &hours, zone_h, growth)
    }

    /// From starts in local hours with their users.
    fn from_hours(
        name: &str,
        hours: &[(f64, f64)],
        zone_h: f64,
        growth: f64,
    ) -> Result<Self, Refused> {
        let wrong = hours.iter().find(|step| !(step.1.is_finite() && step.1 >= 0.0));
        if let Some((_, users)) = wrong {
            return Err(Refused::new(
                format!("User base `{name}`: {users} is no number of users."),
                "Give a number from zero on.",
            ));
        }
        if hours.iter().all(|step| step.1 == 0.0) {
            return Err(Refused::new(
                format!("User base `{name}` has no users at any hour."),
                "Give it users, or leave it out.",
            ));
        }
        let mut steps: Vec<_> =
            hours.iter().map(|(hour, users)| (in_day(*hour, zone_h), users * growth)).collect();
        steps.sort_by_key(|step| step.0);
        if steps[0].0 > 0 {
            steps.insert(0, (0, steps[steps.len() - 1].1));
        }
        Ok(Self { steps })
    }

    /// Users at a moment of the UTC day, and how long that number holds.
    pub fn at(&self, moment: Nanos) -> (f64, Nanos) {
        let moment = moment % DAY;
        let next = self.steps.partition_point(|step| step.0 <= moment);
        let until = self.steps.get(next).map_or(DAY, |step| step.0);
        (self.steps[next - 1].1, until - moment)
    }

    /// Moments of the day at which the number changes.
    pub fn starts(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.steps.iter().map(|step| step.0)
    }

    /// Users, averaged over the day.
    pub fn mean(&self) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([DAY]);
        let area: f64 =
            self.steps.iter().zip(ends).map(|(step, end)| step.1 * (end - step.0) as f64).sum();
        area / DAY as f64
    }
}

fn by_hour(name: &str, hours: &[f64]) -> Result<Vec<(f64, f64)>, Refused> {
    if hours.len() == 24 {
        return Ok(hours.iter().enumerate().map(|(hour, users)| (hour as f64, *users)).collect());
    }
    Err(Refused::new(
        format!("User base `{name}`: by_hour has {} values.", hours.len()),
        "Give 24, one for each local hour from 0 to 23.",
    ))
}

fn peaks(
    name: &str,
    peak: f64,
    off_peak: f64,
    window: Option<[f64; 2]>,
) -> Result<Vec<(f64, f64)>, Refused> {
    let Some([from, to]) = window else {
        if peak == off_peak {
            return Ok(vec![(0.0, peak)]);
        }
        return Err(Refused::new(
            format!("User base `{name}` has a peak but no peak_hours."),
            "Give peak_hours, such as [20, 22], in local time.",
        ));
    };
    let of_day = |hour: f64| (0.0..=24.0).contains(&hour);
    if !of_day(from) || !of_day(to) || from.rem_euclid(24.0) == to.rem_euclid(24.0) {
        return Err(Refused::new(
            format!("User base `{name}`: peak_hours [{from}, {to}] are no two hours of a day."),
            "Give the first and the last local hour, such as [20, 22]; [22, 2] lies across midnight.",
        ));
    }
    Ok(vec![(from, peak), (to, off_peak)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(text: &str) -> UserBase {
        serde_json::from_str(text).unwrap()
    }

    fn users(base: &UserBase, utc_hour: f64) -> f64 {
        Profile::of("x", base).unwrap().at((utc_hour * HOUR as f64) as Nanos).0
    }

    #[test]
    fn peak_hours_are_local() {
        // 20 to 22 o'clock six hours behind UTC is 2 to 4 UTC, not 14 to 16.
        let base = base(r#"{"zone":-6,"users":{"peak":10,"off_peak":1,"peak_hours":[20,22]}}"#);
        let seen: Vec<f64> = [1.9, 2.0, 3.9, 4.0, 15.0].map(|hour| users(&base, hour)).to_vec();
        assert_eq!(seen, [1.0, 10.0, 10.0, 1.0, 1.0]);
    }

    #[test]
    fn a_window_may_lie_across_midnight() {
        let base = base(r#"{"users":{"peak":10,"off_peak":1,"peak_hours":[22,2]},"growth":2}"#);
        let seen: Vec<f64> = [21.9, 22.0, 23.9, 0.0, 1.9, 2.0].map(|h| users(&base, h)).to_vec();
        assert_eq!(seen, [2.0, 20.0, 20.0, 20.0, 20.0, 2.0]);
        let mean = Profile::of("x", &base).unwrap().mean();
        assert!((mean - (4.0 * 20.0 + 20.0 * 2.0) / 24.0).abs() < 1e-12);
    }

    #[test]
    fn zones_may_be_half_hours() {
        let hours: Vec<String> = (0..24).map(|hour| hour.to_string()).collect();
        let text = format!(r#"{{"zone":"UTC+5:30","users":{{"by_hour":[{}]}}}}"#, hours.join(","));
        let base = base(&text);
        assert_eq!((users(&base, 0.0), users(&base, 0.4), users(&base, 0.5)), (5.0, 5.0, 6.0));
        for (text, hours) in [("UTC", Some(0.0)), ("-3", Some(-3.0)), ("UTC-3:30", Some(-3.5))] {
            assert_eq!(Zone::Text(text.into()).hours(), hours);
        }
        for text in ["Europe/Berlin", "", "UTC+99", "UTC+1:75", "5"] {
            assert_eq!(Zone::Text(text.into()).hours(), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_profile_is_refused_with_its_name() {
        for (text, says) in [
            (r#"{"users":{}}"#, "neither"),
            (r#"{"users":{"peak":1,"off_peak":2}}"#, "no peak_hours"),
            (r#"{"users":{"peak":0,"off_peak":0,"peak_hours":[1,2]}}"#, "no users"),
            (r#"{"users":{"peak":-1,"off_peak":0,"peak_hours":[1,2]}}"#, "no number of users"),
            (r#"{"users":{"peak":1,"off_peak":0,"peak_hours":[2,26]}}"#, "no two hours"),
            (r#"{"users":{"by_hour":[1,2]}}"#, "2 values"),
            (r#"{"zone":"Mars/Olympus","users":{"by_hour":[]}}"#, "Mars/Olympus"),
            (r#"{"growth":0,"users":{"by_hour":[]}}"#, "growth"),
        ] {
            let refused = Profile::of("east", &base(text)).unwrap_err();
            assert!(refused.what.contains("`east`") && refused.what.contains(says), "{refused}");
        }
    }
}
