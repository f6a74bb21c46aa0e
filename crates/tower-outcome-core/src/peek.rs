//! Reads the start of a body, within a bound, and hands the body on as if nobody had looked.
//!
//! A classifier may need the answer's body to tell an applied request from a rejected one. The
//! caller still gets the whole of it: [`Peek`] reads into a [`PeekBody`], which yields the frames
//! that were read, with their boundaries, trailers and error, and then the rest of the body.
//!
//! # Cancellation
//!
//! A `Peek` that is given up half-way still holds all it has read: [`Peek::into_body`] loses
//! nothing at any point.

use std::sync::Arc;

use crate::BoxError;

mod body;
mod cut_short;
mod inspect;
mod read;

pub use body::PeekBody;
pub use cut_short::CutShort;
pub use inspect::Inspect;
pub use read::{FirstFrame, Peek, Peeked};

/// Wraps the error of a body that is handed on, for example to say what it means for the call.
///
/// Asked at most once per body, when the error is yielded.
pub trait MapBodyError {
    /// Returns the error to yield in the place of `error`, which should become its source.
    fn map(&self, error: BoxError) -> BoxError;
}

// === impl MapBodyError ===

/// Leaves the error as it is.
impl MapBodyError for () {
    fn map(&self, error: BoxError) -> BoxError {
        error
    }
}

/// Leaves the error as it is where there is `None`.
impl<M: MapBodyError> MapBodyError for Option<M> {
    fn map(&self, error: BoxError) -> BoxError {
        match self {
            Some(map) => map.map(error),
            None => error,
        }
    }
}

impl<M: MapBodyError + ?Sized> MapBodyError for Arc<M> {
    fn map(&self, error: BoxError) -> BoxError {
        (**self).map(error)
    }
}

#[cfg(test)]
mod tests;
