//! While the server is asked, nothing is held that the questions need.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use http::Method;
use http_body::Frame;
use tower::{ServiceBuilder, ServiceExt, service_fn};
use tower_outcome::{ConnectionLimitLayer, Failure, Reconciled, reconcile::How};
use tower_outcome_testkit::{Fault, Index};

use super::*;

/// An error page of more than any layer reads for nothing.
const LONG: usize = 100 * 1024;

#[tokio::test]
async fn a_long_answer_that_leaves_it_open_gives_its_connection_to_the_question() {
    let venue = venue(Index::new("/operations/"));
    let long = Fault::Status {
        code: 503,
        applied: true,
        retry_after: None,
        headers: Vec::new(),
        body: Some("x".repeat(LONG)),
    };
    let client = ServiceBuilder::new()
        .layer(reconcile(by_query(&venue)).build().unwrap())
        .layer(ConnectionLimitLayer::builder(1).build().unwrap())
        .service(below(Faults::new([long])));
    let result = client.oneshot(order(&venue, "order-1")).await;
    let report = Reconciled::in_result(&result).unwrap();
    assert_eq!(report.how(), Some(How::Found));
    assert_eq!((report.inquiries(), report.failures()), (1, 0));
    assert_eq!(seen(&venue, "order-1"), (1, 1));
}

/// A body of one piece, after which it ends or hangs.
struct Piece {
    data: Option<Bytes>,
    hangs: bool,
}

impl http_body::Body for Piece {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.data.take() {
            Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
            None if self.hangs => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

/// Sends twenty orders through as many slots to a server that answers each with 503 and with a page
/// of which only the beginning arrives.
async fn twenty(finding: fn(Response<Bytes>) -> Finding) -> Vec<Result<Response<()>, BoxError>> {
    let server = service_fn(|request: Request<Body>| async move {
        let hangs = request.method() == Method::POST;
        let data = Some(Bytes::from_static(b"the beginning"));
        let mut response = Response::new(Piece { data, hangs });
        if hangs {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        Ok::<_, BoxError>(response)
    });
    let by_query = ByQuery::new(
        |_: &Inquiry| Request::get("http://venue.test/operations").body(Body::default()),
        move |_: &Inquiry, answer| finding(answer),
    );
    let header = http::HeaderName::from_static(Ledger::OPERATION_HEADER);
    let layer = ReconcileLayer::builder(by_query).id_header(header);
    let client = ServiceBuilder::new()
        .layer(layer.build().unwrap())
        .layer(ConnectionLimitLayer::builder(20).build().unwrap())
        .service(server);
    let send = |number: usize| {
        let request = Request::post("http://venue.test/orders")
            .header(Ledger::OPERATION_HEADER, format!("order-{number}"))
            .body(Body::from("buy 100"))
            .unwrap();
        tokio::spawn(client.clone().oneshot(request))
    };
    let calls: Vec<_> = (0..20).map(send).collect();
    let mut results = Vec::new();
    for call in calls {
        let result = call.await.unwrap();
        assert_eq!(Reconciled::in_result(&result).unwrap().failures(), 0);
        results.push(match result {
            Ok(response) => {
                let (head, mut body) = response.into_parts();
                let data = body.frame().await.unwrap().unwrap().into_data().unwrap();
                assert_eq!(data, "the beginning");
                match body.frame().await {
                    Some(Err(error)) => Err(error),
                    _ => Ok(Response::from_parts(head, ())),
                }
            }
            Err(error) => Err(error),
        });
    }
    results
}

#[tokio::test(start_paused = true)]
async fn as_many_orders_as_slots_are_all_asked_about_while_their_answers_do_not_end() {
    for result in twenty(Finding::Applied).await {
        assert_eq!(result.unwrap().status(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_which_the_rest_was_let_go_says_so_at_its_end() {
    for result in twenty(|_| Finding::Pending).await {
        let error = result.unwrap_err();
        let failure = Failure::of(&*error).unwrap();
        assert!(failure.outcome().is_unknown());
        let why = format!("{failure:#}");
        assert!(why.contains("let go"), "{why}");
    }
}
