//! Rules by which an API departs from the table.

use std::fmt;

use http::response;

use crate::{Answer, Attempt, HttpCall};

/// What a rule is shown.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Judged<'a> {
    /// What is remembered of the request.
    pub call: &'a HttpCall,
    /// Which attempt this is, and whether an earlier one may have been applied.
    pub attempt: Attempt,
    /// The response head.
    pub head: &'a response::Parts,
    /// The whole response body, for a [`BodyRule`]; empty for a [`HeadRule`].
    pub body: &'a [u8],
}

/// A rule that judges by the response head alone.
///
/// Closures work: `|seen: Judged<'_>| -> Option<Answer>`.
pub trait HeadRule: Send + Sync {
    /// Says what the server said, or `None` to leave it to the next rule and at last the table.
    fn judge(&self, seen: Judged<'_>) -> Option<Answer>;
}

/// A rule that needs the response body: an API that reports failure inside a `200 OK`, or whose
/// `403` is sometimes a rate limit.
///
/// Closures work: `|seen: Judged<'_>| -> Option<Answer>`. They are asked about every response that can
/// have a body, whatever its status, and what they say stands above the table: look at the status
/// first, or a `503` whose body looks like a refusal passes for one.
pub trait BodyRule: Send + Sync {
    /// Says whether the body of this response is worth reading.
    fn wants(&self, call: &HttpCall, head: &response::Parts) -> bool {
        let _ = (call, head);
        true
    }

    /// Says what the server said, or `None` to leave it to the next rule and at last the table.
    fn judge(&self, seen: Judged<'_>) -> Option<Answer>;
}

/// Prints as a count, since a rule is mostly a closure.
pub(super) struct Rules<R: ?Sized>(pub(super) Vec<Box<R>>);

// === impl HeadRule ===

impl<F> HeadRule for F
where
    F: Fn(Judged<'_>) -> Option<Answer> + Send + Sync,
{
    fn judge(&self, seen: Judged<'_>) -> Option<Answer> {
        self(seen)
    }
}

// === impl BodyRule ===

impl<F> BodyRule for F
where
    F: Fn(Judged<'_>) -> Option<Answer> + Send + Sync,
{
    fn judge(&self, seen: Judged<'_>) -> Option<Answer> {
        self(seen)
    }
}

// === impl Rules ===

impl<R: ?Sized> Rules<R> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<R: ?Sized> Default for Rules<R> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<R: ?Sized> fmt::Debug for Rules<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rules", self.0.len())
    }
}
