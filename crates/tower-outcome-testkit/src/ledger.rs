//! What a venue saw and did, request by request.

use std::sync::Arc;
use std::time::Duration;

use crate::Fault;
use crate::desk::Desk;

/// What a [`Venue`](crate::Venue) saw and did, in order of arrival. A cheap handle; clones share.
///
/// A request is written down before the first byte of its answer and before its connection is
/// killed, so a client that got an answer or an error can ask at once. A client that gave up by
/// itself, for example by a timeout, may be ahead of the venue: then wait with [`Ledger::settle`]
/// or [`Ledger::settled`] first.
///
/// The ledger stays readable when the venue is gone.
#[derive(Clone)]
pub struct Ledger {
    desk: Arc<Desk>,
}

/// One request, as the venue saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The header `x-operation-id`, the same on every attempt of one logical call.
    pub operation: Option<String>,
    /// The header `idempotency-key`.
    pub key: Option<String>,
    /// The header `x-client`.
    pub client: Option<String>,
    /// The method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// The number of the connection, from 0, in order of accept.
    pub connection: u64,
    /// When the head was read, since the venue started.
    pub at: Duration,
    /// How much of the request was read.
    pub received: Received,
    /// The bytes of the body that were read.
    pub body_length: u64,
    /// The FNV-1a hash, 64 bits, of the body that was read.
    pub body_hash: u64,
    /// Whether the venue acted on this request.
    pub applied: bool,
    /// Whether the venue took the stored answer of an earlier request with the same key instead
    /// of acting again.
    pub replayed: bool,
    /// The status of the answer, if the head of one was sent or was about to be.
    pub answered: Option<u16>,
    /// What went wrong on purpose.
    pub fault: Option<Fault>,
}

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
}

/// How much of a request was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "head, some of the body and all are complete"
)]
pub enum Received {
    /// The head.
    Head,
    /// The head and some of the body.
    Part,
    /// All of it.
    Complete,
}

// === impl Ledger ===

impl Ledger {
    /// The request header that names the logical call, the same on all its attempts.
    pub const OPERATION_HEADER: &'static str = "x-operation-id";

    /// The request header with the idempotency key.
    pub const KEY_HEADER: &'static str = "idempotency-key";

    /// The request header that names the client, for limits and bans.
    pub const CLIENT_HEADER: &'static str = "x-client";

    pub(crate) fn new(desk: Arc<Desk>) -> Self {
        Self { desk }
    }

    /// Returns a copy of every entry.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        self.desk.read(|book| book.entries.clone())
    }

    /// Returns a copy of the entries of one operation.
    #[must_use]
    pub fn of_operation(&self, operation: &str) -> Vec<Entry> {
        self.desk
            .read(|book| book.of_operation(operation).cloned().collect())
    }

    /// Returns a copy of the entries of one client (header `x-client`).
    #[must_use]
    pub fn of_client(&self, client: &str) -> Vec<Entry> {
        self.select(|entry| entry.client.as_deref() == Some(client))
    }

    /// Returns a copy of the entries that meet a condition, which must not ask the ledger itself.
    #[must_use]
    pub fn select(&self, mut condition: impl FnMut(&Entry) -> bool) -> Vec<Entry> {
        self.desk.read(|book| {
            book.entries
                .iter()
                .filter(|entry| condition(entry))
                .cloned()
                .collect()
        })
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.desk.read(|book| book.entries.len())
    }

    /// Returns whether no request was seen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many requests of one operation were seen.
    #[must_use]
    pub fn attempts(&self, operation: &str) -> usize {
        self.desk.read(|book| book.of_operation(operation).count())
    }

    /// Returns how often one operation was applied; more than once is a double submit.
    #[must_use]
    pub fn applied(&self, operation: &str) -> usize {
        self.desk.read(|book| {
            book.of_operation(operation)
                .filter(|entry| entry.applied)
                .count()
        })
    }

    /// Returns how many requests were applied.
    #[must_use]
    pub fn applied_total(&self) -> usize {
        self.count(|entry| entry.applied)
    }

    /// Returns how many operations were applied more than once.
    #[must_use]
    pub fn applied_twice(&self) -> usize {
        self.desk.read(|book| {
            book.operations()
                .filter(|operation| {
                    let applied = book.of_operation(operation).filter(|entry| entry.applied);
                    applied.count() > 1
                })
                .count()
        })
    }

    /// Returns how many requests were answered with this status.
    #[must_use]
    pub fn answered(&self, status: u16) -> usize {
        self.count(|entry| entry.answered == Some(status))
    }

    /// Returns how often a client (header `x-client`, or `None` for those without) was banned.
    #[must_use]
    pub fn bans(&self, client: Option<&str>) -> usize {
        self.desk.read(|book| book.gate.bans(client))
    }

    /// Returns how many connections were accepted.
    #[must_use]
    pub fn connections(&self) -> u64 {
        self.desk.read(|book| book.connections)
    }

    /// Returns how many connections are open.
    #[must_use]
    pub fn open_connections(&self) -> usize {
        self.desk.read(|book| book.open)
    }

    /// Forgets all entries and all stored answers of idempotency keys.
    ///
    /// Limits, bans and the numbers of connections and attempts go on. A request that is being
    /// served is forgotten too.
    pub fn clear(&self) {
        self.desk.clear();
    }

    /// Waits until the venue has read what was sent to it and has no request in progress.
    ///
    /// Returns whether that came to pass within `bound`. A stalled request is not in progress, since
    /// nothing more becomes of it. Blocks the thread: a client that lives on the same single-threaded
    /// runtime cannot make progress meanwhile, see [`Ledger::settled`].
    #[must_use]
    pub fn settle(&self, bound: Duration) -> bool {
        self.desk.settle(bound, false)
    }

    /// Waits, as [`Ledger::settle`], until moreover every connection is closed.
    ///
    /// The venue cannot see that the client of a stalled request has gone while more of the request
    /// than the socket's buffers hold is unread.
    #[must_use]
    pub fn closed(&self, bound: Duration) -> bool {
        self.desk.settle(bound, true)
    }

    /// Waits, without blocking and without a bound, for the same as [`Ledger::settle`].
    ///
    /// Works on any runtime. A tokio timeout around it under a paused clock fires at once.
    /// Nothing is left behind when it is dropped.
    pub async fn settled(&self) {
        self.desk.settled().await;
    }

    fn count(&self, mut condition: impl FnMut(&Entry) -> bool) -> usize {
        self.desk
            .read(|book| book.entries.iter().filter(|entry| condition(entry)).count())
    }
}

impl std::fmt::Debug for Ledger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ledger").field("len", &self.len()).finish()
    }
}

/// Where FNV-1a, 64 bits, starts: the hash of nothing.
pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Hashes by FNV-1a, 64 bits, as [`Entry::body_hash`] is.
#[must_use]
pub fn fnv1a(bytes: &[u8]) -> u64 {
    fnv1a_more(FNV_START, bytes)
}

/// Goes on hashing where an earlier part ended.
pub(crate) fn fnv1a_more(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
