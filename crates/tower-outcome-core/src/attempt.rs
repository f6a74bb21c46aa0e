//! Which attempt of a call this is.

use http::Extensions;

/// Which attempt of a call this is, and what went before.
///
/// A layer that sends a request again puts this into the extensions of every attempt but the
/// first; without it, an attempt is the [first](Self::FIRST).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    number: u32,
    maybe_applied_before: bool,
}

// === impl Attempt ===

impl Attempt {
    /// The first attempt of a call.
    pub const FIRST: Self = Self {
        number: 1,
        maybe_applied_before: false,
    };

    /// Returns the attempt that the extensions of a request speak of.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Self {
        extensions.get::<Self>().copied().unwrap_or(Self::FIRST)
    }

    /// Returns the attempt that follows this one.
    ///
    /// `maybe_applied` says whether *this* attempt may have been applied; the fact stays with all
    /// that follow.
    #[must_use]
    pub const fn next(self, maybe_applied: bool) -> Self {
        Self {
            number: self.number.saturating_add(1),
            maybe_applied_before: self.maybe_applied_before || maybe_applied,
        }
    }

    /// Returns the number of the attempt; the first is 1.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns whether an earlier attempt of the same call may have been applied.
    ///
    /// Then a refusal of this attempt says nothing about that one: "duplicate identifier" means
    /// that it arrived, "insufficient funds" may mean that it was filled.
    #[must_use]
    pub const fn maybe_applied_before(self) -> bool {
        self.maybe_applied_before
    }
}

impl Default for Attempt {
    fn default() -> Self {
        Self::FIRST
    }
}
