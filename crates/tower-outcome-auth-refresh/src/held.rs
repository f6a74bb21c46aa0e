//! A credential that is held, ready to be put on requests.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use tower_outcome_core::Random;

use crate::{
    Credential, Windows,
    moment::{Mark, Moment},
};

/// A credential as it was attached to a request: the secret, its generation and its end, which belong
/// together. A cheap handle.
///
/// With [`hands_down`](crate::AuthRefreshLayerBuilder::hands_down) it is in the extensions of the
/// request, for a signer below.
#[derive(Clone)]
pub struct Snapshot(pub(crate) Arc<Held>);

/// What is held of a credential.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) credential: Credential,
    /// Prepared once; requests get clones.
    pub(crate) headers: Box<[(HeaderName, HeaderValue)]>,
    pub(crate) generation: u64,
    pub(crate) expiry: Mark,
    pub(crate) advisory: Mark,
    pub(crate) mandatory: Mark,
    /// Whether the server has taken it at least once.
    pub(crate) accepted: AtomicBool,
}

/// What to make of a credential that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    pub(crate) windows: Windows,
    pub(crate) max_age: Option<Duration>,
    pub(crate) random: &'a dyn Random,
}

// === impl Held ===

impl Held {
    /// Holds a credential that was asked for at `asked`, which is when its lifetime may have begun.
    /// `None` if it had expired by `at`.
    pub(crate) fn new(
        credential: Credential,
        headers: Vec<(HeaderName, HeaderValue)>,
        generation: u64,
        asked: Moment,
        at: Moment,
        terms: Terms<'_>,
    ) -> Option<Self> {
        let by_lifetime = credential
            .lifetime()
            .map_or(Mark::NEVER, |lifetime| asked.plus(lifetime));
        let by_date = credential.expires_at().map_or(Mark::NEVER, |expires_at| {
            // What the wall clock says is left counts on the other clock too, should this one be set.
            let left = expires_at.duration_since(at.wall).unwrap_or_default();
            Mark {
                mono: at.mono.checked_add(left),
                wall: Some(expires_at),
            }
        });
        let expiry = by_lifetime.min(by_date);
        if expiry.is_reached(at) {
            return None;
        }
        let by_age = terms
            .max_age
            .map_or(Mark::NEVER, |max_age| asked.plus(max_age));
        let (advisory, mandatory) = match expiry.left(at) {
            Some(left) => {
                let (advisory, mandatory) = terms.windows.of(left, terms.random);
                (expiry.minus(advisory), expiry.minus(mandatory))
            }
            None => (Mark::NEVER, Mark::NEVER),
        };
        let advisory = advisory.min(by_age);
        Some(Self {
            credential,
            headers: headers.into_boxed_slice(),
            generation,
            expiry,
            advisory,
            mandatory,
            accepted: AtomicBool::new(false),
        })
    }

    /// Returns whether a request brings all that would be attached, so that it is the caller's own. Half
    /// of a pair is none.
    #[inline]
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        // One walk over the few headers of a request costs less than the hash of a name.
        let is_there = |(name, value): &(HeaderName, HeaderValue)| {
            headers.keys().any(|present| {
                present == name && (*name != header::COOKIE || has_cookie(headers, value))
            })
        };
        !self.headers.is_empty() && self.headers.iter().all(is_there)
    }

    /// Puts the credential on a request.
    #[inline]
    pub(crate) fn put_on(&self, headers: &mut HeaderMap) {
        for (name, value) in &self.headers {
            if *name == header::COOKIE {
                put_cookie(headers, value);
            } else {
                headers.insert(name.clone(), value.clone());
            }
        }
    }

    /// Notes that the server took it. A load, for nearly every call.
    #[inline]
    pub(crate) fn accept(&self) {
        if !self.accepted.load(Ordering::Relaxed) {
            self.accepted.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }
}

/// Whether there is a cookie of the same name.
fn has_cookie(headers: &HeaderMap, ours: &HeaderValue) -> bool {
    let name = ours.as_bytes().split(|byte| *byte == b'=').next();
    headers.get_all(header::COOKIE).iter().any(|cookies| {
        cookies
            .as_bytes()
            .split(|byte| *byte == b';')
            .any(|cookie| cookie.trim_ascii_start().split(|byte| *byte == b'=').next() == name)
    })
}

/// A request has one field of cookies (RFC 6265, section 5.4).
fn put_cookie(headers: &mut HeaderMap, ours: &HeaderValue) {
    let mut line = Vec::new();
    for cookies in headers.get_all(header::COOKIE) {
        line.extend_from_slice(cookies.as_bytes());
        line.extend_from_slice(b"; ");
    }
    if line.is_empty() {
        headers.insert(header::COOKIE, ours.clone());
        return;
    }
    line.extend_from_slice(ours.as_bytes());
    // Two valid values with a valid text between are a valid one.
    if let Ok(mut value) =
        HeaderValue::from_maybe_shared(bytes::Bytes::from_owner(zeroize::Zeroizing::new(line)))
    {
        value.set_sensitive(true);
        headers.insert(header::COOKIE, value);
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// Returns the credential.
    #[must_use]
    pub fn credential(&self) -> &Credential {
        &self.0.credential
    }

    /// Returns the how-manieth credential it is, from 1. A later one has a higher number.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation
    }

    /// Returns until when it is good by the wall clock, if it has an end.
    #[must_use]
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.0.expiry.wall
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("generation", &self.generation())
            .field("expires_at", &self.expires_at())
            .finish_non_exhaustive()
    }
}
