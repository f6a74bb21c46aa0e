//! Bytes in, bytes out: a client without a protocol of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use tower_outcome_testkit::Venue;
use tower_outcome_testkit::raw::frame;

/// Longer than any test waits for the venue.
pub(crate) const BOUND: Duration = Duration::from_secs(60);

/// Sends bytes and returns everything that comes back until the venue closes.
pub(crate) fn talk(venue: &Venue, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(venue.addr()).unwrap();
    // The venue may close or reset while this is written.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

pub(crate) fn http2(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = frame::PREFACE.to_vec();
    bytes.extend(frame::settings(&[]));
    bytes.extend(frames.concat());
    bytes
}

pub(crate) fn head(stream: u32, end_stream: bool, more: &[(&str, &str)]) -> Vec<u8> {
    let mut headers = vec![(":method", "POST"), (":path", "/"), (":scheme", "http")];
    headers.extend_from_slice(more);
    frame::headers(stream, &headers, end_stream)
}

/// The frames in what came back: type, stream, payload.
pub(crate) fn frames(mut bytes: &[u8]) -> Vec<(u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        frames.push((head[3], stream, rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    frames
}

pub(crate) fn kinds(bytes: &[u8], stream: u32) -> Vec<u8> {
    frames(bytes)
        .into_iter()
        .filter(|frame| frame.1 == stream)
        .map(|frame| frame.0)
        .collect()
}
