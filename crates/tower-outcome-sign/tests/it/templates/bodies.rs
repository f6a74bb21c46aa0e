//! Fields that are put into bodies, and found there.

use tower_outcome_sign::{
    Key, Nonce, Part, Secret, SignErrorKind, Template, TextEncoding, Verifier, VerifyError,
};

use super::{SEED, verifier};
use crate::support::{at_ms, fresh_ms, header, request, sign};

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
            .unwrap()
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
