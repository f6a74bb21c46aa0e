//! When a credential is refreshed, on paused time: each situation a test.

use tower_outcome_auth_refresh::{Credential, UnavailableKind, Windows};
use tower_outcome_core::Deadline;

use crate::support::*;

const HALF_HOUR: Option<std::time::Duration> = Some(MINUTE.saturating_mul(30));

/// A credential of half an hour, for which the advisory window begins 15 to 7.5 minutes before the end,
/// and the mandatory one a minute before.
async fn half_an_hour(then: impl IntoIterator<Item = Say>) -> Stage {
    let stage = Stage::new(Source::new([Say::Token(HALF_HOUR)].into_iter().chain(then)));
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 1);
    stage
}

#[tokio::test(start_paused = true)]
async fn the_first_call_fetches_and_later_ones_do_not() {
    let stage = half_an_hour([]).await;
    for _ in 0..14 {
        stage.pass(MINUTE).await;
        assert_eq!(stage.call().await, Ok(200));
    }
    assert_eq!(stage.source.calls(), 1);
    assert!(stage.venue.seen().iter().all(|token| token == "token-1"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_fetched_for_nobody() {
    let stage = half_an_hour([]).await;
    stage.pass(MINUTE * 600).await;
    assert_eq!(stage.source.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn in_the_advisory_window_the_old_one_is_served_while_a_new_one_is_fetched() {
    let stage = half_an_hour([Say::Token(HALF_HOUR)]).await;
    let gate = stage.source.shut();
    stage.pass(MINUTE * 24).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 2);
    gate.notify_one();
    stage.settle().await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(
        stage.venue.seen(),
        ["token-1", "token-1", "token-1", "token-2"]
    );
    assert_eq!(stage.source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_fails_in_the_advisory_window_is_not_seen_and_waits_for_its_backoff() {
    let stage = half_an_hour([Say::Transient]).await;
    stage.pass(MINUTE * 24).await;
    for _ in 0..14 {
        assert_eq!(stage.call().await, Ok(200));
        stage.pass(SECOND).await;
    }
    assert_eq!(stage.source.calls(), 2, "15 s at least between two tries");
    for _ in 0..17 {
        stage.pass(SECOND).await;
        assert_eq!(stage.call().await, Ok(200));
    }
    stage.settle().await;
    assert_eq!(stage.source.calls(), 3, "and 30 s at most");
}

#[tokio::test(start_paused = true)]
async fn in_the_mandatory_window_calls_wait_for_the_new_one() {
    let stage = half_an_hour([]).await;
    stage.pass(MINUTE * 29 + SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_fails_in_the_mandatory_window_leaves_the_old_one_in_use() {
    let stage = half_an_hour([Say::Transient]).await;
    stage.pass(MINUTE * 29 + SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(
        stage.source.calls(),
        2,
        "backing off, the second does not even wait"
    );
    assert_eq!(stage.venue.seen(), ["token-1"; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_one_is_replaced_before_anything_is_sent() {
    let stage = half_an_hour([]).await;
    stage.pass(MINUTE * 30).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_one_is_never_sent_if_there_is_no_other() {
    let stage = half_an_hour([Say::Transient]).await;
    stage.pass(MINUTE * 30).await;
    assert_eq!(stage.call().await, Err(UnavailableKind::Failed));
    assert_eq!(stage.venue.seen(), ["token-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_first_failure_is_shared_for_a_while_and_then_one_tries_again() {
    let stage = Stage::new(Source::new([Say::Transient, Say::Token(HALF_HOUR)]));
    for _ in 0..100 {
        assert_eq!(stage.call().await, Err(UnavailableKind::Failed));
    }
    assert_eq!(stage.source.calls(), 1);
    assert!(
        stage.venue.seen().is_empty(),
        "nothing leaves without a credential"
    );
    stage.pass(SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn a_dead_token_server_is_asked_every_1_to_5_seconds_and_no_more() {
    let stage = Stage::new(Source::new([Say::Transient]));
    let mut calls = Vec::new();
    for tenth in 0..600_u32 {
        let before = stage.source.calls();
        assert_eq!(stage.call().await, Err(UnavailableKind::Failed));
        if stage.source.calls() > before {
            calls.push(tenth);
        }
        stage.pass(SECOND / 10).await;
    }
    let gaps: Vec<_> = calls.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (10..=51).contains(gap)), "{gaps:?}");
    assert!(gaps.len() > 10, "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn the_failure_says_when_asking_again_may_help() {
    let stage = Stage::new(Source::new([Say::After(MINUTE)]));
    let error = tower::ServiceExt::oneshot(stage.service.clone(), post())
        .await
        .unwrap_err();
    let failure = tower_outcome_core::Failure::of(&*error).unwrap();
    let after = failure.outcome().after().unwrap();
    assert_eq!(after.delay(), MINUTE);
    stage.pass(MINUTE - SECOND).await;
    assert_eq!(stage.call().await, Err(UnavailableKind::Failed));
    assert_eq!(
        stage.source.calls(),
        1,
        "the token server asked to be left alone"
    );
    stage.pass(SECOND).await;
    assert_eq!(stage.call().await, Err(UnavailableKind::Failed));
    assert_eq!(stage.source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_dead_source_is_not_asked_again_until_a_human_has_logged_in() {
    let stage = Stage::new(Source::new([Say::Dead, Say::Token(HALF_HOUR)]));
    for _ in 0..10 {
        assert_eq!(stage.call().await, Err(UnavailableKind::Dead));
        stage.pass(MINUTE * 10).await;
    }
    assert_eq!(stage.source.calls(), 1);
    let login = Credential::new("by-hand").with_lifetime(MINUTE * 30);
    stage.credentials.log_in(login).await.unwrap();
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE * 30).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["by-hand", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_has_died_is_no_reason_not_to_use_what_is_good() {
    let stage = half_an_hour([Say::Dead]).await;
    stage.pass(MINUTE * 24).await;
    for _ in 0..5 {
        assert_eq!(stage.call().await, Ok(200));
        stage.pass(MINUTE).await;
    }
    assert_eq!(stage.source.calls(), 2);
    stage.pass(MINUTE).await;
    assert_eq!(stage.call().await, Err(UnavailableKind::Dead));
    assert_eq!(stage.venue.seen().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn whoever_repaired_the_source_can_have_it_asked_at_once() {
    let stage = Stage::new(Source::new([Say::Dead, Say::Token(HALF_HOUR)]));
    assert_eq!(stage.call().await, Err(UnavailableKind::Dead));
    stage.credentials.try_again();
    assert_eq!(stage.call().await, Ok(200));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_has_expired_already_is_a_failure_and_no_loop() {
    let past = Credential::new("old").with_expires_at(start() - SECOND);
    let zero = Credential::new("zero").with_lifetime(std::time::Duration::ZERO);
    for stale in [past, zero] {
        let stage = Stage::new(Source::new([Say::Exactly(stale)]));
        for _ in 0..10 {
            assert_eq!(stage.call().await, Err(UnavailableKind::Expired));
        }
        assert_eq!(stage.source.calls(), 1);
        assert!(stage.venue.seen().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_refresh_token_of_an_answer_that_has_expired_is_kept() {
    let stale = Credential::new("old")
        .with_lifetime(std::time::Duration::ZERO)
        .with_refresh_token("rotated");
    let stage = Stage::new(Source::new([Say::Exactly(stale), Say::Token(HALF_HOUR)]));
    assert_eq!(stage.call().await, Err(UnavailableKind::Expired));
    stage.pass(SECOND * 5).await;
    assert_eq!(stage.call().await, Ok(200));
    let previous = stage.source.previous();
    let spent = previous[1].as_ref().unwrap().refresh_token().unwrap();
    assert_eq!(spent.expose(), "rotated");
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_near_their_end_make_no_hot_loop() {
    for lifetime in [SECOND / 1000, SECOND / 10, SECOND, SECOND * 10] {
        let stage = Stage::new(Source::tokens(lifetime));
        for _ in 0..1000 {
            // Late or not at all, and never with one that has expired.
            let _ = stage.call().await;
            stage.pass(SECOND / 100).await;
        }
        stage.settle().await;
        let calls = stage.source.calls();
        let most = usize::try_from(stage.clock_seconds()).unwrap() + 2;
        assert!(calls <= most, "{lifetime:?}: {calls} in {most} s");
    }
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_below_the_least_interval_has_calls_wait_and_never_sends_what_is_over() {
    let stage = Stage::with(Source::tokens(SECOND), Venue::default(), |builder| {
        builder.min_interval(SECOND * 10)
    });
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(SECOND * 2).await;
    let start = tokio::time::Instant::now();
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(start.elapsed(), SECOND * 8);
    assert_eq!(stage.venue.seen(), ["token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_wait_for_what_its_deadline_rules_out() {
    let stage = Stage::with(Source::tokens(SECOND), Venue::default(), |builder| {
        builder.min_interval(SECOND * 10)
    });
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(SECOND * 2).await;
    let start = tokio::time::Instant::now();
    let mut order = post();
    order.extensions_mut().insert(Deadline::after(SECOND * 5));
    let error = tower::ServiceExt::oneshot(stage.service.clone(), order)
        .await
        .unwrap_err();
    assert_eq!(kind(&error), UnavailableKind::Paused);
    let failure = tower_outcome_core::Failure::of(&*error).unwrap();
    assert_eq!(failure.outcome().after().unwrap().delay(), SECOND * 8);
    assert!(start.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn without_an_end_nothing_is_refreshed_ahead_of_it() {
    let stage = Stage::new(Source::endless());
    for _ in 0..100 {
        assert_eq!(stage.call().await, Ok(200));
        stage.pass(MINUTE * 60 * 24).await;
    }
    assert_eq!(stage.source.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn by_age_it_is_refreshed_in_the_background_whether_it_has_an_end_or_not() {
    let stage = Stage::with(Source::endless(), Venue::default(), |builder| {
        builder.max_age(MINUTE)
    });
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE - SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 1);
    stage.pass(SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    stage.settle().await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(
        stage.venue.seen(),
        ["token-1", "token-1", "token-1", "token-2"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_slept_does_not_send_what_expired_meanwhile() {
    let stage = half_an_hour([]).await;
    // The monotonic clock stands still while it sleeps.
    stage.clock.advance(MINUTE * 60);
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_stands_still_keeps_nothing_alive() {
    let stage = half_an_hour([]).await;
    tokio::time::sleep(MINUTE * 30).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_lifetime_counts_from_when_it_was_asked_for() {
    let source = Source::tokens(MINUTE).takes(SECOND * 10);
    let stage = Stage::new(source);
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(SECOND * 50).await;
    assert!(
        stage.credentials.current().is_none(),
        "60 s since it was asked for"
    );
}

#[tokio::test(start_paused = true)]
async fn the_earlier_of_two_ends_counts() {
    let both = Credential::new("both")
        .with_lifetime(MINUTE * 60)
        .with_expires_at(start() + MINUTE);
    let stage = Stage::new(Source::new([Say::Exactly(both)]));
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE).await;
    assert!(stage.credentials.current().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_is_slow_ends_with_its_own_time() {
    let stage = Stage::new(Source::new([Say::Never]));
    let start = tokio::time::Instant::now();
    assert_eq!(stage.call().await, Err(UnavailableKind::TimedOut));
    assert_eq!(start.elapsed(), SECOND * 15);
}

#[tokio::test(start_paused = true)]
async fn a_slow_refresh_in_the_advisory_window_keeps_nobody_waiting() {
    let stage = half_an_hour([Say::Never]).await;
    stage.pass(MINUTE * 24).await;
    let start = tokio::time::Instant::now();
    assert_eq!(stage.call().await, Ok(200));
    assert!(start.elapsed().is_zero());
    stage.pass(SECOND * 20).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 2);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_bounded_by_its_own_deadline_and_the_refresh_goes_on() {
    let stage = Stage::new(Source::tokens(MINUTE * 30).takes(SECOND * 10));
    let mut hasty = post();
    hasty.extensions_mut().insert(Deadline::after(SECOND));
    let patient = tokio::spawn(tower::ServiceExt::oneshot(stage.service.clone(), post()));
    let start = tokio::time::Instant::now();
    let error = tower::ServiceExt::oneshot(stage.service.clone(), hasty)
        .await
        .unwrap_err();
    assert_eq!(start.elapsed(), SECOND);
    assert_eq!(kind(&error), UnavailableKind::Deadline);
    assert_eq!(patient.await.unwrap().unwrap().status(), 200);
    assert_eq!(stage.source.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_lifetime_has_windows_of_its_own() {
    let stage = half_an_hour([Say::Token(Some(MINUTE * 60 * 6)), Say::Token(HALF_HOUR)]).await;
    stage.pass(MINUTE * 30).await;
    assert_eq!(stage.call().await, Ok(200));
    // Six hours: nothing to do for five, and something in the last half hour.
    stage.pass(MINUTE * 60 * 5 - SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 2);
    stage.pass(MINUTE * 31).await;
    assert_eq!(stage.call().await, Ok(200));
    stage.settle().await;
    assert_eq!(stage.source.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn windows_can_be_set() {
    let stage = Stage::with(Source::tokens(MINUTE * 30), Venue::default(), |builder| {
        builder.windows(Windows::fixed(MINUTE * 2, MINUTE * 2))
    });
    assert_eq!(stage.call().await, Ok(200));
    stage.pass(MINUTE * 28 - SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 1);
    stage.pass(SECOND).await;
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.venue.seen(), ["token-1", "token-1", "token-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_rejection_during_the_backoff_refreshes_at_once() {
    let stage = half_an_hour([Say::Transient, Say::Token(HALF_HOUR)]).await;
    stage.pass(MINUTE * 24).await;
    assert_eq!(stage.call().await, Ok(200));
    stage.settle().await;
    stage.pass(SECOND * 5).await;
    stage.venue.reject("token-1");
    assert_eq!(stage.call().await, Ok(200));
    assert_eq!(stage.source.calls(), 3);
}

impl Stage {
    fn clock_seconds(&self) -> u64 {
        use tower_outcome_core::Clock;
        let passed = self.clock.now().duration_since(start()).unwrap();
        // What calls waited by themselves counts on the other clock only.
        passed.as_secs() + u64::try_from(self.venue.seen().len()).unwrap()
    }
}
