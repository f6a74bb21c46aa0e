//! HTTP/2 frames as bytes (RFC 9113, section 6). Nothing is checked: wrong frames are the point.

/// What a client with prior knowledge sends first (RFC 9113, section 3.4).
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The type of a DATA frame.
pub const DATA: u8 = 0x0;
/// The type of a HEADERS frame.
pub const HEADERS: u8 = 0x1;
/// The type of a PRIORITY frame.
pub const PRIORITY: u8 = 0x2;
/// The type of an RST_STREAM frame.
pub const RST_STREAM: u8 = 0x3;
/// The type of a SETTINGS frame.
pub const SETTINGS: u8 = 0x4;
/// The type of a PUSH_PROMISE frame.
pub const PUSH_PROMISE: u8 = 0x5;
/// The type of a PING frame.
pub const PING: u8 = 0x6;
/// The type of a GOAWAY frame.
pub const GOAWAY: u8 = 0x7;
/// The type of a WINDOW_UPDATE frame.
pub const WINDOW_UPDATE: u8 = 0x8;
/// The type of a CONTINUATION frame.
pub const CONTINUATION: u8 = 0x9;

/// The flag of SETTINGS and PING frames that answer one.
pub const ACK: u8 = 0x1;
/// The flag of DATA and HEADERS frames that end their side of the stream.
pub const END_STREAM: u8 = 0x1;
/// The flag of the frame that ends a header block.
pub const END_HEADERS: u8 = 0x4;
/// The flag of padded DATA and HEADERS frames.
pub const PADDED: u8 = 0x8;
/// The flag of HEADERS frames with a priority.
pub const WITH_PRIORITY: u8 = 0x20;

/// The setting SETTINGS_HEADER_TABLE_SIZE.
pub const HEADER_TABLE_SIZE: u16 = 0x1;
/// The setting SETTINGS_MAX_CONCURRENT_STREAMS.
pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
/// The setting SETTINGS_INITIAL_WINDOW_SIZE.
pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
/// The setting SETTINGS_MAX_FRAME_SIZE.
pub const MAX_FRAME_SIZE: u16 = 0x5;

/// The error code NO_ERROR.
pub const NO_ERROR: u32 = 0x0;
/// The error code PROTOCOL_ERROR.
pub const PROTOCOL_ERROR: u32 = 0x1;
/// The error code INTERNAL_ERROR.
pub const INTERNAL_ERROR: u32 = 0x2;
/// The error code FLOW_CONTROL_ERROR.
pub const FLOW_CONTROL_ERROR: u32 = 0x3;
/// The error code STREAM_CLOSED.
pub const STREAM_CLOSED: u32 = 0x5;
/// The error code FRAME_SIZE_ERROR.
pub const FRAME_SIZE_ERROR: u32 = 0x6;
/// The error code REFUSED_STREAM: the request was not processed (RFC 9113, section 8.7).
pub const REFUSED_STREAM: u32 = 0x7;
/// The error code CANCEL.
pub const CANCEL: u32 = 0x8;
/// The error code COMPRESSION_ERROR.
pub const COMPRESSION_ERROR: u32 = 0x9;
/// The error code ENHANCE_YOUR_CALM.
pub const ENHANCE_YOUR_CALM: u32 = 0xb;

/// The bytes before the payload of a frame.
pub(crate) const HEAD: usize = 9;

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Frame {
    /// The type.
    pub kind: u8,
    /// The flags.
    pub flags: u8,
    /// The stream, 0 for the connection.
    pub stream: u32,
    /// The payload, padding and all.
    pub payload: Vec<u8>,
}

// === impl Frame ===

impl Frame {
    /// Reads the length of the payload and a frame that lacks it.
    pub(crate) fn head(head: [u8; HEAD]) -> (usize, Self) {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = head;
        let length = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        let frame = Self {
            kind,
            flags,
            // The highest bit is reserved and ignored.
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & 0x7fff_ffff,
            payload: Vec::new(),
        };
        (length, frame)
    }
}

/// Makes any frame. A payload over 2^24 - 1 bytes is cut off.
#[must_use]
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let payload = &payload[..payload.len().min((1 << 24) - 1)];
    let mut bytes = Vec::with_capacity(HEAD + payload.len());
    // The lowest three of four bytes: the length was cut to fit.
    let length = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
    bytes.extend_from_slice(&length[1..]);
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Makes SETTINGS, each an identifier and a value.
#[must_use]
pub fn settings(settings: &[(u16, u32)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for (identifier, value) in settings {
        payload.extend_from_slice(&identifier.to_be_bytes());
        payload.extend_from_slice(&value.to_be_bytes());
    }
    frame(SETTINGS, 0, 0, &payload)
}

/// Makes the acknowledgement of SETTINGS.
#[must_use]
pub fn settings_ack() -> Vec<u8> {
    frame(SETTINGS, ACK, 0, &[])
}

/// Makes HEADERS with `:status: 200` and nothing else.
#[must_use]
pub fn headers_ok(stream: u32, end_stream: bool) -> Vec<u8> {
    headers(stream, &[(":status", "200")], end_stream)
}

/// Makes HEADERS with these headers, as literals without indexing and without Huffman code.
#[must_use]
pub fn headers(stream: u32, headers: &[(&str, &str)], end_stream: bool) -> Vec<u8> {
    let flags = END_HEADERS | if end_stream { END_STREAM } else { 0 };
    frame(HEADERS, flags, stream, &block(headers.iter().copied()))
}

/// Makes HEADERS that end a stream after its body.
#[must_use]
pub fn trailers(stream: u32, trailers: &[(&str, &str)]) -> Vec<u8> {
    headers(stream, trailers, true)
}

/// Makes a header block of literals without indexing (RFC 7541, section 6.2.2).
pub(crate) fn block<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        string(&mut block, name);
        string(&mut block, value);
    }
    block
}

/// Makes DATA.
#[must_use]
pub fn data(stream: u32, bytes: &[u8], end_stream: bool) -> Vec<u8> {
    frame(DATA, if end_stream { END_STREAM } else { 0 }, stream, bytes)
}

/// Makes RST_STREAM.
#[must_use]
pub fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// Makes GOAWAY without debug data.
#[must_use]
pub fn goaway(last: u32, code: u32) -> Vec<u8> {
    let mut payload = last.to_be_bytes().to_vec();
    payload.extend_from_slice(&code.to_be_bytes());
    frame(GOAWAY, 0, 0, &payload)
}

/// Makes PING.
#[must_use]
pub fn ping(payload: [u8; 8]) -> Vec<u8> {
    frame(PING, 0, 0, &payload)
}

/// Makes WINDOW_UPDATE for a stream, or for the connection when that is 0.
#[must_use]
pub fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    frame(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

/// Writes a string with its length and without Huffman code (RFC 7541, section 5.2).
fn string(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        // Fits: below 127.
        block.extend(u8::try_from(length));
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.extend(u8::try_from(length % 128 + 128));
            length /= 128;
        }
        block.extend(u8::try_from(length));
    }
    block.extend_from_slice(text.as_bytes());
}
