//! HTTP/2 with prior knowledge, at frame level.

use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use crate::desk::{Desk, Open};
pub(crate) use crate::raw::frame::PREFACE;
use crate::socket;

mod headers;
mod reply;
mod session;
mod stream;

use self::session::{End, Session};

/// Reading stops while this much waits to be written, so that a client that sends without ever
/// reading cannot grow the venue.
const OUT_LIMIT: usize = 1 << 20;

/// How much is read at a time: a few small frames or most of a large one.
const READ: usize = 8 << 10;

/// Serves one connection until it ends.
pub(crate) async fn serve(mut stream: TcpStream, desk: Arc<Desk>, open: Open) {
    let mut session = Session::new(Arc::clone(&desk), open.number);
    let mut input = BytesMut::new();
    let mut busy = Some(desk.busy());
    let end = loop {
        session.take(&mut input);
        session.pump();
        if let Some(end) = session.end() {
            break end;
        }
        if session.is_idle() && input.is_empty() {
            busy = None;
        } else if busy.is_none() {
            busy = Some(desk.busy());
        }
        if turn(&mut stream, &mut session, &mut input).await.is_err() {
            break End::Close;
        }
    };
    match end {
        End::Close => drop(stream),
        End::Reset => socket::reset(stream),
    }
    // Requests in progress end with the session, before the connection counts as closed.
    drop((session, busy, open));
}

/// Waits for whatever comes first: bytes to read, room to write, a timer.
async fn turn(
    stream: &mut TcpStream,
    session: &mut Session,
    input: &mut BytesMut,
) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let timer = session.next_timer();
    input.reserve(READ);
    let reads = !session.is_ending() && session.out.len() < OUT_LIMIT;
    tokio::select! {
        written = writer.write(&session.out), if !session.out.is_empty() => {
            session.out.advance(written?);
        }
        read = reader.read_buf(input), if reads => {
            if read? == 0 {
                session.input_ends();
            }
        }
        () = sleep_until(timer.unwrap_or_else(Instant::now)), if timer.is_some() => {
            session.fire(Instant::now());
        }
    }
    Ok(())
}
