//! In the whole stack: questions have a credential, wait their turn and are signed.

use std::sync::atomic::{AtomicUsize, Ordering};

use tower::{ServiceBuilder, ServiceExt};
use tower_outcome::{
    AuthRefreshLayer, CallReport, Credential, Credentials, DeadlineLayer, Draft, FetchError, Fresh,
    Limit, RateBudget, RateLimitLayer, Reconciled, Sign, SignError, SignLayer, TimeoutLayer,
    reconcile::How, sign::Validity,
};
use tower_outcome_testkit::{Fault, Index, Point, Sessions};

use super::*;

/// Numbers what it signs, and says that a signature is good for a while.
#[derive(Clone, Default)]
struct Numbered(Arc<AtomicUsize>, Duration);

impl Sign for Numbered {
    fn sign(&self, draft: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let name = http::HeaderName::from_static("x-signature");
        draft.set_header(name, number.into())?;
        Ok(Validity::for_window(fresh.time(), self.1))
    }
}

/// Everything: only a signed question in an open session is answered.
async fn asked(fault: Fault, window: Duration) -> (Venue, Result<(), BoxError>, Reconciled, usize) {
    let sessions = Sessions::new("authorization");
    sessions.open("Bearer session");
    let venue = Venue::builder()
        .index(Index::new("/operations/").misses(1))
        .demand(sessions)
        .demand(
            |request: &tower_outcome_testkit::Request| match request.header("x-signature") {
                Some(_) => Ok(()),
                None => Err(tower_outcome_testkit::Answer::status(403)),
            },
        )
        .start()
        .unwrap();
    let source = |_| async { Ok::<_, FetchError>(Credential::new("session")) };
    let credentials = Credentials::builder("venue", source).any_origin();
    let budget = RateBudget::builder("venue")
        .limit(Limit::sliding("requests", 1000, SECOND))
        .build()
        .unwrap();
    let signer = Numbered(Arc::default(), window);
    let count = Arc::clone(&signer.0);
    let sign = SignLayer::new(signer, &format!("http://{}", venue.addr())).unwrap();
    let client = ServiceBuilder::new()
        .layer(DeadlineLayer::default())
        .layer(retry().build().unwrap())
        .layer(reconcile(by_query(&venue)).misses(2).build().unwrap())
        .layer(AuthRefreshLayer::new(credentials.build().unwrap()))
        .layer(RateLimitLayer::new(budget))
        .layer(sign)
        .layer(TimeoutLayer::default())
        .service(below(Faults::new([fault])));
    let result = client.oneshot(order(&venue, "order-1")).await;
    assert!(CallReport::outcome_of(&result).is_success());
    let report = Reconciled::in_result(&result).cloned();
    let signed = count.load(Ordering::Relaxed);
    let report = report.unwrap_or_else(|| panic!("nothing was asked: {result:?}"));
    (venue, result.map(drop), report, signed)
}

#[tokio::test]
async fn a_question_has_a_credential_and_is_signed_and_answers_the_call() {
    let fault = Fault::Close { at: Point::Applied };
    let (venue, result, report, signed) = asked(fault, 5 * SECOND).await;
    assert!(result.is_ok());
    assert_eq!(report.how(), Some(How::Found));
    assert_eq!((report.inquiries(), report.failures()), (2, 0));
    assert_eq!(signed, 3, "the order and two questions");
    assert_eq!(seen(&venue, "order-1"), (1, 1));
}
