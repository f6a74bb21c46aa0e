//! The walk through a response's headers, in order of precedence.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue};

use super::dialect::Reset;
use super::number::Number;
use super::{Hint, HintDialects, HintForm, RejectedHint, RetryAfter, date, rate_limit};

/// A value that does not follow its header's grammar.
#[derive(Debug)]
pub(super) struct Malformed;

/// One look at one response.
struct Search<'a> {
    headers: &'a HeaderMap,
    now: SystemTime,
    /// The first malformed value met, formatted only if nothing valid turns up.
    rejected: Option<(&'static str, &'a HeaderValue)>,
}

pub(super) fn inspect(dialects: HintDialects, headers: &HeaderMap, now: SystemTime) -> Hint {
    let mut search = Search {
        headers,
        now,
        rejected: None,
    };
    let found = search
        .millis("retry-after-ms")
        .or_else(|| search.millis("x-ms-retry-after-ms"))
        .or_else(|| search.millis(dialects.amz_header()?))
        .or_else(|| search.retry_after())
        .or_else(|| search.rate_limit())
        .or_else(|| search.resets(dialects));

    match (found, search.rejected) {
        (Some(hint), _) => Hint::Valid(hint),
        (None, Some((header, value))) => Hint::Invalid(RejectedHint::new(header, value)),
        (None, None) => Hint::Absent,
    }
}

// === impl Search ===

impl<'a> Search<'a> {
    fn millis(&mut self, header: &'static str) -> Option<RetryAfter> {
        self.longest(header, |value| {
            let delay = Number::parse(value.as_bytes()).ok_or(Malformed)?.millis();
            Ok(Some(RetryAfter::new(delay, HintForm::Milliseconds)))
        })
    }

    fn retry_after(&mut self) -> Option<RetryAfter> {
        let (headers, now) = (self.headers, self.now);
        self.longest("retry-after", |value| {
            if let Some(number) = Number::parse(value.as_bytes()) {
                return Ok(Some(RetryAfter::new(number.seconds(), HintForm::Seconds)));
            }
            let reference = date::reference(headers, now);
            let date = date::parse(value, reference).ok_or(Malformed)?;
            let delay = date.duration_since(reference).unwrap_or_default();
            Ok(Some(RetryAfter::new(delay, HintForm::Date)))
        })
    }

    fn rate_limit(&mut self) -> Option<RetryAfter> {
        // The draft: a response that a cache answered says nothing about the limit now.
        if self.headers.contains_key(http::header::AGE) {
            return None;
        }
        self.longest("ratelimit", |value| {
            let delay = rate_limit::parse(value.as_bytes())?;
            Ok(delay.map(|delay| RetryAfter::new(delay, HintForm::RateLimit)))
        })
    }

    /// Several limits can be exhausted at once, and all must be waited for.
    fn resets(&mut self, dialects: HintDialects) -> Option<RetryAfter> {
        let resets = dialects.resets().into_iter().flatten();
        let found = resets.filter_map(|reset| self.reset(reset));
        found.max_by_key(RetryAfter::delay)
    }

    fn reset(&mut self, reset: Reset) -> Option<RetryAfter> {
        if self.has_remaining(reset.remaining) {
            return None;
        }
        let (headers, now) = (self.headers, self.now);
        self.longest(reset.header, |value| {
            let number = Number::parse(value.as_bytes()).ok_or(Malformed)?;
            let delay = reset.unit.delay(number, || {
                date::reference(headers, now)
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or(Duration::ZERO)
            });
            Ok(Some(RetryAfter::new(delay, HintForm::Reset)))
        })
    }

    /// Whether a header says that the limit is not used up. A malformed one says nothing.
    fn has_remaining(&self, header: &str) -> bool {
        let mut counts = self
            .headers
            .get_all(header)
            .iter()
            .filter_map(|value| Number::parse(value.as_bytes()))
            .peekable();
        counts.peek().is_some() && counts.all(|count| !count.is_zero())
    }

    /// The longest of a header's valid values. The first malformed one is remembered.
    fn longest(
        &mut self,
        header: &'static str,
        parse: impl Fn(&'a HeaderValue) -> Result<Option<RetryAfter>, Malformed>,
    ) -> Option<RetryAfter> {
        let values = self.headers.get_all(header).iter();
        let hints = values.filter_map(|value| {
            parse(value).unwrap_or_else(|Malformed| {
                self.rejected.get_or_insert((header, value));
                None
            })
        });
        hints.max_by_key(RetryAfter::delay)
    }
}
