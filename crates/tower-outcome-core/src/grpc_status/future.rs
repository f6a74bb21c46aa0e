//! The response future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{HeaderMap, Response, StatusCode};
use http_body::{Body, Frame};
use pin_project_lite::pin_project;
use tonic::{Code, Status, metadata::MetadataMap};

use super::{GrpcStatusBody, code, judge::Judge};
use crate::{BoxError, CallReport, Failure, classify::grpc_status};

pin_project! {
    /// The response future of [`GrpcStatus`](super::GrpcStatus).
    ///
    /// Dropping it drops the call.
    pub struct GrpcStatusFuture<F, B> {
        #[pin]
        inner: F,
        // Handed on to the body.
        judge: Option<Judge>,
        unread: Option<Unread<B>>,
    }
}

/// An answer whose head does not say how the call failed, although it did.
struct Unread<B> {
    response: Response<B>,
    report: CallReport,
}

// === impl GrpcStatusFuture ===

impl<F, B> GrpcStatusFuture<F, B> {
    pub(super) const fn new(inner: F, judge: Judge) -> Self {
        Self {
            inner,
            judge: Some(judge),
            unread: None,
        }
    }
}

impl<F, B, E> Future for GrpcStatusFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    E: Into<BoxError>,
    B: Body + Unpin,
    B::Error: Into<BoxError>,
{
    type Output = Result<Response<GrpcStatusBody<B>>, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // ## Calling => (Done | Reading)
        if this.unread.is_none() {
            let response = match ready!(this.inner.poll(cx)) {
                Ok(response) => response,
                Err(error) => return Poll::Ready(Err(code::of_error(error.into()))),
            };
            let (mut head, body) = response.into_parts();
            code::drop_unreadable(&mut head.headers);
            let report = match CallReport::of(&head.extensions) {
                Some(report) => Some(report.clone()),
                // Nobody below has looked at it.
                None => this.judge.as_ref().and_then(|judge| judge.of_head(&head)),
            };
            let response = Response::from_parts(head, body);
            let failed = |report: &&CallReport| !report.outcome().is_success();
            let Some(report) = report.as_ref().filter(failed) else {
                // Where the head has the status, nothing follows.
                let judge = this
                    .judge
                    .take()
                    .filter(|_| grpc_status(response.headers()).is_none())
                    .map(|judge| judge.with_report(report));
                return Poll::Ready(Ok(
                    response.map(|body| GrpcStatusBody::new(None, body, judge))
                ));
            };
            match code::of_server(response.headers(), report) {
                Some(status) if status.code() == Code::Ok => {
                    return Poll::Ready(Ok(
                        response.map(|body| GrpcStatusBody::new(None, body, None))
                    ));
                }
                Some(status) => return Poll::Ready(Err(status)),
                None => {}
            }
            if response.status() != StatusCode::OK {
                let status = code::of_http(response.status(), report);
                return Poll::Ready(Err(status));
            }
            let report = report.clone();
            *this.unread = Some(Unread { response, report });
        }
        // ## Reading => Done
        let Some(unread) = this.unread else {
            return Poll::Pending;
        };
        let first = ready!(Pin::new(unread.response.body_mut()).poll_frame(cx));
        let Some(Unread { response, report }) = this.unread.take() else {
            return Poll::Pending;
        };
        Poll::Ready(match first {
            None => Err(code::of_http(StatusCode::OK, &report)),
            Some(Err(error)) => Err(code::of_error(of_body(error.into(), report))),
            Some(Ok(frame)) => match frame.into_trailers() {
                Ok(mut trailers) => {
                    code::drop_unreadable(&mut trailers);
                    let status = of_trailers(&trailers, response.headers(), &report);
                    if status.code() == Code::Ok {
                        let trailers = Some(Frame::trailers(trailers));
                        Ok(response.map(|body| GrpcStatusBody::new(trailers, body, None)))
                    } else {
                        Err(status)
                    }
                }
                // A message, so it was read to its end: there is why.
                Err(message) => {
                    let judge = Some(Judge::Failed(report));
                    Ok(response.map(|body| GrpcStatusBody::new(Some(message), body, judge)))
                }
            },
        })
    }
}

/// The answer is lost, and what was known of the call is known still.
fn of_body(error: BoxError, report: CallReport) -> BoxError {
    let (outcome, delivery) = (report.outcome(), report.delivery());
    Failure::wrap(error, |_| (outcome, delivery))
        .with_report(report)
        .into()
}

/// As generated code does it, the metadata of the head is part of the status too.
fn of_trailers(trailers: &HeaderMap, head: &HeaderMap, report: &CallReport) -> Status {
    let Some(mut status) = code::of_server(trailers, report) else {
        return code::of_http(StatusCode::OK, report);
    };
    let mut metadata = std::mem::take(status.metadata_mut()).into_headers();
    metadata.extend(head.clone());
    *status.metadata_mut() = MetadataMap::from_headers(metadata);
    status
}

impl<F: fmt::Debug, B> fmt::Debug for GrpcStatusFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcStatusFuture")
            .field("inner", &self.inner)
            .field("unread", &self.unread.is_some())
            .finish()
    }
}
