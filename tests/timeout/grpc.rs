//! The bounds around tonic's channel.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use tonic::{body::Body, transport::Endpoint};
use tower::{ServiceBuilder, ServiceExt};
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{
    Bound, ConnectionLimitLayer, DeadlineLayer, Delivery, Elapsed, Failure, TimeoutLayer, Timeouts,
    WitnessLayer,
};
use tower_outcome_testkit::{Fault, Point, Venue};

use super::stack::within;

#[tokio::test]
async fn a_call_that_is_not_answered_is_bounded_and_one_that_is_passes() {
    let venue = Venue::start().unwrap();
    let timeouts = Timeouts::builder().attempt(Duration::from_millis(200));
    let timeouts = timeouts.build().unwrap();
    let channel = Endpoint::from_shared(venue.url("")).unwrap().connect_lazy();
    let limit = ConnectionLimitLayer::builder(4).timeouts(&timeouts);
    let stack = ServiceBuilder::new()
        .layer(DeadlineLayer::new(&timeouts))
        .layer(limit.build().unwrap())
        .layer(TimeoutLayer::new(&timeouts))
        .layer(WitnessLayer::new())
        .layer(MapRequestBodyLayer::new(Body::new))
        .service(channel);
    let place = |fault: Option<Fault>| {
        let message = Full::new(Bytes::from_static(&[0, 0, 0, 0, 2, b'h', b'i']));
        let mut request = Request::post(venue.url("/venue.Orders/Place"))
            .header(CONTENT_TYPE, "application/grpc")
            .body(Body::new(message))
            .unwrap();
        if let Some(fault) = fault {
            let headers = request.headers_mut();
            headers.insert(Fault::HEADER, fault.header_value());
        }
        within(stack.clone().oneshot(request))
    };
    let answered = place(None).await.unwrap();
    assert_eq!(answered.status(), 200);
    assert!(answered.into_body().collect().await.is_ok());

    let stall = Fault::Stall { at: Point::Applied };
    let error = place(Some(stall)).await.unwrap_err();
    assert_eq!(Elapsed::of(&*error).unwrap().bound(), Bound::Attempt);
    let failure = Failure::of(&*error).unwrap();
    assert_eq!(failure.delivery(), Delivery::MaybeSent);
    assert!(failure.outcome().is_unknown());
}
