//! What becomes of an answer, and of a signature that has gone stale: both off the path of most calls.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::{Response, response};
use http_body::Body;
use tower_outcome_core::{
    Attempt, BoxError, Classify, Verdict,
    peek::{Inspect, PeekBody},
};

use super::{
    ResponseFuture, SIGNINGS, State, StateOwned, StateProj,
    attempt::Signing,
    judged::{judge, publish_end, publish_report},
    refusal::{Refusal, hold_again},
    resynced,
};
use crate::{AsyncSign, Draft, SignError, SignErrorKind, SignReport};

// === impl ResponseFuture ===

impl<F, S, B, A, C, RB> ResponseFuture<F, S, B, A, C, RB>
where
    A: AsyncSign,
    C: Classify,
{
    /// Signs a request anew whose signature went stale before it was sent.
    #[cold]
    pub(super) fn sign_again(self: Pin<&mut Self>) -> Result<(), SignError> {
        let mut this = self.project();
        let config = &**this.config;
        let (Some(stale), Some(kept)) = (this.signing.as_mut(), this.kept.as_ref()) else {
            return Err(SignErrorKind::Stale.into());
        };
        if stale.count >= SIGNINGS {
            return Err(SignErrorKind::Stale.into());
        }
        let (again, fresh) = Signing::begin(config, kept)?;
        *stale = again.after(stale);
        let draft = Draft::from_parts((**kept).clone(), this.payload.shown(config));
        let signed = config.signer.sign_async(draft, fresh);
        this.state.set(State::Signing { signed });
        Ok(())
    }

    /// Keeps an answer that refuses the time or the nonce, and goes back to the start.
    #[cold]
    fn send_again(
        self: Pin<&mut Self>,
        head: response::Parts,
        body: PeekBody<RB>,
        report: SignReport,
    ) {
        let mut this = self.project();
        *this.refusal = Some(Refusal::new(head, body));
        *this.resigned = report.refused;
        let kept = this.kept.take();
        let draft = kept.map(|head| Draft::from_parts(*head, None));
        *this.hold = hold_again(draft.as_ref(), report.refused);
        let stage = resynced(this.config);
        this.state.set(State::Unsigned { stage, draft });
    }
}

impl<F, S, B, A, C, RB> ResponseFuture<F, S, B, A, C, RB>
where
    A: AsyncSign,
    C: Classify,
    RB: Body + Unpin,
    RB::Error: Into<BoxError>,
{
    /// Reads in and puts into an answer what there is. `None`: there is more to be done.
    pub(super) fn listen(
        mut self: Pin<&mut Self>,
        response: Response<RB>,
        call: Option<C::Call>,
    ) -> Option<Response<PeekBody<RB>>> {
        let mut this = self.as_mut().project();
        let config = &**this.config;
        let (mut head, body) = response.into_parts();
        let signing = this.signing.as_mut();
        let offset = signing.and_then(|signing| signing.learn(config, &head.headers));
        let mut report = SignReport {
            resigned: *this.resigned,
            refused: None,
            offset,
        };
        let mut resends = false;
        if let (Some(classifier), Some(call)) = (&config.classifier, call) {
            match classifier.response(&call, Attempt::FIRST, &head) {
                Verdict::Decided(decision) => {
                    resends = judge(config, this.signing.as_ref(), decision, &mut report);
                }
                verdict => {
                    let inspect = Box::new(Inspect::new(head, body, verdict));
                    this.state.set(State::Inspecting {
                        inspect,
                        call,
                        report,
                    });
                    return None;
                }
            }
            publish_report(&mut head, report);
        }
        if config.publishes {
            publish_end(&mut head, this.signing.as_ref());
        }
        let body = PeekBody::new(body);
        if resends {
            self.send_again(head, body, report);
            return None;
        }
        this.state.set(State::Done);
        Some(Response::from_parts(head, body))
    }

    /// Reads of the body what the classifier wants to see. `None`: there is more to be done.
    pub(super) fn inspect(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Response<PeekBody<RB>>>> {
        let mut this = self.as_mut().project();
        let config = &**this.config;
        let (StateProj::Inspecting { inspect, call, .. }, Some(classifier)) =
            (this.state.as_mut().project(), &config.classifier)
        else {
            unreachable!("only a classifier asks for a body");
        };
        let decision = ready!(inspect.poll_decision(cx, classifier, call, Attempt::FIRST));
        let StateOwned::Inspecting {
            inspect,
            mut report,
            ..
        } = this.state.as_mut().project_replace(State::Done)
        else {
            unreachable!("it was inspecting a line above");
        };
        let resends = judge(config, this.signing.as_ref(), decision, &mut report);
        let (mut head, body) = inspect.into_parts();
        publish_report(&mut head, report);
        if config.publishes {
            publish_end(&mut head, this.signing.as_ref());
        }
        if resends {
            self.send_again(head, body, report);
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Response::from_parts(head, body)))
    }
}
