//! An upstream, and the stack in front of it.

use std::{fmt, sync::Arc, time::Duration};

use axum::body::Body;
use http::{HeaderName, StatusCode, request};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use tower::Layer;
use tower_outcome::{
    Answer, ConfigError, ConnectTimeoutLayer, ConnectionLimitLayer, DeadlineLayer, HttpClassifier,
    IdempotencyKeyLayer, Judged, Outbound, OutboundClient, OutboundError, RateBudget, Reason,
    RepeatableMethods, ReplayLayer, Template, TimeoutLayer, Timeouts, WitnessConnector,
    timeout::OnAbandoned,
};

use super::{
    config::{Reading, Section, header},
    counters::Counters,
    target::{Base, Prefix},
};

mod credential;
mod limits;
mod retry;
mod signing;
mod times;

pub(crate) use self::limits::Priorities;

/// An upstream.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    pub(crate) prefix: Prefix,
    pub(crate) base: Base,
    /// The whole stack, and the client below it.
    pub(crate) client: OutboundClient<Body>,
    /// The longest that a call may take, and how long one takes whose caller does not say.
    pub(crate) longest: Duration,
    /// `None` where callers have no say.
    pub(crate) priorities: Option<Priorities>,
    /// Whether the upstream is told who calls.
    pub(crate) tells_peer: bool,
    /// Those that requests get on their way: credentials and signatures.
    pub(crate) own_headers: Vec<HeaderName>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) budget: Option<RateBudget>,
    pub(crate) slots: Option<ConnectionLimitLayer<()>>,
    about: String,
}

// === impl Upstream ===

impl Upstream {
    /// Reads an upstream and builds its stack; nothing if any of it is wrong.
    pub(crate) fn read(section: &Section<'_>, reading: &Reading<'_>) -> Option<Self> {
        let name = read_name(section);
        let prefix = read_prefix(section);
        let base = read_base(section, reading.everything_to);
        // What is wrong with the rest is told all the same.
        let origin = base
            .as_ref()
            .map_or("http://upstream.invalid", Base::origin);
        let classifier = read_answers(section);
        let times = section.section("timeouts");
        let timeouts = times::read(times.as_ref());
        let longest = timeouts.as_ref().ok().and_then(Timeouts::call);
        let counters = Arc::new(Counters::default());
        let watched = name.unwrap_or_default();
        let bounds = timeouts
            .clone()
            .map(|timeouts| watch(&timeouts, watched, &counters));
        let retries = section.section("retry");
        let limits = limits::read(section, watched);
        let slots = read_slots(section, timeouts.as_ref().ok());
        let credential = section.section("auth");
        let credentials = credential
            .as_ref()
            .map(|section| credential::read(section, watched, origin, reading));
        let mut own_headers: Vec<HeaderName> =
            credential.as_ref().map_or(Vec::new(), credential::headers);
        let signing = section.section("sign");
        let template = signing
            .as_ref()
            .and_then(|section| signing::read(section, reading));
        own_headers.extend(template.iter().flat_map(Template::headers).cloned());
        let signer = signing::layer(template, signing.as_ref(), origin);
        let replay = section.number("replay_bytes");
        let stack = Outbound::builder()
            .classifier(classifier)
            .replay(replay.map_or(ReplayLayer::new(), ReplayLayer::with_limit))
            .timeouts(bounds)
            .idempotency_key(read_key(section))
            .retry(retry::read(retries.as_ref()))
            // Who asks the upstream what became of an Unknown goes here.
            .auth_refresh(credentials.flatten())
            .rate_limit(limits.layer())
            .connection_limit(slots.clone())
            .sign(signer)
            .build();
        let tells_peer = section.flag("tells_peer");
        for part in [&times, &retries, &credential, &signing]
            .into_iter()
            .flatten()
        {
            part.finish();
        }
        section.finish();
        if let Err(errors) = &stack {
            tell(errors, section);
        }
        // Each of them has been told of.
        let (stack, timeouts) = (stack.ok()?, timeouts.ok()?);
        Some(Self {
            about: about(&timeouts, &limits, signing.is_some()),
            client: stack.boxed(client(&timeouts)),
            name: name?.to_owned(),
            prefix: prefix?,
            base: base?,
            longest: longest?,
            priorities: limits.priorities,
            tells_peer,
            own_headers,
            counters,
            budget: limits.budget,
            slots,
        })
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, origin) = (self.prefix.as_str(), self.base.origin());
        write!(f, "{}: {prefix} to {origin}, {}", self.name, self.about)
    }
}

/// Says what the builder found wrong where the file says it: a step has a section of its name, and in it the
/// fields that its builder has.
fn tell(errors: &OutboundError, section: &Section<'_>) {
    for (step, error) in errors.iter() {
        let field = match (step, error.field()) {
            ("connection_limit", _) => "connection_limit".to_owned(),
            ("auth_refresh", field) => format!("auth.{field}"),
            ("rate_limit", _) => "limit".to_owned(),
            (step, field) => format!("{step}.{field}"),
        };
        section.refused_as(&field, error);
    }
}

/// hyper-util's client as it has to be below a stack, over plain TCP.
fn client<B>(
    timeouts: &Timeouts,
) -> Client<WitnessConnector<tower_outcome::timeout::ConnectTimeout<HttpConnector>>, B>
where
    B: http_body::Body + Send,
    B::Data: Send,
{
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let bounded = ConnectTimeoutLayer::new(timeouts).layer(connector);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .retry_canceled_requests(false)
        .build(WitnessConnector::new(bounded))
}

/// Bounds calls and attempts, and notes what is known of calls whose callers went away: nobody else learns
/// that such an order may have been placed.
fn watch(
    timeouts: &Timeouts,
    name: &str,
    counters: &Arc<Counters>,
) -> (DeadlineLayer, TimeoutLayer) {
    let (name, counters): (Arc<str>, _) = (name.into(), Arc::clone(counters));
    let on_abandoned = move |head: &request::Parts| -> OnAbandoned {
        let (name, counters) = (Arc::clone(&name), Arc::clone(&counters));
        let (method, path) = (head.method.clone(), head.uri.clone());
        Box::new(move |abandoned| {
            let outcome = abandoned.outcome();
            counters.abandoned(&outcome);
            let (path, delivery) = (path.path(), abandoned.delivery().label());
            eprintln!("{name} {method} {path}: the caller went away; {outcome}, {delivery}");
        })
    };
    let deadline = DeadlineLayer::builder(timeouts)
        .on_abandoned(on_abandoned)
        .build();
    (deadline, TimeoutLayer::new(timeouts))
}

/// Reads the name, which is written into lines of logs.
fn read_name<'f>(section: &Section<'f>) -> Option<&'f str> {
    let name = section.needed("name")?;
    let is_line = !name.contains(char::is_control);
    if !is_line {
        section.wrong(
            "name",
            format_args!("{name:?}, expected printable characters"),
        );
    }
    is_line.then_some(name)
}

fn read_prefix(section: &Section<'_>) -> Option<Prefix> {
    let text = section.needed("prefix")?;
    let prefix = Prefix::new(text);
    if prefix.is_none() {
        let expected = "expected / or a path such as /venue, without a slash at its end";
        section.wrong("prefix", format_args!("{text:?}, {expected}"));
    }
    let own = prefix.as_ref().map(Prefix::as_str);
    if matches!(own, Some("/healthz" | "/status")) {
        section.wrong(
            "prefix",
            format_args!("{text:?}, which is a page of the gateway"),
        );
    }
    prefix
}

fn read_base(section: &Section<'_>, everything_to: Option<&str>) -> Option<Base> {
    let text = section.needed("base")?;
    let base = Base::new(text).map_err(|expected| {
        section.wrong("base", format_args!("{text:?}, expected {expected}"));
    });
    match everything_to {
        Some(text) => base.ok().and(Base::new(text).ok()),
        None => base.ok(),
    }
}

/// Judges a change of protocol. Callers' wishes for one are not passed on, so it answers nothing that was
/// asked (RFC 9110, section 15.2.2), and what the upstream does from there on is anybody's guess.
fn unasked_protocol(seen: Judged<'_>) -> Option<Answer> {
    let switched = seen.head.status == StatusCode::SWITCHING_PROTOCOLS;
    switched.then_some(Answer::Unclear {
        reason: Reason::Unrecognized,
        after: None,
        transient: false,
    })
}

/// What this API promises of its answers, shared by all layers.
fn read_answers(section: &Section<'_>) -> HttpClassifier {
    let mut builder = HttpClassifier::builder().head_rule(unasked_protocol);
    let key = section.section("idempotency_key");
    builder = match &key {
        Some(key) => builder.idempotency_key_header(key_header(key)),
        // Callers may set what they like, and an upstream that knows no keys acts on each request.
        None => builder.without_idempotency_key(),
    };
    let Some(answers) = section.section("answers") else {
        return builder.build().unwrap_or_default();
    };
    let words = [
        ("idempotent", RepeatableMethods::Idempotent),
        ("safe", RepeatableMethods::Safe),
    ];
    if let Some(methods) = answers.one_of("repeatable", &words) {
        builder = builder.repeatable_methods(methods);
    }
    let mut refused = Vec::new();
    for number in answers.numbers("refused") {
        match StatusCode::from_u16(number) {
            Ok(status) => refused.push(status),
            Err(_) => answers.wrong("refused", format_args!("{number}, which is no status")),
        }
    }
    answers.finish();
    if !refused.is_empty() {
        builder = builder.refuses_before_acting(refused);
    }
    builder.build().unwrap_or_else(|error| {
        answers.refused_as("refused", &error);
        HttpClassifier::new()
    })
}

fn read_key(section: &Section<'_>) -> Option<IdempotencyKeyLayer> {
    let key = section.section("idempotency_key")?;
    let name = key_header(&key);
    let generates = key.flag("generate");
    key.finish();
    generates.then(|| IdempotencyKeyLayer::random().header(name))
}

fn key_header(section: &Section<'_>) -> HeaderName {
    header(section, "header").unwrap_or(HeaderName::from_static("idempotency-key"))
}

fn read_slots(
    section: &Section<'_>,
    timeouts: Option<&Timeouts>,
) -> Option<ConnectionLimitLayer<()>> {
    let requests = section.number("connection_limit")?;
    let defaults = Timeouts::new();
    let layer: Result<_, ConfigError> = ConnectionLimitLayer::builder(requests)
        .timeouts(timeouts.unwrap_or(&defaults))
        // There is one origin, and so one count.
        .key(|_| ())
        .build();
    layer
        .map_err(|error| section.refused_as("connection_limit", &error))
        .ok()
}

/// What `--check` says of it.
fn about(timeouts: &Timeouts, limits: &limits::Limits, signs: bool) -> String {
    let call = timeouts.call().unwrap_or_default();
    let mut about = format!("at most {call:?}");
    if let Some(budget) = &limits.budget {
        let snapshot = budget.snapshot();
        let names: Vec<&str> = snapshot
            .limits
            .iter()
            .map(|limit| limit.name.as_str())
            .collect();
        about.push_str(&format!(", limits: {}", names.join(", ")));
    }
    if signs {
        about.push_str(", signed");
    }
    about
}
