//! Frames (RFC 9113, section 4): their heads, and those that a client sends.
use crate::http::requests::failures::{Failure, GARBAGE};

pub const HEAD_BYTES: usize = 9;
/// The longest payload that a side may send unless the other one allows more, which is not done here.
pub const PAYLOAD_BYTES: usize = 16 << 10;
/// Windows and identifiers have 31 bits.
pub const WINDOW_MAX: u32 = (1 << 31) - 1;
/// The window of a connection, and of a stream unless a side says otherwise, at the start.
pub const WINDOW: u32 = 65_535;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
pub const PRIORITY: u8 = 0x20;

pub const TABLE_SIZE: u16 = 1;
pub const ENABLE_PUSH: u16 = 2;
pub const MAX_STREAMS: u16 = 3;
pub const INITIAL_WINDOW: u16 = 4;

/// The error of a stream that is not wanted any more.
const CANCEL: u32 = 8;

#[derive(Clone, Copy, Debug)]
pub struct FrameHead {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl FrameHead {
    /// Returns the head of the frame that `bytes` begin with, once it has come.
    #[inline]
    pub fn read(bytes: &[u8]) -> Result<Option<Self>, Failure> {
        let Some((head, _)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [high, middle, low, kind, flags, rest @ ..] = *head;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > PAYLOAD_BYTES {
            return Err(GARBAGE);
        }
        let stream = u32::from_be_bytes(rest) & WINDOW_MAX;
        Ok(Some(Self { length, kind, flags, stream }))
    }

    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Returns the number in the first four bytes of a payload.
pub fn number(payload: &[u8]) -> Result<u32, Failure> {
    payload.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)).ok_or(GARBAGE)
}

#[inline]
fn head(length: usize, kind: u8, flags: u8, stream: u32) -> [u8; HEAD_BYTES] {
    let [_, high, middle, low] = (length as u32).to_be_bytes();
    let [a, b, c, d] = stream.to_be_bytes();
    [high, middle, low, kind, flags, a, b, c, d]
}

#[inline]
pub fn write_head(length: usize, kind: u8, flags: u8, stream: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&head(length, kind, flags, stream));
}

/// Appends what a client begins a connection with: windows that never hold a server up, no table of
/// fields, no pushed streams.
pub fn write_preface(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    write_head(18, SETTINGS, 0, 0, out);
    for (setting, value) in [(TABLE_SIZE, 0), (ENABLE_PUSH, 0), (INITIAL_WINDOW, WINDOW_MAX)] {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    write_window_update(0, WINDOW_MAX - WINDOW, out);
}

pub fn write_window_update(stream: u32, bytes: u32, out: &mut Vec<u8>) {
    write_head(4, WINDOW_UPDATE, 0, stream, out);
    out.extend_from_slice(&bytes.to_be_bytes());
}

pub fn write_cancel(stream: u32, out: &mut Vec<u8>) {
    write_head(4, RST_STREAM, 0, stream, out);
    out.extend_from_slice(&CANCEL.to_be_bytes());
}

/// Makes a frame of the header block that `out` has from `start` on, behind room for its head; of a
/// longer block several.
#[inline]
pub fn close_headers(start: usize, flags: u8, stream: u32, out: &mut Vec<u8>) {
    let length = out.len() - start - HEAD_BYTES;
    if length <= PAYLOAD_BYTES {
        let head = head(length, HEADERS, flags | END_HEADERS, stream);
        return out[start..start + HEAD_BYTES].copy_from_slice(&head);
    }
    let block = out.split_off(start).split_off(HEAD_BYTES);
    let parts = block.chunks(PAYLOAD_BYTES);
    let last = parts.len() - 1;
    for (index, part) in parts.enumerate() {
        let (kind, own) = if index == 0 { (HEADERS, flags) } else { (CONTINUATION, 0) };
        let end = if index == last { END_HEADERS } else { 0 };
        write_head(part.len(), kind, own | end, stream, out);
        out.extend_from_slice(part);
    }
}
