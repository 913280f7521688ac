//! One connection of HTTP/2 (RFC 9113) as a client sees it. Memory is bounded: frames other than those of
//! bodies are kept until they are whole, a header block until it has ended, a body never.
use super::block::HeaderTable;
use super::frame::{self, FrameHead, HEAD_BYTES};
use super::headers::{block_of, OpenBlock, ResponseHead};
use super::streams::{OpenStreams, RequestStream};
use crate::http::http1::cookies::Cookies;
use crate::http::http1::expected::Expected;
use crate::http::requests::failures::{Failure, GARBAGE, GOAWAY, STREAM_RESET};

/// Frames that ask for an answer, since the last response began. More are an attack.
const DEMANDS: usize = 10_000;
/// Streams that may be open before the server has said how many.
const STREAMS_AT_START: usize = 100;
/// A window is opened again once so much of it was used.
const WINDOW_USED: u32 = 1 << 30;

#[derive(Debug, Default)]
pub struct Http2Session {
    pub streams: OpenStreams,
    next_id: u32,
    pub table: HeaderTable,
    /// Whether the size of the server's table has to be stated before the next field.
    pub states_table: bool,
    /// Frames that wait to be written.
    pub output: Vec<u8>,
    /// Whether the server's settings have come, which come first.
    is_settled: bool,
    max_streams: usize,
    /// Whether a response has begun on this connection.
    is_answered: bool,
    demands: usize,
    /// Whether the server takes no further streams.
    is_closing: bool,
    /// Bytes of bodies since the connection's window was last opened.
    used: u32,
    /// The body that is being read, and the header block.
    data: Option<Data>,
    block: Option<OpenBlock>,
    /// What the user of this connection got; nothing unless cookies are kept.
    cookies: Option<Box<Cookies>>,
}

#[derive(Clone, Copy, Debug)]
struct Data {
    id: u32,
    left: usize,
    padding: usize,
    ends: bool,
}

/// What a frame means for the request at a position.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamEvent {
    Begun(usize),
    Complete(usize),
    Failed(usize, Failure),
    /// No request that was sent will be answered any more.
    Ended,
}

impl Http2Session {
    /// Begins with a new connection of the same user.
    pub fn restart(&mut self) {
        let window = i64::from(frame::WINDOW);
        *self = Self {
            streams: OpenStreams { window, initial_window: window, ..OpenStreams::default() },
            next_id: 1,
            max_streams: STREAMS_AT_START,
            cookies: self.cookies.take(),
            ..Self::default()
        };
        frame::write_preface(&mut self.output);
    }

    /// The value of the Cookie header; empty where there is none.
    pub fn cookies(&self) -> &str {
        self.cookies.as_ref().map_or("", |cookies| &cookies.header)
    }

    /// Returns how many further streams may be opened.
    #[inline]
    pub fn room(&self) -> usize {
        if self.is_closing {
            return 0;
        }
        self.max_streams.saturating_sub(self.streams.open.len())
    }

    /// Opens a stream for a request with this body; returns its identifier.
    #[inline]
    pub fn open(&mut self, class: u8, body: Vec<u8>) -> u32 {
        let id = self.next_id;
        self.next_id += 2;
        // All identifiers have been used.
        self.is_closing |= self.next_id > frame::WINDOW_MAX - 2;
        let window = self.streams.initial_window;
        self.streams.open.push_back(RequestStream {
            id,
            class,
            window,
            body,
            ..RequestStream::default()
        });
        id
    }

    /// Whether the connection can only be closed.
    pub fn is_over(&self) -> bool {
        self.is_closing && self.streams.open.is_empty()
    }

    /// Takes the stream at a position, which has ended.
    #[inline]
    pub fn end(&mut self, index: usize) -> Option<RequestStream> {
        let stream = self.streams.open.remove(index)?;
        if stream.sent < stream.body.len() {
            // The server did not wait for the whole body.
            frame::write_cancel(stream.id, &mut self.output);
        }
        Some(stream)
    }

    /// Gives up the oldest stream.
    pub fn cancel_oldest(&mut self) -> bool {
        let Some(stream) = self.streams.open.pop_front() else { return false };
        frame::write_cancel(stream.id, &mut self.output);
        true
    }

    /// Reads on, up to the next event; returns the number of bytes used too.
    #[inline]
    pub fn read(
        &mut self,
        expected: &Expected,
        bytes: &[u8],
    ) -> Result<(usize, Option<StreamEvent>), Failure> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if self.data.is_some() {
                let (count, event) = self.read_data(expected, rest);
                used += count;
                if event.is_some() || self.data.is_some() {
                    return Ok((used, event));
                }
                continue;
            }
            let Some(head) = FrameHead::read(rest)? else { return Ok((used, None)) };
            if !self.is_settled && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
                return Err(GARBAGE);
            }
            let needed = match head.kind {
                frame::DATA => usize::from(head.has(frame::PADDED)),
                _ => head.length,
            };
            let Some(payload) = rest.get(HEAD_BYTES..HEAD_BYTES + needed) else {
                return Ok((used, None));
            };
            used += HEAD_BYTES + needed;
            if let Some(event) = self.take_frame(expected, head, payload)? {
                return Ok((used, Some(event)));
            }
        }
    }

    fn take_frame(
        &mut self,
        expected: &Expected,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<StreamEvent>, Failure> {
        if self.block.is_some() != (head.kind == frame::CONTINUATION) {
            return Err(GARBAGE);
        }
        match head.kind {
            frame::DATA => self.begin_data(head, payload)?,
            frame::HEADERS => return self.take_headers(expected, head, payload),
            frame::CONTINUATION => return self.take_continuation(expected, head, payload),
            frame::RST_STREAM => {
                frame::number(payload)?;
                let index = self.streams.position(head.stream);
                return Ok(index.map(|index| StreamEvent::Failed(index, STREAM_RESET)));
            }
            frame::SETTINGS if !head.has(frame::ACK) => self.take_settings(payload)?,
            frame::PING if !head.has(frame::ACK) => {
                let payload: [u8; 8] = payload.try_into().map_err(|_| GARBAGE)?;
                self.count_demand()?;
                frame::write_head(8, frame::PING, frame::ACK, 0, &mut self.output);
                self.output.extend_from_slice(&payload);
            }
            frame::WINDOW_UPDATE => {
                let bytes = frame::number(payload)?;
                self.streams.open_window(head.stream, bytes, &mut self.output)?;
            }
            frame::GOAWAY => return self.take_goaway(payload),
            frame::PUSH_PROMISE => return Err(GARBAGE),
            _ => {}
        }
        Ok(None)
    }

    fn count_demand(&mut self) -> Result<(), Failure> {
        self.demands += 1;
        if self.demands > DEMANDS {
            return Err(GARBAGE);
        }
        Ok(())
    }

    fn take_settings(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let (settings, []) = payload.as_chunks::<6>() else { return Err(GARBAGE) };
        self.count_demand()?;
        if !self.is_settled {
            self.is_settled = true;
            self.max_streams = usize::MAX;
        }
        for setting in settings {
            let [high, low, value @ ..] = *setting;
            let value = u32::from_be_bytes(value);
            match u16::from_be_bytes([high, low]) {
                // The shared fields were chosen for a table of the usual size.
                frame::TABLE_SIZE if value < super::block::TABLE_BYTES as u32 => {
                    self.table = HeaderTable::Unused;
                    self.states_table = true;
                }
                frame::MAX_STREAMS => self.max_streams = value as usize,
                frame::INITIAL_WINDOW => {
                    self.streams.set_initial_window(value, &mut self.output)?;
                }
                _ => {}
            }
        }
        frame::write_head(0, frame::SETTINGS, frame::ACK, 0, &mut self.output);
        Ok(())
    }

    /// A server that takes no more requests still answers those up to the last one it names. One that
    /// never answered any would do so again on the next connection.
    fn take_goaway(&mut self, payload: &[u8]) -> Result<Option<StreamEvent>, Failure> {
        let last = frame::number(payload)? & frame::WINDOW_MAX;
        let code = frame::number(payload.get(4..).ok_or(GARBAGE)?)?;
        if code != 0 || !self.is_answered {
            return Err(GOAWAY);
        }
        self.is_closing = true;
        let open = &mut self.streams.open;
        open.truncate(open.partition_point(|stream| stream.id <= last));
        Ok(open.is_empty().then_some(StreamEvent::Ended))
    }

    fn take_headers(
        &mut self,
        expected: &Expected,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<StreamEvent>, Failure> {
        let block = block_of(head, payload)?;
        if head.has(frame::END_HEADERS) {
            return self.take_block(expected, head, block);
        }
        self.block = Some(OpenBlock::new(head, block));
        Ok(None)
    }

    fn take_continuation(
        &mut self,
        expected: &Expected,
        head: FrameHead,
        payload: &[u8],
    ) -> Result<Option<StreamEvent>, Failure> {
        let mut block = self.block.take().ok_or(GARBAGE)?;
        if block.add(head, payload)? {
            return self.take_block(expected, block.head, &block.bytes);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Takes the head of a response, of an interim response, or the fields behind a body.
    fn take_block(
        &mut self,
        expected: &Expected,
        head: FrameHead,
        block: &[u8],
    ) -> Result<Option<StreamEvent>, Failure> {
        let Some(index) = self.position(head.stream)? else { return Ok(None) };
        let fields = ResponseHead::read(block, expected.keep_cookies.then_some(&mut self.cookies))?;
        let (stream, ends) = (&mut self.streams.open[index], head.has(frame::END_STREAM));
        if stream.status == 0 {
            match fields.status.ok_or(GARBAGE)? {
                100..=199 if !ends => {
                    self.count_demand()?;
                    return Ok(None);
                }
                status @ 200..=999 => stream.status = status as u16,
                _ => return Err(GARBAGE),
            }
            stream.stated = fields.length;
            (self.is_answered, self.demands) = (true, 0);
        } else if !ends || fields.status.is_some() {
            return Err(GARBAGE);
        }
        Ok(Some(if ends { StreamEvent::Complete(index) } else { StreamEvent::Begun(index) }))
    }

    /// Returns the position of a stream; `None` once it has ended. It has to have been opened.
    #[inline]
    fn position(&self, id: u32) -> Result<Option<usize>, Failure> {
        if id.is_multiple_of(2) || id >= self.next_id {
            return Err(GARBAGE);
        }
        Ok(self.streams.position(id))
    }

    #[inline]
    fn begin_data(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Failure> {
        let padding = payload.first().copied().map_or(0, usize::from);
        let left = head.length.checked_sub(payload.len() + padding).ok_or(GARBAGE)?;
        let index = self.position(head.stream)?;
        if index.is_some_and(|index| self.streams.open[index].status == 0) {
            return Err(GARBAGE);
        }
        self.data =
            Some(Data { id: head.stream, left, padding, ends: head.has(frame::END_STREAM) });
        self.use_window(head.length as u32);
        Ok(())
    }

    /// Opens the connection's window again before it is used up.
    #[inline]
    fn use_window(&mut self, bytes: u32) {
        self.used += bytes;
        if self.used >= WINDOW_USED {
            frame::write_window_update(0, self.used, &mut self.output);
            self.used = 0;
        }
    }

    /// Reads of a body what has come of its frame.
    #[inline]
    fn read_data(&mut self, expected: &Expected, bytes: &[u8]) -> (usize, Option<StreamEvent>) {
        let Some(data) = &mut self.data else { return (0, None) };
        let index = self.streams.position(data.id);
        let body = data.left.min(bytes.len());
        let padding = data.padding.min(bytes.len() - body);
        data.left -= body;
        data.padding -= padding;
        if let Some(stream) = index.map(|index| &mut self.streams.open[index]) {
            let before = stream.received;
            stream.received += body as u64;
            stream.check.add(expected, &bytes[..body]);
            // The window of a stream is opened again when so much of it was used.
            let window = u64::from(WINDOW_USED);
            if before / window != stream.received / window {
                frame::write_window_update(data.id, WINDOW_USED, &mut self.output);
            }
        }
        if data.left + data.padding > 0 {
            return (body + padding, None);
        }
        let event = index.filter(|_| data.ends).map(StreamEvent::Complete);
        self.data = None;
        (body + padding, event)
    }
}
