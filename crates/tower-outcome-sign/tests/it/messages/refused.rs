//! What is refused, by whom and under which name.

use super::*;

#[test]
fn signatures_are_of_now() {
    let builder = signer().cover([Component::method()]);
    let signed = signed(builder.expires_after(secs(30)), request("GET", "/", ""));
    let at = |ms: u64, builder: MessageVerifierBuilder| {
        let verifier = builder.build().unwrap();
        verifier.verify(&signed, at_ms(ms)).map(|_| ())
    };
    let created = CREATED * 1000;
    assert_eq!(at(created - 1000, verifier()), Ok(()));
    assert_eq!(at(created - 1001, verifier()), Err(VerifyError::TooEarly));
    assert_eq!(at(created + 31_000, verifier()), Ok(()));
    assert_eq!(at(created + 31_001, verifier()), Err(VerifyError::TooOld));
    let short = || verifier().tolerance(secs(10));
    assert_eq!(at(created + 10_000, short()), Ok(()));
    assert_eq!(at(created + 10_001, short()), Err(VerifyError::TooOld));
    let far = || verifier().ahead(secs(60));
    assert_eq!(at(created - 60_000, far()), Ok(()));
    assert_eq!(at(created + 90_000, far()), Ok(()));
}

#[test]
fn what_is_sent_wrong_is_refused_by_name() {
    let good = signed(
        signer().cover([Component::method()]),
        request("GET", "/", ""),
    );
    let value = header(&good, "signature-input").to_owned();
    let with = |name: &str, value: &str| {
        let mut changed = good.clone();
        let name = HeaderName::try_from(name).unwrap();
        changed.headers_mut().insert(name, value.parse().unwrap());
        verify(verifier(), &changed)
    };
    let input = |from: &str, to: &str| with("signature-input", &value.replace(from, to));
    assert_eq!(input("x", "x"), Ok(()));
    for (from, to, error) in [
        ("test-shared", "test-other", VerifyError::UnknownKey),
        (";keyid=\"test-shared-secret\"", "", VerifyError::Missing),
        (";created=1618884473", "", VerifyError::Missing),
        ("1618884473", "\"x\"", VerifyError::Malformed),
        ("1618884473", "-1", VerifyError::Malformed),
        ("1618884473", "999999999999999", VerifyError::Malformed),
        ("\"@method\"", "", VerifyError::NotCovered),
        (
            "\"@method\"",
            "\"@method\" \"@method\"",
            VerifyError::Malformed,
        ),
        (
            "\"@method\"",
            "\"@method\" \"@method\";x",
            VerifyError::Malformed,
        ),
        (
            "\"@method\"",
            "\"@method\" \"@status\"",
            VerifyError::Malformed,
        ),
        ("\"@method\"", "\"@method\" \"x-no\"", VerifyError::Missing),
        (
            "\"@method\"",
            "\"@method\" \"X-No\"",
            VerifyError::Malformed,
        ),
        (
            "\"@method\"",
            "\"@method\" \"x-no\";bs;sf",
            VerifyError::Malformed,
        ),
        (
            "\"@method\"",
            "\"@method\" \"x-no\";tr",
            VerifyError::Malformed,
        ),
        ("\"@method\"", "\"@method\";req", VerifyError::Malformed),
        (
            "\"@method\"",
            "\"@method\" \"@authority\"",
            VerifyError::Missing,
        ),
        (
            "\"@method\"",
            "\"@method\" \"@query-param\";name=\"a\"",
            VerifyError::Missing,
        ),
        ("\"@method\"", "@method", VerifyError::Malformed),
        ("sig1=", "sig2=", VerifyError::Missing),
        ("sig1=(", "sig1=\"(", VerifyError::Malformed),
        ("(\"@method\")", "1", VerifyError::Malformed),
        (";keyid", ";alg=\"ed25519\";keyid", VerifyError::Mismatch),
        // It would be right, and was not signed.
        (
            ";keyid",
            ";alg=\"hmac-sha256\";keyid",
            VerifyError::Mismatch,
        ),
        (";keyid", ";alg=1;keyid", VerifyError::Malformed),
        (";keyid", ";expires=\"x\";keyid", VerifyError::Malformed),
    ] {
        assert_eq!(input(from, to), Err(error), "{from} {to}");
    }
    assert_eq!(with("signature", "sig1=:AA==:"), Err(VerifyError::Mismatch));
    assert_eq!(with("signature", "sig1=1"), Err(VerifyError::Malformed));
    assert_eq!(with("signature", "sig1=(1)"), Err(VerifyError::Malformed));
    assert_eq!(with("signature", "sig1=:AA"), Err(VerifyError::Malformed));
    for name in ["signature", "signature-input"] {
        let mut changed = good.clone();
        changed.headers_mut().remove(name);
        assert_eq!(verify(verifier(), &changed), Err(VerifyError::Missing));
    }
}

#[test]
fn a_right_signature_that_names_another_algorithm_is_refused() {
    use tower_outcome_sign::{Part, Template, TextEncoding};

    let by_hand = |algorithm: &str| {
        let input =
            format!("(\"@method\");created={CREATED};keyid=\"test-shared-secret\"{algorithm}");
        let base = format!("\"@method\": GET\n\"@signature-params\": {input}");
        let template = Template::builder(shared())
            .sign([Part::Body])
            .signature_as(TextEncoding::Base64)
            .header("x", [Part::Signature]);
        let signed = request("POST", "/", base);
        let signed = sign(&template.build().unwrap(), signed, &fresh_ms(0)).unwrap();
        let signature = format!("sig1=:{}:", header(&signed, "x"));
        let mut request = request("GET", "/", "");
        for (name, value) in [
            ("signature-input", format!("sig1={input}")),
            ("signature", signature),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        verify(verifier(), &request)
    };
    assert_eq!(by_hand(""), Ok(()));
    assert_eq!(by_hand(";alg=\"hmac-sha256\""), Ok(()));
    let error = Err(VerifyError::Mismatch);
    assert_eq!(by_hand(";alg=\"ed25519\""), error);
}

#[test]
fn one_right_signature_among_others_is_enough() {
    let good = signed(
        signer().cover([Component::method()]),
        request("GET", "/", ""),
    );
    let mut several = good.clone();
    let other = |name| format!("proxy={}, {}", "()", header(&good, name));
    let input = other("signature-input");
    let signature = format!("proxy=:AA==:, {}", header(&good, "signature"));
    several
        .headers_mut()
        .insert("signature-input", input.parse().unwrap());
    several
        .headers_mut()
        .insert("signature", signature.parse().unwrap());
    assert_eq!(verify(verifier(), &several), Ok(()));
    assert_eq!(
        verify(verifier().label("proxy"), &several),
        Err(VerifyError::Missing)
    );
    // Not as many as somebody likes.
    let mut many: Vec<String> = (0..9).map(|n| format!("a{n}=()")).collect();
    many.push(header(&good, "signature-input").to_owned());
    several
        .headers_mut()
        .insert("signature-input", many.join(", ").parse().unwrap());
    assert_eq!(verify(verifier(), &several), Err(VerifyError::Missing));
}

#[test]
fn a_request_that_names_two_hosts_is_refused() {
    let builder = signer().cover([Component::method(), Component::authority()]);
    let mut signed = signed(builder, request("GET", "https://example.com/", ""));
    assert_eq!(verify(verifier(), &signed), Ok(()));
    let host = HeaderValue::from_static("EXAMPLE.com:443");
    signed.headers_mut().insert("host", host);
    assert_eq!(verify(verifier(), &signed), Ok(()));
    *signed.uri_mut() = "https://evil.example/".parse().unwrap();
    assert_eq!(verify(verifier(), &signed), Err(VerifyError::Missing));
    *signed.uri_mut() = "/".parse().unwrap();
    assert_eq!(verify(verifier(), &signed), Ok(()));
    signed
        .headers_mut()
        .append("host", HeaderValue::from_static("evil.example"));
    assert_eq!(verify(verifier(), &signed), Err(VerifyError::Missing));
}

#[test]
fn what_a_request_lacks_or_has_already_is_named() {
    let error = |component: Component, request: Request<Bytes>| {
        let signer = signer().cover([component]).build().unwrap();
        sign(&signer, request, &fresh_ms(0))
            .unwrap_err()
            .kind()
            .clone()
    };
    let missing = |part: &'static str| SignErrorKind::Missing { part: part.into() };
    let encoding = |name: &'static str| SignErrorKind::Encoding { name: name.into() };
    let get = |uri: &str| request("GET", uri, "");
    let x = HeaderName::from_static("x-a");
    assert_eq!(error(Component::field(x.clone()), get("/")), missing("x-a"));
    assert_eq!(error(Component::scheme(), get("/")), missing("scheme"));
    assert_eq!(error(Component::target_uri(), get("/")), missing("scheme"));
    assert_eq!(error(Component::authority(), get("/")), missing("one host"));
    for uri in ["/", "/?a=1&%61=2"] {
        let part = missing("one parameter a");
        assert_eq!(error(Component::query_param("a"), get(uri)), part, "{uri}");
    }
    let mut latin = get("/");
    latin
        .headers_mut()
        .insert("x-a", HeaderValue::from_bytes(b"\xe4").unwrap());
    assert_eq!(
        error(Component::field(x.clone()), latin.clone()),
        encoding("x-a")
    );
    assert_eq!(
        error(Component::structured_field(x.clone()), latin.clone()),
        encoding("x-a")
    );
    let signer_of_bytes = signer().cover([Component::field_bytes(x.clone())]);
    sign(&signer_of_bytes.build().unwrap(), latin, &fresh_ms(0)).unwrap();
    let mut other = get("/");
    other
        .headers_mut()
        .insert("x-a", HeaderValue::from_static("b=1"));
    // Nobody has said that it is structured, and how.
    assert_eq!(
        error(Component::structured_field(x.clone()), other.clone()),
        encoding("x-a")
    );
    assert_eq!(
        error(Component::field_member(x, "a"), other),
        missing("a in x-a")
    );
    for name in ["signature", "signature-input"] {
        let mut signed = get("/");
        signed
            .headers_mut()
            .insert(name, HeaderValue::from_static("a=1"));
        let conflict = SignErrorKind::Conflict { name: name.into() };
        assert_eq!(error(Component::method(), signed), conflict);
    }
    let mut digested = get("/");
    digested
        .headers_mut()
        .insert(DIGEST, HeaderValue::from_static("a=1"));
    let signer = signer()
        .cover([Component::method()])
        .content_digest(DigestAlgorithm::Sha256);
    let error = sign(&signer.build().unwrap(), digested, &fresh_ms(0)).unwrap_err();
    let conflict = SignErrorKind::Conflict {
        name: "content-digest".into(),
    };
    assert_eq!(*error.kind(), conflict);
}

#[test]
fn what_cannot_be_signed_is_refused_when_it_is_built() {
    let field = |builder: MessageSignerBuilder| builder.build().unwrap_err().field();
    let covered = || signer().cover([Component::method()]);
    assert_eq!(field(signer()), "components");
    assert_eq!(field(covered().cover([Component::method()])), "components");
    assert_eq!(
        field(covered().cover([Component::field_member(DIGEST, "No")])),
        "components"
    );
    assert_eq!(field(covered().label("No")), "label");
    assert_eq!(field(covered().label("")), "label");
    assert_eq!(field(covered().key_id("ä")), "key_id");
    assert_eq!(field(covered().tag("\n")), "tag");
    assert_eq!(
        field(covered().window(Duration::from_millis(999))),
        "window"
    );
    assert_eq!(field(covered().expires_after(Duration::ZERO)), "window");
    let sha1 = Key::hmac_sha1(Secret::new("k")).unwrap();
    let public = Key::ed25519_public_pem(
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n",
    );
    let public = public.unwrap();
    for key in [sha1.clone(), public.clone()] {
        let builder = MessageSigner::builder(key).cover([Component::method()]);
        assert_eq!(field(builder), "key");
    }
    let field = |builder: MessageVerifierBuilder| builder.build().unwrap_err().field();
    assert_eq!(field(MessageVerifier::builder()), "key");
    assert_eq!(
        field(MessageVerifier::builder().key("a", shared())),
        "components"
    );
    assert_eq!(field(verifier().key("b", sha1)), "key");
    assert_eq!(
        field(verifier().key("b", shared()).key("b", public.clone())),
        "key"
    );
    // The public half verifies what the private one signed: RFC 9421, appendix B.1.4.
    let (vector, _, _) = &published_signatures()[1];
    let public = MessageVerifier::builder()
        .key("test-key-ed25519", public)
        .require([Component::authority()])
        .unsigned_body();
    assert_eq!(verify(public, &published(vector)), Ok(()));
}

#[test]
fn a_body_without_a_signed_digest_is_refused() {
    let signed = signed(signer().cover([Component::method()]), example());
    assert_eq!(verify(verifier(), &signed), Err(VerifyError::NotCovered));
    assert_eq!(verify(verifier().unsigned_body(), &signed), Ok(()));
    let mut empty = signed;
    empty.body_mut().clear();
    assert_eq!(verify(verifier(), &empty), Ok(()));
}
