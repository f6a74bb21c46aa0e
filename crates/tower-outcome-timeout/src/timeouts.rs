//! All bounds of a stack in one value, checked against each other.

use std::time::Duration;

use tower_outcome_core::ConfigError;

/// All bounds of a stack, checked against each other.
///
/// The layers of this crate are made from it. [`Timeouts::new`] has the defaults:
///
/// | bound | default | why |
/// |---|---|---|
/// | [`call`](TimeoutsBuilder::call) | 30 s | three attempts and their backoff; nobody waits longer for an answer |
/// | [`attempt`](TimeoutsBuilder::attempt) | 10 s | a third of the call, so that three attempts fit; far above what an API takes that is going to answer |
/// | [`connect`](TimeoutsBuilder::connect) | 3.1 s | a lost SYN is sent again after 1 s and after 3 s; a handshake that takes three tries is dead |
/// | [`read_idle`](TimeoutsBuilder::read_idle) | 20 s | longer than the pauses of a stream that lives, shorter than the call |
/// | [`acquire`](TimeoutsBuilder::acquire) | 5 s | who queues longer than half an attempt meets an overload, and more load is no cure |
/// | [`head`](TimeoutsBuilder::head) | none | `attempt` bounds it; shorter only where the API is known to be fast |
/// | [`write_idle`](TimeoutsBuilder::write_idle) | none | `attempt` bounds it; for uploads, which switch `attempt` off |
///
/// A default that is not changed gives way to a shorter bound above it: with a `call` of 5 s an
/// attempt has 5 s too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    pub(crate) call: Option<Duration>,
    pub(crate) attempt: Option<Duration>,
    pub(crate) connect: Option<Duration>,
    pub(crate) head: Option<Duration>,
    pub(crate) write_idle: Option<Duration>,
    pub(crate) read_idle: Option<Duration>,
    pub(crate) acquire: Option<Duration>,
    pub(crate) grpc_timeout: bool,
}

/// Builds [`Timeouts`]; start with [`Timeouts::builder`].
///
/// Each bound takes a duration, or `None` to go without.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct TimeoutsBuilder {
    call: Setting,
    attempt: Setting,
    connect: Setting,
    head: Setting,
    write_idle: Setting,
    read_idle: Setting,
    acquire: Setting,
    grpc_timeout: bool,
}

/// What a caller made of a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Nothing: the default, or what the layer has.
    #[default]
    Unset,
    Off,
    Set(Duration),
}

// === impl Timeouts ===

impl Timeouts {
    /// Creates the defaults.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            call: Some(Duration::from_secs(30)),
            attempt: Some(Duration::from_secs(10)),
            connect: Some(Duration::from_millis(3_100)),
            head: None,
            write_idle: None,
            read_idle: Some(Duration::from_secs(20)),
            acquire: Some(Duration::from_secs(5)),
            grpc_timeout: false,
        }
    }

    /// Starts with the defaults, to change some.
    pub fn builder() -> TimeoutsBuilder {
        TimeoutsBuilder::default()
    }

    /// Returns the bound of a whole call.
    #[must_use]
    pub const fn call(&self) -> Option<Duration> {
        self.call
    }

    /// Returns the bound of one attempt.
    #[must_use]
    pub const fn attempt(&self) -> Option<Duration> {
        self.attempt
    }

    /// Returns the bound of connecting.
    #[must_use]
    pub const fn connect(&self) -> Option<Duration> {
        self.connect
    }

    /// Returns the bound of the wait for a response head.
    #[must_use]
    pub const fn head(&self) -> Option<Duration> {
        self.head
    }

    /// Returns the bound of a pause of the transport in taking the request body.
    #[must_use]
    pub const fn write_idle(&self) -> Option<Duration> {
        self.write_idle
    }

    /// Returns the bound of a pause in the response body.
    #[must_use]
    pub const fn read_idle(&self) -> Option<Duration> {
        self.read_idle
    }

    /// Returns the bound of the wait for a slot among the requests in flight.
    #[must_use]
    pub const fn acquire(&self) -> Option<Duration> {
        self.acquire
    }

    /// Returns whether the deadline is sent as `grpc-timeout`.
    #[must_use]
    pub const fn grpc_timeout(&self) -> bool {
        self.grpc_timeout
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self::new()
    }
}

// === impl TimeoutsBuilder ===

impl TimeoutsBuilder {
    /// Bounds a whole call, response body included, where its caller sets no
    /// [`Deadline`](tower_outcome_core::Deadline): by default 30 s.
    pub fn call(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.call = Setting::of(bound);
        self
    }

    /// Bounds one attempt up to its response head: by default 10 s.
    pub fn attempt(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.attempt = Setting::of(bound);
        self
    }

    /// Bounds connecting, with DNS, TCP and TLS, all addresses together: by default 3.1 s.
    pub fn connect(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.connect = Setting::of(bound);
        self
    }

    /// Bounds the time from when the transport has taken the whole request to the response head: by
    /// default none.
    pub fn head(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.head = Setting::of(bound);
        self
    }

    /// Bounds the time for which the transport takes nothing of a request body that is there: by
    /// default none. A body that its source keeps waiting does not count.
    pub fn write_idle(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.write_idle = Setting::of(bound);
        self
    }

    /// Bounds the time for which nothing of the response body comes while somebody reads it: by
    /// default 20 s.
    pub fn read_idle(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.read_idle = Setting::of(bound);
        self
    }

    /// Bounds the wait for a slot among the requests in flight: by default 5 s.
    pub fn acquire(mut self, bound: impl Into<Option<Duration>>) -> Self {
        self.acquire = Setting::of(bound);
        self
    }

    /// Sends what is left of the call's deadline as `grpc-timeout`, so that the server stops when
    /// nobody waits any more: by default off, since only gRPC has that header.
    ///
    /// [`TimeoutLayer`](crate::TimeoutLayer) writes it anew for each attempt, rounded down to a unit
    /// that has room in gRPC's eight digits. [`DeadlineLayer`](crate::DeadlineLayer) takes the
    /// `grpc-timeout` that a request brings, as tonic's `Request::set_timeout` writes it, for a
    /// [`Deadline`](tower_outcome_core::Deadline) that the caller has set; of both the earlier counts.
    /// Without a deadline nothing is written. The bound `attempt` is not sent: it ends with the
    /// response head, and a server would end a stream by it.
    ///
    /// tonic's channel keeps an eye on that header too, and gives a call up by itself when the head is
    /// missing then. Above a [`WitnessLayer`](tower_outcome_core::WitnessLayer) that failure is
    /// [`Elapsed`](crate::Elapsed) all the same.
    pub fn grpc_timeout(mut self, on: bool) -> Self {
        self.grpc_timeout = on;
        self
    }

    /// Checks the bounds.
    ///
    /// # Errors
    ///
    /// If a bound is zero, or above one that contains it, since it could never strike: `connect`,
    /// `head` and `write_idle` are within `attempt`, and all are within `call`.
    pub fn build(self) -> Result<Timeouts, ConfigError> {
        let defaults = Timeouts::new();
        let call = self.call.or("call", defaults.call, None)?;
        let attempt = self.attempt.or("attempt", defaults.attempt, call)?;
        let within = attempt.or(call);
        let timeouts = Timeouts {
            call,
            attempt,
            connect: self.connect.or("connect", defaults.connect, within)?,
            head: self.head.or("head", defaults.head, attempt)?,
            write_idle: self
                .write_idle
                .or("write_idle", defaults.write_idle, attempt)?,
            read_idle: self.read_idle.or("read_idle", defaults.read_idle, call)?,
            acquire: self.acquire.or("acquire", defaults.acquire, call)?,
            grpc_timeout: self.grpc_timeout,
        };
        above("attempt", attempt, "call", call)?;
        above("connect", timeouts.connect, "attempt", attempt)?;
        above("connect", timeouts.connect, "call", call)?;
        above("head", timeouts.head, "attempt", attempt)?;
        above("write_idle", timeouts.write_idle, "attempt", attempt)?;
        above("head", timeouts.head, "call", call)?;
        above("write_idle", timeouts.write_idle, "call", call)?;
        above("read_idle", timeouts.read_idle, "call", call)?;
        above("acquire", timeouts.acquire, "call", call)?;
        Ok(timeouts)
    }
}

// === impl Setting ===

impl Setting {
    pub(crate) fn of(bound: impl Into<Option<Duration>>) -> Self {
        bound.into().map_or(Self::Off, Self::Set)
    }

    /// Returns what was set, or the default where it is not above `within`.
    fn or(
        self,
        field: &'static str,
        default: Option<Duration>,
        within: Option<Duration>,
    ) -> Result<Option<Duration>, ConfigError> {
        self.check(field)?;
        Ok(match self {
            Self::Set(bound) => Some(bound),
            Self::Off => None,
            Self::Unset => match (default, within) {
                (Some(default), Some(within)) => Some(default.min(within)),
                _ => default,
            },
        })
    }

    pub(crate) fn check(self, field: &'static str) -> Result<(), ConfigError> {
        match self {
            Self::Set(Duration::ZERO) => Err(ConfigError::new(
                field,
                Duration::ZERO,
                "more than zero; None switches the bound off",
            )),
            Self::Set(_) | Self::Off | Self::Unset => Ok(()),
        }
    }

    pub(crate) const fn over(self, below: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Set(bound) => Some(bound),
            Self::Off => None,
            Self::Unset => below,
        }
    }
}

/// Refuses a bound that is above the one that contains it.
pub(crate) fn above(
    field: &'static str,
    bound: Option<Duration>,
    containing: &'static str,
    limit: Option<Duration>,
) -> Result<(), ConfigError> {
    match (bound, limit) {
        (Some(bound), Some(limit)) if bound > limit => {
            let expected = match containing {
                "call" => "at most `call`",
                _ => "at most `attempt`",
            };
            Err(ConfigError::new(
                field,
                format_args!("{bound:?} ({containing} is {limit:?})"),
                expected,
            ))
        }
        _ => Ok(()),
    }
}
