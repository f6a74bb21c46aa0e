//! One connection: what frames mean.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use fluke_hpack::Decoder;
use tokio::time::Instant;

use super::headers;
use super::stream::{Input, Stream};
use crate::desk::{Desk, Head};
use crate::raw::frame::{self, Frame, PREFACE};
use crate::{Protocol, course};

/// One connection, without its socket.
pub(super) struct Session {
    /// What waits to be written.
    pub(super) out: BytesMut,
    pub(super) desk: Arc<Desk>,
    pub(super) streams: BTreeMap<u32, Stream>,
    /// What the client lets the connection send.
    pub(super) window: i64,
    pub(super) largest_frame: usize,
    /// The highest stream that the client opened.
    pub(super) last_seen: u32,
    /// The highest stream that was acted on: never announced as not acted on.
    pub(super) last_acted: u32,
    /// The last stream id that was announced.
    pub(super) announced: Option<u32>,
    /// How the connection ends once no stream is open.
    pub(super) winding_down: Option<End>,
    /// How the connection ends once everything is written.
    pub(super) ending: Option<End>,
    /// Streams that have something to do at a time; the number keeps equal times apart.
    pub(super) timers: BTreeMap<(Instant, u64), u32>,
    pub(super) timer_count: u64,
    decoder: Decoder<'static>,
    number: u64,
    prefaced: bool,
    greeted: bool,
    /// What the client lets a new stream send.
    initial_window: i64,
    /// The header block that is being continued.
    block: Option<Block>,
}

/// How a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Close,
    Reset,
}

struct Block {
    stream: u32,
    end_stream: bool,
    bytes: Vec<u8>,
}

/// An error of the connection, by its code.
struct Broken(u32);

type Handled = Result<(), Broken>;

/// The window that streams and connections start with (RFC 9113, section 6.9.2).
const WINDOW: i64 = 65_535;

/// The largest window (RFC 9113, section 6.9.1).
pub(super) const LARGEST_WINDOW: i64 = 0x7fff_ffff;

/// How much the connection's window is opened at the start, so that a stalled stream, whose own
/// window stays shut, does not stop the others.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// The largest frame that is taken, the smallest value allowed (RFC 9113, section 6.5.2).
const FRAME_LIMIT: usize = 16_384;

/// The most streams at a time; bounds what a connection can make the venue hold.
const STREAM_LIMIT: usize = 1024;

/// The size of the decoder's dynamic table, the default (RFC 9113, section 6.5.2).
const TABLE: usize = 4096;

// === impl Session ===

impl Session {
    pub(super) fn new(desk: Arc<Desk>, number: u64) -> Self {
        let mut out = BytesMut::new();
        let streams = u32::try_from(STREAM_LIMIT).unwrap_or(u32::MAX);
        let settings = [(frame::MAX_CONCURRENT_STREAMS, streams)];
        out.extend(frame::settings(&settings));
        out.extend(frame::window_update(0, CONNECTION_WINDOW));
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(TABLE);
        Self {
            out,
            desk,
            streams: BTreeMap::new(),
            window: WINDOW,
            largest_frame: FRAME_LIMIT,
            last_seen: 0,
            last_acted: 0,
            announced: None,
            winding_down: None,
            ending: None,
            timers: BTreeMap::new(),
            timer_count: 0,
            decoder,
            number,
            prefaced: false,
            greeted: false,
            initial_window: WINDOW,
            block: None,
        }
    }

    /// How the connection ends now, if it does.
    pub(super) fn end(&self) -> Option<End> {
        self.ending.filter(|_| self.out.is_empty())
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.streams.values().all(|stream| stream.stalled)
            && self.block.is_none()
            && self.out.is_empty()
    }

    /// Takes the end of the input. The client may still read, so what waits is written.
    pub(super) fn input_ends(&mut self) {
        self.ending = self.ending.or(Some(End::Close));
    }

    /// Takes all complete frames.
    pub(super) fn take(&mut self, input: &mut BytesMut) {
        if !self.prefaced {
            if input.len() < PREFACE.len() {
                return;
            }
            // Its bytes were peeked at before.
            input.advance(PREFACE.len());
            self.prefaced = true;
        }
        while self.ending.is_none() {
            let Some(head) = input.first_chunk::<{ frame::HEAD }>() else {
                return;
            };
            let (length, mut frame) = Frame::head(*head);
            let handled = if length > FRAME_LIMIT {
                Err(Broken(frame::FRAME_SIZE_ERROR))
            } else if input.len() < frame::HEAD + length {
                return;
            } else {
                input.advance(frame::HEAD);
                frame.payload = input.split_to(length).to_vec();
                self.handle(frame)
            };
            if let Err(Broken(code)) = handled {
                // What was not acted on is dropped with the connection, so this is the truth.
                self.out.extend(frame::goaway(self.last_acted, code));
                self.ending = Some(End::Close);
            }
        }
    }

    fn handle(&mut self, frame: Frame) -> Handled {
        let continues = frame.kind == frame::CONTINUATION;
        if continues != self.block.is_some() || !self.greeted && frame.kind != frame::SETTINGS {
            return Err(Broken(frame::PROTOCOL_ERROR));
        }
        let ack = frame.flags & frame::ACK != 0;
        match frame.kind {
            frame::DATA => self.data(frame),
            frame::HEADERS => self.headers(frame),
            frame::CONTINUATION => self.continuation(frame),
            frame::RST_STREAM => {
                self.opened(frame.stream)?;
                self.streams.remove(&frame.stream);
                Ok(())
            }
            frame::SETTINGS => {
                self.greeted = true;
                if ack {
                    Ok(())
                } else {
                    self.settings(&frame.payload)
                }
            }
            frame::PUSH_PROMISE => Err(Broken(frame::PROTOCOL_ERROR)),
            frame::PING if frame.payload.len() != 8 => Err(Broken(frame::FRAME_SIZE_ERROR)),
            frame::PING => {
                if !ack {
                    let pong = frame::frame(frame::PING, frame::ACK, 0, &frame.payload);
                    self.out.extend(pong);
                }
                Ok(())
            }
            frame::WINDOW_UPDATE => self.window_update(&frame),
            // PRIORITY and unknown frames mean nothing; a client's GOAWAY only says that it will
            // close.
            _ => Ok(()),
        }
    }

    fn data(&mut self, frame: Frame) -> Handled {
        self.opened(frame.stream)?;
        let length = u32::try_from(frame.payload.len()).unwrap_or(0);
        if length > 0 {
            self.out.extend(frame::window_update(0, length));
        }
        let bytes = unpad(&frame)?;
        let id = frame.stream;
        let ends = frame.flags & frame::END_STREAM != 0;
        // The stream may have been reset or refused while this was on its way.
        let Some(stream) = self.streams.get_mut(&id) else {
            return Ok(());
        };
        match stream.input {
            Input::Done => return Err(Broken(frame::STREAM_CLOSED)),
            Input::Block => return Ok(()),
            Input::Read | Input::Drain => {}
        }
        if !self.desk.body(&mut stream.order, bytes) {
            return Err(Broken(frame::ENHANCE_YOUR_CALM));
        }
        if length > 0 && !ends {
            self.out.extend(frame::window_update(id, length));
        }
        if ends {
            self.request_ends(id);
        }
        Ok(())
    }

    fn headers(&mut self, frame: Frame) -> Handled {
        if frame.stream % 2 == 0 {
            return Err(Broken(frame::PROTOCOL_ERROR));
        }
        let mut bytes = unpad(&frame)?;
        if frame.flags & frame::WITH_PRIORITY != 0 {
            bytes = bytes.get(5..).ok_or(Broken(frame::FRAME_SIZE_ERROR))?;
        }
        let block = Block {
            stream: frame.stream,
            end_stream: frame.flags & frame::END_STREAM != 0,
            bytes: bytes.to_vec(),
        };
        self.block_goes_on(block, frame.flags)
    }

    fn continuation(&mut self, frame: Frame) -> Handled {
        match self.block.take() {
            Some(mut block) if block.stream == frame.stream => {
                block.bytes.extend_from_slice(&frame.payload);
                self.block_goes_on(block, frame.flags)
            }
            _ => Err(Broken(frame::PROTOCOL_ERROR)),
        }
    }

    fn block_goes_on(&mut self, block: Block, flags: u8) -> Handled {
        if block.bytes.len() > headers::BLOCK_LIMIT {
            return Err(Broken(frame::ENHANCE_YOUR_CALM));
        }
        if flags & frame::END_HEADERS == 0 {
            self.block = Some(block);
            return Ok(());
        }
        // Decoded even where nobody wants it: the decoder's table depends on it.
        let headers = headers::decode(&mut self.decoder, &block.bytes)
            .ok_or(Broken(frame::COMPRESSION_ERROR))?;
        let id = block.stream;
        if id <= self.last_seen {
            // Trailers, perhaps of a stream that is gone.
            let reading = self
                .streams
                .get(&id)
                .is_some_and(|stream| matches!(stream.input, Input::Read | Input::Drain));
            if reading && !block.end_stream {
                return Err(Broken(frame::PROTOCOL_ERROR));
            }
            if reading {
                self.request_ends(id);
            }
            return Ok(());
        }
        self.last_seen = id;
        match headers::request(headers) {
            Some(head) => self.request_starts(id, head, block.end_stream),
            None => self
                .out
                .extend(frame::rst_stream(id, frame::PROTOCOL_ERROR)),
        }
        Ok(())
    }

    fn request_starts(&mut self, id: u32, head: Head, end_stream: bool) {
        if self.announced.is_some_and(|last| id > last) {
            // The client was told that this stream will not be acted on.
            self.desk.ignore(head, Protocol::Http2, self.number);
            return;
        }
        if self.streams.len() >= STREAM_LIMIT {
            self.desk.ignore(head, Protocol::Http2, self.number);
            let refused = frame::rst_stream(id, frame::REFUSED_STREAM);
            self.out.extend(refused);
            return;
        }
        let mut order = self.desk.arrive(head, Protocol::Http2, self.number);
        let next = course::at_head(&mut order);
        self.streams.insert(
            id,
            Stream {
                order,
                input: if end_stream { Input::Done } else { Input::Read },
                window: self.initial_window,
                output: None,
                stalled: false,
            },
        );
        if self.after_head(id, next) && end_stream {
            self.request_ends(id);
        }
    }

    fn settings(&mut self, payload: &[u8]) -> Handled {
        if payload.len() % 6 != 0 {
            return Err(Broken(frame::FRAME_SIZE_ERROR));
        }
        for setting in payload.chunks_exact(6) {
            let [i0, i1, v0, v1, v2, v3] = *setting else {
                continue;
            };
            let value = u32::from_be_bytes([v0, v1, v2, v3]);
            match u16::from_be_bytes([i0, i1]) {
                frame::INITIAL_WINDOW_SIZE => {
                    let window = i64::from(value);
                    if window > LARGEST_WINDOW {
                        return Err(Broken(frame::FLOW_CONTROL_ERROR));
                    }
                    for stream in self.streams.values_mut() {
                        stream.window += window - self.initial_window;
                    }
                    self.initial_window = window;
                }
                frame::MAX_FRAME_SIZE => {
                    let size = usize::try_from(value).unwrap_or(usize::MAX);
                    if !(FRAME_LIMIT..1 << 24).contains(&size) {
                        return Err(Broken(frame::PROTOCOL_ERROR));
                    }
                    self.largest_frame = size;
                }
                _ => {}
            }
        }
        self.out.extend(frame::settings_ack());
        Ok(())
    }

    fn window_update(&mut self, frame: &Frame) -> Handled {
        let Ok(bytes) = <[u8; 4]>::try_from(frame.payload.as_slice()) else {
            return Err(Broken(frame::FRAME_SIZE_ERROR));
        };
        let more = i64::from(u32::from_be_bytes(bytes) & 0x7fff_ffff);
        if more == 0 {
            return Err(Broken(frame::PROTOCOL_ERROR));
        }
        let window = if frame.stream == 0 {
            &mut self.window
        } else {
            self.opened(frame.stream)?;
            match self.streams.get_mut(&frame.stream) {
                Some(stream) => &mut stream.window,
                None => return Ok(()),
            }
        };
        *window += more;
        if *window > LARGEST_WINDOW {
            return Err(Broken(frame::FLOW_CONTROL_ERROR));
        }
        Ok(())
    }

    /// Refuses frames on streams that the client never opened.
    fn opened(&self, id: u32) -> Handled {
        if id == 0 || id > self.last_seen || id % 2 == 0 {
            return Err(Broken(frame::PROTOCOL_ERROR));
        }
        Ok(())
    }
}

/// Takes the padding off.
fn unpad(frame: &Frame) -> Result<&[u8], Broken> {
    if frame.flags & frame::PADDED == 0 {
        return Ok(&frame.payload);
    }
    let (padding, rest) = frame
        .payload
        .split_first()
        .ok_or(Broken(frame::FRAME_SIZE_ERROR))?;
    let length = rest
        .len()
        .checked_sub(usize::from(*padding))
        .ok_or(Broken(frame::PROTOCOL_ERROR))?;
    Ok(&rest[..length])
}
