//! The command line of the simulator.
mod benchmarks;
mod control;
mod trial;

use nephoscope_wire::arguments::{Arguments, Limits};
use nephoscope_wire::error::Error;
use nephoscope_wire::writer::report_error;
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::io::Write;

const HELP: &str = "\
nephoscope-sim: simulate what nephoscope-probe measures

  nephoscope-sim describe
  nephoscope-sim scenarios
  nephoscope-sim run ID [--params JSON] [--seed N] [--machine JSON [--vm NAME]]
                        [--deadline SECONDS] [--with-parent] [--control]
  nephoscope-sim check ID [--params JSON] [--machine JSON]
  nephoscope-sim version

Commands:
  describe        print the declarations of all benchmarks as JSON
  scenarios       print the built-in scenarios as JSON
  run             run one replication of a benchmark and print its samples
  check           check the input of a benchmark without running it

Options:
  --params JSON   parameters as one JSON object; `describe` lists them
  --seed N        random seed of the replication [default: 1]
  --machine JSON  simulated machine for cpu.gaps: a scheduler scenario
  --vm NAME       virtual machine to measure in, if the scenario has several
  --deadline S    end after S seconds of real time [default: 600]
  --with-parent   end when standard input closes
  --control       read commands from standard input; its end cancels

JSON may be @FILE, which stands for the content of the file.

Commands of --control:
  go [NANOSECONDS]   start, after {\"ready\": …} was printed: now, or at that time in nanoseconds
                     since the epoch
  stop               cancel";

/// A trial, as the arguments describe it.
#[derive(Clone, Debug, Default)]
struct TrialRequest {
    id: String,
    params: Map<String, Value>,
    seed: u64,
    machine: Option<Value>,
    /// The virtual machine to measure in.
    vm: Option<String>,
    limits: Limits,
    /// Only check the input.
    is_check: bool,
}

/// Runs the program; returns its exit code.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    match run(arguments) {
        Ok(()) => 0,
        Err(error) => report_error("nephoscope-sim", &error, std::io::stdout()),
    }
}

fn run(arguments: impl IntoIterator<Item = OsString>) -> Result<(), Error> {
    let mut arguments = Arguments::new("nephoscope-sim", arguments)?;
    match arguments.command() {
        "help" => print(HELP),
        "version" => print(concat!("nephoscope-sim ", env!("CARGO_PKG_VERSION"))),
        "describe" => print(&benchmarks::describe().to_string()),
        "scenarios" => print(&benchmarks::scenarios().to_string()),
        "run" | "check" => {
            let request = parse_request(&mut arguments)?;
            trial::run(benchmarks::find(&request.id)?, request)
        }
        "serve" => {
            Err(arguments.usage("Simulated benchmarks have one side; there is nothing to serve."))
        }
        _ => Err(arguments.unknown_command()),
    }
}

fn parse_request(arguments: &mut Arguments) -> Result<TrialRequest, Error> {
    let mut request = TrialRequest {
        is_check: arguments.command() == "check",
        id: arguments.operand("the id of a benchmark")?,
        seed: 1,
        ..TrialRequest::default()
    };
    while let Some(option) = arguments.next_option()? {
        match option.as_str() {
            "--params" => request.params = arguments.object()?,
            "--machine" => request.machine = Some(Value::Object(arguments.object()?)),
            "--vm" => request.vm = Some(arguments.value()?),
            "--seed" => {
                let text = arguments.value()?;
                request.seed = text.parse().map_err(|_| {
                    arguments.usage(format!("--seed takes a whole number, not '{text}'."))
                })?;
            }
            option if request.limits.accept(option, arguments)? => {}
            option => return Err(arguments.unknown_option(option)),
        }
    }
    Ok(request)
}

fn print(text: &str) -> Result<(), Error> {
    writeln!(std::io::stdout(), "{text}").map_err(|error| Error::output(&error))
}
