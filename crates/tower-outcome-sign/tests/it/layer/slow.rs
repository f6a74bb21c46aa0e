//! Signers that take their time.

use super::*;

/// Takes so long for a signature.
#[derive(Clone)]
struct Slow {
    window: Duration,
    clock: Arc<ManualClock>,
    takes: Arc<Mutex<Vec<u64>>>,
    signed: Arc<AtomicUsize>,
}

impl AsyncSign for Slow {
    type Future = Pin<Box<dyn Future<Output = Result<Signed, SignError>> + Send>>;

    fn needs_async(&self) -> Needs {
        Needs::BODY
    }

    fn sign_async(&self, mut draft: Draft, fresh: Fresh) -> Self::Future {
        let this = self.clone();
        let takes = this.takes.lock().unwrap().pop();
        Box::pin(async move {
            this.signed.fetch_add(1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            let Some(takes) = takes else {
                return Err(SignError::unavailable("the key service is down"));
            };
            this.clock.advance(ms(takes));
            let stamp = Stamp {
                window: this.window,
                ..STAMP
            };
            let validity = Sign::sign(&stamp, &mut draft, &fresh)?;
            Ok(Signed::new(draft, validity))
        })
    }
}

async fn slow(takes: &[u64]) -> (Result<(), BoxError>, Keep, usize) {
    slow_for(STAMP.window, takes).await
}

async fn slow_for(window: Duration, takes: &[u64]) -> (Result<(), BoxError>, Keep, usize) {
    let (clock, keep) = (clock(), Keep::default());
    let signer = Slow {
        window,
        clock: Arc::clone(&clock),
        takes: Arc::new(Mutex::new(takes.iter().rev().copied().collect())),
        signed: Arc::default(),
    };
    let signed = Arc::clone(&signer.signed);
    let layer = SignLayer::builder(signer)
        .origin("https://venue.test")
        .clock(clock)
        .build()
        .unwrap();
    let result = layer.layer(keep.clone()).oneshot(order()).await;
    (result.map(|_| ()), keep, signed.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_signature_that_took_too_long_is_made_again() {
    // Valid for 5 s, of which half a second must be left.
    let (result, keep, signed) = slow(&[4499]).await;
    result.unwrap();
    assert_eq!(signed, 1);
    assert_eq!(keep.0.lock().unwrap()[0].0.headers[TIME], "1700000000000");
    let (result, keep, signed) = slow(&[4500, 10]).await;
    result.unwrap();
    assert_eq!(signed, 2);
    let seen = keep.0.lock().unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].0.headers[TIME], "1700000004500");
    assert_eq!(seen[0].1, "buy 100");
}

#[tokio::test]
async fn a_signature_that_always_takes_too_long_is_refused() {
    let (result, keep, signed) = slow(&[4500, 5000, 6000, 1]).await;
    let (outcome, kind) = refusal(result);
    assert!(matches!(
        outcome,
        Outcome::Retryable {
            reason: Reason::TimedOut,
            ..
        }
    ));
    assert_eq!(kind, SignErrorKind::Stale);
    assert_eq!(signed, 3);
    assert!(keep.0.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_key_service_that_is_down_may_be_up_again() {
    let (result, ..) = slow(&[]).await;
    let (outcome, kind) = refusal(result);
    assert!(outcome.is_retryable());
    assert_eq!(kind, SignErrorKind::Unavailable);
}

#[tokio::test]
async fn a_window_shorter_than_the_margin_is_no_mistake() {
    let hasty = |window| {
        let hasty = Stamp { window, ..STAMP };
        let service = layer(hasty, &clock()).layer(Keep::default());
        service.oneshot(order())
    };
    hasty(ms(500)).await.unwrap();
    hasty(ms(2)).await.unwrap();
    let (outcome, kind) = refusal(hasty(ms(0)).await);
    assert!(outcome.is_retryable());
    assert_eq!(kind, SignErrorKind::Stale);
}

#[tokio::test]
async fn a_short_signature_of_which_more_than_half_is_over_is_made_again() {
    // Of 400 ms, 250 are over.
    let (result, keep, made) = slow_for(ms(400), &[250, 100]).await;
    result.unwrap();
    assert_eq!(made, 2);
    assert_eq!(keep.0.lock().unwrap().len(), 1);
}

/// Signs in its own time.
struct Blocking(Arc<ManualClock>, Duration);

impl Sign for Blocking {
    fn sign(&self, _: &mut Draft, fresh: &Fresh) -> Result<Validity, SignError> {
        self.0.advance(self.1);
        Ok(Validity::for_window(fresh.time(), secs(30)))
    }
}

#[tokio::test]
async fn a_signer_that_blocks_too_long_is_found_out() {
    for (taken, is_sent) in [(ms(29_400), true), (ms(29_500), false), (secs(60), false)] {
        let (clock, keep) = (clock(), Keep::default());
        let service = SignLayer::builder(Blocking(Arc::clone(&clock), taken))
            .origin("https://venue.test")
            .clock(clock)
            .build()
            .unwrap()
            .layer(keep.clone());
        let result = service.oneshot(order()).await.map(drop);
        assert_eq!(
            keep.0.lock().unwrap().len(),
            usize::from(is_sent),
            "{taken:?}"
        );
        if !is_sent {
            assert_eq!(refusal(result).1, SignErrorKind::Stale);
        }
    }
}
