//! The service.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, request};
use tokio::time::Instant;
use tower_outcome_core::{BoxError, CallContext, Deadline, Phase, Repeatable, RepeatableBecause};
use tower_service::Service;

use super::{DeadlineBody, DeadlineFuture, future::Span, layer::Config};
use crate::grpc_timeout;

/// Bounds a whole call. See [`DeadlineLayer`](crate::DeadlineLayer).
#[derive(Clone, Debug)]
pub struct DeadlineService<S> {
    inner: S,
    config: Arc<Config>,
}

// === impl DeadlineService ===

impl<S> DeadlineService<S> {
    pub(super) const fn new(inner: S, config: Arc<Config>) -> Self {
        Self { inner, config }
    }

    /// Returns the inner service.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service, mutably.
    pub const fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service, by value.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, B, RB> Service<Request<B>> for DeadlineService<S>
where
    S: Service<Request<B>, Response = Response<RB>>,
    S::Error: Into<BoxError>,
{
    type Response = Response<DeadlineBody<RB>>;
    type Error = BoxError;
    type Future = DeadlineFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    #[inline]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut head, body) = request.into_parts();
        let config = &*self.config;
        let started = Instant::now();
        // Beyond all clocks is never.
        let own = || config.call.and_then(|call| started.checked_add(call));
        let carried = Deadline::of(&head.extensions).map(Deadline::instant);
        let asked = match config.grpc_timeout {
            true => grpc_timeout::read(&head.headers).and_then(|asked| started.checked_add(asked)),
            false => None,
        };
        let given = match (carried, asked) {
            (Some(carried), Some(asked)) => Some(carried.min(asked)),
            (given, None) | (None, given) => given,
        };
        let is_within_another = CallContext::of(&head.extensions).is_some();
        let end = match given {
            // Of two deadlines around each other the earlier counts, below both.
            Some(outer) if is_within_another => Some(own().map_or(outer, |own| own.min(outer))),
            Some(callers) => Some(callers),
            None => own(),
        };
        // One that nobody carries yet is carried by the context of this layer.
        let overrides = end != carried && (is_within_another || carried.is_some());
        if let (true, Some(end)) = (overrides, end) {
            head.extensions.insert(Deadline::at(end));
        }
        let span = end.map(|end| Span { started, end });
        let repeatable = repeatable(&head);
        if end.is_some_and(|end| end <= started) {
            return DeadlineFuture::expired(span, repeatable);
        }
        let watch = config.watch.as_ref().map(|watch| watch(&head));
        let (context, owned) = match CallContext::of(&head.extensions) {
            Some(context) => (context.clone(), false),
            None => {
                // One allocation less than a deadline of its own.
                let context = CallContext::with_deadline(end.map(Deadline::at));
                context.enter(Phase::Connecting);
                context.put(&mut head.extensions);
                (context, true)
            }
        };
        let future = self.inner.call(Request::from_parts(head, body));
        DeadlineFuture::new(future, span, context, owned, repeatable, watch)
    }
}

/// Whether a request may be repeated for all that is known here; a layer below that classifies knows
/// better, and tells the call's context.
fn repeatable(head: &request::Parts) -> Repeatable {
    match Repeatable::of(&head.extensions) {
        Some(marked) => marked,
        None if head.method.is_safe() => Repeatable::Yes(RepeatableBecause::SafeMethod),
        None => Repeatable::No,
    }
}
