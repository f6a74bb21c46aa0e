//! Templates: what they refuse, what they hide, and the way back.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::Request;
use tower_outcome_sign::{
    Key, Nonce, Part, Secret, Sign, SignErrorKind, Template, TextEncoding, Token, Unit, Verifier,
    VerifyError,
};

use crate::support::{at_ms, fresh_ms, header, ms, request, secs, sign};

const SEED: &str = "xQnTJVeQLmw1/Mg2YimEViSpw/SdJcgNXZ5kQkAXNPU=";
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n-----END PRIVATE KEY-----\n";

fn verifier(template: &Template) -> Verifier {
    Verifier::new(template.clone())
}

fn hidden(what: &str, shown: &str) {
    for secret in ["hunter2", "passphrase-7", "key-id-5", "aHVudGVyMg"] {
        assert!(!shown.contains(secret), "{what} shows a secret: {shown}");
    }
}

#[test]
fn secrets_are_in_no_debug_output() {
    let okx = Template::okx("key-id-5", "hunter2", "passphrase-7").unwrap();
    hidden("template", &format!("{okx:#?}"));
    hidden("verifier", &format!("{:#?}", Verifier::new(okx.clone())));
    hidden("secret", &format!("{:?}", Secret::new("hunter2")));
    let key = Key::hmac_sha256(Secret::new("hunter2")).unwrap();
    hidden("key", &format!("{key:?}"));
    let builder = Template::builder(key)
        .key_id("key-id-5")
        .header("x", [Part::Secret(Secret::new("passphrase-7"))]);
    hidden("builder", &format!("{builder:#?}"));
    let signed = sign(&okx, request("POST", "/a", "{}"), &fresh_ms(0)).unwrap();
    hidden("request", &format!("{signed:?}"));
    assert!(signed.headers()["ok-access-passphrase"].is_sensitive());
    assert!(signed.headers()["ok-access-sign"].is_sensitive());
    assert!(signed.headers()["ok-access-key"].is_sensitive());
    assert!(!signed.headers()["ok-access-timestamp"].is_sensitive());
}

#[test]
fn bad_keys_are_refused_without_being_shown() {
    let escaped = PEM.replace('\n', "\\n");
    let errors = [
        Template::binance("key", "").unwrap_err(),
        Template::kraken("key", "hunter2!").unwrap_err(),
        Template::kraken("key", "").unwrap_err(),
        Template::robinhood("key", "aHVudGVyMg==").unwrap_err(),
        Template::robinhood("key", "hunter2").unwrap_err(),
        Template::binance_ed25519("key", "hunter2").unwrap_err(),
        Template::binance_ed25519("key", &escaped).unwrap_err(),
        Key::ed25519_public(b"hunter2").unwrap_err(),
        Secret::hex("hunter2").unwrap_err(),
        Secret::hex("abc").unwrap_err(),
        Secret::hex("").unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.field(), "secret");
        hidden("error", &format!("{error} {error:?}"));
        assert!(!error.to_string().contains("MC4C"), "{error}");
    }
    let error = Template::binance_ed25519("key", &escaped).unwrap_err();
    assert!(error.to_string().contains("backslash"), "{error}");
    assert!(Template::binance_ed25519("key", PEM).is_ok());
}

#[test]
fn a_pair_of_halves_that_do_not_belong_together_is_no_key() {
    let seed = Secret::base64(SEED).unwrap();
    let public = Secret::base64("jPItx4TLjcnSUnmnXQQyAKL4eJj3+oWNNMmmm2vATqk=").unwrap();
    let pair = [seed.expose(), public.expose()].concat();
    assert!(Key::ed25519(&Secret::new(pair.clone())).is_ok());
    let mut wrong = pair;
    wrong[40] ^= 1;
    assert!(Key::ed25519(&Secret::new(wrong)).is_err());
}

#[test]
fn a_description_that_cannot_work_is_refused() {
    let builder = || Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap());
    let body = || [Part::Body];
    let signature = || [Part::Signature];
    for (field, template) in [
        ("sign", builder().header("x", signature())),
        ("signature", builder().sign(body())),
        (
            "signature",
            builder().sign(body()).body_field("s", signature()),
        ),
        ("sign", builder().sign(signature()).header("x", signature())),
        (
            "header",
            builder().sign(body()).header("no name", signature()),
        ),
        (
            "window",
            builder()
                .sign([Part::WindowMillis])
                .header("x", signature()),
        ),
        (
            "window",
            builder()
                .sign(body())
                .header("x", signature())
                .window(secs(0)),
        ),
    ] {
        assert_eq!(template.build().unwrap_err().field(), field);
    }
    let kraken = Template::kraken("key", SEED).unwrap();
    assert_eq!(kraken.with_window(secs(1)).unwrap_err().field(), "window");
}

#[test]
fn what_the_request_lacks_is_named() {
    let template = |part: Part| {
        Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
            .sign([part])
            .header("x-sign", [Part::Signature])
            .build()
            .unwrap()
    };
    let id = Part::Header("x-id".parse().unwrap());
    for (part, missing) in [
        (id, "one header x-id"),
        (Part::Nonce, "nonce"),
        (Part::TokenUuid, "token"),
        (Part::Host, "host"),
        (Part::Url, "scheme"),
        (Part::ContentTypeOfBody, "one header content-type"),
    ] {
        let error = sign(&template(part), request("POST", "/a", "b"), &fresh_ms(0)).unwrap_err();
        let kind = SignErrorKind::Missing {
            part: missing.into(),
        };
        assert_eq!(*error.kind(), kind);
        assert!(error.source().is_none());
    }
}

#[test]
fn what_the_caller_has_set_is_not_replaced() {
    let template = Template::binance("key", "secret").unwrap();
    let uri = "/api?symbol=A&timestamp=1";
    let error = sign(&template, request("GET", uri, ""), &fresh_ms(5)).unwrap_err();
    assert_eq!(
        *error.kind(),
        SignErrorKind::Conflict {
            name: "timestamp".into()
        }
    );
    let mut twice = request("GET", "/api", "");
    twice
        .headers_mut()
        .insert("x-mbx-apikey", "mine".parse().unwrap());
    let error = sign(&template, twice, &fresh_ms(5)).unwrap_err();
    assert_eq!(
        *error.kind(),
        SignErrorKind::Conflict {
            name: "x-mbx-apikey".into()
        }
    );
    let kraken = Template::kraken("key", SEED).unwrap();
    let fresh = fresh_ms(5).with_nonce(Nonce::new(5));
    for body in ["nonce=1&a=b", "a=b&nonce=1"] {
        let error = sign(&kraken, request("POST", "/a", body), &fresh).unwrap_err();
        assert_eq!(
            *error.kind(),
            SignErrorKind::Conflict {
                name: "nonce".into()
            }
        );
    }
}

#[test]
fn a_value_that_is_no_header_is_refused_without_being_shown() {
    let template = Template::okx("key", "secret", "two\nlines").unwrap();
    let error = sign(&template, request("GET", "/a", ""), &fresh_ms(0)).unwrap_err();
    let kind = SignErrorKind::Encoding {
        name: "ok-access-passphrase".into(),
    };
    assert_eq!(*error.kind(), kind);
    assert!(!format!("{error} {error:?}").contains("lines"));
}

#[test]
fn a_base64_signature_is_escaped_in_a_query() {
    let template = Template::binance_ed25519("key", PEM).unwrap();
    let mut escaped = false;
    for time in 0..50 {
        let signed = sign(&template, request("GET", "/api?a=b", ""), &fresh_ms(time)).unwrap();
        let signature = signed
            .uri()
            .query()
            .unwrap()
            .split_once("signature=")
            .unwrap()
            .1;
        assert!(!signature.contains(['+', '/', '=']), "{signature}");
        escaped |= signature.contains("%2B") && signature.contains("%2F");
        let verifier = Verifier::new(template.clone());
        verifier.verify(&signed, at_ms(time)).unwrap();
    }
    assert!(escaped);
}

#[test]
fn a_nonce_goes_into_a_json_body_too() {
    let template = Template::kraken("key", SEED).unwrap();
    let fresh = fresh_ms(0).with_nonce(Nonce::new(17));
    for (body, expected) in [
        ("{}", r#"{"nonce":"17"}"#),
        (r#" {"a":1}"#, r#"{"nonce":"17","a":1}"#),
    ] {
        let mut request = request("POST", "/0/private/Balance", body);
        let json = "application/json; charset=utf-8".parse().unwrap();
        request.headers_mut().insert("content-type", json);
        request
            .headers_mut()
            .insert("content-length", "99".parse().unwrap());
        let signed = sign(&template, request, &fresh).unwrap();
        assert_eq!(signed.body(), expected.as_bytes());
        assert_eq!(
            header(&signed, "content-length"),
            expected.len().to_string()
        );
        let verified = Verifier::new(template.clone())
            .verify(&signed, at_ms(0))
            .unwrap();
        assert_eq!(verified.nonce(), Some(Nonce::new(17)));
    }
    let mut list = request("POST", "/a", "[]");
    list.headers_mut()
        .insert("content-type", "application/json".parse().unwrap());
    assert!(sign(&template, list, &fresh).is_err());
}

#[test]
fn a_body_that_has_no_fields_gets_no_nonce() {
    let template = Template::kraken("key", SEED).unwrap();
    let fresh = fresh_ms(0).with_nonce(Nonce::new(7));
    let put = |content_type: &str, body: &str| {
        let mut request = request("POST", "/a", body.to_owned());
        if !content_type.is_empty() {
            let value = content_type.parse().unwrap();
            request.headers_mut().insert("content-type", value);
        }
        sign(&template, request, &fresh).map(|signed| signed.into_body())
    };
    let form = "application/x-www-form-urlencoded";
    for (content_type, body) in [
        ("text/plain", "a=b"),
        ("text/plain", ""),
        ("multipart/form-data; boundary=x", "--x--"),
        ("application/vnd.api+json", "{}"),
        ("application/json-seq", "{}"),
        ("application/json", "{"),
        ("application/json", ""),
        ("application/json", "{} {}"),
        ("", "{\"a\":1}"),
        ("", "[1]"),
    ] {
        let error = put(content_type, body).unwrap_err();
        let kind = SignErrorKind::Missing {
            part: "form or JSON object in its body".into(),
        };
        assert_eq!(*error.kind(), kind, "{content_type} {body}");
    }
    for (content_type, body) in [
        ("application/json", r#"{"no\u006ece":5}"#),
        ("application/json", r#"{"a":1,"nonce":5}"#),
        (form, "n%6Fnce=5"),
        (form, "a=b&nonce"),
    ] {
        let error = put(content_type, body).unwrap_err();
        let kind = SignErrorKind::Conflict {
            name: "nonce".into(),
        };
        assert_eq!(*error.kind(), kind, "{content_type} {body}");
    }
    // One that is deeper belongs to the caller.
    let nested = put("Application/JSON;charset=utf-8", r#"{"a":{"nonce":5}}"#).unwrap();
    assert_eq!(nested, r#"{"nonce":"7","a":{"nonce":5}}"#);
    assert_eq!(put(form, "a=%22nonce%22").unwrap(), "nonce=7&a=%22nonce%22");
}

#[test]
fn a_nonce_is_found_wherever_the_sender_has_put_it() {
    let kraken = Template::kraken("key", SEED).unwrap();
    // What signs without putting anything into the body.
    let hash = Part::Hash(
        tower_outcome_sign::HashAlgorithm::Sha256,
        vec![Part::literal("17"), Part::Body],
    );
    let key = Key::hmac_sha512(Secret::base64(SEED).unwrap()).unwrap();
    let sender = Template::builder(key)
        .key_id("key")
        .sign([Part::Path, hash])
        .signature_as(TextEncoding::Base64)
        .header("api-key", [Part::KeyId])
        .header("api-sign", [Part::Signature])
        .build()
        .unwrap();
    let verified = |content_type: &str, body: &str| {
        let mut request = request("POST", "/a", body.to_owned());
        let value = content_type.parse().unwrap();
        request.headers_mut().insert("content-type", value);
        let signed = sign(&sender, request, &fresh_ms(0)).unwrap();
        let verified = verifier(&kraken).verify(&signed, at_ms(0));
        verified.map(|verified| verified.nonce().unwrap().get())
    };
    let (json, form) = ("application/json", "application/x-www-form-urlencoded");
    for (content_type, body) in [
        (json, r#"{"nonce":17}"#),
        (json, r#"{"pair":"A","nonce": "17"}"#),
        (json, r#"{"a":{"nonce":3},"no\u006ece":17,"b":[]}"#),
        (form, "pair=A&nonce=17"),
    ] {
        assert_eq!(verified(content_type, body), Ok(17), "{body}");
    }
    for (content_type, body, error) in [
        (json, r#"{"nonce":17,"nonce":18}"#, VerifyError::Malformed),
        (json, r#"{"nonce":17"#, VerifyError::Malformed),
        (json, r#"{"nonce":1.7}"#, VerifyError::Malformed),
        (json, r#"{"a":17}"#, VerifyError::Missing),
        (form, "nonce=17&nonce=18", VerifyError::Malformed),
        (form, "nonce=17&n%6fnce=18", VerifyError::Malformed),
        ("text/plain", "nonce=17", VerifyError::Missing),
    ] {
        assert_eq!(verified(content_type, body), Err(error), "{body}");
    }
}

#[test]
fn what_is_put_into_the_query_must_not_be_in_the_form_that_is_signed_with_it() {
    let binance = Template::binance("k", "s").unwrap();
    for body in ["timestamp=1", "a=b&signature=2", "a=b&%73ignature=2"] {
        let order = request("POST", "/a", body);
        let error = sign(&binance, order, &fresh_ms(0)).unwrap_err();
        assert!(
            matches!(error.kind(), SignErrorKind::Conflict { .. }),
            "{error}"
        );
        let mut sent = sign(&binance, request("POST", "/a", "a=b"), &fresh_ms(0)).unwrap();
        *sent.body_mut() = body.into();
        let verified = verifier(&binance).verify(&sent, at_ms(0));
        assert_eq!(verified, Err(VerifyError::Malformed));
    }
    // A body that is no form has no fields.
    let mut order = request("POST", "/a", "timestamp=1");
    let plain = "text/plain".parse().unwrap();
    order.headers_mut().insert("content-type", plain);
    sign(&binance, order, &fresh_ms(0)).unwrap();
}

#[test]
fn an_empty_body_becomes_a_form_with_the_nonce() {
    let template = Template::kraken("key", SEED).unwrap();
    let fresh = fresh_ms(0).with_nonce(Nonce::new(17));
    let signed = sign(&template, request("POST", "/a", ""), &fresh).unwrap();
    assert_eq!(&signed.body()[..], b"nonce=17");
    assert_eq!(
        header(&signed, "content-type"),
        "application/x-www-form-urlencoded"
    );
}

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
    let mut draft = tower_outcome_sign::Draft::new(request("GET", "/a", ""));
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
        let mut draft = tower_outcome_sign::Draft::new(request("GET", uri, ""));
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
    let mut draft = tower_outcome_sign::Draft::new(request("GET", "/a", ""));
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
fn the_host_is_that_of_the_header_or_the_target_without_an_implied_port() {
    let template = Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
        .sign([Part::Host])
        .header("x-sign", [Part::Signature])
        .build()
        .unwrap();
    let signature = |request: Request<Bytes>| {
        header(&sign(&template, request, &fresh_ms(0)).unwrap(), "x-sign").to_owned()
    };
    let expected = signature(request("GET", "https://venue.test/", ""));
    assert_eq!(
        signature(request("GET", "https://venue.test:443/", "")),
        expected
    );
    let mut received = request("GET", "/", "");
    received
        .headers_mut()
        .insert("host", "venue.test".parse().unwrap());
    assert_eq!(signature(received), expected);
    assert_ne!(
        signature(request("GET", "https://venue.test:8443/", "")),
        expected
    );
}

#[test]
fn a_verifier_tells_old_from_early_and_wrong() {
    let template = Template::bybit("key", "secret").unwrap();
    let signed = sign(
        &template,
        request("POST", "/a?b=c", "{}"),
        &fresh_ms(100_000),
    )
    .unwrap();
    let verifier = Verifier::new(template);
    for (now, expected) in [
        (99_000, Ok(())),
        (98_999, Err(VerifyError::TooEarly)),
        (105_000, Ok(())),
        (105_001, Err(VerifyError::TooOld)),
    ] {
        let verified = verifier.verify(&signed, at_ms(now)).map(|_| ());
        assert_eq!(verified, expected, "{now}");
    }
    let verify = |request| verifier.verify(&request, at_ms(100_000)).unwrap_err();
    let changed = |name: &'static str, value: &str| {
        let mut request = signed.clone();
        request.headers_mut().insert(name, value.parse().unwrap());
        verify(request)
    };
    assert_eq!(changed("x-bapi-timestamp", "100001"), VerifyError::Mismatch);
    assert_eq!(
        changed("x-bapi-timestamp", "0100000"),
        VerifyError::Malformed
    );
    assert_eq!(changed("x-bapi-timestamp", "soon"), VerifyError::Malformed);
    assert_eq!(changed("x-bapi-api-key", "other"), VerifyError::Mismatch);
    assert_eq!(changed("x-bapi-sign", "zz"), VerifyError::Malformed);
    assert_eq!(changed("x-bapi-sign", ""), VerifyError::Mismatch);
    let mut lacking = signed.clone();
    lacking.headers_mut().remove("x-bapi-sign");
    assert_eq!(verify(lacking), VerifyError::Missing);
    let mut twice = signed.clone();
    twice
        .headers_mut()
        .append("x-bapi-sign", "00".parse().unwrap());
    assert_eq!(verify(twice), VerifyError::Malformed);
    let mut elsewhere = signed.clone();
    *elsewhere.uri_mut() = "/a?b=d".parse().unwrap();
    assert_eq!(verify(elsewhere), VerifyError::Mismatch);
}

#[test]
fn a_sender_who_changes_keys_sends_two_signatures() {
    let old = Template::stripe_webhook("old").unwrap();
    let new = Template::stripe_webhook("new").unwrap();
    let body = || request("POST", "/hook", "{}");
    let by = |template: &Template| {
        header(
            &sign(template, body(), &fresh_ms(5000)).unwrap(),
            "stripe-signature",
        )
        .to_owned()
    };
    let second = by(&new).split_once(",v1=").unwrap().1.to_owned();
    let both = format!("{},v1={second},v0=legacy", by(&old));
    let mut hook = body();
    hook.headers_mut()
        .insert("stripe-signature", both.parse().unwrap());
    for template in [old, new] {
        Verifier::new(template).verify(&hook, at_ms(5000)).unwrap();
    }
    let other = Verifier::new(Template::stripe_webhook("other").unwrap());
    assert_eq!(other.verify(&hook, at_ms(5000)), Err(VerifyError::Mismatch));
    for (text, error) in [
        ("t=5", VerifyError::Missing),
        ("v1=00", VerifyError::Missing),
        ("t=5,t=5,v1=00", VerifyError::Malformed),
        ("nonsense", VerifyError::Malformed),
        ("", VerifyError::Malformed),
    ] {
        hook.headers_mut()
            .insert("stripe-signature", text.parse().unwrap());
        assert_eq!(other.verify(&hook, at_ms(5000)), Err(error), "{text}");
    }
}

#[test]
fn a_public_key_verifies_and_does_not_sign() {
    let signer = Template::robinhood("key", SEED).unwrap();
    let signed = sign(&signer, request("POST", "/a", "{}"), &fresh_ms(7000)).unwrap();
    let public = Secret::base64("jPItx4TLjcnSUnmnXQQyAKL4eJj3+oWNNMmmm2vATqk=").unwrap();
    let public = Template::builder(Key::ed25519_public(public.expose()).unwrap())
        .key_id("key")
        .sign([
            Part::KeyId,
            Part::Timestamp(Unit::Seconds),
            Part::PathAndQuery,
            Part::Method,
            Part::Body,
        ])
        .signature_as(TextEncoding::Base64)
        .header("x-api-key", [Part::KeyId])
        .header("x-timestamp", [Part::Timestamp(Unit::Seconds)])
        .header("x-signature", [Part::Signature])
        .window(secs(30))
        .build()
        .unwrap();
    let verified = Verifier::new(public.clone())
        .verify(&signed, at_ms(7000))
        .unwrap();
    assert_eq!(verified.time().unwrap().as_secs(), 7);
    assert!(sign(&public, request("POST", "/a", "{}"), &fresh_ms(7000)).is_err());
}

#[test]
fn what_is_signed_must_be_there_once() {
    let bitstamp = Template::bitstamp("k", "s").unwrap();
    let fresh = fresh_ms(0).with_token(Token::random(1));
    let mut order = request("POST", "https://a.test/b", "x");
    for (name, value) in [("content-type", "text/plain"), ("host", "a.test")] {
        order.headers_mut().insert(name, value.parse().unwrap());
    }
    let signed = sign(&bitstamp, order.clone(), &fresh).unwrap();
    for name in ["content-type", "host"] {
        let mut twice = signed.clone();
        let second = "other".parse().unwrap();
        twice.headers_mut().append(name, second);
        let verified = verifier(&bitstamp).verify(&twice, at_ms(0));
        assert_eq!(verified, Err(VerifyError::Missing));
        let mut twice = order.clone();
        let second = "other".parse().unwrap();
        twice.headers_mut().append(name, second);
        assert!(sign(&bitstamp, twice, &fresh).is_err());
    }
    let binance = Template::binance("k", "s").unwrap();
    let signed = sign(&binance, request("GET", "/a?b=c", ""), &fresh).unwrap();
    let uri = signed.uri().to_string();
    let (rest, signature) = uri.rsplit_once("&signature=").unwrap();
    for wrong in [
        format!("{uri}&signature=anything"),
        format!("{uri}&signature={signature}"),
        format!("{uri}&%73ignature=anything"),
        format!("{uri}&signature"),
        format!("{rest}&signature=00&signature={signature}"),
    ] {
        let mut twice = signed.clone();
        *twice.uri_mut() = wrong.parse().unwrap();
        let verified = verifier(&binance).verify(&twice, at_ms(0));
        assert_eq!(verified, Err(VerifyError::Malformed), "{wrong}");
    }
}

#[test]
fn a_passphrase_is_verified_too() {
    let signer = |pass| Template::okx("key", "secret", pass).unwrap();
    let signed = sign(&signer("right"), request("GET", "/a", ""), &fresh_ms(0)).unwrap();
    assert!(
        Verifier::new(signer("right"))
            .verify(&signed, at_ms(0))
            .is_ok()
    );
    let verified = Verifier::new(signer("wrong")).verify(&signed, at_ms(0));
    assert_eq!(verified, Err(VerifyError::Mismatch));
}

#[test]
fn tokens_are_uuids_or_digits() {
    let token = Token::random(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    assert_eq!(token.to_uuid(), "01234567-89ab-4def-8123-456789abcdef");
    assert_eq!(token.to_hex(), "0123456789abcdef0123456789abcdef");
    assert_eq!(Token::text("x").to_uuid(), "x");
}
