//! Whose keys a request is signed with, and that nobody sees them.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{NOW, SECRET, get, s3, session};
use crate::support::{at_ms, fresh_ms, header, secs, sign};
use crate::traced::Log;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceExt, service_fn};
use tower_outcome_sign::{
    AwsCredentialSource, AwsCredentials, AwsSigner, SharedAwsCredentials, SignError, SignErrorKind,
    SignLayer, SignedBody,
};

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

#[tokio::test]
async fn what_a_layer_above_attaches_reaches_the_signer() {
    let client = service_fn(async |request: Request<SignedBody<Full<Bytes>>>| {
        let whole = request.headers()["authorization"].to_str().unwrap();
        let attached = whole.contains("Credential=attached/");
        let answer = Full::<Bytes>::from(attached.to_string());
        Ok::<_, std::io::Error>(http::Response::new(answer))
    });
    let signed = SignLayer::new(s3(), "https://b.s3.amazonaws.com").unwrap();
    let mut request = get("/").map(Full::new);
    let attached = AwsCredentials::new("attached", "hunter2").unwrap();
    request.extensions_mut().insert(attached);
    let response = signed.layer(client).oneshot(request).await.unwrap();
    let body = response.into_body().collect().await.unwrap();
    assert_eq!(body.to_bytes(), "true");
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
    assert!(!log.contains("sign"), "{log}");
    assert!(log.contains("heard again"), "{log}");
    hidden("request", &format!("{signed:?}"));
    assert!(signed.headers()["authorization"].is_sensitive());
    assert!(signed.headers()["x-amz-security-token"].is_sensitive());
    assert!(!signed.headers()["x-amz-date"].is_sensitive());
}
