//! The body of a request, on its way from the caller to the inner service.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use tower_outcome_core::BoxError;

use crate::{
    SignError, SignedBody,
    body::{Reading, Whole},
    layer::Config,
};

/// The body of the request, on its way from the caller to the inner service.
pub(super) enum Payload<B> {
    Reading(Reading<B>),
    Whole(Whole),
    /// The data is with the signer, who is not asked twice.
    Lent(Option<Box<HeaderMap>>),
    Gone,
}

/// Reads the body, where it is needed.
#[inline]
pub(super) fn read<A, C, B>(
    config: &Config<A, C>,
    payload: &mut Payload<B>,
    cx: &mut Context<'_>,
) -> Poll<Result<(), SignError>>
where
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    if let (true, Payload::Reading(reading)) = (config.collects, &mut *payload) {
        match ready!(reading.poll_whole(cx, config.body_limit)) {
            Ok(whole) => *payload = Payload::Whole(whole),
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
    Poll::Ready(Ok(()))
}

// === impl Payload ===

impl<B> Payload<B> {
    /// What the signer is shown of it.
    #[inline]
    pub(super) fn shown<A, C>(&self, config: &Config<A, C>) -> Option<Bytes> {
        match self {
            Self::Whole(whole) if config.needs.body() => Some(whole.data.clone()),
            _ => None,
        }
    }

    /// Gives the signer what it is shown, for good.
    #[inline]
    pub(super) fn lend<A, C>(&mut self, config: &Config<A, C>) -> Option<Bytes> {
        if !config.needs.body() {
            return None;
        }
        let Self::Whole(whole) = self else {
            return None;
        };
        let lent = Self::Lent(whole.trailers.take());
        match std::mem::replace(self, lent) {
            Self::Whole(whole) => Some(whole.data),
            _ => None,
        }
    }

    /// Keeps what the signer was given, who may be asked twice.
    pub(super) fn share(&mut self, data: Option<&Bytes>) {
        if let (Self::Lent(trailers), Some(data)) = (&mut *self, data) {
            let (data, trailers) = (data.clone(), trailers.take());
            *self = Self::Whole(Whole { data, trailers });
        }
    }

    /// Makes the body that is sent, with the data that the signer left.
    #[inline]
    pub(super) fn take(
        &mut self,
        data: Option<Bytes>,
        keep: bool,
        whole: bool,
    ) -> Option<SignedBody<B>> {
        let own = match self {
            Self::Whole(own) if keep && whole => own.clone(),
            _ => match std::mem::replace(self, Self::Gone) {
                Self::Lent(trailers) => {
                    let data = data?;
                    return Some(SignedBody::whole(Whole { data, trailers }));
                }
                Self::Whole(own) => own,
                Self::Reading(reading) => {
                    return Some(SignedBody::streamed(reading.into_body()));
                }
                Self::Gone => return None,
            },
        };
        Some(SignedBody::whole(match data {
            Some(data) => Whole { data, ..own },
            None => own,
        }))
    }
}
