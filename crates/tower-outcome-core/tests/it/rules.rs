//! What an API does differently: sets of statuses, a header of its own, and rules.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use http::{HeaderName, Method, StatusCode, response};
use tower_outcome_core::{
    Answer, Attempt, BodyRule, Classify, Delivery, HeadRule, HintDialects, HttpCall,
    HttpClassifier, HttpClassifierBuilder, Judged, ManualClock, Outcome, Reason, ResetUnit,
    Verdict,
};

use crate::support::*;

fn built(builder: HttpClassifierBuilder) -> HttpClassifier {
    builder.build().unwrap()
}

fn plain(code: u16) -> http::Response<Vec<u8>> {
    answer(code, &[], "")
}

// ## Sets of statuses

#[test]
fn a_status_that_is_sent_before_acting_makes_every_request_retryable() {
    let classifier = built(HttpClassifier::builder().refuses_before_acting([
        status(429),
        status(451),
        status(401),
    ]));
    for repeatable in REPEATABLE {
        for attempt in [Attempt::FIRST, after_maybe_applied()] {
            for (code, reason) in [
                (429, Reason::RateLimited),
                (451, Reason::Rejected),
                // The promise is the stronger word.
                (401, Reason::AuthRejected),
                (425, Reason::Rejected),
            ] {
                let decision = decide(&classifier, &such(repeatable), attempt, plain(code));
                assert_eq!(decision.outcome, retryable(reason), "{code}, {repeatable}");
                assert_eq!(decision.delivery, Delivery::Refused);
            }
        }
    }
    // The others stand as they were.
    assert!(outcome(&classifier, &post(), plain(503)).is_unknown());
    assert!(outcome(&classifier, &post(), plain(403)).is_permanent());
}

#[test]
fn a_transient_status_helps_only_what_may_be_repeated() {
    let classifier = built(HttpClassifier::builder().transient([status(418), status(501)]));
    for code in [418, 501] {
        assert!(outcome(&classifier, &get(), plain(code)).is_retryable());
        assert!(outcome(&classifier, &post(), plain(code)).is_unknown());
    }
}

#[test]
fn a_status_that_is_transient_no_more_still_proves_nothing() {
    // Whether asking again helps is one thing, whether the server acted another.
    let classifier = built(HttpClassifier::builder().transient([status(503)]));
    for code in [408, 429, 500, 502, 504] {
        let again = outcome(&classifier, &get(), plain(code));
        assert!(again.is_permanent(), "{code}: {again}");
        let unclear = outcome(&classifier, &post(), plain(code));
        assert!(unclear.is_unknown(), "{code}: {unclear}");
    }
}

#[test]
fn a_credential_is_rejected_by_the_configured_statuses_only() {
    let classifier = built(HttpClassifier::builder().auth_rejected([status(403), status(498)]));
    for request in [get(), post()] {
        for code in [403, 498] {
            let outcome = outcome(&classifier, &request, plain(code));
            assert_eq!(outcome, permanent(Reason::AuthRejected));
        }
    }
    let other = outcome(&classifier, &post(), plain(404));
    assert_eq!(other, permanent(Reason::Rejected));
    // A rejected credential outranks a hope that asking again may help.
    let classifier = built(HttpClassifier::builder().transient([status(401)]));
    let rejected = outcome(&classifier, &get(), plain(401));
    assert_eq!(rejected, permanent(Reason::AuthRejected));
}

#[test]
fn the_largest_set_has_each_of_its_members() {
    let all: Vec<StatusCode> = (400..=655).map(status).collect();
    let classifier = built(HttpClassifier::builder().refuses_before_acting(all));
    for status in statuses() {
        let outcome = outcome(&classifier, &post(), plain(status.as_u16()));
        let member = (400..=655).contains(&status.as_u16());
        assert_eq!(outcome.is_retryable(), member, "{status}");
    }
}

// ## The API's own header

fn says(code: u16, value: &str) -> http::Response<Vec<u8>> {
    answer(code, &[("stripe-should-retry", value)], "")
}

fn with_header() -> HttpClassifier {
    built(
        HttpClassifier::builder()
            .should_retry_header(HeaderName::from_static("stripe-should-retry")),
    )
}

#[test]
fn a_header_that_says_retry_helps_only_what_may_be_repeated() {
    let classifier = with_header();
    for code in [400, 402, 409, 429, 500, 501, 507, 599, 700] {
        for value in ["true", "TRUE"] {
            let repeated = outcome(&classifier, &keyed_post(), says(code, value));
            assert!(repeated.is_retryable(), "{code}: {repeated}");
            let unrepeated = outcome(&classifier, &post(), says(code, value));
            assert!(unrepeated.is_unknown(), "{code}: {unrepeated}");
        }
    }
}

#[test]
fn a_header_that_says_no_stops_the_retry_and_proves_nothing() {
    let classifier = with_header();
    for code in [408, 429, 500, 502, 503, 504, 507] {
        let stopped = outcome(&classifier, &keyed_post(), says(code, "false"));
        assert!(stopped.is_permanent(), "{code}: {stopped}");
        let unclear = outcome(&classifier, &post(), says(code, "false"));
        assert!(unclear.is_unknown(), "{code}: {unclear}");
    }
    for code in [400, 404, 409, 501] {
        let rejected = outcome(&classifier, &post(), says(code, "false"));
        assert!(rejected.is_permanent(), "{code}: {rejected}");
    }
}

#[test]
fn a_header_that_says_no_does_not_make_a_transient_status_a_refusal() {
    let classifier = built(
        HttpClassifier::builder()
            .transient([status(409), status(501)])
            .should_retry_header(HeaderName::from_static("stripe-should-retry")),
    );
    for code in [409, 501] {
        let stopped = outcome(&classifier, &keyed_post(), says(code, "false"));
        assert!(stopped.is_permanent(), "{code}: {stopped}");
        let unclear = outcome(&classifier, &post(), says(code, "false"));
        assert!(unclear.is_unknown(), "{code}: {unclear}");
    }
}

#[test]
fn the_header_changes_neither_a_success_nor_a_rejected_credential_nor_a_promise() {
    let classifier = with_header();
    for value in ["true", "false"] {
        let success = outcome(&classifier, &post(), says(200, value));
        assert_eq!(success, Outcome::Success);
        let rejected = outcome(&classifier, &keyed_post(), says(401, value));
        assert_eq!(rejected, permanent(Reason::AuthRejected));
        let too_early = outcome(&classifier, &post(), says(425, value));
        assert!(too_early.is_retryable());
    }
}

#[test]
fn what_is_neither_true_nor_false_says_nothing() {
    for value in ["", "1", "no", "true, false"] {
        for status in statuses() {
            let code = status.as_u16();
            assert_eq!(
                outcome(&with_header(), &keyed_post(), says(code, value)),
                outcome(&HttpClassifier::new(), &keyed_post(), plain(code)),
            );
        }
    }
    // And where nobody named the header, nobody reads it.
    let unread = outcome(&HttpClassifier::new(), &keyed_post(), says(503, "false"));
    assert!(unread.is_retryable());
}

// ## Hints

#[test]
fn a_date_is_measured_against_the_configured_clock() {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
    let clock = Arc::new(ManualClock::new(now));
    let classifier = built(HttpClassifier::builder().clock(clock.clone()));
    let dated = || answer(503, &[("retry-after", "Sun, 06 Nov 1994 08:51:37 GMT")], "");
    let wait = |outcome: Outcome| outcome.after().unwrap().delay().as_secs();
    assert_eq!(wait(outcome(&classifier, &get(), dated())), 120);
    clock.advance(Duration::from_secs(100));
    assert_eq!(wait(outcome(&classifier, &get(), dated())), 20);
}

#[test]
fn a_reset_header_is_believed_only_where_its_dialect_is_named() {
    let limited = || {
        answer(
            429,
            &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "9")],
            "",
        )
    };
    let dialects = HintDialects::new().x_rate_limit_reset(ResetUnit::DeltaSeconds);
    let classifier = built(HttpClassifier::builder().hint_dialects(dialects));
    let after = outcome(&classifier, &get(), limited()).after();
    assert_eq!(after.unwrap().delay().as_secs(), 9);
    let after = outcome(&HttpClassifier::new(), &get(), limited()).after();
    assert!(after.is_none());
}

// ## Who is asked, and in which order

/// A rule that writes down that it was asked, and may have an answer.
#[derive(Clone, Debug)]
struct Scribe {
    name: &'static str,
    asked: Arc<Mutex<Vec<&'static str>>>,
    wants: bool,
    says: Option<Answer>,
}

#[derive(Clone, Debug, Default)]
struct Scribes(Arc<Mutex<Vec<&'static str>>>);

const REJECTED: Answer = Answer::Rejected {
    reason: Reason::Duplicate,
};

impl Scribes {
    fn rule(&self, name: &'static str, says: Option<Answer>) -> Scribe {
        Scribe {
            name,
            asked: self.0.clone(),
            wants: true,
            says,
        }
    }

    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl HeadRule for Scribe {
    fn judge(&self, seen: Judged<'_>) -> Option<Answer> {
        assert!(seen.body.is_empty(), "a head rule sees no body");
        self.asked.lock().unwrap().push(self.name);
        self.says
    }
}

impl BodyRule for Scribe {
    fn wants(&self, _: &HttpCall, _: &response::Parts) -> bool {
        self.wants
    }

    fn judge(&self, seen: Judged<'_>) -> Option<Answer> {
        assert_eq!(seen.body, b"the body");
        self.asked.lock().unwrap().push(self.name);
        self.says
    }
}

#[test]
fn head_rules_come_before_body_rules_and_these_before_the_table() {
    let scribes = Scribes::default();
    let ask = |head: Option<Answer>, body: Option<Answer>| {
        let classifier = built(
            HttpClassifier::builder()
                .body_rule(scribes.rule("body 1", None))
                .body_rule(scribes.rule("body 2", body))
                .body_rule(scribes.rule("body 3", None))
                .head_rule(scribes.rule("head 1", None))
                .head_rule(scribes.rule("head 2", head))
                .head_rule(scribes.rule("head 3", None)),
        );
        let outcome = outcome(&classifier, &post(), answer(404, &[], "the body"));
        (outcome, scribes.asked())
    };
    let (decided, asked) = ask(Some(Answer::Applied), Some(REJECTED));
    assert_eq!(decided, Outcome::Success);
    assert_eq!(asked, ["head 1", "head 2"]);
    let (decided, asked) = ask(None, Some(REJECTED));
    assert_eq!(decided, permanent(Reason::Duplicate));
    assert_eq!(asked, ["head 1", "head 2", "head 3", "body 1", "body 2"]);
    let (decided, asked) = ask(None, None);
    assert_eq!(decided, permanent(Reason::Rejected));
    assert_eq!(asked.len(), 6);
}

#[test]
fn a_rule_outranks_even_425_and_a_success() {
    let classifier = built(
        HttpClassifier::builder()
            .head_rule(|seen: Judged<'_>| (seen.head.status != 500).then_some(REJECTED)),
    );
    for code in [200, 425, 429] {
        let decision = decide(&classifier, &post(), Attempt::FIRST, plain(code));
        assert_eq!(decision.outcome, permanent(Reason::Duplicate));
        assert_eq!(decision.delivery, Delivery::Answered);
    }
    assert!(outcome(&classifier, &post(), plain(500)).is_unknown());
}

#[test]
fn a_body_that_no_rule_wants_is_not_asked_for() {
    let scribes = Scribes::default();
    let unwilling = Scribe {
        wants: false,
        ..scribes.rule("unwilling", Some(Answer::Applied))
    };
    let classifier = built(HttpClassifier::builder().body_rule(unwilling.clone()));
    let call = classifier.call(&post());
    let verdict = classifier.response(&call, Attempt::FIRST, &head(404));
    assert!(matches!(verdict, Verdict::Decided(_)));
    // Beside one that wants it, the unwilling one still has no say.
    let classifier = built(
        HttpClassifier::builder()
            .body_rule(unwilling)
            .body_rule(scribes.rule("willing", None)),
    );
    let decided = outcome(&classifier, &post(), answer(404, &[], "the body"));
    assert_eq!(decided, permanent(Reason::Rejected));
    assert_eq!(scribes.asked(), ["willing"]);
}

#[test]
fn a_body_that_cannot_be_there_is_not_asked_for() {
    let classifier = built(HttpClassifier::builder().body_rule(|_: Judged<'_>| None));
    for method in [Method::GET, Method::POST, Method::HEAD, Method::CONNECT] {
        let call = classifier.call(&request(method.clone()));
        let never_has_body = [Method::HEAD, Method::CONNECT].contains(&method);
        for status in statuses() {
            let head = head(status.as_u16());
            let verdict = classifier.response(&call, Attempt::FIRST, &head);
            let has_none = never_has_body || matches!(status.as_u16(), ..200 | 204 | 205 | 304);
            let asked = matches!(verdict, Verdict::NeedsBody { .. });
            assert_eq!(asked, !has_none, "{method}, {status}");
        }
    }
}

#[test]
fn a_rule_sees_the_call_and_the_attempt() {
    let classifier = built(HttpClassifier::builder().head_rule(|seen: Judged<'_>| {
        assert!(!seen.call.repeatable().is_yes());
        (seen.attempt.number() == 2 && seen.attempt.maybe_applied_before())
            .then_some(Answer::Applied)
    }));
    let conflict = |attempt| decide(&classifier, &post(), attempt, plain(409)).outcome;
    assert_eq!(conflict(Attempt::FIRST), permanent(Reason::Rejected));
    assert_eq!(conflict(after_maybe_applied()), Outcome::Success);
}

#[test]
fn a_body_is_asked_for_up_to_the_configured_size() {
    let limit = |builder: HttpClassifierBuilder| {
        let classifier = built(builder.body_rule(|_: Judged<'_>| None));
        let call = classifier.call(&post());
        match classifier.response(&call, Attempt::FIRST, &head(200)) {
            Verdict::NeedsBody { limit } => limit,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(limit(HttpClassifier::builder()), 64 * 1024);
    assert_eq!(limit(HttpClassifier::builder().body_limit(7)), 7);
}
