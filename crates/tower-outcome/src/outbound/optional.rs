//! A layer that is there or not, as a file says.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use http::{Request, Response};
use http_body_util::Either;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_outcome_core::BoxError;
use tower_service::Service;

/// A layer, or none; what an `Option` of a step becomes.
#[derive(Clone, Copy, Debug)]
pub struct OptionalLayer<L> {
    layer: Option<L>,
}

/// A service below a layer, or by itself.
#[derive(Clone, Copy, Debug)]
pub struct Optional<L, S> {
    inner: Inner<L, S>,
}

#[derive(Clone, Copy, Debug)]
enum Inner<L, S> {
    Layered(L),
    Bare(S),
}

pin_project! {
    /// The response future of [`Optional`].
    #[derive(Debug)]
    pub struct OptionalFuture<L, S> {
        #[pin]
        inner: InnerFuture<L, S>,
    }
}

pin_project! {
    #[derive(Debug)]
    #[project = InnerProjected]
    enum InnerFuture<L, S> {
        Layered { #[pin] future: L },
        Bare { #[pin] future: S },
    }
}

// === impl OptionalLayer ===

impl<L> OptionalLayer<L> {
    pub(super) const fn new(layer: Option<L>) -> Self {
        Self { layer }
    }
}

impl<S, L: Layer<S>> Layer<S> for OptionalLayer<L> {
    type Service = Optional<L::Service, S>;

    fn layer(&self, inner: S) -> Self::Service {
        let inner = match &self.layer {
            Some(layer) => Inner::Layered(layer.layer(inner)),
            None => Inner::Bare(inner),
        };
        Optional { inner }
    }
}

// === impl Optional ===

impl<L, S, B, LB, SB> Service<Request<B>> for Optional<L, S>
where
    L: Service<Request<B>, Response = Response<LB>>,
    L::Error: Into<BoxError>,
    S: Service<Request<B>, Response = Response<SB>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<Either<LB, SB>>;
    type Error = BoxError;
    type Future = OptionalFuture<L::Future, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match &mut self.inner {
            Inner::Layered(service) => service.poll_ready(cx).map_err(Into::into),
            Inner::Bare(service) => service.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = match &mut self.inner {
            Inner::Layered(service) => InnerFuture::Layered {
                future: service.call(request),
            },
            Inner::Bare(service) => InnerFuture::Bare {
                future: service.call(request),
            },
        };
        OptionalFuture { inner }
    }
}

// === impl OptionalFuture ===

impl<L, S, LB, SB, LE, SE> Future for OptionalFuture<L, S>
where
    L: Future<Output = Result<Response<LB>, LE>>,
    LE: Into<BoxError>,
    S: Future<Output = Result<Response<SB>, SE>>,
    SE: Into<BoxError>,
{
    type Output = Result<Response<Either<LB, SB>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().inner.project() {
            InnerProjected::Layered { future } => future.poll(cx).map(|result| match result {
                Ok(response) => Ok(response.map(Either::Left)),
                Err(error) => Err(error.into()),
            }),
            InnerProjected::Bare { future } => future.poll(cx).map(|result| match result {
                Ok(response) => Ok(response.map(Either::Right)),
                Err(error) => Err(error.into()),
            }),
        }
    }
}
