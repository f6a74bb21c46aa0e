//! A source of credentials that logs in at the venue.

use bytes::Bytes;
use http::{Request, header};
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower_outcome::{Credential, FetchError};

/// Logs in, and later spends the refresh token, with a client of its own.
pub(crate) fn source(url: String) -> impl tower_outcome::TokenSource {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    move |previous: Option<Credential>| {
        let (client, url) = (client.clone(), url.clone());
        async move {
            let form = match previous.as_ref().and_then(Credential::refresh_token) {
                Some(token) => {
                    let token = token.expose();
                    format!("grant_type=refresh_token&refresh_token={token}")
                }
                None => "grant_type=password&username=u&password=p".to_owned(),
            };
            let request = Request::post(url)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Full::from(form))
                .map_err(FetchError::transient)?;
            let response = client
                .request(request)
                .await
                .map_err(FetchError::transient)?;
            let status = response.status();
            let body = response.into_body().collect().await;
            let body = body.map_err(FetchError::transient)?.to_bytes();
            let answer: serde_json::Value =
                serde_json::from_slice(&body).map_err(FetchError::transient)?;
            let text = |name: &str| answer[name].as_str().map(str::to_owned);
            match (text("access_token"), text("refresh_token")) {
                (Some(access), Some(refresh)) => {
                    Ok(Credential::new(access).with_refresh_token(refresh))
                }
                _ if text("error").as_deref() == Some("invalid_grant") => {
                    Err(FetchError::dead("invalid_grant"))
                }
                _ => Err(FetchError::transient(format!("answered {status}"))),
            }
        }
    }
}
