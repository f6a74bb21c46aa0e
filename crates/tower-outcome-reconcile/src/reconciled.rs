//! What came of asking.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Extensions, Response};
use tower_outcome_core::{BoxError, Reason, SettledBy};

use crate::shown::ShownResponse;

/// What came of asking about a call whose outcome was unknown.
///
/// It is in the extensions of the response and in the error with which the call ends: resolved or not,
/// the caller learns what was asked.
#[derive(Clone, Debug)]
pub struct Reconciled {
    pub(crate) how: Option<How>,
    pub(crate) reason: Reason,
    pub(crate) inquiries: u32,
    pub(crate) misses: u32,
    pub(crate) failures: u32,
    pub(crate) took: Duration,
    pub(crate) is_received: bool,
    pub(crate) last_error: Option<Arc<dyn Error + Send + Sync>>,
}

/// How it became known what had become of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum How {
    /// Asked, the server had done it.
    Found,
    /// Asked, the server had refused it.
    Refused,
    /// Asked, the server said of this operation that it has not done it and never will.
    Denied,
    /// Asked often and late enough, the server did not know it.
    Absent,
    /// Somebody told that the server had done it.
    ToldApplied,
    /// Somebody told that the server had refused it.
    ToldRejected,
    /// Somebody told that the server has not done it and never will.
    ToldNotApplied,
}

/// The cause of a [`Failure`](tower_outcome_core::Failure) that comes of asking; below it is the error that
/// the attempt had ended with.
///
/// Its `Debug` shows the status and the names of the headers of what it keeps, and no more: an answer may hold
/// a session, and a record what is nobody's business.
pub struct AfterInquiry {
    report: Reconciled,
    answer: Option<Response<()>>,
    record: Option<Response<Bytes>>,
    source: Option<BoxError>,
}

// === impl Reconciled ===

impl Reconciled {
    /// Nothing was asked yet.
    pub(crate) const fn new(reason: Reason) -> Self {
        Self {
            how: None,
            reason,
            inquiries: 0,
            misses: 0,
            failures: 0,
            took: Duration::ZERO,
            is_received: false,
            last_error: None,
        }
    }

    /// Returns the report in the extensions of a response.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Self>()
    }

    /// Finds the report in an error's chain of causes.
    #[must_use]
    pub fn in_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        AfterInquiry::of(error).map(AfterInquiry::report)
    }

    /// Finds the report of a call's result, in the response or in the error.
    #[must_use]
    pub fn in_result<B>(result: &Result<Response<B>, BoxError>) -> Option<&Self> {
        match result {
            Ok(response) => Self::of(response.extensions()),
            Err(error) => Self::in_error(&**error),
        }
    }

    /// Returns how it became known what had become of the call; `None` if it is still unknown.
    #[must_use]
    pub const fn how(&self) -> Option<How> {
        self.how
    }

    /// Returns why the outcome was unknown.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// Returns how often the server was asked.
    #[must_use]
    pub const fn inquiries(&self) -> u32 {
        self.inquiries
    }

    /// Returns how often it did not know the operation, the last times in a row.
    #[must_use]
    pub const fn misses(&self) -> u32 {
        self.misses
    }

    /// Returns how many inquiries failed.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns how long it took, from the end of the attempt.
    #[must_use]
    pub const fn took(&self) -> Duration {
        self.took
    }

    /// Returns whether the server is known to have received the request.
    #[must_use]
    pub const fn is_received(&self) -> bool {
        self.is_received
    }

    /// Returns the error of the last inquiry that failed.
    #[must_use]
    pub fn last_error(&self) -> Option<&(dyn Error + Send + Sync + 'static)> {
        self.last_error.as_deref()
    }
}

// === impl How ===

impl How {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Found => "found",
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::Absent => "absent",
            Self::ToldApplied => "told_applied",
            Self::ToldRejected => "told_rejected",
            Self::ToldNotApplied => "told_not_applied",
        }
    }

    pub(crate) const fn settled_by(self) -> SettledBy {
        match self {
            Self::Found | Self::Refused | Self::Denied | Self::Absent => SettledBy::Inquiry,
            Self::ToldApplied | Self::ToldRejected | Self::ToldNotApplied => SettledBy::Signal,
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

// === impl AfterInquiry ===

impl AfterInquiry {
    pub(crate) const fn new(report: Reconciled) -> Self {
        Self {
            report,
            answer: None,
            record: None,
            source: None,
        }
    }

    pub(crate) fn with_answer(mut self, answer: Response<()>) -> Self {
        self.answer = Some(answer);
        self
    }

    pub(crate) fn with_record(mut self, record: Option<Response<Bytes>>) -> Self {
        self.record = record;
        self
    }

    pub(crate) fn with_source(mut self, source: Option<BoxError>) -> Self {
        self.source = source;
        self
    }

    /// Finds it in an error's chain of causes.
    #[must_use]
    pub fn of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    /// Returns what came of asking.
    #[must_use]
    pub const fn report(&self) -> &Reconciled {
        &self.report
    }

    /// Returns the head of the answer that the attempt had ended with, if it was answered.
    #[must_use]
    pub const fn answer(&self) -> Option<&Response<()>> {
        self.answer.as_ref()
    }

    /// Returns the record of a request that the server has refused.
    #[must_use]
    pub const fn record(&self) -> Option<&Response<Bytes>> {
        self.record.as_ref()
    }
}

impl fmt::Display for AfterInquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        let what = match report.how {
            None => "still unknown",
            Some(How::Found | How::ToldApplied) => "applied",
            Some(How::Refused | How::ToldRejected) => "refused by the server",
            Some(How::Denied | How::ToldNotApplied) => "not applied",
            Some(How::Absent) => "not applied, since the server does not know it",
        };
        write!(f, "{what} after {} inquiries", report.inquiries)?;
        match &self.answer {
            Some(answer) => write!(f, ", answered with {} at first", answer.status()),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for AfterInquiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AfterInquiry")
            .field("report", &self.report)
            .field("answer", &self.answer.as_ref().map(ShownResponse))
            .field("record", &self.record.as_ref().map(ShownResponse))
            .field("source", &self.source)
            .finish()
    }
}

impl Error for AfterInquiry {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
