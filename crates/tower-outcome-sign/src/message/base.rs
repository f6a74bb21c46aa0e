//! What is signed: the signature base of RFC 9421, section 2.5.

use http::{header::HOST, request, uri::Scheme};

use super::{
    component::{Component, Covered, Form, What, escaped},
    fields::{Fields, combined, dictionary, member},
};
use crate::{SignError, host::without_port, template::unescaped};

/// A request, and what is known about it besides.
#[derive(Debug)]
pub(super) struct Base<'a> {
    pub(super) head: &'a request::Parts,
    /// The scheme by which it was received, where its target does not say; `None` where it is sent.
    pub(super) received: Option<&'a Scheme>,
    pub(super) fields: &'a Fields,
}

// === impl Base ===

impl Base<'_> {
    /// Writes the lines that are signed. `input` is the list of what is covered with its parameters.
    pub(super) fn write(&self, covered: &[Covered], input: &str) -> Result<String, SignError> {
        let mut text = String::with_capacity(512);
        for covered in covered {
            text.push_str(&covered.identifier());
            text.push_str(": ");
            text.push_str(&self.value(&covered.component)?);
            text.push('\n');
        }
        text.push_str("\"@signature-params\": ");
        text.push_str(input);
        Ok(text)
    }

    fn value(&self, component: &Component) -> Result<String, SignError> {
        let uri = &self.head.uri;
        Ok(match component.what() {
            What::Method => self.head.method.as_str().to_owned(),
            What::TargetUri => {
                let (scheme, authority) = (self.scheme()?.as_str(), self.authority()?);
                format!("{scheme}://{authority}{}", self.target())
            }
            What::Authority => self.authority()?,
            What::Scheme => self.scheme()?.as_str().to_ascii_lowercase(),
            What::RequestTarget => self.target().to_owned(),
            What::Path => match uri.path() {
                "" => "/".to_owned(),
                path => path.to_owned(),
            },
            What::Query => format!("?{}", uri.query().unwrap_or_default()),
            What::QueryParam(name) => self.query_param(name)?,
            What::Field(name, form) => {
                let headers = &self.head.headers;
                if !headers.contains_key(name) {
                    return Err(SignError::missing(name.to_string()));
                }
                let wrong = || SignError::encoding(name.to_string());
                match form {
                    Form::Plain => combined(headers, name).ok_or_else(wrong)?,
                    Form::Structured => {
                        let text = combined(headers, name).ok_or_else(wrong)?;
                        self.fields.strict(name, &text).ok_or_else(wrong)?
                    }
                    Form::Bytes => {
                        let values = headers.get_all(name).iter().map(|value| {
                            let bytes = value.as_bytes().trim_ascii();
                            sfv::ItemSerializer::new().bare_item(bytes).finish()
                        });
                        values.collect::<Vec<_>>().join(", ")
                    }
                    Form::Key(key) => {
                        let dictionary = dictionary(headers, name).ok_or_else(wrong)?;
                        let entry = dictionary.get(key.as_str());
                        let lacks = || SignError::missing(format!("{key} in {name}"));
                        member(entry.ok_or_else(lacks)?)
                    }
                }
            }
        })
    }

    fn scheme(&self) -> Result<&Scheme, SignError> {
        let scheme = self.head.uri.scheme().or(self.received);
        scheme.ok_or_else(|| SignError::missing("scheme"))
    }

    /// Host and port in their one form (RFC 9421, section 2.2.3).
    fn authority(&self) -> Result<String, SignError> {
        let lacks = || SignError::missing("one host");
        let uri = &self.head.uri;
        let scheme = uri.scheme().or(self.received).or(Some(&Scheme::HTTPS));
        let normal = |text: &str| {
            let text = text.rsplit_once('@').map_or(text, |(_, host)| host);
            without_port(text, scheme).to_ascii_lowercase()
        };
        let target = uri.authority().map(|authority| normal(authority.as_str()));
        let mut hosts = self.head.headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (None, _) => None,
            (Some(host), None) => Some(normal(host.to_str().map_err(|_| lacks())?)),
            _ => return Err(lacks()),
        };
        match (host, target) {
            // A request that names two hosts may be routed by the one and signed for the other.
            (Some(host), Some(target)) if self.received.is_some() && host != target => Err(lacks()),
            (Some(host), _) => Ok(host),
            (None, target) => target.ok_or_else(lacks),
        }
    }

    /// Path and query.
    fn target(&self) -> &str {
        let target = self.head.uri.path_and_query();
        target.map_or("/", |target| target.as_str())
    }

    fn query_param(&self, name: &str) -> Result<String, SignError> {
        let lacks = || SignError::missing(format!("one parameter {name}"));
        let canonical = |text: &str| {
            // Browsers replace bytes that are no text, and then a signature would be that of others too.
            let bytes = unescaped(text);
            std::str::from_utf8(&bytes).is_ok().then(|| escaped(&bytes))
        };
        let mut found = None;
        for pair in self.head.uri.query().unwrap_or_default().split('&') {
            let (own, value) = pair.split_once('=').unwrap_or((pair, ""));
            if canonical(own).as_deref() == Some(name) && found.replace(value).is_some() {
                // Which of several would be meant, the signature does not say.
                return Err(lacks());
            }
        }
        let unwritable = || SignError::encoding(format!("parameter {name}"));
        canonical(found.ok_or_else(lacks)?).ok_or_else(unwritable)
    }
}
