//! Making the calls.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::uri::PathAndQuery;
use http_body_util::BodyExt;
use tokio::time::Instant;
use tonic::{Request, Response, Status};
use tower_outcome::{BoxError, CallReport, Outcome};

use crate::{
    black_hole::BlackHole,
    call::{Call, Protocol},
    codec::Plain,
    stack::{CALL, Grpc, Http, Shared},
    tally::{Ending, Tally},
};

/// What a call may be late before its caller stops waiting: then the deadline does not work.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many channels share the gRPC calls: a channel is one connection, and its end is the end of all that is
/// on it.
const CHANNELS: usize = 8;

/// A client for each protocol, with the stack under test around it.
#[derive(Clone)]
pub(crate) struct Clients {
    http1: Http,
    http2: Http,
    grpc: Arc<[Grpc]>,
    /// A channel has one address.
    grpc_lost: Grpc,
    http_base: Arc<str>,
    black_hole: Arc<BlackHole>,
    tally: Arc<Tally>,
}

// === impl Clients ===

impl Clients {
    /// Of the venues that speak HTTP and gRPC.
    pub(crate) fn new(http: &Shared, grpc: &Shared, tally: &Arc<Tally>) -> Self {
        let black_hole = Arc::new(BlackHole::open());
        Self {
            http1: http.http(Protocol::Http1, tally),
            http2: http.http(Protocol::Http2, tally),
            grpc: (0..CHANNELS)
                .map(|_| grpc.grpc(grpc.base(), tally))
                .collect(),
            grpc_lost: grpc.grpc(&black_hole.base(), tally),
            http_base: http.base().into(),
            black_hole,
            tally: Arc::clone(tally),
        }
    }

    /// Makes one call and reads the response to its end.
    pub(crate) async fn send(&self, call: &Call) -> Ending {
        let limit = call.deadline.unwrap_or(CALL);
        let started = Instant::now();
        let answered = async {
            match call.protocol {
                Protocol::Http1 => self.over_http(&self.http1, call).await,
                Protocol::Http2 => self.over_http(&self.http2, call).await,
                Protocol::Grpc => self.over_grpc(call).await,
            }
        };
        // Whoever stops waiting does not know, and says so.
        let ending = tokio::time::timeout(limit + PATIENCE, answered).await;
        Ending {
            late: started.elapsed().saturating_sub(limit),
            ..ending.unwrap_or(Ending::GAVE_UP)
        }
    }

    async fn over_http(&self, stack: &Http, call: &Call) -> Ending {
        let result = stack
            .send(call.request(&self.http_base, &self.black_hole))
            .await;
        let report = CallReport::in_result(&result).cloned();
        let outcome = CallReport::outcome_of(&result);
        match result {
            Ok(response) => match response.into_body().collect().await {
                Ok(_) => Ending::of_response(outcome, report.as_ref()),
                Err(error) => self.failed(&error),
            },
            Err(error) => self.failed(&error),
        }
    }

    async fn over_grpc(&self, call: &Call) -> Ending {
        let stack = if call.is_lost() {
            &self.grpc_lost
        } else {
            &self.grpc[call.grpc_channel(CHANNELS)]
        };
        let answered = unary(stack.clone(), call.grpc_request(), call.grpc_method());
        match answered.await {
            Ok(response) => {
                let report = CallReport::of(response.extensions());
                let outcome = report.map_or(Outcome::Success, CallReport::outcome);
                Ending::of_response(outcome, report)
            }
            Err(status) => self.failed(&status.into()),
        }
    }

    fn failed(&self, error: &BoxError) -> Ending {
        self.tally.observe_end(error);
        Ending::of_error(error)
    }
}

/// Makes a unary call as generated code does.
async fn unary(
    stack: Grpc,
    request: Request<Bytes>,
    method: &'static str,
) -> Result<Response<Bytes>, Status> {
    let mut client = tonic::client::Grpc::new(stack);
    client.ready().await?;
    let path = PathAndQuery::from_static(method);
    client.unary(request, path, Plain).await
}
