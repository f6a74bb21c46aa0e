//! How far the server's clock is from this one.

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use http::{HeaderMap, header};
use tokio::time::Instant;
use tower_outcome_core::{BoxError, Clock, ConfigError};

use crate::SigningTime;

mod interval;
mod known;
mod source;

pub(crate) use self::source::Resync;
use self::{interval::Interval, known::Known, source::Source};

/// How far the server's clock is from this one, as far as its answers tell.
///
/// A cheap handle; clones share. Make one for each server, and give it to every layer that signs for
/// it. A layer that signs for several [origins](crate::SignLayerBuilder::origin) has one for all of them: if
/// their clocks differ, give each a layer of its own, or what one teaches is applied to the other.
///
/// An answer that was dated `D`, asked for at `a` and received at `p`, was dated somewhere in between,
/// so the offset is known to within half the round trip and half the resolution of the date: the
/// middle is the estimate. What several answers say is intersected, so the shortest round trip counts
/// most; and since two clocks do not run equally fast, old answers count less and less. An answer
/// that contradicts all before shows that one of the clocks was set, and is believed at once: the
/// offset vanishes with its cause; and when the wall clock jumps by just what it was off, next to the clock
/// that nobody sets, it was repaired, and is believed before any answer says so. Only one that is further off than
/// [`max_offset`](ClockOffsetBuilder::max_offset) has to be confirmed by two more first: a broken proxy
/// is likelier.
///
/// Ignored are answers from a cache (`Age`), without a date, with several or with a bad one, those with
/// which nothing could be signed (the first and the last days of the calendar), and those that took
/// longer than [`max_round_trip`](ClockOffsetBuilder::max_round_trip). Then the last good offset
/// stays.
///
/// The offset is applied only if it is larger than its own error, and then at its late end: a venue
/// that accepts a time five seconds old refuses one that is a second early.
#[derive(Clone, Debug)]
pub struct ClockOffset(Arc<State>);

/// Builds a [`ClockOffset`]; start with [`ClockOffset::builder`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ClockOffsetBuilder {
    max_round_trip: Duration,
    max_offset: Duration,
    drift_ppm: u32,
    source: Option<Arc<Source>>,
}

/// What is known of the offset at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetEstimate {
    /// Nanoseconds by which the server is ahead.
    pub(crate) middle: i128,
    pub(crate) error: i128,
    pub(crate) round_trip: Duration,
}

/// When a request was sent: by the wall, and by the clock that nobody sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentAt {
    pub(crate) wall: SystemTime,
    pub(crate) instant: Instant,
}

#[derive(Debug)]
struct State {
    config: ClockOffsetBuilder,
    /// Held for a few arithmetic operations, never across an await.
    known: Mutex<Known>,
    /// Whether the source has to be asked.
    is_due: AtomicBool,
    /// Held by whoever asks it. Never held together with `known`.
    asking: tokio::sync::Mutex<()>,
}

/// What one answer says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) estimate: OffsetEstimate,
    /// Whether it is signed with from now on.
    pub(crate) is_believed: bool,
}

// === impl ClockOffset ===

impl ClockOffset {
    /// Creates an offset of which nothing is known, with the defaults of the builder.
    #[must_use]
    pub fn new() -> Self {
        Self::of(Self::builder())
    }

    fn of(config: ClockOffsetBuilder) -> Self {
        Self(Arc::new(State {
            is_due: AtomicBool::new(config.source.is_some()),
            config,
            known: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
        }))
    }

    /// Starts with the defaults.
    pub const fn builder() -> ClockOffsetBuilder {
        ClockOffsetBuilder {
            max_round_trip: Duration::from_secs(15 * 60),
            max_offset: Duration::from_secs(3 * 86_400),
            drift_ppm: 100,
            source: None,
        }
    }

    /// Takes in what a server said of its time: `server` to within `resolution` after it, in an answer
    /// to a request that was sent when the wall clock showed `sent`, and took `round_trip`.
    ///
    /// Layers that sign do this with the `Date` of every answer. Call it with the times of an
    /// endpoint that tells them to the millisecond, if there is one: it is a hundred times as exact.
    pub fn observe(
        &self,
        sent: SystemTime,
        round_trip: Duration,
        server: SystemTime,
        resolution: Duration,
    ) {
        self.take(sent, round_trip, server, resolution, Instant::now());
    }

    /// Asks for the server's time, by a future of yours that resolves to it, and takes it in.
    ///
    /// # Errors
    ///
    /// That of the future. What was known before then stays.
    pub async fn measure<E>(
        &self,
        clock: &dyn Clock,
        resolution: Duration,
        ask: impl Future<Output = Result<SystemTime, E>>,
    ) -> Result<(), E> {
        let (wall, start) = (clock.now(), Instant::now());
        let server = ask.await?;
        self.observe(wall, start.elapsed(), server, resolution);
        Ok(())
    }

    /// Waits until the source has been asked, if that is due. One asks, and the others wait for it.
    #[inline]
    pub(crate) fn resync(&self, clock: &Arc<dyn Clock>) -> Option<Resync> {
        if !self.0.is_due.load(Ordering::Relaxed) {
            return None;
        }
        let (this, clock) = (self.clone(), Arc::clone(clock));
        Some(Box::pin(async move {
            let state = &*this.0;
            let _turn = state.asking.lock().await;
            if !state.is_due.load(Ordering::Relaxed) {
                return;
            }
            if let Some(source) = &state.config.source {
                // A failure leaves what is known, and the dates of answers to learn from.
                let _ = this
                    .measure(&*clock, source.resolution, (source.ask)())
                    .await;
            }
            state.is_due.store(false, Ordering::Relaxed);
        }))
    }

    /// A server has refused the time: the source is asked again before anything else is signed.
    pub(crate) fn suspect(&self) {
        let has_source = self.0.config.source.is_some();
        self.0.is_due.store(has_source, Ordering::Relaxed);
    }

    /// Returns what is known, if anything.
    #[must_use]
    pub fn estimate(&self) -> Option<OffsetEstimate> {
        let interval = self.known().interval();
        interval.map(|known| known.at(Instant::now(), self.0.config.drift_ppm).estimate())
    }

    /// Forgets all that is known, as if nothing had been learned yet.
    pub fn reset(&self) {
        *self.known() = Known::default();
    }

    /// Corrects what the wall clock shows.
    #[must_use]
    pub fn correct(&self, wall: SystemTime) -> SystemTime {
        let (drift, now) = (self.0.config.drift_ppm, Instant::now());
        let known = *self.known();
        let Some(interval) = known.interval() else {
            return wall;
        };
        let estimate = interval.at(now, drift).estimate();
        if estimate.is_significant() && known.was_repaired(wall, now, estimate) {
            return wall;
        }
        shift(wall, estimate.applied())
    }

    /// Takes in the `Date` of an answer, and says how far the server was from the wall clock by this
    /// answer alone.
    pub(crate) fn learn(&self, sent: SentAt, headers: &HeaderMap) -> Option<Heard> {
        const SECOND: Duration = Duration::from_secs(1);
        let date = date(headers)?;
        let now = Instant::now();
        let round_trip = now.saturating_duration_since(sent.instant);
        self.take(sent.wall, round_trip, date, SECOND, now)
    }

    fn take(
        &self,
        sent: SystemTime,
        round_trip: Duration,
        server: SystemTime,
        resolution: Duration,
        now: Instant,
    ) -> Option<Heard> {
        let config = &self.0.config;
        if round_trip > config.max_round_trip {
            return None;
        }
        let heard = Interval::heard(sent, round_trip, server, resolution, now)?;
        let estimate = heard.estimate();
        if !estimate.can_be_signed_with(sent) {
            return None;
        }
        let mut known = self.known();
        let is_believed = known.take(heard, config.drift_ppm, config.max_offset);
        known.showed(sent.checked_add(round_trip).unwrap_or(sent), now);
        drop(known);
        Some(Heard {
            estimate,
            is_believed,
        })
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ClockOffset {
    fn default() -> Self {
        Self::new()
    }
}

// === impl ClockOffsetBuilder ===

impl ClockOffsetBuilder {
    /// Sets the longest round trip from which anything is learned: a quarter of an hour by default,
    /// beyond which a suspended machine is likelier than a slow answer. A slow answer does no harm,
    /// since it says little.
    pub const fn max_round_trip(mut self, round_trip: Duration) -> Self {
        self.max_round_trip = round_trip;
        self
    }

    /// Sets who is asked for the server's time, which is told to within `resolution`: an endpoint for it, to
    /// the millisecond where there is one. Default: nobody, and the `Date` of answers, which has whole seconds,
    /// has to do.
    ///
    /// It is asked before the first request is signed, and again when a classifier says that a server has
    /// refused the time; otherwise never. The requests that are to be signed meanwhile wait for it, so give
    /// it a time-out of its own. If it fails, they are signed with what is known.
    pub fn source<F, E>(
        mut self,
        resolution: Duration,
        ask: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<SystemTime, E>> + Send + 'static,
        E: Into<BoxError>,
    {
        self.source = Some(Arc::new(Source {
            resolution,
            ask: Box::new(move || {
                let asked = ask();
                Box::pin(async move { asked.await.map_err(Into::into) })
            }),
        }));
        self
    }

    /// Sets how far the server's clock may be from this one for one answer to be believed: three days
    /// by default, more than a wrong time zone or a wrong day. What is further off, such as a clock that
    /// starts in 1970, is believed when three answers in a row agree.
    pub const fn max_offset(mut self, offset: Duration) -> Self {
        self.max_offset = offset;
        self
    }

    /// Sets how much two clocks drift apart, in parts per million: 100 by default, more than the
    /// crystals of common hardware do.
    pub const fn drift_ppm(mut self, ppm: u32) -> Self {
        self.drift_ppm = ppm;
        self
    }

    /// Builds the offset, of which nothing is known yet.
    ///
    /// # Errors
    ///
    /// If nothing could be learned because the longest round trip is zero.
    pub fn build(self) -> Result<ClockOffset, ConfigError> {
        if self.max_round_trip.is_zero() {
            let expected = "longer than zero";
            return Err(ConfigError::new(
                "max_round_trip",
                self.max_round_trip,
                expected,
            ));
        }
        Ok(ClockOffset::of(self))
    }
}

// === impl OffsetEstimate ===

impl OffsetEstimate {
    /// Returns by how many milliseconds the server is ahead (or, below zero, behind).
    #[must_use]
    pub fn millis(&self) -> i64 {
        i64::try_from(self.middle / 1_000_000).unwrap_or(i64::MAX)
    }

    /// Returns how wrong that may be, to either side.
    #[must_use]
    pub fn error(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.error).unwrap_or(u64::MAX))
    }

    /// Returns the round trip of the answer from which it was learned last.
    #[must_use]
    pub const fn round_trip(&self) -> Duration {
        self.round_trip
    }

    /// Returns whether it is larger than its error.
    #[must_use]
    pub const fn is_significant(&self) -> bool {
        self.middle.abs() > self.error
    }

    /// Whether what comes of it lies within the calendar, for a year to come.
    fn can_be_signed_with(&self, wall: SystemTime) -> bool {
        const YEAR: Duration = Duration::from_secs(366 * 86_400);
        let early = shift(wall, self.middle - self.error);
        let late = shift(wall, self.middle + self.error).checked_add(YEAR);
        SigningTime::new(early).is_ok() && late.is_some_and(|late| SigningTime::new(late).is_ok())
    }

    /// What is added to the wall clock: nothing, or the late end.
    pub(crate) const fn applied(&self) -> i128 {
        if self.is_significant() {
            self.middle - self.error
        } else {
            0
        }
    }
}

/// The date of an answer, unless it is that of a cache, or there are several.
fn date(headers: &HeaderMap) -> Option<SystemTime> {
    if headers.get(header::AGE).is_some() {
        return None;
    }
    let mut dates = headers.get_all(header::DATE).iter();
    let date = dates.next()?.to_str().ok()?;
    if dates.next().is_some() {
        return None;
    }
    httpdate::parse_http_date(date).ok()
}

/// A point in time some nanoseconds later, or earlier.
pub(crate) fn shift(time: SystemTime, nanos: i128) -> SystemTime {
    const SECOND: u128 = 1_000_000_000;
    let span = nanos.unsigned_abs();
    let seconds = u64::try_from(span / SECOND).unwrap_or(u64::MAX);
    // Never fails: the rest is below a second.
    let rest = u32::try_from(span % SECOND).unwrap_or_default();
    let span = Duration::new(seconds, rest);
    let shifted = if nanos < 0 {
        time.checked_sub(span)
    } else {
        time.checked_add(span)
    };
    shifted.unwrap_or(time)
}
