//! What the steps of a stack have to know of each other.

use std::time::Duration;

use tower_outcome_core::ConfigError;

/// What the steps of a stack have to know of each other.
///
/// A [`Step`](super::Step) notes here what is true of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts {
    call: Option<Duration>,
    attempt: Option<Duration>,
    connect: Option<Duration>,
    mandatory_window: Option<Duration>,
    longest_wait: Duration,
    guarded: bool,
    hands_down: bool,
    least_age: Option<Duration>,
}

impl Facts {
    /// Notes the bound of a whole call.
    pub const fn bound_call(&mut self, bound: Option<Duration>) {
        self.call = bound;
    }

    /// Notes the bound of one attempt.
    pub const fn bound_attempt(&mut self, bound: Option<Duration>) {
        self.attempt = bound;
    }

    /// Notes the bound of connecting.
    pub const fn bound_connect(&mut self, bound: Option<Duration>) {
        self.connect = bound;
    }

    /// Notes that credentials are put on, which are not sent without a refresh when their end is so near.
    pub const fn refresh_before_end(&mut self, window: Duration) {
        self.mandatory_window = Some(window);
    }

    /// Notes that a request may wait so long here, below the place where its credential was put on.
    pub const fn wait(&mut self, longest: Duration) {
        self.longest_wait = self.longest_wait.saturating_add(longest);
    }

    /// Notes that credentials are looked at again after all waits.
    pub const fn guard(&mut self) {
        self.guarded = true;
    }

    /// Notes that credentials are handed down to whoever looks at them again.
    pub const fn hand_down(&mut self) {
        self.hands_down = true;
    }

    /// Notes that "not found" proves nothing before the end of an attempt and so much more.
    pub const fn ask_until(&mut self, age: Duration) {
        self.least_age = Some(age);
    }

    pub(in crate::outbound) const fn connect(&self) -> Option<Duration> {
        self.connect
    }

    /// Checks what no layer can see alone.
    pub(in crate::outbound) fn check(&self, wrong: &mut Vec<(&'static str, ConfigError)>) {
        if let (Some(attempt), Some(call)) = (self.attempt, self.call) {
            if attempt > call {
                let error = ConfigError::new(
                    "attempt",
                    format_args!("{attempt:?} (call is {call:?})"),
                    "at most `call`",
                );
                wrong.push(("timeouts", error));
            }
        }
        if let (Some(age), Some(call)) = (self.least_age, self.call) {
            if age >= call {
                let error = ConfigError::new(
                    "min_age",
                    format_args!("{age:?} (call is {call:?})"),
                    "below `call`, or nothing could be found absent",
                );
                wrong.push(("reconcile", error));
            }
        }
        if self.guarded && self.mandatory_window.is_some() && !self.hands_down {
            let expected = "true, or the expiry_guard sees nothing";
            wrong.push((
                "auth_refresh",
                ConfigError::new("hands_down", false, expected),
            ));
        }
        if let Some(window) = self.mandatory_window {
            let wait = self.longest_wait;
            if !self.guarded && window < wait {
                let error = ConfigError::new(
                    "windows.mandatory",
                    format_args!("{window:?} (a request may wait for {wait:?} below it)"),
                    "at least as long as that wait, or an expiry_guard",
                );
                wrong.push(("auth_refresh", error));
            }
        }
    }
}
