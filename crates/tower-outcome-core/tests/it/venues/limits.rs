//! Rate limits and bans, wherever a venue writes them.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use http::{StatusCode, response};
use serde_json::Value;
use tower_outcome_core::{
    Answer, Attempt, BodyRule, Classify, Clock, Delivery, HintDialects, HintForm, HttpCall,
    HttpClassifier, Judged, ManualClock, Outcome, Reason, RetryAfter, Verdict,
};

use crate::support::*;

const NOW: u64 = 1_700_000_000;

fn clock() -> Arc<dyn Clock> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(NOW);
    Arc::new(ManualClock::new(now))
}

fn limited(after: Option<RetryAfter>) -> Answer {
    Answer::NotApplied {
        reason: Reason::RateLimited,
        after,
    }
}

fn custom(wait: Duration) -> RetryAfter {
    RetryAfter::new(wait, HintForm::Custom)
}

/// Binance: 429 and 418 are sent by the gate before the engine is asked, the end of a ban stands in
/// the text, and its firewall answers with a page of HTML.
fn binance(clock: Arc<dyn Clock>) -> HttpClassifier {
    let ban = move |seen: Judged<'_>| {
        if seen.head.status != StatusCode::IM_A_TEAPOT {
            return None;
        }
        let document: Value = serde_json::from_slice(seen.body).ok()?;
        let text = document.get("msg")?.as_str()?;
        // The only number of 13 digits is the end, in milliseconds since 1970.
        let mut numbers = text.split(|c: char| !c.is_ascii_digit());
        let end = numbers.find(|number| number.len() == 13)?.parse().ok()?;
        let end = SystemTime::UNIX_EPOCH + Duration::from_millis(end);
        let wait = end.duration_since(clock.now()).unwrap_or_default();
        Some(limited(Some(custom(wait))))
    };
    let firewall = |seen: Judged<'_>| {
        let html = seen.head.headers.get("content-type")?;
        let html = html.as_bytes().starts_with(b"text/html");
        let blocked = html && seen.head.status == StatusCode::FORBIDDEN;
        blocked.then(|| limited(Some(custom(Duration::from_secs(300)))))
    };
    HttpClassifier::builder()
        .refuses_before_acting([StatusCode::TOO_MANY_REQUESTS, StatusCode::IM_A_TEAPOT])
        .head_rule(firewall)
        .body_rule(ban)
        .build()
        .unwrap()
}

fn banned(text: &str) -> http::Response<Vec<u8>> {
    let body = format!(r#"{{"code":-1003,"msg":"{text}"}}"#);
    answer(418, &[("retry-after", "7")], &body)
}

#[test]
fn the_end_of_a_ban_is_read_from_the_text_where_it_stands_nowhere_else() {
    let until = (NOW + 90) * 1000 + 500;
    let text = format!("Way too much request weight used; IP banned until {until}. Use sockets.");
    let outcome = outcome(&binance(clock()), &post(), banned(&text));
    let after = outcome.after().unwrap();
    assert_eq!(after.delay(), Duration::from_millis(90_500));
    assert_eq!(after.form(), HintForm::Custom);
    assert_eq!(outcome.reason(), Some(Reason::RateLimited));
}

#[test]
fn a_ban_that_is_over_or_has_no_end_in_its_text_is_still_a_ban() {
    let over = format!("IP banned until {}", (NOW - 5) * 1000);
    let of = |text: &str| outcome(&binance(clock()), &post(), banned(text));
    assert_eq!(of(&over).after().unwrap().delay(), Duration::ZERO);
    // Then the header has the word.
    for text in [
        "IP banned",
        "banned until 12345",
        "until 99999999999999999999",
    ] {
        let expected = retryable_after(Reason::RateLimited, 7, HintForm::Seconds);
        assert_eq!(of(text), expected, "{text}");
    }
}

#[test]
fn a_ban_that_comes_without_a_warning_is_typed_as_well() {
    let decision = decide(
        &binance(clock()),
        &post(),
        Attempt::FIRST,
        answer(418, &[("retry-after", "120")], ""),
    );
    let expected = retryable_after(Reason::RateLimited, 120, HintForm::Seconds);
    assert_eq!(decision.outcome, expected);
    assert_eq!(decision.delivery, Delivery::Refused);
}

#[test]
fn a_firewalls_page_of_html_is_a_limit_and_no_panic() {
    let page = "<html><body><h1>403 Forbidden</h1></body></html>";
    let html = answer(403, &[("content-type", "text/html; charset=utf-8")], page);
    let outcome = outcome(&binance(clock()), &post(), html);
    let expected = retryable_after(Reason::RateLimited, 300, HintForm::Custom);
    assert_eq!(outcome, expected);
    let json = answer(403, &[("content-type", "application/json")], page);
    let outcome = crate::support::outcome(&binance(clock()), &post(), json);
    assert_eq!(outcome, permanent(Reason::Rejected));
}

/// Bybit says in a 200 that there were too many, and in a header until when.
fn bybit(clock: Arc<dyn Clock>) -> HttpClassifier {
    let rule = move |seen: Judged<'_>| {
        let document: Value = serde_json::from_slice(seen.body).ok()?;
        let dialect = HintDialects::new().bybit_reset();
        match document.get("retCode")?.as_i64()? {
            10006 => Some(limited(dialect.parse(&seen.head.headers, clock.now()))),
            _ => None,
        }
    };
    HttpClassifier::builder().body_rule(rule).build().unwrap()
}

#[test]
fn a_limit_inside_a_200_waits_until_the_reset_header_in_milliseconds() {
    let reset = (NOW * 1000 + 250).to_string();
    let headers = [
        ("x-bapi-limit-status", "0"),
        ("x-bapi-limit-reset-timestamp", reset.as_str()),
    ];
    let limited = answer(200, &headers, r#"{"retCode":10006}"#);
    let outcome = outcome(&bybit(clock()), &post(), limited);
    assert_eq!(outcome.reason(), Some(Reason::RateLimited));
    assert_eq!(outcome.after().unwrap().delay(), Duration::from_millis(250));
    let done = answer(200, &headers, r#"{"retCode":0}"#);
    let outcome = crate::support::outcome(&bybit(clock()), &post(), done);
    assert_eq!(outcome, Outcome::Success);
}

/// GitHub answers 403 for a limit and for a missing permission; only the body tells them apart.
#[derive(Debug)]
struct GitHub(Arc<dyn Clock>);

impl BodyRule for GitHub {
    fn wants(&self, _: &HttpCall, head: &response::Parts) -> bool {
        head.status == StatusCode::FORBIDDEN
    }

    fn judge(&self, seen: Judged<'_>) -> Option<Answer> {
        let document: Value = serde_json::from_slice(seen.body).ok()?;
        let page = document.get("documentation_url")?.as_str()?;
        if !page.contains("rate-limit") {
            return None;
        }
        let asked = RetryAfter::from_headers(&seen.head.headers, self.0.now());
        // Its guide: without a hint, wait for at least a minute.
        Some(limited(asked.or(Some(custom(Duration::from_secs(60))))))
    }
}

fn github() -> HttpClassifier {
    HttpClassifier::builder()
        .body_rule(GitHub(clock()))
        .build()
        .unwrap()
}

fn forbidden(headers: &[(&str, &str)], page: &str) -> Outcome {
    let body = format!(r#"{{"documentation_url":"https://docs.test/rest/{page}"}}"#);
    outcome(&github(), &post(), answer(403, headers, &body))
}

#[test]
fn two_bodies_of_a_403_are_a_limit_and_a_missing_permission() {
    let missing = forbidden(&[], "issues/create");
    assert_eq!(missing, permanent(Reason::Rejected));
    let hinted = forbidden(&[("retry-after", "90")], "secondary-rate-limits");
    let expected = retryable_after(Reason::RateLimited, 90, HintForm::Seconds);
    assert_eq!(hinted, expected);
}

#[test]
fn a_limit_without_a_hint_waits_for_the_time_that_the_guide_names() {
    let unhinted = forbidden(&[], "secondary-rate-limits");
    let expected = retryable_after(Reason::RateLimited, 60, HintForm::Custom);
    assert_eq!(unhinted, expected);
}

#[test]
fn the_body_of_a_success_is_not_held_up_for_a_rule_about_403() {
    let classifier = github();
    let call = classifier.call(&post());
    let head = head(200);
    let verdict = classifier.response(&call, Attempt::FIRST, &head);
    assert!(matches!(verdict, Verdict::Decided(_)));
}
