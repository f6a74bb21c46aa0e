//! What a model checker needs to be the clock and the runtime of a budget; see `tests/model.rs`.

use std::{sync::atomic::Ordering, task::Waker};

use crate::{Budget, driver};

impl Budget {
    /// Lets time pass: sets the nanoseconds since the budget was built, which never become fewer.
    #[doc(hidden)]
    pub fn model_clock(&self, nanosecond: u64) {
        self.shared().clock.fetch_max(nanosecond, Ordering::Relaxed);
    }

    /// Polls the driver. Returns the nanosecond at which it would look again if it is not woken.
    #[doc(hidden)]
    #[must_use]
    pub fn model_drive(&self, waker: Waker) -> Option<u64> {
        driver::attend(self.shared(), None, waker)
    }
}
