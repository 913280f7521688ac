//! Arguments: a handful of verbs, parsed by hand. Program arguments are passed on as bytes.
use crate::enter::Wanted;
use crate::error::LabError;
use crate::reserve;
use std::ffi::OsString;
use std::path::PathBuf;

/// Text of `help`.
pub const HELP: &str = "\
nephoscope-lab: the mechanisms of a lab

  nephoscope-lab enter [--netns PATH [--sysfs]] [--cgroup DIR]... [--pid PID] [--root DIR]
                       [--hide-limits] [--die-with-parent] [--nice N] -- PROGRAM ARGS...
  nephoscope-lab line --config FILE
  nephoscope-lab reserve --cgroup DIR --slice NS --period NS
  nephoscope-lab version

enter becomes a program inside a lab host:
  --netns PATH       join this network namespace
  --sysfs            show the /sys of that network, in a mount namespace of its own
  --cgroup DIR       join this control group first; may be given for each hierarchy
  --pid PID          join the namespaces of this process (mount, pid, uts, ipc, net, cgroup)
  --root DIR         make this folder the root, after joining
  --hide-limits      hide the control groups from the program, as a hypervisor hides its own
  --die-with-parent  be killed when the starting process ends
  --nice N           scheduling niceness, -20 to 19

line delays packets between TAP devices that it makes:
  --config FILE      ports and paths as JSON; - reads the first line of standard input, and the
                     next lines as orders

reserve keeps every thread of a control group under SCHED_DEADLINE until SIGTERM; a program that
enters the group starts with its reservation:
  --cgroup DIR       the group
  --slice NS         CPU time that each thread is given in each period, ns
  --period NS        length of the period, ns";

/// What was asked for.
#[derive(Debug)]
pub enum Command {
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
    /// Run a program inside a lab host.
    Enter(Wanted),
    /// Delay packets as this file says.
    Line(PathBuf),
    /// Keep a group's threads under a reservation.
    Reserve(reserve::Wanted),
}

/// Reads the arguments after the program's name.
pub fn parse(args: impl Iterator<Item = OsString>) -> Result<Command, LabError> {
    let mut words = Words(args.collect::<Vec<_>>().into_iter());
    let verb = words.next_text()?.unwrap_or_default();
    match verb.as_str() {
        "" | "help" | "--help" | "-h" => Ok(Command::Help),
        "version" | "--version" | "-V" => Ok(Command::Version),
        "enter" => parse_enter(words).map(Command::Enter),
        "line" => parse_line(words).map(Command::Line),
        "reserve" => parse_reserve(words).map(Command::Reserve),
        other => Err(LabError::usage(format!("'{other}' is not a verb of the lab program."))),
    }
}

fn parse_enter(mut words: Words) -> Result<Wanted, LabError> {
    let mut wanted = Wanted::default();
    while let Some(option) = words.next_text()? {
        match option.as_str() {
            "--netns" => wanted.netns = Some(words.path(&option)?),
            "--sysfs" => wanted.sysfs = true,
            "--cgroup" => wanted.cgroups.push(words.path(&option)?),
            "--pid" => wanted.pid = Some(words.number(&option, 1, i64::from(i32::MAX))? as i32),
            "--root" => wanted.root = Some(words.path(&option)?),
            "--hide-limits" => wanted.hide_limits = true,
            "--die-with-parent" => wanted.die_with_parent = true,
            "--nice" => wanted.nice = Some(words.number(&option, -20, 19)? as i32),
            "--" => {
                wanted.program = words.0.collect();
                break;
            }
            other => return Err(LabError::usage(format!("'{other}' is not an option of enter."))),
        }
    }
    if wanted.program.is_empty() {
        return Err(LabError::usage("enter needs -- and a program after its options."));
    }
    if wanted.sysfs && wanted.netns.is_none() {
        return Err(LabError::usage("--sysfs goes with --netns only."));
    }
    Ok(wanted)
}

fn parse_line(mut words: Words) -> Result<PathBuf, LabError> {
    let mut config = None;
    while let Some(option) = words.next_text()? {
        match option.as_str() {
            "--config" => config = Some(words.path(&option)?),
            other => return Err(LabError::usage(format!("'{other}' is not an option of line."))),
        }
    }
    config
        .ok_or_else(|| LabError::usage("line needs --config and a file, or - for standard input."))
}

fn parse_reserve(mut words: Words) -> Result<reserve::Wanted, LabError> {
    let mut wanted = reserve::Wanted::default();
    while let Some(option) = words.next_text()? {
        match option.as_str() {
            "--cgroup" => wanted.cgroup = words.path(&option)?,
            "--slice" => wanted.slice_ns = words.number(&option, 1, i64::MAX)?.cast_unsigned(),
            "--period" => wanted.period_ns = words.number(&option, 1, i64::MAX)?.cast_unsigned(),
            other => {
                return Err(LabError::usage(format!("'{other}' is not an option of reserve.")))
            }
        }
    }
    let given =
        !wanted.cgroup.as_os_str().is_empty() && wanted.slice_ns > 0 && wanted.period_ns > 0;
    given.then_some(wanted).ok_or_else(|| {
        LabError::usage("reserve needs --cgroup, --slice and --period, each with its value.")
    })
}

/// The words that are left.
struct Words(std::vec::IntoIter<OsString>);

impl Words {
    fn next_text(&mut self) -> Result<Option<String>, LabError> {
        let text = |word: OsString| {
            word.into_string()
                .map_err(|word| LabError::usage(format!("{} is no text.", word.display())))
        };
        self.0.next().map(text).transpose()
    }

    fn path(&mut self, option: &str) -> Result<PathBuf, LabError> {
        let missing = || LabError::usage(format!("{option} needs a value after it."));
        self.0.next().filter(|word| !word.is_empty()).map(PathBuf::from).ok_or_else(missing)
    }

    fn number(&mut self, option: &str, low: i64, high: i64) -> Result<i64, LabError> {
        let text = self
            .next_text()?
            .ok_or_else(|| LabError::usage(format!("{option} needs a value after it.")))?;
        text.parse().ok().filter(|number| (low..=high).contains(number)).ok_or_else(|| {
            LabError::usage(format!(
                "{option} needs a whole number from {low} to {high}, not '{text}'."
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Command, LabError> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn options_end_at_the_dashes_and_the_program_keeps_its_own() {
        let line = ["enter", "--netns", "/n", "--cgroup", "/a", "--cgroup", "/b", "--nice", "-5"];
        let rest = ["--die-with-parent", "--", "ls", "--netns", "--"];
        let Ok(Command::Enter(wanted)) = parsed(&[&line[..], &rest[..]].concat()) else {
            panic!("these words are right");
        };
        assert_eq!(wanted.netns, Some(PathBuf::from("/n")));
        assert_eq!(wanted.cgroups, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(wanted.nice, Some(-5));
        assert!(
            wanted.die_with_parent && !wanted.hide_limits && !wanted.sysfs && wanted.pid.is_none()
        );
        assert_eq!(wanted.program, ["ls", "--netns", "--"]);
    }

    #[test]
    fn wrong_words_are_one_sentence_each() {
        for (words, said) in [
            (&["entre"][..], "'entre' is not a verb"),
            (&["enter", "ls"], "'ls' is not an option of enter"),
            (&["enter", "--"], "enter needs -- and a program"),
            (&["enter", "--nice", "20", "--", "ls"], "from -20 to 19, not '20'"),
            (&["enter", "--pid", "0", "--", "ls"], "from 1 to"),
            (&["enter", "--netns"], "--netns needs a value"),
            (&["reserve", "--slice", "5"], "reserve needs --cgroup"),
            (&["line"], "line needs --config"),
            (&["enter", "--sysfs", "--", "ls"], "--sysfs goes with --netns"),
        ] {
            let error = parsed(words).expect_err("these words are wrong");
            assert_eq!(error.code, 2);
            assert!(error.message.contains(said), "{}", error.message);
            assert!(error.message.ends_with('.'));
        }
    }
}
