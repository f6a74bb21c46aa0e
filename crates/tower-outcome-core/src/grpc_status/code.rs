//! Statuses: those of the server, with what is known of the call, and those made on this side.

use std::{error::Error, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tonic::{Code, Status, metadata::MetadataMap};

use crate::{
    BoxError, CallReport, Failure, NotRetried, Outcome, Reason,
    classify::{grpc_status, http_to_grpc},
    failure::chain,
};

const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Drops what tonic cannot read: it expects base64 in the details, and panics at anything else, whatever
/// the status is.
pub(super) fn drop_unreadable(headers: &mut HeaderMap) {
    let is_readable = |value: &HeaderValue| {
        let only = HeaderMap::from_iter([(DETAILS, value.clone())]);
        let details = MetadataMap::from_headers(only);
        let details = details.get_bin(DETAILS.as_str());
        details.is_some_and(|details| details.to_bytes().is_ok())
    };
    if !headers.get_all(DETAILS).iter().all(is_readable) {
        headers.remove(DETAILS);
    }
}

/// The server's status, if the headers or trailers hold one, and what became of the call.
///
/// Its code is read as the classifier reads it: two statuses that contradict each other are UNKNOWN, where
/// tonic takes the first.
pub(super) fn of_server(headers: &HeaderMap, report: &CallReport) -> Option<Status> {
    let code = of_number(grpc_status(headers)?);
    let mut status = Status::from_header_map(headers)?;
    if status.code() != code {
        status = with_code(&status, code);
    }
    Some(with_report(status, report))
}

/// What an answer amounts to that has no `grpc-status`: something in between has answered.
pub(super) fn of_http(http: StatusCode, report: &CallReport) -> Status {
    let code = of_number(http_to_grpc(http));
    let message = match http {
        StatusCode::OK => "the answer has no grpc-status".to_owned(),
        other => format!("the answer has no grpc-status, and HTTP status {other}"),
    };
    with_report(Status::new(code, message), report)
}

/// What has failed on this side.
pub(super) fn of_error(error: BoxError) -> Status {
    let Some(failure) = Failure::of(&*error) else {
        // Nobody in the stack has looked at it.
        return Status::from_error(error);
    };
    let code = code(failure);
    let mut status = match of_layer(&*error) {
        // Some layer below speaks gRPC too, and knows better.
        Some(below) if may_keep_its_code(below, failure) => return Status::from_error(error),
        Some(below) => with_code(below, code),
        None => Status::new(code, error.to_string()),
    };
    status.set_source(Arc::from(error));
    status
}

fn of_number(code: u32) -> Code {
    i32::try_from(code).map_or(Code::Unknown, Code::from_i32)
}

fn with_code(status: &Status, code: Code) -> Status {
    let details = status.details().to_vec().into();
    let metadata = status.metadata().clone();
    Status::with_details_and_metadata(code, status.message(), details, metadata)
}

fn with_report(mut status: Status, report: &CallReport) -> Status {
    status.set_source(Arc::new(Failure::of_report(report.clone())));
    status
}

/// The status that a layer below has made.
///
/// One that has a cause, and no failure among its causes, is tonic's reading of a transport error: for a
/// stream that was reset its code says what the server could have meant had it not answered before.
fn of_layer<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Status> {
    let status = chain(error).find_map(<dyn Error>::downcast_ref::<Status>)?;
    let is_made = status.source().is_none() || Failure::of(status).is_some();
    is_made.then_some(status)
}

/// For an unknown outcome only if the server has said it, or if it was made for an unknown outcome.
fn may_keep_its_code(status: &Status, failure: &Failure) -> bool {
    let by_itself = |own: &Failure| own.outcome().is_unknown() || own.source_ref().is_none();
    !failure.outcome().is_unknown() || Failure::of(status).is_some_and(by_itself)
}

/// The code that says no more than is known.
fn code(failure: &Failure) -> Code {
    let not_retried = failure.report().and_then(CallReport::not_retried);
    match failure.outcome() {
        Outcome::Success => Code::Unknown,
        Outcome::Retryable { reason, .. }
        | Outcome::Permanent { reason }
        | Outcome::Unknown { reason } => match (reason, failure.outcome()) {
            (Reason::TimedOut, _) => Code::DeadlineExceeded,
            (Reason::LocalLimit, _) if matches!(not_retried, Some(NotRetried::Deadline)) => {
                Code::DeadlineExceeded
            }
            (Reason::LocalLimit, _) => Code::ResourceExhausted,
            (Reason::AuthRejected, _) => Code::Unauthenticated,
            (_, Outcome::Retryable { .. }) => Code::Unavailable,
            (Reason::InvalidRequest | Reason::WrongOrder, _) => Code::Internal,
            _ => Code::Unknown,
        },
    }
}
