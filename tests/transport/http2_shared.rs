//! HTTP/2 on a connection that several requests share, at once or one after the other.

use std::io;

use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use tokio::task::JoinHandle;
use tower::ServiceExt;
use tower_outcome::{BoxError, Delivery, Witnessed};
use tower_outcome_testkit::raw::frame;

use super::{
    client::{
        Client, Evidence, Protocol, builder, empty, endless, full, nodelay, post, request, settle,
        within,
    },
    connector::Tap,
    peer::{Conn, Peer},
    verdict::{chain, proven_by, verdict},
};

/// How often a race is run.
const ROUNDS: usize = 25;

async fn answer(conn: &mut Conn) -> io::Result<()> {
    let stream = conn.stream().await?;
    conn.write_all(&frame::headers_ok(stream, true)).await
}

/// Answers all requests of all later connections.
async fn answer_all(mut conn: Conn) -> io::Result<()> {
    conn.start_http2(&[]).await?;
    loop {
        answer(&mut conn).await?;
    }
}

type Call = JoinHandle<Result<Response<Incoming>, BoxError>>;

fn start(client: &Client, peer: &Peer, body: &'static str) -> Call {
    tokio::spawn(client.service.clone().oneshot(post(peer, full(body))))
}

#[tokio::test]
async fn a_refused_stream_on_a_used_connection_is_not_sent_again_by_hyper_util() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        answer(&mut conn).await?;
        let stream = conn.stream_head().await?;
        conn.write_all(&frame::rst_stream(stream, frame::REFUSED_STREAM))
            .await?;
        conn.drain().await;
        Ok(())
    });
    for evidence in Evidence::ALL {
        let mut builder = builder(Protocol::Http2);
        builder.retry_canceled_requests(true);
        let client = Client::built(evidence, &builder, nodelay());
        client.succeed(request(Method::GET, &peer, empty())).await;
        let error = client.fail(post(&peer, endless())).await;
        assert_eq!(verdict(&error), Delivery::Refused);
    }
    assert_eq!(peer.ended(2).await, 2);
}

#[tokio::test]
async fn a_goaway_after_the_stream_lets_it_finish_and_closes_the_connection_to_others() {
    let peer = || {
        Peer::script()
            .connection(|mut conn| async move {
                conn.start_http2(&[]).await?;
                let stream = conn.stream().await?;
                let mut bytes = frame::goaway(stream, frame::NO_ERROR);
                bytes.extend(frame::headers_ok(stream, true));
                conn.write_all(&bytes).await?;
                conn.drain().await;
                Ok(())
            })
            .connection(answer_all)
            .start()
    };
    for evidence in Evidence::ALL {
        let (peer, tap) = (peer(), Tap::new());
        let client = Client::over(evidence, Protocol::Http2, tap.clone());
        client.succeed(post(&peer, full("one"))).await;
        tap.closed().await;
        client.succeed(post(&peer, full("two"))).await;
        drop(client);
        assert_eq!(peer.ended(2).await, 2);
    }
}

#[tokio::test]
async fn a_goaway_between_two_streams_tells_them_apart() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let first = conn.stream().await?;
        conn.tell();
        conn.stream_head().await?;
        conn.write_all(&frame::goaway(first, frame::NO_ERROR))
            .await?;
        conn.close().await
    });
    for client in Client::both(Protocol::Http2) {
        let first = start(&client, &peer, "one");
        peer.told().await;
        let second = start(&client, &peer, "two");
        let first = within(first).await.unwrap().unwrap_err();
        let second = within(second).await.unwrap().unwrap_err();
        assert_eq!(verdict(&first), Delivery::MaybeSent);
        let expected = client.evidence.proves(Delivery::Refused);
        assert_eq!(verdict(&second), expected);
    }
    assert_eq!(peer.ended(2).await, 2);
}

/// What a server does while one stream is open, one waits for its turn and one is in the queue.
#[derive(Clone, Copy)]
enum Death {
    End,
    Goaway,
}

struct Queue {
    peer: Peer,
    client: Client,
    open: Call,
    waiting: Call,
    queued: Call,
}

async fn queue(evidence: Evidence, death: Death, resend: bool) -> Queue {
    let peer = Peer::script()
        .connection(move |mut conn| async move {
            conn.start_http2(&[(frame::MAX_CONCURRENT_STREAMS, 1)])
                .await?;
            let stream = conn.stream().await?;
            // The client has seen the limit by then.
            conn.ping().await?;
            conn.tell();
            conn.told().await;
            // The client writes an answer, so that the connection is no witness any more.
            conn.ping().await?;
            if matches!(death, Death::Goaway) {
                conn.write_all(&frame::goaway(stream, frame::NO_ERROR))
                    .await?;
            }
            conn.close().await
        })
        .connection(answer_all)
        .start();
    let mut builder = builder(Protocol::Http2);
    builder.retry_canceled_requests(resend);
    let client = Client::built(evidence, &builder, nodelay());
    let open = start(&client, &peer, "open");
    peer.told().await;
    let waiting = start(&client, &peer, "waiting");
    settle().await;
    let queued = start(&client, &peer, "queued");
    settle().await;
    peer.tell();
    Queue {
        peer,
        client,
        open,
        waiting,
        queued,
    }
}

#[tokio::test]
async fn a_stream_that_waited_for_its_turn_is_proven_unsent_by_the_witness() {
    for evidence in Evidence::ALL {
        for death in [Death::End, Death::Goaway] {
            let queue = queue(evidence, death, false).await;
            let open = within(queue.open).await.unwrap().unwrap_err();
            let waiting = within(queue.waiting).await.unwrap().unwrap_err();
            let queued = within(queue.queued).await.unwrap().unwrap_err();
            assert_eq!(verdict(&open), Delivery::MaybeSent);
            // hyper calls it the user's fault, and never touched the body.
            let expected = evidence.proves(Delivery::NotSent);
            assert_eq!(verdict(&waiting), expected, "{}", chain(&*waiting));
            if evidence == Evidence::Witnesses {
                assert_eq!(proven_by(&waiting), Some(Witnessed::Body));
            }
            assert_eq!(verdict(&queued), Delivery::NotSent);
            drop(queue.client);
            assert_eq!(queue.peer.ended(1).await, 1);
        }
    }
}

#[tokio::test]
async fn hyper_util_sends_a_queued_request_again_behind_every_layer_unless_told_otherwise() {
    for evidence in Evidence::ALL {
        for death in [Death::End, Death::Goaway] {
            let queue = queue(evidence, death, true).await;
            within(queue.open).await.unwrap().unwrap_err();
            within(queue.waiting).await.unwrap().unwrap_err();
            let queued = within(queue.queued).await.unwrap();
            assert_eq!(queued.unwrap().status(), StatusCode::OK);
            drop(queue.client);
            // Once per attempt: on the second connection only.
            assert_eq!(queue.peer.ended(2).await, 2);
            let bodies: Vec<_> = queue
                .peer
                .whole()
                .into_iter()
                .map(|read| read.body)
                .collect();
            assert_eq!(bodies, [b"open".as_slice(), b"queued"]);
        }
    }
}

/// What a server does to an idle connection while the client's thread is busy.
#[derive(Clone, Copy)]
enum Surprise {
    End,
    GoawayAndEnd,
    Goaway,
    Reset,
}

async fn surprised(evidence: Evidence, surprise: Surprise) -> Result<StatusCode, Delivery> {
    let peer = Peer::script()
        .connection(move |mut conn| async move {
            conn.start_http2(&[]).await?;
            answer(&mut conn).await?;
            // So that what arrives next on the client's side is the surprise.
            conn.ping().await?;
            conn.tell();
            conn.told().await;
            let goaway = frame::goaway(1, frame::NO_ERROR);
            match surprise {
                Surprise::End => Ok(()),
                Surprise::GoawayAndEnd => conn.write_all(&goaway).await,
                Surprise::Goaway => {
                    conn.write_all(&goaway).await?;
                    conn.drain().await;
                    Ok(())
                }
                Surprise::Reset => conn.reset(),
            }
        })
        .connection(answer_all)
        .start();
    let tap = Tap::new();
    let client = Client::over(evidence, Protocol::Http2, tap.clone());
    client.succeed(post(&peer, full("one"))).await;
    peer.told().await;
    settle().await;
    peer.tell();
    match surprise {
        Surprise::Reset => tap.reset_meanwhile_blocked(),
        _ => tap.readable_meanwhile_blocked(),
    }
    let result = client.send(post(&peer, full("two"))).await;
    // The second is read by a second connection or not at all.
    assert_eq!(peer.whole().len(), peer.connections());
    match result {
        Ok(response) => Ok(response.status()),
        Err(error) => Err(verdict(&error)),
    }
}

async fn surprises(evidence: Evidence, surprise: Surprise) -> Vec<Result<StatusCode, Delivery>> {
    let mut seen = Vec::new();
    for _ in 0..ROUNDS {
        seen.push(surprised(evidence, surprise).await);
    }
    seen
}

#[tokio::test]
async fn an_end_that_was_not_noticed_yet_is_unsent_or_unknown() {
    for evidence in Evidence::ALL {
        for surprise in [Surprise::End, Surprise::GoawayAndEnd] {
            let seen = surprises(evidence, surprise).await;
            let possible = [
                Ok(StatusCode::OK),
                Err(Delivery::NotSent),
                Err(Delivery::Refused),
                Err(Delivery::MaybeSent),
            ];
            assert!(seen.iter().all(|seen| possible.contains(seen)), "{seen:?}");
        }
    }
}

#[tokio::test]
async fn a_goaway_that_races_the_next_stream_refuses_it() {
    for evidence in Evidence::ALL {
        let seen = surprises(evidence, Surprise::Goaway).await;
        let expected = evidence.proves(Delivery::Refused);
        assert!(seen.contains(&Err(expected)), "{seen:?}");
        let possible = [Ok(StatusCode::OK), Err(Delivery::NotSent), Err(expected)];
        assert!(seen.iter().all(|seen| possible.contains(seen)), "{seen:?}");
    }
}

#[tokio::test]
async fn a_reset_that_was_not_noticed_yet_is_proven_unsent_by_the_witness() {
    for evidence in Evidence::ALL {
        let seen = surprises(evidence, Surprise::Reset).await;
        // A connection that was reset accepts nothing, however the race ends.
        let expected = evidence.proves(Delivery::NotSent);
        assert!(seen.contains(&Err(expected)), "{seen:?}");
        let possible = [Ok(StatusCode::OK), Err(Delivery::NotSent), Err(expected)];
        assert!(seen.iter().all(|seen| possible.contains(seen)), "{seen:?}");
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_reset_and_leaves_the_connection_to_others() {
    let peer = Peer::start(|mut conn| async move {
        conn.start_http2(&[]).await?;
        let dropped = conn.stream().await?;
        conn.tell();
        loop {
            let Some(frame) = conn.read_frame().await? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            let cancelled = frame.payload == frame::CANCEL.to_be_bytes();
            if frame.kind == frame::RST_STREAM && frame.stream == dropped && cancelled {
                break;
            }
        }
        conn.tell();
        answer(&mut conn).await?;
        conn.drain().await;
        Ok(())
    });
    for client in Client::both(Protocol::Http2) {
        let mut call = Box::pin(client.send(post(&peer, full("one"))));
        tokio::select! {
            _ = &mut call => panic!("answered"),
            () = peer.told() => {}
        }
        drop(call);
        peer.told().await;
        client.succeed(post(&peer, full("two"))).await;
    }
    assert_eq!(peer.ended(2).await, 4);
}
