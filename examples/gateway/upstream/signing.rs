//! Signing for the upstream.

use tower_outcome::{
    ConfigError, Nonces, SignLayer, Template,
    sign::{SignLayerBuilder, Unit},
};

use super::{Reading, Section};

/// What a signer is made from: the key's name, its secret, and the passphrase of venues that have one.
#[derive(Clone, Copy)]
enum Signer {
    Key(fn(&str, &str) -> Result<Template, ConfigError>),
    KeyAndPassphrase(fn(&str, &str, &str) -> Result<Template, ConfigError>),
}

/// The signers that a file may name.
const SIGNERS: [(&str, Signer); 9] = [
    ("binance", Signer::Key(Template::binance)),
    ("bitmex", Signer::Key(Template::bitmex)),
    ("bitstamp", Signer::Key(Template::bitstamp)),
    ("bybit", Signer::Key(Template::bybit)),
    (
        "coinbase-exchange",
        Signer::KeyAndPassphrase(Template::coinbase_exchange),
    ),
    ("deribit", Signer::Key(Template::deribit)),
    ("kraken", Signer::Key(Template::kraken)),
    ("okx", Signer::KeyAndPassphrase(Template::okx)),
    ("robinhood", Signer::Key(Template::robinhood)),
];

/// Makes the step of the stack. Without a template nothing is signed.
pub(super) fn layer(
    template: Option<Template>,
    section: Option<&Section<'_>>,
    origin: &str,
) -> SignLayerBuilder<Option<Template>> {
    let sign = SignLayer::builder(template).origin(origin);
    match section.and_then(|section| section.text("template")) {
        Some("kraken") => sign.nonces(Nonces::new(Unit::Micros)),
        _ => sign,
    }
}

/// Reads `[upstream.sign]`.
pub(super) fn read(section: &Section<'_>, reading: &Reading<'_>) -> Option<Template> {
    section.needed("template");
    let signer = section.one_of("template", &SIGNERS);
    let key = reading.secret(section, "key_env");
    let secret = reading.secret(section, "secret_env");
    let window = section.span("window");
    let template = match signer? {
        Signer::Key(make) => make(&key?, &secret?),
        Signer::KeyAndPassphrase(make) => {
            let passphrase = reading.secret(section, "passphrase_env");
            make(&key?, &secret?, &passphrase?)
        }
    };
    let template = template
        // What it is about stands in the text, and its value does not.
        .map_err(|error| section.refused_as("secret_env", &error))
        .ok()?;
    match window {
        None => Some(template),
        Some(window) => template
            .with_window(window)
            .map_err(|error| section.refused(&error))
            .ok(),
    }
}
