//! How a gateway ends.

use std::sync::{Mutex, mpsc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tokio::{net::TcpStream, task::yield_now};
use tower_outcome_testkit::{Answer, Fault, Point, Venue};

use crate::running::{Gateway, file, run, send, upstream};

#[tokio::test]
async fn it_says_that_it_serves() {
    let venue = Venue::start().unwrap();
    let gateway = Gateway::before(&venue, "").await;
    let got = send(gateway.get("/healthz"), "").await;
    assert_eq!((got.status.as_u16(), &*got.body), (200, &b"ok\n"[..]));
    assert!(venue.ledger().is_empty());
}

#[tokio::test]
async fn calls_end_and_new_ones_are_refused_when_it_is_told_to_stop() {
    let (came, coming) = mpsc::channel();
    let (go, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let venue = Venue::builder()
        .answer(move |_| {
            came.send(()).unwrap();
            // Whatever the test comes to, the venue must not wait for ever.
            let _ = gate.lock().unwrap().recv();
            Answer::status(200).body("placed")
        })
        .start()
        .unwrap();
    // Dropped before the venue, which waits for it.
    let go = go;
    let mut gateway = Gateway::before(&venue, "").await;
    let call = tokio::spawn(send(gateway.post("/venue/orders", "order-1"), "buy"));
    while coming.try_recv().is_err() {
        yield_now().await;
    }
    gateway.terminate().await;
    let draining = gateway.says("gateway: draining").await;
    assert!(draining.is_some());
    while TcpStream::connect(gateway.address()).await.is_ok() {
        yield_now().await;
    }
    assert!(!call.is_finished());
    go.send(()).unwrap();
    let got = call.await.unwrap();
    assert_eq!((got.status.as_u16(), &*got.body), (200, &b"placed"[..]));
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.output.contains("gateway: done"));
}

#[tokio::test]
async fn calls_that_do_not_end_in_time_are_cut_off_and_told_of() {
    let venue = Venue::start().unwrap();
    let file = format!("drain = \"50ms\"\n{}", upstream(&venue, ""));
    let gateway = Gateway::start(&file, &[]).await;
    let stall = Fault::Stall { at: Point::Applied };
    let order = gateway.post("/venue/orders", "order-1");
    let call = tokio::spawn(send(
        order.header(Fault::HEADER, stall.header_value()),
        "buy",
    ));
    while venue.ledger().applied("order-1") == 0 {
        yield_now().await;
    }
    gateway.terminate().await;
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended
            .errors
            .contains("gateway: 1 calls were still under way")
    );
    let told = "venue POST /orders: the caller went away; unknown (timed_out), maybe_sent";
    assert!(ended.errors.contains(told), "{}", ended.errors);
    assert!(call.await.is_err());
}

#[tokio::test]
async fn an_address_that_is_taken_is_a_failure() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let venue = Venue::start().unwrap();
    let path = file(&upstream(&venue, ""));
    let address = taken.local_addr().unwrap().to_string();
    let ended = run(&[path.to_str().unwrap(), "--listen", &address], &[]).await;
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.errors.contains("cannot listen on"),
        "{}",
        ended.errors
    );
}

#[tokio::test]
async fn a_call_whose_answer_is_on_its_way_is_one_that_is_cut_off() {
    let venue = Venue::start().unwrap();
    let file = format!("drain = \"50ms\"\n{}", upstream(&venue, ""));
    let gateway = Gateway::start(&file, &[]).await;
    let stall = Fault::Stall {
        at: Point::Response,
    };
    let order = gateway.post("/venue/orders", "order-1");
    let order = order.header(Fault::HEADER, stall.header_value());
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let response = client.request(order.body(Full::from("buy")).unwrap()).await;
    let response = response.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(gateway.status().await["open"], 1);
    gateway.terminate().await;
    let ended = gateway.ended().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let told = "gateway: 1 calls were still under way";
    assert!(ended.errors.contains(told), "{}", ended.errors);
    assert!(response.into_body().collect().await.is_err());
}
