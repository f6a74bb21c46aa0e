//! What signs.

use std::{
    future::{Future, Ready, ready},
    sync::Arc,
};

use crate::{Draft, Fresh, SignError, Validity};

/// Signs a request at once.
///
/// It is shown the request as the caller made it ([`Draft`]) and what is new for this attempt
/// ([`Fresh`]), and adds what proves the sender: headers, parameters, or another body. It may be
/// asked several times for the same call, each time with the original request.
///
/// For a signer that has to wait, such as a key service, implement [`AsyncSign`] instead.
///
/// ```
/// use std::time::Duration;
/// use http::HeaderName;
/// use tower_outcome_sign::{Draft, Fresh, Sign, SignError, Validity};
///
/// /// Sends a time and a shared word.
/// struct Word(http::HeaderValue);
///
/// impl Sign for Word {
///     fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
///         draft.set_header(HeaderName::from_static("x-time"), fresh.time().as_secs().into())?;
///         draft.set_secret_header(HeaderName::from_static("x-word"), self.0.clone())?;
///         Ok(Validity::for_window(fresh.time(), Duration::from_secs(30)))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not sign requests",
    note = "use a template, or implement `Sign` (or `AsyncSign` where it has to wait)"
)]
pub trait Sign {
    /// Says what it needs; nothing but the head by default.
    fn needs(&self) -> Needs {
        Needs::HEAD
    }

    /// Signs a request, and says until when the result is valid.
    ///
    /// It is called in the future of the request and should not block. If it has taken so long that the
    /// result is stale, the request is not sent with it.
    ///
    /// # Errors
    ///
    /// If the request lacks something or cannot be written. It is then not sent.
    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError>;
}

/// Signs a request, and may have to wait for it.
///
/// Everything that implements [`Sign`] does so. A signature that has gone stale while it was waited
/// for is made again, up to twice; then the request is refused.
///
/// Signing starts when the service below is ready, which stays reserved meanwhile, and so does the turn
/// of the key where its nonces are [strict](crate::Strict). A time-out of the attempt below does not bound
/// it: give the key service a time-out of its own, or the call a deadline.
///
/// A key that never leaves its service signs like this; what is signed is put together before, and the
/// result put in afterwards:
///
/// ```
/// use std::{future::Future, pin::Pin, sync::Arc, time::Duration};
/// use http::{HeaderName, HeaderValue};
/// use tower_outcome_core::BoxError;
/// use tower_outcome_sign::{AsyncSign, Draft, Fresh, Needs, SignError, SignLayer, Signed, Validity};
///
/// /// The client of a key service.
/// struct KeyService { /* an address, a connection */ }
///
/// impl KeyService {
///     /// Has the service sign, and returns the signature in hexadecimal digits.
///     async fn sign(&self, key: &str, message: &[u8]) -> Result<String, BoxError> {
///         # let _ = key;
///         // A request to the service, with a time-out of its own.
///         Ok(format!("{:02x}", message.len()))
///     }
/// }
///
/// /// Signs time, method, target and body with a key of the service.
/// struct Remote {
///     service: Arc<KeyService>,
///     key: Arc<str>,
/// }
///
/// impl AsyncSign for Remote {
///     type Future = Pin<Box<dyn Future<Output = Result<Signed, SignError>> + Send>>;
///
///     fn needs_async(&self) -> Needs {
///         Needs::BODY
///     }
///
///     fn sign_async(&self, mut draft: Draft, fresh: Fresh) -> Self::Future {
///         let (service, key) = (Arc::clone(&self.service), Arc::clone(&self.key));
///         Box::pin(async move {
///             let (time, target) = (fresh.time().as_millis(), draft.uri().path_and_query());
///             let target = target.ok_or_else(|| SignError::missing("target"))?;
///             let mut message = format!("{time}\n{}\n{target}\n", draft.method()).into_bytes();
///             message.extend_from_slice(draft.body()?);
///             // Whoever retries may find the service there again.
///             let signature = service.sign(&key, &message).await;
///             let signature = signature.map_err(SignError::unavailable)?;
///             let signature = HeaderValue::try_from(signature)
///                 .map_err(|_| SignError::encoding("x-signature"))?;
///             draft.set_header(HeaderName::from_static("x-time"), time.into())?;
///             draft.set_secret_header(HeaderName::from_static("x-signature"), signature)?;
///             let validity = Validity::for_window(fresh.time(), Duration::from_secs(30));
///             Ok(Signed::new(draft, validity))
///         })
///     }
/// }
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let signer = Remote { service: Arc::new(KeyService {}), key: "orders".into() };
/// let layer = SignLayer::new(signer, "https://venue.example")?;
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
pub trait AsyncSign {
    /// The future of a signature.
    type Future: Future<Output = Result<Signed, SignError>>;

    /// Says what it needs; nothing but the head by default.
    fn needs_async(&self) -> Needs {
        Needs::HEAD
    }

    /// Signs at once where nothing has to be waited for; `None`, the default, has [`sign_async`](Self::sign_async)
    /// asked.
    #[inline]
    fn sign_now(&self, draft: &mut Draft, fresh: &Fresh) -> Option<Result<Validity, SignError>> {
        let _ = (draft, fresh);
        None
    }

    /// Signs a request.
    fn sign_async(&self, draft: Draft, fresh: Fresh) -> Self::Future;
}

/// A signed request, and until when it is valid.
#[derive(Debug)]
pub struct Signed {
    pub(crate) draft: Draft,
    pub(crate) validity: Validity,
}

/// What a signer needs of a request besides its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Needs {
    body: bool,
    nonce: bool,
    token: bool,
    /// Whether it has no key to sign with.
    verifies: bool,
}

// === impl Sign ===

impl<S: Sign> AsyncSign for S {
    type Future = Ready<Result<Signed, SignError>>;

    fn needs_async(&self) -> Needs {
        Sign::needs(self)
    }

    #[inline]
    fn sign_now(&self, draft: &mut Draft, fresh: &Fresh) -> Option<Result<Validity, SignError>> {
        Some(Sign::sign(self, draft, fresh))
    }

    fn sign_async(&self, mut draft: Draft, fresh: Fresh) -> Self::Future {
        ready(Sign::sign(self, &mut draft, &fresh).map(|validity| Signed::new(draft, validity)))
    }
}

impl<S: Sign + ?Sized> Sign for Box<S> {
    fn needs(&self) -> Needs {
        (**self).needs()
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        (**self).sign(draft, fresh)
    }
}

impl<S: Sign + ?Sized> Sign for Arc<S> {
    fn needs(&self) -> Needs {
        (**self).needs()
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        (**self).sign(draft, fresh)
    }
}

/// `None` leaves requests as they are: for stacks that are made from a file, which may say nothing of a
/// signer.
impl<S: Sign> Sign for Option<S> {
    fn needs(&self) -> Needs {
        self.as_ref().map_or(Needs::HEAD, S::needs)
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        match self {
            Some(signer) => signer.sign(draft, fresh),
            None => Ok(Validity::UNLIMITED),
        }
    }
}

// === impl Signed ===

impl Signed {
    /// Hands a signed request back.
    #[must_use]
    pub const fn new(draft: Draft, validity: Validity) -> Self {
        Self { draft, validity }
    }
}

// === impl Needs ===

impl Needs {
    /// Nothing but the head: the body goes through as it comes.
    pub const HEAD: Self = Self {
        body: false,
        nonce: false,
        token: false,
        verifies: false,
    };

    /// The head and all of the body, which is read up to the layer's bound.
    pub const BODY: Self = Self {
        body: true,
        nonce: false,
        token: false,
        verifies: false,
    };

    /// The body as well.
    pub const fn and_body(mut self) -> Self {
        self.body = true;
        self
    }

    /// A nonce as well.
    pub const fn and_nonce(mut self) -> Self {
        self.nonce = true;
        self
    }

    /// A token as well.
    pub const fn and_token(mut self) -> Self {
        self.token = true;
        self
    }

    /// Says that it has only a public key, so that no layer is built of it.
    #[cfg(any(
        feature = "ecdsa",
        feature = "ed25519",
        feature = "hmac",
        feature = "rsa"
    ))]
    pub(crate) const fn of_verifier(mut self) -> Self {
        self.verifies = true;
        self
    }

    /// Returns whether it cannot sign.
    pub(crate) const fn verifies(self) -> bool {
        self.verifies
    }

    /// Returns whether the body is needed.
    #[must_use]
    pub const fn body(self) -> bool {
        self.body
    }

    /// Returns whether a nonce is needed.
    #[must_use]
    pub const fn nonce(self) -> bool {
        self.nonce
    }

    /// Returns whether a token is needed.
    #[must_use]
    pub const fn token(self) -> bool {
        self.token
    }
}
