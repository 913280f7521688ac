//! The command line of the probe.
use crate::error::Result;
use nephoscope_wire::arguments::{Arguments, Limits};
use nephoscope_wire::input::read_text;
use nephoscope_wire::lines::check_token;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::io::{BufRead, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

pub const HELP: &str = "\
nephoscope-probe: measures the machine it runs on

  nephoscope-probe describe
  nephoscope-probe run ID [--params JSON] [--gap-meter] [LIMITS]
  nephoscope-probe serve ID [--params JSON] [--bind ADDRESS] [LIMITS]
                   (--control | --token-file FILE)
  nephoscope-probe wrap --job JSON [--gap-meter] [LIMITS]
  nephoscope-probe wrap --job JSON --server [--bind ADDRESS] [LIMITS]
                   (--control | --token-file FILE)
  nephoscope-probe observe
  nephoscope-probe unattended --job FILE
  nephoscope-probe version

Commands:
  describe           Print every benchmark with its parameters and metrics as JSON.
  run                Run a benchmark once and print its samples as JSON lines.
  serve              Serve the far side of a two-sided benchmark for the peer with the token.
  wrap               Run a third-party program, or a third-party server, as a trial.
  observe            Probe a service for each JSON line on standard input, until its end.
  unattended         Run the trials of a job and put each batch to its pre-signed URL.

Options:
  --params JSON      Parameters as one JSON object, or @FILE to read them from.
  --job JSON         Program to run: {\"program\": NAME, \"arguments\": [TEXT…]}, and optionally
                     \"input\" (text for standard input), \"directory\" (parent of its scratch
                     folder) and \"needs_bytes\". Arguments and input may contain {scratch} (path of
                     the scratch folder, which is removed at the end), {peer_address} and
                     {peer_port} (far side, from the control line `peer`).
  --server           Run the program as a server until `stop`. Its job may also have \"port\"
                     (default: any free port), \"protocol\" (tcp or udp) and \"ready_text\" (output
                     to wait for); {address} and {port} are where it has to listen, {token} (only in
                     \"input\") is what its peer presents.
  --bind ADDRESS     Address of this machine to listen on [default: loopback].
  --token-file FILE  Serve only the peer that presents this token; - reads it from standard input.
  --gap-meter        Record scheduling gaps on a CPU that the benchmark leaves free.

Limits:
  --deadline S       End after S seconds at the latest [default: 600].
  --with-parent      End when the parent process ends or standard input closes.
  --control          Obey the lines on standard input, whose end cancels the trial.

Lines of --control:
  peer {\"address\": IP, \"port\": N, \"token\": TEXT}
                     Far side of a two-sided benchmark; first line to `run` and `wrap`.
  credentials JSON   {NAME: TEXT, …} that a storage service asks for; first line to
                     storage.transfer where `service` is not local.
  token TEXT         Token that the peer presents; first line to a server.
  go [NANOSECONDS]   Start measuring once {\"ready\": …} was printed, now or when the wall clock
                     shows that many nanoseconds since the epoch.
  stop               End a load or a server in order, with its samples; cancel anything else.";

#[derive(Debug)]
pub enum Command {
    Help,
    Version,
    Describe,
    Observe,
    /// Run the trials of the job in a file, without a controller.
    Unattended(PathBuf),
    Run {
        subject: Subject,
        limits: Limits,
        gap_meter: bool,
    },
    /// Serve the far side of a two-sided benchmark, or run a third-party server; without a token it
    /// comes over the control channel.
    Serve {
        subject: Subject,
        limits: Limits,
        token: Option<String>,
        bind: IpAddr,
    },
}

/// What a trial runs.
#[derive(Debug)]
pub enum Subject {
    Benchmark {
        id: String,
        params: Map<String, Value>,
    },
    /// A third-party program, as JSON.
    Job(String),
}

/// Reads the arguments after the program's name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command> {
    let mut arguments = Arguments::new("nephoscope-probe", arguments)?;
    match arguments.command() {
        "help" => Ok(Command::Help),
        "version" => Ok(Command::Version),
        "describe" => Ok(Command::Describe),
        "observe" => Ok(Command::Observe),
        "unattended" => parse_job(arguments),
        "run" => {
            let id = arguments.operand("the id of a benchmark")?;
            parse_trial(arguments, Some(id), false)
        }
        "serve" => {
            let id = arguments.operand("the id of a benchmark")?;
            parse_trial(arguments, Some(id), true)
        }
        "wrap" => parse_trial(arguments, None, false),
        _ => Err(arguments.unknown_command()),
    }
}

fn parse_job(mut arguments: Arguments) -> Result<Command> {
    let mut job = None;
    while let Some(option) = arguments.next_option()? {
        match option.as_str() {
            "--job" => job = Some(arguments.path()?),
            _ => return Err(arguments.unknown_option(&option)),
        }
    }
    let missing = || arguments.usage("unattended needs --job FILE.");
    job.map(Command::Unattended).ok_or_else(missing)
}

/// Reads the options of `run`, `serve` (`serves`) and, without an `id`, of `wrap`.
fn parse_trial(mut arguments: Arguments, id: Option<String>, mut serves: bool) -> Result<Command> {
    let (mut limits, mut gap_meter) = (Limits::default(), false);
    let (mut params, mut job) = (Map::new(), None);
    let (mut token, mut bind) = (None, None);
    while let Some(option) = arguments.next_option()? {
        match option.as_str() {
            "--params" if id.is_some() => params = arguments.object()?,
            "--job" if id.is_none() => job = Some(arguments.value()?),
            "--server" if id.is_none() => serves = true,
            "--gap-meter" if id.is_none() || !serves => gap_meter = true,
            "--token-file" if id.is_none() || serves => token = Some(read_token(&mut arguments)?),
            "--bind" if id.is_none() || serves => bind = Some(parse_address(&mut arguments)?),
            _ if limits.accept(&option, &mut arguments)? => {}
            _ => return Err(arguments.unknown_option(&option)),
        }
    }
    let subject = match (id, job) {
        (Some(id), _) => Subject::Benchmark { id, params },
        (None, Some(job)) => Subject::Job(job),
        (None, None) => return Err(arguments.usage("wrap needs --job and what to run.")),
    };
    if !serves {
        if bind.is_some() || token.is_some() {
            return Err(arguments.usage("--bind and --token-file go with --server only."));
        }
        return Ok(Command::Run { subject, limits, gap_meter });
    }
    if gap_meter {
        return Err(arguments.usage("--gap-meter does not go with --server."));
    }
    if token.is_some() == limits.control {
        let message = "A server needs either --control or --token-file: it serves only a peer that presents the token.";
        return Err(arguments.usage(message));
    }
    let bind = bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    Ok(Command::Serve { subject, limits, token, bind })
}

fn parse_address(arguments: &mut Arguments) -> Result<IpAddr> {
    let text = arguments.value()?;
    text.parse().map_err(|_| arguments.usage(format!("--bind takes an IP address, not '{text}'.")))
}

/// Longest line that is read for a token; one that is longer is refused for its length.
const TOKEN_LINE_MAX: u64 = 4096;

/// A token given as an argument would be seen by every user of the machine in the process list.
fn read_token(arguments: &mut Arguments) -> Result<String> {
    let path = arguments.path()?;
    let mut text = String::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(TOKEN_LINE_MAX).read_line(&mut text).map(|_| ())
    } else {
        read_text(&path).map(|content| text = content)
    };
    read.map_err(|error| {
        let path = path.display();
        arguments.usage(format!("The token cannot be read from '{path}': {error}."))
    })?;
    check_token(text.lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn words(line: &str) -> Result<Command> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_run_takes_params_and_limits() {
        let command = words(r#"run null --params {"samples":3} --deadline 2.5 --with-parent"#);
        let Ok(Command::Run { subject: Subject::Benchmark { id, params }, limits, .. }) = command
        else {
            panic!("{command:?}")
        };
        assert_eq!(id, "null");
        assert_eq!(params["samples"], 3);
        assert_eq!(limits.deadline, Duration::from_millis(2500));
        assert!(limits.with_parent && !limits.control);
    }

    #[test]
    fn a_server_listens_on_loopback_by_default() {
        for (line, wanted) in [("", "127.0.0.1"), (" --bind ::1", "::1")] {
            for what in ["serve null", r#"wrap --server --job {"program":"x"}"#] {
                let command = words(&format!("{what} --control{line}"));
                let Ok(Command::Serve { bind, token, limits, .. }) = command else {
                    panic!("{command:?}")
                };
                assert_eq!(bind.to_string(), wanted);
                assert!(token.is_none() && limits.control);
            }
        }
    }

    #[test]
    fn a_program_to_wrap_takes_a_job_and_limits() {
        let command = words(r#"wrap --job {"program":"true"} --control --gap-meter"#);
        let Ok(Command::Run { subject: Subject::Job(job), limits, gap_meter }) = command else {
            panic!("{command:?}")
        };
        assert_eq!(job, r#"{"program":"true"}"#);
        assert!(limits.control && gap_meter && !limits.with_parent);
    }

    #[test]
    fn what_means_nothing_is_a_usage_error() {
        for line in [
            "wrap",
            "wrap --job",
            "wrap true",
            "wrap --job {} --params {}",
            "wrap --job {} --bind 127.0.0.1",
            "wrap --job {} --server",
            "wrap --job {} --server --control --gap-meter",
            "walk",
            "run",
            "run null --params",
            "run null --params [1]",
            "run null --params {",
            "run null --deadline -1",
            "run null --deadline NaN",
            "run null --loud",
            "run null --bind 127.0.0.1",
            "run null --server",
            "serve null",
            "serve null --gap-meter --control",
            "serve null --control --bind localhost",
            "serve null --control --token-file /proc/self/cmdline",
            "unattended",
            "unattended --job",
            "unattended --job file --gap-meter",
        ] {
            let error = words(line).expect_err(line);
            assert_eq!(error.kind.exit_code(), 2, "{line}");
        }
    }
}
