//! The open streams of one connection, and the windows that limit what they may send.
use super::frame::{self, DATA, END_STREAM, PAYLOAD_BYTES, WINDOW_MAX};
use crate::http::http1::expected::BodyCheck;
use crate::http::requests::failures::{Failure, GARBAGE};
use std::collections::VecDeque;

/// A request that is being answered.
#[derive(Debug, Default)]
pub struct RequestStream {
    pub id: u32,
    pub class: u8,
    /// 0 until the head of the response has come.
    pub status: u16,
    /// Length of the body by its head, and so far.
    pub stated: Option<u64>,
    pub received: u64,
    pub check: BodyCheck,
    /// Bytes that may be sent, which may be less than none.
    pub window: i64,
    /// The body of the request, and how much of it was sent.
    pub body: Vec<u8>,
    pub sent: usize,
}

#[derive(Debug, Default)]
pub struct OpenStreams {
    /// In the order of their identifiers, which is that of their requests in flight.
    pub open: VecDeque<RequestStream>,
    /// The window of the connection, and of a new stream.
    pub window: i64,
    pub initial_window: i64,
}

impl OpenStreams {
    #[inline]
    pub fn position(&self, id: u32) -> Option<usize> {
        if self.open.front()?.id == id {
            return Some(0);
        }
        self.open.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    /// Sends of a stream's body what the windows allow.
    pub fn send_body(&mut self, index: usize, out: &mut Vec<u8>) {
        let stream = &mut self.open[index];
        while stream.sent < stream.body.len() && self.window.min(stream.window) > 0 {
            let allowed = self.window.min(stream.window).min(PAYLOAD_BYTES as i64) as usize;
            let rest = &stream.body[stream.sent..];
            let count = allowed.min(rest.len());
            let flags = if count == rest.len() { END_STREAM } else { 0 };
            frame::write_head(count, DATA, flags, stream.id, out);
            out.extend_from_slice(&rest[..count]);
            stream.sent += count;
            self.window -= count as i64;
            stream.window -= count as i64;
        }
    }

    /// Opens the window of a stream, or that of the connection for stream 0.
    pub fn open_window(&mut self, id: u32, bytes: u32, out: &mut Vec<u8>) -> Result<(), Failure> {
        let bytes = i64::from(bytes & WINDOW_MAX);
        let index = self.position(id);
        let window = match index {
            Some(index) => &mut self.open[index].window,
            None if id == 0 => &mut self.window,
            // Its stream has ended.
            None => return Ok(()),
        };
        *window += bytes;
        if bytes == 0 || *window > i64::from(WINDOW_MAX) {
            return Err(GARBAGE);
        }
        self.send_bodies(out);
        Ok(())
    }

    /// Takes the window of new streams, which changes that of open ones too.
    pub fn set_initial_window(&mut self, bytes: u32, out: &mut Vec<u8>) -> Result<(), Failure> {
        if bytes > WINDOW_MAX {
            return Err(GARBAGE);
        }
        let change = i64::from(bytes) - self.initial_window;
        self.initial_window = i64::from(bytes);
        self.open.iter_mut().for_each(|stream| stream.window += change);
        self.send_bodies(out);
        Ok(())
    }

    fn send_bodies(&mut self, out: &mut Vec<u8>) {
        for index in 0..self.open.len() {
            self.send_body(index, out);
        }
    }
}
