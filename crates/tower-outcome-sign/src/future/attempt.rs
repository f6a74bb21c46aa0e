//! One signature, from the time that goes into it to the answer.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, request};
use tokio::time::Instant;
use tower_outcome_core::{CallContext, Deadline, ValidUntil};

use crate::{
    Fresh, Nonce, OffsetEstimate, SignError, SigningTime, Token, Validity,
    layer::Config,
    offset::{SentAt, shift},
};

/// One signature, from the time that goes into it to the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signing {
    time: SigningTime,
    nonce: Option<Nonce>,
    /// Which signature of this request it is; more than one only where the first went stale.
    pub(super) count: u8,
    /// Known where the server's clock is learned.
    pub(super) sent: Option<SentAt>,
    /// Whether what the answer says of the server's clock is signed with from then on.
    pub(super) is_learned: bool,
    pub(super) valid_until: Option<ValidUntil>,
}

/// Until when a signature is valid, and the wall clock once it was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealed {
    end: SigningTime,
    wall: SystemTime,
}

// === impl Sealed ===

impl Sealed {
    /// Looks at the clock, once for all who ask, unless the signature is valid for ever.
    #[inline]
    pub(super) fn of<A, C>(config: &Config<A, C>, validity: Validity) -> Option<Self> {
        let end = validity.end()?;
        let wall = config.clock.now();
        Some(Self { end, wall })
    }
}

// === impl Signing ===

impl Signing {
    #[inline]
    pub(super) const fn new(fresh: &Fresh) -> Self {
        Self {
            time: fresh.time(),
            nonce: fresh.given_nonce(),
            count: 1,
            sent: None,
            is_learned: false,
            valid_until: None,
        }
    }

    /// Takes what is new for another signature.
    #[cold]
    pub(super) fn begin<A, C>(
        config: &Config<A, C>,
        head: &request::Parts,
    ) -> Result<(Self, Fresh), SignError> {
        let wall = config.clock.now();
        let mut fresh = Fresh::new(time_of(config, wall)?);
        fill(config, head, wall, &mut fresh)?;
        Ok((Self::new(&fresh), fresh))
    }

    pub(super) const fn nonce(&self) -> Option<Nonce> {
        self.nonce
    }

    /// Counts on where a signature went stale.
    pub(super) const fn after(mut self, stale: &Self) -> Self {
        self.count = stale.count + 1;
        self
    }

    /// Returns whether the signature would not be valid for long enough if it were sent now: for the
    /// margin, or for half of what it was valid for, where that is less. One that was made at once may have
    /// taken its time, too: behind a lock, or in a module that is asked synchronously.
    #[inline]
    pub(super) fn is_stale<A, C>(&self, config: &Config<A, C>, sealed: Option<Sealed>) -> bool {
        let Some(Sealed { end, wall }) = sealed else {
            return false;
        };
        let now = corrected(config, wall);
        // Mostly there is more than the margin left, and that takes no difference of times to see.
        let last = UNIX_EPOCH.checked_add(end.since_epoch().saturating_sub(config.margin));
        let has_time = last.is_some_and(|last| now < last) && now >= UNIX_EPOCH;
        !has_time && self.is_late(config.margin, end, now)
    }

    #[cold]
    fn is_late(&self, margin: Duration, end: SigningTime, now: SystemTime) -> bool {
        SigningTime::new(now).map_or(true, |now| {
            let left = end.since_epoch().saturating_sub(now.since_epoch());
            // What was made for the last moments of a call is not stale for that.
            let whole = end.since_epoch().saturating_sub(self.time.since_epoch());
            left <= margin.min(whole / 2)
        })
    }

    /// Tells whoever asked until when the signature is valid.
    #[inline]
    pub(super) fn publish<A, C>(
        &mut self,
        config: &Config<A, C>,
        sealed: Option<Sealed>,
        head: &mut request::Parts,
    ) {
        let Some(Sealed { end, wall }) = sealed else {
            return;
        };
        let context = CallContext::of(&head.extensions);
        if context.is_none() && !config.publishes {
            return;
        }
        let end = end_of(config, end, wall);
        if let Some(context) = context {
            context.note_valid_until(end);
        }
        if config.publishes {
            head.extensions.insert(end);
            self.valid_until = Some(end);
        }
    }

    /// Notes that the request is handed down.
    #[inline]
    pub(super) fn depart<A, C>(&mut self, config: &Config<A, C>) {
        if config.offset.is_some() {
            self.sent = Some(SentAt {
                wall: config.clock.now(),
                instant: Instant::now(),
            });
        }
    }

    /// Takes in what an answer says of the server's clock.
    #[inline]
    pub(super) fn learn<A, C>(
        &mut self,
        config: &Config<A, C>,
        headers: &HeaderMap,
    ) -> Option<OffsetEstimate> {
        let heard = config.offset.as_ref()?.learn(self.sent?, headers)?;
        self.is_learned = heard.is_believed;
        Some(heard.estimate)
    }

    /// Returns whether the server's date proves that the time in the signature was wrong: by more than
    /// the error of the measurement, and by `least`.
    pub(super) fn was_wrong(&self, least: Duration, heard: OffsetEstimate) -> bool {
        let Some(sent) = self.sent.filter(|_| self.is_learned) else {
            // The second signature would be no better.
            return false;
        };
        // The server was so far ahead of the wall; the signature was so far ahead of the wall.
        let signed = ahead(self.time.to_system_time(), sent.wall);
        let wrong = (heard.middle - signed).abs();
        let least = i128::try_from(least.as_nanos()).unwrap_or(i128::MAX);
        wrong > heard.error.max(least)
    }
}

/// The time that goes into a signature.
#[inline]
pub(super) fn time_of<A, C>(
    config: &Config<A, C>,
    wall: SystemTime,
) -> Result<SigningTime, SignError> {
    SigningTime::new(corrected(config, wall))
}

/// Takes what is new for a signature besides the time, where there is anything.
#[inline]
pub(super) fn fill<A, C>(
    config: &Config<A, C>,
    head: &request::Parts,
    wall: SystemTime,
    fresh: &mut Fresh,
) -> Result<(), SignError> {
    // Mostly there is nothing.
    if config.nonces.is_none() && !config.needs.token() && head.extensions.is_empty() {
        return Ok(());
    }
    fill_up(config, head, wall, fresh)
}

fn fill_up<A, C>(
    config: &Config<A, C>,
    head: &request::Parts,
    wall: SystemTime,
    fresh: &mut Fresh,
) -> Result<(), SignError> {
    if let Some(nonces) = &config.nonces {
        // Never the corrected time: a server forgets no nonce, and a wrong date would raise the key
        // for good.
        fresh.set_nonce(nonces.issue(SigningTime::new(wall)?)?);
    }
    if config.needs.token() {
        let half = || u128::from(config.random.next_u64());
        fresh.set_token(Token::random(half() << 64 | half()));
    }
    if let Some(deadline) = Deadline::of(&head.extensions) {
        fresh.set_time_left(deadline.remaining(Instant::now()));
    }
    Ok(())
}

/// What the wall clock shows, corrected towards the server's.
#[inline]
fn corrected<A, C>(config: &Config<A, C>, wall: SystemTime) -> SystemTime {
    match &config.offset {
        Some(offset) => offset.correct(wall),
        None => wall,
    }
}

/// When the server's clock has passed `end` for sure.
#[cold]
fn end_of<A, C>(config: &Config<A, C>, end: SigningTime, wall: SystemTime) -> ValidUntil {
    let estimate = config
        .offset
        .as_ref()
        .and_then(crate::ClockOffset::estimate);
    let latest = match estimate {
        Some(estimate) => shift(wall, estimate.middle - estimate.error),
        None => wall,
    };
    let left = end.to_system_time().duration_since(latest);
    let now = Instant::now();
    let instant = now.checked_add(left.unwrap_or_default());
    ValidUntil::at(instant.unwrap_or(now))
}

/// The nanoseconds by which one time is ahead of the other.
fn ahead(time: SystemTime, of: SystemTime) -> i128 {
    let nanos = |span: Duration| i128::try_from(span.as_nanos()).unwrap_or(i128::MAX / 4);
    match time.duration_since(of) {
        Ok(span) => nanos(span),
        Err(error) => -nanos(error.duration()),
    }
}
