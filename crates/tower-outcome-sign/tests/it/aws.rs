//! AWS Signature Version 4: what AWS has published, what is refused, what is hidden.

use std::{
    fmt::{self, Write},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderValue, Request};
use serde_json::Value;
use tower_outcome_core::ConfigError;
use tower_outcome_sign::{
    AwsCredentialSource, AwsCredentials, AwsSigner, Draft, HashAlgorithm, Key, Needs, Part, Secret,
    SharedAwsCredentials, Sign, SignError, SignErrorKind, Template, TextEncoding,
};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::support::{at_ms, fresh_ms, header, ms, request, secs, sign};

const VECTORS: &str = include_str!("../data/aws.json");
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

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

/// The request of the suite, with what `Uri` does not take escaped.
fn suite_request(text: &str) -> Request<Bytes> {
    let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
    // A line that begins with a space goes on with the one before.
    let head = head.trim_end().replace("\n ", " ");
    let mut lines = head.lines();
    let (method, rest) = lines.next().unwrap().split_once(' ').unwrap();
    let target = rest.strip_suffix(" HTTP/1.1").unwrap().replace(' ', "%20");
    let mut parts = Request::builder()
        .method(method)
        .uri(format!("https://example.amazonaws.com{target}"));
    for line in lines {
        let (name, value) = line.split_once(':').unwrap();
        parts = parts.header(name, value);
    }
    parts.body(Bytes::from(body.to_owned())).unwrap()
}

/// Signs a request of the suite and returns the signature.
fn suite(vector: &Value) -> String {
    let inputs = &vector["inputs"];
    let context = &inputs["context"];
    let keys = &context["credentials"];
    let mut credentials =
        AwsCredentials::new(text(keys, "access_key_id"), text(keys, "secret_access_key")).unwrap();
    if let Some(token) = keys["token"].as_str() {
        credentials = credentials.with_session_token(token).unwrap();
    }
    let flag = |name: &str| context[name].as_bool().unwrap_or(false);
    // The suite has its paths raw, and encoded once in what is signed.
    let raw = text(inputs, "request").contains("example space");
    let mut signer = AwsSigner::new(
        credentials,
        text(context, "region"),
        text(context, "service"),
    )
    .unwrap()
    .encodes_twice(!raw)
    .normalizes_path(flag("normalize"))
    .sends_content_hash(flag("sign_body"))
    .signs_session_token(!flag("omit_session_token"));
    let presigned = text(vector, "scheme") == "aws-sigv4-query-presign";
    if presigned {
        let expires = context["expiration_in_seconds"].as_u64().unwrap();
        signer = signer.presigned(secs(expires)).unwrap();
    }
    // 2015-08-30T12:36:00Z, as everywhere in the suite.
    assert_eq!(text(context, "timestamp"), "2015-08-30T12:36:00Z");
    let request = suite_request(text(inputs, "request"));
    let signed = sign(&signer, request, &fresh_ms(1_440_938_160_999)).unwrap();
    signature(&signed)
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

/// The examples in the documentation of S3: at midnight, of a file in a bucket.
fn s3_example(vector: &Value, presigned: bool) -> String {
    let secret = text(&vector["inputs"], "secret");
    let credentials = AwsCredentials::new("AKIAIOSFODNN7EXAMPLE", secret).unwrap();
    let mut signer = AwsSigner::new(credentials, "us-east-1", "s3").unwrap();
    let mut file = request("GET", "https://examplebucket.s3.amazonaws.com/test.txt", "");
    if presigned {
        signer = signer.presigned(secs(86_400)).unwrap();
    } else {
        file.headers_mut()
            .insert("range", HeaderValue::from_static("bytes=0-9"));
    }
    signature(&sign(&signer, file, &fresh_ms(1_369_353_600_000)).unwrap())
}

/// Signs with the key that the documentation derives, by hand, what the signer signs with the secret.
fn with_derived_key(vector: &Value) -> (String, String) {
    let inputs = &vector["inputs"];
    let credentials = AwsCredentials::new("AKIDEXAMPLE", text(inputs, "secret")).unwrap();
    let signer =
        AwsSigner::new(credentials, text(inputs, "region"), text(inputs, "service")).unwrap();
    let list = request("GET", "https://iam.amazonaws.com/", "");
    let signed = sign(&signer, list, &fresh_ms(1_440_938_160_000)).unwrap();
    // Of an empty text: what the body is.
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let canonical = format!(
        "GET\n/\n\nhost:iam.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n{empty}"
    );
    let by_hand = Template::builder(
        Key::hmac_sha256(Secret::hex(text(vector, "expected")).unwrap()).unwrap(),
    )
    .sign([
        Part::literal("AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/iam/aws4_request\n"),
        Part::BodyHash(HashAlgorithm::Sha256, TextEncoding::HexLower),
    ])
    .header("x-signature", [Part::Signature])
    .build()
    .unwrap();
    let wanted = sign(&by_hand, request("GET", "/", canonical), &fresh_ms(0)).unwrap();
    let wanted = header(&wanted, "x-signature").to_owned();
    (signature(&signed), wanted)
}

#[test]
fn every_published_vector_is_reproduced() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    for vector in &vectors {
        let expected = text(vector, "expected").to_owned();
        let (signature, expected) = match text(vector, "scheme") {
            "aws-sigv4-header-s3" => (s3_example(vector, false), expected),
            "aws-sigv4-query-presign-s3" => (s3_example(vector, true), expected),
            "aws-sigv4-signing-key" => with_derived_key(vector),
            _ => (suite(vector), expected),
        };
        assert_eq!(signature, expected, "{vector}");
    }
    assert_eq!(vectors.len(), 35);
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
    let expiring = credentials().expiring_at(at_ms(NOW + 60_000));
    assert_eq!(expiring.expires(), Some(at_ms(NOW + 60_000)));
    let expiring = AwsSigner::new(expiring, "us-east-1", "s3").unwrap();
    assert_eq!(end(&expiring, None).0, 60_000);
    let presigned = expiring.presigned(secs(3600)).unwrap();
    assert_eq!(end(&presigned, None).0, 60_000);
}

#[test]
fn credentials_that_have_expired_sign_nothing() {
    let expired = session().expiring_at(at_ms(NOW));
    let signer = AwsSigner::new(expired, "us-east-1", "s3").unwrap();
    let error = sign(&signer, get("/"), &fresh_ms(NOW)).unwrap_err();
    assert_eq!(*error.kind(), SignErrorKind::Unavailable);
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(source, "the credentials have expired");
    assert!(sign(&signer, get("/"), &fresh_ms(NOW - 1000)).is_ok());
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

#[test]
fn each_attempt_is_signed_with_what_is_current() {
    let key_id = |signed: &Request<Bytes>| {
        let whole = header(signed, "authorization");
        let rest = whole.split_once("Credential=").unwrap().1;
        rest.split('/').next().unwrap().to_owned()
    };
    let named = |name| AwsCredentials::new(name, "hunter2").unwrap();
    let shared = SharedAwsCredentials::new(named("first"));
    let signer = AwsSigner::new(shared.clone(), "us-east-1", "s3").unwrap();
    let sign = |request| sign(&signer, request, &fresh_ms(NOW)).unwrap();
    assert_eq!(key_id(&sign(get("/"))), "first");
    shared.replace(named("second"));
    assert_eq!(key_id(&sign(get("/"))), "second");
    // What is attached to the request goes before.
    let mut attached = get("/");
    attached.extensions_mut().insert(named("attached"));
    assert_eq!(key_id(&sign(attached)), "attached");

    let there = AtomicBool::new(false);
    let source = || {
        if there.load(Ordering::Relaxed) {
            shared.current()
        } else {
            Err(SignError::unavailable("not yet"))
        }
    };
    let signer = AwsSigner::new(source, "us-east-1", "s3").unwrap();
    let attempt = || crate::support::sign(&signer, get("/"), &fresh_ms(NOW));
    let error = attempt().unwrap_err();
    assert_eq!(*error.kind(), SignErrorKind::Unavailable);
    there.store(true, Ordering::Relaxed);
    assert_eq!(key_id(&attempt().unwrap()), "second");
}

#[test]
fn no_key_is_signed_with_the_token_of_another() {
    let pair = |number: u32| {
        AwsCredentials::new(&format!("key-{number}"), "hunter2")
            .unwrap()
            .with_session_token(&format!("token-{number}"))
            .unwrap()
    };
    let shared = SharedAwsCredentials::new(pair(0));
    let signer = AwsSigner::new(shared.clone(), "us-east-1", "s3").unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..200).for_each(|number| shared.replace(pair(number))));
        for _ in 0..200 {
            let signed = sign(&signer, get("/"), &fresh_ms(NOW)).unwrap();
            let number = header(&signed, "x-amz-security-token").strip_prefix("token-");
            let whole = header(&signed, "authorization");
            let key = format!("Credential=key-{}/", number.unwrap());
            assert!(whole.contains(&key), "{whole}");
        }
    });
}

/// Keeps everything that is traced.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<String>>);

struct Line<'a>(&'a mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, " {field}={value:?}").unwrap();
    }
}

impl Subscriber for Log {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut Line(&mut self.0.lock().unwrap()));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Line(&mut self.0.lock().unwrap()));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[test]
fn secrets_are_in_no_debug_output_and_in_no_trace() {
    let hidden = |what: &str, shown: &str| {
        for secret in ["hunter2", SECRET, "AKIDEXAMPLE"] {
            assert!(!shown.contains(secret), "{what} shows a secret: {shown}");
        }
    };
    let shared = SharedAwsCredentials::new(session());
    let signer = AwsSigner::new(session(), "us-east-1", "s3").unwrap();
    let presigned = signer.clone().presigned(secs(60)).unwrap();
    hidden("credentials", &format!("{:?} {shared:?}", session()));
    hidden("signer", &format!("{signer:?} {presigned:?}"));

    let log = Log::default();
    let signed = tracing::subscriber::with_default(log.clone(), || {
        tracing::trace!("heard");
        let signed = sign(&signer, get("/"), &fresh_ms(NOW)).unwrap();
        sign(&presigned, get("/"), &fresh_ms(NOW)).unwrap();
        tracing::trace!("heard again");
        signed
    });
    let log = log.0.lock().unwrap();
    hidden("trace", &log);
    assert!(log.contains("heard again"), "{log}");
    hidden("request", &format!("{signed:?}"));
    assert!(signed.headers()["authorization"].is_sensitive());
    assert!(signed.headers()["x-amz-security-token"].is_sensitive());
    assert!(!signed.headers()["x-amz-date"].is_sensitive());
}
