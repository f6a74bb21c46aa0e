//! Why a request could not be signed.

use std::{borrow::Cow, error::Error, fmt};

use tower_outcome_core::{BoxError, Delivery, Failure, Outcome, Reason};

/// Says why a request was not signed, and therefore not sent.
///
/// Never contains a secret, nor anything of the body.
#[derive(Debug)]
pub struct SignError {
    kind: SignErrorKind,
    source: Option<BoxError>,
}

/// The kinds of [`SignError`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignErrorKind {
    /// The request body failed while it was read.
    BodyFailed,
    /// The signer needs the body and did not say so in [`Needs`](crate::Needs).
    BodyNotAsked,
    /// The request body is larger than is read to be signed.
    BodyTooLarge {
        /// The bound, in bytes.
        limit: usize,
    },
    /// The caller has set what the signer is going to set.
    Conflict {
        /// The header, parameter or field.
        name: Cow<'static, str>,
    },
    /// Something cannot be written as a header value, URI or field.
    Encoding {
        /// The header, parameter or field.
        name: Cow<'static, str>,
    },
    /// The request lacks something that is signed.
    Missing {
        /// What it lacks.
        part: Cow<'static, str>,
    },
    /// The key's nonces are used up, or it was stopped after too many invalid nonces.
    NonceStopped,
    /// The request is for an origin to which this signer does not sign.
    Origin,
    /// The signature was no longer valid when it could have been sent.
    Stale,
    /// A layer below changed what was signed. Found in debug builds, by a
    /// [`SealLayer`](crate::SealLayer).
    Tampered {
        /// What was changed.
        part: Cow<'static, str>,
    },
    /// A request that carries no signature's seal has come to a [`SealLayer`](crate::SealLayer): a layer
    /// below the signature has made another request of it, or the seal stands above. Found in debug builds.
    Unsealed,
    /// The wall clock shows a time before 1970 or after 9999.
    TimeOutOfRange,
    /// The signer could not do its work now, and may be able to later.
    Unavailable,
    /// The signer refused for a reason of its own.
    Rejected,
}

// === impl SignError ===

impl SignError {
    /// Creates the error of a signer that lacks something.
    pub fn missing(part: impl Into<Cow<'static, str>>) -> Self {
        SignErrorKind::Missing { part: part.into() }.into()
    }

    /// Creates the error of a signer that could not write something.
    pub fn encoding(name: impl Into<Cow<'static, str>>) -> Self {
        SignErrorKind::Encoding { name: name.into() }.into()
    }

    /// Creates the error of a signer that may be able to sign later: a key service that does not
    /// answer.
    pub fn unavailable(source: impl Into<BoxError>) -> Self {
        Self::from(SignErrorKind::Unavailable).with_source(source)
    }

    /// Creates the error of a signer that refuses for good.
    pub fn rejected(source: impl Into<BoxError>) -> Self {
        Self::from(SignErrorKind::Rejected).with_source(source)
    }

    /// Returns what kind of error it is.
    #[must_use]
    pub const fn kind(&self) -> &SignErrorKind {
        &self.kind
    }

    /// Finds the error in a chain of causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        Failure::of(error)
            .and_then(Failure::source_ref)
            .and_then(|source| source.downcast_ref())
    }

    pub(crate) fn with_source(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What the caller gets: nothing was sent, whatever went wrong.
    #[cold]
    pub(crate) fn into_failure(self) -> Failure {
        let outcome = match self.kind {
            SignErrorKind::Unavailable => retryable(Reason::Transport),
            SignErrorKind::Stale => retryable(Reason::TimedOut),
            SignErrorKind::BodyFailed => permanent(Reason::RequestBody),
            SignErrorKind::NonceStopped => permanent(Reason::InvalidNonce),
            SignErrorKind::TimeOutOfRange => permanent(Reason::ClockSkew),
            _ => permanent(Reason::InvalidRequest),
        };
        Failure::new(outcome, Delivery::NotSent, self)
    }
}

impl From<SignErrorKind> for SignError {
    fn from(kind: SignErrorKind) -> Self {
        Self { kind, source: None }
    }
}

impl fmt::Display for SignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            SignErrorKind::Tampered { .. } | SignErrorKind::Unsealed => "signed request not sent: ",
            _ => "request not signed: ",
        })?;
        match &self.kind {
            SignErrorKind::BodyFailed => f.write_str("its body failed"),
            SignErrorKind::BodyNotAsked => f.write_str("the signer did not ask for the body"),
            SignErrorKind::BodyTooLarge { limit } => {
                write!(f, "its body is larger than {limit} bytes")
            }
            SignErrorKind::Conflict { name } => write!(f, "{name} is set already"),
            SignErrorKind::Encoding { name } => write!(f, "{name} cannot be written"),
            SignErrorKind::Missing { part } => write!(f, "it has no {part}"),
            SignErrorKind::NonceStopped => f.write_str(
                "the key was stopped after too many invalid nonces, or has none left; another \
                 program uses the same key, or has used it with a larger unit, or requests overtook \
                 each other",
            ),
            SignErrorKind::Origin => f.write_str("its origin is not one to sign for"),
            SignErrorKind::Stale => f.write_str("the signature was stale before it could be sent"),
            SignErrorKind::Tampered { part } => {
                write!(f, "a layer below the signature changed its {part}")
            }
            SignErrorKind::TimeOutOfRange => f.write_str("the clock is before 1970 or after 9999"),
            SignErrorKind::Unsealed => f.write_str(
                "it carries no seal: a layer below the signature made another request of it, or \
                 SealLayer stands above SignLayer",
            ),
            SignErrorKind::Unavailable => f.write_str("the signer is not available"),
            SignErrorKind::Rejected => f.write_str("the signer refused"),
        }
    }
}

impl Error for SignError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

const fn permanent(reason: Reason) -> Outcome {
    Outcome::Permanent { reason }
}

const fn retryable(reason: Reason) -> Outcome {
    Outcome::Retryable {
        reason,
        after: None,
    }
}
