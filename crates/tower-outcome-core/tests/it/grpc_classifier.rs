//! What `GrpcClassifier` makes of a status, wherever it stands.

use http::{HeaderMap, Response, StatusCode, request, response};
use tower_outcome_core::{
    Attempt, BodySeen, Classify, Decision, Delivery, GrpcClassifier, HintForm, Outcome, Reason,
    Repeatable, RepeatableBecause, Verdict,
};

use crate::support::*;

const MARKED: Repeatable = Repeatable::Yes(RepeatableBecause::Marked);

/// The table, said a second time.
fn row(code: u32, repeatable: bool) -> (&'static str, Option<&'static str>) {
    let (if_repeatable, if_not, reason) = match code {
        0 => return ("success", None),
        8 => ("retryable", "unknown", "rate_limited"),
        14 => ("retryable", "unknown", "overloaded"),
        4 => ("permanent", "unknown", "timed_out"),
        1 | 2 | 13 | 15 => ("permanent", "unknown", "server_error"),
        16 => ("permanent", "permanent", "auth_rejected"),
        3 | 5..=7 | 9..=12 => ("permanent", "permanent", "rejected"),
        _ => ("permanent", "unknown", "unrecognized"),
    };
    (
        if repeatable { if_repeatable } else { if_not },
        Some(reason),
    )
}

fn path(path: &str) -> request::Parts {
    let mut request = post();
    request.uri = format!("https://venue.test{path}").parse().unwrap();
    request
}

/// Knows one method of each kind.
fn classifier() -> GrpcClassifier {
    GrpcClassifier::builder()
        .repeatable(["/venue.Orders/Get"])
        .unary(["/venue.Orders/Place"])
        .build()
        .unwrap()
}

fn headers(headers: &[(&str, &str)]) -> response::Parts {
    answer(200, headers, "").into_parts().0
}

fn decided(verdict: Verdict) -> Decision {
    match verdict {
        Verdict::Decided(decision) => decision,
        other => panic!("{other:?}"),
    }
}

fn in_head(request: &request::Parts, status: &str) -> Decision {
    let classifier = classifier();
    let call = classifier.call(request);
    let head = headers(&[("grpc-status", status)]);
    decided(classifier.response(&call, Attempt::FIRST, &head))
}

/// A unary answer whose status comes in trailers and before any message.
fn in_trailers(request: &request::Parts, trailers: Option<&HeaderMap>) -> Decision {
    after_head(
        request,
        BodySeen::Whole {
            body: &[],
            trailers,
        },
    )
}

fn after_head(request: &request::Parts, body: BodySeen<'_>) -> Decision {
    let classifier = classifier();
    let call = classifier.call(request);
    let verdict = classifier.response(&call, Attempt::FIRST, &head(200));
    assert_eq!(verdict, Verdict::NeedsFirstFrame);
    classifier.body(&call, Attempt::FIRST, &head(200), body)
}

#[test]
fn every_status_means_what_the_table_says_in_the_head_and_in_trailers() {
    let (get, place) = (path("/venue.Orders/Get"), path("/venue.Orders/Place"));
    for code in (0..=40).chain([u32::MAX]) {
        for (request, repeatable) in [(&get, true), (&place, false)] {
            let (word, reason) = row(code, repeatable);
            let trailers = headers(&[("grpc-status", &code.to_string())]).headers;
            for decision in [
                in_head(request, &code.to_string()),
                in_trailers(request, Some(&trailers)),
            ] {
                let outcome = decision.outcome;
                assert_eq!(outcome.label(), word, "{code}");
                assert_eq!(outcome.reason().map(Reason::label), reason, "{code}");
                assert_eq!(decision.delivery, Delivery::Answered);
            }
        }
    }
}

#[test]
fn a_status_that_is_not_a_number_is_the_unknown_status() {
    let junk = [
        "",
        " ",
        "OK",
        "-1",
        "1.0",
        "0x0",
        "+0",
        "+14",
        "4294967296",
        "00",
        "014",
        "03",
        "0 0",
        "\u{e9}",
    ];
    for junk in junk {
        let place = in_head(&path("/venue.Orders/Place"), junk);
        assert_eq!(place.outcome, unknown(Reason::ServerError), "{junk:?}");
        let get = in_head(&path("/venue.Orders/Get"), junk);
        assert_eq!(get.outcome, permanent(Reason::ServerError), "{junk:?}");
    }
}

#[test]
fn two_statuses_that_contradict_each_other_are_the_unknown_status() {
    let of = |statuses: [&str; 2]| {
        let headers = statuses.map(|status| ("grpc-status", status));
        let trailers = self::headers(&headers).headers;
        in_trailers(&path("/venue.Orders/Place"), Some(&trailers)).outcome
    };
    for contradiction in [["0", "14"], ["14", "0"], ["3", "13"]] {
        assert_eq!(of(contradiction), unknown(Reason::ServerError));
    }
    assert_eq!(of(["0", "0"]), Outcome::Success);
    assert_eq!(of(["3", "3"]), permanent(Reason::Rejected));
}

#[test]
fn a_status_in_the_head_outranks_the_http_status() {
    let classifier = classifier();
    let call = classifier.call(&path("/venue.Orders/Place"));
    for (code, status, expected) in [(503, "0", "success"), (200, "3", "permanent")] {
        let head = answer(code, &[("grpc-status", status)], "").into_parts().0;
        let verdict = classifier.response(&call, Attempt::FIRST, &head);
        assert_eq!(decided(verdict).outcome.label(), expected);
    }
}

/// gRPC's "HTTP to gRPC status code mapping".
#[test]
fn an_http_status_alone_is_mapped_as_grpc_has_it() {
    let classifier = classifier();
    for status in statuses().filter(|&status| status != StatusCode::OK) {
        let code = match status.as_u16() {
            400 => 13,
            401 => 16,
            403 => 7,
            404 => 12,
            429 | 502 | 503 | 504 => 14,
            _ => 2,
        };
        for name in ["Get", "Place", "Watch"] {
            let request = path(&format!("/venue.Orders/{name}"));
            let call = classifier.call(&request);
            let head = head(status.as_u16());
            // No message follows a status that is not 200.
            let decision = decided(classifier.response(&call, Attempt::FIRST, &head));
            let (word, reason) = row(code, name == "Get");
            assert_eq!(decision.outcome.label(), word, "{status}");
            let told = decision.outcome.reason().map(Reason::label);
            assert_eq!(told, reason, "{status}");
        }
    }
}

#[test]
fn a_message_is_an_answer() {
    for name in ["Get", "Place"] {
        let request = path(&format!("/venue.Orders/{name}"));
        for body in [BodySeen::Began, BodySeen::TooLarge] {
            assert_eq!(after_head(&request, body), Decision::SUCCESS);
        }
    }
}

#[test]
fn an_answer_that_ends_without_a_status_is_lost() {
    let nothing = HeaderMap::new();
    for trailers in [None, Some(&nothing)] {
        let lost = in_trailers(&path("/venue.Orders/Place"), trailers);
        assert_eq!(lost.outcome, unknown(Reason::ResponseBody));
        let lost = in_trailers(&path("/venue.Orders/Get"), trailers);
        assert_eq!(lost.outcome, permanent(Reason::ResponseBody));
    }
}

#[test]
fn an_answer_that_breaks_off_is_lost_and_may_be_had_again() {
    let lost = after_head(&path("/venue.Orders/Place"), BodySeen::Failed);
    assert_eq!(lost.outcome, unknown(Reason::ResponseBody));
    assert_eq!(lost.delivery, Delivery::Answered);
    let lost = after_head(&path("/venue.Orders/Get"), BodySeen::Failed);
    assert_eq!(lost.outcome, retryable(Reason::ResponseBody));
}

#[test]
fn the_answer_of_a_unary_method_is_read_whole_where_that_was_asked_for() {
    let classifier = GrpcClassifier::builder()
        .unary(["/venue.Orders/Place"])
        .whole(64)
        .build()
        .unwrap();
    let verdict = |request| {
        let call = classifier.call(request);
        classifier.response(&call, Attempt::FIRST, &headers(&[]))
    };

    let place = path("/venue.Orders/Place");
    assert_eq!(verdict(&place), Verdict::NeedsBody { limit: 64 });
    // What may be a stream is left alone.
    let watch = path("/venue.Orders/Watch");
    assert_eq!(verdict(&watch), Verdict::Decided(Decision::SUCCESS));

    let call = classifier.call(&place);
    let seen = BodySeen::Failed;
    let decision = classifier.body(&call, Attempt::FIRST, &headers(&[]), seen);
    assert!(decision.outcome.is_unknown());
}

#[test]
fn a_head_without_a_status_is_the_answer_where_the_first_message_may_be_long_in_coming() {
    let classifier = classifier();
    let call = classifier.call(&path("/venue.Orders/Watch"));
    let verdict = classifier.response(&call, Attempt::FIRST, &head(200));
    assert_eq!(verdict, Verdict::Decided(Decision::SUCCESS));
}

#[test]
fn a_method_is_repeatable_by_list_and_by_mark_and_never_by_its_verb_or_a_key() {
    let classifier = classifier();
    let repeatable = |request| classifier.call(&request).repeatable();
    assert_eq!(repeatable(path("/venue.Orders/Get")), MARKED);
    for other in ["Place", "Watch", "get", "GetAll"] {
        let request = path(&format!("/venue.Orders/{other}"));
        assert_eq!(repeatable(request), Repeatable::No, "{other}");
    }
    assert_eq!(repeatable(get()), Repeatable::No);
    assert_eq!(repeatable(keyed_post()), Repeatable::No);
    for mark in REPEATABLE {
        for name in ["Get", "Place"] {
            let request = path(&format!("/venue.Orders/{name}"));
            assert_eq!(repeatable(marked(request, mark)), mark, "{name}");
        }
    }
}

#[test]
fn a_mark_does_not_make_a_stream_a_unary_call() {
    let classifier = classifier();
    let call = classifier.call(&marked(path("/venue.Orders/Watch"), MARKED));
    let verdict = classifier.response(&call, Attempt::FIRST, &head(200));
    assert_eq!(verdict, Verdict::Decided(Decision::SUCCESS));
}

// ## Pushback

fn pushed_back(status: &str, pushback: &[&str]) -> Outcome {
    let mut response = Response::builder().header("grpc-status", status);
    for value in pushback {
        response = response.header("grpc-retry-pushback-ms", *value);
    }
    let trailers = response.body(()).unwrap().into_parts().0.headers;
    let request = path("/venue.Orders/Get");
    in_trailers(&request, Some(&trailers)).outcome
}

#[test]
fn a_pushback_is_the_wait_before_the_next_attempt() {
    assert_eq!(
        pushed_back("14", &["3000"]),
        retryable_after(Reason::Overloaded, 3, HintForm::Pushback)
    );
    assert_eq!(
        pushed_back("8", &["0"]),
        retryable_after(Reason::RateLimited, 0, HintForm::Pushback)
    );
}

#[test]
fn a_pushback_that_forbids_another_attempt_is_obeyed() {
    for stop in [&["-1"][..], &["soon"], &["2147483648"], &["5", "5"]] {
        assert_eq!(pushed_back("14", stop), permanent(Reason::Overloaded));
    }
}

#[test]
fn a_pushback_makes_nothing_retryable_that_is_not() {
    assert_eq!(pushed_back("13", &["10"]), permanent(Reason::ServerError));
    assert_eq!(pushed_back("0", &["10"]), Outcome::Success);
    let trailers = headers(&[("grpc-status", "14"), ("grpc-retry-pushback-ms", "10")]).headers;
    let place = in_trailers(&path("/venue.Orders/Place"), Some(&trailers));
    assert_eq!(place.outcome, unknown(Reason::Overloaded));
}

#[test]
fn the_configured_codes_are_transient_and_no_others() {
    let classifier = GrpcClassifier::builder()
        .repeatable(["/venue.Orders/Get"])
        .transient([1, 10, 16])
        .build()
        .unwrap();
    for code in 1..=16 {
        let head = headers(&[("grpc-status", &code.to_string())]);
        let of = |request| {
            let call = classifier.call(&request);
            decided(classifier.response(&call, Attempt::FIRST, &head)).outcome
        };
        let transient = [1, 10, 16].contains(&code);
        let get = of(path("/venue.Orders/Get"));
        assert_eq!(get.is_retryable(), transient, "{code}: {get}");
        let place = of(path("/venue.Orders/Place"));
        let proves_nothing = transient || [2, 4, 8, 13, 14, 15].contains(&code);
        assert_eq!(place.is_unknown(), proves_nothing, "{code}: {place}");
    }
}

#[test]
fn a_refusal_after_an_attempt_that_may_have_been_applied_is_unknown() {
    let classifier = classifier();
    for name in ["Get", "Place"] {
        let call = classifier.call(&path(&format!("/venue.Orders/{name}")));
        // ALREADY_EXISTS: the first attempt arrived.
        let head = headers(&[("grpc-status", "6")]);
        let verdict = classifier.response(&call, after_maybe_applied(), &head);
        assert_eq!(decided(verdict).outcome, unknown(Reason::Rejected));
    }
}

#[test]
fn without_any_list_every_call_is_a_stream_that_must_not_be_repeated() {
    for classifier in [GrpcClassifier::new(), GrpcClassifier::default()] {
        let call = classifier.call(&path("/venue.Orders/Get"));
        assert_eq!(call.repeatable(), Repeatable::No);
        assert_eq!(call.to_string(), "any call, repeatable: no");
        let head = headers(&[("grpc-status", "14")]);
        let verdict = classifier.response(&call, Attempt::FIRST, &head);
        assert_eq!(decided(verdict).outcome, unknown(Reason::Overloaded));
    }
    let call = classifier().call(&path("/venue.Orders/Get"));
    assert_eq!(call.to_string(), "unary call, repeatable: marked");
}

#[test]
fn an_error_is_judged_as_for_any_other_protocol() {
    let error = Stranger;
    let get = by_error(&classifier(), &path("/venue.Orders/Get"), &error);
    assert_eq!(get.outcome, permanent(Reason::Unrecognized));
    let place = by_error(&classifier(), &path("/venue.Orders/Place"), &error);
    assert_eq!(place.outcome, unknown(Reason::Unrecognized));
    assert_eq!(place.delivery, Delivery::MaybeSent);
}
