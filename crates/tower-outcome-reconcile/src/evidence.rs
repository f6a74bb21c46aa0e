//! What answers prove, taken together.

use bytes::Bytes;
use http::Response;
use tokio::time::Instant;

use crate::{Finding, Resolution, reconciled::How};

/// What has been learnt about one request.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// From when on a miss can mean something.
    pub(crate) absent_from: Instant,
    /// From when on a miss means nothing again: the server may have forgotten.
    pub(crate) forgotten_from: Option<Instant>,
    /// How many misses it takes.
    pub(crate) needed: u32,
    /// Misses in a row.
    pub(crate) misses: u32,
    /// Whether the server is known to have received it: then a miss is a lag.
    pub(crate) is_received: bool,
}

/// What is known now.
#[derive(Debug)]
pub(crate) enum Known {
    Applied(How, Response<Bytes>),
    Rejected(How, Response<Bytes>),
    NotApplied(How),
}

// === impl Evidence ===

impl Evidence {
    /// Weighs the answer to an inquiry that was begun at that instant.
    pub(crate) fn weigh(&mut self, finding: Finding, asked: Instant) -> Option<Known> {
        match finding {
            Finding::Applied(response) => Some(Known::Applied(How::Found, response)),
            Finding::Rejected(response) => Some(Known::Rejected(How::Refused, response)),
            Finding::NotApplied => Some(Known::NotApplied(How::Denied)),
            Finding::Pending => {
                self.is_received = true;
                self.misses = 0;
                None
            }
            Finding::Unclear => None,
            Finding::NotFound => {
                self.misses = self.misses.saturating_add(1);
                self.is_absent(asked)
                    .then_some(Known::NotApplied(How::Absent))
            }
        }
    }

    fn is_absent(&self, asked: Instant) -> bool {
        !self.is_received
            && self.misses >= self.needed
            && asked >= self.absent_from
            && self.forgotten_from.is_none_or(|end| asked < end)
    }
}

// === impl Known ===

impl Known {
    pub(crate) const fn how(&self) -> How {
        match self {
            Self::Applied(how, _) | Self::Rejected(how, _) | Self::NotApplied(how) => *how,
        }
    }
}

impl From<Resolution> for Known {
    fn from(resolution: Resolution) -> Self {
        match resolution {
            Resolution::Applied(response) => Self::Applied(How::ToldApplied, response),
            Resolution::Rejected(response) => Self::Rejected(How::ToldRejected, response),
            Resolution::NotApplied => Self::NotApplied(How::ToldNotApplied),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn evidence() -> (Evidence, Instant) {
        let now = Instant::now();
        let evidence = Evidence {
            absent_from: now + 10 * SECOND,
            forgotten_from: Some(now + 100 * SECOND),
            needed: 3,
            misses: 0,
            is_received: false,
        };
        (evidence, now)
    }

    #[test]
    fn what_says_nothing_changes_nothing() {
        let (mut evidence, now) = evidence();
        assert!(!misses(&mut evidence, now + 20 * SECOND, 2));
        assert!(evidence.weigh(Finding::Unclear, now).is_none());
        assert!(misses(&mut evidence, now + 20 * SECOND, 1));
    }

    fn misses(evidence: &mut Evidence, at: Instant, times: u32) -> bool {
        let weighed = (0..times).map(|_| evidence.weigh(Finding::NotFound, at));
        weighed.last().flatten().is_some()
    }

    #[test]
    fn many_misses_that_come_too_early_prove_nothing() {
        let (mut evidence, now) = evidence();
        assert!(!misses(&mut evidence, now + 9 * SECOND, 50));
        assert!(misses(&mut evidence, now + 10 * SECOND, 1));
    }

    #[test]
    fn few_misses_that_come_late_prove_nothing() {
        let (mut evidence, now) = evidence();
        assert!(!misses(&mut evidence, now + 20 * SECOND, 2));
        assert!(misses(&mut evidence, now + 20 * SECOND, 1));
    }

    #[test]
    fn misses_prove_nothing_once_the_server_may_have_forgotten() {
        let (mut evidence, now) = evidence();
        assert!(!misses(&mut evidence, now + 100 * SECOND, 50));
    }

    #[test]
    fn what_the_server_once_knew_is_never_absent() {
        let (mut evidence, now) = evidence();
        assert!(evidence.weigh(Finding::Pending, now).is_none());
        assert!(!misses(&mut evidence, now + 20 * SECOND, 50));
    }
}
