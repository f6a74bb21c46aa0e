//! hyper-util's client as it has to be below a stack.

use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll},
};

use http::Request;
use http_body::Body;
use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::{TokioExecutor, TokioTimer},
};
use tower_layer::Layer;
use tower_outcome_core::{BoxError, WitnessConnector};
use tower_outcome_timeout::{ConnectTimeout, ConnectTimeoutLayer};
use tower_service::Service;

use super::Outbound;

/// hyper-util's client with a connector that is bounded and watched.
pub type HyperClient<K, B> = SharedClient<WitnessConnector<ConnectTimeout<K>>, B>;

/// hyper-util's client behind one pointer.
///
/// Each layer that may have to wait or to send again keeps a clone of the service below it with each
/// request. hyper-util's client is a large struct of settings, which all of them would clone and move.
pub struct SharedClient<C, B> {
    client: Arc<Client<C, B>>,
}

// === impl Outbound ===

impl<L> Outbound<L> {
    /// Makes hyper-util's client as it has to be below a stack, around a connector:
    ///
    /// - connecting is bounded as the [timeouts](super::OutboundBuilder::timeouts) say, if they are given;
    /// - the connections remember when they last took a byte, which proves requests
    ///   [unsent](crate::WitnessConnector);
    /// - it sends nothing again by itself, behind the backs of all layers;
    /// - its clones are cheap.
    ///
    /// It speaks HTTP/1, and HTTP/2 where the connector's TLS has negotiated it. For other settings build
    /// one of your own with these, and put it into a [`SharedClient`].
    pub fn hyper_client<K, B>(&self, connector: K) -> HyperClient<K, B>
    where
        WitnessConnector<ConnectTimeout<K>>: Connect + Clone,
        B: Body + Send,
        B::Data: Send,
    {
        let bounded = ConnectTimeoutLayer::within(self.connect_bound()).layer(connector);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .retry_canceled_requests(false)
            .build(WitnessConnector::new(bounded));
        SharedClient::new(client)
    }
}

// === impl SharedClient ===

impl<C, B> SharedClient<C, B> {
    /// Puts a client behind a pointer.
    pub fn new(client: Client<C, B>) -> Self {
        Self {
            client: Arc::new(client),
        }
    }

    /// Returns the client.
    #[must_use]
    pub fn get_ref(&self) -> &Client<C, B> {
        &self.client
    }
}

impl<C, B> Clone for SharedClient<C, B> {
    fn clone(&self) -> Self {
        Self {
            client: Arc::clone(&self.client),
        }
    }
}

impl<C, B> fmt::Debug for SharedClient<C, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedClient").finish_non_exhaustive()
    }
}

impl<C, B> Service<Request<B>> for SharedClient<C, B>
where
    C: Connect + Clone + Send + Sync + 'static,
    B: Body + Send + Unpin + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = <Client<C, B> as Service<Request<B>>>::Response;
    type Error = <Client<C, B> as Service<Request<B>>>::Error;
    type Future = <Client<C, B> as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Service::<Request<B>>::poll_ready(&mut &*self.client, cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        (&*self.client).call(request)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::Full;
    use hyper_util::client::legacy::connect::HttpConnector;

    use super::*;

    #[test]
    fn what_layers_keep_of_a_client_is_one_pointer() {
        type Shared = HyperClient<HttpConnector, Full<Bytes>>;
        assert_eq!(size_of::<Shared>(), size_of::<usize>());
    }
}
