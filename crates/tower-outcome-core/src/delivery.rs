//! How far a request got, and what a transport's error proves about it.
//!
//! # What is a proof
//!
//! Most errors of a client prove nothing: a connection that broke may have broken before the
//! request was written, while it was processed, or after it was applied. What does prove something
//! was found by experiment against servers that fail at every point, and is re-run as tests of this
//! project; everything else is [`Delivery::MaybeSent`].
//!
//! | evidence | proves | feature |
//! |---|---|---|
//! | hyper-util's legacy client failed before it had chosen a connection: DNS, TCP, TLS, handshake | `NotSent` | `hyper-util` |
//! | hyper handed the request back, or cancelled it before writing | `NotSent` | `hyper` |
//! | tonic could not connect | `NotSent` | `tonic` |
//! | the peer reset the stream with `REFUSED_STREAM` (RFC 9113, section 8.7) | `Refused` | `h2` |
//! | the peer said in a GOAWAY that the stream is above the last one it looked at (RFC 9113, section 6.8), and the request has a body ([`WitnessLayer`](crate::WitnessLayer)) | `Refused` | `h2` |
//! | `ConnectionRefused` or `AddrNotAvailable`, which only connecting can yield | `NotSent` | `io` |
//! | the connection accepted no byte since the attempt began ([`WitnessConnector`](crate::WitnessConnector)) | `NotSent` | `hyper-util` |
//! | the transport did not take the whole request body ([`WitnessLayer`](crate::WitnessLayer)) | `NotSent` | |
//!
//! A mismatch of major versions between this crate's and the program's hyper, h2 or tonic makes
//! errors unrecognisable, which costs proofs and never makes a false one.
//!
//! # What is not
//!
//! A GOAWAY for a request without a body, or where nobody knows whether there is one: hyper reports the
//! connection's GOAWAY for a request whose head another thread has just written, and which the peer
//! acted on before it sent that frame. About one call in 200,000 of `soak` meets this race. Nor does it
//! help that the connection has accepted no byte since the attempt began: the head may be written next.
//!
//! `is_incomplete_message`, `ConnectionReset`, `BrokenPipe`, `UnexpectedEof`, a stream reset with
//! any other code, `is_user` (hyper uses it for its own dead dispatcher too), gRPC `UNAVAILABLE`, and
//! any time-out. Of the requests that ended in hyper's "incomplete message" on a connection that had
//! been used, four in five had been processed.

use std::{error::Error, fmt};

use crate::{Answer, Attempt, BoxError, Failure, Reason, Repeatable, failure::chain};

#[cfg(feature = "h2")]
mod h2;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "hyper-util")]
mod hyper_util;
#[cfg(feature = "io")]
mod io;
#[cfg(feature = "tonic")]
mod tonic;

#[cfg(feature = "hyper")]
pub use self::hyper::handed_back;

/// How far a request got.
///
/// The variants are in order: each is further than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(
    clippy::exhaustive_enums,
    reason = "complete by definition, so that a new case cannot be taken for proof"
)]
pub enum Delivery {
    /// No complete request left this process.
    NotSent,
    /// The peer states that it did not act on the request.
    Refused,
    /// The request may have reached the server.
    MaybeSent,
    /// A response head came back.
    Answered,
}

/// What an error of the service future says about the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Proof {
    /// How far the request got.
    pub delivery: Delivery,
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What proves it; `None` where the delivery is no more than a possibility.
    pub by: Option<Witnessed>,
}

/// What proves that a request was not acted on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Witnessed {
    /// The body: the transport did not take it to its end.
    Body,
    /// The connection: it accepted no byte since the attempt began.
    Connection,
    /// The error itself.
    Error,
}

/// What kind of failure an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// Something between here and the server failed; it may work the next time.
    Transport,
    /// Time ran out.
    TimedOut,
    /// The request cannot be sent as it is.
    InvalidRequest,
    /// Nobody here knows errors of this type.
    Unrecognized,
}

/// What is known of an attempt besides its error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// The attempt's place in the order of events, for a connection that keeps its last write.
    #[cfg_attr(
        not(feature = "hyper-util"),
        expect(dead_code, reason = "read by one kind of connection only")
    )]
    pub(crate) started: Option<crate::witness::Tick>,
    /// Whether the request is known to have a body, so that its head alone is not all of it.
    #[cfg_attr(
        not(feature = "h2"),
        expect(dead_code, reason = "read by one kind of error only")
    )]
    pub(crate) has_body: bool,
    /// Whether the transport failed to take the whole request body, or never asked for it.
    pub(crate) incomplete: bool,
}

/// What one error of a chain says.
enum Clue {
    /// Nothing; the next cause may.
    Nothing,
    /// This is a known client's error: causes below it describe the connection, not the request.
    #[cfg_attr(
        not(any(feature = "hyper-util", feature = "tonic")),
        expect(dead_code, reason = "said by the evidence of some transports only")
    )]
    KnownClient,
    /// The same, and its connection accepted no byte since the attempt began.
    #[cfg_attr(
        not(feature = "hyper-util"),
        expect(dead_code, reason = "said by the evidence of some transports only")
    )]
    Unwritten,
    /// The answer; the walk is over.
    #[cfg_attr(
        not(feature = "io"),
        expect(dead_code, reason = "said by the evidence of some transports only")
    )]
    Proof(Delivery, FailureKind),
    /// A known client's innermost word on the request, and it proves nothing.
    NoProof(FailureKind),
    /// The same, and the request may still be on its way: what the connection has not accepted so far
    /// it may accept yet.
    #[cfg_attr(
        not(feature = "h2"),
        expect(dead_code, reason = "said by the evidence of some transports only")
    )]
    InDoubt(FailureKind),
}

// === impl Delivery ===

impl Delivery {
    /// Returns what an error of a service future proves.
    ///
    /// The error must not come from a response body: then a head has arrived, and the delivery is
    /// [`Answered`](Self::Answered).
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        Proof::of(error).delivery
    }

    /// Returns the further of two.
    #[must_use]
    pub const fn furthest(self, other: Self) -> Self {
        if (self as u8) < (other as u8) {
            other
        } else {
            self
        }
    }

    /// Returns whether it is proven that the server did not act on the request.
    #[must_use]
    pub const fn proves_not_applied(self) -> bool {
        matches!(self, Self::NotSent | Self::Refused)
    }

    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotSent => "not_sent",
            Self::Refused => "refused",
            Self::MaybeSent => "maybe_sent",
            Self::Answered => "answered",
        }
    }

    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::NotSent => "the request was not sent",
            Self::Refused => "the server refused the request without acting on it",
            Self::MaybeSent => "the request may have been sent",
            Self::Answered => "the server answered",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

// === impl Witnessed ===

impl Witnessed {
    /// Returns a stable lower-case label for spans and metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Body => "body",
            Self::Connection => "connection",
            Self::Error => "error",
        }
    }
}

// === impl Proof ===

impl Proof {
    /// Returns what an error of a service future says about the attempt.
    #[must_use]
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        Self::with(error, Evidence::default())
    }

    pub(crate) fn with(error: &(dyn Error + 'static), evidence: Evidence) -> Self {
        let proof = walk(error, evidence);
        if evidence.incomplete && proof.delivery > Delivery::Refused {
            // Whatever went wrong, the peer cannot hold a complete request.
            return Self {
                delivery: Delivery::NotSent,
                kind: match proof.kind {
                    FailureKind::Unrecognized => FailureKind::Transport,
                    kind => kind,
                },
                by: Some(Witnessed::Body),
            };
        }
        proof
    }

    /// Returns what the proof amounts to, in the words of an answer.
    #[must_use]
    pub const fn answer(self) -> Answer {
        let reason = match self.kind {
            FailureKind::Transport => Reason::Transport,
            FailureKind::TimedOut => Reason::TimedOut,
            FailureKind::InvalidRequest => Reason::InvalidRequest,
            FailureKind::Unrecognized => Reason::Unrecognized,
        };
        match (self.delivery, self.kind) {
            (Delivery::NotSent | Delivery::Refused, FailureKind::InvalidRequest) => {
                Answer::Rejected { reason }
            }
            (Delivery::NotSent | Delivery::Refused, _) => Answer::NotApplied {
                reason,
                after: None,
            },
            (Delivery::MaybeSent | Delivery::Answered, kind) => Answer::Unclear {
                reason,
                after: None,
                transient: matches!(kind, FailureKind::Transport | FailureKind::TimedOut),
            },
        }
    }
}

fn walk(error: &(dyn Error + 'static), evidence: Evidence) -> Proof {
    if let Some(failure) = Failure::of(error) {
        return Proof {
            delivery: failure.delivery(),
            kind: FailureKind::Transport,
            by: failure.proven_by(),
        };
    }
    let mut kind = FailureKind::Unrecognized;
    let mut known_client = false;
    let mut unwritten = false;
    for error in chain(error) {
        match clue(error, evidence, known_client) {
            Clue::Nothing => {}
            Clue::KnownClient => {
                known_client = true;
                kind = FailureKind::Transport;
            }
            Clue::Unwritten => {
                known_client = true;
                unwritten = true;
                kind = FailureKind::Transport;
            }
            Clue::Proof(delivery, kind) => {
                return Proof {
                    delivery,
                    kind,
                    by: Some(Witnessed::Error),
                };
            }
            Clue::NoProof(found) => {
                kind = found;
                break;
            }
            Clue::InDoubt(found) => {
                kind = found;
                unwritten = false;
                break;
            }
        }
    }
    if unwritten {
        Proof {
            delivery: Delivery::NotSent,
            kind,
            by: Some(Witnessed::Connection),
        }
    } else {
        Proof {
            delivery: Delivery::MaybeSent,
            kind,
            by: None,
        }
    }
}

/// Asks each transport in turn. The order does not matter: an error has one type.
fn clue(error: &(dyn Error + 'static), evidence: Evidence, known_client: bool) -> Clue {
    let _ = (evidence, known_client);
    #[cfg(feature = "hyper-util")]
    if let Some(clue) = hyper_util::clue(error, evidence) {
        return clue;
    }
    #[cfg(feature = "tonic")]
    if let Some(clue) = tonic::clue(error) {
        return clue;
    }
    #[cfg(feature = "hyper")]
    if let Some(clue) = hyper::clue(error, evidence) {
        return clue;
    }
    #[cfg(feature = "h2")]
    if let Some(clue) = h2::clue(error, known_client) {
        return clue;
    }
    #[cfg(feature = "io")]
    if let Some(clue) = io::clue(error, known_client) {
        return clue;
    }
    if error.is::<tokio::time::error::Elapsed>() {
        return Clue::NoProof(FailureKind::TimedOut);
    }
    Clue::Nothing
}

/// Wraps an error of the service future in a failure that says what is proven.
///
/// The outcome is that of a request that must not be repeated; a classifier above knows better.
pub(crate) fn failure(error: BoxError, evidence: Evidence) -> Failure {
    if let Some(below) = Failure::of(&*error) {
        // A layer below knows more of the call than what is wrapped around its failure.
        let (outcome, delivery, by) = (below.outcome(), below.delivery(), below.proven_by());
        return Failure::wrap(error, |_| (outcome, delivery)).with_proven_by(by);
    }
    let proof = Proof::with(&*error, evidence);
    let outcome = proof.answer().outcome(Repeatable::No, Attempt::FIRST);
    Failure::wrap(error, |_| (outcome, proof.delivery)).with_proven_by(proof.by)
}
