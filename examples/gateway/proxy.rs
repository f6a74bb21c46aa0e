//! From a request of a caller to a request to an upstream.

use std::{net::SocketAddr, sync::Arc};

use axum::{
    body::Body,
    extract::{ConnectInfo, State},
};
use http::{Request, Response, StatusCode, Version};

use super::{
    answer, caller, config::Config, headers, problem::Problem, target, upstream::Upstream,
};

/// Sends a request to the upstream that its path belongs to.
///
/// The body is streamed, and so is that of the answer. If the caller goes away, the future is dropped, and
/// the call with it.
pub(crate) async fn forward(
    State(config): State<Arc<Config>>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request<Body>,
) -> Response<Body> {
    let Some(path) = target::plain(request.uri().path()) else {
        let problem =
            not_understood("the path has segments that go up, or escaped dots or slashes");
        return answer::refuse(problem);
    };
    let path = path.into_owned();
    let Some(upstream) = config.upstream_of(&path) else {
        let title = "No upstream has this path";
        let problem = Problem::new(StatusCode::NOT_FOUND, "no-upstream", title);
        return answer::refuse(problem);
    };
    let request = match prepare(&config, upstream, peer, &path, request) {
        Ok(request) => request,
        Err(problem) => return answer::refuse(problem),
    };
    let open = upstream.counters.begin();
    let what = format!(
        "{} {} {}",
        upstream.name,
        request.method(),
        request.uri().path()
    );
    let result = upstream.client.send(request).await;
    answer::make(result, upstream, open, &what)
}

/// Makes the request that the upstream gets.
fn prepare(
    config: &Config,
    upstream: &Upstream,
    peer: SocketAddr,
    path: &str,
    request: Request<Body>,
) -> Result<Request<Body>, Problem> {
    let (mut head, body) = request.into_parts();
    let rest = upstream.prefix.rest(path).unwrap_or_default();
    let Some(uri) = upstream.base.target(rest, head.uri.query()) else {
        return Err(not_understood("the path is too long, or none"));
    };
    let wishes = caller::read(&mut head.headers, &config.names, upstream)?;
    let told = upstream.tells_peer.then(|| peer.ip());
    headers::for_upstream(&mut head.headers, told);
    // What the caller has is for this gateway, and would win over what is put on below, or be in its way.
    for name in &upstream.own_headers {
        head.headers.remove(name);
    }
    // Not those of the caller's connection.
    head.extensions = http::Extensions::new();
    head.extensions.insert(wishes.deadline);
    if let Some(priority) = wishes.priority {
        head.extensions.insert(priority);
    }
    head.uri = uri;
    head.version = Version::HTTP_11;
    Ok(Request::from_parts(head, body))
}

fn not_understood(detail: &str) -> Problem {
    let title = "The request cannot be understood";
    Problem::new(StatusCode::BAD_REQUEST, "bad-request", title).with("detail", detail)
}

impl Config {
    /// Finds the upstream that a path belongs to: of those that have it, the one with the longest prefix.
    fn upstream_of(&self, path: &str) -> Option<&Upstream> {
        let having = |upstream: &&Upstream| upstream.prefix.rest(path).is_some();
        let upstreams = self.upstreams.iter().filter(having);
        let upstream = upstreams.max_by_key(|upstream| upstream.prefix.len());
        // Neither the `*` of OPTIONS nor the authority of CONNECT is a path.
        upstream.filter(|_| path.starts_with('/'))
    }
}
