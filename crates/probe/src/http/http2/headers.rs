//! Header blocks as they come: in a frame, which others may continue, and what they state.
use super::frame::{self, FrameHead};
use super::hpack::{self, Name};
use crate::http::http1::cookies::Cookies;
use crate::http::requests::failures::{Failure, ENDLESS_HEADERS, GARBAGE};

/// A header block in more bytes or frames than these has no end.
const BLOCK_BYTES: usize = 64 << 10;
const BLOCK_FRAMES: usize = 128;

/// A header block of which the end has not come.
#[derive(Debug)]
pub struct OpenBlock {
    pub head: FrameHead,
    pub bytes: Vec<u8>,
    frames: usize,
}

impl OpenBlock {
    pub fn new(head: FrameHead, start: &[u8]) -> Self {
        Self { head, bytes: start.to_vec(), frames: 1 }
    }

    /// Adds a frame that continues the block; returns whether that has ended.
    pub fn add(&mut self, head: FrameHead, payload: &[u8]) -> Result<bool, Failure> {
        if head.stream != self.head.stream {
            return Err(GARBAGE);
        }
        self.bytes.extend_from_slice(payload);
        self.frames += 1;
        if self.bytes.len() > BLOCK_BYTES || self.frames > BLOCK_FRAMES {
            return Err(ENDLESS_HEADERS);
        }
        Ok(head.has(frame::END_HEADERS))
    }
}

/// Returns the block in the payload of a frame, without padding and priority.
#[inline]
pub fn block_of(head: FrameHead, payload: &[u8]) -> Result<&[u8], Failure> {
    let mut block = payload;
    if head.has(frame::PADDED) {
        let (padding, rest) = block.split_first().ok_or(GARBAGE)?;
        let length = rest.len().checked_sub(usize::from(*padding)).ok_or(GARBAGE)?;
        block = &rest[..length];
    }
    if head.has(frame::PRIORITY) {
        block = block.get(5..).ok_or(GARBAGE)?;
    }
    Ok(block)
}

/// What the head of a response states.
#[derive(Default)]
pub struct ResponseHead {
    pub status: Option<u64>,
    pub length: Option<u64>,
}

impl ResponseHead {
    /// Reads a whole block. cookies: where cookies go if they are kept.
    #[inline]
    pub fn read(
        block: &[u8],
        mut cookies: Option<&mut Option<Box<Cookies>>>,
    ) -> Result<Self, Failure> {
        let mut fields = Self::default();
        hpack::read(block, |name, value| {
            match name {
                Name::Status => fields.status = Some(value.number()?),
                Name::ContentLength => fields.length = Some(value.number()?),
                Name::SetCookie => {
                    if let Some(cookies) = &mut cookies {
                        cookies.get_or_insert_default().set(&value.decode()?);
                    }
                }
                Name::Other => {}
            }
            Ok(())
        })?;
        Ok(fields)
    }
}
