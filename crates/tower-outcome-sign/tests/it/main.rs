//! Everything through the public API.
#![cfg(all(feature = "hmac", feature = "jwt"))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

#[cfg(feature = "aws-sigv4")]
mod aws;
mod clock;
mod jwt;
#[cfg(all(
    any(feature = "ecdsa", feature = "rsa"),
    feature = "message-signatures"
))]
mod keys;
mod layer;
#[cfg(feature = "message-signatures")]
mod messages;
mod nonces;
mod resend;
mod seal;
mod secrets;
mod support;
mod templates;
#[cfg(feature = "aws-sigv4")]
#[path = "../traced/mod.rs"]
mod traced;
mod traits;
mod vectors;
