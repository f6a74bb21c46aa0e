//! Limits, and who goes first.

use http::StatusCode;
use tower_outcome_testkit::Venue;

use crate::running::{Gateway, send};

#[tokio::test]
async fn what_does_not_fit_a_limit_is_a_503_that_says_when_to_come_back() {
    let venue = Venue::start().unwrap();
    let more = "max_wait = \"0s\"\n\
                [[upstream.limit]]\nname = \"requests\"\nkind = \"sliding\"\ncapacity = 1\nwindow = \"1h\"\n";
    let gateway = Gateway::before(&venue, more).await;
    let got = send(gateway.post("/venue/orders", "order-1"), "buy").await;
    assert_eq!(got.status, StatusCode::OK);
    let got = send(gateway.post("/venue/orders", "order-2"), "buy").await;
    let problem = got.assert_problem(503, "local-limit");
    assert_eq!(problem["outcome"], "retryable");
    assert_eq!(problem["reason"], "local_limit");
    assert_eq!(problem["delivery"], "not_sent");
    let after: u64 = got.header("retry-after").parse().unwrap();
    assert!((1..=3700).contains(&after), "{after}");
    assert_eq!(venue.ledger().len(), 1);
    let limits = &gateway.status().await["limits"];
    assert_eq!(limits[0]["name"], "requests");
    assert_eq!(limits[0]["used"], 1);
}

#[tokio::test]
async fn only_listed_values_give_a_priority() {
    let venue = Venue::start().unwrap();
    let more = "max_wait = \"0s\"\n\
                [[upstream.limit]]\nname = \"requests\"\nkind = \"sliding\"\ncapacity = 4\nwindow = \"1h\"\n\
                [[upstream.class]]\nname = \"order\"\n\
                [[upstream.class]]\nname = \"sweep\"\nleave_percent = 50\n\
                [upstream.priority]\nvalues = { urgent = \"order\" }\notherwise = \"sweep\"\n";
    let gateway = Gateway::before(&venue, more).await;
    // What a sweep leaves to orders, nobody gets by making something up.
    for (said, status) in [
        (None, 200),
        (Some("order"), 200),
        (Some("highest"), 503),
        (Some("URGENT"), 503),
        (None, 503),
        (Some("urgent"), 200),
        (Some("urgent"), 200),
        (Some("urgent"), 503),
    ] {
        let mut quote = gateway.get("/venue/quote");
        if let Some(said) = said {
            quote = quote.header("x-priority", said);
        }
        assert_eq!(send(quote, "").await.status, status, "{said:?}");
    }
    let classes = &gateway.status().await["classes"];
    assert_eq!(classes[0]["granted"], 2);
    assert_eq!(classes[1]["granted"], 2);
}

#[tokio::test]
async fn requests_cost_what_the_file_says() {
    let venue = Venue::start().unwrap();
    let more = "max_wait = \"0s\"\n\
                [[upstream.limit]]\nname = \"weight\"\nkind = \"aligned\"\ncapacity = 10\nwindow = \"1h\"\n\
                [[upstream.limit]]\nname = \"orders\"\nkind = \"sliding\"\ncapacity = 2\nwindow = \"1h\"\n\
                [[upstream.cost]]\npath = \"/orders/*\"\nmethod = \"POST\"\nunits = { weight = 1, orders = 1 }\n\
                [[upstream.cost]]\npath = \"/depth\"\nunits = { weight = 5 }\n";
    let gateway = Gateway::before(&venue, more).await;
    let depth = || {
        gateway
            .get("/venue/depth")
            .header("x-operation-id", "depth")
    };
    assert_eq!(send(depth(), "").await.status, 200);
    let order = gateway.post("/venue/orders", "order-1");
    assert_eq!(send(order, "buy").await.status, 200);
    // It costs 5, and there are 4.
    send(depth(), "").await.assert_problem(503, "local-limit");
    let status = gateway.status().await;
    assert_eq!(status["limits"][0]["used"], 6);
    assert_eq!(status["limits"][1]["used"], 1);
}

#[tokio::test]
async fn where_callers_have_no_say_nothing_is_left_to_others() {
    let venue = Venue::start().unwrap();
    let more = "max_wait = \"0s\"\n\
                [[upstream.limit]]\nname = \"requests\"\nkind = \"sliding\"\ncapacity = 10\nwindow = \"1h\"\n";
    let gateway = Gateway::before(&venue, more).await;
    for _ in 0..10 {
        let got = send(
            gateway.get("/venue/quote").header("x-priority", "sweep"),
            "",
        )
        .await;
        assert_eq!(got.status, 200);
    }
    let status = gateway.status().await;
    assert_eq!(status["limits"][0]["used"], 10);
    assert_eq!(status["classes"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_escape_too_many_does_not_change_what_a_request_costs() {
    let venue = Venue::start().unwrap();
    let more = "[[upstream.limit]]\nname = \"weight\"\nkind = \"sliding\"\ncapacity = 100\nwindow = \"1h\"\n\
                [[upstream.cost]]\npath = \"/depth\"\nunits = { weight = 50 }\n";
    let gateway = Gateway::before(&venue, more).await;
    assert_eq!(send(gateway.get("/venue/%64epth"), "").await.status, 200);
    assert_eq!(gateway.status().await["limits"][0]["used"], 50);
}
