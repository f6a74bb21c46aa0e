//! Waiting for a credential.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, sleep_until, timeout_at};
use tower_outcome_core::Deadline;

use crate::{
    Unavailable, UnavailableKind, Waited,
    credentials::Shared,
    flight::{Flight, PATIENCE, Step, Want},
    held::Held,
    refresh,
};

/// Waits for a credential.
pub(crate) type Obtain = Pin<Box<dyn Future<Output = Result<Arc<Held>, Refusal>> + Send>>;

/// Why there is none, and when asking again may help.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) why: Unavailable,
    pub(crate) after: Option<Duration>,
}

/// How many refreshes a call waits for. One that brings nothing good is followed by one more.
const REFRESHES_PER_CALL: u32 = 2;

// === impl Shared ===

impl Shared {
    /// Waits for a credential, until the deadline at most.
    pub(crate) fn obtain(self: &Arc<Self>, want: Want, deadline: Option<Deadline>) -> Obtain {
        let shared = Arc::clone(self);
        Box::pin(async move {
            if refresh::is_refreshing(&shared) {
                return Err(Refusal {
                    why: shared.unavailable(UnavailableKind::Recursive),
                    after: None,
                });
            }
            // Nothing is measured for nearly every call: there is nothing to wait for.
            let began = Instant::now();
            let mut waited = false;
            let result = shared.wait(want, deadline, &mut waited).await;
            if waited {
                shared.observer.waited(&Waited {
                    name: &shared.name,
                    waited: began.elapsed(),
                    served: result.is_ok(),
                });
            }
            result
        })
    }

    async fn wait(
        self: &Arc<Self>,
        want: Want,
        deadline: Option<Deadline>,
        waited: &mut bool,
    ) -> Result<Arc<Held>, Refusal> {
        let mut refreshes = 0;
        loop {
            let mut news = self.news.subscribe();
            match self.ask(want, self.now()) {
                Step::Use(held) => return Ok(held),
                Step::Fail(why, after) => return Err(Refusal { why, after }),
                Step::Pause(until) => {
                    let deadline = deadline.map(Deadline::instant);
                    let left = until.saturating_duration_since(Instant::now());
                    let is_rejected = matches!(want, Want::NewerThan(_));
                    if deadline.is_some_and(|deadline| deadline <= until)
                        || is_rejected && left > PATIENCE
                    {
                        return Err(Refusal {
                            why: self.unavailable(UnavailableKind::Paused),
                            after: Some(left),
                        });
                    }
                    *waited = true;
                    first(sleep_until(until), news.changed()).await;
                }
                Step::Wait(flight) => {
                    *waited = true;
                    let landed = first(self.landed(flight, deadline), news.changed()).await;
                    let Some(landed) = landed else {
                        continue;
                    };
                    refreshes += 1;
                    match landed {
                        Ok(held) if !self.is_over(&held) => return Ok(held),
                        Ok(_) if refreshes < REFRESHES_PER_CALL => {}
                        Ok(_) => {
                            return Err(Refusal {
                                why: self.unavailable(UnavailableKind::Expired),
                                after: None,
                            });
                        }
                        Err(Refusal { why, .. }) if why.kind() == UnavailableKind::Deadline => {
                            return Err(self.too_late());
                        }
                        Err(refusal) => {
                            // What there is serves to its end, if it is good.
                            let good = self.lock().good(self.now()).cloned();
                            return match (want, good) {
                                (Want::Any, Some(held)) => Ok(held),
                                _ => Err(refusal),
                            };
                        }
                    }
                }
            }
        }
    }

    /// Waits for the end of a refresh.
    async fn landed(
        &self,
        mut flight: Flight,
        deadline: Option<Deadline>,
    ) -> Result<Arc<Held>, Refusal> {
        let deadline = deadline.map(Deadline::instant);
        let until = deadline.map_or(flight.overdue, |deadline| deadline.min(flight.overdue));
        let landing = timeout_at(until, flight.landed.wait_for(Option::is_some));
        let landed = match landing.await {
            Ok(Ok(landed)) => landed.clone(),
            Ok(Err(_)) => None,
            Err(_) if deadline.is_some_and(|deadline| deadline <= flight.overdue) => {
                return Err(self.too_late());
            }
            Err(_) => None,
        };
        match landed {
            Some(Ok(held)) => Ok(held),
            Some(Err(why)) => {
                let after = self.lock().remembered(self.now());
                Err(Refusal { why, after })
            }
            // It had its own time and more: whatever runs it stands still.
            None => {
                let why = self.unavailable(UnavailableKind::Lost);
                let mut state = self.lock();
                let at = self.now();
                if state.end(flight.id) {
                    state.fail(why.clone(), at, &*self.random);
                }
                let after = state.remembered(at);
                Err(Refusal { why, after })
            }
        }
    }

    /// Whether a credential has expired meanwhile.
    pub(crate) fn is_over(&self, held: &Held) -> bool {
        held.expiry.is_reached(self.now())
    }

    pub(crate) fn too_late(&self) -> Refusal {
        Refusal {
            why: self.unavailable(UnavailableKind::Deadline),
            after: None,
        }
    }
}

/// Waits for the one, or gives it up for the other.
async fn first<T, U>(one: impl Future<Output = T>, other: impl Future<Output = U>) -> Option<T> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(|cx| match one.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => other.as_mut().poll(cx).map(|_| None),
    })
    .await
}
