//! Credentials from a token endpoint of OAuth 2.0 (RFC 6749).

use std::{fmt, pin::Pin, sync::Arc};

use ::oauth2::{
    AsyncHttpClient, AuthType, ClientId, ClientSecret, EndpointNotSet, EndpointSet, HttpRequest,
    HttpResponse, RefreshToken, RequestTokenError, Scope, TokenResponse, TokenUrl,
    basic::{BasicClient, BasicErrorResponse, BasicTokenResponse},
};
use http::{Request, Response, header};
use tower_outcome_core::{BoxError, Clock, ConfigError, Origin, SystemClock};

use crate::{Credential, FetchError, Secret, TokenSource};

mod answer;

use self::answer::{NotAnswered, class, usable};

/// Fetches bearer tokens from a token endpoint: by client credentials (RFC 6749, section 4.4), or by a
/// refresh token, rotating or not (section 6).
///
/// What it is given to send requests with is a client of its own, without the layer that it serves.
///
/// | answer of the token endpoint | class |
/// |---|---|
/// | `invalid_grant`, `invalid_client`, `unauthorized_client`, `unsupported_grant_type`, `invalid_scope`, `unsupported_token_type` | dead |
/// | any 5xx and 429, whatever their body; any other error code | transient |
/// | a token of another type than `bearer`, which says so | dead |
/// | a page of HTML, something that cannot be read, no answer | transient |
///
/// A refresh token that is used up must not be lost over a detail. So any 2xx with an access token is an
/// answer; a type of token that is missing is `bearer`, and a lifetime may be a text or a fraction. One
/// that is no number of seconds, or negative, is none.
///
/// A refresh whose answer is lost may have rotated the token. It is tried again with the old one, as
/// servers allow for a moment; then the server decides.
///
/// ```
/// use http::{Request, Response};
/// use tower_outcome_auth_refresh::{Credentials, OAuth2};
///
/// # fn main() -> Result<(), tower_outcome_core::ConfigError> {
/// # async fn post(_: Request<Vec<u8>>) -> Result<Response<Vec<u8>>, std::io::Error> {
/// #     Ok(Response::new(Vec::new()))
/// # }
/// let source = OAuth2::builder("https://login.venue.example/token", "desk-7")
///     .client_secret("s3cret")
///     .scope("orders")
///     // Sends a request and returns the answer, whatever its status: hyper, reqwest, ...
///     .client_credentials(|request: Request<Vec<u8>>| post(request))?;
/// let credentials = Credentials::builder("venue", source)
///     .origin("https://api.venue.example")
///     .build()?;
/// # let _ = credentials;
/// # Ok(())
/// # }
/// ```
pub struct OAuth2 {
    client:
        BasicClient<EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>,
    scopes: Vec<Scope>,
    parameters: Vec<(String, String)>,
    grant: Grant,
    sender: Sender,
}

/// Sets an [`OAuth2`] source up; start with [`OAuth2::builder`].
#[must_use]
pub struct OAuth2Builder {
    token_url: String,
    client_id: String,
    client_secret: Option<Secret>,
    in_body: bool,
    scopes: Vec<String>,
    parameters: Vec<(String, String)>,
    clock: Arc<dyn Clock>,
}

/// With what a token is asked for.
enum Grant {
    ClientCredentials,
    /// The refresh token to begin with, if none is stored.
    RefreshToken(Option<Secret>),
}

type Sending = Pin<Box<dyn Future<Output = Result<HttpResponse, NotAnswered>> + Send>>;

/// What requests are sent with.
struct Sender(Box<dyn Fn(HttpRequest) -> Sending + Send + Sync>);

// === impl OAuth2 ===

impl OAuth2 {
    /// Starts with the URL of the token endpoint and the name of the client.
    pub fn builder(token_url: impl Into<String>, client_id: impl Into<String>) -> OAuth2Builder {
        OAuth2Builder {
            token_url: token_url.into(),
            client_id: client_id.into(),
            client_secret: None,
            in_body: false,
            scopes: Vec::new(),
            parameters: Vec::new(),
            clock: Arc::new(SystemClock::new()),
        }
    }

    async fn exchange(
        &self,
        previous: Option<&Credential>,
    ) -> Result<BasicTokenResponse, RequestTokenError<NotAnswered, BasicErrorResponse>> {
        match &self.grant {
            Grant::ClientCredentials => {
                let mut request = self.client.exchange_client_credentials();
                request = request.add_scopes(self.scopes.iter().cloned());
                for (name, value) in &self.parameters {
                    request = request.add_extra_param(name, value);
                }
                request.request_async(&self.sender).await
            }
            Grant::RefreshToken(first) => {
                let kept = previous.and_then(Credential::refresh_token);
                let Some(token) = kept.or(first.as_ref()) else {
                    let what = "there is no refresh token to begin with";
                    return Err(RequestTokenError::Other(what.to_owned()));
                };
                let token = RefreshToken::new(token.expose().to_owned());
                let mut request = self.client.exchange_refresh_token(&token);
                request = request.add_scopes(self.scopes.iter().cloned());
                for (name, value) in &self.parameters {
                    request = request.add_extra_param(name, value);
                }
                request.request_async(&self.sender).await
            }
        }
    }

    /// Whether there is nothing to ask with, which only a human can change.
    fn has_nothing(&self, previous: Option<&Credential>) -> bool {
        let kept = previous.and_then(Credential::refresh_token);
        matches!(self.grant, Grant::RefreshToken(None)) && kept.is_none()
    }
}

impl TokenSource for OAuth2 {
    async fn fetch(&self, previous: Option<Credential>) -> Result<Credential, FetchError> {
        if self.has_nothing(previous.as_ref()) {
            return Err(FetchError::dead("there is no refresh token to begin with"));
        }
        let answer = self.exchange(previous.as_ref()).await.map_err(class)?;
        let mut credential = Credential::new(answer.access_token().secret().as_str());
        if let Some(lifetime) = answer.expires_in() {
            credential = credential.with_lifetime(lifetime);
        }
        if let (Grant::RefreshToken(first), token) = (&self.grant, answer.refresh_token()) {
            let token = token.map(|token| Secret::new(token.secret().as_str()));
            // An answer without one means the one that it was spent with, be that the first.
            let kept = previous.as_ref().and_then(Credential::refresh_token);
            if let Some(token) = token.as_ref().or(kept).or(first.as_ref()) {
                credential = credential.with_refresh_token(token.clone());
            }
        }
        Ok(credential)
    }
}

impl fmt::Debug for OAuth2 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth2")
            .field("token_url", &Origin::shown(self.client.token_uri()))
            .field("client_id", &self.client.client_id().as_str())
            .finish_non_exhaustive()
    }
}

// === impl OAuth2Builder ===

impl OAuth2Builder {
    /// Sets the secret of the client. Without one the client is public.
    pub fn client_secret(mut self, secret: impl Into<Secret>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Sends name and secret of the client in the body instead of `Authorization: Basic` (RFC 6749,
    /// section 2.3.1).
    pub fn credentials_in_body(mut self) -> Self {
        self.in_body = true;
        self
    }

    /// Asks for a scope.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Adds a parameter that this server wants, such as `audience` or `resource`.
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// Sets the wall clock, for a `Retry-After` that is a date: by default the system's.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds a source that asks with the client's own name and secret.
    ///
    /// `send` sends a request and returns the answer, whatever its status. It must not follow
    /// redirects, which would hand the secret on.
    ///
    /// # Errors
    ///
    /// If `token_url` is no absolute URL of `https` (or of `http` on this machine), or if there is no
    /// secret.
    pub fn client_credentials<F, Fut, E>(self, send: F) -> Result<OAuth2, ConfigError>
    where
        F: Fn(Request<Vec<u8>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<Vec<u8>>, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        if self.client_secret.is_none() {
            let expected = "a secret: these credentials are the client's own";
            return Err(ConfigError::new("client_secret", (), expected));
        }
        self.build(Grant::ClientCredentials, send)
    }

    /// Builds a source that spends refresh tokens, beginning with the one that is stored, else with
    /// `first`. Without either a human has to log in.
    ///
    /// `send` is as in [`client_credentials`](Self::client_credentials).
    ///
    /// # Errors
    ///
    /// If `token_url` is no absolute URL of `https` (or of `http` on this machine).
    pub fn refresh_token<F, Fut, E>(
        self,
        first: Option<Secret>,
        send: F,
    ) -> Result<OAuth2, ConfigError>
    where
        F: Fn(Request<Vec<u8>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<Vec<u8>>, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.build(Grant::RefreshToken(first), send)
    }

    fn build<F, Fut, E>(self, grant: Grant, send: F) -> Result<OAuth2, ConfigError>
    where
        F: Fn(Request<Vec<u8>>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Response<Vec<u8>>, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        let expected = "an absolute URL of https, or of http on this machine";
        let wrong = || ConfigError::new("token_url", Origin::shown(&self.token_url), expected);
        let token_url = TokenUrl::new(self.token_url.clone()).map_err(|_| wrong())?;
        let url = token_url.url();
        let is_here = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && is_here) {
            return Err(wrong());
        }
        let mut client = BasicClient::new(ClientId::new(self.client_id)).set_token_uri(token_url);
        if let Some(secret) = &self.client_secret {
            client = client.set_client_secret(ClientSecret::new(secret.expose().to_owned()));
        }
        if self.in_body {
            client = client.set_auth_type(AuthType::RequestBody);
        }
        let clock = self.clock;
        Ok(OAuth2 {
            client,
            scopes: self.scopes.into_iter().map(Scope::new).collect(),
            parameters: self.parameters,
            grant,
            sender: Sender(Box::new(move |mut request| {
                if let Some(secret) = request.headers_mut().get_mut(header::AUTHORIZATION) {
                    secret.set_sensitive(true);
                }
                let answer = send(request);
                let clock = Arc::clone(&clock);
                Box::pin(async move { usable(answer.await.map_err(Into::into), &*clock) })
            })),
        })
    }
}

impl fmt::Debug for OAuth2Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth2Builder")
            .field("token_url", &Origin::shown(&self.token_url))
            .field("client_id", &self.client_id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

// === impl Sender ===

// A type of its own, since for a closure the compiler could not tell that the whole is `Send`.
impl<'c> AsyncHttpClient<'c> for Sender {
    type Error = NotAnswered;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, NotAnswered>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        (self.0)(request)
    }
}
