//! The session that all calls to a venue share, which dies again and again.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use tower_outcome::{BoxError, Credential, Credentials, FetchError};

/// Where the venue hands out sessions.
pub(crate) const PATH: &str = "/session";

/// Logs in at the venue, as often as it takes: half of its answers are faults.
pub(crate) fn credentials(base: &str) -> Credentials {
    let client = Client::builder(TokioExecutor::new()).build_http::<Full<Bytes>>();
    let url = format!("{base}{PATH}");
    let source = move |_: Option<Credential>| {
        let (client, url) = (client.clone(), url.clone());
        async move {
            let mut tries = 0;
            loop {
                let request = Request::post(&url)
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(Full::from("grant_type=password&username=u&password=p"));
                let asked = client.request(request.map_err(FetchError::transient)?);
                let answered = async {
                    let body = asked.await?.into_body().collect().await?.to_bytes();
                    let answer: serde_json::Value = serde_json::from_slice(&body)?;
                    let token = answer["access_token"].as_str().ok_or("no token")?;
                    Ok::<_, BoxError>(token.to_owned())
                };
                let limit = std::time::Duration::from_millis(100);
                match tokio::time::timeout(limit, answered).await {
                    Ok(Ok(token)) => return Ok(Credential::new(token)),
                    _ if tries < 40 => tries += 1,
                    Ok(Err(error)) => return Err(FetchError::transient(error)),
                    Err(error) => return Err(FetchError::transient(error)),
                }
            }
        }
    };
    Credentials::builder("venue", source)
        .any_origin()
        .timeout(std::time::Duration::from_secs(5))
        .min_interval(std::time::Duration::from_millis(1))
        .build()
        .expect("a source")
}
