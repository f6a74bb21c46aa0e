//! Two witnesses of how far a request got, for the failures whose error alone proves nothing.
//!
//! [`WitnessLayer`] sits directly above the client and watches how much of the request body the
//! transport takes: a peer cannot hold a complete request whose body was not taken to its end.
//! [`WitnessConnector`] wraps hyper-util's connector and remembers when each connection last
//! accepted a byte: if that was before the attempt began, nothing of the attempt was written.

mod attempt;
mod body;
#[cfg(feature = "hyper-util")]
mod connector;
mod last_words;
mod layer;
mod tick;

#[cfg(feature = "hyper-util")]
pub use self::connector::{ConnectFuture, WitnessConnector, WitnessIo};
#[cfg(feature = "hyper-util")]
pub(crate) use self::tick::LastWrite;
pub(crate) use self::tick::Tick;
pub use self::{
    attempt::AttemptWitness,
    body::{BodyTaken, BodyWitness, RequestBodyError, WitnessBody},
    last_words::{LastWords, give_up},
    layer::{ResponseFuture, Witness, WitnessLayer},
};
