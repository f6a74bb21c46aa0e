//! A client without a long type.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use tower::{ServiceExt, util::BoxCloneSyncService};
use tower_layer::Layer;
use tower_outcome_core::BoxError;
use tower_service::Service;

use super::Outbound;

/// A client below a whole stack, without the types of what it is made of: to be kept in a struct, such as
/// the state of an axum router.
///
/// Made by [`Outbound::boxed`]. Clones share everything. A call costs an allocation for its future and
/// one for the body of the response, and [`send`](Self::send) one more, for a clone of the client.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use tower_outcome::{BoxError, OutboundClient};
///
/// #[derive(Clone)]
/// struct Desk {
///     venue: OutboundClient<Full<Bytes>>,
/// }
///
/// impl Desk {
///     async fn place(&self, order: Bytes) -> Result<http::StatusCode, BoxError> {
///         let request = http::Request::post("http://venue.example/orders").body(Full::new(order))?;
///         Ok(self.venue.send(request).await?.status())
///     }
/// }
/// ```
pub struct OutboundClient<B> {
    service: Boxed<B>,
}

type Boxed<B> = BoxCloneSyncService<Request<B>, Response<OutboundBody>, BoxError>;

/// The body of a response of an [`OutboundClient`].
///
/// Its errors are those of the stack: a deadline that strikes while it is read, say.
pub struct OutboundBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
}

/// The future of [`OutboundClient::send`].
#[must_use = "nothing is sent until it is polled"]
pub struct Sending<B> {
    service: Boxed<B>,
    /// Until it is sent.
    request: Option<Request<B>>,
    // A combinator with projected types would not be `Send` for all the compiler knows where `B` has a
    // boxed error in it.
    sent: Option<BoxFuture<'static, Result<Response<OutboundBody>, BoxError>>>,
}

// === impl Outbound ===

impl<L> Outbound<L> {
    /// Puts the stack around a client, and hides its type.
    pub fn boxed<S, B, RB>(&self, client: S) -> OutboundClient<B>
    where
        L: Layer<S>,
        L::Service: Service<Request<B>, Response = Response<RB>> + Clone + Send + Sync + 'static,
        <L::Service as Service<Request<B>>>::Error: Into<BoxError>,
        <L::Service as Service<Request<B>>>::Future: Send + 'static,
        B: 'static,
        RB: Body<Data = Bytes> + Send + 'static,
        RB::Error: Into<BoxError>,
    {
        let service = self
            .service(client)
            .map_response(|response: Response<RB>| response.map(OutboundBody::new))
            .map_err(Into::into);
        OutboundClient {
            service: BoxCloneSyncService::new(service),
        }
    }
}

// === impl OutboundClient ===

impl<B> OutboundClient<B> {
    /// Sends a request, when the client is ready for it.
    ///
    /// What became of it: [`CallReport::outcome_of`](crate::CallReport::outcome_of).
    ///
    /// # Errors
    ///
    /// Those of the stack; [`Failure::of`](crate::Failure::of) finds what is proven.
    ///
    /// # Cancellation
    ///
    /// Dropping the future is as dropping the response futures of all layers: nothing of theirs is kept,
    /// and what was sent was sent.
    pub fn send(&self, request: Request<B>) -> Sending<B> {
        Sending {
            service: self.service.clone(),
            request: Some(request),
            sent: None,
        }
    }
}

impl<B> Clone for OutboundClient<B> {
    fn clone(&self) -> Self {
        Self {
            service: self.service.clone(),
        }
    }
}

impl<B> fmt::Debug for OutboundClient<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundClient").finish_non_exhaustive()
    }
}

impl<B> Service<Request<B>> for OutboundClient<B> {
    type Response = Response<OutboundBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.service.call(request)
    }
}

// === impl Sending ===

impl<B> Future for Sending<B> {
    type Output = Result<Response<OutboundBody>, BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.request.is_some() {
            ready!(self.service.poll_ready(cx))?;
            if let Some(request) = self.request.take() {
                self.sent = Some(self.service.call(request));
            }
        }
        match &mut self.sent {
            Some(sent) => sent.as_mut().poll(cx),
            // There is one as soon as the request is gone.
            None => Poll::Pending,
        }
    }
}

// Nothing in it is pinned but what is boxed.
impl<B> Unpin for Sending<B> {}

impl<B> fmt::Debug for Sending<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sending").finish_non_exhaustive()
    }
}

// === impl OutboundBody ===

impl OutboundBody {
    fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self {
            inner: body.map_err(Into::into).boxed_unsync(),
        }
    }
}

impl Body for OutboundBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.inner).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl fmt::Debug for OutboundBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboundBody")
            .field("size_hint", &self.size_hint())
            .finish_non_exhaustive()
    }
}
