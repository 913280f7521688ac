//! Arguments: a few verbs and a handful of options, parsed by hand.
use super::error::SimError;
use serde_json::{Map, Value};
use std::time::Duration;

/// Text of `--help`.
pub const HELP: &str = "\
nephoscope-sim: simulates what nephoscope-probe measures, and speaks as it does

  nephoscope-sim describe
  nephoscope-sim scenarios
  nephoscope-sim run ID [--params JSON] [--seed N] [--machine JSON [--vm NAME]]
                        [--deadline SECONDS] [--with-parent] [--control]
  nephoscope-sim check ID [--params JSON] [--machine JSON]
  nephoscope-sim version

  --params JSON   parameters as one JSON object; `describe` lists them
  --seed N        chance of this trial (default 1): the same seed gives the same samples
  --machine JSON  the simulated machine on which cpu.gaps looks: a scheduler scenario
  --vm NAME       from which of its virtual machines, where there are several
  --deadline S    end, whatever happens, after S seconds (default 600)
  --with-parent   end when standard input closes
  --control       obey the lines on standard input; its end cancels

JSON may be @FILE, whose content it is then. `scenarios` prints the built-in ones.

Lines of --control:
  go [NANOSECONDS]   after {\"ready\": …} was printed: begin, now or when the wall clock shows that
                     many nanoseconds since the epoch
  stop               cancel";

/// One trial that was asked for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The benchmark.
    pub id: String,
    /// Its parameters, as given.
    pub params: Map<String, Value>,
    /// Chance of this trial.
    pub seed: u64,
    /// The simulated machine, where one was named.
    pub machine: Option<Value>,
    /// The virtual machine to look from, where one was named.
    pub vm: Option<String>,
    /// The program ends by then.
    pub deadline: Duration,
    /// The program ends when standard input closes.
    pub with_parent: bool,
    /// Standard input says when to begin and to end.
    pub control: bool,
    /// Nothing is simulated: what was given is checked.
    pub check: bool,
}

/// What was asked for.
#[derive(Debug)]
pub enum Command {
    /// Print the help text.
    Help,
    /// Print the version.
    Version,
    /// Print every spec.
    Describe,
    /// Print the built-in scenarios.
    Scenarios,
    /// Run one benchmark once, or check what it would be given.
    Run(Box<Wanted>),
}

/// Reads the arguments after the program's name.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, SimError> {
    let verb = args.next().unwrap_or_default();
    match verb.as_str() {
        "" | "help" | "--help" | "-h" => Ok(Command::Help),
        "version" | "--version" | "-V" => Ok(Command::Version),
        "describe" => Ok(Command::Describe),
        "scenarios" => Ok(Command::Scenarios),
        "run" | "check" => Ok(Command::Run(Box::new(parse_run(&verb, args)?))),
        "serve" => Err(usage("What is simulated has one side only; there is nothing to serve.")),
        other => Err(usage(format!("'{other}' is not a verb of the simulator."))),
    }
}

fn parse_run(verb: &str, mut args: impl Iterator<Item = String>) -> Result<Wanted, SimError> {
    let id = args.next().ok_or_else(|| usage(format!("{verb} needs the id of a benchmark.")))?;
    let mut wanted = Wanted {
        id,
        params: Map::new(),
        seed: 1,
        machine: None,
        vm: None,
        deadline: Duration::from_secs(600),
        with_parent: false,
        control: false,
        check: verb == "check",
    };
    while let Some(option) = args.next() {
        let mut value =
            || args.next().ok_or_else(|| usage(format!("{option} needs a value after it.")));
        match option.as_str() {
            "--with-parent" => wanted.with_parent = true,
            "--control" => wanted.control = true,
            "--params" => wanted.params = object("--params", &value()?)?,
            "--machine" => {
                wanted.machine = Some(Value::Object(object("--machine", &value()?)?));
            }
            "--vm" => wanted.vm = Some(value()?),
            "--seed" => wanted.seed = seed(&value()?)?,
            "--deadline" => wanted.deadline = deadline(&value()?)?,
            other => return Err(usage(format!("'{other}' is not an option of {verb}."))),
        }
    }
    Ok(wanted)
}

fn object(option: &str, text: &str) -> Result<Map<String, Value>, SimError> {
    let read = match text.strip_prefix('@') {
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| usage(format!("{option}: {path} cannot be read: {error}.")))?,
        None => text.to_owned(),
    };
    match serde_json::from_str(&read) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(usage(format!("{option} must be a JSON object, such as {{\"seed\": 7}}."))),
        Err(error) => Err(usage(format!("{option} is not JSON: {error}."))),
    }
}

fn seed(text: &str) -> Result<u64, SimError> {
    text.parse().map_err(|_| usage(format!("--seed takes a whole number, not '{text}'.")))
}

fn deadline(text: &str) -> Result<Duration, SimError> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.001..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| usage(format!("--deadline takes 0.001 to 86400 seconds, not '{text}'.")))
}

fn usage(message: impl Into<String>) -> SimError {
    SimError::usage(message, "Run `nephoscope-sim help`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Command, SimError> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_run_takes_params_seed_and_limits() {
        let command = words(r#"run null --params {"samples":3} --seed 9 --deadline 2.5 --control"#);
        let Ok(Command::Run(wanted)) = command else { panic!("{command:?}") };
        assert_eq!((wanted.id.as_str(), wanted.seed), ("null", 9));
        assert_eq!(wanted.params["samples"], 3);
        assert_eq!(wanted.deadline, Duration::from_millis(2500));
        assert!(wanted.control && !wanted.with_parent);
    }

    #[test]
    fn nonsense_is_usage() {
        for line in [
            "walk",
            "run",
            "serve null",
            "run null --params",
            "run null --params [1]",
            "run null --params {",
            "run null --params @/nowhere/at/all",
            "run null --machine 3",
            "run null --seed -1",
            "run null --seed 1.5",
            "run null --deadline -1",
            "run null --deadline NaN",
            "run null --gap-meter",
            "check",
        ] {
            assert_eq!(
                words(line).expect_err(line).kind,
                super::super::error::Kind::Usage,
                "{line}"
            );
        }
    }
}
