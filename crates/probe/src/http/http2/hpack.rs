//! Header blocks (HPACK, RFC 7541). The server is told that no table of earlier fields is kept here, so
//! that each block can be read alone; of its fields only those are decoded that matter.
use super::huffman;
use crate::http::decimal;
use crate::http::requests::failures::{Failure, GARBAGE};
use std::borrow::Cow;

/// Entries of the static table.
const STATIC_ENTRIES: usize = 61;
/// Statuses in the static table, and the place of the first.
const STATUSES: [&[u8]; 7] = [b"200", b"204", b"206", b"304", b"400", b"404", b"500"];
const FIRST_STATUS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    Status,
    ContentLength,
    SetCookie,
    Other,
}

impl Name {
    fn of_entry(index: usize) -> Result<Self, Failure> {
        match index {
            8..=14 => Ok(Self::Status),
            28 => Ok(Self::ContentLength),
            55 => Ok(Self::SetCookie),
            1..=STATIC_ENTRIES => Ok(Self::Other),
            _ => Err(GARBAGE),
        }
    }

    fn of_text(text: &[u8]) -> Self {
        match text {
            b":status" => Self::Status,
            b"content-length" => Self::ContentLength,
            b"set-cookie" => Self::SetCookie,
            _ => Self::Other,
        }
    }
}

/// A string as it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    bytes: &'a [u8],
    is_huffman: bool,
}

impl<'a> Text<'a> {
    pub fn decode(self) -> Result<Cow<'a, [u8]>, Failure> {
        if !self.is_huffman {
            return Ok(Cow::Borrowed(self.bytes));
        }
        let mut text = Vec::new();
        huffman::decode(self.bytes, &mut text)?;
        Ok(Cow::Owned(text))
    }

    /// Returns the number that the digits of the string are.
    pub fn number(self) -> Result<u64, Failure> {
        decimal::parse(&self.decode()?).ok_or(GARBAGE)
    }
}

/// Reads a whole block; `each` gets its fields.
pub fn read(
    block: &[u8],
    mut each: impl FnMut(Name, Text) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut rest = block;
    while let Some(first) = rest.first().copied() {
        match first {
            0x80.. => {
                let index = read_integer(&mut rest, 7)?;
                let name = Name::of_entry(index)?;
                if name == Name::Status {
                    let bytes = STATUSES[index - FIRST_STATUS];
                    each(name, Text { bytes, is_huffman: false })?;
                }
            }
            // The new size of the table.
            0x20..=0x3f => {
                if read_integer(&mut rest, 5)? > 0 {
                    return Err(GARBAGE);
                }
            }
            // A field that is to be kept in the table, which has no room, or is not.
            _ => {
                let prefix = if first >= 0x40 { 6 } else { 4 };
                let name = match read_integer(&mut rest, prefix)? {
                    0 => Name::of_text(&read_text(&mut rest)?.decode()?),
                    index => Name::of_entry(index)?,
                };
                let value = read_text(&mut rest)?;
                if name != Name::Other {
                    each(name, value)?;
                }
            }
        }
    }
    Ok(())
}

fn read_text<'a>(rest: &mut &'a [u8]) -> Result<Text<'a>, Failure> {
    let is_huffman = rest.first().is_some_and(|first| first & 0x80 != 0);
    let length = read_integer(rest, 7)?;
    let (bytes, after) = rest.split_at_checked(length).ok_or(GARBAGE)?;
    *rest = after;
    Ok(Text { bytes, is_huffman })
}

fn read_byte(rest: &mut &[u8]) -> Result<usize, Failure> {
    let (first, after) = rest.split_first().ok_or(GARBAGE)?;
    *rest = after;
    Ok(usize::from(*first))
}

/// Reads an integer that begins in the last `prefix` bits of a byte.
fn read_integer(rest: &mut &[u8], prefix: u32) -> Result<usize, Failure> {
    let most = (1 << prefix) - 1;
    let mut value = read_byte(rest)? & most;
    if value < most {
        return Ok(value);
    }
    // Nothing in a block of bounded length is larger than four bytes say.
    for shift in [0, 7, 14, 21] {
        let byte = read_byte(rest)?;
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(GARBAGE)
}

/// Appends an integer to `out`; its first byte has the bits of `first` before those `prefix` ones.
pub fn write_integer(first: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        return out.push(first | value as u8);
    }
    out.push(first | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

pub fn write_text(text: &[u8], out: &mut Vec<u8>) {
    write_integer(0, 7, text.len(), out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fields(block: &[u8]) -> Result<Vec<(Name, String)>, Failure> {
        let mut fields = Vec::new();
        read(block, |name, value| {
            fields.push((name, String::from_utf8_lossy(&value.decode()?).into_owned()));
            Ok(())
        })?;
        Ok(fields)
    }

    #[test]
    fn integers_are_those_of_the_standard() {
        for (first, prefix, value, bytes) in [
            (0, 5, 10, &[10u8][..]),
            (0, 5, 1337, &[31, 154, 10]),
            (0x80, 7, 42, &[0x80 | 42]),
            (0x40, 6, 63, &[0x7f, 0]),
        ] {
            let mut out = Vec::new();
            write_integer(first, prefix, value, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(read_integer(&mut &out[..], prefix), Ok(value));
        }
        assert_eq!(read_integer(&mut &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..], 7), Err(GARBAGE));
    }

    #[test]
    fn the_fields_that_matter_are_read() {
        let status = |text: &str| vec![(Name::Status, text.to_owned())];
        assert_eq!(fields(&[0x88]).unwrap(), status("200"));
        assert_eq!(fields(&[0x20, 0x8e]).unwrap(), status("500"));
        // A response of the standard's appendix: 302 with three other fields, all to be indexed.
        let mut block = vec![0x48, 0x82, 0x64, 0x02, 0x58, 0x85, 0xae, 0xc3, 0x77, 0x1a, 0x4b];
        assert_eq!(fields(&block).unwrap(), status("302"));
        block.extend(b"\x0f\x0d\x03123\x5f\x01x\x00\x0acontent-le\x01y\x77\x03a=b\xbd");
        let read = fields(&block).unwrap();
        assert_eq!(
            read[1..],
            [(Name::ContentLength, "123".into()), (Name::SetCookie, "a=b".into())]
        );
        assert_eq!(fields(b"\x00\x07:status\x03201").unwrap(), status("201"));
    }

    #[test]
    fn what_is_no_block_is_refused() {
        for block in [
            // Entries that are in no table, a table of some size, a text without its end.
            &[0x80][..],
            &[0xbe],
            &[0xff, 0x00],
            &[0x7f, 0x00, 0x00],
            &[0x21],
            &[0x48, 3, b'2'],
            &[0x48],
        ] {
            assert_eq!(fields(block), Err(GARBAGE), "{block:?}");
        }
        let number = |bytes| Text { bytes, is_huffman: false }.number();
        assert_eq!(
            (number(b"20"), number(b""), number(b"2x")),
            (Ok(20), Err(GARBAGE), Err(GARBAGE))
        );
        assert_eq!(number(b"99999999999999999999"), Err(GARBAGE));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

        #[test]
        fn any_bytes_are_read_or_refused(block in proptest::collection::vec(any::<u8>(), 0..60)) {
            let _ = fields(&block);
        }
    }
}
