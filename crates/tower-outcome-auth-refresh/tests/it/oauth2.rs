//! What the answers of a token endpoint mean.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Duration,
};

use http::{Request, Response};
use tower_outcome_auth_refresh::{
    Credential, FetchError, OAuth2, OAuth2Builder, Secret, TokenSource,
};

type Answers = Result<Response<Vec<u8>>, io::Error>;
type Seen = Arc<Mutex<Vec<(Option<String>, String)>>>;

fn builder() -> OAuth2Builder {
    OAuth2::builder("https://login.venue.test/token", "desk")
}

fn answer(status: u16, kind: &str, body: &str) -> Answers {
    let response = Response::builder()
        .status(status)
        .header("content-type", kind);
    Ok(response.body(body.as_bytes().to_vec()).unwrap())
}

fn json(status: u16, body: &str) -> Answers {
    answer(status, "application/json", body)
}

/// Notes header and body of what is sent, and says always the same.
fn endpoint(
    said: impl Fn() -> Answers + Send + Sync + 'static,
) -> (
    Seen,
    impl Fn(Request<Vec<u8>>) -> std::future::Ready<Answers> + Send + Sync + 'static,
) {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let send = move |request: Request<Vec<u8>>| {
        let auth = request.headers().get("authorization");
        let auth = auth.map(|value| value.to_str().unwrap().to_owned());
        let body = String::from_utf8(request.into_body()).unwrap();
        log.lock().unwrap().push((auth, body));
        std::future::ready(said())
    };
    (seen, send)
}

async fn refused(said: impl Fn() -> Answers + Send + Sync + 'static) -> FetchError {
    let (_, send) = endpoint(said);
    let source = builder()
        .refresh_token(Some(Secret::new("r0")), send)
        .unwrap();
    source.fetch(None).await.unwrap_err()
}

#[tokio::test]
async fn only_what_a_human_has_to_repair_is_dead() {
    for (code, dead) in [
        ("invalid_grant", true),
        ("invalid_client", true),
        ("unauthorized_client", true),
        ("unsupported_grant_type", true),
        ("invalid_scope", true),
        ("unsupported_token_type", true),
        ("invalid_request", false),
        ("server_error", false),
        ("temporarily_unavailable", false),
        ("slow_down", false),
        ("something_new", false),
    ] {
        for status in [400, 401] {
            let body = format!("{{\"error\":\"{code}\"}}");
            let error = refused(move || json(status, &body)).await;
            assert_eq!(error.is_dead(), dead, "{status} {code}");
        }
        // A server that fails says nothing about the grant.
        for status in [500, 503, 429] {
            let body = format!("{{\"error\":\"{code}\"}}");
            let error = refused(move || json(status, &body)).await;
            assert!(!error.is_dead(), "{status} {code}");
        }
    }
}

#[tokio::test]
async fn pages_and_rubbish_and_lost_answers_are_transient() {
    let page = "<html><body>Access denied invalid_grant</body></html>";
    for status in [200, 400, 403, 404, 502] {
        assert!(
            !refused(move || answer(status, "text/html", page))
                .await
                .is_dead()
        );
        assert!(!refused(move || json(status, page)).await.is_dead());
        assert!(!refused(move || json(status, "")).await.is_dead());
        assert!(
            !refused(move || json(status, "{\"access_token\":"))
                .await
                .is_dead()
        );
    }
    let lost = || Err(io::Error::from(io::ErrorKind::ConnectionReset));
    assert!(!refused(lost).await.is_dead());
}

#[tokio::test]
async fn an_error_keeps_no_part_of_an_answer_that_may_have_a_token_in_it() {
    let error = refused(|| json(200, "{\"access_token\":\"hunter2\",\"refresh_token\":7}")).await;
    let mut text = format!("{error} {error:?}");
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(&format!(" {error} {error:?}"));
        cause = error.source();
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn what_a_busy_endpoint_asks_for_is_kept() {
    let error = refused(|| {
        let response = Response::builder().status(429).header("retry-after", "7");
        Ok(response.body(Vec::new()).unwrap())
    })
    .await;
    assert_eq!(error.after(), Some(Duration::from_secs(7)));
}

#[tokio::test]
async fn client_credentials_are_asked_for_as_the_server_wants_it() {
    let said = || {
        json(
            200,
            r#"{"access_token":"a","token_type":"bearer","expires_in":60}"#,
        )
    };
    let (seen, send) = endpoint(said);
    let source = builder()
        .client_secret("s3cret")
        .scope("orders")
        .scope("prices")
        .parameter("audience", "https://api.venue.test")
        .client_credentials(send)
        .unwrap();
    let credential = source.fetch(None).await.unwrap();
    assert_eq!(credential.token().expose(), "a");
    assert_eq!(credential.lifetime(), Some(Duration::from_secs(60)));
    let (auth, body) = seen.lock().unwrap().pop().unwrap();
    assert_eq!(auth.as_deref(), Some("Basic ZGVzazpzM2NyZXQ="));
    assert!(body.contains("grant_type=client_credentials"));
    assert!(body.contains("scope=orders+prices"));
    assert!(body.contains("audience=https%3A%2F%2Fapi.venue.test"));

    let (seen, send) = endpoint(said);
    let source = builder().client_secret("s3cret").credentials_in_body();
    let source = source.client_credentials(send).unwrap();
    source.fetch(None).await.unwrap();
    let (auth, body) = seen.lock().unwrap().pop().unwrap();
    assert_eq!(auth, None);
    assert!(body.contains("client_id=desk") && body.contains("client_secret=s3cret"));
    assert!(
        !format!("{source:?} {:?}", builder().client_secret("s3cret")).contains("s3cret"),
        "redacted"
    );
}

#[tokio::test]
async fn the_newest_refresh_token_is_spent_and_one_that_does_not_rotate_is_kept() {
    let (seen, send) = endpoint(|| json(200, r#"{"access_token":"a","token_type":"bearer"}"#));
    let source = builder()
        .refresh_token(Some(Secret::new("r0")), send)
        .unwrap();
    let first = source.fetch(None).await.unwrap();
    assert_eq!(first.refresh_token(), Some(&Secret::new("r0")));
    let rotated = Credential::new("x").with_refresh_token("r1");
    let second = source.fetch(Some(rotated)).await.unwrap();
    assert_eq!(second.refresh_token(), Some(&Secret::new("r1")));
    let bodies: Vec<_> = seen
        .lock()
        .unwrap()
        .iter()
        .map(|(_, body)| body.clone())
        .collect();
    assert!(bodies[0].contains("refresh_token=r0") && bodies[1].contains("refresh_token=r1"));

    let (_, send) = endpoint(|| {
        json(
            200,
            r#"{"access_token":"a","token_type":"bearer","refresh_token":"r2"}"#,
        )
    });
    let source = builder().refresh_token(None, send).unwrap();
    assert!(
        source.fetch(None).await.unwrap_err().is_dead(),
        "nobody has logged in"
    );
    let credential = source.fetch(Some(first)).await.unwrap();
    assert_eq!(credential.refresh_token(), Some(&Secret::new("r2")));
}

#[test]
fn what_cannot_work_is_refused_with_field_and_value() {
    for url in [
        "",
        "/token",
        "ftp://venue.test/token",
        "http://venue.test/token",
    ] {
        let (_, send) = endpoint(|| json(200, ""));
        let error = OAuth2::builder(url, "desk")
            .refresh_token(None, send)
            .unwrap_err();
        assert_eq!(
            (error.field(), error.value()),
            ("token_url", &*format!("{url:?}"))
        );
    }
    let (_, send) = endpoint(|| json(200, ""));
    let error = builder().client_credentials(send).unwrap_err();
    assert_eq!(error.field(), "client_secret");
    let (_, send) = endpoint(|| json(200, ""));
    assert!(
        OAuth2::builder("http://127.0.0.1:1/token", "desk")
            .refresh_token(None, send)
            .is_ok()
    );
}

async fn fetched(status: u16, body: &'static str) -> Result<Credential, FetchError> {
    let (_, send) = endpoint(move || json(status, body));
    let source = builder()
        .refresh_token(Some(Secret::new("r0")), send)
        .unwrap();
    source.fetch(None).await
}

#[tokio::test]
async fn an_answer_that_is_slightly_off_loses_no_refresh_token() {
    let minute = Some(Duration::from_secs(60));
    for (status, rest, lifetime) in [
        (200, r#""token_type":"bearer","expires_in":"60""#, minute),
        (200, r#""token_type":"Bearer","expires_in":60.0"#, minute),
        (200, r#""token_type":"bearer","expires_in":60.9"#, minute),
        (200, r#""token_type":"bearer","expires_in":-1"#, None),
        (200, r#""token_type":"bearer","expires_in":"never""#, None),
        (200, r#""token_type":"bearer","expires_in":1e400"#, None),
        (200, r#""expires_in":60"#, minute),
        (200, r#""token_type":null,"expires_in":null"#, None),
        (201, r#""token_type":"bearer","expires_in":60"#, minute),
        (200, r#""token_type":"bearer","scope":["a","b"]"#, None),
    ] {
        if rest.contains("1e400") {
            // No JSON at all for some parsers: only no panic is asked for.
            let _ = fetched(status, r#"{"access_token":"a","expires_in":1e400}"#).await;
            continue;
        }
        let body = format!(r#"{{"access_token":"a1","refresh_token":"r1",{rest}}}"#);
        let credential = fetched(status, body.leak()).await.unwrap();
        assert_eq!(credential.token().expose(), "a1", "{rest}");
        assert_eq!(credential.refresh_token().unwrap().expose(), "r1", "{rest}");
        assert_eq!(credential.lifetime(), lifetime, "{rest}");
    }
}

#[tokio::test]
async fn a_refusal_is_one_whatever_its_status() {
    let error = fetched(200, r#"{"error":"invalid_grant"}"#).await;
    assert!(error.unwrap_err().is_dead());
    let error = refused(|| answer(400, "text/plain", r#"{"error":"invalid_grant"}"#)).await;
    assert!(error.is_dead());
    let error = fetched(200, r#"{"error":"temporarily_unavailable"}"#).await;
    assert!(!error.unwrap_err().is_dead());
}

#[tokio::test]
async fn a_token_of_another_type_is_not_attached_as_a_bearer() {
    let body = r#"{"access_token":"a1","refresh_token":"r1","token_type":"mac","expires_in":60}"#;
    let error = fetched(200, body).await.unwrap_err();
    assert!(error.is_dead());
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("mac") && !cause.contains("a1"), "{cause}");
}

#[tokio::test]
async fn a_date_says_how_long_to_leave_the_token_endpoint_alone() {
    let clock = tower_outcome_core::ManualClock::new(crate::support::start());
    let send = |_: Request<Vec<u8>>| {
        let mut busy = json(503, "").unwrap();
        // Two minutes after the clock of the test.
        let date = "Fri, 15 Jan 2027 08:02:00 GMT".parse().unwrap();
        busy.headers_mut().insert("retry-after", date);
        std::future::ready(Ok::<_, io::Error>(busy))
    };
    let source = builder()
        .clock(Arc::new(clock))
        .refresh_token(Some(Secret::new("r0")), send)
        .unwrap();
    let error = source.fetch(None).await.unwrap_err();
    assert_eq!(error.after(), Some(Duration::from_secs(120)));
}

#[tokio::test]
async fn the_secret_of_a_client_is_marked_sensitive_and_in_no_debug() {
    let send = |request: Request<Vec<u8>>| {
        assert!(request.headers()["authorization"].is_sensitive());
        std::future::ready(json(200, r#"{"access_token":"a1"}"#))
    };
    let source = builder().client_secret("s3cret").client_credentials(send);
    source.unwrap().fetch(None).await.unwrap();
    let with_user = OAuth2::builder("https://desk:s3cret@login.venue.test/token", "desk");
    assert!(!format!("{with_user:?}").contains("s3cret"));
    let send = |_: Request<Vec<u8>>| std::future::ready(json(200, ""));
    let source = with_user.refresh_token(None, send).unwrap();
    assert!(!format!("{source:?}").contains("s3cret"));
    let nowhere = OAuth2::builder("ftp://desk:s3cret@login.venue.test/token", "desk");
    let send = |_: Request<Vec<u8>>| std::future::ready(json(200, ""));
    let error = nowhere.refresh_token(None, send).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
}
