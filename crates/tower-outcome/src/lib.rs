//! Outbound tower layers that know whether a failed request may be sent again.
//!
//! # Example
//!
//! From an empty directory: `cargo init`, then `cargo add bytes http http-body-util`,
//! `cargo add hyper-util -F client-legacy,http1`, `cargo add tokio -F macros,rt-multi-thread` and
//! `cargo add tower-outcome`, and in `src/main.rs`:
//!
//! ```
//! use std::time::Duration;
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::connect::HttpConnector;
//! use tower_outcome::{BoxError, CallReport, Limit, Outbound, RateBudget, RetryLayer, Timeouts};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), BoxError> {
//!     # let venue = tower_outcome_testkit::Venue::start()?;
//!     # let url = venue.url("/orders");
//!     # /*
//!     let url = "http://venue.example/orders";
//!     # */
//!     let limit = Limit::sliding("requests", 500, Duration::from_secs(5));
//!     let outbound = Outbound::builder()
//!         .timeouts(Timeouts::builder().call(Duration::from_secs(10))) // response body included
//!         .retry(RetryLayer::builder()) // what is proven unsent, or harmless to repeat
//!         .rate_limit(RateBudget::builder("venue").limit(limit))
//!         .build()?;
//!     let client = outbound.boxed(outbound.hyper_client(HttpConnector::new()));
//!
//!     let order = Request::post(url).body(Full::new(Bytes::from("buy 100 ACME")))?;
//!     let result = client.send(order).await;
//!     println!("{:?}", CallReport::outcome_of(&result)); // Success, or what may be done about it
//!     # assert_eq!(CallReport::outcome_of(&result), tower_outcome::Outcome::Success);
//!     Ok(())
//! }
//! ```
//!
//! # The problem
//!
//! A request that *does* something fails. Was it applied? A connection that broke while the answer
//! was awaited looks the same whether the server never read the request or filled the order and
//! crashed. Two facts decide what may happen next, and they live in different places:
//!
//! 1. **how far the attempt got**, which only the transport knows ([`Delivery`]), and
//! 2. **whether repeating the request is harmless**, which only its sender knows ([`Repeatable`]).
//!
//! The layers of this family share one vocabulary for both. Together they yield an [`Outcome`], and
//! its fourth value is the honest one: [`Outcome::Unknown`], "it may have been applied".
//!
//! # The stack
//!
//! [`Outbound`] puts the layers into this order, and leaves out those that are not given:
//!
//! ```text
//!         caller
//!   ReplayLayer           makes a streaming body replayable
//!   DeadlineLayer         one instant for everything below, response body included
//!   IdempotencyKeyLayer   one key for all attempts of a call
//!   RetryLayer            decides by outcome; backoff, hints, budget
//!   ReconcileLayer        asks the server what became of an unknown outcome
//!   AuthRefreshLayer      attaches the credential; one refresh for all, one replay for each
//!   RateLimitLayer        one permit per wire request, by priority
//!   SignLayer             signs each attempt last, with a fresh time and nonce
//!   TimeoutLayer          bounds one attempt
//!   WitnessLayer          proves how far each attempt got
//!         hyper-util client (WitnessConnector around its connector) or tonic Channel
//! ```
//!
//! # Unknown
//!
//! An answer that is lost makes an order `Unknown`, and it is not sent again:
//!
//! ```
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::{
//!     client::legacy::{Client, connect::HttpConnector},
//!     rt::TokioExecutor,
//! };
//! use tower::{Service, ServiceBuilder, ServiceExt};
//! use tower_outcome::{
//!     CallReport, Outcome, RetryLayer, WitnessConnector, WitnessLayer,
//! };
//! use tower_outcome_testkit::{Fault, Point, Venue};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), tower_outcome::BoxError> {
//! // A server that applies the order and then closes the connection without a word.
//! let venue = Venue::start()?;
//! let fault = Fault::Close { at: Point::Applied };
//!
//! let client = Client::builder(TokioExecutor::new())
//!     .retry_canceled_requests(false)
//!     .build(WitnessConnector::new(HttpConnector::new()));
//! let mut client = ServiceBuilder::new()
//!     .layer(RetryLayer::new())
//!     .layer(WitnessLayer::new())
//!     .service(client);
//!
//! let order = Request::post(venue.url("/orders"))
//!     .header("x-operation-id", "order-1")
//!     .header(Fault::HEADER, fault.header_value())
//!     .body(Full::new(Bytes::from("buy 100")))?;
//! let result = client.ready().await?.call(order).await;
//!
//! // Nobody on this side can know, and nobody guessed.
//! assert!(matches!(CallReport::outcome_of(&result), Outcome::Unknown { .. }));
//! assert_eq!(venue.ledger().applied("order-1"), 1);
//! # Ok(())
//! # }
//! ```
//!
//! # Features
//!
//! | feature | gives |
//! |---|---|
//! | `auth-refresh` (default) | [`AuthRefreshLayer`], [`Credentials`] |
//! | `rate-limit` (default) | [`RateLimitLayer`], [`RateBudget`] |
//! | `reconcile` (default) | [`ReconcileLayer`], [`reconcile::ByQuery`], [`Resolutions`] |
//! | `retry` (default) | [`RetryLayer`], [`IdempotencyKeyLayer`] |
//! | `sign` | `SignLayer`; signers and verifiers with HMAC and Ed25519 keys, tokens for each request, HTTP Message Signatures |
//! | `ecdsa` | ECDSA keys for signers and tokens; implies `sign` |
//! | `rsa` | RSA keys for signers; implies `sign` |
//! | `aws-sigv4` | `AwsSigner` for AWS Signature Version 4; implies `sign` |
//! | `timeout` (default) | [`DeadlineLayer`], [`TimeoutLayer`], [`ConnectTimeoutLayer`], [`ConnectionLimitLayer`] |
//! | `file-store` | [`auth_refresh::FileStore`]: a credential for several processes |
//! | `oauth2` | [`auth_refresh::OAuth2`]: client credentials and refresh tokens |
//! | `tracing` | `reconcile::Traced`: events of unknown outcomes; implies `reconcile` |
//! | `uuid` | [`IdempotencyKeyLayer::random`] |
//! | `hyper-util` (default) | delivery evidence of hyper-util's legacy client, [`WitnessConnector`]; implies `hyper`, `h2` and `io` |
//! | `hyper` | delivery evidence of raw hyper connections |
//! | `h2` | delivery evidence of HTTP/2 streams |
//! | `tonic` | delivery evidence of tonic channels, `GrpcStatusLayer` |
//! | `io` | delivery evidence of bare I/O errors |
//! | `full` | all of them |
//!
//! Evidence features add proofs: with one switched on, a failure that would be
//! [`Delivery::MaybeSent`] may become [`Delivery::NotSent`] or [`Delivery::Refused`]. None takes a
//! proof away.

pub use tower_outcome_core::*;

pub mod docs;
pub mod outbound;

pub use self::outbound::{Outbound, OutboundBody, OutboundBuilder, OutboundClient, OutboundError};

/// Attaching a credential: one refresh for everybody, one replay for each.
#[cfg(feature = "auth-refresh")]
pub use tower_outcome_auth_refresh as auth_refresh;
#[cfg(feature = "auth-refresh")]
pub use tower_outcome_auth_refresh::{
    Attach, AuthRefreshLayer, Bearer, Credential, Credentials, FetchError, TokenSource,
    Unauthenticated, Unavailable,
};

/// Staying within the venue's limits, orders first.
#[cfg(feature = "rate-limit")]
pub use tower_outcome_rate_limit as rate_limit;
#[cfg(feature = "rate-limit")]
pub use tower_outcome_rate_limit::{
    Budget as RateBudget, Class, Cost, Guard, KeyedBudget, Limit, RateLimitLayer, Refused, Routes,
    Scope, Ticket, UsageHeaders,
};

/// Asking the server what became of a request whose outcome is unknown.
#[cfg(feature = "reconcile")]
pub use tower_outcome_reconcile as reconcile;
#[cfg(feature = "reconcile")]
pub use tower_outcome_reconcile::{
    ByQuery, Finding, Inquiry, OperationId, ReconcileLayer, Reconciled, Reconciler, Resolution,
    Resolutions,
};

/// Sending a request again, only when that is proven or declared safe.
#[cfg(feature = "retry")]
pub use tower_outcome_retry as retry;
#[cfg(feature = "retry")]
pub use tower_outcome_retry::{
    Backoff, Budget as RetryBudget, HintPolicy, Hints, IdempotencyKey, IdempotencyKeyLayer, Jitter,
    NoResend, RetryLayer,
};

/// Signing each attempt last, with a fresh time and nonce.
#[cfg(feature = "sign")]
pub use tower_outcome_sign as sign;
#[cfg(feature = "aws-sigv4")]
pub use tower_outcome_sign::{AwsCredentials, AwsSigner};
#[cfg(feature = "sign")]
pub use tower_outcome_sign::{
    ClockOffset, Draft, Fresh, Nonces, SealLayer, Sign, SignError, SignLayer, Template, Verifier,
};

/// Bounding a call, an attempt, a connection and a queue.
#[cfg(feature = "timeout")]
pub use tower_outcome_timeout as timeout;
#[cfg(feature = "timeout")]
pub use tower_outcome_timeout::{
    AttemptBounds, Bound, ConnectTimeoutLayer, ConnectionLimitLayer, DeadlineLayer, Elapsed,
    TimeoutLayer, Timeouts,
};

#[cfg(all(
    doctest,
    feature = "auth-refresh",
    feature = "hyper-util",
    feature = "rate-limit",
    feature = "retry",
    feature = "timeout"
))]
#[doc = include_str!("../../../README.md")]
mod readme {}
