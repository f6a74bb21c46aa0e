//! What the client for StoneX documents.

use std::{
    convert::Infallible,
    future::{pending, ready},
    io,
};

use futures_util::{StreamExt, future::join_all, stream};
use http::Uri;
use http_body::Frame;
use http_body_util::StreamBody;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinHandle, time::sleep};
use tower_outcome::{
    Bound, Deadline, Delivery, Failure, NotRetried, Refused, ReplayBody, Unauthenticated,
};
use tower_outcome_testkit::Point;

use super::*;

const IDEMPOTENT: [Method; 3] = [Method::GET, Method::PUT, Method::DELETE];
const OTHERS: [Method; 2] = [Method::POST, Method::PATCH];

#[tokio::test(start_paused = true)]
async fn connecting_is_given_up_after_ten_seconds() {
    let nowhere = service_fn(|_: Uri| pending::<io::Result<TokioIo<TcpStream>>>());
    let venue = Venue::start().unwrap();
    let wire = Wire::to(&venue).through(nowhere);
    let stonex: Stonex = stonex(&wire, &venue, 0, Always::MOST);
    let mut call = get(&venue);
    call.extensions_mut().insert(Unauthenticated::new());
    let (result, _) = make(&stonex.client, call).await;
    assert_eq!(struck(&result.unwrap_err()), Bound::Connect);
    assert_eq!(wire.start.elapsed(), secs(10));
}

#[tokio::test(start_paused = true)]
async fn reading_is_given_up_after_thirty_seconds() {
    for (at, bound) in [
        (Point::Applied, Bound::Head),
        (Point::Response, Bound::ReadIdle),
    ] {
        let floor = Floor::open([], 3).await;
        let start = Instant::now();
        let call = failing(&Fault::Stall { at }, get(&floor.venue));
        let (result, report) = floor.make(call).await;
        let error = match result {
            Ok(answer) => answer.into_body().collect().await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(struck(&error), bound);
        assert_eq!(start.elapsed(), secs(30));
        // And the time for all attempts is over with it.
        let report = report.unwrap();
        assert!(matches!(report.not_retried(), Some(NotRetried::Elapsed)));
    }
}

#[tokio::test(start_paused = true)]
async fn writing_is_given_up_after_thirty_seconds() {
    let venue = Venue::start().unwrap();
    let wire = Wire::to(&venue);
    let stonex = stonex(&wire, &venue, 3, Always::MOST);
    let piece = |()| Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'.'; 1 << 16])));
    let endless = ReplayBody::new(StreamBody::new(stream::repeat(()).map(piece)));
    let stall = Fault::Stall { at: Point::Head };
    let mut call = failing(&stall, post(&venue)).map(|_| endless);
    call.extensions_mut().insert(Unauthenticated::new());
    let result = stonex.client.send(call).await;
    assert_eq!(struck(&result.unwrap_err()), Bound::WriteIdle);
    assert_eq!(wire.start.elapsed(), secs(30));
}

#[tokio::test(start_paused = true)]
async fn five_seconds_are_waited_for_one_of_twenty_connections() {
    let floor = Floor::open([], 0).await;
    let stalls = (0..20).map(|number| {
        let mut call = failing(&Fault::Stall { at: Point::Body }, get(&floor.venue));
        let name = number.to_string().parse().unwrap();
        call.headers_mut().insert(Ledger::OPERATION_HEADER, name);
        tokio::spawn(floor.stonex.client.send(call))
    });
    let stalls: Vec<_> = stalls.collect();
    let start = Instant::now();
    // All of them have one before anybody else asks.
    yield_now().await;
    let (result, _) = floor.make(get(&floor.venue)).await;
    assert_eq!(struck(&result.unwrap_err()), Bound::Acquire);
    assert_eq!(start.elapsed(), secs(5));
    assert_eq!(floor.wire.departures().len(), 20);
    stalls.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_log_in_waits_for_one_of_the_twenty_connections_too() {
    let venue = Venue::start().unwrap();
    let wire = Wire::to(&venue);
    let stonex: Stonex = stonex(&wire, &venue, 0, Always::MOST);
    let stalls = (0..20).map(|number| {
        let mut call = failing(&Fault::Stall { at: Point::Body }, get(&venue));
        let name = number.to_string().parse().unwrap();
        call.headers_mut().insert(Ledger::OPERATION_HEADER, name);
        call.extensions_mut().insert(Unauthenticated::new());
        tokio::spawn(stonex.client.send(call))
    });
    let stalls: Vec<_> = stalls.collect();
    let start = Instant::now();
    yield_now().await;
    let (result, _) = make(&stonex.client, get(&venue)).await;
    assert_eq!(struck(&result.unwrap_err()), Bound::Acquire);
    assert_eq!(start.elapsed(), secs(5));
    assert_eq!(wire.departures().len(), 20, "no log-in among them");
    stalls.iter().for_each(JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_retried_three_times() {
    let floor = Floor::open(always(Answer::status(503)), 3).await;
    let (result, report) = floor.make(get(&floor.venue)).await;
    assert_eq!(result.unwrap().status(), 503);
    assert_eq!(floor.wire.departures().len(), 4);
    let report = report.unwrap();
    assert!(matches!(report.not_retried(), Some(NotRetried::Exhausted)));
}

#[tokio::test(start_paused = true)]
async fn thirty_seconds_are_admitted_from_the_start_with_the_coming_sleep() {
    for (second, sent) in [(1, 3), (2, 2)] {
        let floor = Floor::open([throttled(29), throttled(second)], 3).await;
        let start = Instant::now();
        let (result, report) = floor.make(get(&floor.venue)).await;
        assert_eq!(floor.wire.departures().len(), sent);
        if sent == 3 {
            assert_eq!(result.unwrap().status(), 200);
            assert_eq!(start.elapsed(), secs(30));
        } else {
            // A sleep that would end too late is not begun.
            assert_eq!(result.unwrap().status(), 429);
            assert_eq!(start.elapsed(), secs(29));
            let report = report.unwrap();
            assert!(matches!(report.not_retried(), Some(NotRetried::Elapsed)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_502_503_or_504_is_retried_for_idempotent_calls_only() {
    for code in [502, 503, 504] {
        for (methods, sent) in [(&IDEMPOTENT[..], 4), (&OTHERS[..], 1)] {
            for method in methods {
                let floor = Floor::open(always(Answer::status(code)), 3).await;
                let (_, report) = floor.make(floor.call(method)).await;
                assert_eq!(floor.wire.departures().len(), sent, "{method} {code}");
                assert_eq!(report.unwrap().outcome().is_unknown(), sent == 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_500_and_whatever_is_not_listed_is_not_retried_at_all() {
    for code in [400, 403, 404, 408, 409, 422, 425, 500, 501, 505, 520] {
        for method in IDEMPOTENT.iter().chain(&OTHERS) {
            let floor = Floor::open(always(Answer::status(code)), 3).await;
            let (result, _) = floor.make(floor.call(method)).await;
            assert_eq!(result.unwrap().status(), code);
            assert_eq!(floor.wire.departures().len(), 1, "{method} {code}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn transport_errors_are_retried_for_idempotent_calls_only() {
    for fault in [
        Fault::Close { at: Point::Head },
        Fault::Reset { at: Point::Applied },
    ] {
        for (methods, sent) in [(&IDEMPOTENT[..], 4), (&OTHERS[..], 1)] {
            for method in methods {
                let floor = Floor::open([], 3).await;
                let (result, _) = floor.make(failing(&fault, floor.call(method))).await;
                assert!(result.is_err());
                assert_eq!(floor.wire.departures().len(), sent, "{method} {fault}");
            }
        }
    }
}

/// Not even where it is proven that nothing was sent.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_refused_is_retried_for_idempotent_calls_only() {
    let refused = service_fn(|_: Uri| {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        ready(Err::<TokioIo<TcpStream>, _>(refused))
    });
    for (methods, sent) in [(&IDEMPOTENT[..], 4), (&OTHERS[..], 1)] {
        for method in methods {
            let venue = Venue::start().unwrap();
            let wire = Wire::to(&venue).through(refused);
            let stonex: Stonex = stonex(&wire, &venue, 3, Always::MOST);
            let mut call = request(method.clone(), &venue, "/order/123");
            call.extensions_mut().insert(Unauthenticated::new());
            let (result, report) = make(&stonex.client, call).await;
            let error = result.unwrap_err();
            let failure = Failure::of(&*error).unwrap();
            assert_eq!(failure.delivery(), Delivery::NotSent);
            assert!(report.unwrap().outcome().is_retryable());
            assert_eq!(wire.departures().len(), sent, "{method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_of_a_429_is_authoritative_in_seconds_for_every_method() {
    for method in IDEMPOTENT.iter().chain(&OTHERS) {
        // The backoff would be 1, 2 and 4 seconds.
        let floor = Floor::open([throttled(7), throttled(1), throttled(2)], 3).await;
        let (result, _) = floor.make(floor.call(method)).await;
        assert_eq!(result.unwrap().status(), 200);
        assert_eq!(floor.wire.gaps(), [7, 1, 2].map(secs), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_of_a_429_is_authoritative_as_a_date() {
    let refusal = Answer::status(429)
        .header("date", "Fri, 07 Nov 2025 09:30:00 GMT")
        .header("retry-after", "Fri, 07 Nov 2025 09:30:12 GMT");
    let floor = Floor::open([refusal], 3).await;
    floor.make(get(&floor.venue)).await.0.unwrap();
    assert_eq!(floor.wire.gaps(), [secs(12)]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_after_is_not_capped_and_fails_fast_when_it_does_not_fit() {
    // Cut to the cap of the backoff the first would fit.
    for seconds in [31, 3600] {
        let floor = Floor::open(always(throttled(seconds)), 3).await;
        let start = Instant::now();
        let (result, report) = floor.make(get(&floor.venue)).await;
        assert_eq!(result.unwrap().status(), 429);
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!(floor.wire.departures().len(), 1);
        let report = report.unwrap();
        assert!(matches!(report.not_retried(), Some(NotRetried::Elapsed)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_is_waited_after_a_429_at_least() {
    for refusal in [throttled(0), Answer::status(429)] {
        let rejection = Answer::status(401);
        let floor = Floor::with(rejection, [refusal], 3, Always::LEAST).await;
        floor.make(get(&floor.venue)).await.0.unwrap();
        assert_eq!(floor.wire.gaps(), [secs(1)]);
    }
}

#[tokio::test(start_paused = true)]
async fn jitter_is_equal_with_a_base_of_one_second_and_a_cap_of_thirty() {
    for (jitter, gaps) in [
        (Always::LEAST, [500, 1000, 2000, 4000]),
        (Always::MOST, [1000, 2000, 4000, 8000]),
    ] {
        let busy = always(Answer::status(503));
        let floor = Floor::with(Answer::status(401), busy, 4, jitter).await;
        floor.make(get(&floor.venue)).await.0.unwrap();
        assert_eq!(floor.wire.gaps(), gaps.map(millis));
    }
    // In less than half a minute no call comes to more.
    for (jitter, wait) in [(Always::LEAST, secs(15)), (Always::MOST, secs(30))] {
        let longest = backoff().delay(9, Reason::ServerError, &jitter);
        assert_eq!(longest.as_millis().next_multiple_of(100), wait.as_millis());
    }
}

#[tokio::test(start_paused = true)]
async fn a_401_or_4011_refreshes_once_and_replays_once_for_every_method_also_with_0_retries() {
    for retries in [0, 3] {
        for rejection in [Answer::status(401), error(401, 4011), error(200, 4011)] {
            for method in IDEMPOTENT.iter().chain(&OTHERS) {
                let floor = Floor::with(rejection.clone(), [], retries, Always::MOST).await;
                floor.sessions.expire("session-1");
                let (result, report) = floor.make(floor.call(method)).await;
                assert_eq!(result.unwrap().status(), 200);
                assert_eq!(report.unwrap().attempts(), 2);
                // Rejected, logged in, and sent once more, at once.
                let departures = floor.wire.departures();
                assert_eq!(departures, [secs(2); 3], "{method} {rejection:?}");
                assert_eq!(floor.log_ins(), 2);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_rejected_again_is_replayed_no_more() {
    for retries in [0, 3] {
        let floor = Floor::open(always(error(401, 4011)), retries).await;
        let (result, _) = floor.make(get(&floor.venue)).await;
        assert_eq!(result.unwrap().status(), 401);
        assert_eq!(floor.wire.departures().len(), 3);
        assert_eq!(floor.log_ins(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_4010_never_refreshes() {
    for rejection in [error(401, 4010), error(200, 4010)] {
        let floor = Floor::open(always(rejection.clone()), 3).await;
        let (result, report) = floor.make(post(&floor.venue)).await;
        assert_eq!(result.unwrap().status(), rejection.status);
        assert!(report.unwrap().outcome().is_permanent());
        assert_eq!(floor.wire.departures().len(), 1);
        assert_eq!(floor.log_ins(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn five_hundred_requests_go_in_five_seconds_and_log_ins_are_among_them() {
    let floor = Floor::open([], 3).await;
    // A log-in and a call were made two seconds ago.
    for _ in 0..500 {
        floor.make(get(&floor.venue)).await.0.unwrap();
    }
    let departures = floor.wire.departures();
    assert_eq!(departures[497], secs(2));
    // As slow a clock as is in order is made up for.
    let window = millis(5000)..=millis(5005);
    assert!(window.contains(&departures[498]));
    assert_eq!(departures[499], departures[498]);
    assert_eq!(floor.venue.ledger().answered(429), 0);
}

#[tokio::test(start_paused = true)]
async fn the_window_is_acquired_again_for_each_send() {
    let floor = Floor::open([Answer::status(503), error(401, 4011), throttled(1)], 3).await;
    assert_eq!(floor.granted(), 2);
    let (result, _) = floor.make(get(&floor.venue)).await;
    assert_eq!(result.unwrap().status(), 200);
    // Sent, retried, logged in, replayed, retried.
    assert_eq!(floor.wire.departures().len(), 5);
    assert_eq!(floor.granted(), 2 + 5);
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_error_carries_the_hint() {
    let floor = Floor::open([throttled(45)], 3).await;
    let (result, report) = floor.make(get(&floor.venue)).await;
    assert_eq!(result.unwrap().status(), 429);
    let report = report.unwrap();
    assert_eq!(report.outcome().reason(), Some(Reason::RateLimited));
    assert_eq!(report.after().unwrap().delay(), secs(45));

    // The same where it is the window on this side that does not let it through in time.
    let floor = Floor::open([], 3).await;
    let calls = (0..498).map(|_| floor.make(get(&floor.venue)));
    join_all(calls).await;
    let mut call = get(&floor.venue);
    call.extensions_mut().insert(Deadline::after(secs(1)));
    let (result, _) = floor.make(call).await;
    let error = result.unwrap_err();
    let after = Failure::of(&*error).unwrap().outcome().after().unwrap();
    assert!((secs(3)..millis(3010)).contains(&after.delay()));
    let refused = Refused::of(&*error).unwrap();
    assert_eq!(refused.retry_after(Instant::now()), Some(after.delay()));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_refreshed_ahead_by_its_age() {
    let floor = Floor::open([], 3).await;
    advance(SESSION_AGE - secs(3)).await;
    floor.make(get(&floor.venue)).await.0.unwrap();
    assert_eq!(floor.log_ins(), 1, "not so old");

    advance(secs(1)).await;
    floor.make(get(&floor.venue)).await.0.unwrap();
    // The clock goes on once that is done.
    sleep(secs(1)).await;
    assert_eq!(floor.stonex.credentials.current().unwrap().generation(), 2);
    floor.sessions.expire("session-1");
    floor.make(get(&floor.venue)).await.0.unwrap();
    assert_eq!(floor.log_ins(), 2);
    assert_eq!(floor.venue.ledger().answered(401), 0);
}
