//! What a rejection leads to.

use http::{HeaderName, Request, header};
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceExt};
use tower_outcome_auth_refresh::{
    AuthRefreshLayer, Cookie, Credential, Headers, Snapshot, Unauthenticated, UnavailableKind,
};
use tower_outcome_core::{
    Answer, Attempt, CallContext, CallReport, Delivery, Failure, HttpClassifier, Judged,
    NotRetried, Outcome, Reason,
};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_rejected_order_is_sent_once_more_with_another_credential() {
    let stage = Stage::with(Source::endless(), Venue::rejecting(&["token-1"]), |b| b);
    let reply: Reply = stage.service.clone().oneshot(post()).await;
    let report = CallReport::in_result(&reply).unwrap();
    assert_eq!(report.attempts(), 2);
    assert_eq!(report.outcome(), Outcome::Success);
    assert_eq!(reply.unwrap().status(), 200);
    assert_eq!(stage.venue.seen(), ["token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn the_server_is_right_whatever_the_clock_says() {
    let stage = Stage::new(Source::tokens(MINUTE * 60));
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE).await;
    stage.venue.reject("token-1");
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_second_rejection_is_the_callers_answer() {
    let stage = Stage::new(Source::endless());
    stage.venue.reject_all();
    let reply: Reply = stage.service.clone().oneshot(post()).await;
    let report = CallReport::in_result(&reply).unwrap().clone();
    let rejected = Outcome::Permanent {
        reason: Reason::AuthRejected,
    };
    assert_eq!((report.attempts(), report.outcome()), (2, rejected));
    let response = reply.unwrap();
    assert_eq!(response.status(), 401);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "401");
    assert_eq!(stage.source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_of_an_older_one_refreshes_nothing() {
    let stage = Stage::new(Source::endless());
    assert_eq!(stage.call().await, Ok(200));
    stage.venue.latency(SECOND * 10);
    let slow = tokio::spawn(stage.service.clone().oneshot(post()));
    stage.settle().await;
    stage.venue.latency(SECOND);
    stage.venue.reject("token-1");
    // Sent before the session died, and answered after it was replaced.
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 2);
    let slow = slow.await.unwrap().unwrap();
    assert_eq!(slow.status(), 200);
    assert_eq!(stage.source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_late_rejection_of_an_older_one_replays_with_the_present_one() {
    let stage = Stage::new(Source::endless());
    assert_eq!(stage.call().await, Ok(200));
    let old = stage.credentials.current().unwrap();
    stage.credentials.reject(&old);
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 2);
    // Once more of the same old one: a mismatch, which changes nothing.
    stage.credentials.reject(&old);
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 2);
    assert_eq!(stage.credentials.current().unwrap().generation(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_that_meet_a_dead_session_share_one_refresh() {
    let stage = Stage::with(
        Source::endless().takes(SECOND / 10),
        Venue::default(),
        |b| b,
    );
    assert_eq!(stage.call().await, Ok(200));
    stage.venue.reject("token-1");
    let calls: Vec<_> = (0..1000)
        .map(|_| tokio::spawn(stage.service.clone().oneshot(post())))
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(stage.source.calls(), 2);
    assert_eq!(stage.venue.seen().len(), 2001);
}

#[tokio::test(start_paused = true)]
async fn a_403_refreshes_nothing_unless_a_rule_says_so() {
    let venue =
        tower::service_fn(|_: Req| async { Ok::<_, tower_outcome_core::BoxError>(status(403)) });
    for (classifier, refreshes) in [
        (HttpClassifier::new(), 1),
        (
            HttpClassifier::builder()
                .auth_rejected([http::StatusCode::FORBIDDEN])
                .build()
                .unwrap(),
            2,
        ),
    ] {
        let stage = Stage::new(Source::endless());
        let layer = AuthRefreshLayer::builder(stage.credentials.clone())
            .classifier(classifier)
            .build();
        let response = layer.layer(venue).oneshot(post()).await.unwrap();
        assert_eq!(response.status(), 403);
        assert_eq!(stage.source.calls(), refreshes);
    }
}

/// `ErrorCode` 4011 is a session that has died, 4010 a log-in that is not accepted.
fn ciapi() -> HttpClassifier {
    let rule = |seen: Judged<'_>| {
        let text = std::str::from_utf8(seen.body).ok()?;
        let code = text.split("\"ErrorCode\":").nth(1)?;
        match code.trim_start().get(..4)? {
            "4011" => Some(Answer::Rejected {
                reason: Reason::AuthRejected,
            }),
            _ => Some(Answer::Rejected {
                reason: Reason::Rejected,
            }),
        }
    };
    HttpClassifier::builder().body_rule(rule).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn error_code_4011_in_a_body_replays_an_order_once_and_4010_never() {
    for (code, status_code, sent) in [
        (4011, 200, 2),
        (4011, 401, 2),
        (4010, 200, 1),
        (4010, 401, 1),
    ] {
        let stage = Stage::new(Source::endless());
        let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = seen.clone();
        let venue = tower::service_fn(move |request: Req| {
            counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let is_new = request.headers()[header::AUTHORIZATION] == "Bearer token-2";
            async move {
                assert_eq!(
                    request.into_body().collect().await.unwrap().to_bytes(),
                    "buy 100"
                );
                let response = if is_new {
                    status(200)
                } else {
                    http::Response::builder()
                        .status(status_code)
                        .body(Full::from(format!("{{\"ErrorCode\": {code}}}")))
                        .unwrap()
                };
                Ok::<_, tower_outcome_core::BoxError>(response)
            }
        });
        let layer = AuthRefreshLayer::builder(stage.credentials.clone())
            .classifier(ciapi())
            .build();
        let response = layer.layer(venue).oneshot(post()).await.unwrap();
        assert_eq!(
            seen.load(std::sync::atomic::Ordering::SeqCst),
            sent,
            "{code} {status_code}"
        );
        assert_eq!(stage.source.calls(), sent, "{code} {status_code}");
        let expected = if sent == 2 { 200 } else { status_code };
        assert_eq!(response.status(), expected);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        if sent == 1 {
            assert_eq!(body, format!("{{\"ErrorCode\": {code}}}"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_rejection_without_another_credential_is_refused_and_not_an_answer_of_the_api() {
    for (say, expected, permanent) in [
        (Say::Transient, UnavailableKind::Failed, false),
        (Say::Dead, UnavailableKind::Dead, true),
    ] {
        let source = Source::new([Say::Token(None), say]);
        let stage = Stage::with(source, Venue::rejecting(&["token-1"]), |b| b);
        let error = stage.service.clone().oneshot(post()).await.unwrap_err();
        assert_eq!(kind(&error), expected);
        let failure = Failure::of(&*error).unwrap();
        assert_eq!(failure.delivery(), Delivery::Refused);
        assert_eq!(failure.outcome().is_permanent(), permanent);
        assert_eq!(failure.outcome().reason(), Some(Reason::AuthUnavailable));
        // It stays rejected: the next one does not go with it.
        assert_eq!(stage.call().await, Err(expected));
        assert_eq!(stage.venue.seen().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_credential_once_more_is_not_sent_once_more() {
    let same = Say::Exactly(Credential::new("same"));
    let stage = Stage::with(Source::new([same]), Venue::rejecting(&["same"]), |b| b);
    assert_eq!(stage.call().await, Ok(401));
    assert_eq!(stage.venue.seen(), ["same"]);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_never_taken_are_fetched_ever_more_seldom() {
    let stage = Stage::new(Source::endless());
    stage.venue.reject_all();
    let start = tokio::time::Instant::now();
    while start.elapsed() < MINUTE * 10 {
        assert_eq!(stage.call().await, Ok(401));
        stage.pass(SECOND / 10).await;
    }
    // 1 + 2 + 4 + ... s, then one a minute.
    assert!(
        stage.source.calls() < 20,
        "{} log-ins",
        stage.source.calls()
    );
}

#[tokio::test(start_paused = true)]
async fn without_replays_the_rejection_is_the_answer_and_the_next_call_has_another_one() {
    let stage = Stage::with(Source::endless(), Venue::rejecting(&["token-1"]), |b| b);
    let layer = AuthRefreshLayer::builder(stage.credentials.clone())
        .replays(false)
        .build();
    let service = layer.layer(stage.venue.clone());
    let reply: Reply = service.clone().oneshot(post()).await;
    let report = CallReport::in_result(&reply).unwrap();
    assert!(matches!(
        report.not_retried(),
        Some(NotRetried::SwitchedOff)
    ));
    assert_eq!(reply.unwrap().status(), 401);
    assert_eq!(service.oneshot(post()).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_cannot_be_sent_twice_is_not() {
    use tower_outcome_core::ReplayBody;

    let stage = Stage::new(Source::endless());
    let venue = tower::service_fn(
        |request: Request<ReplayBody<Full<bytes::Bytes>>>| async move {
            let _ = request.into_body().collect().await;
            Ok::<_, tower_outcome_core::BoxError>(status(401))
        },
    );
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(venue);
    stage.credentials.get(None).await.unwrap();
    stage.pass(SECOND).await;
    let order = post().map(|body| ReplayBody::with_limit(body, 0));
    let reply: Reply = service.oneshot(order).await;
    let report = CallReport::in_result(&reply).unwrap();
    assert!(matches!(
        report.not_retried(),
        Some(NotRetried::BodyNotReplayable)
    ));
    assert_eq!(reply.unwrap().status(), 401);
    stage.settle().await;
    assert_eq!(stage.credentials.current().unwrap().generation(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_replay_is_the_next_attempt_and_nothing_was_applied_before() {
    let stage = Stage::new(Source::endless());
    let context = CallContext::new();
    let attempts = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = attempts.clone();
    let venue = tower::service_fn(move |request: Req| {
        let attempt = Attempt::of(request.extensions());
        log.lock()
            .unwrap()
            .push((attempt.number(), attempt.maybe_applied_before()));
        let is_new = request.headers()[header::AUTHORIZATION] == "Bearer token-2";
        async move { Ok::<_, tower_outcome_core::BoxError>(status(if is_new { 200 } else { 401 })) }
    });
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(venue);
    let mut order = post();
    context.put(order.extensions_mut());
    context.begin_attempt();
    assert_eq!(service.oneshot(order).await.unwrap().status(), 200);
    assert_eq!(*attempts.lock().unwrap(), [(1, false), (2, false)]);
    assert_eq!(context.attempts(), 2);
    let (outcome, delivery) = context.last().unwrap();
    assert_eq!(outcome.reason(), Some(Reason::AuthRejected));
    assert_eq!(delivery, Delivery::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_strikes_while_a_credential_is_awaited_knows_that_nothing_was_sent() {
    let stage = Stage::new(Source::new([Say::Never]));
    let context = CallContext::new();
    let mut order = post();
    context.put(order.extensions_mut());
    let call = tokio::spawn(stage.service.clone().oneshot(order));
    stage.settle().await;
    assert_eq!(context.phase(), tower_outcome_core::Phase::AwaitingToken);
    assert_eq!(context.give_up().delivery, Delivery::NotSent);
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_strikes_after_a_rejection_knows_that_nothing_was_done() {
    let source = Source::new([Say::Token(None), Say::Never]);
    let stage = Stage::with(source, Venue::rejecting(&["token-1"]), |b| b);
    let context = CallContext::new();
    let mut order = post();
    context.put(order.extensions_mut());
    context.begin_attempt();
    let call = tokio::spawn(stage.service.clone().oneshot(order));
    stage.pass(SECOND * 3).await;
    assert_eq!(context.phase(), tower_outcome_core::Phase::AwaitingToken);
    let given_up = context.give_up();
    assert!(given_up.delivery.proves_not_applied());
    assert_eq!(context.attempts(), 1, "the replay has not begun");
    call.abort();
}

#[tokio::test(start_paused = true)]
async fn pairs_and_cookies_are_attached_and_marked_sensitive() {
    let session = Say::Exactly(Credential::new("s1").with_field("user", "DM123"));
    let stage = Stage::with(
        Source::new([session.clone()]),
        Venue::default(),
        |builder| {
            let headers = Headers::new()
                .field(HeaderName::from_static("username"), "user")
                .token(HeaderName::from_static("session"));
            builder.attach(headers)
        },
    );
    let probe = tower::service_fn(|request: Req| async move {
        let headers = request.headers();
        assert_eq!(headers["username"], "DM123");
        assert_eq!(headers["session"], "s1");
        assert!(headers["session"].is_sensitive() && headers["username"].is_sensitive());
        Ok::<_, tower_outcome_core::BoxError>(status(200))
    });
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(probe);
    service.oneshot(post()).await.unwrap();

    let stage = Stage::with(Source::new([session]), Venue::default(), |builder| {
        builder.attach(Cookie::new("sid"))
    });
    let probe = tower::service_fn(|request: Req| async move {
        let cookies: Vec<_> = request.headers().get_all(header::COOKIE).iter().collect();
        assert_eq!(cookies, ["a=b; sid=s1"]);
        assert!(cookies[0].is_sensitive());
        Ok::<_, tower_outcome_core::BoxError>(status(200))
    });
    let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(probe);
    let mut order = post();
    order
        .headers_mut()
        .insert(header::COOKIE, "a=b".parse().unwrap());
    service.oneshot(order).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_credential_is_sent_to_its_own_origin_alone() {
    let stage = Stage::new(Source::endless());
    for (target, expected) in [
        ("https://venue.test/a", "token-1"),
        ("https://VENUE.test:443/a", "token-1"),
        ("/relative", "token-1"),
        ("http://venue.test/a", "-"),
        ("https://venue.test:8443/a", "-"),
        ("https://venue.test.evil.test/a", "-"),
        ("https://evil.test/a", "-"),
    ] {
        let request = Request::get(target).body(Full::default()).unwrap();
        stage.service.clone().oneshot(request).await.unwrap();
        assert_eq!(stage.venue.seen().pop().unwrap(), expected, "{target}");
    }
    for (host, expected) in [("venue.test", "token-1"), ("evil.test", "-")] {
        let request = Request::get("/a").header(header::HOST, host);
        let request = request.body(Full::default()).unwrap();
        stage.service.clone().oneshot(request).await.unwrap();
        assert_eq!(stage.venue.seen().pop().unwrap(), expected, "{host}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ours_passes_untouched_and_its_401_too() {
    let stage = Stage::new(Source::endless());
    stage.venue.reject_all();
    let mut own = post();
    own.headers_mut()
        .insert(header::AUTHORIZATION, "Bearer own".parse().unwrap());
    let mut marked = post();
    marked.extensions_mut().insert(Unauthenticated::new());
    let elsewhere = Request::get("https://other.test/")
        .body(Full::default())
        .unwrap();
    for request in [own, marked, elsewhere] {
        let response = stage.service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 401);
    }
    assert_eq!(stage.venue.seen(), ["own", "-", "-"]);
}

#[tokio::test(start_paused = true)]
async fn a_signer_below_gets_the_credential_of_this_very_attempt() {
    let stage = Stage::new(Source::endless());
    let generations = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = generations.clone();
    let signer = tower::service_fn(move |request: Req| {
        let snapshot: &Snapshot = request.extensions().get().unwrap();
        let token = format!("Bearer {}", snapshot.credential().token().expose());
        assert_eq!(request.headers()[header::AUTHORIZATION], token);
        log.lock().unwrap().push(snapshot.generation());
        let code = if snapshot.generation() == 1 { 401 } else { 200 };
        async move { Ok::<_, tower_outcome_core::BoxError>(status(code)) }
    });
    let layer = AuthRefreshLayer::builder(stage.credentials.clone())
        .hands_down(true)
        .build();
    layer.layer(signer).oneshot(post()).await.unwrap();
    assert_eq!(*generations.lock().unwrap(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_credential_that_is_no_header_is_replayed_too_and_only_if_it_is_another_one() {
    let key = |id: &str| Say::Exactly(Credential::new("token").with_field("id", id));
    for (second, expected) in [("new", 200), ("old", 401)] {
        let source = Source::new([key("old"), key(second)]);
        let stage = Stage::with(source, Venue::default(), |builder| {
            builder.attach(|_: &Credential| Ok(Vec::new()))
        });
        let signer = tower::service_fn(move |request: Req| {
            let snapshot: &Snapshot = request.extensions().get().unwrap();
            let id = snapshot.credential().field("id").unwrap();
            let code = if id.expose() == "new" { 200 } else { 401 };
            async move { Ok::<_, tower_outcome_core::BoxError>(status(code)) }
        });
        let layer = AuthRefreshLayer::builder(stage.credentials.clone())
            .hands_down(true)
            .build();
        let response = layer.layer(signer).oneshot(post()).await.unwrap();
        assert_eq!(response.status(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_with_a_credential_that_is_neither_attached_nor_handed_down() {
    let stage = Stage::with(Source::endless(), Venue::default(), |builder| {
        builder.attach(|_: &Credential| Ok(Vec::new()))
    });
    for _ in 0..2 {
        assert_eq!(stage.call().await, Err(UnavailableKind::Unattachable));
    }
    assert!(stage.venue.seen().is_empty());
}

#[tokio::test(start_paused = true)]
async fn half_of_a_pair_is_no_credential_of_the_callers_own() {
    let session = Say::Exactly(Credential::new("s1").with_field("user", "DM123"));
    let stage = Stage::with(Source::new([session]), Venue::default(), |builder| {
        let headers = Headers::new()
            .field(HeaderName::from_static("username"), "user")
            .token(HeaderName::from_static("session"));
        builder.attach(headers)
    });
    for (session, expected) in [(None, "s1"), (Some("own"), "own")] {
        let probe = tower::service_fn(move |request: Req| async move {
            assert_eq!(request.headers()["session"], expected);
            Ok::<_, tower_outcome_core::BoxError>(status(200))
        });
        let service = AuthRefreshLayer::new(stage.credentials.clone()).layer(probe);
        let mut order = post();
        let headers = order.headers_mut();
        headers.insert("username", "DM123".parse().unwrap());
        if let Some(session) = session {
            headers.insert("session", session.parse().unwrap());
        }
        service.oneshot(order).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_streamed_body_is_sent_again_from_its_beginning() {
    use http_body_util::{StreamBody, combinators::UnsyncBoxBody};
    use tower_outcome_core::{BoxError, ReplayBody, ReplayLayer};

    type Streamed = UnsyncBoxBody<bytes::Bytes, BoxError>;

    let stage = Stage::new(Source::endless());
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let venue = tower::service_fn(move |request: Request<ReplayBody<Streamed>>| {
        let log = log.clone();
        async move {
            let is_new = request.headers()[header::AUTHORIZATION] == "Bearer token-2";
            let body = request.into_body().collect().await.unwrap().to_bytes();
            log.lock().unwrap().push(body);
            Ok::<_, BoxError>(status(if is_new { 200 } else { 401 }))
        }
    });
    let service = tower::ServiceBuilder::new()
        .layer(ReplayLayer::new())
        .layer(AuthRefreshLayer::new(stage.credentials.clone()))
        .service(venue);
    let parts = ["buy ", "1", "00"].map(|part| {
        Ok::<_, BoxError>(http_body::Frame::data(bytes::Bytes::from_static(
            part.as_bytes(),
        )))
    });
    let body = StreamBody::new(futures_util::stream::iter(parts)).boxed_unsync();
    let order = Request::post("https://venue.test/orders")
        .body(body)
        .unwrap();
    let response = service.oneshot(order).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(*seen.lock().unwrap(), ["buy 100", "buy 100"]);
}
