//! What must not be seen is neither in what is traced during whole calls nor in what a panic says.
#![cfg(all(
    feature = "aws-sigv4",
    feature = "hmac",
    feature = "jwt",
    feature = "message-signatures"
))]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::{
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use tower::{Layer, ServiceExt, service_fn};
use tower_outcome_core::{BoxError, ConfigError, HttpClassifier};
use tower_outcome_sign::{
    AwsCredentials, AwsSigner, Component, DigestAlgorithm, Draft, Fresh, JwtKey, JwtSigner, Key,
    MessageSigner, Nonces, Secret, Sign, SignError, SignLayer, SignedBody, SigningTime, Template,
    Unit, Validity, Verifier,
};

mod traced;

use self::traced::Log;

const SEED: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const PHRASE: &str = "hunter2-the-passphrase";
const SECRET: &str = "hunter2-the-secret";
const HIDDEN: [&str; 4] = [PHRASE, SECRET, SEED, "hunter2"];

type Body = UnsyncBoxBody<Bytes, io::Error>;
type Signer = Box<dyn Sign + Send + Sync>;

#[track_caller]
fn check(what: &str, text: &str) {
    for secret in HIDDEN {
        assert!(!text.contains(secret), "{what} shows {secret}: {text}");
    }
}

fn signers() -> Vec<Signer> {
    let key = Key::hmac_sha256(Secret::new(SECRET)).unwrap();
    let message = MessageSigner::builder(key)
        .cover([Component::method(), Component::target_uri()])
        .content_digest(DigestAlgorithm::Sha256);
    let aws = AwsCredentials::new("AKIDEXAMPLE", SECRET).unwrap();
    let aws = aws.with_session_token("hunter2-token").unwrap();
    let token = JwtSigner::coinbase("k", JwtKey::ed25519(SEED).unwrap());
    vec![
        Box::new(Template::okx("k", SECRET, PHRASE).unwrap()),
        Box::new(Template::binance("k", SECRET).unwrap()),
        Box::new(Template::kraken("k", SEED).unwrap()),
        Box::new(Template::robinhood("k", SEED).unwrap()),
        Box::new(message.build().unwrap()),
        Box::new(token.unwrap()),
        Box::new(AwsSigner::new(aws, "us-east-1", "s3").unwrap()),
    ]
}

fn whole(body: &'static str) -> Body {
    let body = Full::new(Bytes::from(body));
    body.map_err(|never| match never {}).boxed_unsync()
}

fn broken() -> Body {
    let frames: [Result<Frame<Bytes>, io::Error>; 2] =
        [Ok(Frame::data("a".into())), Err(io::Error::other("gone"))];
    StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync()
}

/// Makes a call, and traces what a caller would of how it went.
async fn call(layer: SignLayer<Signer>, request: Request<Body>, answers: bool) -> bool {
    let client = service_fn(move |request: Request<SignedBody<Body>>| async move {
        // What is below traces requests.
        tracing::trace!(?request, headers = ?request.headers(), "sent");
        if answers {
            Ok(Response::new(Full::<Bytes>::default()))
        } else {
            Err(BoxError::from(io::Error::other("refused")))
        }
    });
    tracing::trace!(?layer, ?request, "called");
    let result = layer.layer(client).oneshot(request).await;
    match &result {
        Ok(_) => tracing::trace!("answered"),
        Err(error) => {
            let mut cause: Option<&dyn std::error::Error> = Some(&**error);
            while let Some(error) = cause {
                tracing::trace!(?error, %error, "failed");
                cause = error.source();
            }
        }
    }
    result.is_ok()
}

#[tokio::test]
async fn no_secret_is_traced_whether_a_call_works_or_fails() {
    let log = Log::default();
    let guard = tracing::subscriber::set_default(log.clone());
    for number in 0..signers().len() {
        let layer = |clock: SigningTime| {
            SignLayer::builder(signers().remove(number))
                .origin("https://a.test")
                .body_limit(8)
                .nonces(Nonces::new(Unit::Millis))
                .classifier(HttpClassifier::default())
                .clock(Arc::new(tower_outcome_core::ManualClock::new(
                    clock.to_system_time(),
                )))
                .build()
                .unwrap()
        };
        let now = SigningTime::from_unit(1_700_000_000, Unit::Seconds).unwrap();
        let post = |uri: &str, body| {
            let form = "application/x-www-form-urlencoded";
            let request = Request::post(uri).header("content-type", form);
            request.body(body).unwrap()
        };
        let good = || post("https://a.test/a?b=c", whole("d=e"));
        assert!(call(layer(now), good(), true).await, "signer {number}");
        assert!(!call(layer(now), good(), false).await);
        for wrong in [
            post("https://b.test/", whole("")),
            post("https://a.test/", broken()),
            post("https://a.test/", whole("more than eight")),
        ] {
            assert!(!call(layer(now), wrong, true).await);
        }
        // What the signer sets is there already; those that are not among these sign it.
        let mut conflict = good();
        for name in [
            "authorization",
            "x-mbx-apikey",
            "ok-access-sign",
            "signature",
        ] {
            let value = "mine".parse().unwrap();
            conflict.headers_mut().insert(name, value);
        }
        let _ = call(layer(now), conflict, true).await;
    }
    drop(guard);
    let text = log.0.lock().unwrap();
    for heard in ["called", "sent", "answered", "failed"] {
        assert!(text.contains(heard), "{text}");
    }
    check("the trace", &text);
}

/// Panics with an error, as programs do.
fn fails<E: fmt::Debug>(result: Result<(), E>) {
    result.unwrap();
}

/// Fails while it signs, as signers that others write may.
struct Panics(Template);

impl Sign for Panics {
    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        panic!("{:?} {draft:?} {fresh:?}", self.0)
    }
}

#[test]
fn no_secret_is_in_what_a_panic_says() {
    static SAID: Mutex<String> = Mutex::new(String::new());

    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(|info| {
        let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
        said.push_str(&format!("{info}\n"));
    }));
    let panics = |run: &dyn Fn()| assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    let config: [fn() -> ConfigError; 6] = [
        || Template::okx("k", SECRET, "hunter2\n").unwrap_err(),
        || Template::binance("hunter2\n", SECRET).unwrap_err(),
        || Template::kraken("k", PHRASE).unwrap_err(),
        || Key::ed25519_pem(PHRASE).unwrap_err(),
        || JwtKey::ed25519(PHRASE).unwrap_err(),
        || AwsCredentials::new("k", "hunter2 \n").unwrap_err(),
    ];
    for error in config {
        panics(&|| fails(Err(error())));
        panics(&|| panic!("{}", error()));
    }
    let okx = || Template::okx("k", SECRET, PHRASE).unwrap();
    let fresh = || Fresh::new(SigningTime::EPOCH);
    let signed = || {
        let request = Request::post("https://a.test/").body(Bytes::new()).unwrap();
        let mut draft = Draft::new(request);
        okx().sign(&mut draft, &fresh()).unwrap();
        draft
    };
    panics(&|| fails(Err(okx())));
    panics(&|| fails(Err(Verifier::new(okx()).unwrap())));
    panics(&|| fails(Err(signed())));
    panics(&|| fails(Err(signed().into_request())));
    panics(&|| {
        // A second signature is a conflict.
        let _ = okx().sign(&mut signed(), &fresh()).unwrap();
    });
    // In the middle of a call, above and below the layer.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let layer = SignLayer::new(Panics(okx()), "https://a.test").unwrap();
    let request = || Request::post("https://a.test/").body(whole("a")).unwrap();
    panics(&|| {
        let client = service_fn(async |_: Request<SignedBody<Body>>| {
            Ok::<_, io::Error>(Response::new(Full::<Bytes>::default()))
        });
        let _ = runtime.block_on(layer.layer(client).oneshot(request()));
    });
    let layer = SignLayer::new(okx(), "https://a.test").unwrap();
    panics(&|| {
        let client = service_fn(async |request: Request<SignedBody<Body>>| {
            if !request.headers().is_empty() {
                panic!("{request:?}");
            }
            Ok::<_, io::Error>(Response::new(Full::<Bytes>::default()))
        });
        let _ = runtime.block_on(layer.layer(client).oneshot(request()));
    });
    std::panic::set_hook(before);
    let said = SAID.lock().unwrap();
    assert!(said.matches("panicked at").count() >= 19, "{said}");
    check("a panic", &said);
}
