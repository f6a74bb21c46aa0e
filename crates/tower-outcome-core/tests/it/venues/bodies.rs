//! Error documents inside a `200 OK`.

use serde_json::Value;
use tower_outcome_core::{Answer, Attempt, HttpClassifier, Judged, Outcome, Reason};

use crate::support::*;

fn json(seen: &Judged<'_>) -> Option<Value> {
    serde_json::from_slice(seen.body).ok()
}

fn unclear(reason: Reason, transient: bool) -> Answer {
    Answer::Unclear {
        reason,
        after: None,
        transient,
    }
}

fn said(classifier: &HttpClassifier, body: &str) -> (Outcome, Outcome) {
    let of = |request| outcome(classifier, &request, answer(200, &[], body));
    (of(post()), of(get()))
}

/// Kraken lists what went wrong in `error`: the severity, the category and the message.
fn kraken() -> HttpClassifier {
    let rule = |seen: Judged<'_>| {
        let document = json(&seen)?;
        let errors = document.get("error")?.as_array()?;
        let error = errors.iter().filter_map(Value::as_str).find(|error| {
            // A warning begins with W and accompanies a result.
            error.starts_with('E')
        })?;
        Some(match error {
            "EService:Unavailable" | "EService:Busy" => unclear(Reason::Overloaded, true),
            "EAPI:Rate limit exceeded" => Answer::NotApplied {
                reason: Reason::RateLimited,
                after: None,
            },
            "EAPI:Invalid nonce" => Answer::NotApplied {
                reason: Reason::ClockSkew,
                after: None,
            },
            "EAPI:Invalid key" => Answer::Rejected {
                reason: Reason::AuthRejected,
            },
            error if error.starts_with("EOrder:") => Answer::Rejected {
                reason: Reason::Rejected,
            },
            _ => unclear(Reason::Unrecognized, false),
        })
    };
    HttpClassifier::builder().body_rule(rule).build().unwrap()
}

#[test]
fn a_service_that_was_unavailable_leaves_a_write_unknown_and_a_read_to_be_repeated() {
    let (write, read) = said(&kraken(), r#"{"error":["EService:Unavailable"]}"#);
    assert_eq!(write, unknown(Reason::Overloaded));
    assert_eq!(read, retryable(Reason::Overloaded));
}

#[test]
fn an_order_that_was_refused_inside_a_200_is_permanent() {
    let (write, _) = said(&kraken(), r#"{"error":["EOrder:Insufficient funds"]}"#);
    assert_eq!(write, permanent(Reason::Rejected));
}

#[test]
fn a_rate_limit_inside_a_200_is_never_a_success() {
    let (write, read) = said(&kraken(), r#"{"error":["EAPI:Rate limit exceeded"]}"#);
    assert_eq!(write, retryable(Reason::RateLimited));
    assert_eq!(read, retryable(Reason::RateLimited));
}

#[test]
fn an_error_that_no_rule_knows_is_not_a_success_either() {
    let (write, read) = said(&kraken(), r#"{"error":["EFuture:Who knows"]}"#);
    assert_eq!(write, unknown(Reason::Unrecognized));
    assert_eq!(read, permanent(Reason::Unrecognized));
}

#[test]
fn a_result_without_errors_or_with_warnings_alone_is_a_success() {
    for body in [
        r#"{"error":[],"result":{"txid":["O-1"]}}"#,
        r#"{"error":["WOrder:Price adjusted"],"result":{"txid":["O-1"]}}"#,
    ] {
        assert_eq!(said(&kraken(), body).0, Outcome::Success);
    }
}

/// OKX: `code` for the request and `sCode` for each item, "0" where all is well.
fn okx() -> HttpClassifier {
    let rule = |seen: Judged<'_>| {
        let document = json(&seen)?;
        match document.get("code")?.as_str()? {
            "0" => None,
            "50011" => Some(Answer::NotApplied {
                reason: Reason::RateLimited,
                after: None,
            }),
            "50001" | "50004" => Some(unclear(Reason::Overloaded, true)),
            code if code.starts_with("51") => Some(Answer::Rejected {
                reason: Reason::Rejected,
            }),
            _ => Some(unclear(Reason::Unrecognized, false)),
        }
    };
    HttpClassifier::builder().body_rule(rule).build().unwrap()
}

#[test]
fn a_code_other_than_zero_is_not_a_success() {
    let rejected = said(&okx(), r#"{"code":"51000","msg":"Parameter sz error"}"#);
    assert_eq!(rejected.0, permanent(Reason::Rejected));
    let timed_out = said(&okx(), r#"{"code":"50004","msg":"Endpoint timeout"}"#);
    assert_eq!(timed_out.0, unknown(Reason::Overloaded));
    let limited = said(&okx(), r#"{"code":"50011","msg":"Too many requests"}"#);
    assert_eq!(limited.0, retryable(Reason::RateLimited));
    let strange = said(&okx(), r#"{"code":"99999","msg":""}"#);
    assert_eq!(strange.0, unknown(Reason::Unrecognized));
}

#[test]
fn a_message_that_is_not_empty_is_no_error() {
    let placed = r#"{"code":"0","msg":"","data":[{"sCode":"0","sMsg":"Order placed"}]}"#;
    assert_eq!(said(&okx(), placed).0, Outcome::Success);
}

#[test]
fn a_field_of_the_order_that_is_called_status_is_no_error() {
    let open = r#"{"code":"0","data":[{"ordId":"7","status":"OPEN"}],"status":"OPEN"}"#;
    assert_eq!(said(&okx(), open).0, Outcome::Success);
    // Without the API's own error field nothing is wrong, whatever else is there.
    assert_eq!(said(&okx(), r#"{"status":"OPEN"}"#).0, Outcome::Success);
}

/// Two older shapes of the same idea.
fn flags() -> HttpClassifier {
    let bittrex = |seen: Judged<'_>| {
        let document = json(&seen)?;
        if document.get("success")?.as_bool()? {
            return None;
        }
        Some(match document.get("message").and_then(Value::as_str) {
            Some("THROTTLED") => Answer::NotApplied {
                reason: Reason::RateLimited,
                after: None,
            },
            Some("INSUFFICIENT_FUNDS" | "MARKET_OFFLINE") => Answer::Rejected {
                reason: Reason::Rejected,
            },
            _ => unclear(Reason::Unrecognized, false),
        })
    };
    let okcoin = |seen: Judged<'_>| {
        let document = json(&seen)?;
        let failed = document.get("result")?.as_bool() == Some(false);
        (failed && document.get("error_code").is_some()).then_some(Answer::Rejected {
            reason: Reason::Rejected,
        })
    };
    HttpClassifier::builder()
        .body_rule(bittrex)
        .body_rule(okcoin)
        .build()
        .unwrap()
}

#[test]
fn success_false_is_read_by_the_table_of_its_messages() {
    let classifier = flags();
    for (message, outcome) in [
        ("THROTTLED", retryable(Reason::RateLimited)),
        ("INSUFFICIENT_FUNDS", permanent(Reason::Rejected)),
        ("", unknown(Reason::Unrecognized)),
    ] {
        let body = format!(r#"{{"success":false,"message":"{message}"}}"#);
        assert_eq!(said(&classifier, &body).0, outcome, "{message}");
    }
    let done = r#"{"success":true,"message":"THROTTLED"}"#;
    assert_eq!(said(&classifier, done).0, Outcome::Success);
}

#[test]
fn an_error_code_beside_result_false_is_not_a_success() {
    let failed = r#"{"result":false,"error_code":10010}"#;
    assert_eq!(said(&flags(), failed).0, permanent(Reason::Rejected));
    let done = r#"{"result":true,"order_id":7}"#;
    assert_eq!(said(&flags(), done).0, Outcome::Success);
}

/// A venue whose session ends with one code, and whose account is closed with another.
#[test]
fn only_the_code_of_an_expired_session_asks_for_a_fresh_credential() {
    let rule = |seen: Judged<'_>| {
        Some(match json(&seen)?.get("ErrorCode")?.as_u64()? {
            4011 => Answer::Rejected {
                reason: Reason::AuthRejected,
            },
            4010 => Answer::Rejected {
                reason: Reason::Rejected,
            },
            _ => return None,
        })
    };
    let classifier = HttpClassifier::builder().body_rule(rule).build().unwrap();
    let expired = said(&classifier, r#"{"ErrorCode":4011}"#);
    assert_eq!(expired.0, permanent(Reason::AuthRejected));
    let closed = said(&classifier, r#"{"ErrorCode":4010}"#);
    assert_eq!(closed.0, permanent(Reason::Rejected));
}

#[test]
fn a_body_that_is_no_json_at_all_is_left_to_the_status() {
    for classifier in [kraken(), okx(), flags()] {
        for body in ["", "<html>", "\u{0}", "[]", "{\"error\":7}", "{\"code\":0}"] {
            assert_eq!(said(&classifier, body).0, Outcome::Success, "{body:?}");
            let failed = answer(502, &[("content-type", "text/html")], body);
            let outcome = decide(&classifier, &post(), Attempt::FIRST, failed).outcome;
            assert_eq!(outcome, unknown(Reason::ServerError), "{body:?}");
        }
    }
}
