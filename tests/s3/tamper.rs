//! Somebody on the way who changes one byte.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Uri};
use http_body::{Body, Frame, SizeHint};
use tower::Service;

/// What is changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Tamper {
    Nothing,
    Method,
    Path,
    Query,
    Header,
    Body,
}

/// A service that changes requests on their way down.
#[derive(Clone, Debug)]
pub(crate) struct Tampering<S> {
    inner: S,
    tamper: Tamper,
}

/// A body that is as long as before.
pub(crate) struct Flipped<B> {
    body: Pin<Box<B>>,
    flips: bool,
}

impl<S> Tampering<S> {
    pub(crate) fn new(inner: S, tamper: Tamper) -> Self {
        Self { inner, tamper }
    }
}

impl<S, B> Service<Request<B>> for Tampering<S>
where
    S: Service<Request<Flipped<B>>>,
    B: Body<Data = Bytes>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        match self.tamper {
            Tamper::Nothing | Tamper::Body => {}
            Tamper::Method => *request.method_mut() = Method::DELETE,
            Tamper::Path => replace(request.uri_mut(), "key", "kez"),
            Tamper::Query => replace(request.uri_mut(), "x-note=1", "x-note=2"),
            Tamper::Header => {
                let value = HeaderValue::from_static("two wordz");
                request.headers_mut().insert("x-amz-meta-note", value);
            }
        }
        let flips = matches!(self.tamper, Tamper::Body);
        let request = request.map(|body| Flipped {
            body: Box::pin(body),
            flips,
        });
        self.inner.call(request)
    }
}

impl<B: Body<Data = Bytes>> Body for Flipped<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let flips = self.flips;
        let flip = |data: Bytes| {
            let mut data = data.to_vec();
            if let Some(byte) = data.first_mut().filter(|_| flips) {
                *byte ^= 1;
            }
            Bytes::from(data)
        };
        let frame = self.body.as_mut().poll_frame(cx);
        frame.map(|frame| frame.map(|frame| frame.map(|frame| frame.map_data(flip))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn replace(uri: &mut Uri, from: &str, to: &str) {
    let text = uri.to_string();
    assert!(text.contains(from), "{text}");
    *uri = text.replacen(from, to, 1).parse().unwrap();
}
