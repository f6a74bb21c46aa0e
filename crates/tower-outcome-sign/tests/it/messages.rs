//! HTTP Message Signatures: what the standards have published, what is refused, and the way back.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, header};
use serde_json::Value;
use tower_outcome_sign::{
    Component, DigestAlgorithm, FieldType, Key, MessageSigner, MessageSignerBuilder,
    MessageVerifier, MessageVerifierBuilder, Secret, Sign, SignErrorKind, Token, VerifyError,
};

use crate::support::{at_ms, fresh_ms, header, request, secs, sign};

mod arbitrary;
mod refused;
mod unnamed;

const VECTORS: &str = include_str!("../data/http-signatures.json");
/// When the examples of RFC 9421 were signed.
const CREATED: u64 = 1_618_884_473;
const DIGEST: HeaderName = HeaderName::from_static("content-digest");

fn vectors(scheme: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.len(), 14);
    let mut vectors = vectors;
    vectors.retain(|vector| vector["scheme"] == scheme);
    vectors
}

fn vector(scheme: &str) -> Value {
    let mut vectors = vectors(scheme);
    assert_eq!(vectors.len(), 1, "{scheme}");
    vectors.remove(0)
}

fn input<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector["inputs"][name].as_str().unwrap()
}

/// The request of RFC 9421, appendix B.2.
fn example() -> Request<Bytes> {
    Request::post("https://example.com/foo?param=Value&Pet=dog")
        .header("host", "example.com")
        .header("date", "Tue, 20 Apr 2021 02:07:55 GMT")
        .header("content-type", "application/json")
        .header("content-length", "18")
        .body(Bytes::from(r#"{"hello": "world"}"#))
        .unwrap()
}

/// Adds what a vector says was sent.
fn published(vector: &Value) -> Request<Bytes> {
    let mut request = example();
    let label = input(vector, "signature_input").split_once('=').unwrap().0;
    let signature = format!("{label}=:{}:", vector["expected"].as_str().unwrap());
    for (name, value) in [
        ("signature-input", input(vector, "signature_input")),
        ("signature", &signature),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    request
}

fn shared() -> Key {
    let vector = vector("rfc9421-hmac-sha256");
    Key::hmac_sha256(Secret::base64(input(&vector, "key")).unwrap()).unwrap()
}

fn ed25519() -> Key {
    Key::ed25519_pem(input(&vector("rfc9421-ed25519"), "key")).unwrap()
}

fn signer() -> MessageSignerBuilder {
    MessageSigner::builder(shared()).key_id("test-shared-secret")
}

fn verifier() -> MessageVerifierBuilder {
    MessageVerifier::builder()
        .key("test-shared-secret", shared())
        .require([Component::method()])
}

/// Signs all of a request and returns it as it is received.
fn signed(builder: MessageSignerBuilder, request: Request<Bytes>) -> Request<Bytes> {
    let signer = builder.build().unwrap();
    let fresh = fresh_ms(CREATED * 1000).with_token(Token::text("n-1"));
    sign(&signer, request, &fresh).unwrap()
}

fn verify(builder: MessageVerifierBuilder, request: &Request<Bytes>) -> Result<(), VerifyError> {
    let verifier = builder.build().unwrap();
    verifier.verify(request, at_ms(CREATED * 1000)).map(|_| ())
}

fn published_signatures() -> [(Value, MessageSignerBuilder, Vec<Component>); 2] {
    let date = Component::field(header::DATE);
    let content_type = Component::field(header::CONTENT_TYPE);
    [
        (
            vector("rfc9421-hmac-sha256"),
            signer().label("sig-b25"),
            vec![date.clone(), Component::authority(), content_type.clone()],
        ),
        (
            vector("rfc9421-ed25519"),
            MessageSigner::builder(ed25519())
                .key_id("test-key-ed25519")
                .label("sig-b26"),
            vec![
                date,
                Component::method(),
                Component::path(),
                Component::authority(),
                content_type,
                Component::field(header::CONTENT_LENGTH),
            ],
        ),
    ]
}

#[test]
fn the_signatures_of_the_standard_are_reproduced() {
    for (vector, signer, components) in published_signatures() {
        let signed = signed(signer.cover(components), example());
        assert_eq!(
            header(&signed, "signature-input"),
            input(&vector, "signature_input")
        );
        let whole = header(&signed, "signature").split_once('=').unwrap().1;
        assert_eq!(whole, format!(":{}:", vector["expected"].as_str().unwrap()));
        assert!(signed.headers()["signature"].is_sensitive());
        assert!(signed.headers()["signature-input"].is_sensitive());
    }
}

#[test]
fn the_signatures_of_the_standard_verify_and_one_changed_byte_does_not() {
    let keys = || {
        MessageVerifier::builder()
            .key("test-shared-secret", shared())
            .key("test-key-ed25519", ed25519())
            .require([Component::authority()])
            .unsigned_body()
    };
    for (vector, _, components) in published_signatures() {
        let request = published(&vector);
        let verified = keys().build().unwrap();
        let verified = verified.verify(&request, at_ms(CREATED * 1000)).unwrap();
        assert_eq!(verified.covered(), components);
        assert_eq!(verified.created().unwrap().as_secs(), CREATED);
        assert_eq!((verified.expires(), verified.nonce()), (None, None));
        assert!(verified.key_id().starts_with("test-"));
        assert!(verified.label().starts_with("sig-b2"));
        let mut changed = request.clone();
        let date = HeaderValue::from_static("Tue, 20 Apr 2021 02:07:56 GMT");
        changed.headers_mut().insert("date", date);
        assert_eq!(verify(keys(), &changed), Err(VerifyError::Mismatch));
        let mut changed = request.clone();
        let host = HeaderValue::from_static("example.org");
        changed.headers_mut().insert("host", host);
        *changed.uri_mut() = "/foo".parse().unwrap();
        assert_eq!(verify(keys(), &changed), Err(VerifyError::Mismatch));
        // The time is signed too.
        let mut changed = request.clone();
        let value = header(&request, "signature-input").replace("4473", "4474");
        changed
            .headers_mut()
            .insert("signature-input", value.parse().unwrap());
        assert_eq!(verify(keys(), &changed), Err(VerifyError::Mismatch));
    }
}

#[cfg(feature = "rsa")]
#[test]
fn the_pss_signatures_of_the_standard_verify() {
    let mut seen = 0;
    for vector in vectors("rfc9421-rsa-pss-sha512") {
        let key = Key::rsa_pss_sha512_public_pem(input(&vector, "key")).unwrap();
        let mut request = published(&vector);
        let digest = vectors("rfc9530-digest-sha512").remove(0);
        let digest = format!("sha-512=:{}:", digest["expected"].as_str().unwrap());
        request
            .headers_mut()
            .insert(DIGEST, digest.parse().unwrap());
        let verifier = || {
            MessageVerifier::builder()
                .key("test-key-rsa-pss", key.clone())
                .unsigned_body()
        };
        // The first covers nothing, which nobody should accept.
        let error = verify(verifier().require([Component::authority()]), &request);
        if input(&vector, "signature_base").contains("@authority") {
            assert_eq!(error, Ok(()));
            let pet = Component::query_param("Pet");
            assert_eq!(verify(verifier().require([pet]), &request), Ok(()));
            let mut changed = request.clone();
            *changed.uri_mut() = "https://example.com/foo?Pet=cat".parse().unwrap();
            let error = verify(verifier().require([Component::authority()]), &changed);
            assert_eq!(error, Err(VerifyError::Mismatch));
            let mut changed = request.clone();
            *changed.body_mut() = Bytes::from(r#"{"hello": "World"}"#);
            let error = verify(verifier().require([Component::authority()]), &changed);
            assert_eq!(error, Err(VerifyError::BodyMismatch));
        } else {
            assert_eq!(error, Err(VerifyError::NotCovered));
        }
        seen += 1;
    }
    assert_eq!(seen, 2);
}

#[test]
fn the_digests_of_the_standard_are_reproduced() {
    let mut seen = 0;
    for (scheme, algorithm) in [
        ("rfc9530-digest-sha256", DigestAlgorithm::Sha256),
        ("rfc9530-digest-sha512", DigestAlgorithm::Sha512),
    ] {
        for vector in vectors(scheme) {
            let body = Secret::hex(input(&vector, "body_hex")).unwrap();
            let body = Bytes::copy_from_slice(body.expose());
            let signer = signer()
                .cover([Component::method()])
                .content_digest(algorithm);
            let signed = signed(signer, request("POST", "https://example.com/", body));
            let name = scheme.strip_prefix("rfc9530-digest-sha").unwrap();
            let expected = format!("sha-{name}=:{}:", vector["expected"].as_str().unwrap());
            assert_eq!(header(&signed, "content-digest"), expected);
            assert!(header(&signed, "signature-input").contains(r#"("@method" "content-digest")"#));
            assert_eq!(verify(verifier(), &signed), Ok(()));
            seen += 1;
        }
    }
    assert_eq!(seen, 9);
}

#[test]
fn a_body_has_to_be_the_one_whose_digest_was_signed() {
    let signer = signer()
        .cover([Component::method()])
        .content_digest(DigestAlgorithm::Sha256);
    let signed = signed(signer, example());
    assert_eq!(verify(verifier(), &signed), Ok(()));
    let mut changed = signed.clone();
    *changed.body_mut() = Bytes::from(r#"{"hello": "World"}"#);
    assert_eq!(verify(verifier(), &changed), Err(VerifyError::BodyMismatch));
    let mut changed = signed.clone();
    changed.body_mut().clear();
    assert_eq!(verify(verifier(), &changed), Err(VerifyError::BodyMismatch));
    // Another digest in its place is not what was signed.
    let other = HeaderValue::from_static("sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:");
    let mut changed = signed;
    changed.headers_mut().insert(DIGEST, other);
    *changed.body_mut() = Bytes::from("{\"hello\": \"world\"}\n");
    assert_eq!(verify(verifier(), &changed), Err(VerifyError::Mismatch));
}

#[test]
fn a_digest_that_is_signed_and_cannot_be_checked_proves_nothing() {
    let covered = || signer().cover([Component::method(), Component::field(DIGEST)]);
    for value in [
        "md5=:Sd/dVLAcvNLSq16eXua5uQ==:",
        "sha-256=1",
        "sha-256=(1)",
        "sha-256",
        "no dictionary",
        // The right one, and one that is wrong.
        "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:, sha-512=:AA==:",
    ] {
        let mut request = example();
        request.headers_mut().insert(DIGEST, value.parse().unwrap());
        let signed = signed(covered(), request);
        assert_eq!(
            verify(verifier(), &signed),
            Err(VerifyError::BodyMismatch),
            "{value}"
        );
    }
    let mut request = example();
    let value = "md5=:AA==:, sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
    request.headers_mut().insert(DIGEST, value.parse().unwrap());
    assert_eq!(
        verify(verifier(), &signed(covered(), request.clone())),
        Ok(())
    );
    // One member of it may be enough, if it is one that is known.
    let member =
        |key: &str| signer().cover([Component::method(), Component::field_member(DIGEST, key)]);
    assert_eq!(
        verify(verifier(), &signed(member("sha-256"), request.clone())),
        Ok(())
    );
    let md5 = verify(verifier(), &signed(member("md5"), request));
    assert_eq!(md5, Err(VerifyError::BodyMismatch));
}

#[test]
fn every_component_is_in_the_form_of_the_standard() {
    let list = HeaderName::from_static("x-list");
    let dictionary = HeaderName::from_static("example-dict");
    let bytes = HeaderName::from_static("example-header");
    let components = [
        (Component::method(), r#""@method": POST"#),
        (
            Component::target_uri(),
            r#""@target-uri": https://www.example.com/path?param=value&foo=b%61r&va%72=a+b%7e&empty"#,
        ),
        (Component::authority(), r#""@authority": www.example.com"#),
        (Component::scheme(), r#""@scheme": https"#),
        (
            Component::request_target(),
            r#""@request-target": /path?param=value&foo=b%61r&va%72=a+b%7e&empty"#,
        ),
        (Component::path(), r#""@path": /path"#),
        (
            Component::query(),
            r#""@query": ?param=value&foo=b%61r&va%72=a+b%7e&empty"#,
        ),
        (
            Component::query_param("foo"),
            r#""@query-param";name="foo": bar"#,
        ),
        (
            Component::query_param("var"),
            r#""@query-param";name="var": a%20b%7E"#,
        ),
        (
            Component::query_param("empty"),
            r#""@query-param";name="empty": "#,
        ),
        (
            Component::field(header::CACHE_CONTROL),
            r#""cache-control": max-age=60, must-revalidate"#,
        ),
        (
            Component::field(HeaderName::from_static("x-empty")),
            r#""x-empty": "#,
        ),
        (
            Component::field(dictionary.clone()),
            r#""example-dict": a=1,    b=2;x=1;y=2,   c=(a   b   c), d"#,
        ),
        (
            Component::structured_field(dictionary.clone()),
            r#""example-dict";sf: a=1, b=2;x=1;y=2, c=(a b c), d"#,
        ),
        (
            Component::structured_field(list.clone()),
            r#""x-list";sf: 1, 2"#,
        ),
        (
            Component::field_member(dictionary.clone(), "a"),
            r#""example-dict";key="a": 1"#,
        ),
        (
            Component::field_member(dictionary.clone(), "b"),
            r#""example-dict";key="b": 2;x=1;y=2"#,
        ),
        (
            Component::field_member(dictionary.clone(), "c"),
            r#""example-dict";key="c": (a b c)"#,
        ),
        (
            Component::field_member(dictionary.clone(), "d"),
            r#""example-dict";key="d": ?1"#,
        ),
        (
            Component::field_bytes(bytes.clone()),
            r#""example-header";bs: :dmFsdWUsIHdpdGgsIGxvdHM=:, :b2YsIGNvbW1hcw==:"#,
        ),
    ];
    let request =
        Request::post("https://WWW.example.com:443/path?param=value&foo=b%61r&va%72=a+b%7e&empty")
            .header("cache-control", "max-age=60")
            .header("cache-control", "   must-revalidate ")
            .header("x-empty", "")
            .header("example-dict", " a=1,    b=2;x=1;y=2,   c=(a   b   c), d")
            .header("x-list", "1")
            .header("x-list", "  2")
            .header("example-header", "value, with, lots")
            .header("example-header", "of, commas")
            .body(Bytes::new())
            .unwrap();
    let key = Secret::new("k");
    let structured = |builder: MessageSignerBuilder| {
        builder
            .structured_field(list.clone(), FieldType::List)
            .structured_field(dictionary.clone(), FieldType::Dictionary)
    };
    let mut identifiers = Vec::new();
    let mut base = String::new();
    for (_, line) in &components {
        identifiers.push(line.split_once(": ").unwrap().0);
        base.push_str(line);
        base.push('\n');
    }
    let input = format!("({});created={CREATED};keyid=\"k\"", identifiers.join(" "));
    base.push_str(&format!("\"@signature-params\": {input}"));
    let builder = MessageSigner::builder(Key::hmac_sha256(key.clone()).unwrap()).key_id("k");
    let covered = components.map(|(component, _)| component);
    let signed = signed(structured(builder).cover(covered.clone()), request);
    assert_eq!(header(&signed, "signature-input"), format!("sig1={input}"));
    // A signature of these very lines by another way.
    let template = tower_outcome_sign::Template::builder(Key::hmac_sha256(key.clone()).unwrap())
        .sign([tower_outcome_sign::Part::Body])
        .signature_as(tower_outcome_sign::TextEncoding::Base64)
        .header("x", [tower_outcome_sign::Part::Signature])
        .build()
        .unwrap();
    let by_hand = sign(
        &template,
        crate::support::request("POST", "/", base),
        &fresh_ms(0),
    )
    .unwrap();
    assert_eq!(
        header(&signed, "signature"),
        format!("sig1=:{}:", header(&by_hand, "x"))
    );
    // The server sees less of the target.
    let mut received = signed;
    let target = "/path?param=value&foo=b%61r&va%72=a+b%7e&empty";
    *received.uri_mut() = target.parse().unwrap();
    let host = HeaderValue::from_static("www.example.com");
    received.headers_mut().insert("host", host);
    let verifier = || {
        MessageVerifier::builder()
            .key("k", Key::hmac_sha256(key.clone()).unwrap())
            .structured_field(list.clone(), FieldType::List)
            .structured_field(dictionary.clone(), FieldType::Dictionary)
            .require(covered.clone())
    };
    assert_eq!(verify(verifier(), &received), Ok(()));
    let error = verify(verifier().scheme(http::uri::Scheme::HTTP), &received);
    assert_eq!(error, Err(VerifyError::Mismatch));
}

#[test]
fn parameters_are_those_of_the_attempt() {
    let all = || {
        signer()
            .cover([Component::method()])
            .algorithm()
            .nonce()
            .tag("app")
            .expires_after(secs(30))
    };
    let signed = signed(all(), request("GET", "https://example.com/", ""));
    assert_eq!(
        header(&signed, "signature-input"),
        r#"sig1=("@method");created=1618884473;expires=1618884503;nonce="n-1";alg="hmac-sha256";keyid="test-shared-secret";tag="app""#
    );
    let verified = verifier().tag("app").build().unwrap();
    let verified = verified.verify(&signed, at_ms(CREATED * 1000)).unwrap();
    assert_eq!(verified.nonce(), Some("n-1"));
    assert_eq!(verified.tag(), Some("app"));
    assert_eq!(verified.label(), "sig1");
    assert_eq!(verified.expires().unwrap().as_secs(), CREATED + 30);
    let error = verify(verifier().tag("other"), &signed);
    assert_eq!(error, Err(VerifyError::Missing));
    assert_eq!(verify(verifier().label("sig1"), &signed), Ok(()));
    let error = verify(verifier().label("sig2"), &signed);
    assert_eq!(error, Err(VerifyError::Missing));
    let signer = all().build().unwrap();
    assert!(Sign::needs(&signer).token());
    assert!(!Sign::needs(&signer).body());
}

#[test]
fn a_signature_is_valid_until_it_expires_or_nobody_waits() {
    use tower_outcome_sign::{Draft, Validity};

    let validity = |builder: MessageSignerBuilder, left: Option<Duration>| -> Option<u64> {
        let signer = builder.cover([Component::method()]).build().unwrap();
        let mut fresh = fresh_ms(CREATED * 1000 + 999);
        if let Some(left) = left {
            fresh = fresh.with_time_left(left);
        }
        let mut draft = Draft::new(request("GET", "https://example.com/", ""));
        let validity: Validity = signer.sign(&mut draft, &fresh).unwrap();
        validity.end().map(|end| end.as_secs() - CREATED)
    };
    assert_eq!(validity(signer(), None), None);
    assert_eq!(validity(signer().window(secs(30)), None), Some(30));
    assert_eq!(validity(signer().window(secs(30)), Some(secs(5))), Some(30));
    assert_eq!(validity(signer().expires_after(secs(30)), None), Some(31));
    let late = Some(secs(60));
    assert_eq!(validity(signer().expires_after(secs(30)), late), Some(31));
    // The caller waits until five seconds after 999 ms, which is in the sixth.
    let soon = Some(secs(5));
    assert_eq!(validity(signer().expires_after(secs(30)), soon), Some(6));
}
