//! Templates that are ready to use.

use std::time::Duration;

use tower_outcome_core::ConfigError;

#[cfg(feature = "hmac")]
use super::HashAlgorithm;
use super::Template;
#[cfg(any(feature = "ed25519", feature = "hmac", feature = "rsa"))]
use super::{Key, Part, TextEncoding};
#[cfg(any(feature = "ed25519", feature = "hmac"))]
use crate::Secret;
#[cfg(any(feature = "ed25519", feature = "hmac", feature = "rsa"))]
use crate::Unit;

impl Template {
    /// Changes how long after its time the server is to accept a request.
    ///
    /// # Errors
    ///
    /// If it is zero, or signatures of this kind do not age.
    pub fn with_window(mut self, window: Duration) -> Result<Self, ConfigError> {
        if window.is_zero() || self.window.is_none() {
            let expected = "longer than zero, of a template with a time";
            return Err(ConfigError::new("window", window, expected));
        }
        self.window = Some(window);
        Ok(self)
    }
}

/// Exchanges.
#[cfg(feature = "hmac")]
impl Template {
    /// Binance, with an HMAC key: `recvWindow` (5 s), `timestamp` and `signature` in the query; query
    /// and body are signed as one. For all its markets.
    ///
    /// The caller's query must be escaped as it is sent, non-ASCII symbols included.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the secret is empty or ends in a line end.
    pub fn binance(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        let key = Key::hmac_sha256(Secret::text(secret)?)?;
        binance(key_id, key, TextEncoding::HexLower)
    }

    /// Bybit, version 5: signs time, key, window (5 s), query and body.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the secret is empty or ends in a line end.
    pub fn bybit(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .key_id(key_id)
            .sign([
                Part::Timestamp(Unit::Millis),
                Part::KeyId,
                Part::WindowMillis,
                Part::Query,
                Part::Body,
            ])
            .header("x-bapi-api-key", [Part::KeyId])
            .header("x-bapi-timestamp", [Part::Timestamp(Unit::Millis)])
            .header("x-bapi-recv-window", [Part::WindowMillis])
            .header("x-bapi-sign", [Part::Signature])
            .window(Duration::from_secs(5))
            .build()
    }

    /// OKX, version 5: signs an RFC 3339 time, method, target and body; valid for 30 s.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the secret is empty or ends in a line end.
    pub fn okx(key_id: &str, secret: &str, passphrase: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .key_id(key_id)
            .sign([
                Part::TimestampRfc3339,
                Part::Method,
                Part::PathAndQuery,
                Part::Body,
            ])
            .signature_as(TextEncoding::Base64)
            .header("ok-access-key", [Part::KeyId])
            .header("ok-access-timestamp", [Part::TimestampRfc3339])
            .header(
                "ok-access-passphrase",
                [Part::Secret(Secret::text(passphrase)?)],
            )
            .header("ok-access-sign", [Part::Signature])
            .window(Duration::from_secs(30))
            .build()
    }

    /// Kraken, spot: a nonce in the body, a form or JSON. It does not age, and has to rise: see
    /// [`Nonces`](crate::Nonces).
    ///
    /// # Errors
    ///
    /// If the secret is not base64.
    pub fn kraken(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        let hash = Part::Hash(HashAlgorithm::Sha256, vec![Part::Nonce, Part::Body]);
        Self::builder(Key::hmac_sha512(Secret::base64(secret)?)?)
            .key_id(key_id)
            .sign([Part::Path, hash])
            .signature_as(TextEncoding::Base64)
            .body_field("nonce", [Part::Nonce])
            .header("api-key", [Part::KeyId])
            .header("api-sign", [Part::Signature])
            .build()
    }

    /// Kraken, futures: a nonce in a header; signs query, body, nonce and the path after
    /// `/derivatives`.
    ///
    /// # Errors
    ///
    /// If the secret is not base64.
    pub fn kraken_futures(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        let hash = Part::Hash(
            HashAlgorithm::Sha256,
            vec![
                Part::Query,
                Part::Body,
                Part::Nonce,
                Part::PathAfter("/derivatives".into()),
            ],
        );
        Self::builder(Key::hmac_sha512(Secret::base64(secret)?)?)
            .key_id(key_id)
            .sign([hash])
            .signature_as(TextEncoding::Base64)
            .header("apikey", [Part::KeyId])
            .header("nonce", [Part::Nonce])
            .header("authent", [Part::Signature])
            .build()
    }

    /// Coinbase Exchange: signs time, method, target and body; valid for 30 s.
    ///
    /// # Errors
    ///
    /// If the secret is not base64.
    pub fn coinbase_exchange(
        key_id: &str,
        secret: &str,
        passphrase: &str,
    ) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::base64(secret)?)?)
            .key_id(key_id)
            .sign([
                Part::Timestamp(Unit::Seconds),
                Part::Method,
                Part::PathAndQuery,
                Part::Body,
            ])
            .signature_as(TextEncoding::Base64)
            .header("cb-access-key", [Part::KeyId])
            .header("cb-access-timestamp", [Part::Timestamp(Unit::Seconds)])
            .header(
                "cb-access-passphrase",
                [Part::Secret(Secret::text(passphrase)?)],
            )
            .header("cb-access-sign", [Part::Signature])
            .window(Duration::from_secs(30))
            .build()
    }

    /// Bitstamp, version 2: a single-use UUID; a time that may be 150 s old.
    ///
    /// A request with a body needs a content type. Bitstamp refuses an empty body in a `POST`: send a
    /// field that means nothing.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the secret is empty or ends in a line end.
    pub fn bitstamp(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        let sender = [Part::literal("BITSTAMP "), Part::KeyId];
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .key_id(key_id)
            .sign(sender.iter().cloned().chain([
                Part::Method,
                Part::Host,
                Part::PathAndQuery,
                Part::ContentTypeOfBody,
                Part::TokenUuid,
                Part::Timestamp(Unit::Millis),
                Part::literal("v2"),
                Part::Body,
            ]))
            .header("x-auth", sender.iter().cloned())
            .header("x-auth-nonce", [Part::TokenUuid])
            .header("x-auth-timestamp", [Part::Timestamp(Unit::Millis)])
            .header("x-auth-version", [Part::literal("v2")])
            .header("x-auth-signature", [Part::Signature])
            .window(Duration::from_secs(150))
            .build()
    }

    /// Deribit, over HTTP: everything in `Authorization`; a time that may be 60 s old.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the secret is empty or ends in a line end.
    pub fn deribit(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        let line = || Part::literal("\n");
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .key_id(key_id)
            .sign([
                Part::Timestamp(Unit::Millis),
                line(),
                Part::TokenHex,
                line(),
                Part::Method,
                line(),
                Part::PathAndQuery,
                line(),
                Part::Body,
                line(),
            ])
            .header(
                "authorization",
                [
                    Part::literal("deri-hmac-sha256 id="),
                    Part::KeyId,
                    Part::literal(",ts="),
                    Part::Timestamp(Unit::Millis),
                    Part::literal(",sig="),
                    Part::Signature,
                    Part::literal(",nonce="),
                    Part::TokenHex,
                ],
            )
            .window(Duration::from_secs(60))
            .build()
    }

    /// BitMEX: signs method, target, the time at which it expires (10 s on) and body.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the secret is empty or ends in a line end.
    pub fn bitmex(key_id: &str, secret: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .key_id(key_id)
            .sign([
                Part::Method,
                Part::PathAndQuery,
                Part::Expires(Unit::Seconds),
                Part::Body,
            ])
            .header("api-key", [Part::KeyId])
            .header("api-expires", [Part::Expires(Unit::Seconds)])
            .header("api-signature", [Part::Signature])
            .window(Duration::from_secs(10))
            .build()
    }
}

/// Webhooks, and whatever signs in their manner.
#[cfg(feature = "hmac")]
impl Template {
    /// Stripe's webhooks: `t=` and `v1=` in a header, over the time, a dot and the body; five minutes.
    ///
    /// # Errors
    ///
    /// If the secret is empty or ends in a line end.
    pub fn stripe_webhook(secret: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .sign([
                Part::Timestamp(Unit::Seconds),
                Part::literal("."),
                Part::Body,
            ])
            .header_items(
                "stripe-signature",
                [
                    ("t", Part::Timestamp(Unit::Seconds)),
                    ("v1", Part::Signature),
                ],
            )
            .window(Duration::from_secs(300))
            .webhook()
            .build()
    }

    /// GitHub's webhooks: the body alone, without a time, so that a copy passes for ever.
    ///
    /// # Errors
    ///
    /// If the secret is empty or ends in a line end.
    pub fn github_webhook(secret: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .sign([Part::Body])
            .header(
                "x-hub-signature-256",
                [Part::literal("sha256="), Part::Signature],
            )
            .webhook()
            .build()
    }

    /// Slack's webhooks, version 0; five minutes.
    ///
    /// # Errors
    ///
    /// If the secret is empty or ends in a line end.
    pub fn slack_webhook(secret: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .sign([
                Part::literal("v0:"),
                Part::Timestamp(Unit::Seconds),
                Part::literal(":"),
                Part::Body,
            ])
            .header(
                "x-slack-request-timestamp",
                [Part::Timestamp(Unit::Seconds)],
            )
            .header("x-slack-signature", [Part::literal("v0="), Part::Signature])
            .window(Duration::from_secs(300))
            .webhook()
            .build()
    }

    /// Shopify's webhooks: the body alone, without a time.
    ///
    /// # Errors
    ///
    /// If the secret is empty or ends in a line end.
    pub fn shopify_webhook(secret: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha256(Secret::text(secret)?)?)
            .sign([Part::Body])
            .signature_as(TextEncoding::Base64)
            .header("x-shopify-hmac-sha256", [Part::Signature])
            .webhook()
            .build()
    }

    /// Twilio's webhooks: the URL and the fields of the form, HMAC-SHA-1, without a time. The request
    /// must have the URL that the sender used, port included.
    ///
    /// # Errors
    ///
    /// If the token is empty or ends in a line end.
    pub fn twilio_webhook(auth_token: &str) -> Result<Self, ConfigError> {
        Self::builder(Key::hmac_sha1(Secret::text(auth_token)?)?)
            .sign([Part::Url, Part::SortedForm])
            .signature_as(TextEncoding::Base64)
            .header("x-twilio-signature", [Part::Signature])
            .webhook()
            .build()
    }

    /// Standard Webhooks, version 1, with a symmetric secret, which begins with `whsec_`; five
    /// minutes. The token of the attempt is the message's identifier.
    ///
    /// # Errors
    ///
    /// If the secret is not base64 after its prefix.
    pub fn standard_webhook(secret: &str) -> Result<Self, ConfigError> {
        let secret = secret.strip_prefix("whsec_").unwrap_or(secret);
        Self::builder(Key::hmac_sha256(Secret::base64(secret)?)?)
            .sign([
                Part::TokenHex,
                Part::literal("."),
                Part::Timestamp(Unit::Seconds),
                Part::literal("."),
                Part::Body,
            ])
            .signature_as(TextEncoding::Base64)
            .header("webhook-id", [Part::TokenHex])
            .header("webhook-timestamp", [Part::Timestamp(Unit::Seconds)])
            .header_signatures("webhook-signature", "v1,")
            .window(Duration::from_secs(300))
            .webhook()
            .build()
    }
}

/// With Ed25519 keys.
#[cfg(feature = "ed25519")]
impl Template {
    /// Binance, with an Ed25519 key in a PEM; otherwise as with an HMAC key.
    ///
    /// # Errors
    ///
    /// If the PEM is none.
    pub fn binance_ed25519(key_id: &str, pem: &str) -> Result<Self, ConfigError> {
        binance(key_id, Key::ed25519_pem(pem)?, TextEncoding::Base64)
    }

    /// The same with the public key in a PEM, which verifies and does not sign.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the PEM is none.
    pub fn binance_ed25519_public(key_id: &str, pem: &str) -> Result<Self, ConfigError> {
        binance(key_id, Key::ed25519_public_pem(pem)?, TextEncoding::Base64)
    }

    /// Robinhood's crypto API: signs key, time, target, method and body; valid for 30 s. The key is the
    /// seed in base64.
    ///
    /// # Errors
    ///
    /// If the key is not base64 of 32 bytes.
    pub fn robinhood(key_id: &str, private_key: &str) -> Result<Self, ConfigError> {
        robinhood(key_id, Key::ed25519(&Secret::base64(private_key)?)?)
    }

    /// The same with the public key, in base64, which verifies and does not sign.
    ///
    /// # Errors
    ///
    /// If the key has no name, or is not base64 of a public key.
    pub fn robinhood_public(key_id: &str, public_key: &str) -> Result<Self, ConfigError> {
        let public = Secret::base64(public_key)?;
        robinhood(key_id, Key::ed25519_public(public.expose())?)
    }
}

#[cfg(feature = "rsa")]
impl Template {
    /// Binance, with an RSA key in a PEM; otherwise as with an HMAC key. The signature is PKCS#1 v1.5
    /// with SHA-256.
    ///
    /// # Errors
    ///
    /// If the PEM is none.
    pub fn binance_rsa(key_id: &str, pem: &str) -> Result<Self, ConfigError> {
        binance(key_id, Key::rsa_sha256_pem(pem)?, TextEncoding::Base64)
    }

    /// The same with the public key in a PEM, which verifies and does not sign.
    ///
    /// # Errors
    ///
    /// If the key has no name, or the PEM is none.
    pub fn binance_rsa_public(key_id: &str, pem: &str) -> Result<Self, ConfigError> {
        binance(
            key_id,
            Key::rsa_sha256_public_pem(pem)?,
            TextEncoding::Base64,
        )
    }
}

#[cfg(any(feature = "ed25519", feature = "hmac", feature = "rsa"))]
fn binance(key_id: &str, key: Key, encoding: TextEncoding) -> Result<Template, ConfigError> {
    Template::builder(key)
        .key_id(key_id)
        .sign([Part::Query, Part::Body])
        .signature_as(encoding)
        .header("x-mbx-apikey", [Part::KeyId])
        .query("recvWindow", [Part::WindowMillis])
        .query("timestamp", [Part::Timestamp(Unit::Millis)])
        .query("signature", [Part::Signature])
        .window(Duration::from_secs(5))
        .build()
}

#[cfg(feature = "ed25519")]
fn robinhood(key_id: &str, key: Key) -> Result<Template, ConfigError> {
    Template::builder(key)
        .key_id(key_id)
        .sign([
            Part::KeyId,
            Part::Timestamp(Unit::Seconds),
            Part::PathAndQuery,
            Part::Method,
            Part::Body,
        ])
        .signature_as(TextEncoding::Base64)
        .header("x-api-key", [Part::KeyId])
        .header("x-timestamp", [Part::Timestamp(Unit::Seconds)])
        .header("x-signature", [Part::Signature])
        .window(Duration::from_secs(30))
        .build()
}
