//! The bytes of HTTP/1.1 messages (RFC 9112).

use std::io;

use crate::Answer;

/// What the head of a request says.
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
    pub(super) expects_continue: bool,
}

/// Where the body of a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// The longest head that is read.
pub(super) const HEAD_LIMIT: usize = 64 << 10;

/// The most headers that are read.
const HEADERS: usize = 128;

// === impl RequestHead ===

impl RequestHead {
    /// Reads a head and its length from the start of a buffer; `None` when more is needed.
    pub(super) fn parse(buffer: &[u8]) -> io::Result<Option<(Self, usize)>> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let status = request.parse(buffer).map_err(|_| malformed())?;
        let httparse::Status::Complete(length) = status else {
            if buffer.len() > HEAD_LIMIT {
                return Err(malformed());
            }
            return Ok(None);
        };
        let headers: Vec<(String, String)> = request
            .headers
            .iter()
            .map(|header| {
                (
                    header.name.to_ascii_lowercase(),
                    String::from_utf8_lossy(header.value).into_owned(),
                )
            })
            .collect();
        let framing = framing(&headers)?;
        let has = |name: &str, token: &str| {
            all(&headers, name).any(|value| value.eq_ignore_ascii_case(token))
        };
        let keep_alive = request.version == Some(1) && !has("connection", "close");
        let expects_continue = has("expect", "100-continue");
        let head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            path: request.path.unwrap_or_default().to_owned(),
            framing,
            keep_alive,
            expects_continue,
            headers,
        };
        Ok(Some((head, length)))
    }
}

/// Reads the size of a chunk, without its extensions.
pub(super) fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
    let size = std::str::from_utf8(size).map_err(|_| malformed())?.trim();
    // `from_str_radix` takes a sign, which the grammar does not.
    if size.starts_with('+') {
        return Err(malformed());
    }
    u64::from_str_radix(size, 16).map_err(|_| malformed())
}

/// Makes a whole answer; with trailers the body is chunked.
pub(super) fn answer(answer: &Answer, keep_alive: bool, to_head: bool) -> Vec<u8> {
    let mut bytes = head(answer, None, keep_alive);
    if to_head || answer.is_bodyless() {
        return bytes;
    }
    if answer.trailers.is_empty() {
        bytes.extend_from_slice(&answer.body);
        return bytes;
    }
    if !answer.body.is_empty() {
        bytes.extend_from_slice(format!("{:x}\r\n", answer.body.len()).as_bytes());
        bytes.extend_from_slice(&answer.body);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"0\r\n");
    fields(&mut bytes, &answer.trailers);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Makes the head of an answer; `length` overrules the length of its body.
pub(super) fn head(answer: &Answer, length: Option<usize>, keep_alive: bool) -> Vec<u8> {
    let mut bytes =
        format!("HTTP/1.1 {} {}\r\n", answer.status, reason(answer.status)).into_bytes();
    fields(&mut bytes, &answer.headers);
    if !keep_alive {
        bytes.extend_from_slice(b"connection: close\r\n");
    }
    if length.is_none() && !answer.trailers.is_empty() {
        bytes.extend_from_slice(b"transfer-encoding: chunked\r\n");
    } else if !answer.is_bodyless() {
        let length = length.unwrap_or(answer.body.len());
        bytes.extend_from_slice(format!("content-length: {length}\r\n").as_bytes());
    }
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn fields(bytes: &mut Vec<u8>, fields: &[(String, String)]) {
    for (name, value) in fields {
        // A line break would end the field, and perhaps the head.
        let clean = |text: &str| text.replace(['\r', '\n', '\0'], " ");
        bytes.extend_from_slice(format!("{}: {}\r\n", clean(name), clean(value)).as_bytes());
    }
}

fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("")
}

/// Finds out where the body ends (RFC 9112, section 6.3).
fn framing(headers: &[(String, String)]) -> io::Result<Framing> {
    let mut lengths = all(headers, "content-length");
    let length = lengths.next();
    if all(headers, "transfer-encoding").next().is_some() {
        let last = all(headers, "transfer-encoding").last().unwrap_or_default();
        return match length {
            None if last.eq_ignore_ascii_case("chunked") => Ok(Framing::Chunked),
            _ => Err(malformed()),
        };
    }
    let Some(length) = length else {
        return Ok(Framing::Length(0));
    };
    if lengths.any(|other| other != length) || !length.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(malformed());
    }
    length.parse().map(Framing::Length).map_err(|_| malformed())
}

/// Iterates over the members of a header that is a list.
fn all<'a>(headers: &'a [(String, String)], name: &'a str) -> impl Iterator<Item = &'a str> {
    headers
        .iter()
        .filter(move |(candidate, _)| candidate == name)
        .flat_map(|(_, value)| value.split(',').map(str::trim))
}

fn malformed() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ambiguous_framing_is_refused() {
        for headers in [
            "content-length: 1\r\ncontent-length: 2\r\n",
            "content-length: +1\r\n",
            "content-length: 1, 2\r\n",
            "content-length: 99999999999999999999\r\n",
            "content-length: 1\r\ntransfer-encoding: chunked\r\n",
            "transfer-encoding: gzip\r\n",
        ] {
            let head = format!("POST / HTTP/1.1\r\n{headers}\r\n");
            assert!(RequestHead::parse(head.as_bytes()).is_err(), "{headers}");
        }
    }

    #[test]
    fn chunk_sizes_are_hexadecimal_without_a_sign() {
        assert_eq!(chunk_size(b"1F;name=value").unwrap(), 31);
        for line in [&b""[..], b"+1", b"-1", b"g", b"\xff", b"11111111111111111"] {
            assert!(chunk_size(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn a_line_break_in_a_value_does_not_end_the_head() {
        let answer = Answer::status(200).header("retry-after", "1\r\n\r\nx");
        let bytes = head(&answer, None, true);
        let ends = bytes.windows(4).filter(|four| four == b"\r\n\r\n").count();
        assert_eq!(ends, 1);
    }
}
