//! The command line.
use crate::dirty::{self, DirtyConfig};
use crate::enter::{self, EnterConfig};
use crate::error::{os_error, Result};
use crate::line;
use crate::reserve::{self, GroupReservation};
use nephoscope_wire::arguments::Arguments;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

const HELP: &str = "\
nephoscope-lab: run programs in lab hosts, delay packets, reserve CPU time

  nephoscope-lab enter [--netns PATH [--sysfs]] [--cgroup DIR]... [--pid PID] [--root DIR]
                       [--hide-limits] [--die-with-parent] [--nice N] -- PROGRAM ARGS...
  nephoscope-lab line --config FILE
  nephoscope-lab reserve --cgroup DIR --slice NS --period NS
  nephoscope-lab dirty --listen ADDRESS:PORT [--working-set BYTES] [--filled BYTES]
  nephoscope-lab version

enter executes a program inside a lab host:
  --netns PATH       network namespace to join
  --sysfs            mount the /sys of that network in a new mount namespace
  --cgroup DIR       control group to join first; may be repeated, once for each hierarchy
  --pid PID          process whose namespaces to join (mount, pid, uts, ipc, net, cgroup)
  --root DIR         folder to make the root, after joining
  --hide-limits      hide the control groups from the program, like a hypervisor
  --die-with-parent  kill the program when the starting process ends
  --nice N           scheduling niceness, -20 to 19

line delays packets between TAP devices that it creates:
  --config FILE      ports and paths as JSON; - reads the first line of standard input, and
                     changes from the lines after it

reserve keeps every thread of a control group under SCHED_DEADLINE until SIGTERM; a program that
enters the group starts with its reservation:
  --cgroup DIR       control group
  --slice NS         CPU time of each thread in each period, in nanoseconds
  --period NS        period, in nanoseconds

dirty rewrites memory at the rate that datagrams set, and answers each with its counters:
  --listen ADDRESS:PORT  where datagrams arrive
  --working-set BYTES    memory that is rewritten
  --filled BYTES         memory that is filled once";

/// Runs the program with the arguments after its name; returns its exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<i32> {
    let mut arguments = Arguments::new("nephoscope-lab", arguments)?;
    match arguments.command() {
        "help" => print(HELP),
        "version" => print(concat!("nephoscope-lab ", env!("CARGO_PKG_VERSION"))),
        "enter" => enter::run(&parse_enter(&mut arguments)?),
        "line" => line::run(&parse_line(&mut arguments)?),
        "dirty" => dirty::run(&parse_dirty(&mut arguments)?),
        "reserve" => reserve::run(&parse_reserve(&mut arguments)?),
        _ => Err(arguments.unknown_command()),
    }
}

fn print(text: &str) -> Result<i32> {
    writeln!(std::io::stdout(), "{text}")
        .map(|()| 0)
        .map_err(|error| os_error("Writing to standard output", &error))
}

fn parse_enter(arguments: &mut Arguments) -> Result<EnterConfig> {
    let mut config = EnterConfig::default();
    loop {
        if let Some(program) = arguments.rest_after_dashes() {
            config.program = program;
            break;
        }
        let Some(option) = arguments.next_option()? else { break };
        match option.as_str() {
            "--netns" => config.netns = Some(arguments.path()?),
            "--sysfs" => config.sysfs = true,
            "--cgroup" => config.cgroups.push(arguments.path()?),
            "--pid" => config.pid = Some(arguments.number(1..=i64::from(i32::MAX))? as i32),
            "--root" => config.root = Some(arguments.path()?),
            "--hide-limits" => config.hide_limits = true,
            "--die-with-parent" => config.die_with_parent = true,
            "--nice" => config.nice = Some(arguments.number(-20..=19)? as i32),
            option => return Err(arguments.unknown_option(option)),
        }
    }
    if config.program.is_empty() {
        return Err(arguments.usage("enter needs -- and a program after its options."));
    }
    if config.sysfs && config.netns.is_none() {
        return Err(arguments.usage("--sysfs needs --netns."));
    }
    Ok(config)
}

fn parse_line(arguments: &mut Arguments) -> Result<PathBuf> {
    let mut config = None;
    while let Some(option) = arguments.next_option()? {
        match option.as_str() {
            "--config" => config = Some(arguments.path()?),
            option => return Err(arguments.unknown_option(option)),
        }
    }
    config
        .ok_or_else(|| arguments.usage("line needs --config and a file, or - for standard input."))
}

fn parse_dirty(arguments: &mut Arguments) -> Result<DirtyConfig> {
    let (mut listen, mut working_set_bytes, mut filled_bytes) = (None, 0, 0);
    while let Some(option) = arguments.next_option()? {
        match option.as_str() {
            "--listen" => listen = arguments.value()?.parse().ok(),
            "--working-set" => working_set_bytes = arguments.number(0..=i64::MAX)? as usize,
            "--filled" => filled_bytes = arguments.number(0..=i64::MAX)? as usize,
            option => return Err(arguments.unknown_option(option)),
        }
    }
    let listen = listen.ok_or_else(|| {
        arguments.usage("dirty needs --listen, an address and a port: 10.0.0.2:7000.")
    })?;
    Ok(DirtyConfig { listen, working_set_bytes, filled_bytes })
}

fn parse_reserve(arguments: &mut Arguments) -> Result<GroupReservation> {
    let mut config = GroupReservation::default();
    while let Some(option) = arguments.next_option()? {
        match option.as_str() {
            "--cgroup" => config.cgroup = arguments.path()?,
            "--slice" => config.slice_ns = arguments.number(1..=i64::MAX)?.cast_unsigned(),
            "--period" => config.period_ns = arguments.number(1..=i64::MAX)?.cast_unsigned(),
            option => return Err(arguments.unknown_option(option)),
        }
    }
    let is_complete =
        !config.cgroup.as_os_str().is_empty() && config.slice_ns > 0 && config.period_ns > 0;
    is_complete.then_some(config).ok_or_else(|| {
        arguments.usage("reserve needs --cgroup, --slice and --period, each with its value.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_program_after_dashes_keeps_its_own_options() {
        let line = ["enter", "--netns", "/n", "--cgroup", "/a", "--cgroup", "/b", "--nice", "-5"];
        let rest = ["--die-with-parent", "--", "ls", "--netns", "--"];
        let all = words(&[&line[..], &rest[..]].concat());
        let mut arguments = Arguments::new("nephoscope-lab", all).unwrap();
        let config = parse_enter(&mut arguments).expect("these arguments are valid");
        assert_eq!(config.netns, Some(PathBuf::from("/n")));
        assert_eq!(config.cgroups, [PathBuf::from("/a"), PathBuf::from("/b")]);
        assert_eq!(config.nice, Some(-5));
        assert!(
            config.die_with_parent && !config.hide_limits && !config.sysfs && config.pid.is_none()
        );
        assert_eq!(config.program, ["ls", "--netns", "--"]);
    }

    #[test]
    fn invalid_arguments_are_one_sentence_each() {
        for (line, sentence) in [
            (&["entre"][..], "'entre' is not a command"),
            (&["enter", "ls"], "'ls' is not an option of enter"),
            (&["enter", "--"], "enter needs -- and a program"),
            (&["enter", "--nice", "20", "--", "ls"], "from -20 to 19, not '20'"),
            (&["enter", "--pid", "0", "--", "ls"], "from 1 to"),
            (&["enter", "--netns"], "--netns needs a value"),
            (&["reserve", "--slice", "5"], "reserve needs --cgroup"),
            (&["line"], "line needs --config"),
            (&["dirty", "--listen", "here"], "dirty needs --listen"),
            (&["enter", "--sysfs", "--", "ls"], "--sysfs needs --netns"),
        ] {
            let error = run(words(line)).expect_err("these arguments are invalid");
            assert_eq!(error.kind.exit_code(), 2);
            assert!(error.message.contains(sentence), "{}", error.message);
            assert!(error.message.ends_with('.'));
        }
    }
}
