//! The IETF `RateLimit` field (draft-ietf-httpapi-ratelimit-headers).
//!
//! `RateLimit: "burst";r=0;t=12, "daily";r=870;t=3600` says how much is left of each policy (`r`)
//! and in how many seconds that changes (`t`). Only a policy of which nothing is left asks for a
//! wait. `RateLimit-Policy` describes policies (`q`, `w`) but not their state, so it is no hint.

use std::time::Duration;

use sfv::{List, ListEntry, Parameters, Parser};

use super::search::Malformed;

/// Reads one field line: the longest wait among the policies of which nothing is left.
///
/// Each line is parsed on its own, so that a malformed one takes no other with it.
pub(super) fn parse(line: &[u8]) -> Result<Option<Duration>, Malformed> {
    let list: List = Parser::new(line).parse().map_err(|_| Malformed)?;
    let waits = list.iter().filter_map(|member| match member {
        ListEntry::Item(policy) => wait(&policy.params),
        ListEntry::InnerList(_) => None,
    });
    Ok(waits.max())
}

fn wait(policy: &Parameters) -> Option<Duration> {
    let remaining = policy.get("r")?.as_integer()?;
    let seconds = policy.get("t")?.as_integer()?;
    if i64::from(remaining) != 0 {
        return None;
    }
    let seconds = u64::try_from(i64::from(seconds)).ok()?;
    Some(Duration::from_secs(seconds))
}
