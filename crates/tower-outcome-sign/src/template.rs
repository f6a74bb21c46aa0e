//! Signers that are described, not written: an ordered list of parts, an algorithm, and where the
//! signature goes.

use std::{fmt, time::Duration};

use http::{HeaderName, HeaderValue};
use zeroize::Zeroizing;

use crate::{Draft, Fresh, Needs, Secret, Sign, SignError, Validity, draft::conflict};

mod assign;
mod body_field;
mod builder;
mod encoding;
mod eval;
mod json;
mod key;
mod lifetime;
mod part;
mod venues;
mod verify;

#[cfg(feature = "message-signatures")]
pub(crate) use self::eval::unescaped;
#[cfg(all(feature = "ecdsa", feature = "jwt"))]
pub(crate) use self::key::ecdsa;
#[cfg(feature = "jwt")]
pub(crate) use self::key::ed25519;
pub use self::{
    builder::TemplateBuilder,
    encoding::TextEncoding,
    key::Key,
    part::{HashAlgorithm, Part},
    verify::{Verified, Verifier, VerifyError},
};

use self::{
    assign::{Assign, Target, Value},
    eval::Eval,
    lifetime::Lifetime,
};

/// A signer that is described: what is signed, with which key, and where the result goes.
///
/// Ready-made for [Binance](Self::binance), [Bybit](Self::bybit), [OKX](Self::okx),
/// [Kraken](Self::kraken) and its [futures](Self::kraken_futures), [Coinbase
/// Exchange](Self::coinbase_exchange), [Bitstamp](Self::bitstamp), [Deribit](Self::deribit),
/// [BitMEX](Self::bitmex), [Robinhood](Self::robinhood), and for webhooks in the manner of
/// [Stripe](Self::stripe_webhook), [GitHub](Self::github_webhook), [Slack](Self::slack_webhook),
/// [Shopify](Self::shopify_webhook) and [Standard Webhooks](Self::standard_webhook).
///
/// An API that is not among them takes a dozen lines:
///
/// ```
/// use std::time::Duration;
/// use tower_outcome_sign::{Key, Part, Secret, Template, TextEncoding, Unit};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let signer = Template::builder(Key::hmac_sha256(Secret::new("the secret"))?)
///     .key_id("the public half")
///     .sign([
///         Part::Timestamp(Unit::Millis),
///         Part::Method,
///         Part::PathAndQuery,
///         Part::Body,
///     ])
///     .signature_as(TextEncoding::HexLower)
///     .header("x-key", [Part::KeyId])
///     .header("x-time", [Part::Timestamp(Unit::Millis)])
///     .header("x-sign", [Part::Signature])
///     .window(Duration::from_secs(5))
///     .build()?;
/// # let _ = signer;
/// # Ok(())
/// # }
/// ```
///
/// The same description verifies: see [`Verifier`].
#[derive(Clone)]
pub struct Template {
    key: Key,
    key_id: Secret,
    /// What is put into the request before it is signed, because it is signed too.
    before: Vec<Assign>,
    signed: Vec<Part>,
    encoding: TextEncoding,
    /// What is put into the request afterwards.
    after: Vec<Assign>,
    window: Option<Duration>,
    lifetime: Lifetime,
    /// Whether it is of a server that sends.
    webhook: bool,
    needs: Needs,
    /// The caller's headers that are signed.
    covered: Vec<HeaderName>,
}

// === impl Template ===

impl Template {
    /// Starts with the key.
    pub fn builder(key: Key) -> TemplateBuilder {
        TemplateBuilder::new(key)
    }

    /// Returns the headers that it puts into a request, which must not have them yet: for whoever passes on
    /// the requests of others, and removes them.
    pub fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        let assigns = self.before.iter().chain(&self.after);
        assigns.filter_map(|assign| match &assign.target {
            Target::Header(name) => Some(name),
            Target::Query(_) | Target::BodyField(_) => None,
        })
    }

    /// Puts something into the request. `text` is a buffer that is used again and again.
    fn assign(
        draft: &mut Draft,
        assign: &Assign,
        eval: &Eval<'_>,
        text: &mut Zeroizing<Vec<u8>>,
    ) -> Result<(), SignError> {
        assign.value.write(eval, draft, text)?;
        match &assign.target {
            Target::Header(name) => {
                let value = HeaderValue::from_bytes(text)
                    .map_err(|_| SignError::encoding(name.to_string()))?;
                if assign.secret {
                    draft.set_secret_header(name.clone(), value)
                } else {
                    draft.set_header(name.clone(), value)
                }
            }
            Target::Query(name) => {
                if body_field::is_in_form(draft, name) {
                    return Err(conflict(name.clone()));
                }
                draft.add_query(name, utf8(text, name)?)
            }
            Target::BodyField(name) => {
                let body = body_field::put(draft, name, utf8(text, name)?)?;
                draft.set_body(body);
                Ok(())
            }
        }
    }
}

fn utf8<'a>(text: &'a [u8], name: &str) -> Result<&'a str, SignError> {
    std::str::from_utf8(text).map_err(|_| SignError::encoding(name.to_owned()))
}

impl Sign for Template {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        let mut eval = Eval::new(self, fresh);
        // A passphrase may be in it.
        let mut text = Zeroizing::new(Vec::with_capacity(128));
        for assign in &self.before {
            Self::assign(draft, assign, &eval, &mut text)?;
        }
        let signature = self.key.sign_parts(&self.signed, &eval, draft)?;
        let signature = self.encoding.encode(&signature);
        eval.signature = Some(&signature);
        for name in &self.covered {
            draft.note_covered(name);
        }
        for assign in &self.after {
            Self::assign(draft, assign, &eval, &mut text)?;
        }
        match self.window {
            Some(_) => self.lifetime.end(eval.window, fresh.time()),
            None => Ok(Validity::UNLIMITED),
        }
    }
}

/// Shows the algorithm, and nothing of the keys.
impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
