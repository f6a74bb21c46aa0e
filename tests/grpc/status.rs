//! What the caller is told when nobody can know.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use socket2::{Domain, Socket, Type};
use tonic::{Code, Status, metadata::MetadataMap};
use tower_outcome::{DeadlineLayer, Delivery, Outcome, Reason, ReplayLayer};
use tower_outcome_desk::{Desk, Trouble, path};
use tower_outcome_testkit::{Fault, Point, Venue};

use super::stack::{
    ID, endpoint, failing, failure, order, orders, orders_by, place, report, timeouts, within,
};

#[tokio::test]
async fn an_order_that_may_have_been_placed_says_so_in_the_source_of_its_status() {
    for (at, applied) in [(Point::Body, 0), (Point::Applied, 1), (Point::Response, 1)] {
        let venue = Venue::start().unwrap();
        let request = failing(place(), &Fault::Close { at });
        let status = within(orders(venue.url("")).place(request))
            .await
            .unwrap_err();
        let failure = failure(&status);
        assert!(failure.outcome().is_unknown(), "{at:?}: {status:?}");
        assert_eq!(venue.ledger().applied(ID), applied);
        assert_eq!(venue.ledger().attempts(ID), 1);
        if at == Point::Response {
            continue;
        }
        assert_eq!(status.code(), Code::Unknown);
        assert_eq!(failure.delivery(), Delivery::MaybeSent);
        assert_eq!(report(&status).attempts(), 1);
        // The transport's own words are below.
        assert!(failure.source_ref().is_some());
    }
}

#[tokio::test]
async fn a_status_of_the_server_keeps_its_details_and_its_metadata() {
    let desk = Desk::open().await.unwrap();
    let mut metadata = MetadataMap::new();
    metadata.insert("x-desk", "7".parse().unwrap());
    let details = Bytes::from_static(b"details");
    let sent = Status::with_details_and_metadata(Code::Unavailable, "büsy", details, metadata);
    desk.next(path::PLACE, Trouble::After(sent.clone()));
    let status = within(orders(desk.url()).place(place())).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (sent.code(), sent.message())
    );
    assert_eq!(status.details(), sent.details());
    assert_eq!(status.metadata().get("x-desk").unwrap(), "7");
    assert!(failure(&status).outcome().is_unknown());
    assert_eq!(desk.times_placed(ID), 1);
}

#[tokio::test]
async fn unavailable_of_this_side_is_proof_and_of_the_server_it_is_none() {
    // Bound, so that nobody else gets the port, and not listening.
    let nobody = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = ([127, 0, 0, 1], 0).into();
    nobody.bind(&any.into()).unwrap();
    let addr = nobody.local_addr().unwrap().as_socket().unwrap();
    let here = within(orders(format!("http://{addr}")).place(place()))
        .await
        .unwrap_err();
    assert_eq!(here.code(), Code::Unavailable);
    assert_eq!(failure(&here).delivery(), Delivery::NotSent);
    assert!(failure(&here).outcome().is_retryable());
    // An order, and tried again all the same: nothing of it was sent.
    assert_eq!(report(&here).attempts(), 3);

    let desk = Desk::open().await.unwrap();
    desk.next(path::PLACE, Trouble::After(Status::unavailable("busy")));
    let there = within(orders(desk.url()).place(place())).await.unwrap_err();
    assert_eq!(there.code(), Code::Unavailable);
    assert_eq!(failure(&there).delivery(), Delivery::Answered);
    assert!(failure(&there).outcome().is_unknown());
}

#[tokio::test]
async fn cancelled_by_the_server_may_have_been_applied() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::PLACE, Trouble::After(Status::cancelled("never mind")));
    let status = within(orders(desk.url()).place(place())).await.unwrap_err();
    let unknown = Outcome::Unknown {
        reason: Reason::ServerError,
    };
    assert_eq!(failure(&status).outcome(), unknown);
    assert_eq!(status.code(), Code::Cancelled);
}

#[tokio::test]
async fn whoever_drops_a_call_has_somebody_told() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::PLACE, Trouble::Silent);
    let told = Arc::new(Mutex::new(None));
    let slot = Arc::clone(&told);
    let deadline = DeadlineLayer::builder(&timeouts()).on_abandoned(move |_| {
        let slot = Arc::clone(&slot);
        Box::new(move |abandoned| *slot.lock().unwrap() = Some(abandoned))
    });
    let mut orders = orders_by(
        endpoint(desk.url()),
        &timeouts(),
        ReplayLayer::new(),
        deadline.build(),
    );
    tokio::select! {
        result = orders.place(place()) => panic!("{result:?}"),
        () = within(desk.orders(1)) => {}
    }
    let abandoned = told.lock().unwrap().expect("told");
    assert!(abandoned.outcome().is_unknown());
    assert_eq!(abandoned.delivery(), Delivery::MaybeSent);
    assert_eq!(abandoned.attempts(), 1);

    // The stack is none the worse for it.
    let next = tonic::Request::new(order("order-2"));
    within(orders.place(next)).await.unwrap();
    assert_eq!(
        (desk.times_placed(ID), desk.times_placed("order-2")),
        (1, 1)
    );
}
