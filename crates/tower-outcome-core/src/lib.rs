#![doc = include_str!("../README.md")]

mod answer;
mod attempt;
mod broken_body;
mod carried;
mod classify;
mod clock;
mod config;
mod context;
mod deadline;
pub mod delivery;
mod failure;
mod few;
#[cfg(feature = "tonic")]
mod grpc_status;
mod origin;
mod outcome;
pub mod peek;
mod priority;
mod random;
mod reason;
mod repeatable;
pub mod replay;
mod report;
mod resent;
mod retry_after;
mod settled;
mod stage;
mod valid_until;
pub mod witness;

#[cfg(feature = "tonic")]
pub use self::grpc_status::{GrpcStatus, GrpcStatusBody, GrpcStatusFuture, GrpcStatusLayer};
#[cfg(feature = "hyper-util")]
pub use self::witness::{WitnessConnector, WitnessIo};
pub use self::{
    answer::Answer,
    attempt::Attempt,
    broken_body::BrokenBody,
    classify::{
        BodyRule, BodySeen, Classify, Decision, GrpcCall, GrpcClassifier, GrpcClassifierBuilder,
        HeadRule, HttpCall, HttpClassifier, HttpClassifierBuilder, Judged, RepeatableMethods,
        Verdict,
    },
    clock::{Clock, ManualClock, SystemClock},
    config::ConfigError,
    context::{CallContext, GivenUp, Hold, Phase},
    deadline::Deadline,
    delivery::{Delivery, FailureKind, Proof, Witnessed},
    failure::{BoxError, Failure},
    origin::Origin,
    outcome::Outcome,
    priority::Priority,
    random::{Random, SplitMix64},
    reason::Reason,
    repeatable::{Repeatable, RepeatableBecause},
    replay::{Replay, ReplayBody, ReplayLayer},
    report::{CallReport, NotReady, NotRetried},
    resent::Resent,
    retry_after::{
        Hint, HintDialects, HintForm, Pushback, RejectedHint, ResetUnit, RetryAfter, parse_pushback,
    },
    settled::{SettledBy, Settling},
    stage::{Stage, StageStamp, Stamped, WrongOrder},
    valid_until::ValidUntil,
    witness::{
        AttemptWitness, BodyTaken, BodyWitness, RequestBodyError, WitnessBody, WitnessLayer,
    },
};
