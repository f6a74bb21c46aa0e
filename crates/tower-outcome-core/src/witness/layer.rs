//! Attaching the witnesses to each attempt.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Request;
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::{AttemptWitness, WitnessBody, last_words};
use crate::{BoxError, CallContext, Stage, StageStamp, Stamped};

/// Watches each attempt, so that a failure says how far the request got.
///
/// Put it directly above the client. What fails below it comes out as a [`Failure`](crate::Failure) whose delivery
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
/// permanent, with [`Reason::RequestBody`](crate::Reason::RequestBody).
///
/// # Cancellation
///
/// Dropping the response future drops the inner one; nothing else is held. A layer above that gives
/// up waiting learns what is proven by dropping it through [`give_up`](crate::witness::give_up).
#[derive(Clone, Copy, Debug, Default)]
pub struct WitnessLayer {
    acts_on_parts: bool,
}

/// Watches each attempt. See [`WitnessLayer`].
#[derive(Clone, Debug)]
pub struct Witness<S> {
    inner: S,
    acts_on_parts: bool,
    stamp: StageStamp,
}

pin_project! {
    /// The response future of [`Witness`].
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        inner: F,
        witness: AttemptWitness,
        context: Option<CallContext>,
        stamped: Stamped,
        done: bool,
    }

    impl<F> PinnedDrop for ResponseFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            if !this.done {
                // Before the inner future goes, which may still be at work.
                last_words::say(|| this.witness.last_words());
            }
        }
    }
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
            stamp: StageStamp::new(Stage::Witness),
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

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let stamped = self.stamp.leave(&mut head.extensions);
        let (body, witness) = AttemptWitness::new(&head, body, self.acts_on_parts);
        let context = CallContext::of(&head.extensions).cloned();
        if let Some(context) = &context {
            context.watch(&witness);
        }
        ResponseFuture {
            inner: self.inner.call(Request::from_parts(head, body)),
            witness,
            context,
            stamped,
            done: false,
        }
    }
}

// === impl ResponseFuture ===

impl<F, T, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<T, E>>,
    E: Into<BoxError>,
{
    type Output = Result<T, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx));
        *this.done = true;
        Poll::Ready(match result {
            Ok(response) => {
                this.stamped.answered();
                if let Some(context) = this.context {
                    context.answered();
                }
                Ok(response)
            }
            Err(error) => Err(this.witness.failed(error.into()).into()),
        })
    }
}
