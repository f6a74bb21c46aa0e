//! The response future.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response, request};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_outcome_core::{
    BoxError, CallContext, Classify, Hold, Phase, Stamped,
    peek::{Inspect, PeekBody},
};
use tower_service::Service;

use crate::{
    AsyncSign, Draft, Fresh, Resigned, SignError, SignErrorKind, SignReport, SignedBody,
    body::Reading,
    layer::Config,
    nonces::{Slot, Turn},
    offset::Resync,
};

mod answer;
mod attempt;
mod judged;
mod payload;
mod refusal;

use self::{
    attempt::{Sealed, Signing, fill, time_of},
    payload::{Payload, read},
    refusal::Refusal,
};

/// The name of the layer in a context.
const LAYER: &str = "sign";

/// How often a signature that has gone stale is made in all.
const SIGNINGS: u8 = 3;

pin_project! {
    /// The response future of [`SignService`](crate::SignService).
    ///
    /// Dropping it passes on the turn of the key and drops the inner future; nothing else is held. A
    /// nonce that was taken is not taken back.
    // `F` is the future of `S`; see the response future of Retry for why it is a parameter.
    pub struct ResponseFuture<F, S, B, A, C, RB>
    where
        A: AsyncSign,
        C: Classify,
    {
        #[pin]
        state: State<F, A::Future, C::Call, RB>,
        service: S,
        payload: Payload<B>,
        // The head as it came, where it may be needed again.
        kept: Option<Box<request::Parts>>,
        slot: Option<Slot>,
        // The promise to those above that nothing has been sent.
        hold: Option<Hold>,
        signing: Option<Signing>,
        resigned: Option<Resigned>,
        // The answer to the first sending, until there is a second.
        refusal: Option<Box<Refusal<RB>>>,
        stamped: Stamped,
        config: Arc<Config<A, C>>,
    }
}

pin_project! {
    #[project = StateProj]
    #[project_replace = StateOwned]
    enum State<F, G, T, RB> {
        // The stack cannot work.
        Refused { error: Option<BoxError> },
        // It has not been sent. The draft is there until the next state.
        Unsigned { stage: Stage, draft: Option<Draft> },
        // The signer has to wait for something.
        Signing { #[pin] signed: G },
        // It has been sent.
        Sending { #[pin] future: F, call: Option<T> },
        // The head is here, and the classifier wants to see the body.
        Inspecting { inspect: Box<Inspect<RB>>, call: T, report: SignReport },
        Done,
    }
}

/// How far a request is that has not been signed.
enum Stage {
    /// The body is being read, as far as it is needed.
    Reading,
    /// The server is asked for its time.
    Asking(Resync),
    /// Others sign with the same key, and send first.
    Queued(Turn),
    /// It is this request's turn, and the inner service has to be ready.
    Readying,
}

/// The turn of a key, which a panic passes on.
struct PassOn<'a, F, S, B, A, C, RB>(Pin<&'a mut ResponseFuture<F, S, B, A, C, RB>>)
where
    A: AsyncSign,
    C: Classify;

// === impl ResponseFuture ===

impl<F, S, B, A, C, RB> ResponseFuture<F, S, B, A, C, RB>
where
    A: AsyncSign,
    C: Classify,
{
    #[inline]
    pub(crate) fn new(
        service: S,
        draft: Draft,
        body: B,
        stamped: Stamped,
        config: Arc<Config<A, C>>,
    ) -> Self {
        Self {
            state: State::Unsigned {
                stage: Stage::Reading,
                draft: Some(draft),
            },
            service,
            payload: Payload::Reading(Reading::new(body)),
            kept: None,
            slot: None,
            hold: None,
            signing: None,
            resigned: None,
            refusal: None,
            stamped,
            config,
        }
    }

    #[cold]
    pub(crate) fn refused(service: S, body: B, error: BoxError, config: Arc<Config<A, C>>) -> Self {
        Self {
            state: State::Refused { error: Some(error) },
            service,
            payload: Payload::Reading(Reading::new(body)),
            kept: None,
            slot: None,
            hold: None,
            signing: None,
            resigned: None,
            refusal: None,
            stamped: Stamped::default(),
            config,
        }
    }
}

impl<F, S, B, A, C, RB> Future for ResponseFuture<F, S, B, A, C, RB>
where
    F: Future<Output = Result<Response<RB>, S::Error>>,
    S: Service<Request<SignedBody<B>>, Response = Response<RB>, Future = F>,
    S: Clone,
    S::Error: Into<BoxError>,
    A: AsyncSign,
    C: Classify,
    B: Body + Unpin,
    B::Error: Into<BoxError>,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    type Output = Result<Response<PeekBody<RB>>, BoxError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A signer or a service below that panics keeps the turn of the key from nobody.
        let mut own = PassOn(self);
        let error: BoxError = loop {
            let mut this = own.0.as_mut().project();
            let config = &**this.config;
            let slot = &mut *this.slot;
            if let Some(refusal) = this.refusal {
                refusal.read(cx);
            }
            let validity = match this.state.as_mut().project() {
                // ## Refused => Done
                StateProj::Refused { error } => {
                    let Some(error) = error.take() else {
                        return Poll::Pending;
                    };
                    this.state.set(State::Done);
                    return Poll::Ready(Err(error));
                }
                // ## Unsigned => (Unsigned | Signing | Sending | Done)
                StateProj::Unsigned { stage, draft: kept } => {
                    let Some(draft) = kept.as_mut() else {
                        return Poll::Pending;
                    };
                    // ## Reading => (Asking | Queued | Readying | Done)
                    if let Stage::Reading = stage {
                        if this.hold.is_none() {
                            if let Some(held) = held(draft) {
                                *this.hold = Some(held);
                            }
                        }
                        let read = if config.origins.contains(draft.head()) {
                            ready!(read(config, this.payload, draft, cx))
                        } else {
                            Err(SignErrorKind::Origin.into())
                        };
                        if let Err(error) = read {
                            break error.into_failure().into();
                        }
                        *stage = if config.waits {
                            resynced(config)
                        } else {
                            Stage::Readying
                        };
                    }
                    // ## Asking => (Queued | Readying)
                    if let Stage::Asking(resync) = stage {
                        ready!(resync.as_mut().poll(cx));
                        *stage = next_in_line(config);
                    }
                    // ## Queued => Readying
                    if let Stage::Queued(turn) = stage {
                        *slot = Some(ready!(turn.as_mut().poll(cx)));
                        *stage = Stage::Readying;
                    }
                    // ## Readying => (Signing | Sending | Done)
                    if let Err(error) = ready!(this.service.poll_ready(cx)) {
                        break error.into();
                    }
                    let wall = config.clock.now();
                    let mut fresh = match time_of(config, wall) {
                        Ok(time) => Fresh::new(time),
                        Err(error) => break error.into_failure().into(),
                    };
                    if let Err(error) = fill(config, draft.head(), wall, &mut fresh) {
                        break error.into_failure().into();
                    }
                    *this.signing = Some(Signing::new(&fresh));
                    if config.classifier.is_some() {
                        if this.resigned.is_none() {
                            *this.kept = Some(Box::new(draft.head().clone()));
                        }
                        draft.show(this.payload.shown(config));
                    }
                    let validity = config.signer.sign_now(draft, &fresh);
                    if validity.is_none() && this.kept.is_none() {
                        *this.kept = Some(Box::new(draft.head().clone()));
                        this.payload.share(draft.body().ok());
                    }
                    match validity {
                        Some(Ok(validity)) => validity,
                        Some(Err(error)) => {
                            break error.into_failure().into();
                        }
                        None => {
                            let Some(draft) = kept.take() else {
                                return Poll::Pending;
                            };
                            let signed = config.signer.sign_async(draft, fresh);
                            this.state.set(State::Signing { signed });
                            continue;
                        }
                    }
                }
                // ## Signing => (Signing | Sending | Done)
                StateProj::Signing { signed } => match ready!(signed.poll(cx)) {
                    Ok(signed) => {
                        let (stage, draft) = (Stage::Readying, Some(signed.draft));
                        this.state.set(State::Unsigned { stage, draft });
                        signed.validity
                    }
                    Err(error) => {
                        break error.into_failure().into();
                    }
                },
                // ## Sending => (Inspecting | Unsigned | Done)
                StateProj::Sending { future, call } => {
                    let result = ready!(future.poll(cx));
                    *slot = None;
                    if !config.listens {
                        // What is left of it is dropped with this future.
                        return Poll::Ready(match result {
                            Ok(response) => {
                                this.stamped.answered();
                                Ok(response.map(PeekBody::new))
                            }
                            Err(error) => Err(error.into()),
                        });
                    }
                    let response = match result {
                        Ok(response) => response,
                        Err(error) => {
                            this.state.set(State::Done);
                            return Poll::Ready(Err(error.into()));
                        }
                    };
                    this.stamped.answered();
                    let call = call.take();
                    match own.0.as_mut().listen(response, call) {
                        Some(response) => return Poll::Ready(Ok(response)),
                        None => continue,
                    }
                }
                // ## Inspecting => (Unsigned | Done)
                StateProj::Inspecting { .. } => match ready!(own.0.as_mut().inspect(cx)) {
                    Some(response) => return Poll::Ready(Ok(response)),
                    None => continue,
                },
                // Polled after completion, which the contract of futures leaves open.
                StateProj::Done => return Poll::Pending,
            };
            // The one way down: signed, and with an end of validity.
            let Some(signing) = this.signing.as_mut() else {
                return Poll::Pending;
            };
            let sealed = Sealed::of(config, validity);
            if signing.is_stale(config, sealed) {
                match own.0.as_mut().sign_again() {
                    Ok(()) => continue,
                    Err(error) => break error.into_failure().into(),
                }
            }
            let StateProj::Unsigned { draft: signed, .. } = this.state.as_mut().project() else {
                return Poll::Pending;
            };
            let Some(draft) = signed.as_mut() else {
                return Poll::Pending;
            };
            #[cfg(debug_assertions)]
            let added = draft.take_added();
            let data = draft.take_body();
            let head = draft.head_mut();
            let may_resign = config.classifier.is_some() && this.resigned.is_none();
            let Some(mut body) = this.payload.take(data, may_resign, config.collects) else {
                // The signer has put another draft in the place of its own.
                break SignError::missing("body").into_failure().into();
            };
            signing.publish(config, sealed, head);
            #[cfg(debug_assertions)]
            {
                let signed = body.data().filter(|_| config.needs.body());
                crate::Seal::put(head, signed, added);
            }
            if slot.is_some() {
                body.hold(slot);
            }
            let classifier = config.classifier.as_ref();
            let call = classifier.map(|classifier| classifier.glance(head));
            signing.depart(config);
            if let Some(hold) = this.hold.take() {
                if let (Some(_), Some(context)) =
                    (&*this.refusal, CallContext::of(&head.extensions))
                {
                    context.begin_attempt();
                }
                if let Err(error) = hold.let_go() {
                    *this.refusal = None;
                    break error;
                }
            }
            if this.refusal.is_some() {
                *this.refusal = None;
            }
            let Some(draft) = signed.take() else {
                return Poll::Pending;
            };
            let request = Request::from_parts(draft.into_head(), body);
            let future = this.service.call(request);
            this.state.set(State::Sending { future, call });
        };
        // It was not sent. What is reserved of the service below is for others.
        let mut this = own.0.as_mut().project();
        *this.slot = None;
        *this.service = this.service.clone();
        this.state.set(State::Done);
        Poll::Ready(Refusal::or(this.refusal, error))
    }
}

// === impl PassOn ===

impl<F, S, B, A, C, RB> Drop for PassOn<'_, F, S, B, A, C, RB>
where
    A: AsyncSign,
    C: Classify,
{
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.as_mut().project().slot = None;
        }
    }
}

/// Where a request goes whose body is there, or that is sent once more: to ask for the server's time,
/// where that is called for, and in line.
#[inline]
fn resynced<A, C>(config: &Config<A, C>) -> Stage {
    let offset = config.offset.as_ref();
    match offset.and_then(|offset| offset.resync(&config.clock)) {
        Some(resync) => Stage::Asking(resync),
        None => next_in_line(config),
    }
}

/// Where a request goes that is to be signed.
#[inline]
fn next_in_line<A, C>(config: &Config<A, C>) -> Stage {
    match config.nonces.as_ref().and_then(crate::Nonces::turn) {
        Some(turn) => Stage::Queued(turn),
        None => Stage::Readying,
    }
}

/// Promises those above, where there are any, that nothing has been sent.
#[inline]
fn held(draft: &Draft) -> Option<Hold> {
    let context = CallContext::of(&draft.head().extensions)?;
    Some(context.hold(LAYER, Phase::Queued))
}

impl<F, S, B, A, C, RB> fmt::Debug for ResponseFuture<F, S, B, A, C, RB>
where
    A: AsyncSign,
    C: Classify,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Refused { .. } => "refused",
            State::Unsigned { stage, .. } => match stage {
                Stage::Reading => "reading",
                Stage::Asking(_) => "asking",
                Stage::Queued(_) => "queued",
                Stage::Readying => "readying",
            },
            State::Signing { .. } => "signing",
            State::Sending { .. } => "sending",
            State::Inspecting { .. } => "inspecting",
            State::Done => "done",
        };
        f.debug_struct("ResponseFuture")
            .field("state", &state)
            .finish_non_exhaustive()
    }
}
