//! HTTP Message Signatures, verified by programs that others wrote.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
};

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Request, header};
use http_body_util::{BodyExt, Full};
use httpsig_hyper::{
    MessageSignatureReq, RequestContentDigest,
    prelude::{AlgorithmName, PublicKey, SharedKey},
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use tower::{BoxError, Layer, ServiceExt, service_fn};
use tower_outcome::{
    SignLayer,
    sign::{Component, DigestAlgorithm, Key, MessageSigner, Secret, SignedBody},
};
use tower_outcome_testkit::{self as testkit, Answer, Venue};

/// Keys of RFC 9421, appendix B.1.
const SHARED: &str =
    "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";
const ED25519: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
const ED25519_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n";
const P256: &str = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIFKbhfNZfpDsW43+0+JjUr9K+bTeuxopu653+hBaXGA7oAoGCCqGSM49\nAwEHoUQDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lfw0EkjqF7xB4FivAxzic30tMM\n4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==\n-----END EC PRIVATE KEY-----\n";
const P256_PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf\nw0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==\n-----END PUBLIC KEY-----\n";
/// Among them the key of RFC 7515, appendix A.2.
const ASYMMETRIC: &str = include_str!("../crates/tower-outcome-sign/tests/data/asymmetric.json");

const ACCOUNT: HeaderName = HeaderName::from_static("x-account");

/// A key, and what others need of it.
struct Pair {
    /// Also its name.
    algorithm: &'static str,
    key: Key,
    public: String,
}

/// What is changed on the way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    Nothing,
    Body,
    Path,
    Query,
    Header,
    Created,
    Nonce,
}

/// A gateway in another process, which ends with this.
struct Python {
    child: Child,
    url: String,
}

const CHANGES: [Change; 6] = [
    Change::Body,
    Change::Path,
    Change::Query,
    Change::Header,
    Change::Created,
    Change::Nonce,
];

// === impl Pair ===

impl Pair {
    fn simple() -> Vec<Self> {
        let secret = Secret::base64(SHARED).unwrap();
        let pair = |algorithm, key, public: &str| Self {
            algorithm,
            key,
            public: public.to_owned(),
        };
        vec![
            pair("hmac-sha256", Key::hmac_sha256(secret).unwrap(), SHARED),
            pair(
                "ed25519",
                Key::ed25519_pem(ED25519).unwrap(),
                ED25519_PUBLIC,
            ),
            pair(
                "ecdsa-p256-sha256",
                Key::ecdsa_p256_pem(P256).unwrap(),
                P256_PUBLIC,
            ),
        ]
    }

    fn rsa() -> Vec<Self> {
        let vectors: Vec<Value> = serde_json::from_str(ASYMMETRIC).unwrap();
        let inputs = &vectors[0]["inputs"];
        let (private, public) = (&inputs["private_key_pkcs8"], &inputs["public_key_spki"]);
        let (private, public) = (private.as_str().unwrap(), public.as_str().unwrap());
        let pair = |algorithm, key| Self {
            algorithm,
            key,
            public: public.to_owned(),
        };
        vec![
            pair("rsa-v1_5-sha256", Key::rsa_sha256_pem(private).unwrap()),
            pair("rsa-pss-sha512", Key::rsa_pss_sha512_pem(private).unwrap()),
        ]
    }

    fn signer(&self) -> MessageSigner {
        MessageSigner::builder(self.key.clone())
            .key_id(self.algorithm)
            .cover([
                Component::method(),
                Component::target_uri(),
                Component::authority(),
                Component::path(),
                Component::query(),
                Component::query_param("symbol"),
                Component::field(header::CONTENT_TYPE),
                Component::field(ACCOUNT),
            ])
            .content_digest(DigestAlgorithm::Sha512)
            .expires_after(std::time::Duration::from_secs(60))
            .algorithm()
            .nonce()
            .build()
            .unwrap()
    }
}

// === impl Change ===

impl Change {
    /// Changes one byte.
    fn apply(self, request: &mut Request<Bytes>) {
        let target = request.uri().to_string();
        match self {
            Self::Nothing => {}
            Self::Body => *request.body_mut() = Bytes::from(r#"{"quantity": 9}"#),
            Self::Path => *request.uri_mut() = target.replace("order", "ordes").parse().unwrap(),
            Self::Query => *request.uri_mut() = target.replace("BTC", "BTD").parse().unwrap(),
            Self::Header => {
                let value = HeaderValue::from_static("account-8");
                request.headers_mut().insert(ACCOUNT, value);
            }
            Self::Created | Self::Nonce => {
                let input = request.headers_mut().get_mut("signature-input").unwrap();
                let text = input.to_str().unwrap();
                let name = match self {
                    Self::Created => ";created=",
                    _ => ";nonce=\"",
                };
                // A second earlier or later, another digit of the nonce.
                let at = text.find(name).unwrap() + name.len();
                let at = if self == Self::Created { at + 9 } else { at };
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] ^= 1;
                *input = HeaderValue::from_bytes(&bytes).unwrap();
            }
        }
    }
}

// === impl Python ===

impl Python {
    /// Starts the gateway. `None`, and a word about it, where there is no Python to run it; that is
    /// an error where `CI` is set.
    fn start(pairs: &[Pair]) -> Option<Self> {
        let Some(python) = env::var_os("TOWER_OUTCOME_PYTHON") else {
            let missing = "TOWER_OUTCOME_PYTHON names no Python with http-message-signatures; \
                           tests/run makes one where there is a python3 with venv and pip";
            assert!(env::var_os("CI").is_none(), "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/messages/gateway.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let keys: serde_json::Map<_, _> = pairs
            .iter()
            .map(|pair| {
                (
                    pair.algorithm.to_owned(),
                    json!([pair.algorithm, pair.public]),
                )
            })
            .collect();
        let mut stdin = child.stdin.take().unwrap();
        writeln!(stdin, "{}", Value::from(keys)).unwrap();
        let mut port = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut port).unwrap();
        let url = format!("http://127.0.0.1:{}", port.trim());
        Some(Self { child, url })
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // If it is gone already, so much the better.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A gateway that has its requests verified by the crate httpsig.
fn httpsig(algorithm: AlgorithmName, public: String) -> Venue {
    let demand = move |request: &testkit::Request| {
        let host = request.headers.iter().find(|(name, _)| name == "host");
        let mut received = Request::builder()
            .method(request.method.as_str())
            .uri(format!("http://{}{}", host.unwrap().1, request.path));
        for (name, value) in &request.headers {
            received = received.header(name, value);
        }
        let received = received.body(Full::new(request.body.clone())).unwrap();
        // Nothing in it waits.
        let digested = received.verify_content_digest().now_or_never().unwrap();
        let Ok(received) = digested else {
            return Err(refusal("digest"));
        };
        let verified = match algorithm {
            AlgorithmName::HmacSha256 => {
                let key = SharedKey::from_base64(&algorithm, &public).unwrap();
                received.verify_message_signature(&key, None).now_or_never()
            }
            _ => {
                let key = PublicKey::from_pem(&algorithm, &public).unwrap();
                received.verify_message_signature(&key, None).now_or_never()
            }
        };
        verified
            .unwrap()
            .map(|_| ())
            .map_err(|error| refusal(&format!("signature: {error}")))
    };
    Venue::builder().demand(demand).start().unwrap()
}

fn refusal(reason: &str) -> Answer {
    Answer::status(401).body(reason.to_owned())
}

/// Sends an order through the layer, and returns how it was answered.
async fn send(url: &str, pair: &Pair, change: Change) -> (u16, String) {
    let client =
        Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(HttpConnector::new());
    // Whoever is on the way.
    let way = service_fn(move |request: Request<SignedBody<Full<Bytes>>>| {
        let client = client.clone();
        async move {
            let (head, body) = request.into_parts();
            let mut request = Request::from_parts(head, body.collect().await?.to_bytes());
            change.apply(&mut request);
            Ok::<_, BoxError>(client.request(request.map(Full::new)).await?)
        }
    });
    let signed = SignLayer::builder(pair.signer())
        .origin(url)
        .build()
        .unwrap();
    let order = Request::post(format!("{url}/v1/order?symbol=BTC&note=a%20b"))
        .header(header::CONTENT_TYPE, "application/json")
        .header(ACCOUNT, "account-7")
        .header("x-key", pair.algorithm)
        .body(Full::new(Bytes::from(r#"{"quantity": 1}"#)))
        .unwrap();
    let answer = signed.layer(way).oneshot(order).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

/// Checks that a gateway accepts what was signed, and nothing that was changed since, for the reason
/// that it has to have.
async fn interoperates(url: &str, pair: &Pair, digest: &str, signature: &str) {
    let (status, reason) = send(url, pair, Change::Nothing).await;
    assert_eq!(status, 200, "{}: {reason}", pair.algorithm);
    for change in CHANGES {
        let (status, reason) = send(url, pair, change).await;
        assert_eq!(status, 401, "{} {change:?}: {reason}", pair.algorithm);
        let expected = if change == Change::Body {
            digest
        } else {
            signature
        };
        assert!(
            reason.contains(expected),
            "{} {change:?}: {reason}",
            pair.algorithm
        );
    }
}

#[tokio::test]
async fn httpsig_accepts_what_was_signed_and_nothing_else() {
    for pair in Pair::simple() {
        let venue = httpsig(pair.algorithm.parse().unwrap(), pair.public.clone());
        interoperates(&venue.url(""), &pair, "digest", "signature").await;
    }
}

#[tokio::test]
async fn http_message_signatures_of_python_accepts_what_was_signed_and_nothing_else() {
    let mut pairs = Pair::simple();
    pairs.extend(Pair::rsa());
    let Some(gateway) = Python::start(&pairs) else {
        return;
    };
    for pair in &pairs {
        interoperates(&gateway.url, pair, "igest", "InvalidSignature").await;
    }
}
