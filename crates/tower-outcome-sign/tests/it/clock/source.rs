//! A server that is asked for its time.

use super::*;

/// A client whose server tells its time to the millisecond when it is asked, and how often it was.
fn asking(ahead: i64, answers: bool) -> (Client, Arc<AtomicUsize>) {
    let mut client = Client::new(ahead);
    let (server, asked) = (client.server.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&asked);
    let source = move || {
        count.fetch_add(1, Ordering::SeqCst);
        let server = server.clone();
        async move {
            server.pass(ms(10)).await;
            let ahead = server.state.lock().unwrap().ahead;
            let time = server.now(ahead);
            server.pass(ms(10)).await;
            answers.then_some(time).ok_or("down")
        }
    };
    client.offset = ClockOffset::builder()
        .source(ms(1), source)
        .build()
        .unwrap();
    let layer = SignLayer::builder(STAMP)
        .origin("https://venue.test")
        .clock(Arc::clone(&client.server.clock) as Arc<dyn Clock>)
        .clock_offset(client.offset.clone())
        .classifier(classifier())
        .build()
        .unwrap();
    client.service = layer.layer(client.server.clone());
    (client, asked)
}

#[tokio::test(start_paused = true)]
async fn the_time_is_asked_for_at_first_and_after_a_refusal_and_never_else() {
    let (client, asked) = asking(6_000, true);
    // Not one refusal, and no Date is needed.
    for _ in 0..5 {
        assert_eq!(client.came().await, FINE);
        let early = client.server.heard()[0];
        assert!((-80..=0).contains(&early), "{early}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    client.server.set(|state| state.ahead = -6_000);
    assert_eq!(client.came().await, RESIGNED);
    let early = client.server.heard()[1];
    assert!((-80..=0).contains(&early), "{early}");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(client.came().await, FINE);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn one_asks_for_the_time_and_the_others_wait() {
    let (client, asked) = asking(6_000, true);
    let calls: Vec<_> = (0..10)
        .map(|_| tokio::spawn(client.service.clone().oneshot(order())))
        .collect();
    // One that is dropped while it asks leaves that to the next.
    tokio::task::yield_now().await;
    calls[0].abort();
    for call in calls.into_iter().skip(1) {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(client.server.heard().len(), 9);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_fails_leaves_the_dates_of_answers() {
    let (client, asked) = asking(6_000, false);
    assert_eq!(client.came().await, RESIGNED);
    assert_eq!(client.came().await, FINE);
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}
