//! What real clients report when servers misbehave, and what this family makes of it.
//!
//! hyper, h2 and tonic promise little about their errors, so what the delivery evidence rests on is
//! tried here against servers that are scripted down to the byte. Each scenario runs twice: with the
//! client's bare error, and with both witnesses around the client. A proof is held against what the
//! server has read; where a race decides, every verdict of the set is checked.

mod client;
mod connector;
mod grpc;
mod peer;
mod verdict;

mod connect;
mod http1;
mod http1_handed_back;
mod http1_reused;
mod http2;
mod http2_shared;
mod raw;
mod request_body;
mod response_body;
mod retry;
mod tonic;
mod tonic_shared;
