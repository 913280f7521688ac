//! Figures that a program prints, read from its standard output by a regular expression or by the
//! path of a value in a JSON document.
use crate::error::{FailureKind, ProbeError, Result};
use nephoscope_wire::spec::Better;
use regex_lite::{Regex, RegexBuilder};
use serde_json::Value;

/// One figure: its name, which direction is good, and how to read it.
#[derive(Debug)]
pub struct Figure {
    pub name: String,
    pub better: Better,
    reader: FigurePattern,
}

#[derive(Debug)]
enum FigurePattern {
    Expression(Regex),
    /// Keys and indices of a JSON document, from the outside in.
    Path(Vec<String>),
}

impl Figure {
    /// Reads `NAME[:higher|:lower]=PATTERN`. A pattern that begins with `$` is a path of JSON
    /// (`$.results[0].mean`), any other a regular expression with one group.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = |why: &str| {
            ProbeError::usage(
                format!("`figures` has '{text}': {why}."),
                "Write NAME=PATTERN, such as 'rate:higher=([0-9.]+) requests/s' or \
                 'mean:lower=$.results[0].mean'.",
            )
        };
        let (name, pattern) = text.split_once('=').ok_or_else(|| refused("it has no '='"))?;
        let (name, better) = match name.rsplit_once(':') {
            Some((name, "higher")) => (name, Better::Higher),
            Some((name, "lower")) => (name, Better::Lower),
            Some(_) => return Err(refused("after ':' stands neither 'higher' nor 'lower'")),
            None => (name, Better::None),
        };
        if name.is_empty() {
            return Err(refused("it has no name"));
        }
        let reader = if pattern.starts_with('$') {
            FigurePattern::Path(path(pattern).ok_or_else(|| refused("this is no path of JSON"))?)
        } else {
            let expression = RegexBuilder::new(pattern).multi_line(true).build();
            let expression = expression.map_err(|error| refused(&error.to_string()))?;
            if expression.captures_len() != 2 {
                return Err(refused("the expression needs exactly one group, around the number"));
            }
            FigurePattern::Expression(expression)
        };
        Ok(Self { name: name.to_owned(), better, reader })
    }

    /// The figure in an output. An error says what is missing; a figure is never assumed.
    pub fn read(&self, output: &str) -> Result<f64> {
        match &self.reader {
            FigurePattern::Expression(expression) => self.match_once(expression, output),
            FigurePattern::Path(path) => self.read_value(path, output),
        }
    }

    fn match_once(&self, expression: &Regex, output: &str) -> Result<f64> {
        let mut matches = expression.captures_iter(output);
        let text = matches.next().and_then(|groups| groups.get(1));
        let Some(text) = text else {
            return Err(self.failed("its expression matches nowhere in the output"));
        };
        if matches.next().is_some() {
            return Err(self.failed("its expression matches the output more than once"));
        }
        self.finite(text.as_str())
    }

    fn read_value(&self, path: &[String], output: &str) -> Result<f64> {
        let document: Value = serde_json::from_str(output)
            .map_err(|error| self.failed(&format!("the output is no JSON ({error})")))?;
        let mut value = &document;
        for key in path {
            let next = match value {
                Value::Array(items) => key.parse().ok().and_then(|at: usize| items.get(at)),
                _ => value.get(key),
            };
            value = next.ok_or_else(|| self.failed(&format!("the output has no '{key}'")))?;
        }
        match value {
            Value::Number(number) => self.finite(&number.to_string()),
            Value::String(text) => self.finite(text),
            _ => Err(self.failed("what its path names is no number")),
        }
    }

    fn finite(&self, text: &str) -> Result<f64> {
        let number = text.trim().parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.failed(&format!("'{text:.40}' is no number")))
    }

    fn failed(&self, why: &str) -> ProbeError {
        ProbeError::new(
            FailureKind::Failed,
            "no_figure",
            format!("The figure '{}' cannot be read: {why}.", self.name),
            "Run the command by itself and correct the pattern (--figure, `figures` in a plan).",
        )
    }
}

/// The steps of `$.a.b[0]['c']`; `None` for anything else.
fn path(text: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = text.strip_prefix('$')?;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            steps.push(after[..end].to_owned());
            rest = &after[end..];
        } else {
            let (inside, after) = rest.strip_prefix('[')?.split_once(']')?;
            let unquoted = inside.strip_prefix('\'').and_then(|key| key.strip_suffix('\''));
            if unquoted.is_none() && !inside.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            steps.push(unquoted.unwrap_or(inside).to_owned());
            rest = after;
        }
        if steps.last().is_some_and(String::is_empty) {
            return None;
        }
    }
    (!steps.is_empty()).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(figure: &str, output: &str) -> Result<f64, String> {
        let figure = Figure::parse(figure).map_err(|error| error.message)?;
        figure.read(output).map_err(|error| error.message)
    }

    #[test]
    fn expressions_match_once_and_lines_have_ends() {
        assert_eq!(read("rate:higher=([0-9.]+) req/s", "took 5\n12.5 req/s\n"), Ok(12.5));
        assert_eq!(read("last=^total ([0-9]+)$", "total 1 of\ntotal 7\n"), Ok(7.0));
        assert_eq!(read("small=([-0-9.e]+)", "-1e-3"), Ok(-0.001));
        for (figure, output, words) in [
            ("x=([0-9]+)", "none", "matches nowhere"),
            ("x=([0-9]+)", "1 2", "more than once"),
            ("x=(.*) s", "inf s", "'inf' is no number"),
        ] {
            let message = read(figure, output).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn paths_name_a_value_of_a_document() {
        let output = r#"{"runs": [{"mean": 1.5, "a b": "2"}], "name": "x"}"#;
        assert_eq!(read("m:lower=$.runs[0].mean", output), Ok(1.5));
        assert_eq!(read("m=$['runs'][0]['a b']", output), Ok(2.0));
        for (path, words) in [
            ("$.runs[1].mean", "has no '1'"),
            ("$.name", "'x' is no number"),
            ("$.runs", "is no number"),
        ] {
            let message = read(&format!("m={path}"), output).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
        assert!(read("m=$.x", "no JSON").unwrap_err().contains("is no JSON"));
    }

    #[test]
    fn what_is_no_figure_is_refused_with_an_example() {
        for text in ["x", "=(1)", "x:best=(1)", "x=1", "x=(1)(2)", "x=(", "x=$", "x=$a", "x=$.a..b"]
        {
            let error = Figure::parse(text).unwrap_err();
            assert!(error.message.contains(text) && error.hint.contains("NAME="), "{error:?}");
        }
    }
}
