//! Why a call did not succeed.

use std::fmt;

/// Why a call did not succeed, as a small set of stable labels.
///
/// The same labels appear in errors, spans and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The credential was not accepted; see a layer that refreshes credentials.
    AuthRejected,
    /// There is no credential to send the request with: the token server is down, or a human has to log
    /// in.
    AuthUnavailable,
    /// The signing time was too far from the server's clock.
    ClockSkew,
    /// The server has seen this operation identifier before. On a first attempt that is a mistake
    /// of the caller; after an attempt of unknown outcome it means that one arrived.
    Duplicate,
    /// The server has seen this nonce, or a higher one, under the same key.
    InvalidNonce,
    /// The request could not have been sent as it is: no absolute URI, an unsupported version.
    InvalidRequest,
    /// A limit on this side refused the request: a queue, a budget, a breaker, a deadline.
    LocalLimit,
    /// The server is too busy or down for maintenance.
    Overloaded,
    /// The server asked for fewer requests.
    RateLimited,
    /// The server refused the request for what it says.
    Rejected,
    /// The request body failed while it was being sent.
    RequestBody,
    /// The answer arrived only in part.
    ResponseBody,
    /// The server failed while it worked on the request.
    ServerError,
    /// Time ran out.
    TimedOut,
    /// The connection failed.
    Transport,
    /// The failure is of a kind that nobody here knows.
    Unrecognized,
    /// The layers of the stack stand in an order that cannot work.
    WrongOrder,
}

// === impl Reason ===

impl Reason {
    /// Returns the stable label: lower case, words joined by underscores.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::AuthRejected => "auth_rejected",
            Self::AuthUnavailable => "auth_unavailable",
            Self::ClockSkew => "clock_skew",
            Self::Duplicate => "duplicate",
            Self::InvalidNonce => "invalid_nonce",
            Self::InvalidRequest => "invalid_request",
            Self::LocalLimit => "local_limit",
            Self::Overloaded => "overloaded",
            Self::RateLimited => "rate_limited",
            Self::Rejected => "rejected",
            Self::RequestBody => "request_body",
            Self::ResponseBody => "response_body",
            Self::ServerError => "server_error",
            Self::TimedOut => "timed_out",
            Self::Transport => "transport",
            Self::Unrecognized => "unrecognized",
            Self::WrongOrder => "wrong_order",
        }
    }

    /// Returns whether the server asked for less, so that waiting helps more than trying.
    #[must_use]
    pub const fn is_throttling(self) -> bool {
        matches!(self, Self::RateLimited)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
