//! How far one attempt got, for whoever has to tell after it failed or was given up.

use http::{HeaderMap, Method, Version, header, request};
use http_body::Body;

use super::{BodyTaken, BodyWitness, LastWords, RequestBodyError, Tick, WitnessBody};
use crate::{
    Answer, Attempt, BoxError, Delivery, Failure, Outcome, Phase, Reason, Repeatable, Witnessed,
    delivery::{self, Evidence, Proof},
};

/// Knows how far one attempt got. Clones share what they know.
///
/// It is made together with the body that the transport gets, before the request is handed down.
#[derive(Clone, Debug)]
pub struct AttemptWitness {
    started: Tick,
    body: Option<BodyWitness>,
    acts_on: ActsOn,
}

/// How much of a request the server needs before it acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ActsOn {
    /// All of it.
    Whole,
    /// A message: the head alone is not enough.
    Message,
    /// Anything: the head alone may be enough.
    Part,
}

/// What the headers of a request say of its body, read in one walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Announced {
    /// The declared length: `Some(None)` if it cannot be read.
    pub(super) length: Option<Option<u64>>,
    upgrade: bool,
    grpc: bool,
}

// === impl AttemptWitness ===

impl AttemptWitness {
    /// Wraps the body of a request with this head, and returns the witness of its attempt.
    ///
    /// `acts_on_parts` declares that the server may act before all of the request has arrived; see
    /// [`WitnessLayer::acts_on_parts`](crate::WitnessLayer::acts_on_parts).
    #[inline]
    pub fn new<B: Body>(
        head: &request::Parts,
        body: B,
        acts_on_parts: bool,
    ) -> (WitnessBody<B>, Self) {
        let announced = Announced::of(&head.headers);
        let acts_on = if acts_on_parts {
            ActsOn::Part
        } else {
            ActsOn::of(&head.method, announced)
        };
        let (body, witness) = WitnessBody::announced(body, &head.method, head.version, announced);
        // NOTE: before the request is handed down; see `Tick::next`.
        let started = Tick::next();
        let witness = Self {
            started,
            body: witness,
            acts_on,
        };
        (body, witness)
    }

    /// Returns the witness of the request body, unless the request may be complete without one.
    #[must_use]
    pub const fn body(&self) -> Option<&BodyWitness> {
        self.body.as_ref()
    }

    /// Returns where the attempt stands until a response head is here.
    ///
    /// A request whose body nobody watches counts as taken: it may be.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.body.as_ref().map(BodyWitness::taken) {
            Some(BodyTaken::Nothing) => Phase::Connecting,
            Some(BodyTaken::Part | BodyTaken::Failed) => Phase::Sending,
            Some(BodyTaken::Whole) | None => Phase::AwaitingHead,
        }
    }

    /// Returns what is proven of an attempt that is given up, and lets the transport take nothing
    /// more of its body.
    ///
    /// `NotSent` if the transport did not take the whole body, else `MaybeSent`. It stays true: what
    /// was not whole never will be.
    #[must_use]
    pub fn give_up(&self) -> Delivery {
        if self.incomplete(self.seal()) {
            Delivery::NotSent
        } else {
            Delivery::MaybeSent
        }
    }

    /// What it says when the attempt is dropped half-way.
    pub(super) fn last_words(&self) -> LastWords {
        let phase = self.phase();
        let delivery = self.give_up();
        LastWords {
            delivery,
            phase,
            by: (delivery == Delivery::NotSent).then_some(Witnessed::Body),
        }
    }

    /// Returns what the transport's error and the witnesses prove together.
    pub(super) fn failed(&self, error: BoxError) -> Failure {
        let taken = self.seal();
        let evidence = Evidence {
            started: Some(self.started),
            has_body: self.body.is_some() && self.acts_on != ActsOn::Part,
            incomplete: self.incomplete(taken),
        };
        match (taken, &self.body) {
            (BodyTaken::Failed, Some(body)) => {
                let Proof { delivery, by, .. } = Proof::with(&*error, evidence);
                let answer = if delivery.proves_not_applied() {
                    Answer::Rejected {
                        reason: Reason::RequestBody,
                    }
                } else {
                    Answer::Unclear {
                        reason: Reason::RequestBody,
                        after: None,
                        transient: false,
                    }
                };
                let outcome: Outcome = answer.outcome(Repeatable::No, Attempt::FIRST);
                let error = RequestBodyError::new(body.take_error(), error);
                Failure::new(outcome, delivery, error).with_proven_by(by)
            }
            _ => delivery::failure(error, evidence),
        }
    }

    /// Sealed, because a transport that has given up on the response may still be at work on the
    /// request.
    fn seal(&self) -> BodyTaken {
        self.body
            .as_ref()
            .map_or(BodyTaken::Whole, BodyWitness::seal)
    }

    fn incomplete(&self, taken: BodyTaken) -> bool {
        match taken {
            BodyTaken::Nothing => self.acts_on != ActsOn::Part,
            BodyTaken::Part | BodyTaken::Failed => self.acts_on == ActsOn::Whole,
            BodyTaken::Whole => false,
        }
    }
}

// === impl ActsOn ===

impl ActsOn {
    /// What the head of a request says of it.
    fn of(method: &Method, announced: Announced) -> Self {
        if announced.upgrade || *method == Method::CONNECT {
            Self::Part
        } else if announced.grpc {
            Self::Message
        } else {
            Self::Whole
        }
    }
}

// === impl Announced ===

impl Announced {
    /// Compares names one by one: for the few headers of a request, one walk costs less than the
    /// hashes of three names.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut announced = Self::default();
        let mut types = 0;
        for (name, value) in headers {
            if *name == header::CONTENT_TYPE {
                // The first of several counts, as everywhere.
                announced.grpc |= types == 0 && is_grpc(value.as_bytes());
                types += 1;
            } else if *name == header::CONTENT_LENGTH {
                // A length that is said twice cannot be read.
                let single = announced.length.is_none();
                let value = value.to_str().ok().filter(|_| single);
                announced.length = Some(value.and_then(|value| value.parse().ok()));
            } else if *name == header::UPGRADE {
                announced.upgrade = true;
            }
        }
        announced
    }

    /// Whether a request may be complete without its body, whose length is this if it is known: of
    /// unknown length where HTTP/1 has no framing for it, or of a declared one that cannot be read.
    pub(super) fn may_be_left_out(
        self,
        length: Option<u64>,
        method: &Method,
        version: Version,
    ) -> bool {
        // Whatever is made of a length that cannot be read here, it is not known here.
        self.length == Some(None)
            || length.is_none()
                && (matches!(*method, Method::GET | Method::HEAD | Method::CONNECT)
                    || version < Version::HTTP_11)
    }
}

fn is_grpc(value: &[u8]) -> bool {
    value
        .get(..16)
        .is_some_and(|start| start.eq_ignore_ascii_case(b"application/grpc"))
}
