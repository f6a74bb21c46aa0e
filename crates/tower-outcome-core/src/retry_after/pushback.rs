//! The server's word on retries in gRPC.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::{HintForm, RetryAfter};

/// Says what a gRPC server wants of the client's next attempt.
///
/// See the gRPC retry design (A6), "Pushback".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the design knows a wait or a stop, and a stop must not hide in a `_` arm"
)]
pub enum Pushback {
    /// The next attempt is welcome after this wait, instead of the client's own backoff.
    After(Duration),
    /// No further attempt is welcome.
    Stop,
}

// === impl Pushback ===

impl Pushback {
    /// Reads `grpc-retry-pushback-ms`, absent if the server did not push back.
    ///
    /// A value that was sent more than once is ambiguous, hence [`Pushback::Stop`].
    #[must_use]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all("grpc-retry-pushback-ms").iter();
        let first = values.next()?;
        Some(match values.next() {
            None => parse_pushback(first),
            Some(_) => Self::Stop,
        })
    }

    /// The wait as a hint, unless the server wants no further attempt.
    #[must_use]
    pub const fn retry_after(self) -> Option<RetryAfter> {
        match self {
            Self::After(delay) => Some(RetryAfter::new(delay, HintForm::Pushback)),
            Self::Stop => None,
        }
    }
}

/// Parses the value of `grpc-retry-pushback-ms`, a signed 32-bit number of milliseconds.
///
/// A negative, oversized or otherwise malformed value asks for no further attempt; unlike a
/// malformed `Retry-After`, it is not ignored.
#[must_use]
pub fn parse_pushback(value: &HeaderValue) -> Pushback {
    let text = value.to_str().unwrap_or_default().trim();
    // Checked because `parse` takes a sign.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Pushback::Stop;
    }
    match text.parse::<i32>() {
        Ok(millis) => Pushback::After(Duration::from_millis(millis.unsigned_abs().into())),
        Err(_) => Pushback::Stop,
    }
}
