//! The ways in which a call can hang, one at a time.

use std::{io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use hyper_util::rt::TokioIo;
use socket2::{Domain, Socket, Type};
use tokio::{io::AsyncReadExt, net::TcpStream};
use tower::{ServiceExt, service_fn};
use tower_outcome::{AttemptBounds, Bound, BoxError, Deadline, Delivery, Phase, Timeouts};
use tower_outcome_testkit::{Fault, Point, Venue, raw};

use super::stack::{Body, Protocol, Stack, Struck, full, nodelay, post, stack, struck, within};

/// A way in which a call hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Nobody answers the SYN.
    Blackhole,
    /// The server takes the first bytes of a handshake and says nothing.
    Handshake,
    /// The server reads the head and nothing of the body.
    NeverReads,
    /// The server reads the request and does not answer.
    NeverAnswers,
    /// The server sends the head, a part of the body, and no more.
    Stalls,
    /// The server sends one byte after the other.
    Drips,
    /// All slots are taken.
    Queue,
}

impl Trouble {
    pub(crate) const ALL: [Self; 7] = [
        Self::Blackhole,
        Self::Handshake,
        Self::NeverReads,
        Self::NeverAnswers,
        Self::Stalls,
        Self::Drips,
        Self::Queue,
    ];

    /// The bound that is there for it.
    pub(crate) fn bound(self) -> Bound {
        match self {
            Self::Blackhole | Self::Handshake => Bound::Connect,
            Self::NeverReads => Bound::WriteIdle,
            Self::NeverAnswers => Bound::Head,
            Self::Stalls => Bound::ReadIdle,
            Self::Drips => Bound::Deadline,
            Self::Queue => Bound::Acquire,
        }
    }

    /// Where the call stands when that bound strikes, and what is proven then.
    pub(crate) fn proven(self) -> (Phase, Delivery) {
        match self {
            Self::Blackhole | Self::Handshake => (Phase::Connecting, Delivery::NotSent),
            Self::NeverReads => (Phase::Sending, Delivery::NotSent),
            Self::NeverAnswers => (Phase::AwaitingHead, Delivery::MaybeSent),
            Self::Stalls | Self::Drips => (Phase::ReadingBody, Delivery::Answered),
            Self::Queue => (Phase::Queued, Delivery::NotSent),
        }
    }

    /// Makes a call that meets it, with these bounds.
    pub(crate) async fn meet(self, timeouts: &Timeouts, protocol: Protocol) -> Struck {
        match self {
            Self::Blackhole => {
                let (socket, addr) = bound();
                socket.listen(0).unwrap();
                // The queue has room for one; whoever comes next gets no answer at all.
                let _first = std::net::TcpStream::connect(addr).unwrap();
                let stack = stack(timeouts, protocol, 8, nodelay());
                struck(&stack, order(&format!("http://{addr}/"))).await
            }
            Self::Handshake => {
                let server = raw::Server::start(|mut conn| async move {
                    conn.drain().await;
                    Ok(())
                });
                let server = server.unwrap();
                let stalls = service_fn(|uri: Uri| Box::pin(handshake(uri)));
                let stack = stack(timeouts, protocol, 8, stalls);
                struck(&stack, order(&server.url("/"))).await
            }
            Self::Queue => {
                let venue = Venue::start().unwrap();
                let stack = stack(timeouts, protocol, 1, nodelay());
                let first = hold_the_slot(&stack, &venue);
                while venue.ledger().is_empty() {
                    tokio::task::yield_now().await;
                }
                let second = struck(&stack, order(&venue.url("/"))).await;
                assert_eq!(venue.ledger().applied("order-1"), 0);
                first.abort();
                second
            }
            Self::NeverReads | Self::NeverAnswers | Self::Stalls | Self::Drips => {
                let venue = Venue::start().unwrap();
                let (fault, body) = match self {
                    Self::NeverReads => (Fault::Stall { at: Point::Head }, large()),
                    Self::NeverAnswers => (Fault::Stall { at: Point::Body }, full("buy 100")),
                    Self::Stalls => (
                        Fault::Stall {
                            at: Point::Response,
                        },
                        full("buy 100"),
                    ),
                    _ => {
                        let interval = Duration::from_millis(150);
                        (Fault::Drip { interval }, full("buy 100"))
                    }
                };
                let stack = stack(timeouts, protocol, 8, nodelay());
                let mut request = post(&venue.url("/orders"), body);
                let value = fault.header_value();
                request.headers_mut().insert(Fault::HEADER, value);
                let struck = struck(&stack, request).await;
                // What is claimed holds, also once everything has come to rest.
                drop(stack);
                within(venue.ledger().settled()).await;
                let applied = venue.ledger().applied("order-1");
                assert_eq!(applied == 1, fault.applies(), "{struck:?}");
                assert!(!(struck.delivery.proves_not_applied() && applied > 0));
                struck
            }
        }
    }
}

fn order(url: &str) -> Request<Body> {
    post(url, full("buy 100"))
}

/// What a TLS library does with a peer that says nothing.
async fn handshake(uri: Uri) -> io::Result<TokioIo<TcpStream>> {
    let mut stream = TcpStream::connect(uri.authority().unwrap().as_str()).await?;
    stream.read_exact(&mut [0; 7]).await?;
    Ok(TokioIo::new(stream))
}

/// A request that keeps the slot, and that no bound of the stack ends before the test is over.
fn hold_the_slot(
    stack: &Stack,
    venue: &Venue,
) -> tokio::task::JoinHandle<Result<Response<Body>, BoxError>> {
    let unbounded = AttemptBounds::builder().attempt(None).head(None);
    let fault = Fault::Stall { at: Point::Body };
    let request = Request::post(venue.url("/"))
        .header(Fault::HEADER, fault.header_value())
        .extension(unbounded.build().unwrap())
        .extension(Deadline::after(Duration::from_secs(600)))
        .body(full("first"));
    tokio::spawn(stack.clone().oneshot(request.unwrap()))
}

/// A body that does not fit into the buffers of both ends and comes in small frames.
fn large() -> Body {
    let frames = (0..1024).map(|_| {
        let frame = Bytes::from_static(&[b'.'; 64 * 1024]);
        Ok(Frame::data(frame))
    });
    BodyExt::boxed(StreamBody::new(futures_util::stream::iter(frames)))
}

fn bound() -> (Socket, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    socket.bind(&any.into()).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    (socket, addr)
}
