//! The orchestrator of the AWS SDKs, driven over the same request.
//!
//! It is no stack of layers: it has its serializer make the request and takes a connector in the place of
//! a service. Here the serializer makes the request of the bare loop, and what it takes to turn that into
//! one of its own kind is part of the figure, as it is for clients that are generated for it. It has a
//! time-out over everything and Retry with the quota of tokens, but no credentials, and no limiter, which
//! its standard mode is without.

use std::{
    convert::Infallible,
    hint::black_box,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};

use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime::client::orchestrator::operation::Operation;
use aws_smithy_runtime_api::client::{
    http::{
        HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
        http_client_fn,
    },
    orchestrator::{HttpRequest, HttpResponse},
    runtime_components::RuntimeComponents,
};
use aws_smithy_types::{body::SdkBody, retry::RetryConfig, timeout::TimeoutConfig};

use crate::call::{Burst, Order};

/// Answers at once and does nothing.
#[derive(Debug)]
struct Bare;

/// The loop around the orchestrator.
struct Invoke(Operation<(), (), Infallible>);

pub(crate) fn orchestrator() -> Box<dyn Burst> {
    let order = Order::new();
    let connector = SharedHttpConnector::new(Bare);
    let client =
        http_client_fn(move |_: &HttpConnectorSettings, _: &RuntimeComponents| connector.clone());
    let operation = Operation::builder()
        .service_name("venue")
        .operation_name("order")
        .http_client(client)
        .endpoint_url("https://venue.example")
        .no_auth()
        .sleep_impl(TokioSleep::new())
        .standard_retry(&RetryConfig::standard())
        .timeout_config(
            TimeoutConfig::builder()
                .operation_timeout(Duration::from_secs(10))
                .build(),
        )
        .serializer(move |()| {
            let request = order.keyed().map(|_| SdkBody::from(order.body()));
            Ok(HttpRequest::try_from(request)?)
        })
        .deserializer(|_| Ok(()))
        .build();
    Box::new(Invoke(operation))
}

// === impl Bare ===

impl HttpConnector for Bare {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        black_box(&request);
        let status = 200.try_into().expect("a status");
        HttpConnectorFuture::ready(Ok(HttpResponse::new(status, SdkBody::empty())))
    }
}

// === impl Invoke ===

impl Burst for Invoke {
    fn run(&mut self, calls: u32) {
        let burst = pin!(async {
            for _ in 0..calls {
                assert!(black_box(&self.0.invoke(()).await).is_ok(), "never fails");
            }
        });
        let polled = burst.poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_ready(), "the connector never waits");
    }
}
