//! Keys of two halves: what the standards have published, in every form in which keys come.

use bytes::Bytes;
use http::Request;
use serde_json::Value;
use tower_outcome_sign::{Component, Key, Part, Template, TextEncoding, Verifier, VerifyError};

use crate::support::{at_ms, fresh_ms, header, request, sign};

const VECTORS: &str = include_str!("../data/asymmetric.json");
/// An example of a response, whose lines verify like any other bytes.
const MESSAGES: &str = include_str!("../data/http-signatures.json");

/// In which forms a vector has its key, and what reads them.
type Forms = &'static [(&'static str, Read)];
type Read = fn(&str) -> Result<Key, tower_outcome_core::ConfigError>;

pub(crate) fn vectors(scheme: &str) -> Vec<Value> {
    let mut vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    assert_eq!(vectors.len(), 4);
    vectors.retain(|vector| vector["scheme"].as_str().unwrap().starts_with(scheme));
    vectors
}

pub(crate) fn input<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector["inputs"][name].as_str().unwrap()
}

/// Signs the body of a request and nothing else.
fn primitive(key: Key) -> Template {
    Template::builder(key)
        .sign([Part::Body])
        .signature_as(TextEncoding::Base64)
        .header("x-signature", [Part::Signature])
        .build()
        .unwrap()
}

fn signed(message: &str, signature: &str) -> Request<Bytes> {
    let mut request = request("POST", "/", message.to_owned());
    let signature = signature.parse().unwrap();
    request.headers_mut().insert("x-signature", signature);
    request
}

/// Checks that a published signature verifies, and no other.
fn verifies(key: &Key, message: &str, signature: &str) {
    let verifier = Verifier::new(primitive(key.clone())).unwrap();
    let request = signed(message, signature);
    assert!(verifier.verify(&request, at_ms(0)).is_ok(), "{key:?}");
    let mut changed = request.clone();
    *changed.body_mut() = Bytes::from(format!("{message}x"));
    let error = verifier.verify(&changed, at_ms(0));
    assert_eq!(error, Err(VerifyError::Mismatch), "{key:?}");
    for wrong in ["AAAA", &format!("AAAA{}", &signature[4..])] {
        let error = verifier.verify(&signed(message, wrong), at_ms(0));
        assert_eq!(error, Err(VerifyError::Mismatch), "{key:?}");
    }
}

/// Checks all forms of the keys of vectors.
fn every_form(scheme: &str, private: &[(&str, Read)], public: &[(&str, Read)], count: usize) {
    let vectors = vectors(scheme);
    assert_eq!(vectors.len(), count, "{scheme}");
    for vector in vectors {
        let (message, expected) = (input(&vector, "message"), &vector["expected"]);
        let expected = expected.as_str().unwrap();
        for (form, read) in private {
            let pem = input(&vector, form);
            let key = read(pem).unwrap();
            verifies(&key, message, expected);
            let unsigned = request("POST", "/", message.to_owned());
            let made = sign(&primitive(key.clone()), unsigned, &fresh_ms(0)).unwrap();
            let made = header(&made, "x-signature");
            if vector["note"].is_null() {
                assert_eq!(made, expected, "{form}");
            }
            verifies(&key, message, made);
            // Consoles and editors add white space.
            verifies(&read(&format!("\n{pem} \n")).unwrap(), message, made);
        }
        for (form, read) in public {
            let key = read(input(&vector, form)).unwrap();
            verifies(&key, message, expected);
            let unsigned = request("POST", "/", message.to_owned());
            let error = sign(&primitive(key), unsigned, &fresh_ms(0)).unwrap_err();
            let shown = error.to_string();
            assert_eq!(shown, "request not signed: it has no private key");
        }
        // What one reads, the others do not; and no form without its line breaks.
        for (form, read) in private.iter().chain(public) {
            for (other, _) in private.iter().chain(public) {
                let is_private = |form: &str| form.starts_with("private");
                if is_private(form) != is_private(other) {
                    refused(*read, input(&vector, other), " key, not a ");
                }
            }
            let broken = input(&vector, form).replace('\n', "\\n");
            refused(*read, &broken, "a backslash and an n");
            let cut = &input(&vector, form)[..120];
            refused(*read, cut, "PEM");
        }
    }
}

fn refused(read: Read, pem: &str, expected: &str) {
    let error = read(pem).unwrap_err();
    assert_eq!(error.field(), "secret");
    assert!(error.to_string().contains(expected), "{error}");
}

#[cfg(feature = "ecdsa")]
const P256: (Forms, Forms) = (
    &[
        ("private_key_pkcs8", Key::ecdsa_p256_pem),
        ("private_key_sec1", Key::ecdsa_p256_pem),
    ],
    &[("public_key_spki", Key::ecdsa_p256_public_pem)],
);

#[cfg(feature = "ecdsa")]
#[test]
fn ecdsa_signatures_are_those_that_were_published() {
    every_form("ecdsa-p256-sha256", P256.0, P256.1, 3);
}

#[cfg(feature = "ecdsa")]
#[test]
fn the_ecdsa_signature_of_a_response_verifies() {
    let vectors: Vec<Value> = serde_json::from_str(MESSAGES).unwrap();
    let mut vectors = vectors.iter();
    let vector = vectors.find(|vector| vector["scheme"] == "rfc9421-ecdsa-p256-sha256");
    let vector = vector.unwrap();
    let key = Key::ecdsa_p256_public_pem(input(vector, "key")).unwrap();
    let expected = vector["expected"].as_str().unwrap();
    verifies(&key, input(vector, "signature_base"), expected);
}

#[cfg(feature = "ecdsa")]
#[test]
fn a_token_is_signed_with_es256() {
    use base64ct::{Base64, Base64UrlUnpadded, Encoding};
    use tower_outcome_sign::{JwtKey, JwtSigner, Token};

    for vector in vectors("ecdsa-p256-sha256") {
        let expected = Base64::decode_vec(vector["expected"].as_str().unwrap()).unwrap();
        let message = input(&vector, "message").as_bytes();
        for form in ["private_key_pkcs8", "private_key_sec1"] {
            let pem = input(&vector, form);
            let key = JwtKey::es256_pem(pem).unwrap();
            assert!(key.verify(message, &expected));
            assert!(!key.verify(b"other", &expected));
            assert_eq!(expected.len(), 64);
            if vector["note"].is_null() {
                assert_eq!(key.sign(message), expected);
            }
            let error = JwtKey::es256_pem(&pem.replace('\n', "\\n")).unwrap_err();
            assert!(error.to_string().contains("a backslash and an n"));
            assert_eq!(format!("{key:?}"), "JwtKey(ES256, [redacted])");
            let signer = JwtSigner::coinbase("organizations/o/apiKeys/k", key.clone()).unwrap();
            let fresh = fresh_ms(1_700_000_000_000).with_token(Token::random(7));
            let uri = "https://api.coinbase.com/api/v3/brokerage/accounts";
            let signed = sign(&signer, request("GET", uri, ""), &fresh).unwrap();
            let token = header(&signed, "authorization");
            let token = token.strip_prefix("Bearer ").unwrap();
            let (input, signature) = token.rsplit_once('.').unwrap();
            let head = input.split_once('.').unwrap().0;
            let head = Base64UrlUnpadded::decode_vec(head).unwrap();
            let head = String::from_utf8(head).unwrap();
            assert!(head.starts_with(r#"{"alg":"ES256","typ":"JWT","#));
            let signature = Base64UrlUnpadded::decode_vec(signature).unwrap();
            assert!(key.verify(input.as_bytes(), &signature));
        }
    }
}

#[cfg(feature = "ecdsa")]
#[test]
fn the_parameters_of_a_curve_in_front_of_a_key_are_passed_over() {
    // As `openssl ecparam -genkey -name prime256v1` writes them.
    let parameters =
        "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n";
    for vector in vectors("ecdsa-p256-sha256") {
        let pem = input(&vector, "private_key_sec1");
        let key = Key::ecdsa_p256_pem(&format!("{parameters}{pem}")).unwrap();
        let signature = key.sign(b"message").unwrap();
        assert!(
            Key::ecdsa_p256_pem(pem)
                .unwrap()
                .verify(b"message", &signature)
        );
    }
    assert!(Key::ecdsa_p256_pem(parameters).is_err());
}

#[cfg(feature = "ecdsa")]
#[tokio::test]
async fn a_request_arrives_with_a_token_of_es256_that_others_can_verify() {
    use base64ct::{Base64UrlUnpadded, Encoding};
    use http_body_util::Full;
    use tower::{Layer, ServiceExt};
    use tower_outcome_sign::{JwtKey, JwtSigner, SignLayer};

    let vector = vectors("ecdsa-p256-sha256").remove(0);
    let key = JwtKey::es256_pem(input(&vector, "private_key_sec1")).unwrap();
    let signer = JwtSigner::coinbase("organizations/o/apiKeys/k", key).unwrap();
    let keep = crate::layer::Keep::default();
    let service = SignLayer::builder(signer)
        .origin("https://api.coinbase.com")
        .clock(std::sync::Arc::new(tower_outcome_core::ManualClock::new(
            at_ms(1_700_000_000_900),
        )))
        .build()
        .unwrap()
        .layer(keep.clone());
    let uri = "https://api.coinbase.com/api/v3/brokerage/orders?a=b";
    for _ in 0..2 {
        let call = request("POST", uri, "{}").map(Full::new);
        service.clone().oneshot(call).await.unwrap();
    }
    let seen = keep.0.lock().unwrap();
    // The other half of the key, of which the signer knows nothing.
    let public = Key::ecdsa_p256_public_pem(input(&vector, "public_key_spki")).unwrap();
    let mut nonces = Vec::new();
    for (head, _) in &*seen {
        let token = head.headers["authorization"].to_str().unwrap();
        let token = token.strip_prefix("Bearer ").unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let signature = Base64UrlUnpadded::decode_vec(signature).unwrap();
        assert!(public.verify(signed.as_bytes(), &signature));
        let json = |part: &str| -> Value {
            serde_json::from_slice(&Base64UrlUnpadded::decode_vec(part).unwrap()).unwrap()
        };
        let (header, claims) = signed.split_once('.').unwrap();
        let (header, claims) = (json(header), json(claims));
        assert_eq!(header["alg"], "ES256");
        assert_eq!(header["kid"], "organizations/o/apiKeys/k");
        assert_eq!(claims["nbf"], 1_700_000_000);
        assert_eq!(claims["exp"], 1_700_000_120);
        assert_eq!(
            claims["uri"],
            "POST api.coinbase.com/api/v3/brokerage/orders"
        );
        nonces.push(header["nonce"].as_str().unwrap().to_owned());
        let mut other = signed.to_owned().into_bytes();
        other[40] ^= 1;
        assert!(!public.verify(&other, &signature));
    }
    assert_eq!(nonces.len(), 2);
    assert_ne!(nonces[0], nonces[1]);
}

#[cfg(feature = "rsa")]
const RSA: (Forms, Forms) = (
    &[
        ("private_key_pkcs8", Key::rsa_sha256_pem),
        ("private_key_pkcs1", Key::rsa_sha256_pem),
    ],
    &[
        ("public_key_spki", Key::rsa_sha256_public_pem),
        ("public_key_pkcs1", Key::rsa_sha256_public_pem),
    ],
);

#[cfg(feature = "rsa")]
#[test]
fn rsa_signatures_are_those_that_were_published() {
    every_form("rsa-pkcs1-sha256", RSA.0, RSA.1, 1);
}

#[cfg(feature = "rsa")]
#[test]
fn rsa_keys_that_are_too_small_are_refused() {
    // Of 1024 bits, made for this test.
    let private = "-----BEGIN PRIVATE KEY-----\nMIICdwIBADANBgkqhkiG9w0BAQEFAASCAmEwggJdAgEAAoGBALedj1OOB2LJkooe\nwvOvrJDTrSQ4dl/yls/xmulVhIKt/3+Z5M7sl60/AEgrlhiMmu+Rvh/4zQDjpnsz\n4+B1ZbMiTLwUzGkIS6ILYvxDBSAuzUKD4zAYdathUELI/gS/Xd+Na3tLGW1NDhLP\ntHlwm7dCrzdJhjIURsts0AsE1f0hAgMBAAECgYAxbX6ptXATjcOe3s0IIGBJ1FGl\nkHV9OqaSb62N5nF3ZDOFO/42HcZu4qjGxMTw8ti6aPdPUACPnriwLbXINJIdg/0j\nFMkidrcbmHXdvds4bJrY2KBdrXqSPY2Ks5cpbXhalcqjU4gffOiwVquAFxONzC8u\nRRfy5uw/h4/Yhd9CAQJBANzD67qqNVX7nWYHMOL8hI93R8GE4uKk97+Qm7C4cP0V\nWw/bGVq4oX9v4WU06vNY/y90k8m7mg1v3CYFAWaVqjECQQDU68MejIxUsedXH77m\nXGOr02Pasy9+ijZQhSueygRpbBF5vpGefKvObZBMDpB0U734ZhtEfzmFAlDDVYcV\nNtXxAkEAjHxdAU+ZW1sgQbInyPqavNVSI3MWEtaaFhzHBsGInXU+mqt5ygKeOwOO\ncqInNa6XzbIo7gJlOVHKzaL3zjlFsQJAMyju+jElKtiQUJPVJ769SDUDwjHZ0Jrf\nEBvfbkj2JGqODGWo0Z79HR2gVVYOiZTxiXTnSl8TcA0tYLH1Qjip0QJBAIQyJTD4\nr8s4UmnX5Qru9wRuujpv02V5pDW45OhxNi+oqjLb+ZU3EG7hh/czGJzdP/O6oWQJ\nZbgaVOGGH9hr5zc=\n-----END PRIVATE KEY-----\n";
    let public = "-----BEGIN PUBLIC KEY-----\nMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC3nY9TjgdiyZKKHsLzr6yQ060k\nOHZf8pbP8ZrpVYSCrf9/meTO7JetPwBIK5YYjJrvkb4f+M0A46Z7M+PgdWWzIky8\nFMxpCEuiC2L8QwUgLs1Cg+MwGHWrYVBCyP4Ev13fjWt7SxltTQ4Sz7R5cJu3Qq83\nSYYyFEbLbNALBNX9IQIDAQAB\n-----END PUBLIC KEY-----\n";
    refused(Key::rsa_sha256_pem, private, "2048 to 4096 bits");
    refused(Key::rsa_pss_sha512_pem, private, "2048 to 4096 bits");
    refused(Key::rsa_sha256_public_pem, public, "2048 to 8192 bits");
    refused(Key::rsa_pss_sha512_public_pem, public, "2048 to 8192 bits");
}

#[cfg(feature = "rsa")]
#[test]
fn binance_takes_rsa_keys() {
    use tower_outcome_sign::Sign;

    let vector = vectors("rsa-pkcs1-sha256").remove(0);
    let template = Template::binance_rsa("the key", input(&vector, "private_key_pkcs8")).unwrap();
    assert!(Sign::needs(&template).body());
    let uri = "https://api.binance.com/api/v3/order?symbol=LTCBTC";
    let signed = sign(&template, request("POST", uri, "side=BUY"), &fresh_ms(7)).unwrap();
    assert_eq!(header(&signed, "x-mbx-apikey"), "the key");
    let query = signed.uri().query().unwrap();
    let (rest, signature) = query.split_once("&signature=").unwrap();
    assert_eq!(rest, "symbol=LTCBTC&recvWindow=5000&timestamp=7");
    // It is base64 with escapes; query and body are signed as one, with nothing in between.
    let signature = signature.replace("%2B", "+").replace("%2F", "/");
    let key = Key::rsa_sha256_public_pem(input(&vector, "public_key_spki")).unwrap();
    verifies(
        &key,
        &format!("{rest}side=BUY"),
        &signature.replace("%3D", "="),
    );
    let verifier = Verifier::new(template).unwrap();
    assert!(verifier.verify(&signed, at_ms(7)).is_ok());
    let error = Template::binance_rsa("key", "hunter2").unwrap_err();
    assert_eq!(error.field(), "secret");
}

#[cfg(all(feature = "ecdsa", feature = "message-signatures", feature = "rsa"))]
#[test]
fn messages_are_signed_with_each_kind_of_key() {
    use tower_outcome_sign::{DigestAlgorithm, MessageSigner, MessageVerifier};

    let rsa = vectors("rsa-pkcs1-sha256").remove(0);
    let p256 = vectors("ecdsa-p256-sha256").remove(0);
    let (rsa_pem, rsa_public) = (
        input(&rsa, "private_key_pkcs8"),
        input(&rsa, "public_key_spki"),
    );
    let keys = [
        (
            "ecdsa-p256-sha256",
            Key::ecdsa_p256_pem(input(&p256, "private_key_sec1")).unwrap(),
            Key::ecdsa_p256_public_pem(input(&p256, "public_key_spki")).unwrap(),
        ),
        (
            "rsa-v1_5-sha256",
            Key::rsa_sha256_pem(rsa_pem).unwrap(),
            Key::rsa_sha256_public_pem(rsa_public).unwrap(),
        ),
        (
            "rsa-pss-sha512",
            Key::rsa_pss_sha512_pem(rsa_pem).unwrap(),
            Key::rsa_pss_sha512_public_pem(rsa_public).unwrap(),
        ),
    ];
    for (name, private, public) in keys {
        let signer = MessageSigner::builder(private)
            .key_id("k")
            .algorithm()
            .cover([Component::method(), Component::path()])
            .content_digest(DigestAlgorithm::Sha512);
        let signer = signer.build().unwrap();
        let order = request("POST", "https://a.test/order", "buy");
        let signed = sign(&signer, order, &fresh_ms(0)).unwrap();
        let input = header(&signed, "signature-input");
        assert!(input.contains(&format!(";alg=\"{name}\"")), "{input}");
        let verifier = |key: Key| {
            let builder = MessageVerifier::builder().key("k", key);
            builder.require([Component::path()]).build().unwrap()
        };
        let verified = verifier(public.clone()).verify(&signed, at_ms(0));
        assert_eq!(verified.unwrap().key_id(), "k");
        let mut changed = signed.clone();
        *changed.uri_mut() = "https://a.test/Order".parse().unwrap();
        let error = verifier(public.clone()).verify(&changed, at_ms(0));
        assert_eq!(error, Err(VerifyError::Mismatch));
        let builder = MessageSigner::builder(public).cover([Component::path()]);
        assert_eq!(builder.build().unwrap_err().field(), "key");
    }
}
