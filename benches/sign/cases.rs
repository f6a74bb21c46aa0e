//! What is measured. A case more is an entry more in [`ALL`].

use std::{
    future::{Future, Ready, ready},
    hint::black_box,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue, Method, Request, Response, header};
use http_body_util::Full;
use sha2::Sha256;
use tower::{BoxError, Layer, Service, ServiceExt};
use tower_outcome::{
    Answer, CallContext, ClockOffset, Draft, Fresh, HttpClassifier, Judged, Nonces, Reason, Sign,
    SignError, SignLayer, StageStamp, Template,
    sign::{AsyncSign, Needs, Signed, SigningTime, Strict, Unit, Validity},
};

/// One thing to measure.
pub(crate) struct Case {
    /// As it appears in the output.
    pub(crate) name: &'static str,
    /// What it stands for, in a few words.
    pub(crate) about: &'static str,
    /// What it may cost.
    pub(crate) bound: Option<Bound>,
    /// The case that its ratio is to.
    pub(crate) beside: Option<&'static str>,
    run: fn(u32, bool),
}

/// What a case may cost.
#[derive(Clone, Copy)]
pub(crate) enum Bound {
    Instructions(f64),
    Ratio(f64),
}

/// In the order of the output.
pub(crate) const ALL: &[Case] = &[
    Case {
        name: "layer_head",
        about: "the layer, of a signer that looks at the head",
        bound: Some(Bound::Instructions(500.0)),
        beside: None,
        run: |calls, bare| layer(calls, bare, Needs::HEAD),
    },
    Case {
        name: "layer_body",
        about: "the layer, of a signer that looks at a body of bytes",
        bound: Some(Bound::Instructions(500.0)),
        beside: None,
        run: |calls, bare| layer(calls, bare, Needs::BODY),
    },
    Case {
        name: "layer_context",
        about: "the same with the context of a call",
        bound: None,
        beside: None,
        run: |calls, bare| layer_with(calls, bare, With::Context),
    },
    Case {
        name: "layer_nonces",
        about: "with nonces",
        bound: None,
        beside: None,
        run: |calls, bare| layer_with(calls, bare, With::Nonces),
    },
    Case {
        name: "layer_strict",
        about: "with strict nonces",
        bound: None,
        beside: None,
        run: |calls, bare| layer_with(calls, bare, With::Strict),
    },
    Case {
        name: "layer_offset",
        about: "with a clock offset, and a Date to learn from",
        bound: None,
        beside: None,
        run: |calls, bare| layer_with(calls, bare, With::Offset),
    },
    Case {
        name: "layer_classifier",
        about: "with nonces and a classifier",
        bound: None,
        beside: None,
        run: |calls, bare| layer_with(calls, bare, With::Classifier),
    },
    Case {
        name: "layer_async",
        about: "of a signer that has to be asked",
        bound: None,
        beside: None,
        run: |calls, bare| layer_with(calls, bare, With::Async),
    },
    Case {
        name: "hmac_alone",
        about: "the hmac crate alone: key set up and bytes joined before, result dropped",
        bound: None,
        beside: None,
        run: alone,
    },
    Case {
        name: "hmac_by_hand",
        about: "the hmac crate called by hand: key set up before, bytes joined, four headers",
        bound: None,
        beside: None,
        run: by_hand,
    },
    Case {
        name: "hmac_template",
        about: "the same by Bybit's template",
        bound: Some(Bound::Ratio(1.3)),
        beside: Some("hmac_by_hand"),
        run: template,
    },
    Case {
        name: "hmac_template_alone",
        about: "the same beside the crate alone, which writes neither hex nor headers",
        bound: Some(Bound::Ratio(1.3)),
        beside: Some("hmac_alone"),
        run: template,
    },
];

/// Signs nothing.
struct Nothing(Needs);

/// Answers at once and does nothing.
#[derive(Clone)]
struct Bare;

const API_KEY: &str = "0123456789abcdef";
const SECRET: &str = "9f86d081884c7d659a2feaa0c55ad015";
const BODY: &[u8] = br#"{"category":"linear","symbol":"BTCUSDT","side":"Buy","orderType":"Limit","qty":"1","price":"2"}"#;

// === impl Case ===

impl Case {
    /// Makes calls, or those of the bare loop.
    pub(crate) fn run(&self, calls: u32, bare: bool) {
        (self.run)(calls, bare);
    }
}

/// Returns the case with that name.
pub(crate) fn named(name: &str) -> Option<&'static Case> {
    ALL.iter().find(|case| case.name == name)
}

// === impl Bound ===

impl Bound {
    /// Says whether it was kept.
    pub(crate) fn verdict(self, instructions: Option<f64>, ratio: Option<f64>) -> String {
        let (value, bound, unit) = match self {
            Self::Instructions(bound) => (instructions, bound, "instr"),
            Self::Ratio(bound) => (ratio, bound, "x"),
        };
        let kept = match value {
            Some(value) if value <= bound => "kept",
            Some(_) => "EXCEEDED",
            None => "unknown",
        };
        format!("<= {bound} {unit}: {kept}")
    }
}

// === impl Nothing ===

impl Sign for Nothing {
    fn needs(&self) -> Needs {
        self.0
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        black_box(draft.headers());
        Ok(Validity::for_window(fresh.time(), Duration::from_secs(5)))
    }
}

// === impl Bare ===

impl<B> Service<Request<B>> for Bare {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(Full::new(Bytes::new()))))
    }
}

// One copy in the program, so that a case pays for no other inlining than its bare loop.
#[inline(never)]
fn order(body: &Bytes) -> Request<Bytes> {
    let mut request = Request::new(body.clone());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = "https://venue.example/v5/order/create"
        .parse()
        .expect("a URI");
    let headers = request.headers_mut();
    let json = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, json.clone());
    headers.insert(header::ACCEPT, json);
    for name in ["x-client", "x-request-id", "idempotency-key"] {
        let value = HeaderValue::from_static("6f1c2a34-5d0e-4c8b-9a27-1b7d3e5f9c02");
        headers.insert(HeaderName::from_static(name), value);
    }
    request
}

fn layer(calls: u32, bare: bool, needs: Needs) {
    let layer = SignLayer::new(Nothing(needs), "https://venue.example").expect("an origin");
    let body = Bytes::from_static(BODY);
    if bare {
        drive(Bare, calls, &body);
    } else {
        drive(layer.layer(Bare), calls, &body);
    }
}

/// What a layer has besides a signer that looks at the body.
#[derive(Clone, Copy)]
enum With {
    Context,
    Nonces,
    Strict,
    Offset,
    Classifier,
    Async,
}

/// Signs nothing, and has to be asked.
struct Asked;

impl AsyncSign for Asked {
    type Future = Ready<Result<Signed, SignError>>;

    fn needs_async(&self) -> Needs {
        Needs::BODY
    }

    fn sign_async(&self, draft: Draft, fresh: Fresh) -> Self::Future {
        let end = Validity::for_window(fresh.time(), Duration::from_secs(5));
        ready(Ok(Signed::new(draft, end)))
    }
}

/// Answers with a date.
#[derive(Clone)]
struct Dated(HeaderValue);

impl<B> Service<Request<B>> for Dated {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        black_box(&request);
        let mut response = Response::new(Full::new(Bytes::new()));
        response.headers_mut().insert(header::DATE, self.0.clone());
        ready(Ok(response))
    }
}

fn layer_with(calls: u32, bare: bool, with: With) {
    let body = Bytes::from_static(BODY);
    let origin = "https://venue.example";
    let builder = || SignLayer::builder(Nothing(Needs::BODY)).origin(origin);
    let nonces = || Nonces::new(Unit::Millis);
    let built = "a layer that can work";
    match with {
        With::Context => {
            let context = CallContext::new();
            let put = move |mut request: Request<Full<Bytes>>| {
                context.put(request.extensions_mut());
                request
            };
            if bare {
                drive(Bare.map_request(put), calls, &body);
            } else {
                let layer = builder().build().expect(built);
                drive(layer.layer(Bare).map_request(put), calls, &body);
            }
        }
        With::Offset => {
            let dated = Dated(HeaderValue::from_static("Tue, 14 Nov 2023 22:13:20 GMT"));
            if bare {
                drive(dated, calls, &body);
            } else {
                let layer = builder().clock_offset(ClockOffset::new()).build();
                drive(layer.expect(built).layer(dated), calls, &body);
            }
        }
        _ if bare => drive(Bare, calls, &body),
        With::Nonces => {
            let layer = builder().nonces(nonces()).build().expect(built);
            drive(layer.layer(Bare), calls, &body);
        }
        With::Strict => {
            let strict = Nonces::builder(Unit::Millis).strict(Strict::UntilAnswered);
            let nonces = strict.build(SigningTime::EPOCH).expect(built);
            let layer = builder().nonces(nonces).build().expect(built);
            drive(layer.layer(Bare), calls, &body);
        }
        With::Classifier => {
            let rule = |seen: Judged<'_>| {
                let skew = seen.head.headers.get("x-error").is_some();
                skew.then_some(Answer::Rejected {
                    reason: Reason::ClockSkew,
                })
            };
            let classifier = HttpClassifier::builder().head_rule(rule);
            let builder = builder().nonces(nonces());
            let layer = builder.classifier(classifier.build().expect(built)).build();
            drive(layer.expect(built).layer(Bare), calls, &body);
        }
        With::Async => {
            let layer = SignLayer::new(Asked, origin).expect(built);
            drive(layer.layer(Bare), calls, &body);
        }
    }
}

fn drive<S, B>(mut service: S, calls: u32, body: &Bytes)
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>, Error = BoxError>,
{
    // The first calls carry the marks by which layers see their order, which is no cost of a call.
    let calls = StageStamp::ANSWERS.saturating_add(calls);
    let burst = pin!(async {
        for _ in 0..calls {
            let request = order(body).map(Full::new);
            let ready = service.ready().await.expect("is always ready");
            assert!(black_box(&ready.call(request).await).is_ok(), "never fails");
        }
    });
    // Nothing here ever waits, so no executor takes part in the figures.
    let polled = burst.poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_ready(), "the bare service never waits");
}

fn alone(calls: u32, bare: bool) {
    let body = Bytes::from_static(BODY);
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
    let message = [b"1700000000000", API_KEY.as_bytes(), b"5000", BODY].concat();
    for _ in 0..calls {
        let request = order(&body);
        if !bare {
            let mut mac = mac.clone();
            mac.update(black_box(&message));
            black_box(mac.finalize().into_bytes());
        }
        black_box(&request);
    }
}

fn by_hand(calls: u32, bare: bool) {
    let body = Bytes::from_static(BODY);
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
    for _ in 0..calls {
        let mut request = order(&body);
        if !bare {
            sign_by_hand(&mac, &mut request);
        }
        black_box(&request);
    }
}

#[inline]
fn sign_by_hand(mac: &Hmac<Sha256>, request: &mut Request<Bytes>) {
    let time = black_box(1_700_000_000_000_u64).to_string();
    let mut mac = mac.clone();
    mac.update(time.as_bytes());
    mac.update(API_KEY.as_bytes());
    mac.update(b"5000");
    mac.update(request.body());
    let signature = base16ct::lower::encode_string(&mac.finalize().into_bytes());
    let headers = request.headers_mut();
    for (name, text) in [
        ("x-bapi-api-key", API_KEY),
        ("x-bapi-timestamp", &time),
        ("x-bapi-recv-window", "5000"),
        ("x-bapi-sign", &signature),
    ] {
        let value = HeaderValue::from_str(text).expect("a value");
        headers.insert(HeaderName::from_static(name), value);
    }
}

fn template(calls: u32, bare: bool) {
    let body = Bytes::from_static(BODY);
    let template = Template::bybit(API_KEY, SECRET).expect("a key");
    let time = SigningTime::from_unit(1_700_000_000_000, Unit::Millis).expect("a time");
    agrees(&template, time, &body);
    for _ in 0..calls {
        let request = order(&body);
        if bare {
            black_box(&request);
            continue;
        }
        let mut draft = Draft::new(request);
        let signed = template.sign(&mut draft, black_box(&Fresh::new(time)));
        assert!(black_box(signed).is_ok(), "never fails");
        black_box(&draft);
    }
}

/// The template is worth nothing beside a signature that is another one.
fn agrees(template: &Template, time: SigningTime, body: &Bytes) {
    let (mut draft, mut request) = (Draft::new(order(body)), order(body));
    let mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("a key");
    sign_by_hand(&mac, &mut request);
    let signed = template.sign(&mut draft, &Fresh::new(time));
    assert!(signed.is_ok(), "never fails");
    assert_eq!(draft.headers(), request.headers(), "it signs otherwise");
}
