//! Header blocks (RFC 7541) and the requests and answers they carry.

use fluke_hpack::Decoder;

use crate::Answer;
use crate::desk::Head;
use crate::raw::frame;

/// The longest header block, as sent.
pub(super) const BLOCK_LIMIT: usize = 32 << 10;

/// The largest header list, decoded: a short block may name a long entry many times over.
const LIST_LIMIT: usize = 256 << 10;

/// Decodes a block and keeps the state of the decoder right; `None` is an error of the connection.
pub(super) fn decode(decoder: &mut Decoder<'_>, block: &[u8]) -> Option<Vec<(String, String)>> {
    let mut size = 0_usize;
    let mut headers = Vec::new();
    let decoded = decoder.decode_with_cb(block, |name, value| {
        size = size.saturating_add(name.len() + value.len() + 32);
        if size <= LIST_LIMIT {
            headers.push((
                String::from_utf8_lossy(&name).into_owned(),
                String::from_utf8_lossy(&value).into_owned(),
            ));
        }
    });
    (decoded.is_ok() && size <= LIST_LIMIT).then_some(headers)
}

/// Makes a request of a header list; `None` when it is malformed (RFC 9113, section 8.3.1).
pub(super) fn request(headers: Vec<(String, String)>) -> Option<Head> {
    let mut method = None;
    let mut path = None;
    let mut plain = Vec::with_capacity(headers.len());
    for (name, value) in headers {
        match name.as_str() {
            ":method" => method = Some(value),
            ":path" => path = Some(value),
            ":authority" => plain.push(("host".to_owned(), value)),
            name if name.starts_with(':') => {}
            _ => plain.push((name, value)),
        }
    }
    Some(Head {
        method: method?,
        // CONNECT has none.
        path: path.unwrap_or_default(),
        headers: plain,
    })
}

/// Makes the block of an answer's head; `length` is the promised `content-length`.
pub(super) fn answer(answer: &Answer, length: Option<usize>) -> Vec<u8> {
    let status = answer.status.to_string();
    let length = length.map(|length| length.to_string());
    let headers: Vec<(String, &str)> = answer
        .headers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
        .collect();
    let all = std::iter::once((":status", status.as_str()))
        .chain(headers.iter().map(|(name, value)| (name.as_str(), *value)))
        .chain(
            length
                .iter()
                .map(|length| ("content-length", length.as_str())),
        );
    frame::block(all)
}

/// Makes the block of trailers.
pub(super) fn trailers(trailers: &[(String, String)]) -> Vec<u8> {
    let lower: Vec<(String, &str)> = trailers
        .iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
        .collect();
    frame::block(lower.iter().map(|(name, value)| (name.as_str(), *value)))
}

/// Makes the frames of a block: HEADERS and as many CONTINUATION as the largest frame asks for.
pub(super) fn frames(stream: u32, block: &[u8], end_stream: bool, largest: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(block.len() + frame::HEAD);
    let mut kind = frame::HEADERS;
    let mut rest = block;
    loop {
        let (piece, after) = rest.split_at(rest.len().min(largest));
        let mut flags = if after.is_empty() {
            frame::END_HEADERS
        } else {
            0
        };
        if end_stream && kind == frame::HEADERS {
            flags |= frame::END_STREAM;
        }
        bytes.extend(frame::frame(kind, flags, stream, piece));
        if after.is_empty() {
            return bytes;
        }
        kind = frame::CONTINUATION;
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_survive_the_encoding() {
        let long = "v".repeat(40_000);
        let block = answer(&Answer::status(200).header("X-Long", long.clone()), Some(7));
        let headers = decode(&mut Decoder::new(), &block).unwrap();
        let expected = [
            (":status", "200"),
            ("x-long", &long),
            ("content-length", "7"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers, expected);
    }

    #[test]
    fn a_short_block_cannot_blow_up() {
        let mut block = vec![0x40, 1, b'a', 127, 0xa1, 0x1e];
        block.extend(vec![b'v'; 4000]);
        // Index 62 is the entry just made.
        block.extend(vec![0x80 | 62; 1000]);
        assert!(decode(&mut Decoder::new(), &block).is_none());
    }

    #[test]
    fn a_block_over_the_largest_frame_is_continued() {
        let bytes = frames(1, &[7; 25], true, 10);
        let kinds: Vec<(u8, u8, u8)> = [(0, 10), (19, 10), (38, 5)]
            .map(|(at, _)| (bytes[at + 2], bytes[at + 3], bytes[at + 4]))
            .to_vec();
        assert_eq!(kinds, [(10, 1, 1), (10, 9, 0), (5, 9, 4)]);
    }
}
