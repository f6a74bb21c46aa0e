//! What a template tells the server of a request's time, and when the server will not accept it any more.

use std::time::Duration;

use super::Part;
use crate::{Fresh, SignError, SigningTime, Unit, Validity};

/// What a template tells the server of a request's time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lifetime {
    /// The finest unit in which the time is written.
    at: Option<Unit>,
    /// The coarsest unit in which its end is written.
    expires: Option<Unit>,
    /// Whether it is told how long it may take.
    window: bool,
}

// === impl Lifetime ===

impl Lifetime {
    /// Notes what a part tells.
    pub(super) fn look(&mut self, part: &Part) {
        match part {
            Part::Timestamp(unit) => self.at = Some(self.at.map_or(*unit, |at| at.min(*unit))),
            Part::TimestampRfc3339 => {
                self.at = Some(self.at.map_or(Unit::Millis, |at| at.min(Unit::Millis)));
            }
            Part::Expires(unit) => {
                self.expires = Some(self.expires.map_or(*unit, |end| end.max(*unit)));
            }
            Part::WindowMillis => self.window = true,
            _ => {}
        }
    }

    /// Whether the server is told how long it may accept a request.
    pub(super) const fn is_told(&self) -> bool {
        self.window || self.expires.is_some()
    }

    /// Whether it is told that as a window.
    pub(super) const fn tells_window(&self) -> bool {
        self.window
    }

    /// How long the server is to accept a request.
    ///
    /// It need not accept what nobody waits for any more; but one that goes by a window of its own does
    /// not know of that.
    #[inline]
    pub(super) fn window(&self, window: Duration, fresh: &Fresh) -> Duration {
        match fresh.time_left() {
            Some(left) if self.is_told() => window.min(left.max(Duration::from_millis(1))),
            _ => window,
        }
    }

    /// When the server will not accept it any more: counted from what was written, since that is all
    /// that it knows.
    pub(super) fn end(&self, window: Duration, time: SigningTime) -> Result<Validity, SignError> {
        if let Some(unit) = self.expires {
            let end = end_in(unit, window, time);
            return SigningTime::from_unit(end, unit).map(Validity::until);
        }
        let time = match self.at {
            Some(unit) => SigningTime::from_unit(time.count(unit), unit)?,
            None => time,
        };
        let window = if self.window {
            Duration::from_millis(Unit::Millis.count_up(window))
        } else {
            window
        };
        Ok(Validity::for_window(time, window))
    }
}

/// The end of a window as it is written: what is only a part of a unit counts as a whole one, or the
/// request would end before its time.
pub(super) fn end_in(unit: Unit, window: Duration, time: SigningTime) -> u64 {
    unit.count_up(time.since_epoch().saturating_add(window))
}
