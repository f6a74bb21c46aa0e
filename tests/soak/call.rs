//! A random call.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use tower_outcome::{Deadline, Random, Repeatable, RepeatableBecause, SplitMix64};
use tower_outcome_testkit::{Ledger, fnv1a};

use crate::{
    black_hole::BlackHole,
    body::{self, Body},
    message::framed,
};

/// A random call; the same seed and number make the same.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    number: u64,
    pub(crate) protocol: Protocol,
    method: Method,
    key: bool,
    mark: Option<Repeatable>,
    payload: Payload,
    /// How long the call has, if its caller says.
    pub(crate) deadline: Option<Duration>,
    /// Whether it goes to an address that answers nobody.
    lost: bool,
}

/// The protocol a call is made over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    /// Unary calls, over HTTP/2.
    Grpc,
}

/// The gRPC method that may be repeated.
pub(crate) const GET: &str = "/soak.Orders/Get";

/// The gRPC method that may not.
pub(crate) const PLACE: &str = "/soak.Orders/Place";

/// The body of a call.
#[derive(Clone, Debug)]
pub(crate) enum Payload {
    None,
    Full(Bytes),
    /// Chunks, and whether the whole length is known from the start.
    Stream(Vec<Bytes>, bool),
    /// Chunks, and then an error of the caller's own.
    Failing(Vec<Bytes>),
}

// === impl Call ===

impl Call {
    pub(crate) fn random(seed: u64, number: u64) -> Self {
        let mix =
            SplitMix64::seeded(seed.wrapping_mul(0x9e37_79b9).wrapping_add(number) ^ number << 32);
        let random = |below: u64| mix.next_u64() % below;
        let method = match random(10) {
            0 | 1 => Method::GET,
            2 => Method::PUT,
            3 => Method::DELETE,
            4 => Method::PATCH,
            _ => Method::POST,
        };
        let chunk = || {
            let size = match random(8) {
                0 => 0,
                1 => 20_000 + random(40_000),
                _ => 1 + random(300),
            };
            Bytes::from(vec![b'a' + (random(26) as u8); size as usize])
        };
        let chunks = || (0..1 + random(5)).map(|_| chunk()).collect();
        let payload = match random(20) {
            0..=4 => Payload::None,
            5..=11 => Payload::Full(chunk()),
            12..=18 => Payload::Stream(chunks(), random(2) == 0),
            _ => Payload::Failing(chunks()),
        };
        Self {
            number,
            protocol: match random(3) {
                0 => Protocol::Http1,
                1 => Protocol::Http2,
                _ => Protocol::Grpc,
            },
            method,
            key: random(4) == 0,
            mark: match random(20) {
                0 => Some(Repeatable::Yes(RepeatableBecause::Marked)),
                1 => Some(Repeatable::No),
                _ => None,
            },
            payload,
            deadline: (random(5) == 0).then(|| Duration::from_millis(random(400))),
            lost: random(100) == 0,
        }
    }

    pub(crate) fn operation(number: u64) -> String {
        format!("{number:x}")
    }

    /// Whether sending it twice is harmless, reckoned here and not by the code under test.
    pub(crate) fn is_repeatable(&self) -> bool {
        match self.mark {
            Some(mark) => mark.is_yes(),
            None if self.protocol == Protocol::Grpc => self.grpc_method() == GET,
            None => self.key || self.method.is_idempotent(),
        }
    }

    /// The hash of the body that the venue should see, if it is ever complete.
    pub(crate) fn body_hash(&self) -> Option<u64> {
        if self.protocol == Protocol::Grpc {
            return Some(fnv1a(&framed(&self.message())));
        }
        match &self.payload {
            // HTTP/1 has no framing for a `GET` with a body of unknown length, and hyper leaves it
            // out.
            Payload::Stream(_, false) | Payload::Failing(_)
                if self.protocol == Protocol::Http1 && self.method == Method::GET =>
            {
                Some(fnv1a(b""))
            }
            Payload::None => Some(fnv1a(b"")),
            Payload::Full(bytes) => Some(fnv1a(bytes)),
            Payload::Stream(chunks, _) => Some(fnv1a(&chunks.concat())),
            Payload::Failing(_) => None,
        }
    }

    /// Whether it goes to an address that answers nobody.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost
    }

    pub(crate) fn grpc_method(&self) -> &'static str {
        // Every gRPC request is a `POST`; here it is drawn which of them only asks.
        if self.method.is_idempotent() {
            GET
        } else {
            PLACE
        }
    }

    /// All of the payload in one message.
    fn message(&self) -> Bytes {
        match &self.payload {
            Payload::None => Bytes::new(),
            Payload::Full(bytes) => bytes.clone(),
            Payload::Stream(chunks, _) | Payload::Failing(chunks) => chunks.concat().into(),
        }
    }

    pub(crate) fn grpc_request(&self) -> tonic::Request<Bytes> {
        let mut request = tonic::Request::new(self.message());
        let operation = Self::operation(self.number);
        let operation = operation.parse().expect("hexadecimal digits");
        request
            .metadata_mut()
            .insert(Ledger::OPERATION_HEADER, operation);
        if let Some(mark) = self.mark {
            request.extensions_mut().insert(mark);
        }
        if let Some(limit) = self.deadline {
            request.set_timeout(limit);
        }
        request
    }

    pub(crate) fn request(&self, base: &str, black_hole: &BlackHole) -> Request<Body> {
        let base = if self.lost { &black_hole.base() } else { base };
        let operation = Self::operation(self.number);
        let mut request = Request::new(body::of(&self.payload));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = format!("{base}/{operation}")
            .parse()
            .expect("a loopback address and hexadecimal digits");
        let headers = request.headers_mut();
        let value = HeaderValue::from_str(&operation).expect("hexadecimal digits");
        headers.insert(Ledger::OPERATION_HEADER, value.clone());
        if self.key {
            headers.insert("idempotency-key", value);
        }
        if let Some(mark) = self.mark {
            request.extensions_mut().insert(mark);
        }
        if let Some(limit) = self.deadline {
            request.extensions_mut().insert(Deadline::after(limit));
        }
        request
    }
}
