//! What a valid response looks like, and the check of a body while it is read.
use crate::http::requests::failures::{Failure, STATUS_4XX, STATUS_5XX, STATUS_OTHER};
use sha2::{Digest, Sha256};

#[derive(Debug, Default)]
pub struct Expected {
    /// Empty for every status from 200 to 399.
    pub statuses: Vec<u16>,
    pub body_bytes: Option<u64>,
    pub sha256: Option<[u8; 32]>,
    /// Whether cookies are kept and sent back.
    pub keep_cookies: bool,
    text: Vec<u8>,
    /// Length of the longest proper beginning of the text that its first n bytes end in, for each n
    /// (Knuth, Morris and Pratt, 1977).
    borders: Vec<usize>,
}

impl Expected {
    /// Expects `text` somewhere in the body; anything if it is empty.
    pub fn containing(text: &[u8]) -> Self {
        let mut borders = vec![0; text.len()];
        let mut border = 0;
        for index in 1..text.len() {
            while border > 0 && text[index] != text[border] {
                border = borders[border - 1];
            }
            border += usize::from(text[index] == text[border]);
            borders[index] = border;
        }
        Self { text: text.to_vec(), borders, ..Self::default() }
    }

    /// Returns why a status is not the expected one.
    #[inline]
    pub fn refuses(&self, status: u16) -> Option<Failure> {
        let expected = if self.statuses.is_empty() {
            (200..400).contains(&status)
        } else {
            self.statuses.contains(&status)
        };
        match status {
            _ if expected => None,
            400..=499 => Some(STATUS_4XX),
            500..=599 => Some(STATUS_5XX),
            _ => Some(STATUS_OTHER),
        }
    }
}

/// What is known of a body so far.
#[derive(Clone, Debug, Default)]
pub struct BodyCheck {
    bytes: u64,
    /// Bytes of the expected text that the body ends in; all of them once it was found.
    matched: usize,
    digest: Option<Box<Sha256>>,
}

impl BodyCheck {
    #[inline]
    pub fn add(&mut self, expected: &Expected, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if expected.sha256.is_some() {
            self.digest.get_or_insert_default().update(bytes);
        }
        let text = &expected.text;
        for byte in bytes {
            if self.matched == text.len() {
                break;
            }
            while self.matched > 0 && text[self.matched] != *byte {
                self.matched = expected.borders[self.matched - 1];
            }
            self.matched += usize::from(text[self.matched] == *byte);
        }
    }

    /// Whether the body is the expected one.
    #[inline]
    pub fn passes(&mut self, expected: &Expected) -> bool {
        let digest_matches = expected.sha256.is_none_or(|wanted| {
            let digest = self.digest.take().unwrap_or_default();
            digest.finalize().as_slice() == wanted
        });
        digest_matches
            && expected.body_bytes.is_none_or(|wanted| wanted == self.bytes)
            && self.matched == expected.text.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finds(text: &str, parts: &[&str]) -> bool {
        let expected = Expected::containing(text.as_bytes());
        let mut check = BodyCheck::default();
        parts.iter().for_each(|part| check.add(&expected, part.as_bytes()));
        check.passes(&expected)
    }

    #[test]
    fn a_text_is_found_across_reads() {
        assert!(finds("", &[]));
        assert!(finds("abab", &["xaba", "bab", "y"]));
        assert!(finds("aab", &["a", "a", "a", "b"]));
        assert!(!finds("aab", &["ab", "ab"]));
        assert!(!finds("abc", &["ab"]));
        for split in 0..=11 {
            let (left, right) = "hello needl".split_at(split);
            assert!(finds("needle", &[left, right, "e"]));
            assert!(!finds("needle", &[left, right, "s"]));
        }
    }

    #[test]
    fn length_and_digest_are_checked() {
        let sha256: [u8; 32] = Sha256::digest(b"abc").into();
        let mut expected = Expected { sha256: Some(sha256), ..Expected::default() };
        let passes = |expected: &Expected, body: &[u8]| {
            let mut check = BodyCheck::default();
            body.iter().for_each(|byte| check.add(expected, &[*byte]));
            check.passes(expected)
        };
        assert!(passes(&expected, b"abc") && !passes(&expected, b"abd") && !passes(&expected, b""));
        expected = Expected { body_bytes: Some(2), ..Expected::default() };
        assert!(passes(&expected, b"ab") && !passes(&expected, b"abc"));
    }

    #[test]
    fn statuses_are_judged() {
        let mut expected = Expected::default();
        assert_eq!([200, 204, 302].map(|status| expected.refuses(status)), [None; 3]);
        assert_eq!(expected.refuses(404), Some(STATUS_4XX));
        assert_eq!(expected.refuses(503), Some(STATUS_5XX));
        assert_eq!(expected.refuses(600), Some(STATUS_OTHER));
        expected.statuses = vec![404];
        assert_eq!((expected.refuses(404), expected.refuses(200)), (None, Some(STATUS_OTHER)));
    }
}
