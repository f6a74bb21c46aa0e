//! hyper's connections without a pool, where the request comes back if none of it was written.

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tower_outcome::{BoxError, Delivery, delivery::handed_back};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{Body, full, post, settle, within},
    peer::Peer,
    verdict::verdict,
};

type Sent = Result<Response<Incoming>, TrySendError<Request<Body>>>;

async fn connect(peer: &Peer) -> TokioIo<TcpStream> {
    let authority = peer.origin().replace("http://", "");
    TokioIo::new(TcpStream::connect(authority).await.unwrap())
}

fn failed(sent: Sent) -> BoxError {
    match sent {
        Ok(response) => panic!("answered with {}", response.status()),
        Err(error) => handed_back(error).into(),
    }
}

/// A server that never hears of a request.
fn idle() -> Peer {
    Peer::start(|mut conn| async move {
        conn.drain().await;
        Ok(())
    })
}

#[tokio::test]
async fn a_request_that_its_http1_connection_never_looked_at_is_handed_back() {
    let peer = idle();
    let (mut sender, connection) = http1::handshake(connect(&peer).await).await.unwrap();
    let call = sender.try_send_request(post(&peer, full("an order")));
    drop(connection);
    assert_eq!(verdict(&failed(within(call).await)), Delivery::NotSent);
    // And so is every one after that.
    let call = sender.try_send_request(post(&peer, full("an order")));
    assert_eq!(verdict(&failed(within(call).await)), Delivery::NotSent);
    assert_eq!(peer.ended(1).await, 0);
}

#[tokio::test]
async fn a_request_that_its_http2_connection_never_looked_at_is_handed_back() {
    let peer = idle();
    let io = connect(&peer).await;
    let handshake = http2::handshake(TokioExecutor::new(), io);
    let (mut sender, connection) = handshake.await.unwrap();
    let call = sender.try_send_request(post(&peer, full("an order")));
    drop(connection);
    assert_eq!(verdict(&failed(within(call).await)), Delivery::NotSent);
    let call = sender.try_send_request(post(&peer, full("an order")));
    assert_eq!(verdict(&failed(within(call).await)), Delivery::NotSent);
    assert_eq!(peer.ended(1).await, 0);
}

#[tokio::test]
async fn a_connection_that_is_dropped_after_the_server_has_read_proves_nothing() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.tell();
        conn.drain().await;
        Ok(())
    });
    let (mut sender, connection) = http1::handshake(connect(&peer).await).await.unwrap();
    let connection = tokio::spawn(connection);
    let call = tokio::spawn(sender.try_send_request(post(&peer, full("an order"))));
    peer.told().await;
    connection.abort();
    let sent = within(call).await.unwrap();
    assert_eq!(verdict(&failed(sent)), Delivery::MaybeSent);
    assert_eq!(peer.ended(1).await, 1);
}

#[tokio::test]
async fn a_request_behind_a_busy_one_is_handed_back_when_the_connection_ends() {
    let peer = Peer::start(|mut conn| async move {
        conn.request().await?;
        conn.tell();
        conn.told().await;
        conn.close().await
    });
    let (mut sender, connection) = http1::handshake(connect(&peer).await).await.unwrap();
    tokio::spawn(connection);
    sender.ready().await.unwrap();
    let first = tokio::spawn(sender.try_send_request(post(&peer, full("one"))));
    peer.told().await;
    let second = tokio::spawn(sender.try_send_request(post(&peer, full("two"))));
    settle().await;
    peer.tell();
    let first = within(first).await.unwrap();
    let second = within(second).await.unwrap();
    assert_eq!(verdict(&failed(first)), Delivery::MaybeSent);
    assert_eq!(verdict(&failed(second)), Delivery::NotSent);
    assert_eq!(peer.ended(1).await, 1);
}

#[tokio::test]
async fn a_refused_stream_is_not_handed_back_and_still_a_proof() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let stream = conn.stream_head().await?;
        conn.write_all(&frame::rst_stream(stream, frame::REFUSED_STREAM))
            .await?;
        conn.drain().await;
        Ok(())
    });
    let io = connect(&peer).await;
    let handshake = http2::handshake(TokioExecutor::new(), io);
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let call = sender.try_send_request(post(&peer, full("an order")));
    let Err(mut error) = within(call).await else {
        panic!("answered");
    };
    assert!(error.take_message().is_none());
    assert_eq!(verdict(&handed_back(error).into()), Delivery::Refused);
    drop(sender);
    assert_eq!(peer.ended(1).await, 0);
}
