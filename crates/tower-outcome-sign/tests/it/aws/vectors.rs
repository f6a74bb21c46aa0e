//! What AWS has published.

use bytes::Bytes;
use http::{HeaderValue, Request};
use serde_json::Value;
use tower_outcome_sign::{
    AwsCredentials, AwsSigner, HashAlgorithm, Key, Part, Secret, Template, TextEncoding,
};

use super::signature;
use crate::support::{fresh_ms, header, request, secs, sign};

const VECTORS: &str = include_str!("../../data/aws.json");

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
