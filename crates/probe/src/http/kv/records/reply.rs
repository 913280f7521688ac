//! Whole replies of Redis (RESP2) whose content matters: records, and the keys of a range.
use crate::http::kv::reader::{line_length, number, redis_failure};
use crate::http::requests::failures::{Failure, GARBAGE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordReply<'a> {
    /// A status or a number.
    Plain,
    Error(Failure),
    /// Strings, as they came: each with its length before it.
    Strings {
        count: u64,
        text: &'a [u8],
    },
}

/// Reads a reply and returns the number of its bytes; `None` where it is not whole. A reply of more
/// than `bytes_max` bytes is refused.
#[inline]
pub fn read(bytes: &[u8], bytes_max: usize) -> Result<Option<(usize, RecordReply<'_>)>, Failure> {
    let Some(length) = line_length(bytes)? else { return Ok(None) };
    let (kind, rest) = bytes[..length].split_first().ok_or(GARBAGE)?;
    let begin = length + 2;
    let reply = match kind {
        b'+' => RecordReply::Plain,
        b':' => {
            number(rest.strip_prefix(b"-").unwrap_or(rest))?;
            RecordReply::Plain
        }
        b'-' => RecordReply::Error(redis_failure(rest)),
        b'*' => {
            let (count, mut end) = (number(rest)?, begin);
            if count > bytes_max as u64 {
                return Err(GARBAGE);
            }
            for _ in 0..count {
                match first_string(&bytes[end.min(bytes.len())..])? {
                    Some((whole, _)) => end = end.saturating_add(whole),
                    None => return Ok(None),
                }
                if end > bytes_max {
                    return Err(GARBAGE);
                }
            }
            if end > bytes.len() {
                return Ok(None);
            }
            return Ok(Some((end, RecordReply::Strings { count, text: &bytes[begin..end] })));
        }
        _ => return Err(GARBAGE),
    };
    Ok(Some((begin, reply)))
}

/// Returns the number of bytes of the first string with its length and its ends, and that of the
/// string alone; `None` where the length has not come.
#[inline]
pub fn first_string(text: &[u8]) -> Result<Option<(usize, usize)>, Failure> {
    let Some(length) = line_length(text)? else { return Ok(None) };
    let digits = text[..length].strip_prefix(b"$").ok_or(GARBAGE)?;
    let string = usize::try_from(number(digits)?).map_err(|_| GARBAGE)?;
    Ok(Some(((length + 4).saturating_add(string), string)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::requests::failures::OUT_OF_MEMORY;

    #[test]
    fn a_reply_is_read_when_it_is_whole() {
        let cases: [(&[u8], RecordReply<'_>); 5] = [
            (b"+OK\r\n", RecordReply::Plain),
            (b":-12\r\n", RecordReply::Plain),
            (b"-OOM no\r\n", RecordReply::Error(OUT_OF_MEMORY)),
            (b"*0\r\n", RecordReply::Strings { count: 0, text: b"" }),
            (
                b"*2\r\n$1\r\na\r\n$0\r\n\r\n",
                RecordReply::Strings { count: 2, text: b"$1\r\na\r\n$0\r\n\r\n" },
            ),
        ];
        for (bytes, reply) in cases {
            for length in 0..bytes.len() {
                assert_eq!(read(&bytes[..length], 100), Ok(None), "{length} of {bytes:?}");
            }
            let more = [bytes, b"+"].concat();
            assert_eq!(read(&more, 100), Ok(Some((bytes.len(), reply))), "{bytes:?}");
        }
    }

    #[test]
    fn what_is_no_reply_or_too_long_is_garbage() {
        let cases: [&[u8]; 7] = [
            b"HTTP/1.1 400\r\n",
            b"*x\r\n",
            b"*1\r\n:1\r\n",
            b"*1\r\n$-1\r\n",
            b"*101\r\n",
            b"*1\r\n$18446744073709551615\r\n",
            b"$1\r\na\r\n",
        ];
        for bytes in cases {
            assert_eq!(read(bytes, 100), Err(GARBAGE), "{bytes:?}");
        }
    }
}
