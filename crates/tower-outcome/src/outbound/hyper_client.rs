//! hyper-util's client as it has to be below a stack.

use http_body::Body;
use hyper_util::{
    client::legacy::{Client, connect::Connect},
    rt::{TokioExecutor, TokioTimer},
};
use tower_layer::Layer;
use tower_outcome_core::WitnessConnector;
use tower_outcome_timeout::{ConnectTimeout, ConnectTimeoutLayer};

use super::Outbound;

/// hyper-util's client with a connector that is bounded and watched.
pub type HyperClient<K, B> = Client<WitnessConnector<ConnectTimeout<K>>, B>;

impl<L> Outbound<L> {
    /// Makes hyper-util's client as it has to be below a stack, around a connector:
    ///
    /// - connecting is bounded as the [timeouts](super::OutboundBuilder::timeouts) say, if they are given;
    /// - the connections remember when they last took a byte, which proves requests
    ///   [unsent](crate::WitnessConnector);
    /// - it sends nothing again by itself, behind the backs of all layers.
    ///
    /// It speaks HTTP/1, and HTTP/2 where the connector's TLS has negotiated it. For other settings build
    /// one of your own with these three.
    pub fn hyper_client<K, B>(&self, connector: K) -> HyperClient<K, B>
    where
        WitnessConnector<ConnectTimeout<K>>: Connect + Clone,
        B: Body + Send,
        B::Data: Send,
    {
        let bounded = ConnectTimeoutLayer::within(self.connect_bound()).layer(connector);
        Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .retry_canceled_requests(false)
            .build(WitnessConnector::new(bounded))
    }
}
