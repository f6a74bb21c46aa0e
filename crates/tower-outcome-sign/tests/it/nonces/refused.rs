//! Nonces that are refused, and turns that are passed on all the same.

use super::*;

#[tokio::test(start_paused = true)]
async fn no_date_moves_a_nonce() {
    // Ten minutes and two days off are believed for the time, and not for the key.
    for date in [
        "Tue, 14 Nov 2023 22:23:20 GMT",
        "Thu, 16 Nov 2023 22:13:20 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
        "Sun, 01 Jan 2090 00:00:00 GMT",
    ] {
        for unit in [Unit::Millis, Unit::Nanos] {
            let nonces = Nonces::new(unit);
            let answer = move |_: Request<SignedBody<Full<Bytes>>>| async move {
                let response = Response::builder().header("date", date);
                Ok::<_, BoxError>(response.body(Full::<Bytes>::default()).unwrap())
            };
            let service = SignLayer::builder(STAMP)
                .origin("https://venue.test")
                .clock(Arc::new(ManualClock::new(at_ms(NOW))))
                .clock_offset(ClockOffset::new())
                .nonces(nonces.clone())
                .build()
                .unwrap()
                .layer(tower::service_fn(answer));
            for _ in 0..5 {
                service.clone().oneshot(order()).await.unwrap();
            }
            assert_eq!(nonces.high_water(), time(NOW).count(unit) + 4, "{date}");
            // A restart goes on from there.
            let after = Nonces::builder(unit).starting_after(nonces.high_water());
            after.build(time(NOW)).unwrap();
        }
    }
}

/// Answers in turn: 400 with an invalid nonce where it says `nonce`, else that status.
#[derive(Clone)]
struct InTurn {
    answers: &'static [&'static str],
    calls: Arc<AtomicUsize>,
}

fn in_turn(answers: &'static [&'static str]) -> InTurn {
    let calls = Arc::default();
    InTurn { answers, calls }
}

impl tower::Service<Request<SignedBody<Full<Bytes>>>> for InTurn {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<SignedBody<Full<Bytes>>>) -> Self::Future {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let response = match self.answers[call % self.answers.len()] {
            "nonce" => Response::builder().status(400).header("x-error", "nonce"),
            status => Response::builder().status(status.parse::<u16>().unwrap()),
        };
        std::future::ready(Ok(response.body(Full::default()).unwrap()))
    }
}

#[tokio::test]
async fn an_answer_that_proves_the_nonce_was_accepted_forgets_refusals() {
    // What a venue says of a request only after its signature and its nonce.
    for status in ["200", "204", "404", "409", "422"] {
        let answers: &[&str] = match status {
            "200" => &["nonce", "200"],
            "204" => &["nonce", "204"],
            "404" => &["nonce", "404"],
            "409" => &["nonce", "409"],
            _ => &["nonce", "422"],
        };
        let nonces = Nonces::new(Unit::Millis);
        let service = layer(&nonces).layer(in_turn(answers));
        for _ in 0..10 {
            let response = service.clone().oneshot(order()).await.unwrap();
            assert_ne!(response.status(), 400, "{status}");
        }
        assert!(!nonces.is_stopped(), "{status}");
    }
}

#[tokio::test]
async fn an_answer_that_proves_nothing_of_the_nonce_forgets_nothing() {
    // A gateway, a limiter or an authenticator may have said it before the nonce was looked at.
    for answers in [
        &["nonce", "401"][..],
        &["nonce", "429"],
        &["nonce", "503"],
        &["nonce", "500"],
    ] {
        let nonces = Nonces::new(Unit::Millis);
        let service = layer(&nonces).layer(in_turn(answers));
        for _ in 0..3 {
            service.clone().oneshot(order()).await.unwrap();
        }
        assert!(nonces.is_stopped(), "{answers:?}");
    }
}

#[tokio::test]
async fn requests_that_overtake_each_other_do_not_stop_the_key() {
    let nonces = Nonces::new(Unit::Millis);
    let (mock, mut handle): (Pair, _) = tower_test::mock::pair();
    let service = layer(&nonces).layer(mock);
    let mut high = 0;
    for _ in 0..5 {
        let calls: Vec<_> = (0..10)
            .map(|_| tokio::spawn(service.clone().oneshot(order())))
            .collect();
        // As sent, and once more those that were refused.
        for _ in 0..2 {
            let mut taken = Vec::new();
            for _ in 0..1000 {
                tokio::task::yield_now().await;
                let mut next = task::spawn(handle.next_request());
                if let Poll::Ready(Some(next)) = next.poll() {
                    taken.push(next);
                }
            }
            // The last arrives first; the refusals are heard before its acceptance.
            let mut answers = Vec::new();
            while let Some((request, send)) = taken.pop() {
                let nonce = request.headers()[NONCE].to_str().unwrap();
                let nonce: u64 = nonce.parse().unwrap();
                answers.push((nonce > high, send));
                high = high.max(nonce);
            }
            while let Some((accepted, send)) = answers.pop() {
                let response = Response::builder();
                let response = if accepted {
                    response
                } else {
                    response.status(400).header("x-error", "nonce")
                };
                send.send_response(response.body(Full::default()).unwrap());
            }
        }
        for call in calls {
            call.await.unwrap().unwrap();
        }
        assert!(!nonces.is_stopped());
    }
}

#[tokio::test]
async fn a_key_that_is_refused_for_good_is_stopped_under_load_too() {
    let (nonces, server) = (Nonces::new(Unit::Millis), Server::new(NOW * 1000));
    let service = layer(&nonces).layer(server.clone());
    let calls: Vec<_> = (0..100)
        .map(|_| tokio::spawn(service.clone().oneshot(order())))
        .collect();
    for call in calls {
        let _ = call.await.unwrap();
    }
    for _ in 0..2 {
        let _ = service.clone().oneshot(order()).await;
    }
    assert!(nonces.is_stopped());
    let error = service.oneshot(order()).await.unwrap_err();
    let text = SignError::of(&*error).unwrap().to_string();
    assert!(text.contains("overtook"), "{text}");
}

/// Panics once when it is asked, and again when its service below is made ready.
#[derive(Clone, Copy, Debug)]
enum Panics {
    Signing,
    SigningLater,
    Readying,
}

impl AsyncSign for Panics {
    type Future = Pin<Box<dyn Future<Output = Result<Signed, SignError>> + Send>>;

    fn sign_now(&self, _: &mut Draft, _: &Fresh) -> Option<Result<Validity, SignError>> {
        match self {
            Self::Signing => panic!("on purpose"),
            Self::SigningLater => None,
            Self::Readying => Some(Ok(Validity::UNLIMITED)),
        }
    }

    fn sign_async(&self, _: Draft, _: Fresh) -> Self::Future {
        Box::pin(async { panic!("on purpose") })
    }
}

/// Panics when it is made ready.
#[derive(Clone)]
struct NotReady(Panics);

impl tower::Service<Request<SignedBody<Full<Bytes>>>> for NotReady {
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.0 {
            Panics::Readying => panic!("on purpose"),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: Request<SignedBody<Full<Bytes>>>) -> Self::Future {
        unreachable!("nothing is signed")
    }
}

#[tokio::test]
async fn a_panic_passes_on_the_turn() {
    for panics in [Panics::Signing, Panics::SigningLater, Panics::Readying] {
        let nonces = strict(Strict::UntilAnswered);
        let bad = SignLayer::builder(panics)
            .origin("https://venue.test")
            .nonces(nonces.clone())
            .build()
            .unwrap();
        let mut call = task::spawn(bad.layer(NotReady(panics)).oneshot(order()));
        let poll = std::panic::AssertUnwindSafe(|| call.poll());
        std::panic::catch_unwind(poll).unwrap_err();
        // Although somebody still holds what is left of it.
        let good = layer(&nonces).layer(Server::new(NOW));
        let next = tokio::spawn(good.oneshot(order()));
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(next.is_finished(), "{panics:?}");
        drop(call);
    }
}
