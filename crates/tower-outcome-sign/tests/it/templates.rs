//! Templates: what they refuse, what they hide, and the way back.

use bytes::Bytes;
use http::Request;
use tower_outcome_sign::{Key, Part, Secret, Template, Token, Verifier};

use crate::support::{at_ms, fresh_ms, header, request, sign};

mod bodies;
mod received;
mod refused;
mod times;

const SEED: &str = "xQnTJVeQLmw1/Mg2YimEViSpw/SdJcgNXZ5kQkAXNPU=";
/// The public half of the seed.
const PUBLIC: &str = "jPItx4TLjcnSUnmnXQQyAKL4eJj3+oWNNMmmm2vATqk=";
const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n-----END PRIVATE KEY-----\n";

fn verifier(template: &Template) -> Verifier {
    Verifier::new(template.clone()).unwrap()
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
    hidden(
        "verifier",
        &format!("{:#?}", Verifier::new(okx.clone()).unwrap()),
    );
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
        let verifier = Verifier::new(template.clone()).unwrap();
        verifier.verify(&signed, at_ms(time)).unwrap();
    }
    assert!(escaped);
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
fn tokens_are_uuids_or_digits() {
    let token = Token::random(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    assert_eq!(token.to_uuid(), "01234567-89ab-4def-8123-456789abcdef");
    assert_eq!(token.to_hex(), "0123456789abcdef0123456789abcdef");
    assert_eq!(Token::text("x").to_uuid(), "x");
}

#[test]
fn a_template_knows_the_headers_that_it_writes() {
    let template = Template::bybit("desk-7", "secret").unwrap();
    let mut names: Vec<_> = template.headers().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    let wrote = [
        "x-bapi-api-key",
        "x-bapi-recv-window",
        "x-bapi-sign",
        "x-bapi-timestamp",
    ];
    assert_eq!(names, wrote);
}
