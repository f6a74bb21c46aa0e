#![doc = include_str!("../README.md")]

#[cfg(feature = "aws-sigv4")]
mod aws;
mod body;
mod draft;
mod error;
mod fresh;
mod future;
#[cfg(any(
    feature = "aws-sigv4",
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
mod host;
#[cfg(feature = "jwt")]
mod jwt;
mod layer;
#[cfg(feature = "message-signatures")]
mod message;
mod nonces;
mod offset;
mod origin;
#[cfg(any(feature = "ecdsa", feature = "ed25519", feature = "rsa"))]
mod pem;
mod report;
mod seal;
mod secret;
mod service;
mod sign;
mod signing_time;
#[cfg(any(
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
mod template;
mod validity;

#[cfg(feature = "aws-sigv4")]
pub use self::aws::{AwsCredentialSource, AwsCredentials, AwsSigner, SharedAwsCredentials};
#[cfg(feature = "jwt")]
pub use self::jwt::{JwtKey, JwtSigner};
#[cfg(feature = "message-signatures")]
pub use self::message::{
    Component, DigestAlgorithm, FieldType, MessageSigner, MessageSignerBuilder, MessageVerifier,
    MessageVerifierBuilder, VerifiedMessage,
};
#[cfg(any(
    feature = "ecdsa",
    feature = "ed25519",
    feature = "hmac",
    feature = "rsa"
))]
pub use self::template::{
    HashAlgorithm, Key, Part, Template, TemplateBuilder, TextEncoding, Verified, Verifier,
    VerifyError,
};
pub use self::{
    body::SignedBody,
    draft::Draft,
    error::{SignError, SignErrorKind},
    fresh::{Fresh, Nonce, Token},
    future::ResponseFuture,
    layer::{SignLayer, SignLayerBuilder},
    nonces::{Nonces, NoncesBuilder, Strict},
    offset::{ClockOffset, ClockOffsetBuilder, OffsetEstimate},
    report::{Resigned, SignReport},
    seal::{Seal, SealFuture, SealLayer, SealedBody},
    secret::Secret,
    service::SignService,
    sign::{AsyncSign, Needs, Sign, Signed},
    signing_time::{SigningTime, Unit},
    validity::Validity,
};
