//! Arguments: a few verbs and a handful of options, parsed by hand.
use crate::control;
use crate::error::ProbeError;
use serde_json::{Map, Value};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// Text of `--help`.
pub const HELP: &str = "\
nephoscope-probe: measures the machine it runs on

  nephoscope-probe describe
  nephoscope-probe run ID [--params JSON] [--deadline SECONDS] [--with-parent] [--control]
                          [--gap-meter]
  nephoscope-probe serve ID (--control | --token-file FILE) [--bind ADDRESS] [--params JSON]
                            [--deadline SECONDS] [--with-parent]
  nephoscope-probe wrap --job JSON [--deadline SECONDS] [--with-parent] [--control] [--gap-meter]
  nephoscope-probe version

  --params JSON      parameters as one JSON object; `describe` lists them
  --job JSON         a program to run as a trial: {\"program\": NAME, \"arguments\": [TEXT…]}, and
                     if wanted \"input\" (text for its standard input), \"directory\" (where its
                     scratch folder goes) and \"needs_bytes\"; `{scratch}` in arguments and input
                     becomes the path of that folder, which is removed at the end
  --deadline S       end, whatever happens, after S seconds (default 600)
  --with-parent      end when the parent process ends or standard input closes
  --token-file FILE  serve only peers that present this token (- reads standard input's first line)
  --bind ADDRESS     listen on this address of the machine (default: loopback only)
  --control          obey the lines on standard input; its end cancels
  --gap-meter        with `run`: keep the scheduling gaps of a CPU that the benchmark leaves free

Lines of --control:
  peer {\"address\": IP, \"port\": N, \"token\": TEXT}
                     to `run` of a two-sided benchmark, first: where the far side is
  token TEXT         to `serve`, first: serve only the peer that presents this
  go [NANOSECONDS]   to `run`, after it has printed {\"ready\": …}: start measuring, now or when the
                     wall clock shows that many nanoseconds since the epoch
  stop               end a load or a server in order, with its samples; cancel anything else";

/// Bounds of a trial's life.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The program ends by then.
    pub deadline: Duration,
    /// The program ends with its parent.
    pub with_parent: bool,
    /// Standard input says when to start and to end.
    pub control: bool,
    /// A gap meter runs on a CPU that the benchmark leaves free.
    pub gap_meter: bool,
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
    /// Run one benchmark once.
    Run { id: String, params: Map<String, Value>, limits: Limits },
    /// Run a program of somebody else's once.
    Wrap { job: String, limits: Limits },
    /// Serve the far side of a two-sided benchmark; without a token it comes over the control channel.
    Serve {
        id: String,
        params: Map<String, Value>,
        limits: Limits,
        token: Option<String>,
        bind: IpAddr,
    },
}

/// Reads the arguments after the program's name.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Command, ProbeError> {
    let verb = args.next().unwrap_or_default();
    match verb.as_str() {
        "" | "help" | "--help" | "-h" => Ok(Command::Help),
        "version" | "--version" | "-V" => Ok(Command::Version),
        "describe" => Ok(Command::Describe),
        "run" | "serve" => parse_trial(&verb, args),
        "wrap" => parse_wrap(args),
        other => Err(usage(format!("'{other}' is not a verb of the probe."))),
    }
}

/// Nothing but the time bounds a trial that says nothing.
const LIMITS: Limits = Limits {
    deadline: Duration::from_secs(600),
    with_parent: false,
    control: false,
    gap_meter: false,
};

/// Whether `option` is a switch of the limits; then it is set.
fn switched(limits: &mut Limits, option: &str, gap_meter: bool) -> bool {
    match option {
        "--with-parent" => limits.with_parent = true,
        "--control" => limits.control = true,
        "--gap-meter" if gap_meter => limits.gap_meter = true,
        _ => return false,
    }
    true
}

fn parse_wrap(mut args: impl Iterator<Item = String>) -> Result<Command, ProbeError> {
    let (mut limits, mut job) = (LIMITS, None);
    while let Some(option) = args.next() {
        if switched(&mut limits, &option, true) {
            continue;
        }
        let mut value =
            || args.next().ok_or_else(|| usage(format!("{option} needs a value after it.")));
        match option.as_str() {
            "--job" => job = Some(value()?),
            "--deadline" => limits.deadline = parse_deadline(&value()?)?,
            other => return Err(usage(format!("'{other}' is not an option of wrap."))),
        }
    }
    let job = job.ok_or_else(|| usage("wrap needs --job and what to run.".to_owned()))?;
    Ok(Command::Wrap { job, limits })
}

fn parse_trial(verb: &str, mut args: impl Iterator<Item = String>) -> Result<Command, ProbeError> {
    let id = args.next().ok_or_else(|| usage(format!("{verb} needs the id of a benchmark.")))?;
    let mut params = Map::new();
    let mut limits = LIMITS;
    let mut token = None;
    let mut bind = IpAddr::V4(Ipv4Addr::LOCALHOST);
    while let Some(option) = args.next() {
        if switched(&mut limits, &option, verb == "run") {
            continue;
        }
        let mut value =
            || args.next().ok_or_else(|| usage(format!("{option} needs a value after it.")));
        match option.as_str() {
            "--params" => params = parse_params(&value()?)?,
            "--deadline" => limits.deadline = parse_deadline(&value()?)?,
            "--token-file" if verb == "serve" => token = Some(read_token(&value()?)?),
            "--bind" if verb == "serve" => bind = parse_address(&value()?)?,
            other => return Err(usage(format!("'{other}' is not an option of {verb}."))),
        }
    }
    if verb == "run" {
        return Ok(Command::Run { id, params, limits });
    }
    if token.is_some() == limits.control {
        let message = "serve needs either --control or --token-file: it never serves strangers.";
        return Err(usage(message.into()));
    }
    Ok(Command::Serve { id, params, limits, token, bind })
}

fn parse_params(text: &str) -> Result<Map<String, Value>, ProbeError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(usage("--params must be a JSON object, such as {\"digits\": 1000}.".into())),
        Err(error) => Err(usage(format!("--params is not JSON: {error}."))),
    }
}

fn parse_deadline(text: &str) -> Result<Duration, ProbeError> {
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.001..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| usage(format!("--deadline takes 0.001 to 86400 seconds, not '{text}'.")))
}

fn parse_address(text: &str) -> Result<IpAddr, ProbeError> {
    text.parse().map_err(|_| usage(format!("--bind takes an IP address, not '{text}'.")))
}

/// A token given as an argument would be seen by every user of the machine in the process list.
fn read_token(path: &str) -> Result<String, ProbeError> {
    let mut text = String::new();
    let read = if path == "-" {
        std::io::stdin().read_line(&mut text).map(|_| ())
    } else {
        std::fs::read_to_string(path).map(|content| text = content)
    };
    read.map_err(|error| usage(format!("The token cannot be read from '{path}': {error}.")))?;
    control::check_token(text.lines().next().unwrap_or_default())
}

fn usage(message: String) -> ProbeError {
    ProbeError::usage(message, "Run `nephoscope-probe help`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Result<Command, ProbeError> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_run_takes_params_and_limits() {
        let command = words(r#"run null --params {"samples":3} --deadline 2.5 --with-parent"#);
        let Ok(Command::Run { id, params, limits }) = command else { panic!("{command:?}") };
        assert_eq!(id, "null");
        assert_eq!(params["samples"], 3);
        assert_eq!(limits.deadline, Duration::from_millis(2500));
        assert!(limits.with_parent && !limits.control);
    }

    #[test]
    fn a_server_listens_on_loopback_unless_told_otherwise() {
        for (line, wanted) in [("", "127.0.0.1"), (" --bind 10.0.0.2", "10.0.0.2")] {
            let command = words(&format!("serve null --control{line}"));
            let Ok(Command::Serve { bind, token, limits, .. }) = command else {
                panic!("{command:?}")
            };
            assert_eq!(bind.to_string(), wanted);
            assert!(token.is_none() && limits.control);
        }
    }

    #[test]
    fn a_program_to_wrap_takes_a_job_and_limits() {
        let command = words(r#"wrap --job {"program":"true"} --control --gap-meter"#);
        let Ok(Command::Wrap { job, limits }) = command else { panic!("{command:?}") };
        assert_eq!(job, r#"{"program":"true"}"#);
        assert!(limits.control && limits.gap_meter && !limits.with_parent);
    }

    #[test]
    fn nonsense_is_usage() {
        for line in [
            "wrap",
            "wrap --job",
            "wrap true",
            "wrap --job {} --params {}",
            "walk",
            "run",
            "run null --params",
            "run null --params [1]",
            "run null --params {",
            "run null --deadline -1",
            "run null --deadline NaN",
            "run null --loud",
            "run null --bind 127.0.0.1",
            "serve null",
            "serve null --control --bind localhost",
            "serve null --control --token-file /proc/self/cmdline",
        ] {
            let error = words(line).expect_err(line);
            assert_eq!(error.kind.exit_code(), 2, "{line}");
        }
    }
}
