//! Where a body ends (RFC 9112, section 6): its bytes are handed on as they come, and none is kept.
use crate::http::requests::failures::{Failure, GARBAGE};

/// A longer line of a chunk's size is none.
const LINE_BYTES: usize = 4096;
/// All trailer lines together.
const TRAILER_BYTES: usize = 64 << 10;

/// How much of a body is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Length(u64),
    UntilClose,
    /// In chunks: the line with the size of the next one.
    ChunkSize,
    ChunkData(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// Lines after the last chunk, with the number of their bytes so far.
    Trailer(usize),
    Complete,
}

impl Framing {
    /// Takes what it can of `bytes` and returns how many it took; `each` gets the body's bytes.
    pub fn take(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) -> Result<usize, Failure> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let step = match *self {
                Self::Complete | Self::Length(0) => {
                    *self = Self::Complete;
                    return Ok(used);
                }
                _ if rest.is_empty() => return Ok(used),
                Self::UntilClose => {
                    each(rest);
                    rest.len()
                }
                Self::Length(left) => {
                    let data = &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
                    each(data);
                    *self = Self::Length(left - data.len() as u64);
                    data.len()
                }
                Self::ChunkData(left) => {
                    let data = &rest[..rest.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
                    each(data);
                    let left = left - data.len() as u64;
                    *self = if left == 0 { Self::ChunkEnd } else { Self::ChunkData(left) };
                    data.len()
                }
                Self::ChunkSize | Self::ChunkEnd | Self::Trailer(_) => {
                    let Some(end) = line_end(rest)? else { return Ok(used) };
                    self.next_line(trimmed(&rest[..end]))?;
                    end + 1
                }
            };
            used += step;
        }
    }

    fn next_line(&mut self, line: &[u8]) -> Result<(), Failure> {
        *self = match *self {
            Self::ChunkSize => match chunk_size(line).ok_or(GARBAGE)? {
                0 => Self::Trailer(0),
                size => Self::ChunkData(size),
            },
            Self::ChunkEnd if line.is_empty() => Self::ChunkSize,
            Self::Trailer(_) if line.is_empty() => Self::Complete,
            Self::Trailer(bytes) if bytes + line.len() < TRAILER_BYTES => {
                // An empty line is a byte too, so that they end in any case.
                Self::Trailer(bytes + line.len() + 1)
            }
            _ => return Err(GARBAGE),
        };
        Ok(())
    }
}

/// Returns the place of the next line feed, if it has come.
fn line_end(bytes: &[u8]) -> Result<Option<usize>, Failure> {
    match bytes.iter().take(LINE_BYTES).position(|byte| *byte == b'\n') {
        None if bytes.len() >= LINE_BYTES => Err(GARBAGE),
        end => Ok(end),
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Reads the size of a chunk; extensions after a semicolon are ignored.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let end = line.iter().position(|byte| matches!(byte, b';' | b' ' | b'\t'));
    let digits = &line[..end.unwrap_or(line.len())];
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let digit = |size: u64, byte: &u8| Some(size << 4 | u64::from(char::from(*byte).to_digit(16)?));
    digits.iter().try_fold(0, digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads in pieces of `piece` bytes as the engine does; what was left over, and the body.
    fn read(
        mut framing: Framing,
        input: &[u8],
        piece: usize,
    ) -> Result<(Vec<u8>, String), Failure> {
        let (mut unread, mut body) = (Vec::new(), Vec::new());
        for part in input.chunks(piece) {
            unread.extend_from_slice(part);
            let used = framing.take(&unread, |bytes| body.extend_from_slice(bytes))?;
            unread.drain(..used);
        }
        let ended = if framing == Framing::Complete { "" } else { "…" };
        Ok((unread, String::from_utf8(body).unwrap() + ended))
    }

    #[test]
    fn bodies_are_the_same_however_they_are_split() {
        let chunked =
            b"4\r\nWiki\r\n6;a=b\r\npedia \r\nE \r\nin \r\n\r\nchunks.\r\n0\r\nX: y\r\n\r\nnext";
        for piece in 1..=chunked.len() {
            let (rest, body) = read(Framing::ChunkSize, chunked, piece).unwrap();
            assert_eq!(
                (rest.as_slice(), body.as_str()),
                (&b"next"[..], "Wikipedia in \r\n\r\nchunks.")
            );
            let (rest, body) = read(Framing::Length(5), b"helloHTTP", piece).unwrap();
            assert_eq!((rest.as_slice(), body.as_str()), (&b"HTTP"[..], "hello"));
            let (rest, body) = read(Framing::UntilClose, b"hello", piece).unwrap();
            assert_eq!((rest.len(), body.as_str()), (0, "hello…"));
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        let long = "5".repeat(LINE_BYTES + 1);
        for text in ["x\r\n", "\r\n", "-1\r\n", "11111111111111111\r\n", "1\r\nab\r\n", &long] {
            assert_eq!(read(Framing::ChunkSize, text.as_bytes(), 3), Err(GARBAGE), "{text}");
        }
        let endless = format!("0\r\n{}", "a: b\r\n".repeat(TRAILER_BYTES));
        assert_eq!(read(Framing::ChunkSize, endless.as_bytes(), 100), Err(GARBAGE));
        // The largest size is read, and nothing is allocated for it.
        let (_, body) = read(Framing::ChunkSize, b"ffffffffffffffff\r\nab", 4).unwrap();
        assert_eq!(body, "ab…");
    }
}
