//! What an observer is told.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tower_outcome_auth_refresh::{
    Credential, LoginDue, Observer, Passed, RefreshFailed, Refreshed, Rejected, Replayed, Waited,
};

use crate::support::*;

/// Writes down what it is told.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Observer for Log {
    fn refreshed(&self, event: &Refreshed<'_>) {
        let Refreshed {
            generation,
            cause,
            took,
            expires_in,
            ..
        } = event;
        let cause = cause.label();
        self.note(format!(
            "refreshed {generation} {cause} in {took:?} for {expires_in:?}"
        ));
    }

    fn refresh_failed(&self, event: &RefreshFailed<'_>) {
        let RefreshFailed {
            cause,
            error,
            served,
            ..
        } = event;
        let (cause, kind) = (cause.label(), error.kind().label());
        self.note(format!("failed {cause} {kind} served={served}"));
    }

    fn waited(&self, event: &Waited<'_>) {
        self.note(format!("waited {:?} served={}", event.waited, event.served));
    }

    fn passed(&self, event: &Passed<'_>) {
        self.note(format!("passed to {:?}", event.host));
    }

    fn rejected(&self, event: &Rejected<'_>) {
        self.note(format!(
            "rejected {} again={}",
            event.generation, event.again
        ));
    }

    fn replayed(&self, event: &Replayed<'_>) {
        self.note(format!("replayed {} {}", event.rejected, event.generation));
    }

    fn login_due(&self, event: &LoginDue<'_>) {
        assert_eq!(event.name, "venue");
        self.note(format!("login due within {:?}", event.within));
    }
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn watched(source: Source) -> (Stage, Log) {
    let log = Log::default();
    let observer = log.clone();
    let stage = Stage::with(source, Venue::default(), |builder| {
        builder.observer(observer)
    });
    (stage, log)
}

#[tokio::test(start_paused = true)]
async fn each_step_of_a_call_is_told_once() {
    let (stage, log) = watched(Source::new([Say::Token(None)]).takes(SECOND * 2));
    assert_eq!(stage.call().await, Ok(200));
    let first = [
        "refreshed 1 missing in 2s for None",
        "waited 2s served=true",
    ];
    assert_eq!(log.take(), first);
    assert_eq!(stage.call().await, Ok(200));
    assert!(
        log.take().is_empty(),
        "nothing happens to nearly every call"
    );
    stage.venue.reject_all();
    assert_eq!(stage.call().await, Ok(401));
    let expected = [
        "rejected 1 again=false",
        "refreshed 2 rejected in 2s for None",
        "waited 2s served=true",
        "replayed 1 2",
        "rejected 2 again=true",
    ];
    assert_eq!(log.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn a_failure_says_whether_anything_is_served() {
    let (stage, log) = watched(Source::new([Say::Token(Some(MINUTE * 30)), Say::Transient]));
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE * 25).await;
    assert_eq!(stage.call().await, Ok(200));
    stage.settle().await;
    stage.pass(MINUTE * 5).await;
    assert!(stage.call().await.is_err());
    let lines = log.take();
    assert_eq!(lines[2], "failed due failed served=true");
    assert_eq!(lines[3], "failed expired failed served=false");
}

/// Access tokens of half an hour, and a log-in of seven days, which use does not extend.
fn seven_days() -> Source {
    let credential = Credential::new("access")
        .with_lifetime(MINUTE * 30)
        .with_refresh_token("refresh");
    let login = credential.clone().with_login_until(start() + DAY * 7);
    Source::new([Say::Exactly(login), Say::Exactly(credential)])
}

#[tokio::test(start_paused = true)]
async fn a_log_in_is_due_a_day_ahead_of_its_end_and_is_told_once() {
    let (stage, log) = watched(seven_days());
    let mut due = Vec::new();
    for hour in 0..7 * 24 {
        assert_eq!(stage.call().await, Ok(200));
        for line in log.take() {
            if line.starts_with("login due") {
                due.push((hour, line));
            }
        }
        stage.pass(MINUTE * 60).await;
    }
    assert_eq!(due, [(144, "login due within 86400s".to_owned())]);
}

#[tokio::test(start_paused = true)]
async fn a_log_in_is_due_even_where_nothing_has_to_be_refreshed() {
    let endless = Credential::new("endless").with_login_until(start() + DAY * 7);
    let (stage, log) = watched(Source::new([Say::Exactly(endless)]));
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(DAY * 6 - SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert!(!log.take().iter().any(|line| line.starts_with("login due")));
    stage.pass(SECOND).await;
    for _ in 0..3 {
        assert_eq!(stage.call().await, Ok(200));
    }
    assert_eq!(log.take(), ["login due within 86400s"]);
    // The next log-in has an end of its own.
    let next = Credential::new("next").with_login_until(start() + DAY * 14);
    stage.credentials.log_in(next).await.unwrap();
    assert_eq!(log.take(), ["refreshed 2 logged_in in 0ns for None"]);
    stage.pass(DAY * 7 + SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(log.take(), ["login due within 86399s"]);
}

#[tokio::test(start_paused = true)]
async fn a_log_in_that_begins_within_its_notice_is_told_at_once() {
    let short = Credential::new("short").with_login_until(start() + MINUTE);
    let (stage, log) = watched(Source::new([Say::Exactly(short)]));
    assert_eq!(stage.call().await, Ok(200));
    assert!(log.take().contains(&"login due within 60s".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_source_that_dies_makes_a_log_in_due_at_once() {
    let (stage, log) = watched(Source::new([Say::Dead]));
    for _ in 0..3 {
        assert!(stage.call().await.is_err());
        stage.pass(MINUTE).await;
    }
    let lines = log.take();
    let due = lines.iter().filter(|line| *line == "login due within 0ns");
    assert_eq!(due.count(), 1, "{lines:?}");
}

struct Panics;

impl Observer for Panics {
    fn refreshed(&self, _: &Refreshed<'_>) {
        panic!("the observer panics, as it was told");
    }

    fn refresh_failed(&self, _: &RefreshFailed<'_>) {
        panic!("the observer panics, as it was told");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_takes_nothing_from_those_who_wait() {
    let source = Source::new([Say::Panic, Say::Token(None)]);
    let stage = Stage::with(source, Venue::default(), |builder| builder.observer(Panics));
    let error = tower::ServiceExt::oneshot(stage.service.clone(), post()).await;
    assert_eq!(
        kind(&error.unwrap_err()),
        tower_outcome_auth_refresh::UnavailableKind::Panicked
    );
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.call().await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn a_request_to_somebody_else_is_told_and_one_that_is_marked_is_not() {
    let (stage, log) = watched(Source::endless());
    let to = |target: &str| http::Request::get(target).body(http_body_util::Full::default());
    let foreign = to("https://other.test/").unwrap();
    let mut marked = to("https://other.test/").unwrap();
    let mark = tower_outcome_auth_refresh::Unauthenticated::new();
    marked.extensions_mut().insert(mark);
    for request in [foreign, marked] {
        let sent = tower::ServiceExt::oneshot(stage.service.clone(), request).await;
        assert_eq!(sent.unwrap().status(), 200);
    }
    assert_eq!(log.take(), ["passed to Some(\"other.test\")"]);
}
