//! Putting a credential on a request.

use std::{error::Error, fmt};

use http::{HeaderName, HeaderValue, header};

use crate::{Credential, Secret};

/// Makes the headers that carry a credential.
///
/// Asked once for each credential, not for each request: what it returns is kept and cloned. All
/// values are marked sensitive, so that they are not printed, and HPACK does not index them.
///
/// Closures work: `|credential: &Credential| -> Result<Vec<(HeaderName, HeaderValue)>, Unattachable>`.
/// A request that brings all of them passes with its own; one that brings some gets all of them.
///
/// A credential that is no header at all (a key that a signer below needs) is handed down in the
/// request's extensions; see
/// [`AuthRefreshLayerBuilder::hands_down`](crate::AuthRefreshLayerBuilder::hands_down).
pub trait Attach: Send + Sync + 'static {
    /// Makes the headers.
    ///
    /// # Errors
    ///
    /// If the credential lacks something, or what it has is no header value. The refresh that fetched
    /// it then counts as failed.
    fn headers(
        &self,
        credential: &Credential,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Unattachable>;
}

/// Attaches the token as `Authorization: Bearer …` (RFC 6750, section 2.1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Bearer(());

/// Attaches parts of the credential as headers of their own, such as `UserName` and `Session`.
#[derive(Clone, Debug, Default)]
pub struct Headers(Vec<(HeaderName, Part)>);

/// Attaches the token as a cookie, beside those that the request brings (RFC 6265, section 5.4).
#[derive(Clone, Debug)]
pub struct Cookie {
    name: Box<str>,
}

/// Says that a credential cannot be put on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unattachable {
    part: Box<str>,
    why: &'static str,
}

/// What of a credential goes into a header.
#[derive(Clone, Debug)]
enum Part {
    Token,
    Field(Box<str>),
}

// === impl Attach ===

impl<F> Attach for F
where
    F: Fn(&Credential) -> Result<Vec<(HeaderName, HeaderValue)>, Unattachable>
        + Send
        + Sync
        + 'static,
{
    fn headers(
        &self,
        credential: &Credential,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Unattachable> {
        self(credential)
    }
}

// === impl Bearer ===

impl Bearer {
    /// Creates it.
    #[must_use]
    pub const fn new() -> Self {
        Self(())
    }
}

impl Attach for Bearer {
    fn headers(
        &self,
        credential: &Credential,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Unattachable> {
        let value = credential.token().header_value("token", "Bearer ")?;
        Ok(vec![(header::AUTHORIZATION, value)])
    }
}

// === impl Headers ===

impl Headers {
    /// Begins with none. One at least has to be added, or nothing can be attached.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Attaches the token under that name.
    #[must_use]
    pub fn token(mut self, header: HeaderName) -> Self {
        self.0.push((header, Part::Token));
        self
    }

    /// Attaches a named field of the credential under that name.
    #[must_use]
    pub fn field(mut self, header: HeaderName, field: impl Into<Box<str>>) -> Self {
        self.0.push((header, Part::Field(field.into())));
        self
    }
}

impl Attach for Headers {
    fn headers(
        &self,
        credential: &Credential,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Unattachable> {
        if self.0.is_empty() {
            return Err(Unattachable::new("headers", "empty"));
        }
        let header = |(name, part): &(HeaderName, Part)| {
            let (part, secret): (&str, Option<&Secret>) = match part {
                Part::Token => ("token", Some(credential.token())),
                Part::Field(field) => (field, credential.field(field)),
            };
            let secret = secret.ok_or_else(|| Unattachable::new(part, "missing"))?;
            Ok((name.clone(), secret.header_value(part, "")?))
        };
        self.0.iter().map(header).collect()
    }
}

// === impl Cookie ===

impl Cookie {
    /// Attaches the token as the cookie of that name.
    #[must_use]
    pub fn new(name: impl Into<Box<str>>) -> Self {
        Self { name: name.into() }
    }
}

impl Attach for Cookie {
    fn headers(
        &self,
        credential: &Credential,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, Unattachable> {
        let token = credential.token().expose();
        let fits = |text: &str| {
            text.bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"\",;\\".contains(&byte))
        };
        if self.name.is_empty() || self.name.contains('=') || !fits(&self.name) {
            return Err(Unattachable::new("cookie name", "no valid cookie name"));
        }
        if !fits(token) {
            return Err(Unattachable::new("token", "no valid cookie value"));
        }
        let value = credential
            .token()
            .header_value("token", &format!("{}=", self.name))?;
        Ok(vec![(header::COOKIE, value)])
    }
}

// === impl Unattachable ===

impl Unattachable {
    /// Creates the error from the part of the credential and what is wrong with it ("empty").
    pub fn new(part: impl Into<Box<str>>, why: &'static str) -> Self {
        Self {
            part: part.into(),
            why,
        }
    }

    /// Returns which part of the credential it is about.
    #[must_use]
    pub fn part(&self) -> &str {
        &self.part
    }

    /// Returns what is wrong with it.
    #[must_use]
    pub const fn why(&self) -> &'static str {
        self.why
    }
}

impl fmt::Display for Unattachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the credential is {}", self.part, self.why)
    }
}

impl Error for Unattachable {}
