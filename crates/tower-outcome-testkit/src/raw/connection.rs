//! One connection of a scripted server.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fluke_hpack::Decoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::frame::{self, Frame};
use super::server::Counts;
use crate::answer::find;
use crate::socket;

/// One connection of a scripted server.
///
/// Dropping it closes the socket. All methods that wait may be cancelled; what was read by then
/// is lost.
pub struct Connection {
    stream: TcpStream,
    counts: Arc<Counts>,
    decoder: Decoder<'static>,
}

/// A HEADERS frame of an HTTP/2 client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Headers {
    /// The stream.
    pub stream: u32,
    /// Whether the request has no body.
    pub end_stream: bool,
    /// The header block, HPACK encoded.
    pub block: Vec<u8>,
    /// What the block says, pseudo-headers included; empty when it goes on in CONTINUATION
    /// frames or cannot be decoded.
    pub fields: Vec<(String, String)>,
}

/// Request heads of at most this many bytes are read.
const HEAD_LIMIT: usize = 64 << 10;

// === impl Connection ===

impl Connection {
    pub(super) fn new(stream: TcpStream, counts: Arc<Counts>) -> Self {
        // Small frames must not wait for the acknowledgement of others.
        let _ = stream.set_nodelay(true);
        Self {
            stream,
            counts,
            decoder: Decoder::new(),
        }
    }

    /// Reads an HTTP/1 request head up to and with its empty line, and counts a request.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the client closes before the head is complete, `InvalidData` when it
    /// is over 64 KiB, and any error of the socket.
    pub async fn read_head(&mut self) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        // Byte by byte, so that not a byte of the body is taken.
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() == HEAD_LIMIT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            head.push(self.stream.read_u8().await?);
        }
        self.counts.requests.fetch_add(1, Ordering::SeqCst);
        Ok(head)
    }

    /// Reads an HTTP/1 request, head and body by `content-length`, and counts it.
    ///
    /// # Errors
    ///
    /// As [`Connection::read_head`]; `InvalidData` also when the length is unreadable or over
    /// 16 MiB.
    pub async fn read_request(&mut self) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let head = self.read_head().await?;
        let text = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let length = text
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))
            .map_or(Ok(0), |value| value.trim().parse::<usize>())
            .ok()
            .filter(|length| *length <= 16 << 20)
            .ok_or(io::ErrorKind::InvalidData)?;
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await?;
        Ok((head, body))
    }

    /// Reads exactly this many bytes.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the client closes before, and any error of the socket.
    pub async fn read_exact(&mut self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    /// Writes bytes.
    ///
    /// # Errors
    ///
    /// Any error of the socket.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads the client's preface and sends SETTINGS, each an identifier and a value.
    ///
    /// # Errors
    ///
    /// `InvalidData` when the client does not start with the preface, `UnexpectedEof` when it
    /// closes before, and any error of the socket.
    pub async fn start_http2(&mut self, settings: &[(u16, u32)]) -> io::Result<()> {
        if self.read_exact(frame::PREFACE.len()).await? != frame::PREFACE {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.write_all(&frame::settings(settings)).await
    }

    /// Reads one frame; `None` when the client has closed between frames.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the client closes within a frame, and any error of the socket.
    pub async fn read_frame(&mut self) -> io::Result<Option<Frame>> {
        let mut head = [0; frame::HEAD];
        if self.stream.read(&mut head[..1]).await? == 0 {
            return Ok(None);
        }
        self.stream.read_exact(&mut head[1..]).await?;
        let (length, mut frame) = Frame::head(head);
        frame.payload = self.read_exact(length).await?;
        Ok(Some(frame))
    }

    /// Reads frames up to the next HEADERS, and counts a request; `None` when the client has
    /// closed or said GOAWAY.
    ///
    /// SETTINGS and PING are acknowledged, other frames are thrown away.
    ///
    /// # Errors
    ///
    /// As [`Connection::read_frame`] and [`Connection::write_all`].
    pub async fn next_headers(&mut self) -> io::Result<Option<Headers>> {
        while let Some(frame) = self.read_frame().await? {
            if frame.kind == frame::HEADERS {
                self.counts.requests.fetch_add(1, Ordering::SeqCst);
                return Ok(Some(self.decode(frame)));
            }
            if frame.kind == frame::GOAWAY {
                return Ok(None);
            }
            self.acknowledge(&frame).await?;
        }
        Ok(None)
    }

    /// Reads frames up to the end of a stream's body and returns the body; SETTINGS and PING are
    /// acknowledged, other frames are thrown away, and windows are kept open.
    ///
    /// # Errors
    ///
    /// `UnexpectedEof` when the client closes before, and as [`Connection::next_headers`].
    pub async fn read_body(&mut self, stream: u32) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        while let Some(frame) = self.read_frame().await? {
            if frame.kind == frame::DATA && frame.stream == stream {
                body.extend_from_slice(&frame.payload);
                let length = u32::try_from(frame.payload.len()).unwrap_or(0);
                if length > 0 {
                    let mut update = frame::window_update(0, length);
                    update.extend(frame::window_update(stream, length));
                    self.write_all(&update).await?;
                }
                if frame.flags & frame::END_STREAM != 0 {
                    return Ok(body);
                }
            } else {
                self.acknowledge(&frame).await?;
            }
        }
        Err(io::ErrorKind::UnexpectedEof.into())
    }

    /// Sends FIN; the client may still send.
    ///
    /// # Errors
    ///
    /// Any error of the socket.
    pub async fn fin(&mut self) -> io::Result<()> {
        self.stream.shutdown().await
    }

    /// Resets the connection.
    ///
    /// # Errors
    ///
    /// Never; a `Result` so that it can end a handler.
    pub fn reset(self) -> io::Result<()> {
        socket::reset(self.stream);
        Ok(())
    }

    /// Throws away what the client sends until it closes or resets; returns the number of bytes.
    pub async fn drain(&mut self) -> usize {
        let mut bytes = [0; 4096];
        let mut drained = 0;
        while let Ok(read @ 1..) = self.stream.read(&mut bytes).await {
            drained += read;
        }
        drained
    }

    /// Waits until the client closes or resets, without reading from the socket.
    pub async fn gone(&self) {
        socket::gone(&self.stream).await;
    }

    fn decode(&mut self, frame: Frame) -> Headers {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        // hyper neither pads nor prioritises; what does is left encoded.
        let odd = frame::PADDED | frame::WITH_PRIORITY;
        let plain = frame.flags & odd == 0 && frame.flags & frame::END_HEADERS != 0;
        let decoded = if plain {
            self.decoder.decode(&frame.payload).unwrap_or_default()
        } else {
            Vec::new()
        };
        Headers {
            stream: frame.stream,
            end_stream: frame.flags & frame::END_STREAM != 0,
            block: frame.payload,
            fields: decoded
                .into_iter()
                .map(|(name, value)| (text(name), text(value)))
                .collect(),
        }
    }

    async fn acknowledge(&mut self, frame: &Frame) -> io::Result<()> {
        if frame.flags & frame::ACK != 0 {
            return Ok(());
        }
        match frame.kind {
            frame::SETTINGS => self.write_all(&frame::settings_ack()).await,
            frame::PING => {
                let ack = frame::frame(frame::PING, frame::ACK, 0, &frame.payload);
                self.write_all(&ack).await
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

// === impl Headers ===

impl Headers {
    /// Returns the first value of a header or, with its colon, a pseudo-header.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        find(&self.fields, name)
    }
}
