//! What vendors and standards have published, and what was computed from their rules.

use std::collections::BTreeMap;

use base64ct::{Base64UrlUnpadded, Encoding};
use bytes::Bytes;
use http::Request;
use serde_json::Value;
use tower_outcome_sign::{
    Key, Nonce, Part, Secret, Template, TextEncoding, Token, Verifier, VerifyError,
};

use crate::support::{at_ms, fresh_ms, header, request, secs, sign};

const VECTORS: &str = include_str!("../data/vectors.json");

struct Vector<'a>(&'a Value);

impl Vector<'_> {
    fn input(&self, name: &str) -> &str {
        self.find(name)
            .unwrap_or_else(|| panic!("{}: no {name}", self.scheme()))
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.0["inputs"][name].as_str()
    }

    fn scheme(&self) -> &str {
        self.0["scheme"].as_str().unwrap()
    }

    fn expected(&self) -> &str {
        self.0["expected"].as_str().unwrap()
    }

    fn message(&self) -> Bytes {
        Bytes::from(self.input("message").to_owned())
    }
}

/// Signs a message as it is: the body of a request.
fn primitive(key: Key, encoding: TextEncoding, message: Bytes) -> (Template, Request<Bytes>) {
    let template = Template::builder(key)
        .sign([Part::Body])
        .signature_as(encoding)
        .header("x-signature", [Part::Signature])
        .build()
        .unwrap();
    let signed = sign(&template, request("POST", "/", message), &fresh_ms(0)).unwrap();
    (template, signed)
}

fn sha256(secret: Secret) -> Key {
    Key::hmac_sha256(secret).unwrap()
}

fn text_key(vector: &Vector<'_>) -> Key {
    sha256(Secret::new(vector.input("secret")))
}

/// Signs as the vector says; returns the template, the request and the signature in it.
fn signed(vector: &Vector<'_>) -> (Template, Request<Bytes>, String) {
    let hex = TextEncoding::HexLower;
    let base64 = TextEncoding::Base64;
    let scheme = vector.scheme();
    let by_hand = |key, encoding, message| {
        let (template, signed) = primitive(key, encoding, message);
        let signature = header(&signed, "x-signature").to_owned();
        (template, signed, signature)
    };
    let name = scheme.split(' ').next().unwrap();
    match name {
        "binance-hmac-sha256-hex" => binance(vector),
        "robinhood-crypto-ed25519-base64" => robinhood(vector),
        "kraken-spot-api-sign" => {
            let template = Template::kraken("key", vector.input("secret_b64")).unwrap();
            // The nonce is put in front by the signer.
            let data = vector
                .input("post_data")
                .split_once('&')
                .unwrap()
                .1
                .to_owned();
            let nonce = Nonce::new(vector.input("nonce").parse().unwrap());
            let fresh = fresh_ms(0).with_nonce(nonce);
            let request = request("POST", vector.input("uri_path"), data);
            let signed = sign(&template, request, &fresh).unwrap();
            assert_eq!(signed.body(), vector.input("post_data").as_bytes());
            let signature = header(&signed, "api-sign").to_owned();
            (template, signed, signature)
        }
        "kraken-futures-authent" => {
            let template = Template::kraken_futures("key", vector.input("secret_b64")).unwrap();
            let nonce = Nonce::new(vector.input("nonce").parse().unwrap());
            let uri = format!("/derivatives{}", vector.input("endpoint_path"));
            let request = request("POST", &uri, vector.input("post_data").to_owned());
            let signed = sign(&template, request, &fresh_ms(0).with_nonce(nonce)).unwrap();
            let signature = header(&signed, "authent").to_owned();
            (template, signed, signature)
        }
        "deribit-rest-hmac-sha256-hex" => {
            let template =
                Template::deribit(vector.input("client_id"), vector.input("secret")).unwrap();
            let request = request(
                "GET",
                "/api/v2/private/get_account_summary?currency=BTC",
                "",
            );
            let fresh = fresh_ms(1_576_074_319_000).with_token(Token::text("1iqt2wls"));
            let signed = sign(&template, request, &fresh).unwrap();
            let whole = header(&signed, "authorization");
            let expected = vector.input("header").replace("<sig>", vector.expected());
            assert_eq!(whole, expected);
            (template, signed, vector.expected().to_owned())
        }
        "okx-ok-access-sign-hmac-sha256-base64" => {
            let template = Template::okx("key", vector.input("secret"), "pass").unwrap();
            let message = vector.input("message");
            let request = match message.split_once("POST") {
                Some((_, rest)) => {
                    let (path, body) = rest.split_at(rest.find('{').unwrap());
                    request("POST", path, body.to_owned())
                }
                None => request("GET", vector.input("request_path"), ""),
            };
            let signed = sign(&template, request, &fresh_ms(1_607_418_537_715)).unwrap();
            assert_eq!(
                header(&signed, "ok-access-timestamp"),
                "2020-12-08T09:08:57.715Z"
            );
            let signature = header(&signed, "ok-access-sign").to_owned();
            (template, signed, signature)
        }
        "bitmex-api-signature-hmac-sha256-hex" => {
            let template =
                Template::bitmex(vector.input("api_key"), vector.input("secret")).unwrap();
            let message = vector.input("message").strip_prefix("GET").unwrap();
            let (path, expires) = message.split_at(message.len() - 10);
            // It expires ten seconds later.
            let time: u64 = expires.parse().unwrap();
            let signed = sign(
                &template,
                request("GET", path, ""),
                &fresh_ms((time - 10) * 1000),
            )
            .unwrap();
            assert_eq!(header(&signed, "api-expires"), expires);
            let signature = header(&signed, "api-signature").to_owned();
            (template, signed, signature)
        }
        "bybit-v5-x-bapi-sign-hmac-sha256-hex" => {
            let template =
                Template::bybit(vector.input("api_key"), vector.input("secret")).unwrap();
            let payload = vector.input("payload").to_owned();
            let request = if payload.starts_with('{') {
                request("POST", "/v5/order/create", payload)
            } else {
                request("GET", &format!("/v5/position/list?{payload}"), "")
            };
            let fresh = fresh_ms(vector.input("timestamp").parse().unwrap());
            let signed = sign(&template, request, &fresh).unwrap();
            assert_eq!(
                header(&signed, "x-bapi-recv-window"),
                vector.input("recv_window")
            );
            let signature = header(&signed, "x-bapi-sign").to_owned();
            (template, signed, signature)
        }
        "bitstamp-v2-x-auth-signature-hmac-sha256-hex" => {
            let template = Template::bitstamp("test_key", vector.input("secret")).unwrap();
            let mut request = request(
                "POST",
                "https://www.bitstamp.net/api/v2/balance/",
                "foo=bar",
            );
            let form = "application/x-www-form-urlencoded".parse().unwrap();
            request.headers_mut().insert("content-type", form);
            let fresh = fresh_ms(1_567_755_304_968)
                .with_token(Token::text("f93c979d-b00d-43a9-9b9c-fd4cd9547fa6"));
            let signed = sign(&template, request, &fresh).unwrap();
            assert_eq!(header(&signed, "x-auth"), "BITSTAMP test_key");
            let signature = header(&signed, "x-auth-signature").to_owned();
            (template, signed, signature)
        }
        "coinbase-exchange-cb-access-sign-hmac-sha256-base64" => {
            let secret = vector.input("secret_b64");
            let template = Template::coinbase_exchange("key", secret, "pass").unwrap();
            let message = vector.input("message");
            let body = message[message.find('{').unwrap()..].to_owned();
            let request = request("POST", "/orders", body);
            let signed = sign(&template, request, &fresh_ms(1_700_000_000_999)).unwrap();
            let signature = header(&signed, "cb-access-sign").to_owned();
            (template, signed, signature)
        }
        "stripe-webhook-v1-hmac-sha256-hex" => {
            let template = Template::stripe_webhook(vector.input("secret")).unwrap();
            let (time, body) = vector.input("signed_payload").split_once('.').unwrap();
            let fresh = fresh_ms(time.parse::<u64>().unwrap() * 1000);
            let request = request("POST", "/hook", body.to_owned());
            let signed = sign(&template, request, &fresh).unwrap();
            let whole = header(&signed, "stripe-signature");
            let signature = whole.split_once(",v1=").unwrap().1.to_owned();
            (template, signed, signature)
        }
        "twilio-x-twilio-signature-hmac-sha1-base64" => twilio(vector),
        "github-webhook-hmac-sha256-hex" => {
            let template = Template::github_webhook(vector.input("secret")).unwrap();
            let request = request("POST", "/hook", vector.message());
            let signed = sign(&template, request, &fresh_ms(0)).unwrap();
            let whole = header(&signed, "x-hub-signature-256");
            let signature = whole.strip_prefix("sha256=").unwrap().to_owned();
            (template, signed, signature)
        }
        "shopify-webhook-hmac-sha256-base64" => {
            let template = Template::shopify_webhook(vector.input("secret")).unwrap();
            let request = request("POST", "/hook", vector.message());
            let signed = sign(&template, request, &fresh_ms(0)).unwrap();
            let signature = header(&signed, "x-shopify-hmac-sha256").to_owned();
            (template, signed, signature)
        }
        "slack-v0-hmac-sha256-hex" => {
            let template = Template::slack_webhook(vector.input("secret")).unwrap();
            let (time, body) = vector.input("message")[3..].split_once(':').unwrap();
            let fresh = fresh_ms(time.parse::<u64>().unwrap() * 1000);
            let request = request("POST", "/hook", body.to_owned());
            let signed = sign(&template, request, &fresh).unwrap();
            let whole = header(&signed, "x-slack-signature");
            let signature = whole.strip_prefix("v0=").unwrap().to_owned();
            (template, signed, signature)
        }
        "standard-webhooks-v1-hmac-sha256-base64" => {
            let template = Template::standard_webhook(vector.input("secret")).unwrap();
            let mut parts = vector.input("message").splitn(3, '.');
            let (id, time, body) = (
                parts.next().unwrap(),
                parts.next().unwrap(),
                parts.next().unwrap(),
            );
            let fresh = fresh_ms(time.parse::<u64>().unwrap() * 1000).with_token(Token::text(id));
            let request = request("POST", "/hook", body.to_owned());
            let signed = sign(&template, request, &fresh).unwrap();
            let whole = header(&signed, "webhook-signature");
            let signature = whole.strip_prefix("v1,").unwrap().to_owned();
            (template, signed, signature)
        }
        "binance-ed25519-base64" => {
            let key = Key::ed25519_pem(vector.input("private_key_pem")).unwrap();
            by_hand(key, base64, vector.message())
        }
        "deribit-client_signature-hmac-sha256-hex"
        | "bybit-ws-auth-hmac-sha256-hex"
        | "stripe-webhook-hmac-sha256-hex" => by_hand(text_key(vector), hex, vector.message()),
        "adyen-webhook-hmac-sha256-base64" => {
            let key = sha256(Secret::hex(vector.input("key_hex")).unwrap());
            by_hand(key, base64, vector.message())
        }
        "hmac-sha256-hex" => {
            let key = sha256(Secret::hex(vector.input("key_hex")).unwrap());
            by_hand(key, hex, vector.message())
        }
        "hmac-sha512-hex" => {
            let secret = Secret::hex(vector.input("key_hex")).unwrap();
            by_hand(Key::hmac_sha512(secret).unwrap(), hex, vector.message())
        }
        "ed25519-hex" => {
            let seed = Secret::hex(vector.input("seed_hex")).unwrap();
            let message = vector.input("message_hex");
            let message = match message {
                "" => Bytes::new(),
                hex => Bytes::from(Secret::hex(hex).unwrap().expose().to_vec()),
            };
            by_hand(Key::ed25519(&seed).unwrap(), hex, message)
        }
        "oauth1-hmac-sha1-base64" => {
            let key = Key::hmac_sha1(Secret::new(vector.input("signing_key"))).unwrap();
            let message = Bytes::from(vector.input("base_string").to_owned());
            by_hand(key, base64, message)
        }
        "jws-hs256" => {
            let key = Base64UrlUnpadded::decode_vec(vector.input("key_b64url")).unwrap();
            let base64url = TextEncoding::Base64Url;
            by_hand(sha256(Secret::new(key)), base64url, vector.message())
        }
        "jws-eddsa" => {
            let seed = Base64UrlUnpadded::decode_vec(vector.input("d_b64url")).unwrap();
            let key = Key::ed25519(&Secret::new(seed)).unwrap();
            by_hand(key, TextEncoding::Base64Url, vector.message())
        }
        other => panic!("nobody signs as {other}"),
    }
}

fn binance(vector: &Vector<'_>) -> (Template, Request<Bytes>, String) {
    let secret = vector.input("secret");
    let message = vector.input("message");
    let rest = "&recvWindow=5000&timestamp=1499827319559";
    let signature_of = |signed: &Request<Bytes>| {
        let query = signed.uri().query().unwrap();
        query.split_once("signature=").unwrap().1.to_owned()
    };
    if let Some(query) = message
        .strip_suffix(rest)
        .filter(|_| vector.find("body").is_none())
    {
        let template = Template::binance(vector.input("api_key"), secret).unwrap();
        let uri = format!("https://api.binance.com/api/v3/order?{query}");
        let signed = sign(
            &template,
            request("POST", &uri, ""),
            &fresh_ms(1_499_827_319_559),
        );
        let signed = signed.unwrap();
        let signature = signature_of(&signed);
        assert_eq!(header(&signed, "x-mbx-apikey"), vector.input("api_key"));
        assert_eq!(
            signed.uri().query().unwrap(),
            format!("{message}&signature={signature}")
        );
        return (template, signed, signature);
    }
    // Where the caller brings everything, in the query or the body or both.
    let template = Template::builder(text_key(vector))
        .sign([Part::Query, Part::Body])
        .query("signature", [Part::Signature])
        .build()
        .unwrap();
    let body = vector.find("body").unwrap_or_default().to_owned();
    let query = vector.find("query");
    let request = match query {
        Some(query) => request("POST", &format!("/api/v3/order?{query}"), body),
        None => request("POST", "/api/v3/order", vector.message()),
    };
    let signed = sign(&template, request, &fresh_ms(0)).unwrap();
    let signature = signature_of(&signed);
    (template, signed, signature)
}

fn robinhood(vector: &Vector<'_>) -> (Template, Request<Bytes>, String) {
    let key_id = "rh-api-6148effc-c0b1-486c-8940-a1d099456be6";
    let template = Template::robinhood(key_id, vector.input("private_key_b64_seed")).unwrap();
    let message = vector.input("message");
    let body = message[message.find('{').unwrap()..].to_owned();
    let request = request("POST", "/api/v1/crypto/trading/orders/", body);
    let signed = sign(&template, request, &fresh_ms(1_698_708_981_000)).unwrap();
    let signature = header(&signed, "x-signature").to_owned();
    (template, signed, signature)
}

fn twilio(vector: &Vector<'_>) -> (Template, Request<Bytes>, String) {
    let template = Template::twilio_webhook(vector.input("auth_token")).unwrap();
    let params = vector.0["inputs"]["params"].as_array().unwrap();
    let fields = params.iter().map(|pair| {
        let value = pair[1].as_str().unwrap().replace('+', "%2B");
        format!("{}={value}", pair[0].as_str().unwrap())
    });
    let body = fields.collect::<Vec<_>>().join("&");
    let request = request("POST", vector.input("url"), body);
    let signed = sign(&template, request, &fresh_ms(0)).unwrap();
    let signature = header(&signed, "x-twilio-signature").to_owned();
    (template, signed, signature)
}

/// The time in a signed request, for whoever verifies it.
fn time_of(signed: &Request<Bytes>) -> u64 {
    for name in ["x-bapi-timestamp", "x-auth-timestamp"] {
        if signed.headers().contains_key(name) {
            return header(signed, name).parse().unwrap();
        }
    }
    for name in [
        "x-timestamp",
        "cb-access-timestamp",
        "webhook-timestamp",
        "x-slack-request-timestamp",
    ] {
        if signed.headers().contains_key(name) {
            return header(signed, name).parse::<u64>().unwrap() * 1000;
        }
    }
    if let Some(expires) = signed.headers().get("api-expires") {
        return (expires.to_str().unwrap().parse::<u64>().unwrap() - 10) * 1000;
    }
    if signed.headers().contains_key("ok-access-timestamp") {
        return 1_607_418_537_715;
    }
    if signed.headers().contains_key("stripe-signature") {
        return 1_492_774_577_000;
    }
    if signed.headers().contains_key("authorization") {
        return 1_576_074_319_000;
    }
    1_499_827_319_559
}

#[test]
fn every_vector_is_reproduced() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let mut seen = BTreeMap::new();
    for vector in &vectors {
        let vector = Vector(vector);
        let (_, _, signature) = signed(&vector);
        assert_eq!(signature, vector.expected(), "{}", vector.0);
        *seen.entry(vector.scheme().to_owned()).or_insert(0) += 1;
    }
    assert_eq!(vectors.len(), 44, "{seen:#?}");
}

#[test]
fn every_vector_verifies_and_one_changed_byte_does_not() {
    let vectors: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    for vector in &vectors {
        let vector = Vector(vector);
        let (template, signed, _) = signed(&vector);
        let verifier = Verifier::new(template).unwrap();
        let now = at_ms(time_of(&signed));
        verifier
            .verify(&signed, now)
            .unwrap_or_else(|error| panic!("{error}: {}", vector.0));
        let mut tampered = signed.clone();
        let mut body = tampered.body().to_vec();
        match body.last_mut() {
            Some(byte) => *byte ^= 1,
            None => body.push(b'x'),
        }
        *tampered.body_mut() = Bytes::from(body);
        // A form whose last byte is another may be a form of another content type, or none at all.
        assert!(verifier.verify(&tampered, now).is_err(), "{}", vector.0);
        if verifier.verify(&signed, now + secs(3600)) != Err(VerifyError::TooOld) {
            let undated = [
                "jws", "kraken", "github", "shopify", "twilio", "adyen", "hmac", "ed25519",
                "oauth1",
            ];
            let primitive = [
                "binance",
                "deribit-client",
                "bybit-ws",
                "stripe-webhook-hmac",
            ];
            assert!(
                undated
                    .iter()
                    .chain(&primitive)
                    .any(|name| vector.scheme().starts_with(name)),
                "{} has a time",
                vector.scheme()
            );
        }
    }
}
