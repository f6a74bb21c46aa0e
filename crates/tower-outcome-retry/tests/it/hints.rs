//! What a server's wish to be left alone does.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use tokio::time::Instant;
use tower_outcome_core::{Deadline, HintForm};
use tower_outcome_retry::{HintPolicy, Hints};

use crate::support::*;

async fn wait_after(hints: Hints, code: u16, retry_after: &str) -> Duration {
    let (service, mut server) = pair(&steady().hints(hints).build().unwrap());
    let call = start(&service, get());
    server.respond(hinted(code, retry_after)).await;
    let wait = server.answer_timed(200).await;
    finish(call).await.unwrap();
    wait
}

#[tokio::test(start_paused = true)]
async fn the_servers_wish_is_a_lower_bound() {
    assert_eq!(
        wait_after(Hints::new(), 503, "2").await,
        Duration::from_secs(2)
    );
    // Shorter than the backoff of 50 ms.
    assert_eq!(
        wait_after(Hints::new(), 503, "0").await,
        Duration::from_millis(50)
    );
}

#[tokio::test(start_paused = true)]
async fn a_fraction_of_a_second_is_never_rounded_down() {
    assert_eq!(
        wait_after(Hints::new(), 503, "0.493").await,
        Duration::from_millis(493)
    );
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_none_leaves_the_backoff() {
    for junk in ["-3", "-1", "120junk", "+3", "1.5.2", "soon", "", "0x10"] {
        assert_eq!(
            wait_after(Hints::new(), 503, junk).await,
            Duration::from_millis(50),
            "{junk:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_throttled_call_without_a_hint_waits_a_second() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let call = start(&service, get());
    server.answer(429).await;
    assert_eq!(server.answer_timed(200).await, Duration::from_secs(1));
    finish(call).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_date_is_waited_for_and_a_past_one_is_not() {
    let http_date = |seconds: u64| {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds);
        httpdate::fmt_http_date(date)
    };
    for (at, wait) in [(90, 90_000), (0, 50)] {
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, get());
        let mut response = hinted(503, &http_date(at));
        // The date is measured against the server's own clock.
        response
            .headers_mut()
            .insert("date", http_date(0).parse().unwrap());
        server.respond(response).await;
        assert_eq!(server.answer_timed(200).await, Duration::from_millis(wait));
        finish(call).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_hours_or_years_is_returned_and_not_slept() {
    for long in [
        "3600",
        "999999999999999999999999999999",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ] {
        let start_time = Instant::now();
        let (service, mut server) = pair(&steady().build().unwrap());
        let call = start(&service, get());
        server.respond(hinted(503, long)).await;
        let result = finish(call).await;
        assert_eq!(start_time.elapsed(), Duration::ZERO, "{long}");
        assert_eq!(code(&result), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(not_retried(&result), "hint_too_long");
        let hint = report(&result).after().unwrap();
        assert!(hint.delay() >= Duration::from_secs(3600));
    }
}

#[tokio::test(start_paused = true)]
async fn an_hour_with_a_deadline_of_ten_seconds_returns_at_once_with_the_hint() {
    let begin = Instant::now();
    let hints = Hints::new().longest(Duration::MAX);
    let (service, mut server) = pair(&steady().hints(hints).build().unwrap());
    let mut request = get();
    request
        .extensions_mut()
        .insert(Deadline::after(Duration::from_secs(10)));
    let call = start(&service, request);
    server.respond(hinted(429, "3600")).await;
    let result = finish(call).await;
    assert_eq!(begin.elapsed(), Duration::ZERO);
    assert_eq!(not_retried(&result), "deadline");
    assert_eq!(
        report(&result).after().unwrap().delay(),
        Duration::from_secs(3600)
    );
    assert_eq!(report(&result).after().unwrap().form(), HintForm::Seconds);
}

#[tokio::test(start_paused = true)]
async fn a_backoff_that_does_not_fit_the_deadline_is_not_slept() {
    let (service, mut server) = pair(&steady().build().unwrap());
    let mut request = get();
    request
        .extensions_mut()
        .insert(Deadline::after(Duration::from_millis(50)));
    let call = start(&service, request);
    server.answer(503).await;
    assert_eq!(not_retried(&finish(call).await), "deadline");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_does_not_fit_the_time_for_all_attempts_is_not_slept() {
    let layer = steady().elapsed(Duration::from_secs(30)).build().unwrap();
    for (hint, fits) in [("30", true), ("31", false)] {
        let (service, mut server) = pair(&layer);
        let call = start(&service, get());
        server.respond(hinted(429, hint)).await;
        if fits {
            server.answer(200).await;
            assert_eq!(code(&finish(call).await), StatusCode::OK);
        } else {
            assert_eq!(not_retried(&finish(call).await), "elapsed");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hints_can_be_clamped_replaced_or_ignored() {
    let clamped = Hints::new()
        .policy(HintPolicy::Replace)
        .clamp(Duration::from_secs(8));
    assert_eq!(wait_after(clamped, 503, "60").await, Duration::from_secs(8));
    assert_eq!(wait_after(clamped, 503, "0").await, Duration::ZERO);
    let ignored = Hints::new().policy(HintPolicy::Ignore);
    assert_eq!(
        wait_after(ignored, 503, "60").await,
        Duration::from_millis(50)
    );
    let no_dates = Hints::new().dates(false);
    assert_eq!(
        wait_after(no_dates, 503, "Fri, 31 Dec 9999 23:59:59 GMT").await,
        Duration::from_millis(50)
    );
}

#[tokio::test(start_paused = true)]
async fn a_floor_after_throttling_holds_whatever_the_server_says() {
    let hints = Hints::new()
        .policy(HintPolicy::Replace)
        .throttled_floor(Duration::from_secs(1));
    assert_eq!(wait_after(hints, 429, "0").await, Duration::from_secs(1));
    assert_eq!(wait_after(hints, 503, "0").await, Duration::ZERO);
}
