//! What is put on requests on their way.

use std::sync::{Arc, Mutex};

use http::StatusCode;
use tower_outcome::{Clock, SystemClock, Template, Verifier};
use tower_outcome_testkit::{self as testkit, Answer, Logins, Signature, Signed, Venue};

use crate::running::{Gateway, send, upstream};

#[tokio::test]
async fn what_is_signed_here_is_accepted_there() {
    let verifier = Verifier::new(Template::bybit("desk-7", "the secret").unwrap()).unwrap();
    let demand = Signature::new(move |request: &http::Request<bytes::Bytes>| {
        let verified = verifier.verify(request, SystemClock::new().now());
        verified.ok().map(|_| Signed::new())
    });
    let venue = Venue::builder().demand(demand).start().unwrap();
    let file = upstream(
        &venue,
        "[upstream.sign]\ntemplate = \"bybit\"\nkey_env = \"DESK_KEY\"\nsecret_env = \"DESK_SECRET\"\n",
    );
    for (secret, status, outcome) in [
        ("the secret", 200, "success"),
        ("another", 401, "permanent"),
    ] {
        let environment = [("DESK_KEY", "desk-7"), ("DESK_SECRET", secret)];
        let gateway = Gateway::start(&file, &environment).await;
        let got = send(gateway.post("/venue/orders?a=b", "order"), "buy 100").await;
        assert_eq!(got.status, status);
        assert_eq!(got.header("x-outcome"), outcome);
    }
    assert_eq!(venue.ledger().applied("order"), 1);
}

#[tokio::test]
async fn a_session_that_dies_is_renewed_and_each_request_sent_once_more() {
    let logins = Logins::at("/token");
    let venue = Venue::builder().demand(logins.clone()).start().unwrap();
    let more = format!(
        "[upstream.auth]\nkind = \"login\"\nurl = \"{}\"\nbody_env = \"LOGIN\"\n\
         content_type = \"application/x-www-form-urlencoded\"\nmin_interval = \"1ms\"\n",
        venue.url("/token")
    );
    let environment = [("LOGIN", "grant_type=password&username=desk-7")];
    let gateway = Gateway::start(&upstream(&venue, &more), &environment).await;
    let order = |operation: &str| {
        // What the caller has is for the gateway, and does not win over what it puts on.
        let order = gateway.post("/venue/orders", operation);
        send(order.header("authorization", "Bearer mine"), "buy")
    };
    assert_eq!(order("order-1").await.status, StatusCode::OK);
    assert_eq!((logins.logins(), logins.rejections()), (1, 0));
    logins.expire_all();
    let got = order("order-2").await;
    assert_eq!(got.status, StatusCode::OK);
    assert_eq!(got.header("x-outcome"), "success");
    assert_eq!((logins.logins(), logins.rejections()), (2, 1));
    assert_eq!(venue.ledger().applied("order-2"), 1);
}

#[tokio::test]
async fn without_a_log_in_nothing_is_sent() {
    let venue = Venue::builder()
        .demand(|request: &testkit::Request| match request.path.as_str() {
            "/token" => Err(Answer::status(403)),
            _ => Ok(()),
        })
        .start()
        .unwrap();
    let more = format!(
        "[upstream.auth]\nkind = \"login\"\nurl = \"{}\"\nbody_env = \"LOGIN\"\n",
        venue.url("/token")
    );
    let gateway = Gateway::start(&upstream(&venue, &more), &[("LOGIN", "{}")]).await;
    let got = send(gateway.post("/venue/orders", "order-1"), "buy").await;
    let problem = got.assert_problem(502, "no-credential");
    assert_eq!(problem["delivery"], "not_sent");
    assert_eq!(problem["reason"], "auth_unavailable");
    assert_eq!(venue.ledger().attempts("order-1"), 0);
}

#[tokio::test]
async fn tokens_come_from_the_environment_or_from_oauth2() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let venue = Venue::builder()
        .demand(move |request: &testkit::Request| {
            let has = request.header("authorization").unwrap_or_default();
            kept.lock().unwrap().push(has.to_owned());
            let token = r#"{"access_token":"fetched","token_type":"bearer","expires_in":3600}"#;
            match request.path.as_str() {
                "/token" => Err(Answer::json(200, token)),
                _ => Ok(()),
            }
        })
        .start()
        .unwrap();
    let bearer = "[upstream.auth]\nkind = \"bearer\"\ntoken_env = \"TOKEN\"\n";
    let oauth2 = format!(
        "[upstream.auth]\nkind = \"oauth2\"\ntoken_url = \"{}\"\nclient_id = \"desk\"\n\
         client_secret_env = \"TOKEN\"\nscopes = [\"orders\"]\n",
        venue.url("/token")
    );
    for more in [bearer, &oauth2] {
        let gateway = Gateway::start(&upstream(&venue, more), &[("TOKEN", "static")]).await;
        let got = send(gateway.get("/venue/quote"), "").await;
        assert_eq!(got.status, StatusCode::OK);
    }
    // The one in the middle is the client's own, of RFC 6749, section 2.3.1: "desk:static".
    let seen = seen.lock().unwrap();
    assert_eq!(
        *seen,
        ["Bearer static", "Basic ZGVzazpzdGF0aWM=", "Bearer fetched"]
    );
}

#[tokio::test]
async fn what_the_gateway_puts_on_no_caller_can_put_there_instead() {
    let seen: Arc<Mutex<Vec<testkit::Request>>> = Arc::default();
    let kept = Arc::clone(&seen);
    let venue = Venue::builder()
        .answer(move |request| {
            kept.lock().unwrap().push(request.clone());
            Answer::status(200)
        })
        .start()
        .unwrap();
    let auth =
        "[upstream.auth]\nkind = \"bearer\"\ntoken_env = \"TOKEN\"\nheader = \"x-session\"\n";
    let gateway = Gateway::start(&upstream(&venue, auth), &[("TOKEN", "ours")]).await;
    let quote = gateway
        .get("/venue/quote")
        .header("x-session", "mine")
        .header("authorization", "Bearer mine");
    assert_eq!(send(quote, "").await.status, 200);
    let sign =
        "[upstream.sign]\ntemplate = \"bybit\"\nkey_env = \"TOKEN\"\nsecret_env = \"TOKEN\"\n";
    let gateway = Gateway::start(&upstream(&venue, sign), &[("TOKEN", "ours")]).await;
    let quote = gateway
        .get("/venue/quote")
        .header("x-bapi-api-key", "mine")
        .header("x-bapi-sign", "mine")
        .header("x-bapi-sign", "mine too");
    assert_eq!(send(quote, "").await.status, 200);

    let seen = seen.lock().unwrap();
    let all = |place: usize, name: &str| -> Vec<String> {
        let headers = seen[place].headers.iter();
        let headers = headers.filter(|(other, _)| other == name);
        headers.map(|(_, value)| value.clone()).collect()
    };
    assert_eq!(all(0, "x-session"), ["ours"]);
    assert_eq!(all(0, "authorization"), [""; 0]);
    assert_eq!(all(1, "x-bapi-api-key"), ["ours"]);
    let signature = all(1, "x-bapi-sign");
    assert!(signature.len() == 1 && !signature[0].starts_with("mine"));
}
