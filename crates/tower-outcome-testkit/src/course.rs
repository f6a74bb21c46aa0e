//! What is to become of a request, the same for both protocols.

use std::time::Duration;

use bytes::Bytes;

use crate::desk::{Desk, Order};
use crate::{Answer, Fault, GrpcForm, Point};

/// What happens once the head is read.
pub(crate) enum AtHead {
    /// The body is read.
    Read,
    /// No answer follows.
    Die(Death),
    /// The answer comes before the body is read.
    Early { answer: Answer, drain: bool },
}

/// What happens once the request is complete and was acted on or not.
pub(crate) enum Course {
    /// No byte of an answer is sent.
    Die(Death),
    /// The head and a part of the body are sent.
    Partial(Answer, Death),
    /// The answer is sent whole.
    Answer(Answer, Then),
    /// The answer is sent whole, its body byte by byte.
    Drip(Answer, Duration),
}

/// How a connection or a stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Death {
    Close,
    Reset,
    Stall,
    ResetStream(u32),
}

/// What follows a whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Keep,
    CloseIdle,
    ResetIdle,
    StaleRequestTimeout,
}

/// REFUSED_STREAM (RFC 9113, section 7).
pub(crate) const REFUSED_STREAM: u32 = 0x7;

/// Decides what happens once the head is read.
pub(crate) fn at_head(order: &mut Order) -> AtHead {
    match &order.fault {
        Some(Fault::EarlyAnswer { code, drain }) => {
            let (code, drain) = (*code, *drain);
            let answer = Answer::json(code, r#"{"error":"not read"}"#);
            AtHead::Early {
                answer: order.sign(answer),
                drain,
            }
        }
        Some(Fault::RefuseStream) => AtHead::Die(Death::ResetStream(REFUSED_STREAM)),
        Some(fault) => match death(fault) {
            Some((Point::Head, death)) => AtHead::Die(death),
            _ => AtHead::Read,
        },
        None => AtHead::Read,
    }
}

/// Acts on a complete request, or does not, and decides what the client gets to see.
///
/// Knows nothing of GOAWAY: a request with that fault is acted on and answered.
pub(crate) fn at_end(desk: &Desk, order: &mut Order) -> Course {
    let Some(fault) = order.fault.clone() else {
        return Course::Answer(desk.act(order), Then::Keep);
    };
    let acted = fault.applies().then(|| desk.act(order));
    if let Some((_, death)) = death(&fault) {
        return match (acted, &fault) {
            (
                Some(answer),
                Fault::Close { at }
                | Fault::Reset { at }
                | Fault::Stall { at }
                | Fault::ResetStream { at, .. },
            ) if *at == Point::Response => Course::Partial(answer, death),
            _ => Course::Die(death),
        };
    }
    let then = match &fault {
        Fault::CloseIdle => Then::CloseIdle,
        Fault::ResetIdle => Then::ResetIdle,
        Fault::StaleRequestTimeout => Then::StaleRequestTimeout,
        _ => Then::Keep,
    };
    let answer = match fault {
        Fault::Status {
            code,
            retry_after,
            headers,
            body,
            ..
        } => {
            let body = body.unwrap_or_else(|| r#"{"error":"on purpose"}"#.to_owned());
            let mut answer = Answer::json(code, body);
            if let Some(text) = retry_after {
                answer = answer.header("retry-after", text);
            }
            answer.headers.extend(headers);
            order.sign(answer)
        }
        Fault::ErrorBody { body, .. } => order.sign(Answer::json(200, body)),
        Fault::Grpc {
            code,
            form,
            pushback,
            ..
        } => order.sign(grpc(code, form, pushback)),
        Fault::Drip { interval } => {
            return Course::Drip(acted.unwrap_or_else(|| desk.act(order)), interval);
        }
        _ => acted.unwrap_or_else(|| desk.act(order)),
    };
    Course::Answer(answer, then)
}

/// Splits an answer that is cut off: what the head promises and what is sent.
pub(crate) fn cut(answer: &Answer) -> (usize, Bytes) {
    let whole = answer.body.len();
    if whole < 2 {
        // Too short to be cut, so the head promises more.
        (whole + 16, answer.body.clone())
    } else {
        (whole, answer.body.slice(..whole / 2))
    }
}

/// How a fault kills, and where, if it does.
fn death(fault: &Fault) -> Option<(Point, Death)> {
    match fault {
        Fault::Close { at } => Some((*at, Death::Close)),
        Fault::Reset { at } => Some((*at, Death::Reset)),
        Fault::Stall { at } => Some((*at, Death::Stall)),
        Fault::ResetStream { code, at } => Some((*at, Death::ResetStream(*code))),
        _ => None,
    }
}

fn grpc(code: u32, form: GrpcForm, pushback: Option<String>) -> Answer {
    let mut status = vec![
        ("grpc-status".to_owned(), code.to_string()),
        ("grpc-message".to_owned(), "on purpose".to_owned()),
    ];
    status.extend(pushback.map(|text| ("grpc-retry-pushback-ms".to_owned(), text)));
    let mut answer = Answer::grpc();
    match form {
        GrpcForm::TrailersOnly => answer.headers.extend(status),
        GrpcForm::TrailersBeforeMessage => answer.trailers = status,
        GrpcForm::TrailersAfterMessage => {
            // One empty message: not compressed, length 0.
            answer.body = Bytes::from_static(&[0; 5]);
            answer.trailers = status;
        }
    }
    answer
}
