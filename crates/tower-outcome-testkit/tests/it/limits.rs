//! Rate limits and bans over the wire.

use std::time::Duration;

use http_body_util::Full;
use tower_outcome_testkit::{Ban, Fault, Limit, Plan, Venue};

use crate::client::{BOTH, client, order, send, with};

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn over_the_limit_is_429_and_not_applied() {
    for protocol in BOTH {
        for limit in [Limit::sliding(2, LONG), Limit::fixed(2, LONG)] {
            let venue = Venue::builder().limit(limit).start().unwrap();
            let client = client(protocol);
            let mut statuses = Vec::new();
            for n in 0..4 {
                let request = order(&venue, &format!("op-{n}"));
                let seen = send(&client, request.body(Full::default()).unwrap()).await;
                assert_eq!(seen.header("x-ratelimit-limit"), Some("2"));
                let left = if n == 0 { "1" } else { "0" };
                assert_eq!(seen.header("x-ratelimit-remaining"), Some(left));
                if n >= 2 {
                    let wait: u64 = seen.header("retry-after").unwrap().parse().unwrap();
                    assert!((1..=3600).contains(&wait), "{wait}");
                }
                statuses.push(seen.whole().unwrap());
            }
            assert_eq!(statuses, [200, 200, 429, 429]);
            assert_eq!(venue.ledger().applied_total(), 2);
            assert_eq!(venue.ledger().answered(429), 2);
            assert_eq!(venue.ledger().applied("op-2"), 0);
        }
    }
}

#[tokio::test]
async fn faults_do_not_get_past_the_limiter() {
    let venue = Venue::builder()
        .limit(Limit::sliding(1, LONG))
        .plan(Plan::new(1))
        .start()
        .unwrap();
    let client = client(tower_outcome_testkit::Protocol::Http1);
    for status in [503, 429] {
        let request = with(order(&venue, "op"), &Fault::status(503, true));
        assert_eq!(send(&client, request).await.whole(), Some(status));
    }
    assert_eq!(venue.ledger().applied("op"), 1);
    assert_eq!(venue.ledger().entries()[1].fault, None);
}

#[tokio::test]
async fn clients_that_keep_calling_are_banned_one_by_one() {
    let venue = Venue::builder()
        .limit(Limit::sliding(1, LONG))
        .ban(Ban::new(2, LONG, Duration::from_secs(120)))
        .start()
        .unwrap();
    for protocol in BOTH {
        let name = format!("{protocol:?}");
        let client = client(protocol);
        let mut statuses = Vec::new();
        let mut wait = None;
        for _ in 0..4 {
            let request = order(&venue, "op").header("x-client", &name);
            let seen = send(&client, request.body(Full::default()).unwrap()).await;
            statuses.push(seen.whole().unwrap());
            wait = seen.header("retry-after").map(str::to_owned);
        }
        assert_eq!(statuses, [200, 429, 418, 418]);
        assert!(matches!(wait.as_deref(), Some("120" | "119")), "{wait:?}");
        assert_eq!(venue.ledger().bans(Some(&name)), 1);
    }
    assert_eq!(venue.ledger().bans(None), 0);
}

#[test]
fn bad_settings_are_refused_by_name() {
    let limit = Limit::sliding(1, LONG);
    for (builder, field) in [
        (
            Venue::builder().limit(Limit::fixed(0, LONG)),
            "limit.requests",
        ),
        (
            Venue::builder().limit(Limit::fixed(1, Duration::ZERO)),
            "limit.window",
        ),
        (Venue::builder().ban(Ban::new(1, LONG, LONG)), "ban"),
        (
            Venue::builder().limit(limit).ban(Ban::new(0, LONG, LONG)),
            "ban.after",
        ),
        (Venue::builder().plan(Plan::new(1).rate(1.5)), "plan.rate"),
        (
            Venue::builder().plan(Plan::new(1).rate(f64::NAN)),
            "plan.rate",
        ),
    ] {
        let error = builder.start().unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("bad setting {field}: ")),
            "{error}"
        );
    }
}
