//! What we sign for AWS, against a server that this project did not write and that checks it.
//!
//! The versions of crates are the newest for the Rust of this directory, that of `aws-sigv4` included;
//! the published vectors, in the tests of the signing crate, are for the oldest.

mod server;
mod tamper;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower::{Layer, Service, ServiceExt};
use tower_outcome::{
    Answer, AwsCredentials, AwsSigner, BoxError, Clock, ClockOffset, HttpClassifier, Judged,
    Reason, SignLayer, SystemClock,
    sign::{Resigned, SignReport},
};

use self::{
    server::Server,
    tamper::{Tamper, Tampering},
};

const KEY_ID: &str = "AKIDEXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// Paths as they are sent, and the keys for which they stand.
const KEYS: [(&str, &str); 13] = [
    ("plain.txt", "plain.txt"),
    ("a%20space", "a space"),
    ("caf%C3%A9/%E2%98%83", "café/☃"),
    ("a+plus", "a+plus"),
    ("a%2Bplus", "a+plus"),
    ("a%2bplus", "a+plus"),
    ("double//slash", "double//slash"),
    ("/leading", "/leading"),
    ("trailing//", "trailing//"),
    ("dots/./and", "dots/./and"),
    ("(every)!*'$&,:;=@~-_.", "(every)!*'$&,:;=@~-_."),
    ("100%25", "100%"),
    ("an%2Fescaped%3Fone", "an/escaped?one"),
];

/// What is asked besides the key; none of it is a question that S3 knows.
const QUERIES: [&str; 4] = [
    "",
    "?x-note=a%20b&x-note=a+b&x-id",
    "?x.b=1&x=2&x-empty=",
    "?x-odd=%2F%3D%26%E1%88%B4~*'(",
];

fn credentials() -> AwsCredentials {
    AwsCredentials::new(KEY_ID, SECRET).unwrap()
}

fn signer(credentials: AwsCredentials) -> AwsSigner {
    AwsSigner::new(credentials, "us-east-1", "s3").unwrap()
}

fn in_headers() -> AwsSigner {
    signer(credentials())
}

fn in_query() -> AwsSigner {
    in_headers().presigned(Duration::from_secs(60)).unwrap()
}

type Sent = (StatusCode, Bytes, Option<SignReport>);

/// Signs, changes something on the way, and sends.
async fn send(
    server: &Server,
    layer: &SignLayer<AwsSigner>,
    tamper: Tamper,
    request: Request<Full<Bytes>>,
) -> Sent {
    let client = Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .build_http();
    sent(layer.layer(Tampering::new(client, tamper)), server, request).await
}

async fn sent<S, B>(service: S, server: &Server, request: Request<Full<Bytes>>) -> Sent
where
    S: Service<Request<Full<Bytes>>, Response = http::Response<B>>,
    S::Error: std::fmt::Debug,
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let request = server.request(request);
    let response = service.oneshot(request).await.unwrap();
    let report = SignReport::of(response.extensions());
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, body, report)
}

fn layer(server: &Server, signer: AwsSigner) -> SignLayer<AwsSigner> {
    SignLayer::new(signer, server.origin()).unwrap()
}

fn request(method: Method, path: &str, body: &'static str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(format!("/bucket/{path}"))
        .header("x-amz-meta-note", "two  words ")
        .body(Full::from(body))
        .unwrap()
}

fn code(body: &Bytes) -> String {
    let text = String::from_utf8_lossy(body);
    let rest = text.split_once("<Code>").map_or("", |(_, rest)| rest);
    rest.split('<').next().unwrap().to_owned()
}

async fn every_key_and_query(signer: AwsSigner) {
    let server = Server::start().await;
    let layer = layer(&server, signer);
    for (path, key) in KEYS {
        for query in QUERIES {
            let target = format!("{path}{query}");
            let call = async |method, body| {
                let request = request(method, &target, body);
                send(&server, &layer, Tamper::Nothing, request).await
            };
            let (status, body, _) = call(Method::PUT, "a body").await;
            assert_eq!(status, 200, "PUT {target}: {body:?}");
            assert_eq!(server.keys(), [key]);
            let (status, body, _) = call(Method::GET, "").await;
            assert_eq!(
                (status.as_u16(), &*body),
                (200, &b"a body"[..]),
                "GET {target}"
            );
            let (status, body, _) = call(Method::DELETE, "").await;
            assert_eq!(status, 204, "DELETE {target}: {body:?}");
            let (status, body, _) = call(Method::GET, "").await;
            assert_eq!(
                (status.as_u16(), &*code(&body)),
                (404, "NoSuchKey"),
                "GET {target}"
            );
        }
    }
}

#[tokio::test]
async fn every_key_and_query_is_accepted_with_a_signature_in_headers() {
    every_key_and_query(in_headers()).await;
}

#[tokio::test]
async fn every_key_and_query_is_accepted_with_a_signature_in_the_query() {
    every_key_and_query(in_query()).await;
}

#[tokio::test]
async fn every_key_and_query_is_accepted_with_an_unsigned_payload() {
    every_key_and_query(in_headers().unsigned_payload()).await;
}

#[tokio::test]
async fn every_key_and_query_is_accepted_with_a_session() {
    let session = || credentials().with_session_token("a+token/of=1").unwrap();
    every_key_and_query(signer(session())).await;
    let presigned = signer(session()).presigned(Duration::from_secs(60));
    every_key_and_query(presigned.unwrap()).await;
}

#[tokio::test]
async fn one_changed_byte_is_refused() {
    for (name, signer, body_too) in [
        ("headers", in_headers(), true),
        ("query", in_query(), false),
        ("unsigned", in_headers().unsigned_payload(), false),
    ] {
        let server = Server::start().await;
        let layer = layer(&server, signer);
        let put = || request(Method::PUT, "a%20key?x-note=1", "a body");
        for tamper in [Tamper::Path, Tamper::Query, Tamper::Header, Tamper::Method] {
            let (status, body, _) = send(&server, &layer, tamper, put()).await;
            let code = code(&body);
            let refused = (403, "SignatureDoesNotMatch");
            assert_eq!((status.as_u16(), &*code), refused, "{name}, {tamper:?}");
        }
        let (status, body, _) = send(&server, &layer, Tamper::Body, put()).await;
        if body_too {
            let refused = (403, "SignatureDoesNotMatch");
            assert_eq!((status.as_u16(), &*code(&body)), refused, "{name}");
            assert!(server.keys().is_empty());
        } else {
            // Nobody said what it would be.
            assert_eq!(status, 200, "{name}: {body:?}");
        }
        let (status, _, _) = send(&server, &layer, Tamper::Nothing, put()).await;
        assert_eq!(status, 200, "{name}");
    }
}

#[tokio::test]
async fn the_server_knows_who_signed() {
    let server = Server::start().await;
    let wrong = AwsCredentials::new(KEY_ID, "another-secret");
    let layer = layer(&server, signer(wrong.unwrap()));
    let get = || request(Method::GET, "key", "");
    let (status, body, _) = send(&server, &layer, Tamper::Nothing, get()).await;
    assert_eq!(
        (status.as_u16(), &*code(&body)),
        (403, "SignatureDoesNotMatch")
    );
    let client = Client::builder(TokioExecutor::new()).build_http();
    let (status, body, _) = sent(client, &server, get()).await;
    assert_eq!((status.as_u16(), &*code(&body)), (403, "AccessDenied"));
}

/// A clock that somebody has set wrong.
#[derive(Debug)]
struct Off {
    minutes: i64,
}

impl Clock for Off {
    fn now(&self) -> SystemTime {
        let off = Duration::from_secs(self.minutes.unsigned_abs() * 60);
        let now = SystemClock::new().now();
        if self.minutes < 0 {
            now - off
        } else {
            now + off
        }
    }
}

/// The rule of S3: the code in the body says whether it was the time.
fn classifier() -> HttpClassifier {
    HttpClassifier::builder()
        .body_rule(|seen: Judged<'_>| {
            let code = b"<Code>RequestTimeTooSkewed</Code>";
            let skewed = seen.body.windows(code.len()).any(|window| window == code);
            skewed.then_some(Answer::Rejected {
                reason: Reason::ClockSkew,
            })
        })
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_time_that_is_16_minutes_off_is_refused_and_then_right() -> Result<(), BoxError> {
    for (minutes, signer) in [(16, in_headers()), (-16, in_headers()), (16, in_query())] {
        let server = Server::start().await;
        let put = || request(Method::PUT, "a%20key", "a body");
        let clock = Arc::new(Off { minutes });

        let wrong = SignLayer::builder(signer.clone())
            .origin(server.origin())
            .clock(clock.clone())
            .build()?;
        let (status, body, report) = send(&server, &wrong, Tamper::Nothing, put()).await;
        assert_eq!(
            (status.as_u16(), &*code(&body)),
            (403, "RequestTimeTooSkewed")
        );
        assert!(report.is_none());
        assert_eq!(server.take_requests(), 1);

        let learning = SignLayer::builder(signer)
            .origin(server.origin())
            .clock(clock)
            .clock_offset(ClockOffset::new())
            .classifier(classifier())
            .skew_evidence(Duration::from_secs(4 * 60))
            .build()?;
        let (status, body, report) = send(&server, &learning, Tamper::Nothing, put()).await;
        assert_eq!(status, 200, "{body:?}");
        assert_eq!(report.unwrap().resigned(), Some(Resigned::ClockSkew));
        assert_eq!(server.take_requests(), 2);
        // From now on it is known.
        let (status, _, report) = send(&server, &learning, Tamper::Nothing, put()).await;
        assert_eq!(status, 200);
        assert!(report.is_none());
        assert_eq!(server.take_requests(), 1);
        assert_eq!(server.keys(), ["a key"]);
    }
    Ok(())
}
