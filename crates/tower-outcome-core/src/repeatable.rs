//! Whether sending the same request twice is harmless.

use std::fmt;

use http::Extensions;

/// Whether sending the same request twice is harmless, and on whose word.
///
/// A classifier decides it from the request. A caller who knows better says so by putting the value
/// into the request's extensions; the caller's word wins in both directions.
///
/// ```
/// use http::Request;
/// use tower_outcome_core::{Repeatable, RepeatableBecause};
///
/// let mut request = Request::post("https://venue.example/orders").body(()).unwrap();
/// // The body carries a client order id that the venue accepts only once.
/// request.extensions_mut().insert(Repeatable::Yes(RepeatableBecause::Marked));
/// assert_eq!(
///     Repeatable::of(request.extensions()),
///     Some(Repeatable::Yes(RepeatableBecause::Marked)),
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition: a request is repeatable or it is not"
)]
pub enum Repeatable {
    /// Sending the request twice is harmless.
    Yes(RepeatableBecause),
    /// Sending the request twice may do something twice.
    No,
}

/// On whose word a request is repeatable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RepeatableBecause {
    /// The request carries an idempotency key, by which the server recognises a repeat.
    IdempotencyKey,
    /// The method is idempotent but not safe: `PUT` and `DELETE` (RFC 9110, section 9.2.2).
    IdempotentMethod,
    /// The caller said so.
    Marked,
    /// The method is safe: it asks and changes nothing (RFC 9110, section 9.2.1).
    SafeMethod,
}

// === impl Repeatable ===

impl Repeatable {
    /// Returns the mark that a caller left in the extensions, if there is one.
    #[must_use]
    #[inline]
    pub fn of(extensions: &Extensions) -> Option<Self> {
        // Mostly there are none, and then nothing is looked up.
        if extensions.is_empty() {
            return None;
        }
        extensions.get::<Self>().copied()
    }

    /// Returns whether sending the request twice is harmless.
    #[must_use]
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Yes(_))
    }

    /// Returns whether the request asks and changes nothing, so that an earlier attempt cannot
    /// have left anything behind.
    #[must_use]
    pub const fn is_safe(self) -> bool {
        matches!(self, Self::Yes(RepeatableBecause::SafeMethod))
    }

    /// Returns a stable label: `safe_method`, `idempotent_method`, `idempotency_key`, `marked` or
    /// `no`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Yes(RepeatableBecause::IdempotencyKey) => "idempotency_key",
            Self::Yes(RepeatableBecause::IdempotentMethod) => "idempotent_method",
            Self::Yes(RepeatableBecause::Marked) => "marked",
            Self::Yes(RepeatableBecause::SafeMethod) => "safe_method",
            Self::No => "no",
        }
    }
}

impl fmt::Display for Repeatable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}
