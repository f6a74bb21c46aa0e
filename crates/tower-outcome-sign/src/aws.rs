//! AWS Signature Version 4, in headers or in the query.

use std::{fmt, time::Duration};

use http::{HeaderName, HeaderValue, header::AUTHORIZATION};
use tower_outcome_core::ConfigError;
use zeroize::Zeroizing;

use crate::{Draft, Fresh, Needs, Sign, SignError, SigningTime, Unit, Validity, draft::conflict};

mod canonical;
mod credentials;
mod target;

pub use self::credentials::{AwsCredentialSource, AwsCredentials, SharedAwsCredentials};

use self::canonical::Scope;

/// Signs for AWS, and for what speaks its language: Signature Version 4, in headers or
/// [in the query](Self::presigned).
///
/// Services named `s3`, `s3-` and something, or `s3express` are signed as S3 wants it: the path encoded once and
/// left as it is, and the hash of the body in `x-amz-content-sha256`. For all others the path is
/// encoded twice, without dot segments. What goes over the wire is what the caller wrote.
///
/// Signed are the method, target, body, and all headers of the caller but those that are for the next
/// hop alone or belong to tracing and user agents. What the signer sets the caller may not, nor an
/// `authorization` of its own: that is a conflict.
///
/// ```
/// use tower_outcome_sign::{AwsCredentials, AwsSigner, SignLayer};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// let credentials = AwsCredentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")?;
/// let layer = SignLayer::builder(AwsSigner::new(credentials, "us-east-1", "dynamodb")?)
///     .origin("https://dynamodb.us-east-1.amazonaws.com")
///     .build()?;
/// # let _ = layer;
/// # Ok(())
/// # }
/// ```
///
/// # Credentials that change
///
/// The [source](AwsCredentialSource) is asked once for each attempt, and what it returns is a snapshot: a
/// key is never signed with the token of another. Whatever refreshes credentials puts them into
/// [`SharedAwsCredentials`], or, where it has to be known with which ones an attempt was made, into the
/// extensions of the request: an [`AwsCredentials`] that is there goes before the source. So a layer
/// above that refreshes what was refused attaches the new ones to the attempt that it repeats.
///
/// # Clocks
///
/// AWS accepts a time that is five minutes off, S3 fifteen; that is the [validity](Validity), or until
/// the credentials expire. With a [`ClockOffset`](crate::ClockOffset) a clock that is further off signs
/// all the same.
///
/// # A link for somebody else
///
/// Without a layer, this makes a link that anybody may open for an hour:
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use bytes::Bytes;
/// use http::Request;
/// use tower_outcome_sign::{AwsCredentials, AwsSigner, Draft, Fresh, Sign, SigningTime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
/// let credentials = AwsCredentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")?;
/// let signer = AwsSigner::new(credentials, "us-east-1", "s3")?.presigned(Duration::from_secs(3600))?;
/// let request = Request::get("https://bucket.s3.amazonaws.com/a%20file").body(Bytes::new())?;
/// let mut draft = Draft::new(request);
/// signer.sign(&mut draft, &Fresh::new(SigningTime::new(now)?))?;
/// assert!(draft.uri().query().unwrap().contains("X-Amz-Signature="));
/// # Ok(())
/// # }
/// ```
///
/// # Secrets
///
/// The keys are overwritten when the last clone of the credentials is dropped. The copies that the
/// `aws-sigv4` crate makes of them while it derives the key of the day are not. Nothing is traced or
/// logged: of that crate only the functions are used that derive the key and sign, which do neither.
#[derive(Clone)]
pub struct AwsSigner<C = AwsCredentials> {
    source: C,
    region: String,
    service: String,
    /// How long the server accepts a signature in headers.
    tolerance: Duration,
    /// How long it accepts one in the query, if that is where it goes.
    expires: Option<Duration>,
    twice: bool,
    normalized: bool,
    hash_header: bool,
    signed_body: bool,
    signed_token: bool,
}

/// AWS's tolerance, and the shortest of its services'.
const TOLERANCE: Duration = Duration::from_secs(5 * 60);

/// S3's.
const S3_TOLERANCE: Duration = Duration::from_secs(15 * 60);

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const CONTENT: HeaderName = HeaderName::from_static("x-amz-content-sha256");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");

/// The longest that AWS accepts in `X-Amz-Expires`.
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

// === impl AwsSigner ===

impl<C> AwsSigner<C> {
    /// Signs for a service in a region, both by the names that they have in signatures.
    ///
    /// # Errors
    ///
    /// If one of them is empty, or has a character that such names do not have.
    pub fn new(
        source: C,
        region: impl Into<String>,
        service: impl Into<String>,
    ) -> Result<Self, ConfigError> {
        let (region, service) = (region.into(), service.into());
        for (field, name) in [("region", &region), ("service", &service)] {
            let valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
            if name.is_empty() || !name.bytes().all(valid) {
                let expected = "letters, digits, dashes, dots or underscores";
                return Err(ConfigError::new(field, name.clone(), expected));
            }
        }
        let s3 = matches!(&*service, "s3" | "s3express") || service.starts_with("s3-");
        Ok(Self {
            source,
            region,
            service,
            tolerance: if s3 { S3_TOLERANCE } else { TOLERANCE },
            expires: None,
            twice: !s3,
            normalized: !s3,
            hash_header: s3,
            signed_body: true,
            signed_token: true,
        })
    }

    /// Signs in the query, for so long, instead of in headers; what is below a second is cut off.
    ///
    /// A call's deadline that is nearer shortens it: the server need not accept what nobody waits for.
    /// S3 does not look at the body of such a request, so it is not signed there.
    ///
    /// # Errors
    ///
    /// If it is shorter than a second, or longer than the seven days that AWS allows.
    pub fn presigned(mut self, expires: Duration) -> Result<Self, ConfigError> {
        if expires < Duration::from_secs(1) || expires > WEEK {
            return Err(ConfigError::new("expires", expires, "1 s to 7 days"));
        }
        self.expires = Some(Duration::from_secs(expires.as_secs()));
        Ok(self)
    }

    /// Leaves the body out of the signature and says so: `UNSIGNED-PAYLOAD`.
    ///
    /// The body is then not read before it is sent, however large it is; nothing but TLS protects it.
    /// S3 accepts that, most other services do not.
    #[must_use]
    pub fn unsigned_payload(mut self) -> Self {
        self.signed_body = false;
        self.hash_header = true;
        self
    }

    /// Sets how long after its time the server accepts a signature in headers. Default: 15 minutes for
    /// S3, otherwise 5.
    ///
    /// # Errors
    ///
    /// If it is zero.
    pub fn with_tolerance(mut self, tolerance: Duration) -> Result<Self, ConfigError> {
        if tolerance.is_zero() {
            return Err(ConfigError::new("tolerance", tolerance, "longer than zero"));
        }
        self.tolerance = tolerance;
        Ok(self)
    }

    /// Sets whether the path is signed encoded once more than it is sent. Default: not for S3.
    #[must_use]
    pub const fn encodes_twice(mut self, twice: bool) -> Self {
        self.twice = twice;
        self
    }

    /// Sets whether the path is signed without dot segments and empty ones. Default: not for S3.
    #[must_use]
    pub const fn normalizes_path(mut self, normalized: bool) -> Self {
        self.normalized = normalized;
        self
    }

    /// Sets whether the hash of the body is sent in `x-amz-content-sha256`, with a signature in headers.
    /// Default: for S3, and for unsigned bodies.
    #[must_use]
    pub const fn sends_content_hash(mut self, sends: bool) -> Self {
        self.hash_header = sends;
        self
    }

    /// Sets whether a session token is signed. Default: yes; a few services, such as the gateways of
    /// IoT, add it afterwards.
    #[must_use]
    pub const fn signs_session_token(mut self, signs: bool) -> Self {
        self.signed_token = signs;
        self
    }

    fn reads_body(&self) -> bool {
        // Without the header, a presigned request of S3 says nothing of its body.
        let presigned_s3 = self.expires.is_some() && !self.twice;
        self.signed_body && !presigned_s3
    }

    /// How long it is valid in the query, in whole seconds.
    fn expires(&self, fresh: &Fresh) -> Option<Duration> {
        let expires = self.expires?;
        let Some(left) = fresh.time_left() else {
            return Some(expires);
        };
        // It counts from the second that is signed, which has begun already.
        let begun = Duration::from_nanos(u64::from(fresh.time().since_epoch().subsec_nanos()));
        let left = Unit::Seconds.count_up(begun.saturating_add(left));
        Some(expires.min(Duration::from_secs(left.max(1))))
    }

    /// The hash of the body, or the word that stands for it.
    fn content(&self, draft: &Draft) -> Result<String, SignError> {
        if self.reads_body() {
            Ok(canonical::hash(draft.body()?))
        } else {
            Ok("UNSIGNED-PAYLOAD".to_owned())
        }
    }

    /// Signs in headers.
    fn headers(&self, draft: &mut Draft, scope: &Scope<'_>) -> Result<(), SignError> {
        let token = scope.credentials.session_token();
        draft.set_header(DATE, text("x-amz-date", &scope.date)?)?;
        let content = self.content(draft)?;
        if self.hash_header {
            draft.set_header(CONTENT, text("x-amz-content-sha256", &content)?)?;
        }
        if let (true, Some(token)) = (self.signed_token, token) {
            draft.set_secret_header(TOKEN, text("x-amz-security-token", token)?)?;
        }
        let (headers, signed) = canonical::headers(draft, false)?;
        let query = canonical::query(draft.uri(), Vec::new())?;
        let path = canonical::path(draft.uri(), self.twice, self.normalized);
        let signature = scope.sign(draft, &path, &query, &headers, &signed, &content);
        let value = Zeroizing::new(format!(
            "{ALGORITHM} Credential={}/{}, SignedHeaders={signed}, Signature={signature}",
            scope.credentials.key_id(),
            scope.name,
        ));
        draft.set_secret_header(AUTHORIZATION, text("authorization", &value)?)?;
        if let (false, Some(token)) = (self.signed_token, token) {
            draft.set_secret_header(TOKEN, text("x-amz-security-token", token)?)?;
        }
        note_covered(draft, &signed);
        Ok(())
    }

    /// Signs in the query.
    fn query(
        &self,
        draft: &mut Draft,
        scope: &Scope<'_>,
        expires: Duration,
    ) -> Result<(), SignError> {
        let content = self.content(draft)?;
        let (headers, signed) = canonical::headers(draft, true)?;
        let id = Zeroizing::new(format!("{}/{}", scope.credentials.key_id(), scope.name));
        let expires = expires.as_secs().to_string();
        let mut parameters = vec![
            ("X-Amz-Algorithm", ALGORITHM),
            ("X-Amz-Credential", &id),
            ("X-Amz-Date", &scope.date),
            ("X-Amz-Expires", &expires),
            ("X-Amz-SignedHeaders", &signed),
        ];
        let token = scope.credentials.session_token();
        let token = token.map(|token| ("X-Amz-Security-Token", token));
        let mut unsigned = None;
        match token {
            Some(token) if self.signed_token => parameters.push(token),
            token => unsigned = token,
        }
        let query = canonical::query(draft.uri(), parameters.clone())?;
        let path = canonical::path(draft.uri(), self.twice, self.normalized);
        let signature = scope.sign(draft, &path, &query, &headers, &signed, &content);
        parameters.push(("X-Amz-Signature", &signature));
        for (name, value) in parameters.into_iter().chain(unsigned) {
            draft.add_query(name, value)?;
        }
        note_covered(draft, &signed);
        Ok(())
    }
}

impl<C: AwsCredentialSource> Sign for AwsSigner<C> {
    fn needs(&self) -> Needs {
        if self.reads_body() {
            Needs::BODY
        } else {
            Needs::HEAD
        }
    }

    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        if draft.headers().contains_key(AUTHORIZATION) {
            return Err(conflict("authorization"));
        }
        let credentials = match draft.head().extensions.get::<AwsCredentials>() {
            Some(credentials) => credentials.clone(),
            None => self.source.current()?,
        };
        // What is signed has seconds.
        let time = SigningTime::from_unit(fresh.time().as_secs(), Unit::Seconds)?;
        let expires = self.expires(fresh);
        let end = time.saturating_add(expires.unwrap_or(self.tolerance));
        let validity = credentials.bound(time, end)?;
        let scope = Scope::new(self, time, &credentials);
        match expires {
            Some(expires) => self.query(draft, &scope, expires)?,
            None => self.headers(draft, &scope)?,
        }
        Ok(validity)
    }
}

/// Shows where it signs for, and nothing of the keys.
impl<C> fmt::Debug for AwsSigner<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AwsSigner")
            .field("region", &self.region)
            .field("service", &self.service)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

fn text(name: &'static str, value: &str) -> Result<HeaderValue, SignError> {
    HeaderValue::try_from(value).map_err(|_| SignError::encoding(name))
}

/// Notes the headers of the caller's that are signed.
fn note_covered(draft: &mut Draft, signed: &str) {
    for name in signed.split(';') {
        if let Ok(name) = HeaderName::try_from(name) {
            draft.note_covered(&name);
        }
    }
}
