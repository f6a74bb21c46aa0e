//! What a source may do, and what configuration may not.

use std::{sync::Arc, time::Duration};

use http::{HeaderName, HeaderValue};
use tower::{Layer, ServiceExt};
use tower_outcome_auth_refresh::{
    Attach, AuthRefreshLayer, Bearer, Cookie, Credential, Credentials, FetchError, Headers, Secret,
    UnavailableKind, Windows,
};
use tower_outcome_core::{ConfigError, Failure, Outcome, Reason};

use crate::support::*;

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_asked_again_later() {
    let stage = Stage::new(Source::new([Say::Panic, Say::Token(None)]));
    assert_eq!(stage.call().await, Err(UnavailableKind::Panicked));
    stage.pass(SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_attached_is_a_failed_refresh_and_its_refresh_token_is_kept() {
    for token in ["", "line\nbreak", "caf\u{7f}"] {
        let bad = Credential::new(token).with_refresh_token("precious");
        let stage = Stage::new(Source::new([Say::Exactly(bad), Say::Token(None)]));
        assert_eq!(
            stage.call().await,
            Err(UnavailableKind::Unattachable),
            "{token:?}"
        );
        assert!(stage.venue.seen().is_empty());
        stage.pass(SECOND).await;
        assert_eq!(stage.call().await, Ok(200));
        let previous = stage.source.previous().pop().unwrap().unwrap();
        assert_eq!(previous.refresh_token(), Some(&Secret::new("precious")));
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_refresh_token_keeps_the_old_one() {
    let first = Credential::new("a")
        .with_refresh_token("r1")
        .with_lifetime(MINUTE)
        .with_login_until(start() + MINUTE * 60);
    let second = Credential::new("b").with_lifetime(MINUTE);
    let script = [first, second.clone(), second].map(Say::Exactly);
    let stage = Stage::new(Source::new(script));
    for _ in 0..3 {
        assert_eq!(stage.call().await, Ok(200));
        stage.pass(MINUTE).await;
    }
    let previous = stage.source.previous();
    for previous in &previous[1..] {
        let previous = previous.as_ref().unwrap();
        assert_eq!(previous.refresh_token(), Some(&Secret::new("r1")));
        assert_eq!(previous.login_until(), Some(start() + MINUTE * 60));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_through_its_own_layer_is_refused_and_not_waited_for() {
    // The source is built before the layer that it must not use.
    let slot: Arc<std::sync::OnceLock<tower_outcome_auth_refresh::AuthRefresh<Venue>>> =
        Arc::default();
    let own = Arc::clone(&slot);
    let source = move |_| {
        let service = own.get().unwrap().clone();
        async move {
            let error = service.oneshot(post()).await.unwrap_err();
            assert_eq!(kind(&error), UnavailableKind::Recursive);
            let failure = Failure::of(&*error).unwrap();
            let reason = Reason::AuthUnavailable;
            assert_eq!(failure.outcome(), Outcome::Permanent { reason });
            Err::<Credential, _>(FetchError::transient(error))
        }
    };
    let credentials = Credentials::builder("venue", source)
        .origin(ORIGIN)
        .build()
        .unwrap();
    let service = AuthRefreshLayer::new(credentials).layer(Venue::default());
    slot.set(service.clone()).ok().unwrap();
    let start = tokio::time::Instant::now();
    let error = service.oneshot(post()).await.unwrap_err();
    assert_eq!(kind(&error), UnavailableKind::Failed);
    assert!(start.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_refresh_through_its_own_layer_is_refused_while_there_is_a_good_credential_too() {
    let slot: Arc<std::sync::OnceLock<tower_outcome_auth_refresh::AuthRefresh<Venue>>> =
        Arc::default();
    let refused = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (own, told) = (Arc::clone(&slot), Arc::clone(&refused));
    let source = move |previous: Option<Credential>| {
        let (service, told) = (own.get().unwrap().clone(), Arc::clone(&told));
        async move {
            if previous.is_some() {
                let error = service.oneshot(post()).await.unwrap_err();
                let is_recursive = kind(&error) == UnavailableKind::Recursive;
                told.store(is_recursive, std::sync::atomic::Ordering::SeqCst);
            }
            Ok(Credential::new("token"))
        }
    };
    let credentials = Credentials::builder("venue", source)
        .origin(ORIGIN)
        .max_age(MINUTE);
    let service = AuthRefreshLayer::new(credentials.build().unwrap()).layer(Venue::default());
    slot.set(service.clone()).ok().unwrap();
    service.clone().oneshot(post()).await.unwrap();
    tokio::time::sleep(MINUTE).await;
    service.oneshot(post()).await.unwrap();
    tokio::time::sleep(SECOND).await;
    assert!(refused.load(std::sync::atomic::Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn two_credentials_whose_refreshes_need_each_other_are_told() {
    let slot: Arc<std::sync::OnceLock<Credentials>> = Arc::default();
    let own = Arc::clone(&slot);
    let inner_source = move |_| {
        let outer = own.get().unwrap().clone();
        async move {
            let error = outer.get(None).await.unwrap_err();
            assert_eq!(error.kind(), UnavailableKind::Recursive);
            Err::<Credential, _>(FetchError::transient(error))
        }
    };
    let inner = Credentials::builder("inner", inner_source)
        .any_origin()
        .build()
        .unwrap();
    let outer_source = move |_| {
        let inner = inner.clone();
        async move {
            let error = inner.get(None).await.unwrap_err();
            Err::<Credential, _>(FetchError::transient(error))
        }
    };
    let outer = Credentials::builder("outer", outer_source)
        .any_origin()
        .build()
        .unwrap();
    slot.set(outer.clone()).unwrap();
    let start = tokio::time::Instant::now();
    assert_eq!(
        outer.get(None).await.unwrap_err().kind(),
        UnavailableKind::Failed
    );
    assert!(start.elapsed().is_zero());
}

#[test]
fn without_a_runtime_nothing_is_fetched_and_nobody_panics() {
    let source = Source::endless();
    let credentials = Credentials::builder("venue", source.clone())
        .any_origin()
        .build()
        .unwrap();
    let mut get = tokio_test::task::spawn(credentials.get(None));
    let error = tokio_test::assert_ready!(get.poll()).unwrap_err();
    assert_eq!(error.kind(), UnavailableKind::NoRuntime);
    drop(get);
    assert_eq!(source.calls(), 0);
    // And it is not remembered.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    assert!(runtime.block_on(credentials.get(None)).is_ok());
    let mut get = tokio_test::task::spawn(credentials.get(None));
    assert!(tokio_test::assert_ready!(get.poll()).is_ok());
}

#[test]
fn a_runtime_that_goes_away_under_a_refresh_leaves_it_to_another() {
    let source = Source::new([Say::Never, Say::Token(None)]);
    let credentials = Credentials::builder("venue", source.clone())
        .any_origin()
        .build()
        .unwrap();
    let build = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let first = build();
    let doomed = credentials.clone();
    first.block_on(async move {
        let wait = tokio::time::timeout(SECOND, doomed.get(None));
        assert!(wait.await.is_err());
    });
    drop(first);
    let second = build();
    let lost = second.block_on(credentials.get(None)).unwrap_err();
    assert_eq!(lost.kind(), UnavailableKind::Lost);
    second.block_on(async {
        tokio::time::sleep(SECOND * 5).await;
        assert!(credentials.get(None).await.is_ok());
    });
}

#[test]
fn a_runtime_that_stands_still_under_a_refresh_is_given_up_in_the_end() {
    let source = Source::endless().takes(SECOND);
    let credentials = Credentials::builder("venue", source.clone())
        .any_origin()
        .build()
        .unwrap();
    let build = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
    };
    let still = build();
    let starter = credentials.clone();
    still.block_on(async move {
        // Starts the refresh, and is the last that this runtime does for a while.
        let mut get = tokio_test::task::spawn(starter.get(None));
        tokio_test::assert_pending!(get.poll());
    });
    let other = build();
    let lost = other.block_on(credentials.get(None)).unwrap_err();
    assert_eq!(lost.kind(), UnavailableKind::Lost);
    // What comes late is welcome.
    still.block_on(async { tokio::time::sleep(SECOND * 2).await });
    assert_eq!(credentials.current().unwrap().generation(), 1);
}

#[test]
fn what_cannot_work_is_refused_with_field_and_value() {
    type Change = fn(
        tower_outcome_auth_refresh::CredentialsBuilder,
    ) -> tower_outcome_auth_refresh::CredentialsBuilder;
    let cases: [(Change, &str, &str); 11] = [
        (|b| b, "origin", "[]"),
        (|b| b.origin(ORIGIN).any_origin(), "origin", "venue.test"),
        (|b| b.origin("venue.test"), "origin", "venue.test"),
        (|b| b.origin("https://venue.test/path"), "origin", "/path"),
        (|b| b.origin("https://user@venue.test"), "origin", "user@"),
        (|b| b.origin("https://"), "origin", "https://"),
        (|b| b.any_origin().timeout(Duration::ZERO), "timeout", "0ns"),
        (
            |b| b.any_origin().min_interval(Duration::ZERO),
            "min_interval",
            "0ns",
        ),
        (
            |b| b.any_origin().min_interval(Duration::from_secs(601)),
            "min_interval",
            "601s",
        ),
        (
            |b| b.any_origin().max_age(Duration::from_millis(999)),
            "max_age",
            "999ms",
        ),
        (
            |b| b.any_origin().windows(Windows::fixed(SECOND, SECOND * 2)),
            "windows.mandatory",
            "2s",
        ),
    ];
    for (change, field, value) in cases {
        let error: ConfigError = change(Credentials::builder("venue", Source::endless()))
            .build()
            .unwrap_err();
        assert_eq!(error.field(), field, "{error}");
        assert!(error.value().contains(value), "{error}");
    }
}

#[test]
fn what_is_attached_is_what_the_credential_has() {
    let credential = Credential::new("t").with_field("user", "u");
    let none = |attach: &dyn Attach, part: &str, why: &str| {
        let error = attach.headers(&credential).unwrap_err();
        assert_eq!((error.part(), error.why()), (part, why));
    };
    none(&Headers::new(), "headers", "empty");
    none(
        &Headers::new().field(HeaderName::from_static("x"), "absent"),
        "absent",
        "missing",
    );
    none(&Cookie::new("a=b"), "cookie name", "no valid cookie name");
    none(&Cookie::new(""), "cookie name", "no valid cookie name");
    let split = Credential::new("a; Domain=evil");
    assert_eq!(
        Cookie::new("sid").headers(&split).unwrap_err().part(),
        "token"
    );
    assert_eq!(Bearer::new().headers(&credential).unwrap()[0].1, "Bearer t");
    let custom = |credential: &Credential| {
        let value = credential.token().header_value("token", "Token token=")?;
        Ok(vec![(HeaderName::from_static("authorization"), value)])
    };
    assert_eq!(
        custom.headers(&credential).unwrap()[0].1,
        HeaderValue::from_static("Token token=t")
    );
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_printed() {
    let secret = Credential::new("hunter2")
        .with_refresh_token("hunter2")
        .with_field("password", "hunter2");
    let stage = Stage::new(Source::new([Say::Exactly(secret.clone())]));
    let snapshot = stage.credentials.get(None).await.unwrap();
    let future = stage.service.clone().oneshot(post());
    let printed = format!(
        "{secret:?} {snapshot:?} {:?} {:?} {:?} {} {:?}",
        stage.credentials,
        stage.service.get_ref().seen(),
        secret.token(),
        secret.token(),
        Bearer::new().headers(&secret),
    );
    drop(future);
    assert!(!printed.contains("hunter2"), "{printed}");
}
