//! What the traits are implemented for, and that both can be imported.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use tower::{Layer, ServiceExt};
use tower_outcome_sign::*;

use crate::{
    layer::Keep,
    support::{fresh_ms, request},
};

/// A signer that is written, with a key that is made here.
struct Written(Key);

impl Sign for Written {
    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        let message = format!("{}{}", fresh.time().as_secs(), draft.method());
        let signature = self.0.sign(message.as_bytes())?;
        let text: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        let value = text.parse().map_err(|_| SignError::encoding("x-sign"))?;
        draft.set_secret_header(http::HeaderName::from_static("x-sign"), value)?;
        Ok(Validity::UNLIMITED)
    }
}

fn written() -> Written {
    Written(Key::hmac_sha256(Secret::new("k")).unwrap())
}

#[test]
fn a_key_signs_and_verifies_bytes() {
    let key = written().0;
    // RFC 4231 in the small: what `openssl dgst -sha256 -hmac k` says of "5GET".
    let signature = key.sign(b"5GET").unwrap();
    assert!(key.verify(b"5GET", &signature));
    assert!(!key.verify(b"5PUT", &signature));
    assert!(!key.verify(b"5GET", &signature[..31]));
    assert!(!key.verify(b"5GET", &[]));
    let public = "jPItx4TLjcnSUnmnXQQyAKL4eJj3+oWNNMmmm2vATqk=";
    let public = Key::ed25519_public(Secret::base64(public).unwrap().expose()).unwrap();
    assert!(public.sign(b"5GET").is_err());
    assert!(!public.verify(b"5GET", &[0; 64]));
}

#[tokio::test]
async fn a_signer_that_is_left_out_leaves_requests_as_they_are() {
    let sent = |signer: Option<Template>| async {
        let keep = Keep::default();
        let layer = SignLayer::new(signer, "https://venue.test").unwrap();
        let order =
            http::Request::post("https://venue.test/orders").body(Full::new(Bytes::from("buy")));
        layer
            .layer(keep.clone())
            .oneshot(order.unwrap())
            .await
            .unwrap();
        let (head, body) = keep.0.lock().unwrap().remove(0);
        assert_eq!(body, "buy");
        head
    };
    let without = sent(None).await;
    assert!(without.headers.is_empty());
    assert_eq!(without.uri, "https://venue.test/orders");
    let with = sent(Some(Template::okx("k", "s", "p").unwrap())).await;
    assert!(with.headers.contains_key("ok-access-sign"));
}

#[tokio::test]
async fn signers_can_be_shared_and_boxed() {
    let written = Arc::new(written());
    // With everything imported there is one method of each name.
    assert_eq!(written.needs(), Needs::HEAD);
    let signed = |signer: &dyn Sign| {
        let mut draft = Draft::new(request("GET", "/", ""));
        signer.sign(&mut draft, &fresh_ms(5000)).unwrap();
        draft.headers()["x-sign"].clone()
    };
    let boxed: Box<dyn Sign + Send + Sync> = Box::new(Arc::clone(&written));
    let template: Arc<dyn Sign + Send + Sync> = Arc::new(Template::okx("k", "s", "p").unwrap());
    assert_eq!(signed(&written), signed(&boxed));
    assert_eq!(template.needs(), Needs::BODY);
    for signer in [boxed, Box::new(template)] {
        let keep = Keep::default();
        let layer = SignLayer::new(signer, "https://a.test").unwrap();
        let call = request("GET", "https://a.test/", "").map(Full::<Bytes>::new);
        layer.layer(keep.clone()).oneshot(call).await.unwrap();
        assert_eq!(keep.0.lock().unwrap().len(), 1);
    }
}
