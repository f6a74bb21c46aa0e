//! Attaching the witnesses to each attempt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Method, Request, header::CONTENT_TYPE, request};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{BodyTaken, BodyWitness, RequestBodyError, Tick, WitnessBody};
use crate::{
    Answer, Attempt, BoxError, Failure, Outcome, Reason, Repeatable,
    delivery::{self, Evidence},
};

/// Watches each attempt, so that a failure says how far the request got.
///
/// Put it directly above the client. What fails below it comes out as a [`Failure`] whose delivery
/// is what the error, the request body and (with [`WitnessConnector`](crate::WitnessConnector)) the
/// connection prove together.
///
/// # A body taken in part
///
/// A request whose body was not taken to its end counts as not sent: no complete request left this
/// process. That is wrong for servers that act on a request while it is still arriving, or without
/// looking at its body at all. gRPC calls, whose messages are acted on one by one, are recognised by
/// their content type: one of which a message was taken may have been acted on. `CONNECT` and requests
/// with `Upgrade` are acted on by their head. For other servers of that kind say
/// [`acts_on_parts`](Self::acts_on_parts); then the body proves nothing.
///
/// # Outcomes
///
/// The outcome in the failure is that of a request that must not be repeated; a classifier above,
/// which knows the request, improves on it. A request body that failed is the caller's error:
/// permanent, with [`Reason::RequestBody`].
///
/// # Cancellation
///
/// Dropping the response future drops the inner one; nothing else is held.
#[derive(Clone, Copy, Debug, Default)]
pub struct WitnessLayer {
    acts_on_parts: bool,
}

/// Watches each attempt. See [`WitnessLayer`].
#[derive(Clone, Debug)]
pub struct Witness<S> {
    inner: S,
    acts_on_parts: bool,
}

pin_project! {
    /// The response future of [`Witness`].
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        started: Tick,
        body: Option<BodyWitness>,
        acts_on: ActsOn,
    }
}

/// How much of a request the server needs before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActsOn {
    /// All of it.
    Whole,
    /// A message: the head alone is not enough.
    Message,
    /// Anything: the head alone may be enough.
    Part,
}

// === impl WitnessLayer ===

impl WitnessLayer {
    /// Creates the layer.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            acts_on_parts: false,
        }
    }

    /// Declares that the server may act on a request before all of it has arrived.
    #[must_use]
    pub const fn acts_on_parts(mut self) -> Self {
        self.acts_on_parts = true;
        self
    }
}

impl<S> Layer<S> for WitnessLayer {
    type Service = Witness<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Witness {
            inner,
            acts_on_parts: self.acts_on_parts,
        }
    }
}

// === impl Witness ===

impl<S> Witness<S> {
    /// Returns the inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, mutably.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service, by value.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B> Service<Request<B>> for Witness<S>
where
    S: Service<Request<WitnessBody<B>>>,
    S::Error: Into<BoxError>,
    B: Body,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let acts_on = if self.acts_on_parts {
            ActsOn::Part
        } else {
            ActsOn::of(&head)
        };
        let (body, witness) = WitnessBody::new(body, &head);
        // NOTE: before the request is handed down; see `Tick::next`.
        let started = Tick::next();
        ResponseFuture {
            inner: self.inner.call(Request::from_parts(head, body)),
            started,
            body: witness,
            acts_on,
        }
    }
}

// === impl ActsOn ===

impl ActsOn {
    /// What the head of a request says of it.
    fn of(head: &request::Parts) -> Self {
        if head.method == Method::CONNECT || head.headers.contains_key(http::header::UPGRADE) {
            Self::Part
        } else if is_grpc(head) {
            Self::Message
        } else {
            Self::Whole
        }
    }
}

fn is_grpc(head: &request::Parts) -> bool {
    head.headers.get(CONTENT_TYPE).is_some_and(|value| {
        value
            .as_bytes()
            .get(..16)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"application/grpc"))
    })
}

// === impl ResponseFuture ===

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(ready!(this.inner.poll(cx)).map_err(|error| {
            failure(
                error.into(),
                *this.started,
                this.body.as_ref(),
                *this.acts_on,
            )
            .into()
        }))
    }
}

fn failure(error: BoxError, started: Tick, body: Option<&BodyWitness>, acts_on: ActsOn) -> Failure {
    // Sealed, because a transport that has given up on the response may still be at work on the
    // request.
    let taken = body.map_or(BodyTaken::Whole, BodyWitness::seal);
    let incomplete = match taken {
        BodyTaken::Nothing => acts_on != ActsOn::Part,
        BodyTaken::Part | BodyTaken::Failed => acts_on == ActsOn::Whole,
        BodyTaken::Whole => false,
    };
    let evidence = Evidence {
        started: Some(started),
        has_body: body.is_some() && acts_on != ActsOn::Part,
        incomplete,
    };
    match (taken, body) {
        (BodyTaken::Failed, Some(body)) => {
            let delivery::Proof { delivery, by, .. } = delivery::Proof::with(&*error, evidence);
            let answer = if delivery.proves_not_applied() {
                Answer::Rejected {
                    reason: Reason::RequestBody,
                }
            } else {
                Answer::Unclear {
                    reason: Reason::RequestBody,
                    after: None,
                    transient: false,
                }
            };
            let outcome: Outcome = answer.outcome(Repeatable::No, Attempt::FIRST);
            let error = RequestBodyError::new(body.take_error(), error);
            Failure::new(outcome, delivery, error).with_proven_by(by)
        }
        _ => delivery::failure(error, evidence),
    }
}
