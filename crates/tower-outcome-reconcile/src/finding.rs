//! What an inquiry finds.

use std::fmt;

use bytes::Bytes;
use http::Response;

use crate::shown::ShownResponse;

/// What an inquiry finds.
#[derive(Clone)]
#[non_exhaustive]
pub enum Finding {
    /// The server has done it. The response answers the caller in the place of the one that was lost, so
    /// it should look like that one.
    Applied(Response<Bytes>),
    /// The server has refused it for what it says, for good: a record that reads "rejected".
    Rejected(Response<Bytes>),
    /// The server has not done it and never will: it says so itself, of this very operation. That is
    /// more than not to know it, which is [`NotFound`](Self::NotFound). So it may be sent again; unless the
    /// server is known to have received it, which makes this a refusal.
    NotApplied,
    /// The server does not know it. It may be on its way, or the answer may come from a copy that lags.
    NotFound,
    /// The server knows it and has not decided. So it was received, and not to find it later is a lag.
    Pending,
    /// The answer says nothing about it. It counts for nothing.
    Unclear,
}

/// What somebody else knows of an operation, such as a stream of the server's events.
#[derive(Clone)]
#[non_exhaustive]
pub enum Resolution {
    /// The server has done it. The response answers the caller.
    Applied(Response<Bytes>),
    /// The server has refused it for what it says.
    Rejected(Response<Bytes>),
    /// The server has not done what was sent so far and never will, so it may be sent again; unless the server
    /// is known to have received it, which makes this a refusal. It must be true of the last attempt that has
    /// ended, not of one before: see [`Resolutions::resolve`](crate::Resolutions::resolve).
    NotApplied,
}

// === impl Finding ===

impl Finding {
    /// The server has done it, and there is nothing more to say: the answer is a 200 without a body.
    #[must_use]
    pub fn applied() -> Self {
        Self::Applied(Response::default())
    }
}

/// Of a record, the status and the names of its headers.
impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(record) => f
                .debug_tuple("Applied")
                .field(&ShownResponse(record))
                .finish(),
            Self::Rejected(record) => f
                .debug_tuple("Rejected")
                .field(&ShownResponse(record))
                .finish(),
            Self::NotApplied => f.write_str("NotApplied"),
            Self::NotFound => f.write_str("NotFound"),
            Self::Pending => f.write_str("Pending"),
            Self::Unclear => f.write_str("Unclear"),
        }
    }
}

// === impl Resolution ===

impl Resolution {
    /// The server has done it, and there is nothing more to say: the answer is a 200 without a body.
    #[must_use]
    pub fn applied() -> Self {
        Self::Applied(Response::default())
    }

    /// The server has refused it, and there is nothing more to say.
    #[must_use]
    pub fn rejected() -> Self {
        Self::Rejected(Response::default())
    }
}

/// Of a record, the status and the names of its headers.
impl fmt::Debug for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied(record) => f
                .debug_tuple("Applied")
                .field(&ShownResponse(record))
                .finish(),
            Self::Rejected(record) => f
                .debug_tuple("Rejected")
                .field(&ShownResponse(record))
                .finish(),
            Self::NotApplied => f.write_str("NotApplied"),
        }
    }
}
