//! A token for each request.

use base64ct::{Base64UrlUnpadded, Encoding};
use tower_outcome_sign::{JwtKey, JwtSigner, Sign, SignErrorKind, Token};

use crate::support::{fresh_ms, header, request, secs, sign};

const SEED: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";

fn decode(part: &str) -> Vec<u8> {
    Base64UrlUnpadded::decode_vec(part).unwrap()
}

fn token(key: JwtKey, uri: &str) -> (String, String, Vec<u8>) {
    let signer = JwtSigner::coinbase("organizations/o/apiKeys/k", key).unwrap();
    let fresh = fresh_ms(1_700_000_000_999).with_token(Token::random(7));
    let signed = sign(&signer, request("POST", uri, "{}"), &fresh).unwrap();
    assert!(signed.headers()["authorization"].is_sensitive());
    let token = header(&signed, "authorization")
        .strip_prefix("Bearer ")
        .unwrap();
    let (input, signature) = token.rsplit_once('.').unwrap();
    let (head, claims) = input.split_once('.').unwrap();
    let text = |part: &str| String::from_utf8(decode(part)).unwrap();
    (
        format!("{} {}", text(head), text(claims)),
        input.to_owned(),
        decode(signature),
    )
}

#[test]
fn a_token_is_bound_to_method_host_and_path_for_two_minutes() {
    let (key, name) = (JwtKey::ed25519(SEED).unwrap(), "EdDSA");
    let uri = "https://api.coinbase.com:443/api/v3/brokerage/orders?a=b";
    let (text, input, signature) = token(key.clone(), uri);
    let expected = format!(
        r#"{{"alg":"{name}","typ":"JWT","kid":"organizations/o/apiKeys/k","nonce":"{:032x}"}} {{"sub":"organizations/o/apiKeys/k","iss":"cdp","nbf":1700000000,"exp":1700000120,"uri":"POST api.coinbase.com/api/v3/brokerage/orders"}}"#,
        7
    );
    assert_eq!(text, expected);
    assert!(key.verify(input.as_bytes(), &signature));
    assert!(!key.verify(format!("{input}x").as_bytes(), &signature));
    let mut changed = signature;
    changed[5] ^= 1;
    assert!(!key.verify(input.as_bytes(), &changed));
    assert!(!key.verify(input.as_bytes(), b"short"));
}

#[test]
fn bad_keys_are_refused_without_being_shown() {
    for text in ["hunter2", "aHVudGVyMg==", ""] {
        let error = JwtKey::ed25519(text).unwrap_err();
        assert_eq!(error.field(), "secret");
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert!(!format!("{error} {error:?}").contains("aHVudGVyMg"));
    }
    let key = JwtKey::ed25519(SEED).unwrap();
    assert_eq!(format!("{key:?}"), "JwtKey(EdDSA, [redacted])");
    let error = JwtSigner::coinbase("", key.clone()).unwrap_err();
    assert_eq!(error.field(), "key_id");
    let signer = JwtSigner::coinbase("k", key).unwrap();
    assert!(!format!("{signer:?}").contains("nWGx"));
    assert_eq!(
        signer.with_lifetime(secs(0)).unwrap_err().field(),
        "lifetime"
    );
}

#[test]
fn the_host_in_a_token_is_that_of_the_request_without_a_user() {
    let signer = JwtSigner::coinbase("k", JwtKey::ed25519(SEED).unwrap()).unwrap();
    let claims = |request| {
        let fresh = fresh_ms(0).with_token(Token::random(7));
        let signed = sign(&signer, request, &fresh).unwrap();
        let token = header(&signed, "authorization").to_owned();
        String::from_utf8(decode(token.split('.').nth(1).unwrap())).unwrap()
    };
    let expected = claims(request("GET", "https://a.test/b", ""));
    assert!(expected.contains("\"GET a.test/b\""), "{expected}");
    assert_eq!(
        claims(request("GET", "https://bob:pass@a.test/b", "")),
        expected
    );
    let mut origin_form = request("GET", "/b", "");
    origin_form
        .headers_mut()
        .insert("host", "a.test".parse().unwrap());
    assert_eq!(claims(origin_form), expected);
}

#[test]
fn a_token_that_would_end_after_all_times_is_refused() {
    let signer = JwtSigner::coinbase("k", JwtKey::ed25519(SEED).unwrap()).unwrap();
    let last = fresh_ms(253_402_300_799_000).with_token(Token::random(7));
    let error = sign(&signer, request("GET", "https://a.test/", ""), &last).unwrap_err();
    assert_eq!(*error.kind(), SignErrorKind::TimeOutOfRange);
}

#[test]
fn a_target_without_a_host_is_refused() {
    let signer = JwtSigner::coinbase("k", JwtKey::ed25519(SEED).unwrap()).unwrap();
    assert!(Sign::needs(&signer).token());
    let fresh = fresh_ms(0).with_token(Token::random(7));
    let error = sign(&signer, request("GET", "/a", ""), &fresh).unwrap_err();
    let kind = SignErrorKind::Missing {
        part: "host".into(),
    };
    assert_eq!(*error.kind(), kind);
}
