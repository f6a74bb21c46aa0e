//! A status counts wherever it is, up to the first message.

use tonic::Code;
use tower_outcome::{Delivery, Outcome, Reason};
use tower_outcome_testkit::{Fault, GrpcForm, Venue};

use super::stack::{ID, failing, failure, get, orders, place, report, within};

const BEFORE_A_MESSAGE: [GrpcForm; 2] = [GrpcForm::TrailersOnly, GrpcForm::TrailersBeforeMessage];

fn unavailable(form: GrpcForm, applied: bool) -> Fault {
    Fault::Grpc {
        code: 14,
        form,
        pushback: None,
        applied,
    }
}

#[tokio::test]
async fn a_status_in_the_head_or_in_trailers_before_a_message_is_acted_upon() {
    for form in BEFORE_A_MESSAGE {
        let venue = Venue::start().unwrap();
        let request = failing(get(), &unavailable(form, false));
        let mut orders = orders(venue.url(""));
        let status = within(orders.get(request)).await.unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::Unavailable, "on purpose")
        );
        assert_eq!(report(&status).attempts(), 3, "{form}");
        assert!(failure(&status).outcome().is_retryable());
        assert_eq!(venue.ledger().attempts(ID), 3);
    }
}

#[tokio::test]
async fn a_status_before_a_message_proves_nothing_about_an_order() {
    for form in BEFORE_A_MESSAGE {
        for applied in [false, true] {
            let venue = Venue::start().unwrap();
            let request = failing(place(), &unavailable(form, applied));
            let mut orders = orders(venue.url(""));
            let status = within(orders.place(request)).await.unwrap_err();
            let unknown = Outcome::Unknown {
                reason: Reason::Overloaded,
            };
            assert_eq!(failure(&status).outcome(), unknown);
            assert_eq!(failure(&status).delivery(), Delivery::Answered);
            assert_eq!(venue.ledger().attempts(ID), 1, "{form}");
            assert_eq!(venue.ledger().applied(ID), usize::from(applied));
        }
    }
}

#[tokio::test]
async fn a_status_after_a_message_is_judged_and_not_acted_upon() {
    for (code, outcome) in [(14, "retryable"), (3, "permanent")] {
        let venue = Venue::start().unwrap();
        let fault = Fault::Grpc {
            code,
            form: GrpcForm::TrailersAfterMessage,
            pushback: None,
            applied: true,
        };
        let mut orders = orders(venue.url(""));
        let status = within(orders.get(failing(get(), &fault)))
            .await
            .unwrap_err();
        assert_eq!(status.message(), "on purpose");
        assert_eq!(failure(&status).outcome().label(), outcome);
        assert_eq!(venue.ledger().attempts(ID), 1);

        let request = failing(place(), &fault);
        let status = within(orders.place(request)).await.unwrap_err();
        assert_eq!(failure(&status).outcome().is_unknown(), code == 14);
        assert_eq!(failure(&status).delivery(), Delivery::Answered);
        assert_eq!(venue.ledger().attempts(ID), 2);
    }
}

#[tokio::test]
async fn an_answer_of_something_in_between_counts_by_its_http_status() {
    for (http, code) in [
        (503, Code::Unavailable),
        (429, Code::Unavailable),
        (500, Code::Unknown),
    ] {
        let venue = Venue::start().unwrap();
        let request = failing(place(), &Fault::status(http, false));
        let status = within(orders(venue.url("")).place(request))
            .await
            .unwrap_err();
        assert_eq!(status.code(), code, "{http}");
        assert!(failure(&status).outcome().is_unknown());
        assert_eq!(venue.ledger().attempts(ID), 1);
    }
}
