//! What a venue allows.

use std::time::Duration;

use tower_outcome_core::ConfigError;

/// One limit of a venue: how much may be used of what, and in which time.
///
/// | kind | the venue counts |
/// |---|---|
/// | [`sliding`](Self::sliding) | whatever is younger than the window |
/// | [`aligned`](Self::aligned) | what came since the last full minute, hour, day of its clock |
/// | [`token_bucket`](Self::token_bucket) | down from a burst, and refills at a steady rate |
/// | [`spacing`](Self::spacing) | nothing; it wants requests to keep a distance |
///
/// Not sure which? `sliding` is within the limit of every venue that counts windows of that length,
/// however they lie.
///
/// ```
/// use std::time::Duration;
/// use tower_outcome_rate_limit::Limit;
///
/// let minute = Duration::from_secs(60);
/// let weight = Limit::aligned("weight", 6000, minute);
/// let orders = Limit::sliding("orders", 50, Duration::from_secs(10));
/// let sustained = Limit::token_bucket("sustained", 100, minute).burst(300);
/// # let _ = (weight, orders, sustained);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Limit {
    pub(crate) name: Box<str>,
    pub(crate) kind: Kind,
    /// A setting that it was given and does not have.
    misplaced: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Sliding {
        capacity: u32,
        window: Duration,
    },
    Aligned {
        capacity: u32,
        period: Duration,
        offset: Duration,
    },
    TokenBucket {
        tokens: u32,
        per: Duration,
        burst: u32,
    },
    Spacing {
        gap: Duration,
    },
}

// === impl Limit ===

impl Limit {
    /// The largest capacity: 2,147,483,647.
    pub const MAX_CAPACITY: u32 = u32::MAX / 2;

    /// The longest window: 400 days.
    pub const MAX_WINDOW: Duration = Duration::from_secs(400 * 24 * 60 * 60);

    /// At most `capacity` units within any stretch of time as long as `window`.
    pub fn sliding(name: impl Into<String>, capacity: u32, window: Duration) -> Self {
        Self::new(name, Kind::Sliding { capacity, window })
    }

    /// At most `capacity` units between two ticks of the venue's clock, `period` apart.
    ///
    /// Ticks are counted from the Unix epoch, so that a minute begins at second 0 and a day at
    /// midnight UTC; see [`offset`](Self::offset). Where the venue's clock is not known
    /// ([`Budget::observe_date`](crate::Budget::observe_date)), or is known too badly to tell, the
    /// limit counts as a sliding one, which is within it whatever the clock says.
    pub fn aligned(name: impl Into<String>, capacity: u32, period: Duration) -> Self {
        let offset = Duration::ZERO;
        Self::new(
            name,
            Kind::Aligned {
                capacity,
                period,
                offset,
            },
        )
    }

    /// A bucket that holds as much as `burst` (by default `tokens`) and refills at the rate of
    /// `tokens` in `per`.
    ///
    /// The venue's bucket is never overdrawn. A venue that refills in steps rather than steadily
    /// may be late by one step: lower the burst by as much.
    pub fn token_bucket(name: impl Into<String>, tokens: u32, per: Duration) -> Self {
        let burst = tokens;
        Self::new(name, Kind::TokenBucket { tokens, per, burst })
    }

    /// At least `gap` between the departures of two requests, whatever they cost.
    ///
    /// For venues that take requests at the same instant amiss. What the network does to the
    /// distance afterwards is not made up for.
    pub fn spacing(name: impl Into<String>, gap: Duration) -> Self {
        Self::new(name, Kind::Spacing { gap })
    }

    /// Sets how much a token bucket holds. Other limits have no burst, and no budget is built of one
    /// that was given it.
    pub fn burst(mut self, tokens: u32) -> Self {
        match &mut self.kind {
            Kind::TokenBucket { burst, .. } => *burst = tokens,
            _ => self.misplaced = Some("limit.burst"),
        }
        self
    }

    /// Sets how long after the Unix epoch the windows of an aligned limit begin, as for a day that
    /// ends at five o'clock. Other limits have no windows to shift, and no budget is built of one that
    /// was given an offset.
    pub fn offset(mut self, by: Duration) -> Self {
        match &mut self.kind {
            Kind::Aligned { offset, .. } => *offset = by,
            _ => self.misplaced = Some("limit.offset"),
        }
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into().into_boxed_str(),
            kind,
            misplaced: None,
        }
    }

    pub(crate) const fn is_aligned(&self) -> bool {
        matches!(self.kind, Kind::Aligned { .. })
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        if self.name.is_empty() {
            return Err(ConfigError::new("limit.name", "", "a name"));
        }
        if let Some(field) = self.misplaced {
            return Err(ConfigError::new(
                field,
                &self.name,
                "a limit of the kind that has it",
            ));
        }
        let capacity = |field, value| match value {
            1..=Self::MAX_CAPACITY => Ok(()),
            _ => Err(ConfigError::new(
                field,
                format_args!("{value} of {:?}", self.name),
                "1 to 2147483647",
            )),
        };
        let window = |field, value: Duration| {
            if value.is_zero() || value > Self::MAX_WINDOW {
                return Err(ConfigError::new(
                    field,
                    format_args!("{value:?} of {:?}", self.name),
                    "more than zero, at most 400 days",
                ));
            }
            Ok(())
        };
        match self.kind {
            Kind::Sliding {
                capacity: units,
                window: span,
            } => {
                capacity("limit.capacity", units)?;
                window("limit.window", span)
            }
            Kind::Aligned {
                capacity: units,
                period,
                offset,
            } => {
                capacity("limit.capacity", units)?;
                window("limit.period", period)?;
                if offset >= period {
                    return Err(ConfigError::new(
                        "limit.offset",
                        format_args!("{offset:?} of {:?}", self.name),
                        "less than the period",
                    ));
                }
                Ok(())
            }
            Kind::TokenBucket { tokens, per, burst } => {
                capacity("limit.tokens", tokens)?;
                capacity("limit.burst", burst)?;
                window("limit.per", per)
            }
            Kind::Spacing { gap } => window("limit.gap", gap),
        }
    }
}
