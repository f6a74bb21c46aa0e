//! AWS Signature Version 4: what is signed, what is refused, what is published.

use bytes::Bytes;
use http::{HeaderValue, Request};
use proptest::prelude::*;
use tower_outcome_core::ConfigError;
use tower_outcome_sign::{AwsCredentials, AwsSigner, Draft, Needs, Sign, SignErrorKind};

use crate::support::{at_ms, fresh_ms, header, ms, request, secs, sign};

mod credentials;
mod vectors;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const NOW: u64 = 1_700_000_000_000;

fn credentials() -> AwsCredentials {
    AwsCredentials::new("AKIDEXAMPLE", SECRET).unwrap()
}

fn session() -> AwsCredentials {
    credentials().with_session_token("token-hunter2").unwrap()
}

fn s3() -> AwsSigner {
    AwsSigner::new(credentials(), "us-east-1", "s3").unwrap()
}

fn dynamo() -> AwsSigner {
    AwsSigner::new(credentials(), "us-east-1", "dynamodb").unwrap()
}

fn get(path: &str) -> Request<Bytes> {
    request("GET", &format!("https://b.s3.amazonaws.com{path}"), "")
}

fn signature(signed: &Request<Bytes>) -> String {
    match signed.headers().get("authorization") {
        Some(whole) => {
            let whole = whole.to_str().unwrap();
            whole.split_once("Signature=").unwrap().1.to_owned()
        }
        None => {
            let query = signed.uri().query().unwrap();
            let rest = query.split_once("X-Amz-Signature=").unwrap().1;
            rest.split('&').next().unwrap().to_owned()
        }
    }
}

#[test]
fn one_changed_byte_is_another_signature() {
    let of = |request: Request<Bytes>| signature(&sign(&s3(), request, &fresh_ms(NOW)).unwrap());
    let with_header = |name: &'static str| {
        let mut request = get("/a%20key?x=1");
        let value = HeaderValue::from_static("v");
        request.headers_mut().insert(name, value);
        of(request)
    };
    let same = of(get("/a%20key?x=1"));
    assert_eq!(of(get("/a%20key?x=1")), same);
    let mut others = vec![
        of(get("/a%20kez?x=1")),
        of(get("/a%20key?x=2")),
        of(get("//a%20key?x=1")),
        of(request("PUT", "https://b.s3.amazonaws.com/a%20key?x=1", "")),
        of(request(
            "GET",
            "https://b.s3.amazonaws.com/a%20key?x=1",
            "b",
        )),
        of(request("GET", "https://c.s3.amazonaws.com/a%20key?x=1", "")),
        with_header("x-amz-acl"),
        with_header("x-amz-ack"),
        signature(&sign(&s3(), get("/a%20key?x=1"), &fresh_ms(NOW + 1000)).unwrap()),
        same.clone(),
    ];
    let count = others.len();
    others.sort();
    others.dedup();
    assert_eq!(others.len(), count);
    // What proxies change is not signed.
    assert_eq!(with_header("user-agent"), same);
    assert_eq!(with_header("traceparent"), same);
}

#[test]
fn a_query_is_signed_in_the_order_of_its_names_and_then_its_values() {
    let of = |query: &str| {
        let request = get(&format!("/?{query}"));
        signature(&sign(&dynamo(), request, &fresh_ms(NOW)).unwrap())
    };
    assert_eq!(of("q.parser=a&q=b"), of("q=b&q.parser=a"));
    assert_eq!(of("k=%2F&k=+&k="), of("k=&k=%20&k=/"));
    assert_eq!(of("k"), of("k="));
    assert_ne!(of("k=a&k=a"), of("k=a"));
    assert_ne!(of("k=%2B"), of("k=+"));
}

#[test]
fn it_says_when_it_ends() {
    let end = |signer: &AwsSigner, left| {
        let mut fresh = fresh_ms(NOW + 999);
        if let Some(left) = left {
            fresh = fresh.with_time_left(left);
        }
        let mut draft = Draft::new(get("/"));
        let validity = signer.sign(&mut draft, &fresh).unwrap();
        let end = validity.end().unwrap().as_millis() - NOW;
        let query = draft.uri().query().unwrap_or_default().to_owned();
        (end, query)
    };
    assert_eq!(end(&dynamo(), None).0, 300_000);
    assert_eq!(end(&s3(), None).0, 900_000);
    assert_eq!(end(&s3(), Some(ms(10))).0, 900_000);
    let shorter = s3().with_tolerance(secs(60)).unwrap();
    assert_eq!(end(&shorter, None).0, 60_000);
    let presigned = s3().presigned(ms(7_999)).unwrap();
    for (left, seconds) in [
        (None, 7),
        (Some(ms(2001)), 3),
        (Some(ms(0)), 1),
        (Some(secs(9)), 7),
    ] {
        let (end, query) = end(&presigned, left);
        assert_eq!(end, seconds * 1000);
        assert!(
            query.contains(&format!("X-Amz-Expires={seconds}&")),
            "{query}"
        );
    }
    // A second that has begun does not count as one that is left.
    let presigned = s3().presigned(secs(60)).unwrap();
    assert_eq!(end(&presigned, Some(secs(1))).0, 2000);
    let expiring = credentials().expiring_at(at_ms(NOW + 60_000));
    assert_eq!(expiring.expires(), Some(at_ms(NOW + 60_000)));
    let expiring = AwsSigner::new(expiring, "us-east-1", "s3").unwrap();
    assert_eq!(end(&expiring, None).0, 60_000);
    let presigned = expiring.presigned(secs(3600)).unwrap();
    assert_eq!(end(&presigned, None).0, 60_000);
}

#[test]
fn what_the_caller_has_set_is_not_replaced() {
    for name in [
        "authorization",
        "x-amz-date",
        "x-amz-content-sha256",
        "x-amz-security-token",
    ] {
        let signer = AwsSigner::new(session(), "us-east-1", "s3").unwrap();
        let mut request = get("/");
        let value = HeaderValue::from_static("mine");
        request.headers_mut().insert(name, value);
        let error = sign(&signer, request, &fresh_ms(NOW)).unwrap_err();
        let kind = SignErrorKind::Conflict { name: name.into() };
        assert_eq!(*error.kind(), kind);
    }
    let presigned = s3().presigned(secs(60)).unwrap();
    let error = sign(&presigned, get("/?X-Amz-Date=1"), &fresh_ms(NOW)).unwrap_err();
    let name = "X-Amz-Date".into();
    assert_eq!(*error.kind(), SignErrorKind::Conflict { name });
    let mut request = get("/");
    let value = HeaderValue::from_static("mine");
    request.headers_mut().insert("authorization", value);
    let error = sign(&presigned, request, &fresh_ms(NOW)).unwrap_err();
    let name = "authorization".into();
    assert_eq!(*error.kind(), SignErrorKind::Conflict { name });
}

#[test]
fn what_cannot_be_signed_is_named() {
    let kind = |request| {
        let error = sign(&s3(), request, &fresh_ms(NOW)).unwrap_err();
        error.kind().clone()
    };
    let missing = SignErrorKind::Missing {
        part: "host".into(),
    };
    assert_eq!(kind(request("GET", "/a", "")), missing);
    let encoding = |name: &'static str| SignErrorKind::Encoding { name: name.into() };
    assert_eq!(kind(get("/?a=%FF")), encoding("query"));
    let mut odd = get("/");
    let value = HeaderValue::from_bytes(b"caf\xe9").unwrap();
    odd.headers_mut().insert("x-amz-meta-name", value);
    assert_eq!(kind(odd), encoding("x-amz-meta-name"));
    // A key that is no text is signed by its bytes.
    assert!(sign(&s3(), get("/%FF"), &fresh_ms(NOW)).is_ok());
}

#[test]
fn directories_of_s3_express_are_signed_as_s3_wants_it() {
    let of = |service: &str| {
        let signer = AwsSigner::new(credentials(), "us-east-1", service).unwrap();
        let signed = sign(&signer, get("/a//b"), &fresh_ms(NOW)).unwrap();
        signed.headers().contains_key("x-amz-content-sha256")
    };
    assert!(of("s3express"));
    assert!(of("s3-outposts"));
    assert!(!of("s3tables"));
}

#[test]
fn the_host_is_that_which_the_client_sends() {
    let of = |uri: &str, host: Option<&'static str>| {
        let mut request = request("GET", uri, "");
        if let Some(host) = host {
            let host = HeaderValue::from_static(host);
            request.headers_mut().insert("host", host);
        }
        signature(&sign(&s3(), request, &fresh_ms(NOW)).unwrap())
    };
    let plain = of("https://h.example/a", None);
    assert_eq!(of("https://h.example:443/a", None), plain);
    assert_eq!(of("https://user@h.example/a", None), plain);
    assert_eq!(of("/a", Some("h.example")), plain);
    assert_ne!(of("https://h.example:80/a", None), plain);
}

#[test]
fn an_unsigned_payload_is_a_choice_and_is_not_read() {
    assert_eq!(s3().needs(), Needs::BODY);
    let unsigned = s3().unsigned_payload();
    assert_eq!(unsigned.needs(), Needs::HEAD);
    let signed = sign(&unsigned, get("/"), &fresh_ms(NOW)).unwrap();
    assert_eq!(header(&signed, "x-amz-content-sha256"), "UNSIGNED-PAYLOAD");
    // For a link of S3 there is no other way.
    assert_eq!(s3().presigned(secs(1)).unwrap().needs(), Needs::HEAD);
    assert_eq!(dynamo().presigned(secs(1)).unwrap().needs(), Needs::BODY);
    let body = request("PUT", "https://b.s3.amazonaws.com/a", "x");
    let signed = sign(&s3(), body, &fresh_ms(NOW)).unwrap();
    let hash = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    assert_eq!(header(&signed, "x-amz-content-sha256"), hash);
    let signed = sign(&dynamo(), get("/"), &fresh_ms(NOW)).unwrap();
    assert!(!signed.headers().contains_key("x-amz-content-sha256"));
}

#[test]
fn bad_settings_are_refused() {
    let field = |error: ConfigError| error.field();
    for (region, service, bad) in [
        ("", "s3", "region"),
        ("us east", "s3", "region"),
        ("r", "a/b", "service"),
    ] {
        let error = AwsSigner::new(credentials(), region, service).unwrap_err();
        assert_eq!(field(error), bad);
    }
    for expires in [ms(999), secs(7 * 86_400 + 1)] {
        assert_eq!(field(s3().presigned(expires).unwrap_err()), "expires");
    }
    assert!(s3().presigned(secs(7 * 86_400)).is_ok());
    assert_eq!(
        field(s3().with_tolerance(secs(0)).unwrap_err()),
        "tolerance"
    );
    for (key_id, secret, bad) in [
        ("", "hunter2", "key_id"),
        ("AK ID", "hunter2", "key_id"),
        ("AK/ID", "hunter2", "key_id"),
        ("AKID", "", "secret"),
        ("AKID", "hunter2\n", "secret"),
    ] {
        let error = AwsCredentials::new(key_id, secret).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert_eq!(field(error), bad);
    }
    let error = credentials().with_session_token("hunter2 ").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("hunter2"));
    assert_eq!(field(error), "session_token");
}

proptest! {
    #[test]
    fn whatever_is_asked_is_signed_or_refused(
        target in "(/|%|[a-z.+*~]|[!-\\[\\]-~]|[\u{e9}\u{263a}]){0,12}",
        query in "[!-\"$-~\u{e9}]{0,12}",
        name in "[a-z0-9!#$&'*+.^_`|~-]{1,8}",
        value in proptest::collection::vec(any::<u8>(), 0..8),
        method in "[A-Z!#-]{1,8}",
        twice in any::<bool>(),
        presigned in any::<bool>(),
    ) {
        let uri = format!("https://h.example/{target}?{query}");
        let (Ok(value), Ok(uri)) = (HeaderValue::from_bytes(&value), uri.parse::<http::Uri>()) else {
            return Ok(());
        };
        let request = Request::builder().method(&*method).uri(uri).header(&name, value);
        let Ok(request) = request.body(Bytes::new()) else {
            return Ok(());
        };
        let mut signer = s3().encodes_twice(twice).normalizes_path(twice);
        if presigned {
            signer = signer.presigned(secs(1)).unwrap();
        }
        let path = request.uri().path().to_owned();
        if let Ok(signed) = sign(&signer, request, &fresh_ms(NOW)) {
            prop_assert_eq!(signed.uri().path(), path);
            prop_assert_eq!(signature(&signed).len(), 64);
        }
    }
}

#[test]
fn a_target_without_a_path_is_no_panic() {
    for target in ["*", "https://h.example", "h.example:443"] {
        let mut request = request("OPTIONS", target, "");
        let host = HeaderValue::from_static("h.example");
        request.headers_mut().insert("host", host);
        let _ = sign(&s3(), request.clone(), &fresh_ms(NOW));
        let _ = sign(&dynamo(), request, &fresh_ms(NOW));
    }
}
