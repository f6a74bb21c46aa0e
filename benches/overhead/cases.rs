//! What is measured. A case more is an entry more in [`ALL`].

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::header;
use http_body_util::Full;
use tower::{BoxError, Layer, ServiceExt, retry, timeout::TimeoutLayer as TowerTimeout};
use tower_outcome::{
    AuthRefreshLayer, Credential, Credentials, DeadlineLayer, FetchError, Finding, HttpClassifier,
    Inquiry, Limit, RateBudget, RateLimitLayer, ReconcileLayer, Reconciler, RetryLayer,
    TimeoutLayer,
    reconcile::{Keep, ReconcileLayerBuilder},
};

use crate::{
    call::{Bare, Burst, Call, Hesitate, Loop, Persist, Sent},
    peers::{self, Cloning},
    signer::{SIGNATURE, SIGNED},
    smithy, stacks,
};

/// One thing to measure.
pub(crate) struct Case {
    /// As it appears in the output.
    pub(crate) name: &'static str,
    /// What it stands for, in a few words.
    pub(crate) about: &'static str,
    /// What it may cost over the bare loop.
    pub(crate) bound: Option<Bound>,
    pub(crate) sent: Sent,
    service: fn(Sent) -> Box<dyn Burst>,
}

/// What a case may cost a call.
#[derive(Clone, Copy)]
pub(crate) struct Bound {
    pub(crate) instructions: u32,
    pub(crate) allocations: u32,
}

/// In the order of the output.
pub(crate) const ALL: &[Case] = &[
    Case {
        name: "bare",
        about: "a service that does nothing",
        bound: None,
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(Bare::<1>, sent),
    },
    Case {
        name: "tower_retry",
        about: "tower's Retry, its policy clones the request",
        bound: None,
        sent: Sent::Keyed,
        service: |sent| {
            Loop::boxed(
                retry::RetryLayer::new(Cloning { left: 2 }).layer(Bare::<2>),
                sent,
            )
        },
    },
    Case {
        name: "tower_resilience_retry",
        about: "tower-resilience's Retry",
        bound: None,
        sent: Sent::Keyed,
        service: peers::tower_resilience_retry,
    },
    Case {
        name: "outcome_retry",
        about: "Retry, of a request that may be sent again",
        bound: Some(Bound {
            instructions: 1150,
            allocations: 1,
        }),
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(RetryLayer::new().layer(Bare::<3>), sent),
    },
    Case {
        name: "outcome_retry_off",
        about: "Retry, switched off for the request by the layer",
        bound: Some(Bound {
            instructions: 350,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(off().layer(Bare::<4>), sent),
    },
    Case {
        name: "outcome_retry_off_marked",
        about: "Retry, switched off by a mark on the request",
        bound: Some(Bound {
            instructions: 350,
            allocations: 0,
        }),
        sent: Sent::Marked,
        service: |sent| Loop::boxed(RetryLayer::new().layer(Bare::<5>), sent),
    },
    Case {
        name: "outcome_rate_limit",
        about: "RateLimit, one exact window, held until the response",
        bound: Some(Bound {
            instructions: 750,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(rate_limit().layer(Bare::<6>), sent),
    },
    Case {
        name: "outcome_auth_refresh",
        about: "AuthRefresh with a good token, able to replay the request",
        bound: Some(Bound {
            // Not reached: the copy that a replay is made of costs twice as much by itself.
            instructions: 450,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(auth_refresh(true).layer(Bare::<7>), sent),
    },
    Case {
        name: "outcome_auth_refresh_off",
        about: "AuthRefresh with a good token, replays switched off",
        bound: Some(Bound {
            // Not reached: one more header in a map and two clocks are more than half of that alone.
            instructions: 450,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(auth_refresh(false).layer(Bare::<8>), sent),
    },
    Case {
        name: "outcome_reconcile",
        about: "Reconcile, of a request that cannot end unknown",
        bound: Some(Bound {
            // Not reached: what may have to be kept has its place in the future, and is moved along.
            instructions: 350,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| {
            let layer = ReconcileLayer::new(nobody::<28>());
            Loop::boxed(layer.layer(Bare::<28>), sent)
        },
    },
    Case {
        name: "outcome_reconcile_id",
        about: "Reconcile, of one that can, its id kept",
        bound: Some(Bound {
            // Not reached: the same, a look for the id, and the time.
            instructions: 600,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| {
            let layer = reconcile::<29>().keep(Keep::Id).signed(false);
            Loop::boxed(layer.build().expect("is valid").layer(Bare::<29>), sent)
        },
    },
    Case {
        name: "outcome_reconcile_head",
        about: "Reconcile, of one that can, its head kept",
        bound: Some(Bound {
            // Not reached: the copy costs 800 by itself.
            instructions: 1300,
            allocations: 1,
        }),
        sent: Sent::Keyed,
        service: |sent| {
            let layer = reconcile::<30>().signed(false);
            Loop::boxed(layer.build().expect("is valid").layer(Bare::<30>), sent)
        },
    },
    Case {
        name: "outcome_reconcile_signed",
        about: "Reconcile, of one that can, and with a context for the end of a signature",
        bound: None,
        sent: Sent::Keyed,
        service: |sent| {
            let layer = reconcile::<31>();
            Loop::boxed(layer.build().expect("is valid").layer(Bare::<31>), sent)
        },
    },
    Case {
        name: "tower_timeout",
        about: "tower's Timeout",
        bound: None,
        sent: Sent::Keyed,
        service: |sent| {
            Loop::boxed(
                TowerTimeout::new(Duration::from_secs(10)).layer(Bare::<9>),
                sent,
            )
        },
    },
    Case {
        name: "outcome_timeout",
        about: "Timeout, with the defaults",
        bound: Some(Bound {
            // 1.2 times tower's.
            instructions: 338,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(TimeoutLayer::default().layer(Bare::<10>), sent),
    },
    Case {
        name: "tower_timeout_waiting",
        about: "tower's Timeout, of a call that is answered at its second poll",
        bound: None,
        sent: Sent::Keyed,
        service: |sent| {
            let layer = TowerTimeout::new(Duration::from_secs(10));
            Loop::boxed(Persist(layer.layer(Hesitate(Bare::<11>))), sent)
        },
    },
    Case {
        name: "outcome_timeout_waiting",
        about: "Timeout, of the same",
        bound: Some(Bound {
            // 1.2 times tower's.
            instructions: 997,
            allocations: 0,
        }),
        sent: Sent::Keyed,
        service: |sent| {
            let layer = TimeoutLayer::default();
            Loop::boxed(Persist(layer.layer(Hesitate(Bare::<12>))), sent)
        },
    },
    Case {
        name: "http_extension",
        about: "one word in the extensions of a request that had none",
        bound: None,
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(Bare::<13>.map_request(extended), sent),
    },
    Case {
        name: "outcome_deadline",
        about: "Deadline, of a request that had no extensions",
        bound: Some(Bound {
            // Not reached: to put anything into extensions that were empty costs three times as much.
            instructions: 200,
            allocations: 1,
        }),
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(DeadlineLayer::default().layer(Bare::<14>), sent),
    },
    Case {
        name: "outcome_deadline_set",
        about: "Deadline, of a request that brings its own",
        bound: Some(Bound {
            instructions: 200,
            allocations: 1,
        }),
        sent: Sent::Dated,
        service: |sent| Loop::boxed(DeadlineLayer::default().layer(Bare::<15>), sent),
    },
    Case {
        name: "hand_three",
        about: "by hand: tower's Timeout > tower's Retry > governor, nothing boxed",
        bound: None,
        sent: Sent::Keyed,
        service: peers::by_hand,
    },
    Case {
        name: "hand_three_off",
        about: "the same with a policy that keeps no copy",
        bound: None,
        sent: Sent::Keyed,
        service: peers::by_hand_off,
    },
    Case {
        name: "tower_resilience_three",
        about: "tower-resilience: TimeLimiter > Retry > RateLimiter",
        bound: None,
        sent: Sent::Keyed,
        service: peers::tower_resilience,
    },
    Case {
        name: "smithy_orchestrator",
        about: "aws-smithy-runtime: time-out and Retry, no limiter, its own request",
        bound: None,
        sent: Sent::Keyed,
        service: |_| smithy::orchestrator(),
    },
    Case {
        name: "outcome_three",
        about: "Deadline > Retry > RateLimit",
        bound: Some(THREE),
        sent: Sent::Keyed,
        service: stacks::three,
    },
    Case {
        name: "outcome_three_dated",
        about: "the same, of a request that brings its own deadline",
        bound: Some(THREE),
        sent: Sent::Dated,
        service: stacks::three,
    },
    Case {
        name: "outcome_three_off",
        about: "Deadline > Retry > RateLimit, resends switched off by the layer",
        bound: Some(THREE_OFF),
        sent: Sent::Keyed,
        service: stacks::three_off,
    },
    Case {
        name: "outcome_three_attempt",
        about: "Retry > RateLimit > Timeout",
        bound: Some(THREE),
        sent: Sent::Keyed,
        service: stacks::three_attempt,
    },
    Case {
        name: "outcome_three_attempt_off",
        about: "Retry > RateLimit > Timeout, resends switched off by the layer",
        bound: Some(THREE_OFF),
        sent: Sent::Keyed,
        service: stacks::three_attempt_off,
    },
    Case {
        name: "outcome_five",
        about: "Retry > AuthRefresh > RateLimit > Sign > Timeout",
        bound: Some(Bound {
            instructions: 3000,
            allocations: 4,
        }),
        sent: Sent::Keyed,
        service: stacks::five,
    },
    Case {
        name: "outcome_five_built",
        about: "the same, made by the typed builder",
        bound: Some(Bound {
            instructions: 3000,
            allocations: 4,
        }),
        sent: Sent::Keyed,
        service: stacks::five_built,
    },
    Case {
        name: "outcome_seven_built",
        about: "the same, with Deadline above and Witness below",
        bound: None,
        sent: Sent::Keyed,
        service: stacks::seven_built,
    },
    Case {
        name: "http_two_headers",
        about: "two headers more on a request that had five: what AuthRefresh and Sign cannot do without",
        bound: None,
        sent: Sent::Keyed,
        service: |sent| Loop::boxed(Bare::<27>.map_request(two_headers), sent),
    },
];

/// What three layers may cost a request that may be sent again.
const THREE: Bound = Bound {
    instructions: 2000,
    allocations: 2,
};

/// What they may cost one that must not.
const THREE_OFF: Bound = Bound {
    instructions: 1000,
    allocations: 0,
};

// === impl Case ===

impl Case {
    /// Sets up the case's loop.
    pub(crate) fn start(&self) -> Box<dyn Burst> {
        (self.service)(self.sent)
    }
}

/// Sets up the loop that cases are compared with: the same requests, and nothing around the service.
pub(crate) fn start_bare(sent: Sent) -> Box<dyn Burst> {
    Loop::boxed(Bare::<1>, sent)
}

/// Returns the case with that name.
pub(crate) fn named(name: &str) -> Option<&'static Case> {
    ALL.iter().find(|case| case.name == name)
}

fn extended(mut request: Call) -> Call {
    request.extensions_mut().insert(0_u64);
    request
}

fn two_headers(mut request: Call) -> Call {
    let headers = request.headers_mut();
    headers.insert(header::AUTHORIZATION, SIGNATURE);
    headers.insert(SIGNED, SIGNATURE);
    request
}

/// Retry, which sends no POST again.
pub(crate) fn off() -> RetryLayer {
    let layer = RetryLayer::builder().resend_if(|head| head.method != http::Method::POST);
    layer.build().expect("the defaults are valid")
}

/// An exact window, in which every call is logged and forgotten by itself, and never full: the loop
/// would wait otherwise. A call takes more than a quarter of a microsecond.
pub(crate) fn rate_limit() -> RateLimitLayer {
    let budget = RateBudget::builder("venue")
        .limit(Limit::sliding("requests", 4096, Duration::from_millis(1)))
        .clock_tolerance(0, Duration::ZERO);
    RateLimitLayer::new(budget.build().expect("the limit is valid"))
}

/// Is never asked.
fn nobody<const STACK: usize>() -> impl Reconciler<Bare<STACK>, Full<Bytes>> {
    |_: Inquiry| async { Ok::<_, BoxError>(Finding::Unclear) }
}

/// For a server that does not know repeats by their key, and can be asked by it.
fn reconcile<const STACK: usize>()
-> ReconcileLayerBuilder<impl Reconciler<Bare<STACK>, Full<Bytes>>, HttpClassifier> {
    let name = http::HeaderName::from_static("x-other");
    let classifier = HttpClassifier::builder().idempotency_key_header(name);
    let classifier = classifier.build().expect("is valid");
    ReconcileLayer::builder(nobody::<STACK>()).classifier(classifier)
}

/// A token that is good for an hour, and belongs to the host that the requests go to.
pub(crate) fn auth_refresh(replays: bool) -> AuthRefreshLayer {
    let source = |_| async { Err::<Credential, _>(FetchError::dead("there is one")) };
    let credentials = Credentials::builder("venue", source).origin("https://venue.example");
    let credentials = credentials.build().expect("the origin is valid");
    let token = Credential::new("eyJhbGciOiJSUzI1NiIsImtpZCI6ImtleXN0b3JlIn0");
    let log_in = pin!(credentials.log_in(token.with_lifetime(Duration::from_secs(3600))));
    // Nothing is stored, so nothing is waited for.
    let logged_in = log_in.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(logged_in, Poll::Ready(Ok(_))), "the token is good");
    AuthRefreshLayer::builder(credentials.clone())
        .replays(replays)
        .build()
}
