//! Rate limits and bans, per client.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use crate::Answer;

/// How many requests a client may send within a window.
///
/// A request over it is answered 429 with `Retry-After` in whole seconds, rounded up, and is not
/// applied, nor does a fault reach it. Every answer carries `x-ratelimit-limit`,
/// `x-ratelimit-remaining` and `x-ratelimit-reset`, the last in whole seconds from now, rounded up.
/// Clients are told apart by the header `x-client`; requests without it share one budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    requests: u32,
    window: Duration,
    kind: Window,
}

/// How the windows of a [`Limit`] lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Window {
    /// Any stretch of time as long as the window; a request leaves it when it is that old.
    Sliding,
    /// Back to back, counted from the start of the venue.
    Fixed,
}

/// What happens to a client that keeps calling over its limit.
///
/// After so many rejections within a span, each request of that client is answered 418 with
/// `Retry-After` for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ban {
    after: u32,
    within: Duration,
    lasting: Duration,
}

/// The books of a limit, over all clients.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    limit: Option<Limit>,
    ban: Option<Ban>,
    clients: HashMap<Option<String>, Client>,
}

#[derive(Debug, Default)]
struct Client {
    /// When the requests that count were let in.
    admitted: VecDeque<Duration>,
    /// When the rejections that count happened.
    rejected: VecDeque<Duration>,
    banned_until: Option<Duration>,
    bans: usize,
}

/// What a gate says to a request.
#[derive(Debug)]
pub(crate) struct Admission {
    /// The headers for whatever answer the request gets.
    pub(crate) headers: Vec<(String, String)>,
    /// The answer, if the request may not pass.
    pub(crate) refusal: Option<Answer>,
}

// === impl Limit ===

impl Limit {
    /// Limits any stretch of time as long as `window` to `requests`.
    #[must_use]
    pub fn sliding(requests: u32, window: Duration) -> Self {
        Self {
            requests,
            window,
            kind: Window::Sliding,
        }
    }

    /// Limits each window, back to back from the start of the venue, to `requests`.
    #[must_use]
    pub fn fixed(requests: u32, window: Duration) -> Self {
        Self {
            requests,
            window,
            kind: Window::Fixed,
        }
    }

    /// Returns how many requests a window takes.
    #[must_use]
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Returns how long a window is.
    #[must_use]
    pub fn window(&self) -> Duration {
        self.window
    }

    /// Returns how the windows lie.
    #[must_use]
    pub fn kind(&self) -> Window {
        self.kind
    }

    /// Returns whether a request let in at `then` still counts, and if so until when.
    fn counts_until(&self, then: Duration, now: Duration) -> Option<Duration> {
        let until = match self.kind {
            Window::Sliding => then.saturating_add(self.window),
            Window::Fixed => {
                let window = self.window.as_nanos().max(1);
                let end = (then.as_nanos() / window + 1).saturating_mul(window);
                Duration::from_nanos(u64::try_from(end).unwrap_or(u64::MAX))
            }
        };
        (until > now).then_some(until)
    }
}

// === impl Ban ===

impl Ban {
    /// Bans a client for `lasting` after `after` rejections within `within`.
    #[must_use]
    pub fn new(after: u32, within: Duration, lasting: Duration) -> Self {
        Self {
            after,
            within,
            lasting,
        }
    }

    /// Returns how many rejections bring the ban.
    #[must_use]
    pub fn after(&self) -> u32 {
        self.after
    }

    /// Returns the span within which they count.
    #[must_use]
    pub fn within(&self) -> Duration {
        self.within
    }

    /// Returns how long the ban lasts.
    #[must_use]
    pub fn lasting(&self) -> Duration {
        self.lasting
    }
}

// === impl Gate ===

impl Gate {
    pub(crate) fn new(limit: Option<Limit>, ban: Option<Ban>) -> Self {
        Self {
            limit,
            ban,
            clients: HashMap::new(),
        }
    }

    pub(crate) fn bans(&self, client: Option<&str>) -> usize {
        self.clients
            .get(&client.map(str::to_owned))
            .map_or(0, |client| client.bans)
    }

    pub(crate) fn admit(&mut self, client: Option<&str>, now: Duration) -> Admission {
        let Some(limit) = self.limit else {
            return Admission {
                headers: Vec::new(),
                refusal: None,
            };
        };
        let client = self.clients.entry(client.map(str::to_owned)).or_default();
        while let Some(oldest) = client.admitted.front() {
            if limit.counts_until(*oldest, now).is_some() {
                break;
            }
            client.admitted.pop_front();
        }
        if let Some(until) = client.banned_until {
            if until > now {
                return Admission::refused(418, until - now, limit.headers(client, now));
            }
            client.banned_until = None;
        }
        let used = u32::try_from(client.admitted.len()).unwrap_or(u32::MAX);
        if used < limit.requests {
            client.admitted.push_back(now);
            return Admission {
                headers: limit.headers(client, now),
                refusal: None,
            };
        }
        let headers = limit.headers(client, now);
        if let Some(ban) = self.ban {
            client
                .rejected
                .retain(|then| then.saturating_add(ban.within) > now);
            client.rejected.push_back(now);
            if client.rejected.len() >= usize::try_from(ban.after).unwrap_or(usize::MAX) {
                client.rejected.clear();
                client.bans += 1;
                client.banned_until = Some(now.saturating_add(ban.lasting));
                return Admission::refused(418, ban.lasting, headers);
            }
        }
        let wait = client
            .admitted
            .front()
            .and_then(|oldest| limit.counts_until(*oldest, now))
            .map_or(limit.window, |until| until.saturating_sub(now));
        Admission::refused(429, wait, headers)
    }
}

// === impl Limit, the headers ===

impl Limit {
    fn headers(&self, client: &Client, now: Duration) -> Vec<(String, String)> {
        let used = u32::try_from(client.admitted.len()).unwrap_or(u32::MAX);
        let reset = client
            .admitted
            .front()
            .and_then(|oldest| self.counts_until(*oldest, now))
            .map_or(Duration::ZERO, |until| until.saturating_sub(now));
        let pair = |name: &str, value: u64| (name.to_owned(), value.to_string());
        vec![
            pair("x-ratelimit-limit", u64::from(self.requests)),
            pair(
                "x-ratelimit-remaining",
                u64::from(self.requests.saturating_sub(used)),
            ),
            pair("x-ratelimit-reset", seconds(reset)),
        ]
    }
}

// === impl Admission ===

impl Admission {
    fn refused(status: u16, wait: Duration, headers: Vec<(String, String)>) -> Self {
        let refusal = Answer::json(status, r#"{"error":"too many requests"}"#)
            .header("retry-after", seconds(wait).to_string());
        Self {
            headers,
            refusal: Some(refusal),
        }
    }
}

/// Whole seconds, rounded up.
fn seconds(time: Duration) -> u64 {
    time.as_secs()
        .saturating_add(u64::from(time.subsec_nanos() > 0))
}

#[cfg(test)]
mod tests;
