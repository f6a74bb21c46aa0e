//! HTTP/1.1, at socket level.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::course::{self, AtHead, Course, Death, Then};
use crate::desk::{Desk, Head, Open, Order};
use crate::{Answer, Fault, Protocol, socket};

mod message;

use self::message::{Framing, RequestHead};

/// One connection.
struct Connection {
    stream: TcpStream,
    /// What was read and not yet used.
    buffer: BytesMut,
    desk: Arc<Desk>,
    number: u64,
}

/// What is left to do with a connection after a request.
enum End {
    Keep,
    Close,
    Reset,
    Stall,
}

/// What a client gets for sending nothing: the answer that servers send on an idle connection.
const REQUEST_TIMEOUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// The longest line of a chunked body.
const LINE_LIMIT: usize = 8 << 10;

/// Serves one connection until it ends.
pub(crate) async fn serve(stream: TcpStream, desk: Arc<Desk>, open: Open) {
    let mut connection = Connection {
        stream,
        buffer: BytesMut::new(),
        desk: Arc::clone(&desk),
        number: open.number,
    };
    loop {
        // Between requests the venue is idle.
        if connection.buffer.is_empty() && connection.fill().await.is_err() {
            break;
        }
        let busy = desk.busy();
        let end = connection.request().await;
        match end {
            Ok(End::Keep) => drop(busy),
            Ok(End::Reset) => {
                socket::reset(connection.stream);
                return;
            }
            Ok(End::Stall) => {
                // Nothing more becomes of the request, however long its client stays.
                drop(busy);
                socket::gone(&connection.stream).await;
                break;
            }
            // An error is a client that broke the protocol or went away.
            Ok(End::Close) | Err(_) => break,
        }
    }
    drop(connection);
    drop(open);
}

// === impl Connection ===

impl Connection {
    async fn request(&mut self) -> io::Result<End> {
        let head = loop {
            match RequestHead::parse(&self.buffer)? {
                Some((head, length)) => {
                    let _ = self.buffer.split_to(length);
                    break head;
                }
                None => self.fill().await?,
            }
        };
        let RequestHead {
            method,
            path,
            headers,
            framing,
            keep_alive,
            expects_continue,
        } = head;
        let head = Head {
            method,
            path,
            headers,
        };
        let mut order = self.desk.arrive(head, Protocol::Http1, self.number);
        match course::at_head(&mut order) {
            AtHead::Read => {}
            AtHead::Die(death) => return Ok(die(death)),
            AtHead::Early { answer, drain } => {
                self.send(&order, &answer, keep_alive && drain).await?;
                if !drain {
                    return Ok(End::Close);
                }
                self.body(&mut order, framing).await?;
                self.desk.complete(&order);
                return Ok(End::keep(keep_alive));
            }
        }
        if expects_continue && framing != Framing::Length(0) {
            self.stream
                .write_all(b"HTTP/1.1 100 Continue\r\n\r\n")
                .await?;
        }
        self.body(&mut order, framing).await?;
        self.desk.complete(&order);
        self.finish(&mut order, keep_alive).await
    }

    async fn finish(&mut self, order: &mut Order, mut keep_alive: bool) -> io::Result<End> {
        if let Some(Fault::GoAway { close, .. }) = &order.fault {
            let close = *close;
            let applies = order.fault.as_ref().is_some_and(Fault::applies);
            if !applies {
                return Ok(End::Close);
            }
            keep_alive = false;
            if close {
                self.desk.act(order);
                return Ok(End::Close);
            }
        }
        match course::at_end(&self.desk, order) {
            Course::Die(death) => Ok(die(death)),
            Course::Partial(answer, death) => {
                let (promised, part) = course::cut(&answer);
                self.wait().await;
                self.desk.answered(order, answer.status);
                let mut bytes = message::head(&answer, Some(promised), true);
                if !order.is_head_request() {
                    bytes.extend_from_slice(&part);
                }
                self.stream.write_all(&bytes).await?;
                Ok(die(death))
            }
            Course::Drip(answer, interval) => {
                self.drip(order, &answer, interval, keep_alive).await?;
                Ok(End::keep(keep_alive))
            }
            Course::Answer(answer, then) => {
                self.send(order, &answer, keep_alive).await?;
                match then {
                    Then::Keep => Ok(End::keep(keep_alive)),
                    Then::CloseIdle => Ok(End::Close),
                    Then::ResetIdle => Ok(End::Reset),
                    Then::StaleRequestTimeout => {
                        self.stream.write_all(REQUEST_TIMEOUT).await?;
                        Ok(End::Close)
                    }
                }
            }
        }
    }

    async fn send(&mut self, order: &Order, answer: &Answer, keep_alive: bool) -> io::Result<()> {
        self.wait().await;
        self.desk.answered(order, answer.status);
        let bytes = message::answer(answer, keep_alive, order.is_head_request());
        self.stream.write_all(&bytes).await
    }

    async fn drip(
        &mut self,
        order: &Order,
        answer: &Answer,
        interval: Duration,
        keep_alive: bool,
    ) -> io::Result<()> {
        self.wait().await;
        self.desk.answered(order, answer.status);
        let bytes = message::answer(answer, keep_alive, order.is_head_request());
        let start = message::head(answer, None, keep_alive)
            .len()
            .min(bytes.len());
        self.stream.write_all(&bytes[..start]).await?;
        for byte in &bytes[start..] {
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                () = socket::gone(&self.stream) => return Err(io::ErrorKind::BrokenPipe.into()),
            }
            self.stream.write_all(&[*byte]).await?;
        }
        Ok(())
    }

    async fn wait(&self) {
        if !self.desk.latency.is_zero() {
            tokio::time::sleep(self.desk.latency).await;
        }
    }

    async fn body(&mut self, order: &mut Order, framing: Framing) -> io::Result<()> {
        match framing {
            Framing::Length(length) => self.take(order, length).await,
            Framing::Chunked => loop {
                let line = self.line().await?;
                let size = message::chunk_size(&line)?;
                if size == 0 {
                    // Trailers, up to an empty line; a head's worth of them at most.
                    let mut read = 0;
                    while read <= message::HEAD_LIMIT {
                        let length = self.line().await?.len();
                        if length == 0 {
                            return Ok(());
                        }
                        read += length;
                    }
                    return Err(io::ErrorKind::InvalidData.into());
                }
                self.take(order, size).await?;
                if !self.line().await?.is_empty() {
                    return Err(io::ErrorKind::InvalidData.into());
                }
            },
        }
    }

    /// Takes this many bytes as body.
    async fn take(&mut self, order: &mut Order, mut length: u64) -> io::Result<()> {
        while length > 0 {
            if self.buffer.is_empty() {
                self.fill().await?;
            }
            let most = usize::try_from(length).unwrap_or(usize::MAX);
            let piece = self.buffer.split_to(most.min(self.buffer.len()));
            if !self.desk.body(order, &piece) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            // No longer than `length`, which is a u64.
            length -= u64::try_from(piece.len()).unwrap_or(length);
        }
        Ok(())
    }

    /// Takes a line without its end.
    async fn line(&mut self) -> io::Result<BytesMut> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                let line = self.buffer.split_to(end);
                let _ = self.buffer.split_to(2);
                return Ok(line);
            }
            if self.buffer.len() > LINE_LIMIT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        self.buffer.reserve(8 << 10);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

// === impl End ===

impl End {
    fn keep(keep_alive: bool) -> Self {
        if keep_alive { Self::Keep } else { Self::Close }
    }
}

/// What a death means for the connection.
fn die(death: Death) -> End {
    match death {
        // There is no stream to reset, so the connection stands in for it. A refusal is no
        // failure of the connection, hence the gentler end.
        Death::Close | Death::ResetStream(course::REFUSED_STREAM) => End::Close,
        Death::Reset | Death::ResetStream(_) => End::Reset,
        Death::Stall => End::Stall,
    }
}
