//! What must not be seen is not: in no output of any key, signer, verifier or error, of any feature.

use std::fmt::{Debug, Write};

use base64ct::{Base64, Base64UrlUnpadded, Encoding};
use tower_outcome_core::ConfigError;
use tower_outcome_sign::{
    JwtKey, JwtSigner, Key, Part, Secret, SignLayer, Template, TextEncoding, Verifier,
};

use crate::support::{fresh_ms, request, sign};

/// A secret, and what can be seen of it if it is not hidden: its bytes in every form in which they
/// could be printed.
struct Hidden {
    forms: Vec<String>,
}

// === impl Hidden ===

impl Hidden {
    fn new(bytes: &[u8]) -> Self {
        let mut forms = vec![
            String::from_utf8_lossy(bytes).into_owned(),
            Base64::encode_string(bytes),
            Base64UrlUnpadded::encode_string(bytes),
        ];
        let (mut lower, mut upper, mut list) = (String::new(), String::new(), String::new());
        for byte in bytes {
            write!(lower, "{byte:02x}").unwrap();
            write!(upper, "{byte:02X}").unwrap();
            write!(list, "{byte}, ").unwrap();
        }
        forms.extend([lower, upper, list]);
        Self { forms }
    }

    /// The base64 between the two lines of a PEM, and its bytes.
    fn of_pem(pem: &str) -> Self {
        let lines = pem.lines().filter(|line| !line.starts_with("-----"));
        let body: String = lines.collect();
        let mut hidden = Self::new(&Base64::decode_vec(&body).unwrap());
        hidden.forms.push(pem.to_owned());
        hidden.forms.push(body);
        hidden
    }

    /// Fails if half of it is anywhere to be seen.
    #[track_caller]
    fn check(&self, what: &str, shown: &str) {
        for form in &self.forms {
            let chars: Vec<char> = form.chars().collect();
            let half = chars.len().div_ceil(2);
            if half > shown.len() {
                continue;
            }
            for half in chars.windows(half) {
                let half: String = half.iter().collect();
                assert!(!shown.contains(&half), "{what} shows {half}: {shown}");
            }
        }
    }

    #[track_caller]
    fn in_debug(&self, what: &str, value: &impl Debug) {
        self.check(what, &format!("{value:?}"));
        self.check(what, &format!("{value:#?}"));
    }

    #[track_caller]
    fn in_error(&self, what: &str, error: &ConfigError) {
        self.in_debug(what, error);
        self.check(what, &error.to_string());
        self.check(what, error.value());
    }

    /// Everything that can be made of a key.
    fn in_whatever_has(&self, key: &Key) {
        self.in_debug("key", key);
        let builder = Template::builder(key.clone())
            .sign([Part::Method])
            .signature_as(TextEncoding::Base64)
            .header("x", [Part::Signature]);
        self.in_debug("builder", &builder);
        let template = builder.build().unwrap();
        self.in_debug("template", &template);
        self.in_debug("verifier", &Verifier::new(template.clone()).unwrap());
        let builder = SignLayer::builder(template.clone()).origin("https://a.test");
        self.in_debug("layer builder", &builder);
        let layer = builder.build().unwrap();
        self.in_debug("layer", &layer);
        self.in_debug("service", &tower::Layer::layer(&layer, ()));
        match sign(&template, request("GET", "/", ""), &fresh_ms(0)) {
            Ok(signed) => self.in_debug("request", &signed),
            Err(error) => {
                self.in_debug("error", &error);
                self.check("error", &error.to_string());
            }
        }
        #[cfg(feature = "message-signatures")]
        self.in_messages(key);
    }

    #[cfg(feature = "message-signatures")]
    fn in_messages(&self, key: &Key) {
        use tower_outcome_sign::{Component, MessageSigner, MessageVerifier};

        let builder = MessageSigner::builder(key.clone()).cover([Component::method()]);
        self.in_debug("message builder", &builder);
        match builder.build() {
            Ok(signer) => {
                self.in_debug("message signer", &signer);
                let signed = sign(&signer, request("GET", "/", ""), &fresh_ms(0)).unwrap();
                self.in_debug("message", &signed);
            }
            Err(error) => self.in_error("message signer", &error),
        }
        let builder = MessageVerifier::builder().key("k", key.clone());
        let builder = builder.require([Component::method()]);
        self.in_debug("message verifier builder", &builder);
        match builder.build() {
            Ok(verifier) => self.in_debug("message verifier", &verifier),
            Err(error) => self.in_error("message verifier", &error),
        }
    }
}

const TEXT: &str = "correct horse battery staple";
const SEED: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";

/// What a key can be that is none: cut off, of the wrong kind, damaged, or without its line breaks.
fn spoiled(pem: &str) -> Vec<String> {
    vec![
        pem.replace('\n', "\\n"),
        pem.replace('\n', " "),
        pem[..pem.len() / 2].to_owned(),
        pem.replace("PRIVATE", "PUBLIC"),
        pem.replace("-----", "----"),
        pem.replacen("\nM", "\nN", 1),
        pem.lines().nth(1).unwrap().to_owned(),
    ]
}

#[test]
fn secrets_of_hmac_are_hidden() {
    let hidden = Hidden::new(TEXT.as_bytes());
    let secret = Secret::new(TEXT);
    hidden.in_debug("secret", &secret);
    hidden.in_debug("part", &Part::Secret(secret.clone()));
    for key in [
        Key::hmac_sha1(secret.clone()),
        Key::hmac_sha256(secret.clone()),
        Key::hmac_sha384(secret.clone()),
        Key::hmac_sha512(secret),
    ] {
        hidden.in_whatever_has(&key.unwrap());
    }
    // What is no base64, no hexadecimal digits.
    hidden.in_error("base64", &Secret::base64(TEXT).unwrap_err());
    hidden.in_error("hex", &Secret::hex(TEXT).unwrap_err());
    for error in [
        Template::kraken("k", TEXT).unwrap_err(),
        Template::coinbase_exchange("k", TEXT, TEXT).unwrap_err(),
    ] {
        hidden.in_error("template", &error);
    }
    for template in [
        Template::okx("k", TEXT, TEXT).unwrap(),
        Template::stripe_webhook(TEXT).unwrap(),
    ] {
        hidden.in_debug("template", &template);
        hidden.in_debug("verifier", &Verifier::new(template).unwrap());
    }
}

#[test]
fn secrets_of_ed25519_are_hidden() {
    let seed = Secret::base64(SEED).unwrap();
    let hidden = Hidden::new(seed.expose());
    hidden.in_debug("secret", &seed);
    hidden.in_whatever_has(&Key::ed25519(&seed).unwrap());
    let key = JwtKey::ed25519(SEED).unwrap();
    hidden.in_debug("token key", &key);
    hidden.in_debug("token signer", &JwtSigner::coinbase("k", key).unwrap());
    let cut = &SEED[..SEED.len() - 4];
    for text in [cut, TEXT, &format!("{SEED}{SEED}"), &SEED.replace('n', "!")] {
        let hidden = Hidden::new(text.as_bytes());
        hidden.in_error("token key", &JwtKey::ed25519(text).unwrap_err());
        hidden.in_error("robinhood", &Template::robinhood("k", text).unwrap_err());
    }
    let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIIJEYWtGBrhACmb9Dvy+qa8WEf0lQOl1s4CLIAB9m89u\n-----END PRIVATE KEY-----\n";
    let hidden = Hidden::of_pem(pem);
    hidden.in_whatever_has(&Key::ed25519_pem(pem).unwrap());
    for text in spoiled(pem) {
        hidden.in_error("PEM", &Key::ed25519_pem(&text).unwrap_err());
        let error = Template::binance_ed25519("k", &text).unwrap_err();
        hidden.in_error("PEM", &error);
        hidden.in_error("public PEM", &Key::ed25519_public_pem(&text).unwrap_err());
    }
}

#[cfg(feature = "ecdsa")]
#[test]
fn secrets_of_ecdsa_are_hidden() {
    for vector in crate::keys::vectors("ecdsa-p256-sha256") {
        for form in ["private_key_pkcs8", "private_key_sec1"] {
            let pem = crate::keys::input(&vector, form);
            let hidden = Hidden::of_pem(pem);
            hidden.in_whatever_has(&Key::ecdsa_p256_pem(pem).unwrap());
            let key = JwtKey::es256_pem(pem).unwrap();
            hidden.in_debug("token key", &key);
            hidden.in_debug("token signer", &JwtSigner::coinbase("k", key).unwrap());
            for text in spoiled(pem) {
                hidden.in_error("PEM", &Key::ecdsa_p256_pem(&text).unwrap_err());
                let error = Key::ecdsa_p256_public_pem(&text).unwrap_err();
                hidden.in_error("public PEM", &error);
                hidden.in_error("token key", &JwtKey::es256_pem(&text).unwrap_err());
            }
        }
    }
}

#[cfg(feature = "rsa")]
#[test]
fn secrets_of_rsa_are_hidden() {
    type Read = fn(&str) -> Result<Key, ConfigError>;

    let read: [Read; 2] = [Key::rsa_sha256_pem, Key::rsa_pss_sha512_pem];
    let read_public: [Read; 2] = [Key::rsa_sha256_public_pem, Key::rsa_pss_sha512_public_pem];
    let vector = crate::keys::vectors("rsa-pkcs1-sha256").remove(0);
    for form in ["private_key_pkcs8", "private_key_pkcs1"] {
        let pem = crate::keys::input(&vector, form);
        let hidden = Hidden::of_pem(pem);
        for read in read {
            hidden.in_whatever_has(&read(pem).unwrap());
        }
        for text in spoiled(pem) {
            for read in read {
                hidden.in_error("PEM", &read(&text).unwrap_err());
            }
            let error = Template::binance_rsa("k", &text).unwrap_err();
            hidden.in_error("binance", &error);
            // A private key under the name of a public one is refused too, in all its forms.
            for read in read_public {
                hidden.in_error("public PEM", &read(&text).unwrap_err());
            }
        }
    }
}

#[cfg(feature = "aws-sigv4")]
#[test]
fn secrets_of_aws_are_hidden() {
    use tower_outcome_sign::{AwsCredentials, AwsSigner, SharedAwsCredentials};

    // The example key of AWS.
    let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    let hidden = Hidden::new(secret.as_bytes());
    let credentials = AwsCredentials::new("AKIDEXAMPLE", secret).unwrap();
    hidden.in_debug("credentials", &credentials);
    let shared = SharedAwsCredentials::new(credentials.clone());
    hidden.in_debug("shared credentials", &shared);
    let signer = AwsSigner::new(shared, "us-east-1", "service").unwrap();
    hidden.in_debug("signer", &signer);
    let layer = SignLayer::builder(signer).origin("https://a.test");
    hidden.in_debug("layer builder", &layer);
    hidden.in_debug("layer", &layer.build().unwrap());
    let signer = AwsSigner::new(credentials.clone(), "us-east-1", "service").unwrap();
    let get = || request("GET", "https://a.test/", "");
    hidden.in_debug("request", &sign(&signer, get(), &fresh_ms(0)).unwrap());
    for wrong in [format!("{secret}\n"), format!(" {secret}")] {
        let error = AwsCredentials::new("AKIDEXAMPLE", &wrong).unwrap_err();
        hidden.in_error("secret", &error);
        // They are easily taken for each other.
        let error = AwsCredentials::new(&wrong, "AKIDEXAMPLE").unwrap_err();
        hidden.in_error("identifier", &error);
        let error = credentials.clone().with_session_token(&wrong).unwrap_err();
        hidden.in_error("token", &error);
    }
    let session = credentials.with_session_token(secret).unwrap();
    hidden.in_debug("session", &session);
}

#[test]
fn the_user_in_an_origin_is_hidden() {
    let hidden = Hidden::new(b"correct-horse");
    for origin in [
        "https://bob:correct-horse@a.test",
        "https://correct-horse@a.test:99999",
        "correct-horse@",
    ] {
        let signer = Template::binance("k", "s").unwrap();
        let builder = SignLayer::builder(signer.clone()).origin(origin);
        hidden.in_debug("layer builder", &builder);
        hidden.in_error("layer", &builder.build().unwrap_err());
        hidden.in_error("layer", &SignLayer::new(signer, origin).unwrap_err());
    }
}

#[test]
fn the_check_finds_what_is_shown() {
    let hidden = Hidden::new(TEXT.as_bytes());
    for shown in [
        "a key correct horse ba, of which this is half".to_owned(),
        format!("{:?}", TEXT.as_bytes()),
        format!("{:02x?}", &TEXT.as_bytes()[3..]).replace(", ", ""),
        Base64::encode_string(TEXT.as_bytes()),
    ] {
        let found = std::panic::catch_unwind(|| hidden.check("test", &shown));
        assert!(found.is_err(), "{shown}");
    }
}
