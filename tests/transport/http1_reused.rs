//! HTTP/1.1 on a connection that was used before: the keep-alive race.

use std::io;

use http::{Request, StatusCode};
use tower_outcome::{
    Attempt, Classify, Decision, Delivery, HttpClassifier, Outcome, Reason, Verdict,
};

use super::{
    client::{Client, Evidence, Protocol, empty, full, post, settle},
    connector::Tap,
    peer::{Conn, OK, Peer, TIMED_OUT},
    verdict::verdict,
};

/// How often a race is run.
const ROUNDS: usize = 25;

async fn answer(conn: &mut Conn) -> io::Result<()> {
    conn.request().await?;
    conn.write_all(OK).await
}

/// Answers all requests of all later connections.
async fn answer_all(mut conn: Conn) -> io::Result<()> {
    loop {
        answer(&mut conn).await?;
    }
}

#[tokio::test]
async fn a_request_that_was_read_on_a_used_connection_may_have_been_applied() {
    let closed = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.request().await?;
        conn.close().await
    });
    let reset = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.request().await?;
        conn.reset()
    });
    for peer in [closed, reset] {
        for client in Client::both(Protocol::Http1) {
            client.succeed(post(&peer, empty())).await;
            settle().await;
            let error = client.fail(post(&peer, full("an order"))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
        assert_eq!(peer.ended(2).await, 4);
    }
}

#[tokio::test]
async fn a_request_left_unread_on_a_used_connection_proves_nothing() {
    let closed = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.read_exact(1).await?;
        Ok(())
    });
    let half_closed = Peer::start(|mut conn| async move {
        answer(&mut conn).await?;
        conn.read_exact(1).await?;
        conn.fin().await?;
        conn.gone().await;
        Ok(())
    });
    for peer in [closed, half_closed] {
        for client in Client::both(Protocol::Http1) {
            client.succeed(post(&peer, empty())).await;
            settle().await;
            let error = client.fail(post(&peer, full("an order"))).await;
            assert_eq!(verdict(&error), Delivery::MaybeSent);
        }
        assert_eq!(peer.ended(2).await, 2);
    }
}

#[tokio::test]
async fn an_end_that_was_noticed_while_idle_costs_nothing_but_a_connection() {
    let end = || {
        Peer::script()
            .connection(|mut conn| async move {
                answer(&mut conn).await?;
                conn.close().await
            })
            .connection(answer_all)
            .start()
    };
    let unasked = || {
        Peer::script()
            .connection(|mut conn| async move {
                answer(&mut conn).await?;
                conn.write_all(TIMED_OUT).await?;
                conn.close().await
            })
            .connection(answer_all)
            .start()
    };
    for evidence in Evidence::ALL {
        for peer in [end(), unasked()] {
            let tap = Tap::new();
            let client = Client::over(evidence, Protocol::Http1, tap.clone());
            client.succeed(post(&peer, empty())).await;
            tap.closed().await;
            let response = client.succeed(post(&peer, full("an order"))).await;
            assert_eq!(response.status(), StatusCode::OK);
            drop(client);
            assert_eq!(peer.ended(2).await, 2);
        }
    }
}

/// What a server does to an idle connection while the client's thread is busy.
enum Death {
    End,
    Reset,
    Unasked,
}

/// What becomes of the next request.
async fn surprised(evidence: Evidence, death: Death) -> Result<StatusCode, Delivery> {
    let doomed = match death {
        Death::End => Peer::script().connection(|mut conn| async move {
            answer(&mut conn).await?;
            conn.told().await;
            Ok(())
        }),
        Death::Reset => Peer::script().connection(|mut conn| async move {
            answer(&mut conn).await?;
            conn.told().await;
            conn.reset()
        }),
        Death::Unasked => Peer::script().connection(|mut conn| async move {
            answer(&mut conn).await?;
            conn.told().await;
            conn.write_all(TIMED_OUT).await?;
            // No end, so that nothing but these bytes is there to be found.
            conn.gone().await;
            Ok(())
        }),
    };
    let peer = doomed.connection(answer_all).start();
    let tap = Tap::new();
    let client = Client::over(evidence, Protocol::Http1, tap.clone());
    client.succeed(post(&peer, empty())).await;
    // The connection goes back to the pool.
    settle().await;
    peer.tell();
    match death {
        Death::End | Death::Unasked => tap.readable_meanwhile_blocked(),
        Death::Reset => tap.reset_meanwhile_blocked(),
    }
    let result = client.send(post(&peer, full("an order"))).await;
    let read = peer.whole().len() - 1;
    // A second connection is possible where the first was found dead in time.
    assert_eq!(read, peer.connections() - 1, "read by the first connection");
    match result {
        Ok(response) => Ok(response.status()),
        Err(error) => Err(verdict(&error)),
    }
}

#[tokio::test]
async fn an_end_that_was_not_noticed_yet_is_unsent_or_unknown() {
    for evidence in Evidence::ALL {
        for _ in 0..ROUNDS {
            let seen = surprised(evidence, Death::End).await;
            let possible = [
                Err(Delivery::NotSent),
                Err(Delivery::MaybeSent),
                Ok(StatusCode::OK),
            ];
            assert!(possible.contains(&seen), "{seen:?}");
        }
    }
}

#[tokio::test]
async fn a_reset_that_was_not_noticed_yet_is_proven_unsent_by_the_witness() {
    for evidence in Evidence::ALL {
        let mut seen = Vec::new();
        for _ in 0..ROUNDS {
            seen.push(surprised(evidence, Death::Reset).await);
        }
        // A connection that was reset accepts nothing, however the race ends.
        let expected = evidence.proves(Delivery::NotSent);
        assert!(seen.contains(&Err(expected)), "{seen:?}");
        let possible = [Err(Delivery::NotSent), Err(expected), Ok(StatusCode::OK)];
        assert!(seen.iter().all(|seen| possible.contains(seen)), "{seen:?}");
    }
}

/// The worst of them: the answer is real, and not to this request.
#[tokio::test]
async fn a_stray_408_reaches_a_request_that_nobody_read_and_proves_nothing() {
    for evidence in Evidence::ALL {
        let mut seen = Vec::new();
        for _ in 0..ROUNDS {
            seen.push(surprised(evidence, Death::Unasked).await);
        }
        assert!(seen.contains(&Ok(StatusCode::REQUEST_TIMEOUT)), "{seen:?}");
        let possible = [
            Ok(StatusCode::REQUEST_TIMEOUT),
            Ok(StatusCode::OK),
            Err(Delivery::NotSent),
            Err(Delivery::MaybeSent),
        ];
        assert!(seen.iter().all(|seen| possible.contains(seen)), "{seen:?}");
    }
    let classifier = HttpClassifier::new();
    let (head, ()) = http::Response::builder()
        .status(StatusCode::REQUEST_TIMEOUT)
        .body(())
        .unwrap()
        .into_parts();
    let (order, ()) = Request::post("/orders").body(()).unwrap().into_parts();
    let verdict = classifier.response(&classifier.call(&order), Attempt::FIRST, &head);
    let Verdict::Decided(Decision { outcome, .. }) = verdict else {
        panic!("{verdict:?}");
    };
    let reason = Reason::TimedOut;
    assert_eq!(outcome, Outcome::Unknown { reason });
}
