//! What is refused: when it is described, when it is signed, when it is to be verified.

use std::error::Error;

use tower_outcome_core::ConfigError;
use tower_outcome_sign::{
    HashAlgorithm, JwtKey, JwtSigner, Key, Nonce, Part, Secret, SignErrorKind, SignLayer, Template,
    TemplateBuilder, Unit, Verifier,
};

use super::{PEM, PUBLIC, SEED, verifier};
use crate::support::{at_ms, fresh_ms, ms, request, secs, sign};

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
                .header("y", [Part::WindowMillis])
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
            .sign([part.clone()])
            .header("x-part", [part])
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
    let error = Template::okx("key", "secret", "two\nlines").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("lines"));
    // What nobody could know before.
    let template = Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
        .sign([Part::Body])
        .header("x-body", [Part::Body])
        .header("x-sign", [Part::Signature])
        .build()
        .unwrap();
    let error = sign(&template, request("GET", "/a", "two\nlines"), &fresh_ms(0)).unwrap_err();
    let kind = SignErrorKind::Encoding {
        name: "x-body".into(),
    };
    assert_eq!(*error.kind(), kind);
    assert!(!format!("{error} {error:?}").contains("lines"));
}

#[test]
fn a_key_that_was_read_with_its_line_end_is_refused_without_being_shown() {
    type Make = fn(&str) -> Result<Template, ConfigError>;

    let named: [Make; 8] = [
        |id| Template::binance(id, "s"),
        |id| Template::bybit(id, "s"),
        |id| Template::okx(id, "s", "p"),
        |id| Template::kraken(id, SEED),
        |id| Template::bitstamp(id, "s"),
        |id| Template::deribit(id, "s"),
        |id| Template::bitmex(id, "s"),
        |id| Template::robinhood(id, SEED),
    ];
    for make in named {
        for id in ["", "hunter2\n", " hunter2", "hun\nter2"] {
            let error = make(id).unwrap_err();
            assert_eq!(error.field(), "key_id");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
    let secret: [Make; 9] = [
        |secret| Template::binance("k", secret),
        |secret| Template::bybit("k", secret),
        |secret| Template::okx("k", secret, "p"),
        |secret| Template::okx("k", "s", secret),
        |secret| Template::kraken_futures("k", secret),
        |secret| Template::coinbase_exchange("k", SEED, secret),
        |secret| Template::github_webhook(secret),
        |secret| Template::stripe_webhook(secret),
        |secret| Template::twilio_webhook(secret),
    ];
    for make in secret {
        for text in ["", "hunter2\n", "hunter2 ", "hunter2\r\n"] {
            let error = make(text).unwrap_err();
            assert_eq!(error.field(), "secret");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
    let token = |id: &str| JwtSigner::coinbase(id, JwtKey::ed25519(SEED).unwrap());
    assert_eq!(token("k\n").unwrap_err().field(), "key_id");
}

#[test]
fn names_and_values_that_cannot_be_written_are_refused() {
    let builder = || {
        Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
            .sign([Part::Body])
            .header("x-sign", [Part::Signature])
    };
    let refused = |builder: TemplateBuilder| builder.build().unwrap_err().field();
    assert_eq!(refused(builder().header("x-key", [Part::KeyId])), "key_id");
    assert_eq!(refused(builder().sign([Part::KeyId])), "key_id");
    assert_eq!(
        refused(builder().header("x", [Part::literal("a\nb")])),
        "literal"
    );
    let secret = |text: &str| [Part::Secret(Secret::new(text))];
    assert_eq!(refused(builder().header("x", secret("a\nb"))), "secret");
    assert_eq!(refused(builder().header("x", secret(""))), "secret");
    assert_eq!(refused(builder().header("X-Sign", ["a".into()])), "header");
    let twice = |name| builder().query("a", ["1".into()]).query(name, ["2".into()]);
    assert_eq!(refused(twice("a")), "query");
    for name in ["", "a b&c=1", "a&c", "a=b", "\u{e4}", "a%20"] {
        assert_eq!(refused(twice(name)), "query");
        assert_eq!(
            refused(builder().body_field(name, ["2".into()])),
            "body_field"
        );
    }
    // A literal that is only signed may be anything.
    assert!(builder().sign([Part::literal("a\nb")]).build().is_ok());
    assert!(twice("a.b-c_d~e").build().is_ok());
}

#[test]
fn what_is_signed_and_told_to_nobody_is_refused() {
    let hash = |part| Part::Hash(HashAlgorithm::Sha256, vec![part]);
    for part in [
        Part::Nonce,
        Part::Timestamp(Unit::Millis),
        Part::TimestampRfc3339,
        Part::Expires(Unit::Seconds),
        Part::WindowMillis,
        Part::TokenHex,
        Part::TokenUuid,
    ] {
        let template = |signed, written| {
            Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
                .sign([signed])
                .header("x-part", [written])
                .header("x-sign", [Part::Signature])
                .window(secs(5))
                .build()
        };
        for signed in [part.clone(), hash(part.clone())] {
            assert!(template(signed.clone(), part.clone()).is_ok());
            let error = template(signed.clone(), Part::Method).unwrap_err();
            assert_eq!(error.field(), "sign");
            // From a hash it cannot be read.
            assert!(template(signed, hash(part.clone())).is_err());
        }
    }
}

#[test]
fn no_layer_signs_with_a_public_key() {
    let public = Template::robinhood_public("k", PUBLIC).unwrap();
    let error = SignLayer::new(public, "https://a.test")
        .map(|_| ())
        .unwrap_err();
    assert_eq!(error.field(), "key");
}

#[test]
fn what_could_not_be_read_back_has_no_verifier() {
    let builder = || {
        Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
            .key_id("7")
            .header("x-sign", [Part::Signature])
            .window(secs(5))
    };
    let (ms, s) = (
        Part::Timestamp(Unit::Millis),
        Part::Timestamp(Unit::Seconds),
    );
    let end = || Part::Expires(Unit::Millis);
    let verifiable = |builder: TemplateBuilder| Verifier::new(builder.build().unwrap()).is_ok();
    let signed = |parts: Vec<Part>| builder().sign(parts);
    let hash = Part::Hash(HashAlgorithm::Sha256, vec![ms.clone()]);
    for wrong in [
        // Which digits are whose?
        signed(vec![ms.clone(), Part::Nonce]).header("x", [ms.clone(), Part::Nonce]),
        signed(vec![ms.clone()]).header("x", [ms.clone(), Part::literal("0")]),
        signed(vec![ms.clone()]).header("x", [ms.clone(), Part::KeyId]),
        signed(vec![Part::TokenHex]).header("x", [Part::TokenHex, Part::Method]),
        // Of two units, only one would be the time.
        signed(vec![ms.clone()])
            .header("x", [ms.clone()])
            .header("y", [s.clone()]),
        signed(vec![ms.clone()])
            .header("x", [Part::TimestampRfc3339])
            .header("y", [s.clone()]),
        // The rest of the second is gone.
        signed(vec![ms.clone()]).header("x", [s.clone()]),
        // Anybody could write another.
        signed(vec![Part::Body]).header("x", [ms.clone()]),
        signed(vec![Part::Body]).query("x", [Part::Nonce]),
        signed(vec![ms.clone(), Part::Body])
            .header("x", [ms.clone()])
            .header("y", [Part::WindowMillis]),
        signed(vec![ms.clone()])
            .header("x", [ms.clone()])
            .header("y", [hash]),
        // One of the two would do.
        signed(vec![Part::Body]).header("x", [Part::Signature]),
    ] {
        assert!(!verifiable(wrong));
    }
    for right in [
        signed(vec![ms.clone(), Part::Nonce]).header("x", [ms.clone(), ".".into(), Part::Nonce]),
        signed(vec![s.clone()]).header("x", [ms.clone()]),
        signed(vec![Part::Query])
            .query("x", [ms.clone()])
            .query("y", [Part::WindowMillis]),
        signed(vec![ms.clone(), end()])
            .header("x", [ms.clone()])
            .header("y", [end()]),
    ] {
        assert!(verifiable(right));
    }
}

#[test]
fn an_end_is_read_back_beside_a_time_or_window() {
    let (time, end) = (Part::Timestamp(Unit::Millis), Part::Expires(Unit::Seconds));
    for other in [time, Part::WindowMillis] {
        let template = Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
            .sign([other.clone(), "/".into(), end.clone()])
            .header("x", [other])
            .header("y", [end.clone()])
            .header("x-sign", [Part::Signature])
            .window(secs(5))
            .build()
            .unwrap();
        for left in [ms(1), ms(1500), secs(60)] {
            let fresh = fresh_ms(1_700_000_000_900).with_time_left(left);
            let signed = sign(&template, request("GET", "/", ""), &fresh).unwrap();
            let now = at_ms(1_700_000_000_900);
            verifier(&template).verify(&signed, now).unwrap();
        }
    }
}

#[test]
fn padding_that_is_none_is_no_base64() {
    for text in ["QUJD====", "QUJD=", "QUI==", "QQ=", "=", "QUJD\n"] {
        assert!(Secret::base64(text).is_err(), "{text}");
    }
    for (text, bytes) in [
        ("QUJD", "ABC"),
        ("QUI=", "AB"),
        ("QUI", "AB"),
        ("QQ==", "A"),
    ] {
        assert_eq!(Secret::base64(text).unwrap().expose(), bytes.as_bytes());
    }
}

#[test]
fn what_has_become_of_a_pem_is_said() {
    let said = |pem: &str| Key::ed25519_pem(pem).unwrap_err().to_string();
    for (pem, expected) in [
        (PEM.replace('\n', " "), "spaces"),
        (PEM.replace('\n', ""), "spaces"),
        (PEM.replace('\n', "\\n"), "backslash"),
        (format!("\"{PEM}\""), "quotation"),
        (format!("'{PEM}'"), "quotation"),
        (PEM.replace("PRIVATE", "ENCRYPTED PRIVATE"), "not encrypted"),
        (
            PEM.replace("KEY-----\nM", "KEY-----\nProc-Type: 4,ENCRYPTED\n\nM"),
            "not encrypted",
        ),
        (PEM.replace("PRIVATE", "PUBLIC"), "not a public one"),
        (
            PEM.replace("PRIVATE KEY", "CERTIFICATE"),
            "not a public one",
        ),
        (PEM.replace("PRIVATE", "OPENSSH PRIVATE"), "OpenSSH"),
        ("MC4CAQAwBQYDK2VwBCIE".to_owned(), "begins with"),
        (PEM.replace("MC4C", "MC4D"), "PKCS#8"),
    ] {
        let said = said(&pem);
        assert!(said.contains(expected), "{said}");
        assert!(!said.contains("MC4C"), "{said}");
    }
    let said = Key::ed25519_public_pem(PEM).unwrap_err().to_string();
    assert!(said.contains("not a private one"), "{said}");
    assert!(Key::ed25519_pem(&PEM.replace('\n', "\r\n")).is_ok());
}
