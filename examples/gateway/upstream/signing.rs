//! Signing for the upstream.

use tower_outcome::{
    ConfigError, Nonces, SignLayer, Template,
    sign::{SignLayerBuilder, Unit},
};

use super::{Reading, Section};

/// Makes a signer from the key's name, its secret, and the passphrase of venues that have one.
type Make = fn(&str, &str, &str) -> Result<Template, ConfigError>;

/// The signers that a file may name.
const TEMPLATES: [(&str, Make); 9] = [
    ("binance", |key, secret, _| Template::binance(key, secret)),
    ("bitmex", |key, secret, _| Template::bitmex(key, secret)),
    ("bitstamp", |key, secret, _| Template::bitstamp(key, secret)),
    ("bybit", |key, secret, _| Template::bybit(key, secret)),
    ("coinbase-exchange", |key, secret, pass| {
        Template::coinbase_exchange(key, secret, pass)
    }),
    ("deribit", |key, secret, _| Template::deribit(key, secret)),
    ("kraken", |key, secret, _| Template::kraken(key, secret)),
    ("okx", |key, secret, pass| Template::okx(key, secret, pass)),
    ("robinhood", |key, secret, _| {
        Template::robinhood(key, secret)
    }),
];

/// Reads `[upstream.sign]`. Without that nothing is signed.
pub(super) fn read(
    section: Option<&Section<'_>>,
    origin: &str,
    reading: &Reading<'_>,
) -> SignLayerBuilder<Option<Template>> {
    let template = section.and_then(|section| read_template(section, reading));
    let sign = SignLayer::builder(template).origin(origin);
    match section.and_then(|section| section.text("template")) {
        Some("kraken") => sign.nonces(Nonces::new(Unit::Micros)),
        _ => sign,
    }
}

fn read_template(section: &Section<'_>, reading: &Reading<'_>) -> Option<Template> {
    section.needed("template");
    let make = section.one_of("template", &TEMPLATES);
    let key = reading.secret(section, "key_env");
    let secret = reading.secret(section, "secret_env");
    let passphrase = match section.text("passphrase_env") {
        Some(_) => reading.secret(section, "passphrase_env")?,
        None => String::new(),
    };
    let window = section.span("window");
    let template = match make?(&key?, &secret?, &passphrase) {
        Ok(template) => template,
        Err(error) => {
            // Which of the two it is stands in the text; their values do not.
            section.refused_as("secret_env", &error);
            return None;
        }
    };
    match window {
        None => Some(template),
        Some(window) => template
            .with_window(window)
            .map_err(|error| section.refused(&error))
            .ok(),
    }
}
