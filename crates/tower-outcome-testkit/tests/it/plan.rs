//! Seeded plans over the wire.

use http_body_util::Full;
use tower_outcome_testkit::{AtAccept, Fault, Plan, Protocol, Venue};

use crate::client::{Seen, client, order, send};

fn plan(seed: u64) -> Plan {
    Plan::new(seed)
        .rate(0.6)
        .fault(1, Fault::status(503, false))
        .fault(1, Fault::status(500, true))
        .fault(1, Fault::status(429, false))
}

/// The statuses of the attempts of each operation, whatever the order they were made in.
async fn fates(seed: u64, protocol: Protocol, operations: &[usize]) -> Vec<Vec<u16>> {
    let venue = Venue::builder().plan(plan(seed)).start().unwrap();
    let client = client(protocol);
    let mut fates = vec![Vec::new(); 8];
    for operation in operations {
        let request = order(&venue, &format!("op-{operation}"));
        let seen = send(&client, request.body(Full::default()).unwrap()).await;
        fates[*operation].push(seen.whole().unwrap());
    }
    fates
}

#[tokio::test]
async fn same_seed_means_same_fates_in_any_order_and_protocol() {
    let forward: Vec<usize> = (0..8).chain(0..8).chain(0..8).collect();
    let grouped: Vec<usize> = (0..8).rev().flat_map(|n| [n, n, n]).collect();
    let one = fates(7, Protocol::Http1, &forward).await;
    let two = fates(7, Protocol::Http2, &grouped).await;
    assert_eq!(one, two);
    assert_ne!(one, fates(8, Protocol::Http1, &forward).await);
}

#[tokio::test]
async fn header_wins_over_the_plan() {
    let venue = Venue::builder()
        .plan(Plan::new(1).rate(1.0).fault(1, Fault::status(500, true)))
        .start()
        .unwrap();
    let request = order(&venue, "op").header(Fault::HEADER, "status;code=404;applied=false");
    let seen = send(
        &client(Protocol::Http1),
        request.body(Full::default()).unwrap(),
    )
    .await;
    assert_eq!(seen.whole(), Some(404));
}

#[tokio::test]
async fn connections_die_at_accept_before_any_request_is_read() {
    for protocol in crate::client::BOTH {
        for what in [AtAccept::Close, AtAccept::Reset] {
            let venue = Venue::builder()
                .plan(Plan::new(1).at_accept(1.0, what))
                .start()
                .unwrap();
            let request = order(&venue, "op").body(Full::default()).unwrap();
            let seen = send(&client(protocol), request).await;
            assert!(matches!(seen, Seen::Failure(_)), "{seen:?}");
            assert!(venue.ledger().is_empty());
            assert!(venue.ledger().connections() >= 1);
        }
    }
}
