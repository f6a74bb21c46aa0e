//! Whatever is signed verifies, whatever is changed does not, and whatever is sent is answered.

use proptest::prelude::*;

use super::*;

/// A request of which everything is signed.
fn whole() -> MessageSignerBuilder {
    signer()
        .cover([
            Component::method(),
            Component::target_uri(),
            Component::request_target(),
            Component::query_param("a"),
            Component::field(header::CONTENT_TYPE),
            Component::field_bytes(header::USER_AGENT),
        ])
        .content_digest(DigestAlgorithm::Sha256)
        .nonce()
}

fn order(path: &str, query: &str, value: &[u8], body: &[u8]) -> Request<Bytes> {
    Request::put(format!("https://a.test/{path}?a={query}"))
        .header("content-type", "text/plain")
        .header("user-agent", HeaderValue::from_bytes(value).unwrap())
        .body(Bytes::copy_from_slice(body))
        .unwrap()
}

proptest! {
    #[test]
    fn what_was_signed_verifies_and_nothing_else(
        path in "[a-z0-9/%._~-]{0,12}",
        // What is no text after its escapes are undone is refused.
        query in "([a-z0-9/._~+=-]|%[2-7][0-9a-f]|%[g-z]){0,8}",
        value in "[ -~\u{80}-\u{ff}]{0,12}",
        body in prop::collection::vec(any::<u8>(), 0..32),
        at in any::<prop::sample::Index>(),
    ) {
        let request = order(&path, &query, value.as_bytes(), &body);
        let good = signed(whole(), request);
        prop_assert_eq!(verify(verifier(), &good), Ok(()));
        let put = |name: &str, value: Vec<u8>| {
            let mut changed = good.clone();
            let name = HeaderName::try_from(name).unwrap();
            let value = HeaderValue::from_bytes(&value).unwrap();
            changed.headers_mut().insert(name, value);
            changed
        };
        // One byte more, wherever that may be.
        let mut changed = good.clone();
        let mut longer = body.clone();
        longer.insert(at.index(body.len() + 1), b'x');
        *changed.body_mut() = Bytes::from(longer);
        prop_assert_eq!(verify(verifier(), &changed), Err(VerifyError::BodyMismatch));
        for (path, query) in [(format!("{path}x"), query.clone()), (path, format!("{query}x"))] {
            let mut changed = good.clone();
            *changed.uri_mut() = format!("https://a.test/{path}?a={query}").parse().unwrap();
            prop_assert_eq!(verify(verifier(), &changed), Err(VerifyError::Mismatch));
        }
        let changed = put("user-agent", [value.as_bytes(), b"x"].concat());
        prop_assert_eq!(verify(verifier(), &changed), Err(VerifyError::Mismatch));
        // One byte of the signature itself, or of what it says of itself.
        for name in ["signature", "signature-input"] {
            let text = good.headers()[name].as_bytes();
            let mut bytes = text.to_vec();
            // The last digit of base64 has bits that mean nothing, and may be read whatever they are.
            let at = at.index(text.len() - 3);
            bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
            prop_assert!(verify(verifier(), &put(name, bytes)).is_err());
        }
    }

    #[test]
    fn whatever_is_sent_is_answered(
        input in r#"(sig1=)?[ ("@a-z0-9;=:,.*?\)-]{0,40}(;created=[0-9]{0,16})?(;keyid="[a-z-]{0,20}")?"#,
        signature in r#"(sig1=:)?[A-Za-z0-9+/=:;, -]{0,40}"#,
        digest in "[ -~]{0,20}",
    ) {
        let mut request = example();
        for (name, value) in [
            ("signature-input", input),
            ("signature", signature),
            ("content-digest", digest),
        ] {
            request.headers_mut().insert(name, value.parse().unwrap());
        }
        prop_assert!(verify(verifier(), &request).is_err());
    }
}
