//! Many orders in one request.

use serde_json::Value;
use tower_outcome_core::{Answer, HttpClassifier, Judged, Outcome, Reason};

use crate::support::*;

/// OKX says "2" where some items of a batch went through, and "1" where none did.
///
/// The server has dealt with the whole of it, so the call is over: what became of each item stands
/// in the body, which is handed on intact.
fn okx() -> HttpClassifier {
    let rule = |seen: Judged<'_>| {
        let document: Value = serde_json::from_slice(seen.body).ok()?;
        match document.get("code")?.as_str()? {
            "0" | "2" => Some(Answer::Applied),
            "1" => Some(Answer::Rejected {
                reason: Reason::Rejected,
            }),
            _ => Some(Answer::Unclear {
                reason: Reason::Unrecognized,
                after: None,
                transient: false,
            }),
        }
    };
    HttpClassifier::builder().body_rule(rule).build().unwrap()
}

fn batch(code: &str, items: [&str; 2]) -> String {
    let items = items.map(|item| format!(r#"{{"sCode":"{item}"}}"#));
    format!(r#"{{"code":"{code}","data":[{}]}}"#, items.join(","))
}

#[test]
fn a_batch_that_went_through_in_part_is_never_sent_again() {
    let body = batch("2", ["0", "51008"]);
    for repeatable in REPEATABLE {
        let outcome = outcome(&okx(), &such(repeatable), answer(200, &[], &body));
        assert_eq!(outcome, Outcome::Success, "{repeatable}");
    }
}

#[test]
fn a_batch_of_which_nothing_went_through_is_permanent() {
    let body = batch("1", ["51008", "51008"]);
    let outcome = outcome(&okx(), &post(), answer(200, &[], &body));
    assert_eq!(outcome, permanent(Reason::Rejected));
}
