//! Streams pass through: message by message, and once.

use futures_util::{Stream, stream};
use tokio::sync::mpsc;
use tonic::{Code, Status};
use tower_outcome::{Delivery, Repeatable, RepeatableBecause};
use tower_outcome_desk::{Desk, PlaceRequest, Trouble, WatchRequest, path};
use tower_outcome_testkit::raw::{self, frame};

use super::stack::{ID, failure, known, order, orders, within};

fn busy() -> Status {
    Status::unavailable("busy")
}

fn watch(events: u32) -> tonic::Request<WatchRequest> {
    known(WatchRequest {
        id: ID.into(),
        events,
    })
}

/// A stream of messages that the test sends when it likes.
fn piped() -> (
    mpsc::UnboundedSender<PlaceRequest>,
    impl Stream<Item = PlaceRequest> + Send + 'static,
) {
    let (to, from) = mpsc::unbounded_channel();
    let messages = stream::unfold(from, |mut from| async move {
        let message = from.recv().await?;
        Some((message, from))
    });
    (to, messages)
}

#[tokio::test]
async fn a_stream_of_answers_comes_whole_and_in_order() {
    let desk = Desk::open().await.unwrap();
    let events = within(orders(desk.url()).watch(watch(100))).await.unwrap();
    let mut events = events.into_inner();
    for number in 1..=100 {
        let event = within(events.message()).await.unwrap().unwrap();
        assert_eq!((event.id.as_str(), event.number), (ID, number));
    }
    assert!(within(events.message()).await.unwrap().is_none());
    assert_eq!(desk.seen(path::WATCH).len(), 1);
}

/// Each answer comes while the next question has not been asked yet.
#[tokio::test]
async fn nothing_is_held_back_of_streams_both_ways() {
    let desk = Desk::open().await.unwrap();
    let (to, messages) = piped();
    to.send(order("order-0")).unwrap();
    let answers = within(orders(desk.url()).trade(messages)).await.unwrap();
    let mut answers = answers.into_inner();
    for number in 0..10 {
        let placed = within(answers.message()).await.unwrap().unwrap();
        assert_eq!(placed.id, format!("order-{number}"));
        to.send(order(format!("order-{}", number + 1))).unwrap();
    }
    drop(to);
    let last = within(answers.message()).await.unwrap().unwrap();
    assert_eq!(last.id, "order-10");
    assert!(within(answers.message()).await.unwrap().is_none());
    assert_eq!(desk.seen(path::TRADE).len(), 1);
}

#[tokio::test]
async fn a_stream_of_questions_may_be_far_longer_than_what_is_kept() {
    let desk = Desk::open().await.unwrap();
    let symbol = "A".repeat(10_000);
    let basket = stream::iter((0..20).map(move |number| PlaceRequest {
        id: format!("order-{number}"),
        symbol: symbol.clone(),
        quantity: 1,
    }));
    let summary = within(orders(desk.url()).place_all(basket)).await.unwrap();
    assert_eq!(summary.get_ref().orders, 20);
    assert_eq!(desk.seen(path::PLACE_ALL).len(), 1);
    assert_eq!(desk.times_placed("order-19"), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_off_after_a_message_is_never_sent_again() {
    for marked in [false, true] {
        let desk = Desk::open().await.unwrap();
        desk.next(path::WATCH, Trouble::After(busy()));
        let mut request = watch(2);
        if marked {
            let marked = Repeatable::Yes(RepeatableBecause::Marked);
            request.extensions_mut().insert(marked);
        }
        let events = within(orders(desk.url()).watch(request)).await.unwrap();
        let mut events = events.into_inner();
        for number in [1, 2] {
            let event = within(events.message()).await.unwrap().unwrap();
            assert_eq!(event.number, number);
        }
        let status = within(events.message()).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unavailable, "busy")
        );
        // It could be asked for again, by whoever knows what of it has been read.
        let outcome = failure(&status).outcome();
        assert_eq!(
            (outcome.is_retryable(), outcome.is_unknown()),
            (marked, !marked)
        );
        assert_eq!(desk.seen(path::WATCH).len(), 1);
    }
}

#[tokio::test]
async fn a_stream_is_sent_again_only_if_it_is_marked_and_nothing_has_come() {
    for (marked, calls) in [(false, 1), (true, 2)] {
        let desk = Desk::open().await.unwrap();
        desk.next(path::WATCH, Trouble::Before(busy()));
        let mut request = watch(1);
        if marked {
            let marked = Repeatable::Yes(RepeatableBecause::Marked);
            request.extensions_mut().insert(marked);
        }
        let result = within(orders(desk.url()).watch(request)).await;
        assert_eq!(result.is_ok(), marked);
        if let Err(status) = result {
            assert!(failure(&status).outcome().is_unknown());
        }
        assert_eq!(desk.seen(path::WATCH).len(), calls);
    }
}

/// Not one of the messages is placed twice.
#[tokio::test]
async fn a_stream_of_questions_that_fails_is_unknown_and_not_sent_again() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::PLACE_ALL, Trouble::After(busy()));
    let basket = stream::iter((0..3).map(|number| order(format!("order-{number}"))));
    let status = within(orders(desk.url()).place_all(basket))
        .await
        .unwrap_err();
    assert!(failure(&status).outcome().is_unknown());
    assert_eq!(desk.seen(path::PLACE_ALL).len(), 1);
    for number in 0..3 {
        assert_eq!(desk.times_placed(&format!("order-{number}")), 1);
    }
}

#[tokio::test]
async fn streams_both_ways_that_break_off_are_never_sent_again() {
    let desk = Desk::open().await.unwrap();
    desk.next(path::TRADE, Trouble::After(busy()));
    let (to, messages) = piped();
    to.send(order(ID)).unwrap();
    let answers = within(orders(desk.url()).trade(messages)).await.unwrap();
    let mut answers = answers.into_inner();
    assert_eq!(within(answers.message()).await.unwrap().unwrap().id, ID);
    drop(to);
    let status = within(answers.message()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(desk.seen(path::TRADE).len(), 1);
    assert_eq!(desk.times_placed(ID), 1);
}

/// A server acts on the messages of a stream one by one, so what it has of them may have been applied.
#[tokio::test]
async fn a_stream_of_questions_that_was_taken_in_part_is_unknown() {
    let server = raw::Server::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        conn.next_headers().await?;
        loop {
            match conn.read_frame().await? {
                Some(frame) if frame.kind == frame::DATA => break,
                Some(_) => {}
                None => return Ok(()),
            }
        }
        conn.reset()
    });
    let server = server.unwrap();
    let (to, messages) = piped();
    to.send(order(ID)).unwrap();
    let mut orders = orders(format!("http://{}", server.addr()));
    let status = within(orders.place_all(messages)).await.unwrap_err();
    assert_eq!(failure(&status).delivery(), Delivery::MaybeSent);
    assert!(failure(&status).outcome().is_unknown());
    assert_eq!(server.requests(), 1);
    // The caller's end is still open: nobody waits for it.
    drop(to);
}

#[tokio::test]
async fn a_stream_that_its_reader_drops_leaves_the_stack_as_it_was() {
    let desk = Desk::open().await.unwrap();
    let mut orders = orders(desk.url());
    let (to, messages) = piped();
    to.send(order(ID)).unwrap();
    let answers = within(orders.trade(messages)).await.unwrap();
    let mut answers = answers.into_inner();
    assert!(within(answers.message()).await.unwrap().is_some());
    drop(answers);
    within(orders.place(order("order-2"))).await.unwrap();
    assert_eq!(desk.seen(path::TRADE).len(), 1);
    assert_eq!(
        (desk.times_placed(ID), desk.times_placed("order-2")),
        (1, 1)
    );
}
