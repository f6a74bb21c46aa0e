//! Signatures that say less than most.

use tower_outcome_sign::{
    Component, DigestAlgorithm, Key, MessageSigner, MessageSignerBuilder, MessageVerifier, Secret,
    SignErrorKind, VerifyError,
};

use crate::support::{at_ms, fresh_ms, request, secs, sign};

fn key() -> Key {
    Key::hmac_sha256(Secret::new("k")).unwrap()
}

fn signer() -> MessageSignerBuilder {
    MessageSigner::builder(key()).cover([Component::method()])
}

#[test]
fn a_signature_without_a_name_is_that_of_the_unnamed_key() {
    let signer = signer().build().unwrap();
    let signed = sign(&signer, request("GET", "/", ""), &fresh_ms(5000)).unwrap();
    let named = || {
        MessageVerifier::builder()
            .key("other", Key::hmac_sha256(Secret::new("other")).unwrap())
            .require([Component::method()])
    };
    let verify = |builder: tower_outcome_sign::MessageVerifierBuilder| {
        builder.build().unwrap().verify(&signed, at_ms(5000))
    };
    assert_eq!(verify(named()).unwrap_err(), VerifyError::Missing);
    let verified = verify(named().unnamed_key(key())).unwrap();
    assert_eq!(verified.key_id(), "");
    let alone = MessageVerifier::builder().require([Component::method()]);
    verify(alone.unnamed_key(key())).unwrap();
}

#[test]
fn a_signature_may_say_only_when_it_ends() {
    let signer = signer()
        .without_created()
        .expires_after(secs(30))
        .content_digest(DigestAlgorithm::Sha256)
        .build()
        .unwrap();
    let signed = sign(&signer, request("POST", "/", "b"), &fresh_ms(1_000_000)).unwrap();
    let builder = || {
        MessageVerifier::builder()
            .unnamed_key(key())
            .require([Component::method()])
    };
    let missing = builder().build().unwrap().verify(&signed, at_ms(1_000_000));
    assert_eq!(missing.unwrap_err(), VerifyError::Missing);
    let verifier = builder().without_created().build().unwrap();
    let verify = |now| {
        verifier
            .verify(&signed, at_ms(now))
            .map(|verified| verified.created())
    };
    assert_eq!(verify(1_000_000), Ok(None));
    assert_eq!(verify(1_031_000), Ok(None));
    assert_eq!(verify(1_031_001), Err(VerifyError::TooOld));
    assert_eq!(verify(729_000), Ok(None));
    assert_eq!(verify(728_999), Err(VerifyError::TooEarly));
}

#[test]
fn a_tag_that_is_no_text_is_not_the_one_that_is_looked_for() {
    let signer = signer().label("mine").tag("app").build().unwrap();
    let mut signed = sign(&signer, request("GET", "/", ""), &fresh_ms(5000)).unwrap();
    for (name, other) in [
        ("signature-input", "proxy=(\"@method\");created=5;tag=7, "),
        ("signature", "proxy=:AAAA:, "),
    ] {
        let value = format!("{other}{}", signed.headers()[name].to_str().unwrap());
        signed.headers_mut().insert(name, value.parse().unwrap());
    }
    let verifier = MessageVerifier::builder()
        .unnamed_key(key())
        .require([Component::method()])
        .tag("app")
        .build()
        .unwrap();
    let verified = verifier.verify(&signed, at_ms(5000)).unwrap();
    assert_eq!(verified.label(), "mine");
}

#[test]
fn a_parameter_that_is_no_text_is_neither_signed_nor_verified() {
    let signer = MessageSigner::builder(key())
        .cover([Component::query_param("a")])
        .build()
        .unwrap();
    let error = sign(&signer, request("GET", "/?a=%FF", ""), &fresh_ms(5000)).unwrap_err();
    assert!(matches!(error.kind(), SignErrorKind::Encoding { .. }));
    // What browsers make of such bytes.
    let mut signed = sign(
        &signer,
        request("GET", "/?a=%EF%BF%BD", ""),
        &fresh_ms(5000),
    )
    .unwrap();
    let verifier = MessageVerifier::builder()
        .unnamed_key(key())
        .require([Component::query_param("a")])
        .build()
        .unwrap();
    verifier.verify(&signed, at_ms(5000)).unwrap();
    *signed.uri_mut() = "/?a=%FE".parse().unwrap();
    let verified = verifier.verify(&signed, at_ms(5000)).map(|_| ());
    assert_eq!(verified, Err(VerifyError::Malformed));
}
