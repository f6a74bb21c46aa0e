//! The classifier for gRPC.

use std::{collections::HashSet, error::Error, fmt, sync::Arc};

use http::{HeaderMap, StatusCode, request, response};

use super::{BodySeen, Classify, Decision, Verdict, http_status::by_error};
use crate::{
    Answer, Attempt, ConfigError, Delivery, Pushback, Reason, Repeatable, RepeatableBecause,
};

/// Classifies gRPC calls by `grpc-status`.
///
/// Every gRPC request is a `POST`, so the method says nothing: the caller lists the methods that
/// may be repeated, or marks single calls with [`Repeatable`] in the request's extensions.
///
/// | `grpc-status` | repeatable | not repeatable |
/// |---|---|---|
/// | 0 OK | Success | Success |
/// | 14 UNAVAILABLE, 8 RESOURCE_EXHAUSTED (configurable) | Retryable | Unknown |
/// | 1 CANCELLED, 2 UNKNOWN, 4 DEADLINE_EXCEEDED, 13 INTERNAL, 15 DATA_LOSS | Permanent | Unknown |
/// | 16 UNAUTHENTICATED | Permanent (auth_rejected) | Permanent (auth_rejected) |
/// | 3, 5, 6, 7, 9, 10, 11, 12 | Permanent | Permanent |
///
/// `grpc-retry-pushback-ms` is honoured: a number is the wait before the next attempt, anything else
/// forbids one. A response without `grpc-status` whose HTTP status is not 200 is mapped as gRPC's
/// "HTTP to gRPC status code mapping" has it.
///
/// # Where the status is
///
/// It is read from the head of a trailers-only response. For methods listed as
/// [`unary`](GrpcClassifierBuilder::unary) or
/// [`repeatable`](GrpcClassifierBuilder::repeatable), the first frame of the body is awaited too, so
/// that a status in trailers before any message is seen. Other methods may be streams whose first
/// message depends on what the caller sends next; their head counts as the answer, and what the
/// trailers say is left to the caller. A status after the first message is not acted upon: the call has
/// been answered. Where an answer that breaks off is to be judged too, have the answers of those methods
/// [read whole](GrpcClassifierBuilder::whole).
#[derive(Clone, Debug)]
pub struct GrpcClassifier(Arc<Table>);

/// Builds a [`GrpcClassifier`]; start with [`GrpcClassifier::builder`].
#[derive(Debug, Default)]
#[must_use]
pub struct GrpcClassifierBuilder {
    table: Table,
    error: Option<ConfigError>,
}

/// What [`GrpcClassifier`] remembers of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrpcCall {
    repeatable: Repeatable,
    unary: bool,
}

#[derive(Debug)]
struct Table {
    repeatable: HashSet<Box<str>>,
    unary: HashSet<Box<str>>,
    /// How much of the answer of a unary method is read before it is judged: 0 for its first frame.
    whole: usize,
    /// One bit per status code.
    transient: u32,
}

const OK: u32 = 0;
const CANCELLED: u32 = 1;
const UNKNOWN: u32 = 2;
const DEADLINE_EXCEEDED: u32 = 4;
const PERMISSION_DENIED: u32 = 7;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const INTERNAL: u32 = 13;
const UNAVAILABLE: u32 = 14;
const DATA_LOSS: u32 = 15;
const UNAUTHENTICATED: u32 = 16;

// === impl GrpcClassifier ===

impl GrpcClassifier {
    /// Creates a classifier for which no method is repeatable.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Table::default()))
    }

    /// Starts with no repeatable methods and the defaults of the table.
    pub fn builder() -> GrpcClassifierBuilder {
        GrpcClassifierBuilder::default()
    }

    /// What a response says that ends without a status: the server's answer is lost.
    pub(crate) const LOST: Answer = Answer::Unclear {
        reason: Reason::ResponseBody,
        after: None,
        transient: false,
    };

    /// What the status in a header map says, if there is one.
    pub(crate) fn status(&self, headers: &HeaderMap) -> Option<Answer> {
        Some(self.code(grpc_status(headers)?, headers))
    }

    fn code(&self, code: u32, headers: &HeaderMap) -> Answer {
        let reason = match code {
            RESOURCE_EXHAUSTED => Reason::RateLimited,
            UNAVAILABLE => Reason::Overloaded,
            DEADLINE_EXCEEDED => Reason::TimedOut,
            UNAUTHENTICATED => Reason::AuthRejected,
            CANCELLED | UNKNOWN | INTERNAL | DATA_LOSS => Reason::ServerError,
            _ => Reason::Rejected,
        };
        let transient = code < 32 && self.0.transient >> code & 1 == 1;
        match code {
            OK => Answer::Applied,
            _ if transient => {
                let pushback = Pushback::from_headers(headers);
                Answer::Unclear {
                    reason,
                    after: pushback.and_then(Pushback::retry_after),
                    transient: pushback != Some(Pushback::Stop),
                }
            }
            CANCELLED | UNKNOWN | DEADLINE_EXCEEDED | INTERNAL | DATA_LOSS | UNAVAILABLE
            | RESOURCE_EXHAUSTED => Answer::Unclear {
                reason,
                after: None,
                transient: false,
            },
            // Codes above 16 are not defined; what they mean for the call is not known.
            code if code > UNAUTHENTICATED => Answer::Unclear {
                reason: Reason::Unrecognized,
                after: None,
                transient: false,
            },
            _ => Answer::Rejected { reason },
        }
    }
}

/// The status code in a header map, if there is one.
///
/// A status that is not the one way to write a number is UNKNOWN, as gRPC's own clients read it, and so are
/// two that contradict each other.
pub(crate) fn grpc_status(headers: &HeaderMap) -> Option<u32> {
    let mut values = headers.get_all("grpc-status").iter();
    let value = values.next()?;
    let agreed = values.all(|other| other == value);
    let code = value
        .to_str()
        .ok()
        .filter(|_| agreed)
        // Checked because `parse` takes a sign and zeros in front.
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(|text| *text == "0" || !text.starts_with('0'))
        .and_then(|text| text.parse().ok());
    Some(code.unwrap_or(UNKNOWN))
}

/// Something in between answered in gRPC's stead.
pub(crate) fn http_to_grpc(status: StatusCode) -> u32 {
    match status {
        StatusCode::BAD_REQUEST => INTERNAL,
        StatusCode::UNAUTHORIZED => UNAUTHENTICATED,
        StatusCode::FORBIDDEN => PERMISSION_DENIED,
        StatusCode::NOT_FOUND => UNIMPLEMENTED,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

impl Default for GrpcClassifier {
    fn default() -> Self {
        Self::new()
    }
}

impl Classify for GrpcClassifier {
    type Call = GrpcCall;

    fn call(&self, request: &request::Parts) -> GrpcCall {
        let path = request.uri.path();
        let listed = self.0.repeatable.contains(path);
        let repeatable = match Repeatable::of(&request.extensions) {
            Some(marked) => marked,
            None if listed => Repeatable::Yes(RepeatableBecause::Marked),
            None => Repeatable::No,
        };
        GrpcCall {
            repeatable,
            unary: listed || self.0.unary.contains(path),
        }
    }

    fn repeatable(&self, call: &GrpcCall) -> Repeatable {
        call.repeatable
    }

    fn response(&self, call: &GrpcCall, attempt: Attempt, head: &response::Parts) -> Verdict {
        if let Some(answer) = self.status(&head.headers) {
            return Verdict::Decided(answer.decide(call.repeatable, attempt));
        }
        if head.status != StatusCode::OK {
            let answer = self.code(http_to_grpc(head.status), &head.headers);
            return Verdict::Decided(answer.decide(call.repeatable, attempt));
        }
        match (call.unary, self.0.whole) {
            (false, _) => Verdict::Decided(Decision::SUCCESS),
            (true, 0) => Verdict::NeedsFirstFrame,
            (true, limit) => Verdict::NeedsBody { limit },
        }
    }

    fn body(
        &self,
        call: &GrpcCall,
        attempt: Attempt,
        _head: &response::Parts,
        body: BodySeen<'_>,
    ) -> Decision {
        let answer = match body {
            BodySeen::Began | BodySeen::TooLarge => Answer::Applied,
            BodySeen::Whole { trailers, .. } => trailers
                .and_then(|trailers| self.status(trailers))
                .unwrap_or(Self::LOST),
            BodySeen::Failed => {
                return Decision::new(self.broken_body(call, attempt), Delivery::Answered);
            }
        };
        answer.decide(call.repeatable, attempt)
    }

    fn error(&self, call: &GrpcCall, attempt: Attempt, error: &(dyn Error + 'static)) -> Decision {
        by_error(call.repeatable, attempt, error)
    }
}

// === impl GrpcClassifierBuilder ===

impl GrpcClassifierBuilder {
    /// Adds unary methods that may be repeated, as paths: `/package.Service/Method`.
    pub fn repeatable<P: AsRef<str>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        for path in paths {
            let path = self.path("repeatable", path.as_ref());
            self.table.repeatable.extend(path);
        }
        self
    }

    /// Adds unary methods that may not be repeated, so that a status in trailers before any message
    /// is seen.
    pub fn unary<P: AsRef<str>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        for path in paths {
            let path = self.path("unary", path.as_ref());
            self.table.unary.extend(path);
        }
        self
    }

    /// Has the answers of all listed methods read whole before they are judged, up to so many bytes: by
    /// default only the first frame of each.
    ///
    /// The status in the trailers counts then, wherever it is, and an answer that breaks off after its
    /// message is unknown for an order, and retryable where repeating is harmless, instead of a success
    /// whose caller finds an error in it. The message is handed on when its trailers are there.
    ///
    /// A longer answer counts by its first frame.
    pub fn whole(mut self, bytes: usize) -> Self {
        self.table.whole = bytes;
        self
    }

    /// Sets the status codes after which asking again may help: by default 8 and 14.
    pub fn transient(mut self, codes: impl IntoIterator<Item = u8>) -> Self {
        self.table.transient = 0;
        for code in codes {
            if (1..=16).contains(&code) {
                self.table.transient |= 1 << code;
            } else {
                self.error.get_or_insert_with(|| {
                    ConfigError::new("transient", code, "status codes from 1 to 16")
                });
            }
        }
        if self.table.transient == 0 {
            self.error.get_or_insert_with(|| {
                ConfigError::new("transient", [(); 0], "at least one status code")
            });
        }
        self
    }

    /// Builds the classifier.
    ///
    /// # Errors
    ///
    /// If a path is not of the form `/package.Service/Method`, or the set of transient codes is
    /// empty or has a member outside 1 to 16.
    pub fn build(self) -> Result<GrpcClassifier, ConfigError> {
        match self.error {
            Some(error) => Err(error),
            None => Ok(GrpcClassifier(Arc::new(self.table))),
        }
    }

    fn path(&mut self, field: &'static str, path: &str) -> Option<Box<str>> {
        let is_path = path
            .strip_prefix('/')
            .and_then(|rest| rest.split_once('/'))
            .is_some_and(|(service, method)| {
                !service.is_empty() && !method.is_empty() && !method.contains('/')
            });
        if !is_path {
            self.error.get_or_insert_with(|| {
                ConfigError::new(field, path, "a path such as \"/package.Service/Method\"")
            });
            return None;
        }
        Some(path.into())
    }
}

// === impl GrpcCall ===

impl GrpcCall {
    /// Returns whether sending the request twice is harmless, and on whose word.
    #[must_use]
    pub const fn repeatable(&self) -> Repeatable {
        self.repeatable
    }
}

impl fmt::Display for GrpcCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.unary { "unary" } else { "any" };
        write!(f, "{kind} call, repeatable: {}", self.repeatable)
    }
}

// === impl Table ===

impl Default for Table {
    fn default() -> Self {
        Self {
            repeatable: HashSet::new(),
            unary: HashSet::new(),
            whole: 0,
            transient: 1 << RESOURCE_EXHAUSTED | 1 << UNAVAILABLE,
        }
    }
}
