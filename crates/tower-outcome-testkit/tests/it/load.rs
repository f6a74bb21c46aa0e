//! Many calls at a time over shared connections, every fault mixed: the venue never lies.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::Full;
use tower_outcome_testkit::{AtAccept, Fault, Plan, Protocol, Venue};

use crate::client::{BOTH, Seen, client, send};

const CALLS: usize = 1500;
const AT_ONCE: usize = 32;

/// Whether the client may take for granted that the venue did not act.
fn is_disproven(seen: &Seen) -> bool {
    let Seen::Failure(error) = seen else {
        return false;
    };
    let chain = seen.chain();
    error.is_connect()
        || error.connect_info().is_none()
        || chain.contains("hyper::Error(Canceled")
        || chain.contains("REFUSED_STREAM, Remote")
        || chain.contains("GoAway") && chain.contains("Remote")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_venue_disowns_it_did_not_apply() {
    for protocol in BOTH {
        let faults = Fault::all().filter(|fault| !matches!(fault, Fault::Stall { .. }));
        let plan = Plan::new(11)
            .rate(0.4)
            .faults(faults)
            .at_accept(0.02, AtAccept::Close)
            .at_accept(0.02, AtAccept::Reset);
        let venue = Arc::new(Venue::builder().plan(plan).start().unwrap());
        let client = client(protocol);
        let mut workers = tokio::task::JoinSet::new();
        for worker in 0..AT_ONCE {
            let (client, venue) = (client.clone(), Arc::clone(&venue));
            workers.spawn(async move {
                let mut seen = Vec::new();
                for call in (worker..CALLS).step_by(AT_ONCE) {
                    let request = Request::post(venue.url("/orders"))
                        .header("x-operation-id", format!("op-{call}"))
                        .body(Full::from(vec![7; (call % 7) * 20_000]))
                        .unwrap();
                    // hyper may leave a call on a dying connection pending for ever.
                    let bound = Duration::from_secs(20);
                    let sent = tokio::time::timeout(bound, send(&client, request)).await;
                    seen.extend(sent.ok().map(|sent| (call, sent)));
                }
                seen
            });
        }
        let seen: Vec<(usize, Seen)> = workers.join_all().await.into_iter().flatten().collect();
        drop(client);
        let ledger = venue.ledger();
        ledger.settled().await;

        let mut disproven = 0;
        for (call, seen) in &seen {
            let entries = ledger.of_operation(&format!("op-{call}"));
            let applied = entries.iter().filter(|entry| entry.applied).count();
            assert!(applied <= 1, "{entries:?}");
            if is_disproven(seen) {
                disproven += 1;
                assert_eq!(applied, 0, "{seen:?} {entries:?}");
            }
            if seen.whole() == Some(200) && entries[0].fault.is_none() {
                assert_eq!(applied, 1, "{entries:?}");
            }
        }
        assert!(seen.len() > CALLS - 10, "{} came back", seen.len());
        if protocol == Protocol::Http2 {
            // On HTTP/1 only connections that died young prove anything, which is a race.
            assert!(disproven > 0);
            assert!(ledger.connections() < 1500, "streams share connections");
        }
    }
}
