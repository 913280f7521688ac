//! Number of active users by time of day.
use super::scenario::{UserBase, Users, Zone};
use crate::error::{positive, refuse, Result};
use crate::{Nanos, SECOND};

/// Nanoseconds in an hour.
pub const HOUR: Nanos = 3600 * SECOND;
/// Nanoseconds in a day.
pub const DAY: Nanos = 24 * HOUR;

impl Zone {
    /// Returns the hours ahead of UTC; None for a text that is no offset.
    pub fn hours(&self) -> Option<f64> {
        let hours = match self {
            Self::Hours(hours) => *hours,
            Self::Text(text) => parse_offset(text)?,
        };
        (-14.0..=14.0).contains(&hours).then_some(hours)
    }
}

fn parse_offset(text: &str) -> Option<f64> {
    let text = text.trim();
    let rest = text.strip_prefix("UTC").or_else(|| text.strip_prefix("GMT")).unwrap_or(text);
    if rest.is_empty() {
        return (!text.is_empty()).then_some(0.0);
    }
    let (sign, rest) = match rest.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, rest.strip_prefix('+')?),
    };
    let (hours, minutes) = rest.split_once(':').unwrap_or((rest, "0"));
    let (hours, minutes): (u8, u8) = (hours.parse().ok()?, minutes.parse().ok()?);
    (minutes < 60).then(|| sign * (f64::from(hours) + f64::from(minutes) / 60.0))
}

/// Number of users by time of the UTC day: constant from each start to the next.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Start within the day and number of users; the first start is 0.
    steps: Vec<(Nanos, f64)>,
}

/// Converts an hour of local time to nanoseconds of the UTC day.
fn utc_time(local_hour: f64, zone_h: f64) -> Nanos {
    ((local_hour - zone_h).rem_euclid(24.0) * HOUR as f64).round() as Nanos % DAY
}

impl Profile {
    /// Returns the profile of the user base of that name.
    pub fn new(name: &str, base: &UserBase) -> Result<Self> {
        let key = format!("user_bases.{name}");
        let Some(zone_h) = base.zone.hours() else {
            let zone = match &base.zone {
                Zone::Hours(hours) => hours.to_string(),
                Zone::Text(text) => format!("`{text}`"),
            };
            return refuse(
                format!("{key}.zone is {zone}, which is no offset from UTC."),
                "Give hours ahead of UTC from -14 to 14, such as -6, or a text such as UTC+5:30.",
            );
        };
        let growth = positive(&format!("{key}.growth"), base.growth)?;
        let hours = match &base.users {
            Users { by_hour: Some(hours), peak: None, off_peak: None, peak_hours: None } => {
                if hours.len() != 24 {
                    return refuse(
                        format!("{key}.users.by_hour has {} values.", hours.len()),
                        "Give 24, one for each local hour from 0 to 23.",
                    );
                }
                hours.iter().enumerate().map(|(hour, users)| (hour as f64, *users)).collect()
            }
            Users { by_hour: None, peak: Some(peak), off_peak: Some(off), peak_hours } => {
                peak_steps(&key, *peak, *off, *peak_hours)?
            }
            _ => {
                return refuse(
                    format!("{key}.users has neither peak and off_peak nor by_hour alone."),
                    "Give peak, off_peak and peak_hours, or by_hour with 24 values.",
                )
            }
        };
        if let Some((_, users)) = hours.iter().find(|step| !(step.1.is_finite() && step.1 >= 0.0)) {
            let what = format!("{key}.users: {users} is no number of users.");
            return refuse(what, "Give a number from zero on.");
        }
        if hours.iter().all(|step| step.1 == 0.0) {
            return refuse(
                format!("{key} has no users at any hour."),
                "Give it users, or remove it.",
            );
        }
        let step = |(hour, users): &(f64, f64)| (utc_time(*hour, zone_h), users * growth);
        let mut steps: Vec<_> = hours.iter().map(step).collect();
        steps.sort_by_key(|step| step.0);
        if steps[0].0 > 0 {
            steps.insert(0, (0, steps[steps.len() - 1].1));
        }
        Ok(Self { steps })
    }

    /// Returns the number of users at a time of the UTC day, and for how long it is constant.
    pub fn at(&self, time: Nanos) -> (f64, Nanos) {
        let time = time % DAY;
        let next = self.steps.partition_point(|step| step.0 <= time);
        let until = self.steps.get(next).map_or(DAY, |step| step.0);
        (self.steps[next - 1].1, until - time)
    }

    /// Returns the times of the day at which the number changes.
    pub fn starts(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.steps.iter().map(|step| step.0)
    }

    /// Returns the mean number of users over the day.
    pub fn mean(&self) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([DAY]);
        let area: f64 =
            self.steps.iter().zip(ends).map(|(step, end)| step.1 * (end - step.0) as f64).sum();
        area / DAY as f64
    }
}

fn peak_steps(
    key: &str,
    peak: f64,
    off_peak: f64,
    hours: Option<[f64; 2]>,
) -> Result<Vec<(f64, f64)>> {
    let Some([from, to]) = hours else {
        if peak == off_peak {
            return Ok(vec![(0.0, peak)]);
        }
        let what = format!("{key}.users has a peak but no peak_hours.");
        return refuse(what, "Give peak_hours, such as [20, 22], in local time.");
    };
    let is_hour = |hour: f64| (0.0..=24.0).contains(&hour);
    if !is_hour(from) || !is_hour(to) || from.rem_euclid(24.0) == to.rem_euclid(24.0) {
        return refuse(
            format!("{key}.users.peak_hours [{from}, {to}] are not two hours of a day."),
            "Give the first and the last local hour, such as [20, 22]; [22, 2] extends over midnight.",
        );
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
        Profile::new("x", base).unwrap().at((utc_hour * HOUR as f64) as Nanos).0
    }

    #[test]
    fn peak_hours_are_local() {
        // 20 to 22 o'clock six hours behind UTC is 2 to 4 UTC, not 14 to 16.
        let base = base(r#"{"zone":-6,"users":{"peak":10,"off_peak":1,"peak_hours":[20,22]}}"#);
        let seen: Vec<f64> = [1.9, 2.0, 3.9, 4.0, 15.0].map(|hour| users(&base, hour)).to_vec();
        assert_eq!(seen, [1.0, 10.0, 10.0, 1.0, 1.0]);
    }

    #[test]
    fn peak_hours_may_extend_over_midnight() {
        let base = base(r#"{"users":{"peak":10,"off_peak":1,"peak_hours":[22,2]},"growth":2}"#);
        let seen: Vec<f64> = [21.9, 22.0, 23.9, 0.0, 1.9, 2.0].map(|h| users(&base, h)).to_vec();
        assert_eq!(seen, [2.0, 20.0, 20.0, 20.0, 20.0, 2.0]);
        let mean = Profile::new("x", &base).unwrap().mean();
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
    fn invalid_profiles_are_refused_with_their_key() {
        for (text, message) in [
            (r#"{"users":{}}"#, "neither"),
            (r#"{"users":{"peak":1,"off_peak":2}}"#, "no peak_hours"),
            (r#"{"users":{"peak":0,"off_peak":0,"peak_hours":[1,2]}}"#, "no users"),
            (r#"{"users":{"peak":-1,"off_peak":0,"peak_hours":[1,2]}}"#, "no number of users"),
            (r#"{"users":{"peak":1,"off_peak":0,"peak_hours":[2,26]}}"#, "not two hours"),
            (r#"{"users":{"by_hour":[1,2]}}"#, "2 values"),
            (r#"{"zone":"Mars/Olympus","users":{"by_hour":[]}}"#, "Mars/Olympus"),
            (r#"{"growth":0,"users":{"by_hour":[]}}"#, "growth"),
        ] {
            let refused = Profile::new("east", &base(text)).unwrap_err();
            assert!(
                refused.message.contains("user_bases.east") && refused.message.contains(message),
                "{refused}"
            );
        }
    }
}
