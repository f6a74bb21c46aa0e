//! What a venue says of operations when it is asked.

use std::collections::HashMap;
use std::time::Duration;

use crate::{Answer, Request};

/// What a venue says of operations when it is asked for one by its id, as late as the copies that such
/// questions are answered from.
///
/// A `GET` of the path that begins like [`new`](Self::new) says and ends with an operation id (the header
/// [`Ledger::OPERATION_HEADER`](crate::Ledger::OPERATION_HEADER) of the request that was applied) is
/// answered and not applied: 200 with `{"id":"…","status":"applied","times":1}`, or 404. Limits, faults and
/// demands count for it as for any request.
///
/// ```
/// # use tower_outcome_testkit::{Index, Venue};
/// // Found at the third question after it was applied.
/// let venue = Venue::builder().index(Index::new("/operations/").misses(2)).start()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Index {
    path: String,
    misses: u32,
    lag: Duration,
}

/// What was applied, by operation.
#[derive(Debug, Default)]
pub(crate) struct Applied(HashMap<String, Record>);

#[derive(Debug)]
struct Record {
    times: u32,
    first: Duration,
    /// Questions since then.
    asked: u32,
}

// === impl Index ===

impl Index {
    /// Creates an index at that path, which knows everything at once.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            misses: 0,
            lag: Duration::ZERO,
        }
    }

    /// Has each operation not be found at the first so many questions after it was applied: a lag that
    /// does not depend on time.
    pub fn misses(mut self, times: u32) -> Self {
        self.misses = times;
        self
    }

    /// Has each operation not be found until so long after it was applied.
    pub fn lag(mut self, lag: Duration) -> Self {
        self.lag = lag;
        self
    }

    /// Answers a request if it is a question.
    pub(crate) fn answer(&self, request: &Request, applied: &mut Applied) -> Option<Answer> {
        if request.method != "GET" {
            return None;
        }
        let id = request.path.strip_prefix(&self.path)?;
        let id = id.split('?').next().unwrap_or(id);
        let Some(record) = applied.0.get_mut(id) else {
            return Some(Self::not_found());
        };
        record.asked = record.asked.saturating_add(1);
        let age = request.at.saturating_sub(record.first);
        if record.asked <= self.misses || age < self.lag {
            return Some(Self::not_found());
        }
        let times = record.times;
        let body = format!(r#"{{"id":"{id}","status":"applied","times":{times}}}"#);
        Some(Answer::json(200, body))
    }

    fn not_found() -> Answer {
        Answer::json(404, r#"{"error":"no such operation"}"#)
    }
}

// === impl Applied ===

impl Applied {
    pub(crate) fn note(&mut self, operation: &str, at: Duration) {
        let record = self.0.entry(operation.to_owned()).or_insert(Record {
            times: 0,
            first: at,
            asked: 0,
        });
        record.times = record.times.saturating_add(1);
    }

    pub(crate) fn has(&self, operation: &str) -> bool {
        self.0.contains_key(operation)
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
