//! Each bound strikes for its own trouble, and only for it.

use std::time::Duration;

use http::Request;
use tower_outcome::{Bound, Outcome, Timeouts, timeout::TimeoutsBuilder};
use tower_outcome_testkit::{Fault, Venue};

use super::{
    stack::{Protocol, Struck, call, full, nodelay, post, stack},
    trouble::Trouble,
};

/// Long enough that nothing strikes which should not, on a machine with other things to do.
const SHORT: Duration = Duration::from_millis(400);

/// Several times that.
const CALL: Duration = Duration::from_millis(1_600);

fn with(builder: TimeoutsBuilder, bound: Bound, limit: Option<Duration>) -> TimeoutsBuilder {
    match bound {
        Bound::Connect => builder.connect(limit),
        Bound::Acquire => builder.acquire(limit),
        Bound::WriteIdle => builder.write_idle(limit),
        Bound::Head => builder.head(limit),
        Bound::ReadIdle => builder.read_idle(limit),
        Bound::Attempt => builder.attempt(limit),
        Bound::Deadline => builder.call(limit),
        other => panic!("{other:?}"),
    }
}

const PARTIAL: [Bound; 5] = [
    Bound::Connect,
    Bound::Acquire,
    Bound::WriteIdle,
    Bound::Head,
    Bound::ReadIdle,
];

/// Makes calls over both protocols that meet every trouble, all at once.
async fn meet_all(timeouts: impl Fn(Trouble) -> Timeouts) -> Vec<(Trouble, Protocol, Struck)> {
    let timeouts = &timeouts;
    let calls = Trouble::ALL
        .into_iter()
        .flat_map(|trouble| Protocol::ALL.map(|protocol| (trouble, protocol)))
        .map(|(trouble, protocol)| async move {
            let struck = trouble.meet(&timeouts(trouble), protocol).await;
            (trouble, protocol, struck)
        });
    futures_util::future::join_all(calls).await
}

#[tokio::test]
async fn each_bound_strikes_for_its_own_trouble_and_says_what_is_proven() {
    let own = |trouble: Trouble| {
        let none = PARTIAL
            .into_iter()
            .fold(Timeouts::builder().attempt(None), |builder, bound| {
                with(builder, bound, None)
            });
        let limit = if trouble.bound() == Bound::Deadline {
            CALL
        } else {
            SHORT
        };
        with(none, trouble.bound(), Some(limit)).build().unwrap()
    };
    for (trouble, protocol, struck) in meet_all(own).await {
        let about = format!("{trouble:?} over {protocol:?}: {struck:?}");
        assert_eq!(struck.bound, trouble.bound(), "{about}");
        assert_eq!((struck.phase, struck.delivery), trouble.proven(), "{about}");
        assert_eq!(
            matches!(struck.outcome, Outcome::Unknown { .. }),
            !struck.delivery.proves_not_applied(),
            "{about}"
        );
    }
}

#[tokio::test]
async fn no_other_bound_strikes_and_the_deadline_ends_the_call() {
    let others = |trouble: Trouble| {
        let bounds = PARTIAL
            .into_iter()
            .filter(|bound| *bound != trouble.bound())
            .fold(
                Timeouts::builder().attempt(None).call(CALL),
                |builder, bound| with(builder, bound, Some(SHORT)),
            );
        let bounds = match trouble.bound() {
            Bound::Deadline => bounds,
            own => with(bounds, own, None),
        };
        bounds.build().unwrap()
    };
    for (trouble, protocol, struck) in meet_all(others).await {
        let about = format!("{trouble:?} over {protocol:?}: {struck:?}");
        assert_eq!(struck.bound, Bound::Deadline, "{about}");
        assert_eq!((struck.phase, struck.delivery), trouble.proven(), "{about}");
    }
}

#[tokio::test]
async fn the_attempt_ends_whatever_happens_before_the_head() {
    let attempt = |_| {
        let none = PARTIAL
            .into_iter()
            .fold(Timeouts::builder(), |builder, bound| {
                with(builder, bound, None)
            });
        none.call(CALL).attempt(SHORT).build().unwrap()
    };
    for (trouble, protocol, struck) in meet_all(attempt).await {
        let about = format!("{trouble:?} over {protocol:?}: {struck:?}");
        let bound = match trouble {
            // The queue is no part of an attempt, and neither is the body.
            Trouble::Queue | Trouble::Stalls | Trouble::Drips => Bound::Deadline,
            _ => Bound::Attempt,
        };
        assert_eq!(struck.bound, bound, "{about}");
        assert_eq!((struck.phase, struck.delivery), trouble.proven(), "{about}");
    }
}

#[tokio::test]
async fn an_answer_that_comes_while_the_body_is_being_sent_is_delivered() {
    for protocol in Protocol::ALL {
        for code in [401, 413] {
            let venue = Venue::start().unwrap();
            let timeouts = Timeouts::builder().head(Duration::from_secs(5));
            let stack = stack(&timeouts.build().unwrap(), protocol, 8, nodelay());
            let early = Fault::EarlyAnswer { code, drain: true };
            let body = full(vec![b'.'; 4 << 20]);
            let mut request: Request<_> = post(&venue.url("/orders"), body);
            let value = early.header_value();
            request.headers_mut().insert(Fault::HEADER, value);
            let response = call(&stack, request).await.unwrap();
            assert_eq!(response.status(), code);
            assert_eq!(venue.ledger().applied("order-1"), 0);
        }
    }
}

#[tokio::test]
async fn a_call_that_is_in_time_meets_no_bound() {
    for protocol in Protocol::ALL {
        let venue = Venue::start().unwrap();
        let all = PARTIAL
            .into_iter()
            .fold(Timeouts::builder(), |builder, bound| {
                with(builder, bound, Some(Duration::from_secs(5)))
            });
        let stack = stack(&all.build().unwrap(), protocol, 1, nodelay());
        for _ in 0..3 {
            let request = post(&venue.url("/orders"), full("buy 100"));
            assert_eq!(call(&stack, request).await.unwrap().status(), 200);
        }
        assert_eq!(venue.ledger().applied_total(), 3);
    }
}
