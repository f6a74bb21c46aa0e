//! The way back: what was received is verified.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use tower_outcome_sign::{
    Key, Part, Secret, Template, TextEncoding, Token, Unit, Verifier, VerifyError,
};

use super::{PUBLIC, SEED, verifier};
use crate::support::{at_ms, fresh_ms, header, ms, request, secs, sign};

#[test]
fn a_verifier_tells_old_from_early_and_wrong() {
    let template = Template::bybit("key", "secret").unwrap();
    let signed = sign(
        &template,
        request("POST", "/a?b=c", "{}"),
        &fresh_ms(100_000),
    )
    .unwrap();
    let verifier = Verifier::new(template).unwrap();
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
    assert_eq!(changed("x-bapi-api-key", "other"), VerifyError::UnknownKey);
    assert_eq!(changed("x-bapi-api-key", "keys"), VerifyError::UnknownKey);
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
        Verifier::new(template)
            .unwrap()
            .verify(&hook, at_ms(5000))
            .unwrap();
    }
    let other = Verifier::new(Template::stripe_webhook("other").unwrap()).unwrap();
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
    let public = Template::robinhood_public("key", PUBLIC).unwrap();
    let verified = Verifier::new(public.clone())
        .unwrap()
        .verify(&signed, at_ms(7000))
        .unwrap();
    assert_eq!(verified.time().unwrap().as_secs(), 7);
    assert!(sign(&public, request("POST", "/a", "{}"), &fresh_ms(7000)).is_err());
    for wrong in [PUBLIC, "AAAA"] {
        assert!(Template::binance_ed25519_public("key", wrong).is_err());
    }
    assert!(Template::robinhood_public("", PUBLIC).is_err());
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
            .unwrap()
            .verify(&signed, at_ms(0))
            .is_ok()
    );
    let verified = Verifier::new(signer("wrong"))
        .unwrap()
        .verify(&signed, at_ms(0));
    assert_eq!(verified, Err(VerifyError::Mismatch));
}

/// What a vendor signs, of a key that is known.
fn hmac_of(secret: Secret, encoding: TextEncoding, message: &str) -> String {
    let template = Template::builder(Key::hmac_sha256(secret).unwrap())
        .sign([Part::Body])
        .signature_as(encoding)
        .header("x", [Part::Signature])
        .build()
        .unwrap();
    let signed = sign(
        &template,
        request("POST", "/", message.to_owned()),
        &fresh_ms(0),
    )
    .unwrap();
    header(&signed, "x").to_owned()
}

fn with_headers(mut request: Request<Bytes>, headers: &[(&'static str, &str)]) -> Request<Bytes> {
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    request
}

#[test]
fn a_window_that_is_signed_is_an_upper_bound() {
    // The sender has set 100 ms, the gateway allows more.
    let window = |window| {
        Template::binance("k", "s")
            .unwrap()
            .with_window(window)
            .unwrap()
    };
    let signed =
        |template: &Template| sign(template, request("GET", "/a", ""), &fresh_ms(100_000)).unwrap();
    let short = signed(&window(ms(100)));
    let verifier = verifier(&window(secs(5)));
    verifier.verify(&short, at_ms(100_100)).unwrap();
    let old = Err(VerifyError::TooOld);
    assert_eq!(verifier.verify(&short, at_ms(100_101)), old);
    // And one that has set a minute is not held to five seconds.
    let long = signed(&window(secs(60)));
    verifier.verify(&long, at_ms(110_000)).unwrap();
    assert_eq!(verifier.verify(&long, at_ms(160_001)), old);
    let strict = verifier.tolerance(secs(10));
    assert_eq!(strict.verify(&long, at_ms(110_001)), old);
    // Whoever asks for years gets what is usual.
    let years = signed(&window(Duration::from_secs(100_000_000)));
    let usual = super::verifier(&window(secs(5)));
    usual.verify(&years, at_ms(400_000)).unwrap();
    assert_eq!(usual.verify(&years, at_ms(400_001)), old);
}

#[test]
fn an_end_that_is_signed_is_the_end() {
    let of = |window| {
        Template::bitmex("k", "s")
            .unwrap()
            .with_window(window)
            .unwrap()
    };
    let signed = |window| {
        let order = request("GET", "/a", "");
        sign(&of(window), order, &fresh_ms(100_000)).unwrap()
    };
    let verifier = verifier(&of(secs(10))).tolerance(secs(300));
    let (old, early) = (Err(VerifyError::TooOld), Err(VerifyError::TooEarly));
    let short = signed(secs(10));
    let end = verifier.verify(&short, at_ms(110_000)).unwrap().expires();
    assert_eq!(end.unwrap().as_secs(), 110);
    assert_eq!(verifier.verify(&short, at_ms(110_001)), old);
    assert_eq!(verifier.verify(&short, at_ms(290_000)), old);
    // Its sender takes a minute.
    let long = signed(secs(60));
    verifier.verify(&long, at_ms(100_000)).unwrap();
    verifier.verify(&long, at_ms(160_000)).unwrap();
    assert_eq!(verifier.verify(&long, at_ms(160_001)), old);
    let far = signed(secs(400));
    assert_eq!(verifier.verify(&far, at_ms(100_000)), early);
}

#[test]
fn a_window_that_is_not_told_is_the_usual_one() {
    let sender = Template::builder(Key::hmac_sha256(Secret::new("s")).unwrap())
        .key_id("k")
        .sign([Part::Query, Part::Body])
        .header("x-mbx-apikey", [Part::KeyId])
        .query("timestamp", [Part::Timestamp(Unit::Millis)])
        .query("signature", [Part::Signature])
        .build()
        .unwrap();
    let signed = sign(&sender, request("GET", "/a?b=c", ""), &fresh_ms(100_000)).unwrap();
    let binance = verifier(&Template::binance("k", "s").unwrap());
    binance.verify(&signed, at_ms(105_000)).unwrap();
    assert_eq!(
        binance.verify(&signed, at_ms(105_001)),
        Err(VerifyError::TooOld)
    );
    // Where it is signed by itself, it has to be there.
    let bybit = Template::bybit("k", "s").unwrap();
    let mut signed = sign(&bybit, request("GET", "/a", ""), &fresh_ms(0)).unwrap();
    signed.headers_mut().remove("x-bapi-recv-window");
    let verified = verifier(&bybit).verify(&signed, at_ms(0));
    assert_eq!(verified, Err(VerifyError::Missing));
}

#[test]
fn standard_webhooks_may_be_signed_in_other_versions_too() {
    let secret = || Secret::base64(SEED).unwrap();
    let webhook = verifier(&Template::standard_webhook(&format!("whsec_{SEED}")).unwrap());
    let verified = |id: &str, signatures: &str| {
        let right = hmac_of(secret(), TextEncoding::Base64, &format!("{id}.5.{{}}"));
        let hook = with_headers(
            request("POST", "/", "{}"),
            &[
                ("webhook-id", id),
                ("webhook-timestamp", "5"),
                ("webhook-signature", &signatures.replace("RIGHT", &right)),
            ],
        );
        webhook.verify(&hook, at_ms(5000)).map(|_| ())
    };
    for signatures in [
        "v1,RIGHT",
        "v1,RIGHT v1a,c2lnbmF0dXJl",
        "v1a,c2lnbmF0dXJl v1,RIGHT",
        "v1,c2lnbmF0dXJl v2,x v1,RIGHT",
        "v1,no-base64 v1,RIGHT",
        "  v1,RIGHT ",
    ] {
        assert_eq!(verified("msg_1", signatures), Ok(()), "{signatures}");
    }
    for id in ["evt.123", "msg:1", "a/b=c"] {
        assert_eq!(verified(id, "v1,RIGHT"), Ok(()), "{id}");
    }
    for (signatures, error) in [
        ("v1a,RIGHT", VerifyError::Missing),
        ("", VerifyError::Missing),
        ("v1,no-base64", VerifyError::Malformed),
        ("v1,c2lnbmF0dXJl", VerifyError::Mismatch),
        ("v1,RIGHTv1,RIGHT", VerifyError::Malformed),
    ] {
        assert_eq!(verified("msg_1", signatures), Err(error), "{signatures}");
    }
    let many = "v1,c2lnbmF0dXJl ".repeat(9);
    assert_eq!(verified("msg_1", &many), Err(VerifyError::Malformed));
}

#[test]
fn a_signature_that_is_none_does_not_spoil_the_right_one() {
    let stripe = verifier(&Template::stripe_webhook("s").unwrap());
    let right = hmac_of(Secret::new("s"), TextEncoding::HexLower, "5.{}");
    for (text, expected) in [
        ("t=5,v1=RIGHT", Ok(())),
        ("t=5,v1=RIGHT,", Ok(())),
        ("t=5,v1=abc,v1=RIGHT", Ok(())),
        ("t=5,v1=RIGHT,v1=zz", Ok(())),
        (" t=5 , v1=RIGHT ,, v0=abc", Ok(())),
        ("t=5,v1=abc", Err(VerifyError::Malformed)),
        ("t=5,v1=", Err(VerifyError::Mismatch)),
        ("t=5", Err(VerifyError::Missing)),
        (",", Err(VerifyError::Missing)),
    ] {
        let text = text.replace("RIGHT", &right);
        let hook = with_headers(request("POST", "/", "{}"), &[("stripe-signature", &text)]);
        let verified = stripe.verify(&hook, at_ms(5000)).map(|_| ());
        assert_eq!(verified, expected, "{text}");
    }
}

#[test]
fn a_receiver_whose_clock_is_slow_takes_webhooks_all_the_same() {
    let signed = |template: &Template| {
        let fresh = fresh_ms(1_000_000).with_token(Token::random(1));
        sign(template, request("POST", "/", "{}"), &fresh).unwrap()
    };
    for template in [
        Template::stripe_webhook("s").unwrap(),
        Template::slack_webhook("s").unwrap(),
        Template::standard_webhook(SEED).unwrap(),
    ] {
        let hook = signed(&template);
        let verifier = verifier(&template);
        verifier.verify(&hook, at_ms(700_000)).unwrap();
        let early = Err(VerifyError::TooEarly);
        assert_eq!(verifier.verify(&hook, at_ms(699_999)), early);
        let strict = verifier.ahead(secs(1));
        assert_eq!(strict.verify(&hook, at_ms(998_999)), early);
    }
    let order = Template::okx("k", "s", "p").unwrap();
    let early = verifier(&order).verify(&signed(&order), at_ms(998_999));
    assert_eq!(early, Err(VerifyError::TooEarly));
}

#[test]
fn a_url_is_verified_as_it_was_received() {
    let twilio = Template::twilio_webhook("token").unwrap();
    let uri = "https://example.com/hook?a=b";
    let signed = sign(&twilio, request("POST", uri, "A=1"), &fresh_ms(0)).unwrap();
    let signature = header(&signed, "x-twilio-signature");
    // As a server hands it to its handlers.
    let received = |host: &str| {
        let headers = [("host", host), ("x-twilio-signature", signature)];
        with_headers(request("POST", "/hook?a=b", "A=1"), &headers)
    };
    let https = verifier(&twilio);
    https.verify(&received("example.com"), at_ms(0)).unwrap();
    let other = https.verify(&received("example.org"), at_ms(0));
    assert_eq!(other, Err(VerifyError::Mismatch));
    let http = https.scheme(http::uri::Scheme::HTTP);
    let other = http.verify(&received("example.com"), at_ms(0));
    assert_eq!(other, Err(VerifyError::Mismatch));
}

#[test]
fn the_key_is_found_by_its_name() {
    let bybit = |id: &str| Template::bybit(id, &format!("secret of {id}")).unwrap();
    let gateway = Verifier::any_of(["alice", "bob", "bobby"].map(bybit)).unwrap();
    let signed = |id| sign(&bybit(id), request("GET", "/a", ""), &fresh_ms(0)).unwrap();
    for id in ["alice", "bob", "bobby"] {
        let verified = gateway.verify(&signed(id), at_ms(0)).unwrap();
        assert_eq!(verified.key_id(), Some(id));
        assert!(!format!("{verified:?}").contains(id));
    }
    let unknown = Err(VerifyError::UnknownKey);
    assert_eq!(gateway.verify(&signed("mallory"), at_ms(0)), unknown);
    let mut other = signed("alice");
    let name = "bob".parse().unwrap();
    other.headers_mut().insert("x-bapi-api-key", name);
    let mismatch = Err(VerifyError::Mismatch);
    assert_eq!(gateway.verify(&other, at_ms(0)), mismatch);
    other.headers_mut().remove("x-bapi-api-key");
    let missing = Err(VerifyError::Missing);
    assert_eq!(gateway.verify(&other, at_ms(0)), missing);

    // In the middle of a header, and in templates of all kinds.
    let deribit = |id: &str| Template::deribit(id, "s").unwrap();
    let kinds = [
        deribit("a"),
        deribit("ab"),
        bybit("a"),
        Template::bitstamp("a", "s").unwrap(),
    ];
    let gateway = Verifier::any_of(kinds.clone()).unwrap();
    for (template, id) in kinds.iter().zip(["a", "ab", "a", "a"]) {
        let order = request("GET", "https://a.test/", "");
        let fresh = fresh_ms(0).with_token(Token::random(1));
        let signed = sign(template, order, &fresh).unwrap();
        let verified = gateway.verify(&signed, at_ms(0)).unwrap();
        assert_eq!(verified.key_id(), Some(id));
    }

    for wrong in [
        vec![],
        vec![bybit("a"), bybit("a")],
        vec![bybit("a"), Template::stripe_webhook("s").unwrap()],
    ] {
        assert!(Verifier::any_of(wrong).is_err());
    }
}
