//! The notations of older drafts, in which a policy has no name.
//!
//! Draft 7 has one dictionary, `RateLimit: limit=100, remaining=50, reset=30`. The drafts before it
//! have `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`. All resets are seconds from
//! now.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName};
use sfv::{Dictionary, ListEntry, Parser};
use tower_outcome_core::ResetUnit;

use super::{STATE, natural};
use crate::usage::{
    Reported,
    number::{self, Number},
    reset,
};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");

const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");

const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

pub(super) fn read(headers: &HeaderMap, now: SystemTime) -> Reported {
    dictionary(headers).or(triplet(headers, now))
}

/// A list of named policies holds none of the keys, so the two cannot be mistaken for each other.
fn dictionary(headers: &HeaderMap) -> Reported {
    let lines = headers.get_all(STATE).iter();
    let lines: Vec<Dictionary> = lines
        .filter_map(|line| Parser::new(line.as_bytes()).parse().ok())
        .collect();
    let values = |key| lines.iter().filter_map(move |line| integer(line, key));
    Reported {
        used: None,
        remaining: values("remaining").min(),
        limit: values("limit").min(),
        reset: values("reset").max().map(Duration::from_secs),
    }
}

fn triplet(headers: &HeaderMap, now: SystemTime) -> Reported {
    Reported {
        used: None,
        remaining: number::least(headers, &REMAINING),
        limit: limit(headers),
        reset: reset::read(headers, &RESET, ResetUnit::DeltaSeconds, now),
    }
}

/// The limit, after which early drafts list policies: `RateLimit-Limit: 10, 10;w=1, 50;w=60`.
fn limit(headers: &HeaderMap) -> Option<u64> {
    let lines = headers.get_all(LIMIT).iter();
    let limits = lines.filter_map(|line| {
        let mut parts = line.as_bytes().split(|byte| matches!(byte, b',' | b';'));
        Number::parse(parts.next()?)
    });
    limits.map(Number::down).min()
}

fn integer(line: &Dictionary, key: &str) -> Option<u64> {
    match line.get(key)? {
        ListEntry::Item(item) => natural(&item.bare_item),
        ListEntry::InnerList(_) => None,
    }
}
