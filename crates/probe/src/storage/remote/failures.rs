//! Errors of services as sentences: what was refused, where, and what to do next.
use super::bounded::ENDLESS;
use super::credentials::Credentials;
use crate::error::{FailureKind, ProbeError, Result};
use opendal_core::{Error, ErrorKind};
use std::error::Error as _;

/// Longest part of a service's own words that is shown.
const WORDS: usize = 160;

/// Words of rustls, whose errors say nothing in common.
const TLS: [&str; 5] = ["certificate", "UnknownIssuer", "TLS", "handshake", "corrupt message"];

/// What is needed to make a sentence of an error.
#[derive(Clone)]
pub struct Failures {
    pub credentials: Credentials,
    /// The service and its address.
    pub place: String,
    pub bucket: String,
}

impl Failures {
    /// Refuses where what is missing is the bucket.
    pub fn check_bucket(&self, error: &Error) -> Result<()> {
        let words = everything(error);
        if ["NoSuchBucket", "ContainerNotFound", "bucket does not exist", "NoSuchContainer"]
            .iter()
            .any(|word| words.contains(word))
        {
            return Err(ProbeError::usage(
                format!("{} has no bucket '{}'.", self.place, self.bucket),
                "Create it, or correct `bucket`.",
            ));
        }
        Ok(())
    }

    /// Returns the failure of `what` ("Writing an object"). Statuses are looked for with their word: a
    /// port or the name of an object may contain the same digits.
    pub fn named(&self, what: &str, error: &Error) -> ProbeError {
        if let Err(error) = self.check_bucket(error) {
            return error;
        }
        let words = everything(error);
        let has = |any: &[&str]| any.iter().any(|word| words.contains(word));
        let at = format!("{what} at {}", self.place);
        let (kind, name, why, hint) = if has(&[ENDLESS]) {
            (
                FailureKind::Failed,
                "endless_answer",
                self.words(error),
                "Check what answers at `endpoint`; set `directory` to a place with fewer objects.",
            )
        } else if has(&TLS) {
            (
                FailureKind::Failed,
                "no_tls",
                format!("the TLS connection failed ({})", self.words(error)),
                "Name the host as its certificate does, and set `tls_ca_file` for an authority of your own.",
            )
        } else if has(&[
            "NoSpace",
            "No space",
            "Insufficient Storage",
            "StorageFull",
            "QuotaExceeded",
            "status: 507",
        ]) {
            (
                FailureKind::Lacks,
                "store_full",
                "the store has no space left".to_owned(),
                "Free space there, or set smaller `object_bytes` or `objects`.",
            )
        } else if error.kind() == ErrorKind::PermissionDenied
            || has(&[
                "SignatureDoesNotMatch",
                "InvalidAccessKeyId",
                "AuthenticationFailed",
                "Permission denied (",
                "status: 401",
            ])
        {
            (
                FailureKind::Failed,
                "access_denied",
                "the credentials are wrong or do not allow it".to_owned(),
                "Check the credentials and their rights to list, read, write and remove objects.",
            )
        } else if has(&[
            "Connection refused",
            "connection refused",
            "Connection reset",
            "dns error",
            "broken pipe",
            "Broken pipe",
            "error trying to connect",
            "connection closed",
            "timed out",
            "timeout",
        ]) {
            (
                FailureKind::Failed,
                "no_server",
                format!("the server does not answer ({})", self.words(error)),
                "Check that it runs; raise `retries` or `timeout_ns` if it comes back by itself.",
            )
        } else {
            (
                FailureKind::Failed,
                "store_failed",
                self.words(error),
                "See the log of the service, or try the same by its own client.",
            )
        };
        ProbeError::new(kind, name, format!("{at}: {why}."), hint)
    }

    /// Returns the innermost words of an error, in one line and without credentials.
    fn words(&self, error: &Error) -> String {
        let mut inner: &dyn std::error::Error = error;
        while let Some(source) = inner.source() {
            inner = source;
        }
        let text =
            if error.source().is_some() { inner.to_string() } else { error.message().to_owned() };
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let hidden = self.credentials.hide_in(&line);
        hidden.trim_end_matches('.').chars().take(WORDS).collect()
    }
}

/// Returns all words of an error and its causes, to look for causes in and never to show.
fn everything(error: &Error) -> String {
    let mut words = error.to_string();
    let mut inner = error.source();
    while let Some(source) = inner {
        words.push_str(&format!(" {source}"));
        inner = source.source();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_named_and_words_have_no_credentials() {
        let failures = Failures {
            credentials: Credentials::default(),
            place: "s3 at http://h".to_owned(),
            bucket: "b".to_owned(),
        };
        let named =
            |kind, words: &str| failures.named("Writing an object", &Error::new(kind, words));
        for (kind, words, name) in [
            (ErrorKind::NotFound, "S3Error { code: \"NoSuchBucket\" }", "usage"),
            (ErrorKind::PermissionDenied, "SignatureDoesNotMatch", "access_denied"),
            (ErrorKind::Unexpected, "invalid peer certificate: UnknownIssuer", "no_tls"),
            (
                ErrorKind::Unexpected,
                "received corrupt message of type InvalidContentType",
                "no_tls",
            ),
            (ErrorKind::Unexpected, "response: Parts { status: 507, headers: {} }", "store_full"),
            (
                ErrorKind::Unexpected,
                "response: Parts { status: 401, headers: {} }",
                "access_denied",
            ),
            (ErrorKind::Unexpected, "uri: http://127.0.0.1:48507/401-0-0", "store_failed"),
            (ErrorKind::Unexpected, "tcp connect error: Connection refused", "no_server"),
            (ErrorKind::Unexpected, "the answer does not end: it is long", "endless_answer"),
            (ErrorKind::Unexpected, "something else", "store_failed"),
        ] {
            let error = named(kind, words);
            assert_eq!(error.name, name, "{}", error.message);
            assert_eq!(error.message.matches(". ").count(), 0, "{}", error.message);
        }
    }
}
