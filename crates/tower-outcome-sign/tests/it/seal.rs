//! The seal: whoever changes below what was signed is found, in debug builds.
#![cfg(debug_assertions)]

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use http_body_util::{Empty, Full, StreamBody};
use tower::{Layer, ServiceExt};
use tower_outcome_core::BoxError;
use tower_outcome_sign::{SealLayer, Sign, SignError, SignErrorKind, SignLayer, SignedBody};

use crate::layer::{INVALID, Keep, STAMP, Stamp, TIME, clock, layer, order, refusal};

async fn sealed(change: fn(&mut Request<SignedBody<Full<Bytes>>>)) -> Result<(), BoxError> {
    let seal = SealLayer::new().layer(Keep::default());
    let service = seal.map_request(move |mut request| {
        change(&mut request);
        request
    });
    let result = layer(STAMP, &clock()).layer(service).oneshot(order()).await;
    result.map(|_| ())
}

#[tokio::test]
async fn whoever_changes_what_was_signed_is_found() {
    sealed(|_| {}).await.unwrap();
    sealed(|request| {
        request
            .headers_mut()
            .insert("traceparent", "00".parse().unwrap());
    })
    .await
    .unwrap();
    let found = |result| match refusal(result) {
        (INVALID, SignErrorKind::Tampered { part }) => part.into_owned(),
        other => panic!("{other:?}"),
    };
    let method = sealed(|request| *request.method_mut() = http::Method::PUT).await;
    assert_eq!(found(method), "method");
    let target = sealed(|request| {
        *request.uri_mut() = "https://venue.test/orders?trace=1".parse().unwrap();
    });
    assert_eq!(found(target.await), "target");
    let header = sealed(|request| {
        request.headers_mut().remove(TIME);
    });
    assert_eq!(found(header.await), "header x-time");
    let header = sealed(|request| {
        request.headers_mut().append(TIME, "1".parse().unwrap());
    });
    assert_eq!(found(header.await), "header x-time");
}

/// What is found when a layer below changes a header of the caller's that is signed.
async fn changed_below(signer: impl Sign, name: &'static str) -> Result<(), BoxError> {
    let change = tower::service_fn(move |mut request: Request<SignedBody<Full<Bytes>>>| {
        let value = http::HeaderValue::from_static("changed");
        request.headers_mut().insert(name, value);
        SealLayer::new().layer(Keep::default()).oneshot(request)
    });
    let signer = SignLayer::builder(signer)
        .origin("https://venue.test")
        .build()
        .unwrap();
    let mut call = order();
    for name in ["x-id", "content-type"] {
        let value = http::HeaderValue::from_static("as it was");
        call.headers_mut().insert(name, value);
    }
    signer.layer(change).oneshot(call).await.map(|_| ())
}

#[tokio::test]
async fn whoever_changes_a_header_that_the_signature_covers_is_found() {
    use tower_outcome_sign::{Key, Part, Secret, Template};

    let template = || {
        Template::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
            .sign([
                Part::Header("x-id".parse().unwrap()),
                Part::ContentTypeOfBody,
            ])
            .header("x-sign", [Part::Signature])
            .build()
            .unwrap()
    };
    for name in ["x-id", "content-type"] {
        let (_, kind) = refusal(changed_below(template(), name).await);
        let part = format!("header {name}").into();
        assert_eq!(kind, SignErrorKind::Tampered { part });
    }
    changed_below(template(), "x-else").await.unwrap();
    #[cfg(feature = "message-signatures")]
    {
        use tower_outcome_sign::{Component, MessageSigner};

        let signer = MessageSigner::builder(Key::hmac_sha256(Secret::new("k")).unwrap())
            .cover([Component::field("x-id".parse().unwrap())])
            .build()
            .unwrap();
        refusal(changed_below(signer.clone(), "x-id").await);
        changed_below(signer, "content-type").await.unwrap();
    }
    #[cfg(feature = "aws-sigv4")]
    {
        use tower_outcome_sign::{AwsCredentials, AwsSigner};

        let credentials = AwsCredentials::new("id", "secret").unwrap();
        let signer = AwsSigner::new(credentials, "us-east-1", "sqs").unwrap();
        refusal(changed_below(signer.clone(), "x-id").await);
        // It is not signed.
        changed_below(signer, "user-agent").await.unwrap();
    }
}

#[tokio::test]
async fn a_body_of_another_length_is_found() {
    let seal = SealLayer::new().layer(Keep::default());
    let compressed = seal.map_request(|request: Request<SignedBody<Full<Bytes>>>| {
        request.map(|_| Full::<Bytes>::from("z"))
    });
    let result = layer(STAMP, &clock())
        .layer(compressed)
        .oneshot(order())
        .await;
    let (_, kind) = refusal(result);
    assert_eq!(
        kind,
        SignErrorKind::Tampered {
            part: "body".into()
        }
    );
}

#[tokio::test]
async fn requests_that_nobody_signed_do_not_pass_the_seal_unless_it_is_told_so() {
    let request = || Request::get("/").body(Empty::<Bytes>::new()).unwrap();
    let optional = SealLayer::new().optional().layer(Keep::default());
    optional.oneshot(request()).await.unwrap();
    let result = SealLayer::new().layer(Keep::default()).oneshot(request());
    if cfg!(debug_assertions) {
        assert_eq!(refusal(result.await).1, SignErrorKind::Unsealed);
    } else {
        result.await.unwrap();
    }
}

/// What is found when a layer below makes another request of a signed one.
async fn remade<F, B>(signer: Stamp, remake: F) -> Result<(), BoxError>
where
    F: Fn(Request<SignedBody<Full<Bytes>>>) -> Request<B> + Clone,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let seal = SealLayer::new().layer(Keep::default());
    let service = layer(signer, &clock()).layer(seal.map_request(remake));
    service.oneshot(order()).await.map(drop)
}

#[tokio::test]
async fn a_request_that_was_made_anew_is_found() {
    let anew = |request: Request<SignedBody<Full<Bytes>>>| {
        let (head, body) = request.into_parts();
        let mut anew = Request::new(body);
        *anew.uri_mut() = "https://venue.test/orders?trace=1".parse().unwrap();
        *anew.headers_mut() = head.headers;
        anew
    };
    assert_eq!(
        refusal(remade(STAMP, anew).await).1,
        SignErrorKind::Unsealed
    );
    // The seal above the signature sees what nobody has signed yet.
    let signed = layer(STAMP, &clock()).layer(Keep::default());
    let result = SealLayer::new().layer(signed).oneshot(order()).await;
    let error = result.map(drop).unwrap_err();
    let text = SignError::of(&*error).unwrap().to_string();
    assert!(text.starts_with("signed request not sent"), "{text}");
    assert!(text.contains("SealLayer stands above SignLayer"), "{text}");
}

#[tokio::test]
async fn another_scheme_or_host_is_found() {
    let part = |result| match refusal(result).1 {
        SignErrorKind::Tampered { part } => part.into_owned(),
        other => panic!("{other:?}"),
    };
    let scheme = sealed(|request| {
        *request.uri_mut() = "http://venue.test/orders".parse().unwrap();
    });
    assert_eq!(part(scheme.await), "scheme");
    let host = sealed(|request| {
        let host = "evil.test".parse().unwrap();
        request.headers_mut().insert("host", host);
    });
    assert_eq!(part(host.await), "header host");
    let same = sealed(|request| {
        let host = "venue.test".parse().unwrap();
        request.headers_mut().insert("host", host);
    });
    same.await.unwrap();
    // What the caller has said stays so.
    let seal = SealLayer::new().layer(Keep::default());
    let changed = seal.map_request(|mut request: Request<SignedBody<Full<Bytes>>>| {
        let host = "venue.test".parse().unwrap();
        request.headers_mut().insert("host", host);
        request
    });
    let mut request = order();
    let host = "behind.test".parse().unwrap();
    request.headers_mut().insert("host", host);
    let result = layer(STAMP, &clock()).layer(changed).oneshot(request).await;
    assert_eq!(part(result.map(drop)), "header host");
}

#[tokio::test]
async fn a_body_of_the_same_length_is_found_as_it_is_sent() {
    type Signed = Request<SignedBody<Full<Bytes>>>;
    let other =
        |text: &'static str| move |request: Signed| request.map(|_| Full::<Bytes>::from(text));
    remade(STAMP, other("buy 100")).await.unwrap();
    let error = remade(STAMP, other("buy 999")).await.unwrap_err();
    assert!(error.to_string().contains("changed its body"), "{error}");
    // In frames, and only the last one differs.
    let framed = |frames: &'static [&'static str]| {
        move |request: Signed| {
            let frames = frames
                .iter()
                .map(|text| Ok::<_, io::Error>(Frame::data(Bytes::from(*text))));
            let exact = Exactly(StreamBody::new(futures_util::stream::iter(frames)), 7);
            request.map(|_| exact)
        }
    };
    remade(STAMP, framed(&["buy", "", " 100"])).await.unwrap();
    for frames in [&["buy", " 999"][..], &["buy", " 10"], &["buy", " 1000"]] {
        remade(STAMP, framed(frames)).await.unwrap_err();
    }
    // Nobody has signed it.
    let head = Stamp {
        body: false,
        ..STAMP
    };
    remade(head, other("z")).await.unwrap();
}

/// A body that announces its length.
struct Exactly<B>(B, u64);

impl<B: Body + Unpin> Body for Exactly<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.1)
    }
}
