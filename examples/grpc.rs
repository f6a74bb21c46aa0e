//! Code that tonic generates, over the whole stack: a query that is sent again, and an order that is not.
//!
//! ```sh
//! cargo run --example grpc
//! ```

use std::time::Duration;

use tonic::{Code, Status, body::Body, transport::Endpoint};
use tower::ServiceBuilder;
use tower_http::map_request_body::MapRequestBodyLayer;
use tower_outcome::{
    BoxError, CallReport, Failure, GrpcClassifier, GrpcStatusLayer, Limit, Outbound, Outcome,
    RateBudget, ReplayLayer, RetryLayer, Timeouts,
};
use tower_outcome_desk::{Desk, GetRequest, OrdersClient, PlaceRequest, Trouble, path};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    // A server of tonic's, which fails on demand.
    let desk = Desk::open().await?;
    let channel = Endpoint::from_shared(desk.url())?.connect_lazy();

    // gRPC has no methods that are safe by themselves, so it takes somebody to say which are.
    let classifier = GrpcClassifier::builder()
        .repeatable([path::GET])
        .unary([path::PLACE])
        .build()?;
    let limit = Limit::sliding("calls", 100, Duration::from_secs(1));
    let outbound = Outbound::builder()
        .classifier(classifier.clone())
        .replay(ReplayLayer::new()) // tonic's bodies cannot be cloned
        // The server is told how long each attempt has left.
        .timeouts(Timeouts::builder().grpc_timeout(true))
        .retry(RetryLayer::builder())
        .rate_limit(RateBudget::builder("desk").limit(limit))
        .build()?;
    let stack = ServiceBuilder::new()
        // Tells generated code what became of its call.
        .layer(GrpcStatusLayer::new().classifier(classifier))
        .layer(outbound)
        .layer(MapRequestBodyLayer::new(Body::new))
        .service(channel);
    let mut orders = OrdersClient::new(stack);

    let order = |id: &str| PlaceRequest {
        id: id.to_owned(),
        symbol: "ACME".to_owned(),
        quantity: 100,
    };
    let placed = orders.place(order("first")).await?;
    println!("placed   {:?}", placed.get_ref().id);

    // A query that meets a busy server is sent again, and the answer says how often.
    desk.next(path::GET, Trouble::Before(Status::unavailable("busy")));
    let id = "first".to_owned();
    let found = orders.get(GetRequest { id }).await?;
    let attempts = CallReport::of(found.extensions()).map_or(1, CallReport::attempts);
    println!(
        "found    {:?} after {attempts} attempts",
        found.get_ref().id
    );

    // An order that is placed, and answered with an error of the same code: who can tell?
    let late = Status::new(Code::Unavailable, "the answer got lost");
    desk.next(path::PLACE, Trouble::After(late));
    if let Err(status) = orders.place(order("second")).await {
        match Failure::of(&status).map(Failure::outcome) {
            Some(Outcome::Unknown { reason }) => {
                println!("unknown  \"second\" ({reason}): ask before sending it again");
            }
            other => println!("failed   \"second\": {other:?}, {status}"),
        }
    }
    let (calls, times) = (
        desk.seen(path::PLACE).len() - 1,
        desk.times_placed("second"),
    );
    println!("the desk was called {calls} times for it and placed it {times} times");
    Ok(())
}
