//! What an error proves by itself. The clients' own errors are tried against real servers elsewhere.

use std::{io::ErrorKind, time::Duration};

use tower_outcome_core::{Delivery, FailureKind, HttpClassifier, Proof, Reason, Witnessed};

use crate::support::*;

const ALL: [Delivery; 4] = [
    Delivery::NotSent,
    Delivery::Refused,
    Delivery::MaybeSent,
    Delivery::Answered,
];

#[test]
fn deliveries_are_in_order_and_the_first_two_are_proofs() {
    for (one, further) in ALL.iter().zip(&ALL[1..]) {
        assert!(one < further);
    }
    for one in ALL {
        for other in ALL {
            assert_eq!(one.furthest(other), one.max(other));
        }
    }
    let proofs: Vec<_> = ALL
        .into_iter()
        .filter(|delivery| delivery.proves_not_applied())
        .collect();
    assert_eq!(proofs, [Delivery::NotSent, Delivery::Refused]);
    let labels = ALL.map(Delivery::label);
    assert_eq!(labels, ["not_sent", "refused", "maybe_sent", "answered"]);
    assert_eq!(ALL.map(|delivery| delivery.to_string()), labels);
    let witnesses = [Witnessed::Body, Witnessed::Connection, Witnessed::Error];
    assert_eq!(
        witnesses.map(Witnessed::label),
        ["body", "connection", "error"]
    );
}

#[test]
fn a_proof_says_the_same_in_the_words_of_an_answer() {
    // The fields of a proof are public, and what matters is that no kind makes up a proof.
    for kind in [
        FailureKind::Transport,
        FailureKind::TimedOut,
        FailureKind::InvalidRequest,
        FailureKind::Unrecognized,
    ] {
        for delivery in ALL {
            let mut proof = Proof::of(&Stranger);
            proof.kind = kind;
            proof.delivery = delivery;
            for repeatable in REPEATABLE {
                let outcome = proof
                    .answer()
                    .outcome(repeatable, tower_outcome_core::Attempt::FIRST);
                let invalid = kind == FailureKind::InvalidRequest;
                let hopeful = matches!(kind, FailureKind::Transport | FailureKind::TimedOut);
                let expected = match (delivery.proves_not_applied(), repeatable.is_yes()) {
                    (true, _) if invalid => "permanent",
                    (true, _) => "retryable",
                    (false, false) => "unknown",
                    (false, true) if hopeful => "retryable",
                    (false, true) => "permanent",
                };
                assert_eq!(outcome.label(), expected, "{proof:?}, {repeatable}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_time_out_proves_nothing_but_its_reason() {
    let waited = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
    let elapsed = waited.unwrap_err();
    let write = by_error(&HttpClassifier::new(), &post(), &elapsed);
    assert_eq!(write.outcome, unknown(Reason::TimedOut));
    assert_eq!(write.delivery, Delivery::MaybeSent);
    let read = by_error(&HttpClassifier::new(), &get(), &elapsed);
    assert_eq!(read.outcome, retryable(Reason::TimedOut));
    let wrapped = Wrapper(std::io::Error::other(elapsed).into());
    let write = by_error(&HttpClassifier::new(), &post(), &wrapped);
    assert_eq!(write.outcome, unknown(Reason::TimedOut));
}

/// Kinds of I/O errors that say something, and what they say.
const KINDS: [(ErrorKind, Delivery, Reason); 18] = {
    use Delivery::{MaybeSent, NotSent};
    use Reason::{TimedOut, Transport, Unrecognized};
    [
        (ErrorKind::ConnectionRefused, NotSent, Transport),
        (ErrorKind::AddrNotAvailable, NotSent, Transport),
        (ErrorKind::BrokenPipe, MaybeSent, Transport),
        (ErrorKind::ConnectionAborted, MaybeSent, Transport),
        (ErrorKind::ConnectionReset, MaybeSent, Transport),
        (ErrorKind::HostUnreachable, MaybeSent, Transport),
        (ErrorKind::NetworkDown, MaybeSent, Transport),
        (ErrorKind::NetworkUnreachable, MaybeSent, Transport),
        (ErrorKind::NotConnected, MaybeSent, Transport),
        (ErrorKind::UnexpectedEof, MaybeSent, Transport),
        (ErrorKind::TimedOut, MaybeSent, TimedOut),
        (ErrorKind::AddrInUse, MaybeSent, Unrecognized),
        (ErrorKind::InvalidData, MaybeSent, Unrecognized),
        (ErrorKind::NotFound, MaybeSent, Unrecognized),
        (ErrorKind::Other, MaybeSent, Unrecognized),
        (ErrorKind::PermissionDenied, MaybeSent, Unrecognized),
        (ErrorKind::WouldBlock, MaybeSent, Unrecognized),
        (ErrorKind::WriteZero, MaybeSent, Unrecognized),
    ]
};

#[cfg(feature = "io")]
#[test]
fn only_an_error_that_connecting_alone_can_yield_proves_something() {
    for (kind, delivery, reason) in KINDS {
        let bare: tower_outcome_core::BoxError = std::io::Error::from(kind).into();
        let inside = || std::io::Error::new(kind, "said by a library");
        let wrapped: Vec<tower_outcome_core::BoxError> = vec![
            bare,
            inside().into(),
            Wrapper(inside().into()).into(),
            std::io::Error::other(inside()).into(),
        ];
        for error in wrapped {
            let proof = Proof::of(&*error);
            assert_eq!(proof.delivery, delivery, "{kind}");
            let by_error_alone = (delivery == Delivery::NotSent).then_some(Witnessed::Error);
            assert_eq!(proof.by, by_error_alone, "{kind}");
            let write = by_error(&HttpClassifier::new(), &post(), &*error).outcome;
            let read = by_error(&HttpClassifier::new(), &get(), &*error).outcome;
            let (if_not, if_repeatable) = match (delivery, reason) {
                (Delivery::NotSent, _) => (retryable(reason), retryable(reason)),
                (_, Reason::Unrecognized) => (unknown(reason), permanent(reason)),
                _ => (unknown(reason), retryable(reason)),
            };
            assert_eq!((write, read), (if_not, if_repeatable), "{kind}");
        }
    }
}

#[cfg(not(feature = "io"))]
#[test]
fn without_evidence_of_a_transport_its_errors_prove_nothing() {
    for (kind, _, _) in KINDS {
        let decision = by_error(&HttpClassifier::new(), &post(), &std::io::Error::from(kind));
        assert_eq!(decision.outcome, unknown(Reason::Unrecognized));
        assert_eq!(decision.delivery, Delivery::MaybeSent);
    }
}

#[cfg(feature = "hyper-util")]
mod legacy_client {
    use bytes::Bytes;
    use http::{Request, Version};
    use http_body_util::Full;
    use hyper_util::{client::legacy::Client, rt::TokioExecutor};
    use tokio::net::TcpSocket;
    use tower_layer::Layer;
    use tower_outcome_core::{BoxError, Failure, WitnessLayer};
    use tower_service::Service;

    use super::*;

    type Body = tower_outcome_core::WitnessBody<Full<Bytes>>;

    /// The error without and with a witness above the client.
    async fn fails(request: impl Fn() -> Request<Full<Bytes>>) -> [BoxError; 2] {
        let bare: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build_http();
        let watched: Client<_, Body> = Client::builder(TokioExecutor::new()).build_http();
        let mut watched = WitnessLayer::new().layer(watched);
        [
            bare.request(request()).await.unwrap_err().into(),
            watched.call(request()).await.unwrap_err(),
        ]
    }

    fn order(uri: &str) -> Request<Full<Bytes>> {
        Request::post(uri).body(Full::from("buy 100")).unwrap()
    }

    #[tokio::test]
    async fn a_request_that_cannot_be_sent_as_it_is_is_permanent() {
        let http3 = || {
            let mut request = order("http://127.0.0.1:9/orders");
            *request.version_mut() = Version::HTTP_3;
            request
        };
        let mut errors = Vec::from(fails(|| order("/orders")).await);
        errors.extend(fails(http3).await);
        for error in errors {
            for request in [get(), post()] {
                let decision = by_error(&HttpClassifier::new(), &request, &*error);
                assert_eq!(decision.delivery, Delivery::NotSent, "{error:?}");
                assert_eq!(decision.outcome, permanent(Reason::InvalidRequest));
            }
        }
    }

    #[tokio::test]
    async fn a_port_at_which_nobody_listens_was_sent_nothing() {
        // Bound and not listening: the port refuses, and nobody else can take it.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let uri = format!("http://{}/orders", socket.local_addr().unwrap());
        for error in fails(|| order(&uri)).await {
            for request in [get(), post()] {
                let decision = by_error(&HttpClassifier::new(), &request, &*error);
                assert_eq!(decision.delivery, Delivery::NotSent, "{error:?}");
                assert_eq!(decision.outcome, retryable(Reason::Transport));
            }
            if let Some(failure) = Failure::of(&*error) {
                assert_eq!(failure.proven_by(), Some(Witnessed::Error));
            }
        }
    }

    #[tokio::test]
    async fn a_proof_survives_a_layer_that_turns_errors_into_io_errors() {
        for error in fails(|| order("/orders")).await {
            let error = std::io::Error::other(error);
            let decision = by_error(&HttpClassifier::new(), &post(), &error);
            assert_eq!(decision.delivery, Delivery::NotSent);
            assert_eq!(decision.outcome, permanent(Reason::InvalidRequest));
        }
    }
}
