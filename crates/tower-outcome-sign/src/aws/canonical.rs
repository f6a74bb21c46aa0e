//! What is signed for AWS: a request in its one form, and for what it is.

use std::collections::BTreeMap;

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use http::{HeaderName, Uri, header::HOST};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::{ALGORITHM, AwsCredentials, AwsSigner, target};
use crate::{Draft, SignError, SigningTime, draft::escape};

/// For when, where and what a signature is.
pub(super) struct Scope<'a> {
    pub(super) credentials: &'a AwsCredentials,
    region: &'a str,
    service: &'a str,
    time: SigningTime,
    /// The time as it is written.
    pub(super) date: String,
    /// The scope as it is written.
    pub(super) name: String,
}

/// What proxies and tracing add to links is not signed in them.
const UNSIGNED_IN_LINKS: [HeaderName; 2] = [
    HeaderName::from_static("x-amz-checksum-mode"),
    HeaderName::from_static("x-amz-user-agent"),
];

// === impl Scope ===

impl<'a> Scope<'a> {
    pub(super) fn new<C>(
        signer: &'a AwsSigner<C>,
        time: SigningTime,
        credentials: &'a AwsCredentials,
    ) -> Self {
        let date = time.to_basic();
        let day = date.split('T').next().unwrap_or_default();
        let name = format!("{day}/{}/{}/aws4_request", signer.region, signer.service);
        Self {
            credentials,
            region: &signer.region,
            service: &signer.service,
            time,
            date,
            name,
        }
    }

    /// Signs a request of which the parts are in their one form.
    pub(super) fn sign(
        &self,
        draft: &Draft,
        path: &str,
        query: &str,
        headers: &str,
        signed: &str,
        content: &str,
    ) -> String {
        // The token of a session is in it.
        let request = Zeroizing::new(format!(
            "{}\n{path}\n{query}\n{headers}\n{signed}\n{content}",
            draft.method(),
        ));
        let input = format!(
            "{ALGORITHM}\n{}\n{}\n{}",
            self.date,
            self.name,
            hash(request.as_bytes()),
        );
        let key = generate_signing_key(
            self.credentials.secret(),
            self.time.to_system_time(),
            self.region,
            self.service,
        );
        calculate_signature(key, input.as_bytes())
    }
}

pub(super) fn hash(bytes: &[u8]) -> String {
    base16ct::lower::encode_string(&Sha256::digest(bytes))
}

/// The path: without dot segments and empty ones where the service wants it so.
pub(super) fn path(uri: &Uri, twice: bool, normalized: bool) -> String {
    let path = target::path(uri, twice);
    if !normalized {
        return path;
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut text = String::with_capacity(path.len());
    for segment in &segments {
        text.push('/');
        text.push_str(segment);
    }
    // What ends in a directory still does.
    if text.is_empty() || ["/", "/.", "/.."].iter().any(|end| path.ends_with(end)) {
        text.push('/');
    }
    text
}

/// The parameters, in the order of their names and then values as they are written.
pub(super) fn query(
    uri: &Uri,
    more: Vec<(&'static str, &str)>,
) -> Result<Zeroizing<String>, SignError> {
    let escaped = |text: &[u8]| {
        let mut out = String::with_capacity(text.len());
        escape(text, &mut out);
        out
    };
    let mut all = Vec::new();
    let query = uri.query().unwrap_or_default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, value) = (target::parameter(name)?, target::parameter(value)?);
        all.push((escaped(&name), escaped(&value)));
    }
    for (name, value) in more {
        all.push((name.to_owned(), escaped(value.as_bytes())));
    }
    all.sort();
    let mut text = String::with_capacity(query.len());
    for (name, value) in all {
        if !text.is_empty() {
            text.push('&');
        }
        text.push_str(&name);
        text.push('=');
        text.push_str(&value);
    }
    Ok(Zeroizing::new(text))
}

/// The headers that are signed with their values, each on a line, and their names.
pub(super) fn headers(draft: &Draft, link: bool) -> Result<(Zeroizing<String>, String), SignError> {
    let mut all: BTreeMap<&str, String> = BTreeMap::new();
    all.insert(HOST.as_str(), single_spaced(target::host(draft)?));
    for (name, value) in target::headers(draft.headers()) {
        if link && UNSIGNED_IN_LINKS.contains(name) {
            continue;
        }
        let value = value
            .to_str()
            .map_err(|_| SignError::encoding(name.to_string()))?;
        let value = single_spaced(value);
        all.entry(name.as_str())
            .and_modify(|values| {
                values.push(',');
                values.push_str(&value);
            })
            .or_insert(value);
    }
    let names = all.keys().copied().collect::<Vec<_>>().join(";");
    let mut text = String::with_capacity(256);
    for (name, value) in all {
        text.push_str(name);
        text.push(':');
        text.push_str(&value);
        text.push('\n');
    }
    Ok((Zeroizing::new(text), names))
}

/// A value without spaces at its ends, and with single ones in between.
fn single_spaced(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for word in value.split(' ').filter(|word| !word.is_empty()) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}
