//! How long before its end a credential is refreshed.

use std::time::Duration;

use tower_outcome_core::{ConfigError, Random};

/// How long before its end a credential is refreshed.
///
/// In the *advisory* window a refresh is started by the first call that comes, and the credential is
/// served meanwhile. In the *mandatory* window calls wait for the refresh, so that what is sent cannot
/// expire on its way or in a queue below; if it fails, the credential is served to its very end.
///
/// | lifetime | advisory | mandatory |
/// |---|---|---|
/// | up to 10 min | half of it | a tenth of it |
/// | up to 20 min | 5 min | 60 s |
/// | below 90 min | 15 min | 60 s |
/// | from 90 min | 60 min | 60 s |
///
/// The advisory window is shortened by up to a half at random, so that a fleet that started together
/// does not refresh together; and neither is ever more than the half of a lifetime, so that a short one
/// does not make for a refresh without end. Where waits below may be longer than that, put an
/// [`ExpiryGuardLayer`](crate::ExpiryGuardLayer) below them. A lifetime is what is left of it when the credential arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows(Option<Fixed>);

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fixed {
    advisory: Duration,
    mandatory: Duration,
}

// === impl Windows ===

impl Windows {
    /// Scales both by the lifetime, as in the table: the default.
    #[must_use]
    pub const fn by_lifetime() -> Self {
        Self(None)
    }

    /// Sets both. Make the mandatory one longer than the longest wait in a limiter below.
    #[must_use]
    pub const fn fixed(advisory: Duration, mandatory: Duration) -> Self {
        Self(Some(Fixed {
            advisory,
            mandatory,
        }))
    }

    /// Returns the mandatory window of a credential that lives long: 60 s by lifetime.
    #[must_use]
    pub fn longest_mandatory(self) -> Duration {
        self.0.map_or(MINUTE, |fixed| fixed.mandatory)
    }

    pub(crate) fn check(self) -> Result<(), ConfigError> {
        match self.0 {
            Some(fixed) if fixed.mandatory > fixed.advisory => Err(ConfigError::new(
                "windows.mandatory",
                fixed.mandatory,
                "at most windows.advisory",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the advisory and the mandatory window of a credential that lives so long.
    pub(crate) fn of(self, lifetime: Duration, random: &dyn Random) -> (Duration, Duration) {
        let (advisory, mandatory) = match self.0 {
            Some(fixed) => (fixed.advisory, fixed.mandatory),
            None => {
                let advisory = if lifetime <= MINUTE * 20 {
                    MINUTE * 5
                } else if lifetime < MINUTE * 90 {
                    MINUTE * 15
                } else {
                    MINUTE * 60
                };
                (advisory, MINUTE.min(lifetime / 10))
            }
        };
        let advisory = advisory.min(lifetime / 2);
        let mandatory = mandatory.min(lifetime / 2);
        (shortened(advisory, random).max(mandatory), mandatory)
    }
}

/// Shortens a span by up to a half.
pub(crate) fn shortened(span: Duration, random: &dyn Random) -> Duration {
    let half = span / 2;
    let nanos = u64::try_from(half.as_nanos()).unwrap_or(u64::MAX);
    span - half + Duration::from_nanos(below(nanos, random))
}

/// Draws a number from 0 to `bound`.
fn below(bound: u64, random: &dyn Random) -> u64 {
    // The high half of the product is spread evenly enough for a delay.
    let product = u128::from(random.next_u64()) * (u128::from(bound) + 1);
    u64::try_from(product >> 64).unwrap_or(bound)
}

#[cfg(test)]
mod tests;
