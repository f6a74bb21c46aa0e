//! For how long what a template signs is valid.

use std::time::Duration;

use tower_outcome_sign::{Draft, Key, Part, Secret, Sign, Template, Token, Unit};

use super::SEED;
use crate::support::{fresh_ms, header, ms, request, secs, sign};

#[test]
fn the_window_is_no_longer_than_the_caller_waits() {
    let template = Template::bybit("key", "secret").unwrap();
    let signed = |left| {
        let fresh = fresh_ms(0).with_time_left(left);
        let signed = sign(&template, request("GET", "/a", ""), &fresh).unwrap();
        header(&signed, "x-bapi-recv-window").to_owned()
    };
    assert_eq!(signed(secs(60)), "5000");
    assert_eq!(signed(ms(1200)), "1200");
    assert_eq!(signed(ms(0)), "1");
    let mut draft = Draft::new(request("GET", "/a", ""));
    let fresh = fresh_ms(1000).with_time_left(ms(1200));
    let validity = template.sign(&mut draft, &fresh).unwrap();
    assert_eq!(validity.end().unwrap().as_millis(), 2200);
}

#[test]
fn a_deadline_is_the_end_of_a_signature_only_where_the_server_is_told() {
    let key = || Key::hmac_sha256(Secret::new("k")).unwrap();
    let told = |part: Part| {
        Template::builder(key())
            .sign([Part::Timestamp(Unit::Millis), part.clone()])
            .header("x-time", [Part::Timestamp(Unit::Millis)])
            .header("x-end", [part])
            .header("x-sign", [Part::Signature])
            .window(secs(30))
            .build()
            .unwrap()
    };
    let end = |template: Template, left| {
        let fresh = fresh_ms(1_999).with_time_left(left);
        let uri = "https://venue.test/a";
        let mut draft = Draft::new(request("GET", uri, ""));
        let validity = template.sign(&mut draft, &fresh.with_token(Token::random(1)));
        validity.unwrap().end().unwrap().since_epoch()
    };
    for silent in [
        Template::okx("k", "s", "p").unwrap(),
        Template::deribit("k", "s").unwrap(),
        Template::bitstamp("k", "s").unwrap(),
        Template::coinbase_exchange("k", SEED, "p").unwrap(),
        Template::robinhood("k", SEED).unwrap(),
        Template::slack_webhook("s").unwrap(),
    ] {
        let long = end(silent.clone(), secs(300));
        assert!(long > secs(30), "{long:?}");
        assert_eq!(end(silent, secs(2)), long);
    }
    assert_eq!(end(told(Part::WindowMillis), secs(2)), ms(3_999));
    assert_eq!(end(told(Part::Expires(Unit::Millis)), secs(2)), ms(3_999));
    // What is told is rounded up, and what was told is the end.
    assert_eq!(end(told(Part::Expires(Unit::Seconds)), secs(2)), secs(4));
    let micros = Duration::from_micros(1_500);
    assert_eq!(end(told(Part::WindowMillis), micros), ms(2_001));
    assert_eq!(end(Template::bitmex("k", "s").unwrap(), ms(2)), secs(3));
}

#[test]
fn validity_counts_from_the_second_that_was_written() {
    let template = Template::coinbase_exchange("k", SEED, "p").unwrap();
    let mut draft = Draft::new(request("GET", "/a", ""));
    let validity = template.sign(&mut draft, &fresh_ms(1_999)).unwrap();
    assert_eq!(validity.end().unwrap().as_millis(), 31_000);
}

#[test]
fn an_end_that_is_told_is_not_over_before_its_time() {
    let template = Template::bitmex("k", "s").unwrap();
    let fresh = fresh_ms(1_999).with_time_left(ms(100));
    let signed = sign(&template, request("GET", "/a", ""), &fresh).unwrap();
    assert_eq!(header(&signed, "api-expires"), "3");
}

#[test]
fn a_time_that_its_unit_cannot_hold_is_refused() {
    let template = Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
        .sign([Part::Timestamp(Unit::Nanos)])
        .header("x-time", [Part::Timestamp(Unit::Nanos)])
        .header("x-sign", [Part::Signature])
        .build()
        .unwrap();
    // The year 2554 is the last that has a number.
    assert!(
        sign(
            &template,
            request("GET", "/", ""),
            &fresh_ms(18_446_744_073_000)
        )
        .is_ok()
    );
    let error = sign(
        &template,
        request("GET", "/", ""),
        &fresh_ms(18_446_744_074_000),
    )
    .unwrap_err();
    assert_eq!(
        *error.kind(),
        tower_outcome_sign::SignErrorKind::TimeOutOfRange
    );
    // After the last time nothing ends.
    let bitmex = Template::bitmex("k", "s").unwrap();
    let last = fresh_ms(253_402_300_799_000);
    let error = sign(&bitmex, request("GET", "/", ""), &last).unwrap_err();
    assert_eq!(
        *error.kind(),
        tower_outcome_sign::SignErrorKind::TimeOutOfRange
    );
}
