//! What a venue may do wrong with one request, on purpose.

use std::time::Duration;

mod text;

pub use self::text::ParseFaultError;

/// Something a [`Venue`](crate::Venue) does wrong with one request, on purpose.
///
/// A fault reaches a request in one of two ways: the request carries it in the header
/// [`Fault::HEADER`], or the venue's [`Plan`](crate::Plan) draws it. What it did is in the
/// [`Entry`](crate::Entry) of that request.
///
/// Each variant says whether the request is *applied*, that is, whether the venue acted on it.
/// Faults that only HTTP/2 knows fall back to the nearest socket fault on HTTP/1 with the same
/// truth about `applied`; each says which.
///
/// ```
/// # use tower_outcome_testkit::{Fault, Point};
/// let fault = Fault::Close { at: Point::Applied };
/// assert_eq!(fault.to_string(), "close;at=applied");
/// assert_eq!("close;at=applied".parse(), Ok(fault));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// Answers with this status, before or after acting.
    ///
    /// The request body is read first, so that the connection stays usable.
    Status {
        /// The status code, 200 to 999.
        code: u16,
        /// Whether the venue acts on the request before it answers.
        applied: bool,
        /// The text of a `Retry-After` header, sent exactly as given.
        retry_after: Option<String>,
        /// More headers to send.
        headers: Vec<(String, String)>,
        /// The body, or a short JSON document when `None`.
        body: Option<String>,
    },
    /// Answers 200 with a document that says that it failed.
    ErrorBody {
        /// Whether the venue acts on the request all the same.
        applied: bool,
        /// The document.
        body: String,
    },
    /// Answers before the request body is read. Never applied.
    EarlyAnswer {
        /// The status code, 200 to 999.
        code: u16,
        /// Whether the body is then read and thrown away, so that the connection lives on;
        /// otherwise the connection (on HTTP/2 the stream, by RST_STREAM with NO_ERROR) is
        /// closed at once, which may cost the client the answer.
        drain: bool,
    },
    /// Closes the connection as `close(2)` does: FIN, then RST if request bytes were left unread.
    Close {
        /// How far the request gets first.
        at: Point,
    },
    /// Resets the connection (RST, by a linger of zero).
    Reset {
        /// How far the request gets first.
        at: Point,
    },
    /// Goes silent until the client goes away; on HTTP/2 only this stream does.
    Stall {
        /// How far the request gets first. At [`Point::Head`] the body is not read, so a large
        /// one stops flowing.
        at: Point,
    },
    /// Applies the request and sends the body of the answer one byte at a time.
    Drip {
        /// The time before each byte.
        interval: Duration,
    },
    /// RST_STREAM with REFUSED_STREAM right after the head (RFC 9113, section 8.7). Never applied.
    ///
    /// On HTTP/1: [`Fault::Close`] at [`Point::Head`].
    RefuseStream,
    /// RST_STREAM with any code.
    ///
    /// On HTTP/1: [`Fault::Reset`] at the same point.
    ResetStream {
        /// The error code (RFC 9113, section 7), known or not.
        code: u32,
        /// How far the request gets first.
        at: Point,
    },
    /// GOAWAY after the request was read (RFC 9113, section 6.8).
    ///
    /// The announcement is kept: a stream above the last id is never applied, so `applied` counts
    /// only if this stream is at or below it, and the last id is raised where a higher stream was
    /// applied already. Where the stream is covered and the connection stays open, an applied
    /// request is answered and one that was not is reset with CANCEL.
    ///
    /// On HTTP/1: not applied: [`Fault::Close`] at [`Point::Body`]; applied and `close`:
    /// [`Fault::Close`] at [`Point::Applied`]; else an answer with `connection: close`. Ids mean
    /// nothing there: only [`Last::Below`] keeps a request from being applied.
    GoAway {
        /// The last stream id to announce.
        last: Last,
        /// The error code (RFC 9113, section 7).
        code: u32,
        /// Whether the venue acts on the request, if the last id allows it.
        applied: bool,
        /// Whether the connection is closed right after the frame.
        close: bool,
    },
    /// Applies and answers, then closes the idle connection without a word.
    ///
    /// On HTTP/2 a GOAWAY goes before, and the connection is closed once no stream is open.
    CloseIdle,
    /// Applies and answers, then resets the idle connection.
    ///
    /// On HTTP/2 the reset waits until no other stream is open.
    ResetIdle,
    /// Applies and answers, then sends an unsolicited `408 Request Timeout` on the idle
    /// connection and closes it. A client may take that answer for its next request's.
    ///
    /// On HTTP/2: as [`Fault::CloseIdle`].
    StaleRequestTimeout,
    /// Answers a gRPC call with a status.
    ///
    /// On HTTP/1 trailers travel behind a chunked body.
    Grpc {
        /// The `grpc-status`.
        code: u32,
        /// Where the status travels.
        form: GrpcForm,
        /// The text of `grpc-retry-pushback-ms`, sent exactly as given.
        pushback: Option<String>,
        /// Whether the venue acts on the call.
        applied: bool,
    },
}

/// How far a request gets before a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "these are all the steps a request goes through"
)]
pub enum Point {
    /// The head was read, the body was not. Not applied.
    Head,
    /// The whole request was read. Not applied.
    Body,
    /// The venue acted; not a byte of the answer was sent.
    Applied,
    /// The venue acted; the head and a part of the body of the answer were sent.
    Response,
}

/// The last stream id that a GOAWAY announces, relative to the request's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "below, at, above and any are complete"
)]
pub enum Last {
    /// The stream before this one: says that this request was not acted on.
    Below,
    /// This stream: says that it may have been acted on.
    This,
    /// The highest possible id, as in a graceful shutdown.
    Max,
    /// This id.
    Exactly(u32),
}

/// Where the status of a gRPC call travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the gRPC protocol knows no other place"
)]
pub enum GrpcForm {
    /// In the response head, which ends the stream.
    TrailersOnly,
    /// In trailers that follow the head without a message between.
    TrailersBeforeMessage,
    /// In trailers after a message.
    TrailersAfterMessage,
}

// === impl Fault ===

impl Fault {
    /// The request header that carries a fault.
    pub const HEADER: &'static str = "x-fault";

    /// Makes a [`Fault::Status`] with nothing but a code.
    #[must_use]
    pub fn status(code: u16, applied: bool) -> Self {
        Self::Status {
            code,
            applied,
            retry_after: None,
            headers: Vec::new(),
            body: None,
        }
    }

    /// Makes a [`Fault::Status`] that is not applied and says when to come back.
    #[must_use]
    pub fn retry_after(code: u16, text: impl Into<String>) -> Self {
        Self::Status {
            code,
            applied: false,
            retry_after: Some(text.into()),
            headers: Vec::new(),
            body: None,
        }
    }

    /// Returns the value for the header [`Fault::HEADER`]: its `Display` form, visible ASCII.
    #[must_use]
    pub fn header_value(&self) -> http::HeaderValue {
        // `Display` escapes everything that is not visible ASCII.
        http::HeaderValue::from_str(&self.to_string())
            .unwrap_or_else(|_| http::HeaderValue::from_static(""))
    }

    /// Returns whether a request with this fault is applied, if nothing else stops it.
    ///
    /// Limits, demands and a GOAWAY below the stream may still keep it from being applied.
    #[must_use]
    pub fn applies(&self) -> bool {
        match self {
            Self::Status { applied, .. }
            | Self::ErrorBody { applied, .. }
            | Self::Grpc { applied, .. } => *applied,
            Self::GoAway { last, applied, .. } => *applied && *last != Last::Below,
            Self::Close { at }
            | Self::Reset { at }
            | Self::Stall { at }
            | Self::ResetStream { at, .. } => at.is_applied(),
            Self::EarlyAnswer { .. } | Self::RefuseStream => false,
            Self::Drip { .. } | Self::CloseIdle | Self::ResetIdle | Self::StaleRequestTimeout => {
                true
            }
        }
    }

    /// Iterates over representatives of every fault at every point, for exhaustive soaks.
    ///
    /// [`Fault::Stall`] never ends by itself: a client needs a timeout to get past it.
    pub fn all() -> impl Iterator<Item = Self> {
        let mut all = Vec::new();
        for applied in [false, true] {
            for code in [400, 408, 418, 429, 500, 502, 503, 504] {
                all.push(Self::status(code, applied));
            }
            all.push(Self::ErrorBody {
                applied,
                body: r#"{"error":"busy"}"#.to_owned(),
            });
            for form in GrpcForm::ALL {
                all.push(Self::Grpc {
                    code: 14,
                    form,
                    pushback: None,
                    applied,
                });
            }
            for (last, code, close) in [
                (Last::Below, 0, false),
                (Last::Below, 0, true),
                (Last::This, 0, false),
                (Last::This, 0, true),
                (Last::This, 0xb, true),
                (Last::Max, 0, false),
                (Last::Max, 0, true),
                (Last::Exactly(0), 2, true),
            ] {
                all.push(Self::GoAway {
                    last,
                    code,
                    applied,
                    close,
                });
            }
        }
        all.push(Self::retry_after(429, "0"));
        all.push(Self::Grpc {
            code: 8,
            form: GrpcForm::TrailersOnly,
            pushback: Some("0".to_owned()),
            applied: false,
        });
        for drain in [false, true] {
            all.push(Self::EarlyAnswer { code: 413, drain });
        }
        for at in Point::ALL {
            all.push(Self::Close { at });
            all.push(Self::Reset { at });
            all.push(Self::Stall { at });
            for code in [0, 2, 8] {
                all.push(Self::ResetStream { code, at });
            }
        }
        all.push(Self::ResetStream {
            code: 7,
            at: Point::Response,
        });
        all.push(Self::Drip {
            interval: Duration::from_millis(1),
        });
        all.push(Self::RefuseStream);
        all.push(Self::CloseIdle);
        all.push(Self::ResetIdle);
        all.push(Self::StaleRequestTimeout);
        all.into_iter()
    }
}

// === impl Point ===

impl Point {
    /// Every point, in the order in which a request reaches them.
    pub const ALL: [Self; 4] = [Self::Head, Self::Body, Self::Applied, Self::Response];

    /// Returns whether the venue has acted on the request at this point.
    #[must_use]
    pub fn is_applied(self) -> bool {
        matches!(self, Self::Applied | Self::Response)
    }
}

// === impl GrpcForm ===

impl GrpcForm {
    /// Every form.
    pub const ALL: [Self; 3] = [
        Self::TrailersOnly,
        Self::TrailersBeforeMessage,
        Self::TrailersAfterMessage,
    ];
}
