//! The credential for the upstream.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response,
    header::{AUTHORIZATION, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;
use tower_outcome::{
    AuthRefreshLayer, BoxError, Credential, Credentials, FetchError, HttpClassifier,
    auth_refresh::{AuthRefreshLayerBuilder, CredentialsBuilder, Headers, OAuth2},
};

use super::{
    super::{config::header, target::plain_http},
    Reading, Section,
};

/// How credentials are got.
#[derive(Clone, Copy)]
enum Kind {
    Bearer,
    LogIn,
    OAuth2,
}

/// A log-in request, and where its answer has the token.
#[derive(Clone)]
struct LogIn {
    client: Plain,
    url: String,
    content_type: String,
    body: Bytes,
    token: String,
}

/// Without the layers, of which one would wait for the credential that it fetches.
type Plain = Client<HttpConnector, Full<Bytes>>;

/// No token server has more to say.
const ANSWER_LIMIT: usize = 64 * 1024;

/// Reads `[upstream.auth]`.
pub(super) fn read(
    section: &Section<'_>,
    name: &str,
    origin: &str,
    reading: &Reading<'_>,
) -> Option<AuthRefreshLayerBuilder<HttpClassifier>> {
    let words = [
        ("bearer", Kind::Bearer),
        ("login", Kind::LogIn),
        ("oauth2", Kind::OAuth2),
    ];
    section.needed("kind");
    let kind = section.one_of("kind", &words)?;
    let credentials = match kind {
        Kind::Bearer => bearer(section, name, reading),
        Kind::LogIn => log_in(section, name, reading),
        Kind::OAuth2 => oauth2(section, name, reading),
    };
    let interval = section.span("min_interval");
    let header = header(section, "header");
    let mut credentials = credentials?.origin(origin);
    if let Some(interval) = interval {
        credentials = credentials.min_interval(interval);
    }
    if let Some(header) = header {
        credentials = credentials.attach(Headers::new().token(header));
    }
    match credentials.build() {
        // There is no other token from the environment than the one that was rejected.
        Ok(credentials) => {
            Some(AuthRefreshLayer::builder(credentials).replays(!matches!(kind, Kind::Bearer)))
        }
        Err(error) => {
            section.refused(&error);
            None
        }
    }
}

/// Those that requests get, and `Authorization`, which is for whoever has the credential.
pub(super) fn headers(section: &Section<'_>) -> Vec<HeaderName> {
    let own = header(section, "header");
    own.into_iter().chain([AUTHORIZATION]).collect()
}

fn bearer(section: &Section<'_>, name: &str, reading: &Reading<'_>) -> Option<CredentialsBuilder> {
    let token = reading.secret(section, "token_env")?;
    if HeaderValue::from_str(&token).is_err() {
        // Not even a part of it is told.
        section.wrong("token_env", "what the environment has makes no header");
        return None;
    }
    let source = move |_: Option<Credential>| {
        let credential = Credential::new(token.as_str());
        async move { Ok::<_, FetchError>(credential) }
    };
    Some(Credentials::builder(name, source))
}

fn log_in(section: &Section<'_>, name: &str, reading: &Reading<'_>) -> Option<CredentialsBuilder> {
    let url = url(section, "url");
    let body = reading.secret(section, "body_env");
    let content_type = section.text("content_type").unwrap_or("application/json");
    if HeaderValue::from_str(content_type).is_err() {
        let expected = "expected a type of media";
        section.wrong("content_type", format_args!("{content_type:?}, {expected}"));
        return None;
    }
    let token = section.text("token").unwrap_or("access_token");
    let lifetime = section.span("lifetime");
    let log_in = LogIn {
        client: plain(),
        url: url?.to_owned(),
        content_type: content_type.to_owned(),
        body: Bytes::from(body?),
        token: token.to_owned(),
    };
    let source = move |_: Option<Credential>| {
        let log_in = log_in.clone();
        async move { log_in.send(lifetime).await }
    };
    Some(Credentials::builder(name, source))
}

fn oauth2(section: &Section<'_>, name: &str, reading: &Reading<'_>) -> Option<CredentialsBuilder> {
    let token_url = url(section, "token_url");
    let client_id = section.needed("client_id");
    let secret = reading.secret(section, "client_secret_env");
    let scopes = section.texts("scopes");
    let mut source = OAuth2::builder(token_url?, client_id?).client_secret(secret?.as_str());
    for scope in scopes {
        source = source.scope(scope);
    }
    let client = plain();
    let send = move |request: Request<Vec<u8>>| {
        let client = client.clone();
        async move {
            let response = client.request(request.map(Full::from)).await?;
            read_answer(response).await
        }
    };
    match source.client_credentials(send) {
        Ok(source) => Some(Credentials::builder(name, source)),
        Err(error) => {
            section.refused(&error);
            None
        }
    }
}

/// Reads where a log-in goes. It is a whole address: what is below the upstream's base is for callers.
fn url<'f>(section: &Section<'f>, key: &'static str) -> Option<&'f str> {
    let text = section.needed(key)?;
    plain_http(text)
        .map_err(|expected| section.wrong(key, format_args!("{text:?}, expected {expected}")))
        .ok()?;
    Some(text)
}

fn plain() -> Plain {
    Client::builder(TokioExecutor::new())
        .retry_canceled_requests(false)
        .build_http()
}

async fn read_answer<B>(response: Response<B>) -> Result<Response<Vec<u8>>, BoxError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (head, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_LIMIT).collect().await?.to_bytes();
    Ok(Response::from_parts(head, body.to_vec()))
}

// === impl LogIn ===

impl LogIn {
    async fn send(&self, lifetime: Option<Duration>) -> Result<Credential, FetchError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.url)
            .header(CONTENT_TYPE, &self.content_type)
            .body(Full::from(self.body.clone()))
            .map_err(FetchError::dead)?;
        let response = self.client.request(request).await;
        let answer = read_answer(response.map_err(FetchError::transient)?).await;
        let answer = answer.map_err(FetchError::transient)?;
        let status = answer.status();
        if status.is_client_error() && status.as_u16() != 429 && status.as_u16() != 408 {
            // One more bad log-in may lock the account.
            let why = format!("the log-in was answered {status}");
            return Err(FetchError::dead(io::Error::other(why)));
        }
        let body: Value = serde_json::from_slice(answer.body()).map_err(FetchError::transient)?;
        let Some(token) = body.get(&self.token).and_then(Value::as_str) else {
            let why = format!("the answer to the log-in has no {:?}", self.token);
            return Err(FetchError::transient(io::Error::other(why)));
        };
        let credential = Credential::new(token);
        Ok(match lifetime {
            Some(lifetime) => credential.with_lifetime(lifetime),
            None => credential,
        })
    }
}
