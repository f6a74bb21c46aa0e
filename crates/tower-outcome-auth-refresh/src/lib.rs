#![doc = include_str!("../README.md")]

mod attach;
mod builder;
mod course;
mod credential;
mod credentials;
mod flight;
mod future;
mod guard;
mod held;
mod layer;
mod mark;
mod moment;
#[cfg(feature = "oauth2")]
mod oauth2;
mod observer;
mod obtain;
mod refresh;
mod secret;
mod service;
mod source;
mod store;
mod unavailable;
mod windows;

#[cfg(feature = "oauth2")]
pub use self::oauth2::{OAuth2, OAuth2Builder};
#[cfg(feature = "file-store")]
pub use self::store::{FileLock, FileStore};
pub use self::{
    attach::{Attach, Bearer, Cookie, Headers, Unattachable},
    builder::CredentialsBuilder,
    credential::Credential,
    credentials::Credentials,
    future::ResponseFuture,
    guard::{ExpiryGuard, ExpiryGuardFuture, ExpiryGuardLayer},
    held::Snapshot,
    layer::{AuthRefreshLayer, AuthRefreshLayerBuilder},
    mark::Unauthenticated,
    observer::{
        Cause, LoginDue, Observer, Passed, RefreshFailed, Refreshed, Rejected, Replayed,
        StoreFailed, Waited,
    },
    secret::Secret,
    service::AuthRefresh,
    source::{FetchError, TokenSource},
    store::{MemoryStore, StoreError, Stored, Swap, TokenStore},
    unavailable::{Unavailable, UnavailableKind},
    windows::Windows,
};
