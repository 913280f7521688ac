//! Reads the arguments of a program: a command, what it acts on, and its options. Whatever is wrong
//! ends in one sentence that names the argument, also where it is not UTF-8.
use crate::error::Error;
use crate::input::read_text;
use lexopt::{Arg, Parser};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The arguments after a program's name, read in order.
pub struct Arguments {
    program: &'static str,
    command: String,
    /// The option that was read last, whose value is next.
    option: String,
    parser: Parser,
}

impl Arguments {
    /// The arguments of `program` (its name is not one of them); the first is its command.
    pub fn new(
        program: &'static str,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> Result<Self, Error> {
        let parser = Parser::from_args(arguments);
        let mut read = Self { program, command: String::new(), option: String::new(), parser };
        let command = match read.next()? {
            None => "help".to_owned(),
            Some(Argument::Option(option)) => match option.as_str() {
                "--help" | "-h" => "help".to_owned(),
                "--version" | "-V" => "version".to_owned(),
                _ => option,
            },
            Some(Argument::Operand(text)) => text,
        };
        read.command = command;
        Ok(read)
    }

    /// The command: `help` where nothing or `--help` was given, `version` for `--version`.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns what the command acts on.
    pub fn operand(&mut self, name: &str) -> Result<String, Error> {
        match self.next()? {
            Some(Argument::Operand(text)) => Ok(text),
            _ => Err(self.usage(format!("{} needs {name}.", self.command))),
        }
    }

    /// Returns the next option with its dashes; `None` at the end.
    pub fn next_option(&mut self) -> Result<Option<String>, Error> {
        match self.next()? {
            None => Ok(None),
            Some(Argument::Option(option)) => {
                self.option.clone_from(&option);
                Ok(Some(option))
            }
            Some(Argument::Operand(text)) => Err(self.unknown_option(&text)),
        }
    }

    /// Returns the arguments after `--` as they are, where that comes next.
    pub fn rest_after_dashes(&mut self) -> Option<Vec<OsString>> {
        let mut raw = self.parser.try_raw_args()?;
        raw.next_if(|argument| argument == "--")?;
        Some(raw.collect())
    }

    /// Returns the value of the last option as bytes.
    pub fn raw_value(&mut self) -> Result<OsString, Error> {
        let missing = format!("{} needs a value after it.", self.option);
        self.parser.value().map_err(|_| self.usage(missing))
    }

    /// Returns the value of the last option.
    pub fn value(&mut self) -> Result<String, Error> {
        let value = self.raw_value()?;
        self.text(value)
    }

    /// Returns the value of the last option as a path.
    pub fn path(&mut self) -> Result<PathBuf, Error> {
        let value = self.raw_value()?;
        if value.is_empty() {
            return Err(self.usage(format!("{} needs a value after it.", self.option)));
        }
        Ok(value.into())
    }

    /// Returns the value of the last option as a whole number.
    pub fn number(&mut self, bounds: RangeInclusive<i64>) -> Result<i64, Error> {
        let text = self.value()?;
        text.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(|| {
            let (low, high) = (bounds.start(), bounds.end());
            let option = &self.option;
            self.usage(format!("{option} takes a whole number from {low} to {high}, not '{text}'."))
        })
    }

    /// Returns the value of the last option as a JSON object: its text, or the content of FILE where
    /// it is `@FILE`.
    pub fn object(&mut self) -> Result<Map<String, Value>, Error> {
        let mut text = self.value()?;
        let option = &self.option;
        if let Some(path) = text.strip_prefix('@') {
            text = read_text(Path::new(path)).map_err(|error| {
                self.usage(format!("{option}: '{path}' cannot be read: {error}."))
            })?;
        }
        match serde_json::from_str(&text) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => {
                Err(self.usage(format!("{option} must be a JSON object, such as {{\"seed\": 7}}.")))
            }
            Err(error) => Err(self.usage(format!("{option} is not JSON: {error}."))),
        }
    }

    /// The caller's mistake, with the program's help as the next step.
    pub fn usage(&self, message: impl Into<String>) -> Error {
        Error::usage(message, format!("Run `{} help`.", self.program))
    }

    pub fn unknown_command(&self) -> Error {
        self.usage(format!("'{}' is not a command of {}.", self.command, self.program))
    }

    pub fn unknown_option(&self, option: &str) -> Error {
        self.usage(format!("'{option}' is not an option of {}.", self.command))
    }

    fn next(&mut self) -> Result<Option<Argument>, Error> {
        let argument = match self.parser.next() {
            Ok(None) => return Ok(None),
            Ok(Some(Arg::Long(name))) => Ok(Argument::Option(format!("--{name}"))),
            Ok(Some(Arg::Short(letter))) => Ok(Argument::Option(format!("-{letter}"))),
            Ok(Some(Arg::Value(value))) => Err(value),
            Err(lexopt::Error::UnexpectedValue { option, .. }) => {
                return Err(self.usage(format!("{option} takes no value.")));
            }
            Err(error) => return Err(self.usage(format!("The arguments are wrong: {error}."))),
        };
        argument.or_else(|value| self.text(value).map(Argument::Operand)).map(Some)
    }

    fn text(&self, value: OsString) -> Result<String, Error> {
        value.into_string().map_err(|value| {
            self.usage(format!("The argument '{}' is not UTF-8 text.", value.display()))
        })
    }
}

enum Argument {
    Option(String),
    Operand(String),
}

/// Bounds of a trial's life, which every program that runs trials takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub deadline: Duration,
    pub with_parent: bool,
    /// Standard input says when to start and to end.
    pub control: bool,
}

/// Nothing but ten minutes bounds a trial that says nothing.
impl Default for Limits {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(600), with_parent: false, control: false }
    }
}

impl Limits {
    /// Takes `option` if it is one of the limits; returns whether it was.
    pub fn accept(&mut self, option: &str, arguments: &mut Arguments) -> Result<bool, Error> {
        match option {
            "--with-parent" => self.with_parent = true,
            "--control" => self.control = true,
            "--deadline" => self.deadline = seconds(arguments)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn seconds(arguments: &mut Arguments) -> Result<Duration, Error> {
    let text = arguments.value()?;
    text.parse::<f64>()
        .ok()
        .filter(|seconds| (0.001..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            arguments.usage(format!("--deadline takes 0.001 to 86400 seconds, not '{text}'."))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn arguments(line: &str) -> Arguments {
        Arguments::new("program", line.split_whitespace().map(OsString::from)).unwrap()
    }

    #[test]
    fn nothing_and_its_options_ask_for_help_and_version() {
        for (line, command) in
            [("", "help"), ("-h", "help"), ("--help", "help"), ("-V", "version"), ("run x", "run")]
        {
            assert_eq!(arguments(line).command(), command, "{line}");
        }
    }

    #[test]
    fn limits_and_values_are_taken_in_any_order() {
        let mut parsed = arguments("run ID --control --deadline=2.5 --params {\"a\":1} --nice -5");
        assert_eq!(parsed.operand("an id").unwrap(), "ID");
        let (mut limits, mut params, mut nice) = (Limits::default(), Map::new(), 0);
        while let Some(option) = parsed.next_option().unwrap() {
            match option.as_str() {
                "--params" => params = parsed.object().unwrap(),
                "--nice" => nice = parsed.number(-20..=19).unwrap(),
                option => assert!(limits.accept(option, &mut parsed).unwrap(), "{option}"),
            }
        }
        assert_eq!((limits.deadline, limits.control), (Duration::from_millis(2500), true));
        assert_eq!((params["a"].as_i64(), nice, limits.with_parent), (Some(1), -5, false));
    }

    #[test]
    fn a_program_after_dashes_keeps_its_own_options() {
        let mut parsed = arguments("enter --sysfs -- ls --all --");
        assert!(parsed.rest_after_dashes().is_none());
        assert_eq!(parsed.next_option().unwrap().unwrap(), "--sysfs");
        assert_eq!(parsed.rest_after_dashes().unwrap(), ["ls", "--all", "--"]);
    }

    fn first_error(mut parsed: Arguments) -> Option<Error> {
        loop {
            let read = match parsed.next_option() {
                Ok(None) => return None,
                Ok(Some(option)) => match option.as_str() {
                    "--count" => parsed.number(1..=9).map(|_| ()),
                    "--path" => parsed.path().map(|_| ()),
                    "--params" => parsed.object().map(|_| ()),
                    option => Limits::default().accept(option, &mut parsed).and_then(|known| {
                        known.then_some(()).ok_or_else(|| parsed.unknown_option(option))
                    }),
                },
                Err(error) => Err(error),
            };
            if let Err(error) = read {
                return Some(error);
            }
        }
    }

    #[test]
    fn what_is_wrong_is_one_sentence() {
        for (line, sentence) in [
            ("run --loud", "'--loud' is not an option of run."),
            ("run word", "'word' is not an option of run."),
            ("run --count", "--count needs a value after it."),
            ("run --count 10", "--count takes a whole number from 1 to 9, not '10'."),
            ("run --control=yes --count 1", "--control takes no value."),
            ("run --deadline NaN", "--deadline takes 0.001 to 86400 seconds, not 'NaN'."),
            ("run --params [1]", "--params must be a JSON object, such as {\"seed\": 7}."),
            ("run --params @/no/where", "--params: '/no/where' cannot be read: No such file"),
        ] {
            let error = first_error(arguments(line)).expect(line);
            assert!(error.message.starts_with(sentence), "{line}: {}", error.message);
            assert_eq!((error.kind.exit_code(), error.hint.as_str()), (2, "Run `program help`."));
        }
        assert!(first_error(arguments("run --count 9 --path /")).is_none());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_but_as_paths() {
        let strange = || OsString::from_vec(vec![b'/', 0xff]);
        let of = |words: Vec<OsString>| Arguments::new("program", words);
        assert!(of(vec![strange()]).is_err());
        let error = first_error(of(vec!["run".into(), "--params".into(), strange()]).unwrap());
        assert!(error.unwrap().message.ends_with("is not UTF-8 text."));
        assert!(first_error(of(vec!["run".into(), "--path".into(), strange()]).unwrap()).is_none());
    }
}
