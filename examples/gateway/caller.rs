//! What a caller may ask for.

use std::time::Duration;

use http::{HeaderMap, HeaderName, StatusCode};
use tower_outcome::{Deadline, Priority};

use super::{problem::Problem, span, upstream::Upstream};

/// The headers by which a caller asks.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// How long the caller waits: `x-request-timeout`, if the file says nothing else.
    pub(crate) timeout: HeaderName,
    /// Whether it is urgent: `x-priority`.
    pub(crate) priority: HeaderName,
}

/// What a caller asks for, within what it may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub(crate) deadline: Deadline,
    pub(crate) priority: Option<Priority>,
}

/// Reads what a caller asks for, and takes it off the request: it is for this gateway alone.
///
/// | header | value | otherwise |
/// |---|---|---|
/// | `x-request-timeout` | 1 to 8 digits and `ms`, `s`, `m` or `h`: `1500ms`, `10s` | anything else, or two of them, is a 400 and nothing is sent; none means the bound of the upstream, which is also the longest that anybody gets |
/// | `x-priority` | a value that the file lists | whatever is not listed gets the class `otherwise`: nobody gets ahead by making something up |
pub(crate) fn read(
    headers: &mut HeaderMap,
    names: &Names,
    upstream: &Upstream,
) -> Result<Wishes, Problem> {
    let asked = timeout(headers, &names.timeout)?;
    let longest = upstream.longest;
    let deadline = Deadline::after(asked.map_or(longest, |asked| asked.min(longest)));
    let priority = upstream.priorities.as_ref().map(|priorities| {
        let asked = headers.get(&names.priority);
        priorities.of(asked.and_then(|value| value.to_str().ok()))
    });
    headers.remove(&names.timeout);
    headers.remove(&names.priority);
    Ok(Wishes { deadline, priority })
}

fn timeout(headers: &HeaderMap, name: &HeaderName) -> Result<Option<Duration>, Problem> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let span = value.to_str().ok().and_then(span::parse);
    match (span, values.next()) {
        (Some(span), None) => Ok(Some(span)),
        _ => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad-request",
            "The request cannot be understood",
        )
        .with("detail", format!("{name} has to be {}", span::FORM))),
    }
}
