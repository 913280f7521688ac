//! The cookies of one user (RFC 6265): names and values as the server set them, sent back with every
//! request. One server is loaded and trials are short, so paths, domains and expiry are ignored.

/// What browsers keep of one host; more is dropped.
const COOKIES: usize = 50;
const VALUE_BYTES: usize = 4096;

#[derive(Clone, Debug, Default)]
pub struct Cookies {
    pairs: Vec<(String, String)>,
    /// The value of the Cookie header.
    pub header: String,
}

impl Cookies {
    /// Takes the value of a Set-Cookie header.
    pub fn set(&mut self, value: &[u8]) {
        let Ok(text) = std::str::from_utf8(value) else { return };
        let pair = text.split(';').next().unwrap_or_default();
        let Some((name, value)) = pair.split_once('=') else { return };
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || pair.len() > VALUE_BYTES {
            return;
        }
        match self.pairs.iter().position(|(own, _)| own == name) {
            Some(index) => value.clone_into(&mut self.pairs[index].1),
            None if self.pairs.len() < COOKIES => {
                self.pairs.push((name.to_owned(), value.to_owned()));
            }
            None => return,
        }
        let pairs = self.pairs.iter().map(|(name, value)| format!("{name}={value}"));
        self.header = pairs.collect::<Vec<_>>().join("; ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_a_name_is_sent_back() {
        let mut cookies = Cookies::default();
        for value in ["a=1; Path=/", "b = x", "a=2", "none", "=3", "\u{e9}"] {
            cookies.set(value.as_bytes());
        }
        cookies.set(&[b'c', b'=', 0xff]);
        cookies.set(format!("d={}", "x".repeat(VALUE_BYTES)).as_bytes());
        assert_eq!(cookies.header, "a=2; b=x");
        (0..100).for_each(|index| cookies.set(format!("n{index}=v").as_bytes()));
        assert_eq!(cookies.header.split("; ").count(), COOKIES);
    }
}
