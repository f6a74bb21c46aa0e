//! The IETF `RateLimit` fields (draft-ietf-httpapi-ratelimit-headers), present and past.
//!
//! `RateLimit-Policy: "burst";q=100;w=60` describes a policy: so much (`q`) in so many seconds
//! (`w`). `RateLimit: "burst";r=50;t=30` says how much is left of it (`r`) and in how many seconds
//! some comes back (`t`). Both are lists, which may be spread over lines, and each line is parsed
//! on its own, so that a malformed one takes no other with it.

use std::{
    cmp::Reverse,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName};
use sfv::{BareItem, Item, List, ListEntry, Parser, StringRef};
use tower_outcome_core::ConfigError;

use super::Reported;

mod unnamed;

/// The fields, read for one policy or for the one of which the least remains.
#[derive(Debug)]
pub(super) struct Ietf {
    policy: Option<String>,
}

/// A member of `RateLimit` that says something.
#[derive(Debug)]
struct State {
    policy: String,
    remaining: Option<u64>,
    reset: Option<Duration>,
}

/// A member of `RateLimit-Policy`.
#[derive(Debug)]
struct Policy {
    name: String,
    quota: Option<u64>,
    counts_requests: bool,
}

const STATE: HeaderName = HeaderName::from_static("ratelimit");

const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

// === impl Ietf ===

impl Ietf {
    pub(super) fn try_new(policy: Option<&str>) -> Result<Self, ConfigError> {
        let invalid = |name: &&str| name.is_empty() || StringRef::from_str(name).is_err();
        if let Some(name) = policy.filter(invalid) {
            let expected = "the name of a policy, in printable ASCII";
            return Err(ConfigError::new("policy", name, expected));
        }
        Ok(Self {
            policy: policy.map(str::to_owned),
        })
    }

    pub(super) fn read(&self, headers: &HeaderMap, now: SystemTime) -> Reported {
        let policies: Vec<_> = items(headers, &POLICY).filter_map(Policy::new).collect();
        let state = items(headers, &STATE)
            .filter_map(State::new)
            .filter(|state| self.selects(&state.policy, &policies))
            .min_by_key(|state| (state.remaining.unwrap_or(u64::MAX), Reverse(state.reset)));

        if let Some(state) = state {
            return Reported {
                remaining: state.remaining,
                reset: state.reset,
                limit: quota(&policies, &state.policy),
                used: None,
            };
        }
        if self.policy.is_none() {
            if let Some(reported) = unnamed::read(headers, now).said() {
                return reported;
            }
        }
        Reported {
            limit: self.only_quota(&policies),
            ..Reported::new()
        }
    }

    fn selects(&self, name: &str, policies: &[Policy]) -> bool {
        match &self.policy {
            Some(selected) => selected == name,
            None => policies
                .iter()
                .all(|policy| policy.name != name || policy.counts_requests),
        }
    }

    /// The quota, unless more than one policy is selected.
    fn only_quota(&self, policies: &[Policy]) -> Option<u64> {
        let mut names = policies
            .iter()
            .map(|policy| policy.name.as_str())
            .filter(|name| self.selects(name, policies));
        let name = names.next()?;
        let is_only = names.all(|other| other == name);
        is_only.then(|| quota(policies, name)).flatten()
    }
}

fn quota(policies: &[Policy], name: &str) -> Option<u64> {
    let policies = policies.iter().filter(|policy| policy.name == name);
    policies.filter_map(|policy| policy.quota).min()
}

// === impl State ===

impl State {
    fn new(item: Item) -> Option<Self> {
        let state = Self {
            remaining: parameter(&item, "r"),
            reset: parameter(&item, "t").map(Duration::from_secs),
            policy: name(item.bare_item)?,
        };
        (state.remaining.is_some() || state.reset.is_some()).then_some(state)
    }
}

// === impl Policy ===

impl Policy {
    fn new(item: Item) -> Option<Self> {
        let unit = item.params.get("qu");
        Some(Self {
            quota: parameter(&item, "q"),
            // Whatever else is counted, and be it malformed, it is not known to be requests.
            counts_requests: unit.is_none_or(|unit| text(unit) == Some("requests")),
            name: name(item.bare_item)?,
        })
    }
}

fn items(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = Item> {
    let lines = headers.get_all(name).iter();
    let lists = lines.filter_map(|line| Parser::new(line.as_bytes()).parse::<List>().ok());
    lists.flatten().filter_map(|member| match member {
        ListEntry::Item(item) => Some(item),
        ListEntry::InnerList(_) => None,
    })
}

fn parameter(item: &Item, key: &str) -> Option<u64> {
    natural(item.params.get(key)?)
}

fn natural(value: &BareItem) -> Option<u64> {
    u64::try_from(i64::from(value.as_integer()?)).ok()
}

/// The name of a policy. The draft wants a string, but tokens have been seen.
fn name(value: BareItem) -> Option<String> {
    text(&value).map(str::to_owned)
}

fn text(value: &BareItem) -> Option<&str> {
    match value {
        BareItem::String(string) => Some(string.as_str()),
        BareItem::Token(token) => Some(token.as_str()),
        _ => None,
    }
}
