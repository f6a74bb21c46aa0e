//! The recording: what a body did, step by step, and what it said of itself before each step.

use std::collections::VecDeque;

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::BoxError;

/// Frames that a recording may hold whatever its bound in bytes.
const FREE_FRAMES: usize = 1024;

/// Bytes of the bound that pay for one frame more.
///
/// A kept frame takes some hundred bytes beside its data, so that this keeps the true size of a
/// recording within a small multiple of its bound.
const BYTES_PER_FRAME: usize = 16;

/// What a body says of itself at one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    lower: u64,
    upper: Option<u64>,
    end: bool,
}

/// One thing a body did.
#[derive(Debug)]
pub(super) enum Step {
    Data(Bytes),
    Trailers(HeaderMap),
    /// A kind of frame that is not known here, so it cannot be copied.
    Other(Frame<Bytes>),
    End,
    Error(BoxError),
}

/// What lies at a position.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A step that is kept; the body said this before it.
    Kept(Hint),
    /// The end of what was read from the body so far.
    Live,
    /// A step that was kept no longer.
    Gone,
}

/// The steps of a body that can still be read.
///
/// While `recording`, reading copies and everything from the start is here. After that, reading
/// takes: what is left is only what the active attempt has not seen.
#[derive(Debug)]
pub(super) struct Tape {
    steps: VecDeque<(Hint, Step)>,
    /// Steps that were here before the first of `steps`.
    released: usize,
    /// Bytes held by `steps`.
    size: usize,
    limit: usize,
    recording: bool,
}

/// A step that left the tape, or passed it.
#[derive(Debug)]
pub(super) struct Taken {
    /// The step, for the active attempt.
    pub(super) step: Option<Step>,
    /// Steps nobody needs; to be dropped when no lock is held.
    pub(super) released: VecDeque<(Hint, Step)>,
}

/// Returns how many frames may be kept under a bound of `limit` bytes.
///
/// Without it a stream of empty frames would be kept without end.
pub(crate) const fn max_frames(limit: usize) -> usize {
    FREE_FRAMES.saturating_add(limit / BYTES_PER_FRAME)
}

// === impl Hint ===

impl Hint {
    pub(super) fn of<B: Body>(body: &B) -> Self {
        let size = body.size_hint();
        Self {
            lower: size.lower(),
            upper: size.upper(),
            end: body.is_end_stream(),
        }
    }

    pub(super) fn size(self) -> SizeHint {
        let mut size = SizeHint::new();
        size.set_lower(self.lower);
        if let Some(upper) = self.upper {
            size.set_upper(upper);
        }
        size
    }

    pub(super) fn is_end(self) -> bool {
        self.end
    }
}

// === impl Step ===

impl Step {
    /// Returns what the step adds to the recording, in bytes, or `None` if it cannot be kept.
    fn cost(&self) -> Option<usize> {
        match self {
            Self::Data(data) => Some(data.len()),
            Self::Trailers(trailers) => Some(trailers.iter().fold(0, |sum, (name, value)| {
                sum.saturating_add(name.as_str().len())
                    .saturating_add(value.len())
            })),
            Self::End => Some(0),
            Self::Other(_) | Self::Error(_) => None,
        }
    }

    fn copy(&self) -> Option<Self> {
        match self {
            Self::Data(data) => Some(Self::Data(data.clone())),
            Self::Trailers(trailers) => Some(Self::Trailers(trailers.clone())),
            Self::End => Some(Self::End),
            Self::Other(_) | Self::Error(_) => None,
        }
    }

    pub(super) fn into_frame(self) -> Option<Result<Frame<Bytes>, BoxError>> {
        match self {
            Self::Data(data) => Some(Ok(Frame::data(data))),
            Self::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            Self::Other(frame) => Some(Ok(frame)),
            Self::End => None,
            Self::Error(error) => Some(Err(error)),
        }
    }
}

impl From<Frame<Bytes>> for Step {
    fn from(frame: Frame<Bytes>) -> Self {
        match frame.into_data().map_err(Frame::into_trailers) {
            Ok(data) => Self::Data(data),
            Err(Ok(trailers)) => Self::Trailers(trailers),
            Err(Err(frame)) => Self::Other(frame),
        }
    }
}

// === impl Tape ===

impl Tape {
    /// Returns an empty tape; with a `limit` of 0 it never records.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            steps: VecDeque::new(),
            released: 0,
            size: 0,
            limit,
            recording: limit > 0,
        }
    }

    pub(super) fn is_recording(&self) -> bool {
        self.recording
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn place(&self, position: usize) -> Place {
        match position.checked_sub(self.released) {
            None => Place::Gone,
            Some(index) => match self.steps.get(index) {
                Some((hint, _)) => Place::Kept(*hint),
                None => Place::Live,
            },
        }
    }

    /// Reads the step at `position`, which must not be live.
    pub(super) fn read(&mut self, position: usize) -> Taken {
        let mut released = VecDeque::new();
        let index = match position.checked_sub(self.released) {
            Some(index) if index < self.steps.len() => index,
            _ => {
                let step = None;
                return Taken { step, released };
            }
        };
        if self.recording {
            let step = self.steps[index].1.copy();
            return Taken { step, released };
        }
        // Only the active attempt reads. What it left behind was read while the tape was still
        // recording, and nobody will ask for it again.
        let mut read = None;
        for _ in 0..=index {
            let Some((hint, step)) = self.steps.pop_front() else {
                break;
            };
            self.released += 1;
            self.size = self.size.saturating_sub(step.cost().unwrap_or(0));
            released.extend(read.replace((hint, step)));
        }
        let step = read.map(|(_, step)| step);
        Taken { step, released }
    }

    /// Takes over what the body did next, having said `before`.
    ///
    /// `direct` tells that the attempt which read it is the active one, and so has seen all there
    /// is on the tape and gets the step at once.
    pub(super) fn accept(&mut self, before: Hint, step: Step, direct: bool) -> Taken {
        let mut released = VecDeque::new();
        if let Some(size) = self.size_with(&step) {
            let kept = step;
            let step = if direct { kept.copy() } else { None };
            self.steps.push_back((before, kept));
            self.size = size;
            return Taken { step, released };
        }
        self.recording = false;
        if direct {
            std::mem::swap(&mut self.steps, &mut released);
            self.released += released.len() + 1;
            self.size = 0;
            let step = Some(step);
            return Taken { step, released };
        }
        self.size = self.size.saturating_add(step.cost().unwrap_or(0));
        self.steps.push_back((before, step));
        let step = None;
        Taken { step, released }
    }

    /// Keeps nothing from here on but what the active attempt has yet to read.
    pub(super) fn stop(&mut self) {
        self.recording = false;
    }

    /// Returns the size of the recording with `step` on it, if it can and may be kept.
    fn size_with(&self, step: &Step) -> Option<usize> {
        let size = self.size.checked_add(step.cost()?)?;
        let fits = match step {
            Step::End => true,
            _ => size <= self.limit && self.steps.len() < max_frames(self.limit),
        };
        (self.recording && fits).then_some(size)
    }
}
