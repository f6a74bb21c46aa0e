//! Every fault on both protocols: what the client gets and what the ledger says.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tower_outcome_testkit::{Answer, Fault, GrpcForm, Last, Point, Protocol, Received, Venue};

use crate::client::{BOTH, Seen, client, once, order, send, until, with};

#[tokio::test]
async fn status_is_answered_before_or_after_applying() {
    for protocol in BOTH {
        for applied in [false, true] {
            for code in [418, 429, 500, 503] {
                let (seen, entry) = once(protocol, &Fault::status(code, applied)).await;
                assert_eq!(seen.whole(), Some(code));
                assert_eq!(entry.answered, Some(code));
                assert_eq!(entry.applied, applied);
                assert_eq!(entry.received, Received::Complete);
            }
        }
    }
}

#[tokio::test]
async fn status_carries_any_retry_after_headers_and_body() {
    for protocol in BOTH {
        let fault = Fault::Status {
            code: 429,
            applied: false,
            retry_after: Some("Fri, 31 Dec 1999 23:59:59 GMT; -3junk".to_owned()),
            headers: vec![("X-Odd".to_owned(), "a, b".to_owned())],
            body: Some("slow down".to_owned()),
        };
        let (seen, _) = once(protocol, &fault).await;
        let text = "Fri, 31 Dec 1999 23:59:59 GMT; -3junk";
        assert_eq!(seen.header("retry-after"), Some(text));
        assert_eq!(seen.header("x-odd"), Some("a, b"));
        let Seen::Answer { body: Ok(body), .. } = seen else {
            panic!("{seen:?}");
        };
        assert_eq!(body, "slow down");
    }
}

#[tokio::test]
async fn error_body_is_a_200_that_lies_or_not() {
    for protocol in BOTH {
        for applied in [false, true] {
            let body = r#"{"code":-1021}"#.to_owned();
            let (seen, entry) = once(protocol, &Fault::ErrorBody { applied, body }).await;
            assert_eq!(seen.whole(), Some(200));
            assert_eq!(entry.applied, applied);
        }
    }
}

#[tokio::test]
async fn close_and_reset_fail_the_call_and_only_late_ones_apply_it() {
    for protocol in BOTH {
        for at in [Point::Head, Point::Body, Point::Applied] {
            for fault in [Fault::Close { at }, Fault::Reset { at }] {
                let (seen, entry) = once(protocol, &fault).await;
                assert!(matches!(seen, Seen::Failure(_)), "{fault}: {seen:?}");
                assert_eq!(entry.applied, at == Point::Applied, "{fault}");
                assert_eq!(entry.answered, None, "{fault}");
                let received = match at {
                    Point::Head => Received::Head,
                    _ => Received::Complete,
                };
                assert_eq!(entry.received, received, "{fault}");
            }
        }
    }
}

#[tokio::test]
async fn death_in_the_response_leaves_a_head_and_a_broken_body() {
    for protocol in BOTH {
        let at = Point::Response;
        for fault in [
            Fault::Close { at },
            Fault::Reset { at },
            Fault::ResetStream { code: 7, at },
        ] {
            let (seen, entry) = once(protocol, &fault).await;
            // A reset may overtake the head.
            match &seen {
                Seen::Answer { status, body, .. } => {
                    assert_eq!(status.as_u16(), 200);
                    assert!(body.is_err(), "{fault} on {protocol:?}: {seen:?}");
                }
                Seen::Failure(_) => assert_ne!(fault, Fault::Close { at }, "{seen:?}"),
            }
            assert!(entry.applied, "{fault}");
            assert_eq!(entry.answered, Some(200));
        }
    }
}

#[tokio::test]
async fn stall_is_silent_until_the_client_goes_away() {
    for protocol in BOTH {
        for at in Point::ALL {
            let venue = Venue::start().unwrap();
            let ledger = venue.ledger();
            let client = client(protocol);
            let mut call = Box::pin(send(
                &client,
                with(order(&venue, "op"), &Fault::Stall { at }),
            ));
            let reached = || {
                ledger.entries().iter().any(|entry| match at {
                    Point::Head => true,
                    Point::Body => entry.received == Received::Complete,
                    Point::Applied => entry.applied,
                    Point::Response => entry.answered.is_some(),
                })
            };
            tokio::select! {
                seen = &mut call => panic!("{at} on {protocol:?}: {seen:?}"),
                () = until(reached) => {}
            }
            ledger.settled().await;
            assert_eq!(ledger.open_connections(), 1, "the venue holds the request");
            drop(call);
            drop(client);
            until(|| ledger.open_connections() == 0).await;
            assert_eq!(ledger.applied("op") == 1, at.is_applied());
        }
    }
}

#[tokio::test]
async fn stall_on_http2_leaves_other_streams_alone() {
    let venue = Venue::start().unwrap();
    let client = client(Protocol::Http2);
    assert_eq!(
        send(
            &client,
            order(&venue, "first").body(Full::default()).unwrap()
        )
        .await
        .whole(),
        Some(200)
    );
    let fault = Fault::Stall { at: Point::Applied };
    let stalled = send(&client, with(order(&venue, "stalled"), &fault));
    let other = async {
        until(|| venue.ledger().applied("stalled") == 1).await;
        send(
            &client,
            order(&venue, "other").body(Full::default()).unwrap(),
        )
        .await
    };
    tokio::select! {
        seen = stalled => panic!("{seen:?}"),
        seen = other => assert_eq!(seen.whole(), Some(200)),
    }
    assert_eq!(venue.ledger().connections(), 1);
}

#[tokio::test]
async fn drip_arrives_whole() {
    for protocol in BOTH {
        let interval = Duration::from_micros(10);
        let (seen, entry) = once(protocol, &Fault::Drip { interval }).await;
        assert_eq!(seen.whole(), Some(200));
        assert!(entry.applied);
    }
}

#[tokio::test]
async fn refused_stream_is_not_applied() {
    let (seen, entry) = once(Protocol::Http2, &Fault::RefuseStream).await;
    assert!(seen.chain().contains("REFUSED_STREAM"), "{}", seen.chain());
    assert!(!entry.applied);
    let (seen, entry) = once(Protocol::Http1, &Fault::RefuseStream).await;
    assert!(matches!(seen, Seen::Failure(_)));
    assert!(!entry.applied);
}

#[tokio::test]
async fn reset_stream_carries_its_code_and_spares_the_connection() {
    for at in Point::ALL {
        let venue = Venue::start().unwrap();
        let client = client(Protocol::Http2);
        let fault = Fault::ResetStream { code: 0xb, at };
        let seen = send(&client, with(order(&venue, "op"), &fault)).await;
        assert!(
            seen.chain().contains("ENHANCE_YOUR_CALM"),
            "{at}: {}",
            seen.chain()
        );
        assert_eq!(venue.ledger().applied("op") == 1, at.is_applied(), "{at}");
        let after = send(
            &client,
            order(&venue, "after").body(Full::default()).unwrap(),
        )
        .await;
        assert_eq!(after.whole(), Some(200));
        assert_eq!(venue.ledger().connections(), 1, "{at}");
    }
    for at in Point::ALL {
        let fault = Fault::ResetStream { code: 0xb, at };
        let (seen, entry) = once(Protocol::Http1, &fault).await;
        assert_eq!(seen.whole(), None);
        assert_eq!(entry.applied, at.is_applied());
    }
}

#[tokio::test]
async fn goaway_below_the_stream_is_never_applied_and_says_so() {
    for (last, close) in [
        (Last::Below, false),
        (Last::Below, true),
        (Last::Exactly(0), false),
    ] {
        let fault = Fault::GoAway {
            last,
            code: 0,
            applied: true,
            close,
        };
        let (seen, entry) = once(Protocol::Http2, &fault).await;
        assert!(seen.chain().contains("GoAway"), "{}", seen.chain());
        assert!(!entry.applied, "{fault}");
        assert_eq!(entry.answered, None, "{fault}");
    }
}

#[tokio::test]
async fn goaway_that_covers_the_stream_answers_it_when_it_was_applied() {
    for protocol in BOTH {
        for last in [Last::This, Last::Max, Last::Exactly(9)] {
            let goaway = |applied, close| Fault::GoAway {
                last,
                code: 0,
                applied,
                close,
            };
            let (seen, entry) = once(protocol, &goaway(true, false)).await;
            assert_eq!(seen.whole(), Some(200), "{last} on {protocol:?}: {seen:?}");
            assert!(entry.applied);

            let (seen, entry) = once(protocol, &goaway(true, true)).await;
            assert!(matches!(seen, Seen::Failure(_)));
            assert!(entry.applied);

            for close in [false, true] {
                let (seen, entry) = once(protocol, &goaway(false, close)).await;
                assert!(matches!(seen, Seen::Failure(_)), "{close}");
                assert!(!entry.applied);
            }
        }
    }
}

#[tokio::test]
async fn goaway_never_disowns_a_stream_that_was_applied_before() {
    let venue = Venue::start().unwrap();
    let client = client(Protocol::Http2);
    for n in 0..3 {
        let request = order(&venue, &format!("before-{n}"));
        let seen = send(&client, request.body(Full::default()).unwrap()).await;
        assert_eq!(seen.whole(), Some(200));
    }
    let fault = Fault::GoAway {
        last: Last::Exactly(0),
        code: 0,
        applied: false,
        close: true,
    };
    // Streams 1, 3 and 5 were applied: the id announced must be 5, and so 7 is disowned.
    let seen = send(&client, with(order(&venue, "op"), &fault)).await;
    assert!(seen.chain().contains("GoAway"), "{}", seen.chain());
    assert_eq!(venue.ledger().applied_total(), 3);
    let after = send(
        &client,
        order(&venue, "after").body(Full::default()).unwrap(),
    )
    .await;
    assert_eq!(after.whole(), Some(200), "on a new connection");
    assert_eq!(venue.ledger().connections(), 2);
}

#[tokio::test]
async fn idle_faults_answer_first_and_then_end_the_connection() {
    for protocol in BOTH {
        for fault in [
            Fault::CloseIdle,
            Fault::ResetIdle,
            Fault::StaleRequestTimeout,
        ] {
            let venue = Venue::start().unwrap();
            let ledger = venue.ledger();
            let client = client(protocol);
            let seen = send(&client, with(order(&venue, "op"), &fault)).await;
            assert_eq!(seen.whole(), Some(200), "{fault} on {protocol:?}: {seen:?}");
            assert_eq!(ledger.applied("op"), 1);
            // The client did nothing to close it.
            until(|| ledger.open_connections() == 0).await;
            assert_eq!(ledger.connections(), 1);
        }
    }
}

#[tokio::test]
async fn early_answer_comes_before_the_body_is_read() {
    for protocol in BOTH {
        for drain in [false, true] {
            let venue = Venue::start().unwrap();
            let client = client(protocol);
            let fault = Fault::EarlyAnswer { code: 413, drain };
            let request = order(&venue, "op")
                .header(Fault::HEADER, fault.header_value())
                .body(Full::from(Bytes::from(vec![7; 1 << 20])))
                .unwrap();
            let seen = send(&client, request).await;
            if drain {
                assert_eq!(seen.whole(), Some(413), "{protocol:?}: {seen:?}");
            } else {
                // The close may cost the client the answer.
                assert!(matches!(seen.status(), Some(413) | None), "{seen:?}");
            }
            let entry = venue.ledger().of_operation("op").remove(0);
            assert_eq!(entry.answered, Some(413));
            assert!(!entry.applied);
        }
    }
}

#[tokio::test]
async fn grpc_calls_are_answered_with_a_message_and_trailers() {
    for protocol in BOTH {
        let venue = Venue::start().unwrap();
        let request = order(&venue, "op")
            .header("content-type", "application/grpc+proto")
            .header("te", "trailers")
            .body(Full::from(&[0_u8; 5][..]))
            .unwrap();
        let seen = send(&client(protocol), request).await;
        let Seen::Answer {
            body: Ok(body),
            trailers: Some(trailers),
            ..
        } = seen
        else {
            panic!("{protocol:?}: {seen:?}");
        };
        assert_eq!(body, &[0; 5][..]);
        assert_eq!(trailers["grpc-status"], "0");
        assert_eq!(venue.ledger().applied("op"), 1);
    }
}

#[tokio::test]
async fn grpc_status_travels_where_it_was_told_to() {
    for form in GrpcForm::ALL {
        for applied in [false, true] {
            let fault = Fault::Grpc {
                code: 14,
                form,
                pushback: Some("250".to_owned()),
                applied,
            };
            let (seen, entry) = once(Protocol::Http2, &fault).await;
            assert_eq!(entry.applied, applied);
            let Seen::Answer {
                headers,
                body: Ok(body),
                trailers,
                ..
            } = seen
            else {
                panic!("{seen:?}");
            };
            let status = match form {
                GrpcForm::TrailersOnly => headers,
                _ => trailers.unwrap(),
            };
            assert_eq!(status["grpc-status"], "14", "{form}");
            assert_eq!(status["grpc-retry-pushback-ms"], "250", "{form}");
            let with_message = form == GrpcForm::TrailersAfterMessage;
            assert_eq!(body.len(), if with_message { 5 } else { 0 });
        }
    }
}

#[tokio::test]
async fn every_fault_keeps_its_word_about_applying() {
    for protocol in BOTH {
        for fault in Fault::all().filter(|fault| !matches!(fault, Fault::Stall { .. })) {
            let (seen, entry) = once(protocol, &fault).await;
            let mut applies = fault.applies();
            if let Fault::GoAway {
                last: Last::Exactly(0),
                ..
            } = fault
            {
                applies &= protocol == Protocol::Http1;
            }
            assert_eq!(entry.applied, applies, "{fault} on {protocol:?}: {seen:?}");
            if let Some(status) = seen.status() {
                assert_eq!(entry.answered, Some(status), "{fault} on {protocol:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_fault_that_cannot_be_read_is_reported_and_nothing_applied() {
    for protocol in BOTH {
        let venue = Venue::start().unwrap();
        let request = order(&venue, "op")
            .header(Fault::HEADER, "close;at=never")
            .body(Full::default())
            .unwrap();
        let seen = send(&client(protocol), request).await;
        assert_eq!(seen.whole(), Some(400));
        let Seen::Answer { body: Ok(body), .. } = seen else {
            panic!("{seen:?}");
        };
        assert_eq!(body, "bad at \"never\" in a fault");
        assert_eq!(venue.ledger().applied("op"), 0);
    }
}

#[tokio::test]
async fn answers_without_a_body_end_with_their_head() {
    for protocol in BOTH {
        let venue = Venue::builder()
            .answer(|request| match request.path.as_str() {
                "/none" => Answer::status(204).body("not sent"),
                _ => Answer::status(200).body("not sent to HEAD"),
            })
            .start()
            .unwrap();
        let client = client(protocol);
        for (method, path, status) in [("HEAD", "/", 200), ("POST", "/none", 204)] {
            let request = Request::builder()
                .method(method)
                .uri(venue.url(path))
                .body(Full::default())
                .unwrap();
            let seen = send(&client, request).await;
            assert_eq!(seen.whole(), Some(status), "{protocol:?}: {seen:?}");
        }
        // Left-over bytes would have cost the connection.
        assert_eq!(venue.ledger().connections(), 1, "{protocol:?}");
    }
}
