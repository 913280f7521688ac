//! The Huffman code of header strings (RFC 7541, appendix B). It is canonical: codes of one length
//! follow each other in the order of their symbols, and shorter codes come first.
use crate::http::requests::failures::{Failure, GARBAGE};

/// Number of codes by length in bits.
#[rustfmt::skip]
const COUNTS: [u16; 31] = [
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3,
    0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19, 29, 0, 4,
];
/// The symbols in the order of their codes; the last code, behind these, ends no string.
const SYMBOLS: &[u8; 256] =
    b"012aceiost %-./3456789=A_bdfghlmnpru:BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz&*,;XZ!\"()?'+|#>\x00$\
    @[]~^}<`{\\\xc3\xd0\x80\x82\x83\xa2\xb8\xc2\xe0\xe2\x99\xa1\xa7\xac\xb0\xb1\xb3\xd1\xd8\
    \xd9\xe3\xe5\xe6\x81\x84\x85\x86\x88\x92\x9a\x9c\xa0\xa3\xa4\xa9\xaa\xad\xb2\xb5\xb9\xba\
    \xbb\xbd\xbe\xc4\xc6\xe4\xe8\xe9\x01\x87\x89\x8a\x8b\x8c\x8d\x8f\x93\x95\x96\x97\x98\x9b\
    \x9d\x9e\xa5\xa6\xa8\xae\xaf\xb4\xb6\xb7\xbc\xbf\xc5\xe7\xef\x09\x8e\x90\x91\x94\x9f\xab\
    \xce\xd7\xe1\xec\xed\xc7\xcf\xea\xeb\xc0\xc1\xc8\xc9\xca\xcd\xd2\xd5\xda\xdb\xee\xf0\xf2\
    \xf3\xff\xcb\xcc\xd3\xd4\xd6\xdd\xde\xdf\xf1\xf4\xf5\xf6\xf7\xf8\xfa\xfb\xfc\xfd\xfe\x02\
    \x03\x04\x05\x06\x07\x08\x0b\x0c\x0e\x0f\x10\x11\x12\x13\x14\x15\x17\x18\x19\x1a\x1b\x1c\
    \x1d\x1e\x1f\x7f\xdc\xf9\x0a\x0d\x16";

/// Appends the decoded string to `out`.
pub fn decode(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
    let mut code = Code::default();
    for byte in bytes {
        for shift in (0..8).rev() {
            match code.add(u32::from(byte >> shift & 1)) {
                None => {}
                Some(symbol) => {
                    out.push(*SYMBOLS.get(symbol).ok_or(GARBAGE)?);
                    code = Code::default();
                }
            }
        }
    }
    // The last byte is filled up with ones.
    if code.length < 8 && code.bits + 1 == 1 << code.length {
        return Ok(());
    }
    Err(GARBAGE)
}

/// A code of which some bits are known.
#[derive(Default)]
struct Code {
    bits: u32,
    length: usize,
    /// The first code of this length, and the number of all shorter ones.
    first: u32,
    shorter: u32,
}

impl Code {
    /// Adds a bit; returns the position of the symbol that the code is complete for.
    fn add(&mut self, bit: u32) -> Option<usize> {
        self.first = (self.first + u32::from(COUNTS[self.length])) << 1;
        self.shorter += u32::from(COUNTS[self.length]);
        self.bits = self.bits << 1 | bit;
        self.length += 1;
        // Never negative: a smaller code would have been complete before.
        let offset = self.bits - self.first;
        (offset < u32::from(COUNTS[self.length])).then_some((self.shorter + offset) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut out = Vec::new();
        decode(bytes, &mut out).map(|()| out)
    }

    #[test]
    fn strings_of_the_standard_are_decoded() {
        for (bytes, text) in [
            (&[0x64, 0x02][..], &b"302"[..]),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], b"private"),
            (
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff],
                b"www.example.com",
            ),
            (&[], b""),
            // The first and the last code of 28 bits, and the longest codes.
            (&[0xff, 0xff, 0xfe, 0x2f], &[2]),
            (&[0xff, 0xff, 0xff, 0xef], &[249]),
            (&[0xff, 0xff, 0xff, 0xf3], b"\n"),
            (&[0xff, 0xff, 0xff, 0xfb], &[22]),
        ] {
            assert_eq!(decoded(bytes).unwrap(), text);
        }
    }

    #[test]
    fn every_symbol_has_one_code() {
        let mut seen = SYMBOLS.to_vec();
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..=255));
        let filled: f64 =
            (0..31).map(|bits| f64::from(COUNTS[bits]) * 0.5f64.powi(bits as i32)).sum();
        assert_eq!(filled, 1.0);
    }

    #[test]
    fn wrong_ends_are_refused() {
        // A code without its end, zeros at the end, a whole byte of ones, the code that ends no string.
        for bytes in [&[0x64][..], &[0x60], &[0x64, 0x02, 0xff], &[0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(decoded(bytes), Err(GARBAGE), "{bytes:?}");
        }
    }
}
