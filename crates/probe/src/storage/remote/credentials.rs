//! Credentials of services: from a file, the controller's environment or this program's own, and never
//! from parameters, which stand in logs and lists of processes.
use crate::error::{ProbeError, Result};
use crate::trial::Trial;
use nephoscope_wire::input::read_text;
use std::collections::BTreeMap;
use std::path::Path;

/// Every name that is looked at.
pub const NAMES: &[&str] = &[
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "WEBDAV_USERNAME",
    "WEBDAV_PASSWORD",
    "WEBDAV_TOKEN",
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_OAUTH_TOKEN",
    "SFTP_KEY_FILE",
    "HADOOP_USER_NAME",
    "HADOOP_DELEGATION_TOKEN",
];

/// Names and values; the values stay out of every sentence.
#[derive(Clone, Default)]
pub struct Credentials {
    values: BTreeMap<String, String>,
    /// Where they come from, for sentences.
    source: String,
}

impl Credentials {
    /// Reads those of a trial: its file if it names one, else what the controller sent, else the
    /// environment.
    pub fn read(trial: &Trial) -> Result<Self> {
        let sent = match trial.session.has_control() {
            true => trial.session.read_credentials()?,
            false => BTreeMap::new(),
        };
        let path = trial.params.text("credentials_file");
        if !path.is_empty() {
            let text = read_text(Path::new(path)).map_err(|error| {
                ProbeError::usage(
                    format!("The credentials cannot be read from '{path}': {error}."),
                    "Set `credentials_file` to a file on the target with NAME=VALUE lines.",
                )
            })?;
            return Ok(Self { values: parse(&text), source: format!("the file '{path}'") });
        }
        let from_environment =
            |name: &&str| std::env::var(name).ok().map(|value| ((*name).to_owned(), value));
        let mut values: BTreeMap<_, _> = NAMES.iter().filter_map(from_environment).collect();
        values.extend(sent);
        values.retain(|_, value| !value.is_empty());
        Ok(Self { values, source: "the environment".to_owned() })
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns all of these values; refuses where one is missing.
    pub fn require<const N: usize>(&self, service: &str, names: [&str; N]) -> Result<[&str; N]> {
        match names.iter().find(|name| self.get(name).is_none()) {
            None => Ok(names.map(|name| self.get(name).unwrap_or_default())),
            Some(missing) => Err(ProbeError::usage(
                format!("There are no credentials for {service}: {} lacks {missing}.", self.source),
                format!(
                    "Set {} in the environment, or name a `credentials_file`.",
                    names.join(" and ")
                ),
            )),
        }
    }

    /// Removes every value from a text, as it is and as it stands in a URL.
    pub fn hide_in(&self, text: &str) -> String {
        let mut hidden = text.to_owned();
        // Short ones are names such as "root", and parts of words.
        for value in self.values.values().filter(|value| value.len() > 5) {
            let encoded: String = url_encoded(value);
            hidden = hidden.replace(value.as_str(), "…").replace(&encoded, "…");
        }
        hidden
    }
}

/// Reads NAME=VALUE lines; those of an AWS credentials file too, of which the first profile counts.
fn parse(text: &str) -> BTreeMap<String, String> {
    let mut values = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '['])) {
        if let Some((name, value)) = line.split_once('=') {
            let name = name.trim().trim_start_matches("export ").to_ascii_uppercase();
            let value = value.trim().trim_matches(['"', '\'']).to_owned();
            if !value.is_empty() {
                values.entry(name).or_insert(value);
            }
        }
    }
    values
}

fn url_encoded(value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Credentials {
        Credentials { values: parse(text), source: "the file 'keys'".to_owned() }
    }

    #[test]
    fn files_have_names_and_values_in_either_form() {
        let plain = of("# mine\nexport AWS_ACCESS_KEY_ID=id\nAWS_SECRET_ACCESS_KEY=\"a=b\"\n");
        assert_eq!(plain.get("AWS_ACCESS_KEY_ID"), Some("id"));
        assert_eq!(plain.get("AWS_SECRET_ACCESS_KEY"), Some("a=b"));
        let profile = of("[default]\naws_access_key_id = one\n[other]\naws_access_key_id = two\n");
        assert_eq!(profile.get("AWS_ACCESS_KEY_ID"), Some("one"));
    }

    #[test]
    fn a_missing_one_is_named_and_a_present_one_never_shown() {
        let credentials = of("AWS_ACCESS_KEY_ID=AKIDEXAMPLE\nWEBDAV_PASSWORD=pass/word+1");
        let names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
        let error = credentials.require("s3", names).unwrap_err();
        assert!(error.message.contains("lacks AWS_SECRET_ACCESS_KEY"), "{}", error.message);
        let masked =
            credentials.hide_in("AKIDEXAMPLE at http://h/?p=pass%2Fword%2B1 or pass/word+1");
        assert_eq!(masked, "… at http://h/?p=… or …");
    }
}
