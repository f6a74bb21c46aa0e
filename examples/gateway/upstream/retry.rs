//! Sending again.

use tower_outcome::{
    Backoff, HintPolicy, Hints, HttpClassifier, Jitter, RetryLayer, retry::RetryLayerBuilder,
};

use super::Section;

/// Reads `[upstream.retry]`. Without that nothing is sent again, but what became of each call is decided all
/// the same.
pub(super) fn read(section: Option<&Section<'_>>) -> RetryLayerBuilder<HttpClassifier> {
    let retry = RetryLayer::builder();
    let Some(section) = section else {
        return retry.max_attempts(1);
    };
    let (backoff, hints) = (backoff(section), hints(section));
    let (attempts, elapsed) = (section.number("max_attempts"), section.span("elapsed"));
    let mut retry = retry.backoff(backoff).hints(hints);
    if let Some(attempts) = attempts {
        retry = retry.max_attempts(attempts);
    }
    if let Some(elapsed) = elapsed {
        retry = retry.elapsed(elapsed);
    }
    // Each by itself too, so that one that is wrong does not hide the next.
    let alone = [
        Some(RetryLayer::builder().backoff(backoff)),
        Some(RetryLayer::builder().hints(hints)),
        attempts.map(|attempts| RetryLayer::builder().max_attempts(attempts)),
        elapsed.map(|elapsed| RetryLayer::builder().elapsed(elapsed)),
    ];
    for alone in alone.into_iter().flatten() {
        if let Err(error) = alone.build() {
            section.refused(&error);
        }
    }
    retry
}

fn backoff(section: &Section<'_>) -> Backoff {
    let mut backoff = Backoff::new();
    let Some(section) = section.section("backoff") else {
        return backoff;
    };
    if let Some(base) = section.span("base") {
        backoff = backoff.base(base);
    }
    if let Some(base) = section.span("throttled_base") {
        backoff = backoff.throttled_base(base);
    }
    if let Some(factor) = section.number("factor") {
        backoff = backoff.factor(factor);
    }
    if let Some(cap) = section.span("cap") {
        backoff = backoff.cap(cap);
    }
    let words = [
        ("full", Jitter::Full),
        ("equal", Jitter::Equal),
        ("none", Jitter::None),
    ];
    if let Some(jitter) = section.one_of("jitter", &words) {
        backoff = backoff.jitter(jitter);
    }
    section.finish();
    backoff
}

fn hints(section: &Section<'_>) -> Hints {
    let mut hints = Hints::new();
    let Some(section) = section.section("hints") else {
        return hints;
    };
    let words = [
        ("lower-bound", HintPolicy::LowerBound),
        ("replace", HintPolicy::Replace),
        ("ignore", HintPolicy::Ignore),
    ];
    if let Some(policy) = section.one_of("policy", &words) {
        hints = hints.policy(policy);
    }
    if let Some(clamp) = section.span("clamp") {
        hints = hints.clamp(clamp);
    }
    if let Some(longest) = section.span("longest") {
        hints = hints.longest(longest);
    }
    if let Some(floor) = section.span("throttled_floor") {
        hints = hints.throttled_floor(floor);
    }
    section.finish();
    hints
}
