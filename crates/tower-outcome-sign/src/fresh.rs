//! What is made anew for each attempt.

use std::{fmt, sync::Arc, time::Duration};

use crate::{SignError, SigningTime};

/// What is made anew for each attempt: the time, the nonce, the token.
///
/// What stays the same for all attempts of a call, such as an idempotency key, is in the request
/// ([`Draft`](crate::Draft)) and cannot be made from this.
#[derive(Clone, Debug)]
pub struct Fresh {
    time: SigningTime,
    nonce: Option<Nonce>,
    token: Option<Token>,
    left: Option<Duration>,
}

/// A number that rises with every attempt under a key; made by [`Nonces`](crate::Nonces).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nonce(u64);

/// A text that no other attempt has: 128 random bits, or a text of the caller's.
///
/// The bits come from the layer's [`Random`](tower_outcome_core::Random). They make an attempt
/// unique; they are no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token(Repr);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Repr {
    Bits(u128),
    Text(Arc<str>),
}

// === impl Fresh ===

impl Fresh {
    /// Starts with the time alone.
    ///
    /// The layer does this for each attempt. It is public so that signers can be tested and used
    /// without the layer.
    #[must_use]
    pub const fn new(time: SigningTime) -> Self {
        Self {
            time,
            nonce: None,
            token: None,
            left: None,
        }
    }

    /// Sets the nonce.
    #[must_use]
    pub const fn with_nonce(mut self, nonce: Nonce) -> Self {
        self.nonce = Some(nonce);
        self
    }

    /// Sets the token.
    #[must_use]
    pub fn with_token(mut self, token: Token) -> Self {
        self.token = Some(token);
        self
    }

    /// Sets how long the caller will wait for this call.
    #[must_use]
    pub const fn with_time_left(mut self, left: Duration) -> Self {
        self.left = Some(left);
        self
    }

    pub(crate) const fn set_nonce(&mut self, nonce: Nonce) {
        self.nonce = Some(nonce);
    }

    pub(crate) fn set_token(&mut self, token: Token) {
        self.token = Some(token);
    }

    pub(crate) const fn set_time_left(&mut self, left: Duration) {
        self.left = Some(left);
    }

    pub(crate) const fn given_nonce(&self) -> Option<Nonce> {
        self.nonce
    }

    /// Returns the time of this attempt, as the server is believed to see it.
    #[must_use]
    pub const fn time(&self) -> SigningTime {
        self.time
    }

    /// Returns the nonce of this attempt.
    ///
    /// # Errors
    ///
    /// If the layer was not given any [`Nonces`](crate::Nonces).
    pub fn nonce(&self) -> Result<Nonce, SignError> {
        self.nonce.ok_or_else(|| SignError::missing("nonce"))
    }

    /// Returns the token of this attempt.
    ///
    /// # Errors
    ///
    /// If the signer did not ask for one in its [`Needs`](crate::Needs).
    pub fn token(&self) -> Result<&Token, SignError> {
        self.token
            .as_ref()
            .ok_or_else(|| SignError::missing("token"))
    }

    /// Returns how long the caller will wait, if there is a deadline: a window in which the server
    /// accepts the request need not be longer.
    #[must_use]
    pub const fn time_left(&self) -> Option<Duration> {
        self.left
    }
}

// === impl Nonce ===

impl Nonce {
    /// Takes a number; in a stack, [`Nonces`](crate::Nonces) does this.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Token ===

impl Token {
    /// Takes 128 random bits.
    #[must_use]
    pub const fn random(bits: u128) -> Self {
        Self(Repr::Bits(bits))
    }

    /// Takes a text, which every format then shows as it is.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self(Repr::Text(text.into()))
    }

    /// Writes it in the form of a random UUID (RFC 9562, version 4), lower case.
    #[must_use]
    pub fn to_uuid(&self) -> String {
        match &self.0 {
            Repr::Text(text) => text.to_string(),
            Repr::Bits(bits) => {
                let bits = bits & !(0xf << 76) | (0x4 << 76);
                let bits = bits & !(0x3 << 62) | (0x2 << 62);
                let hex = format!("{bits:032x}");
                let (a, b, c, d, e) = (
                    &hex[..8],
                    &hex[8..12],
                    &hex[12..16],
                    &hex[16..20],
                    &hex[20..],
                );
                format!("{a}-{b}-{c}-{d}-{e}")
            }
        }
    }

    /// Writes it as 32 hexadecimal digits, lower case.
    #[must_use]
    pub fn to_hex(&self) -> String {
        match &self.0 {
            Repr::Text(text) => text.to_string(),
            Repr::Bits(bits) => format!("{bits:032x}"),
        }
    }
}
