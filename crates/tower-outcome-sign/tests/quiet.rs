//! Signing changes nothing outside itself, and tells nobody. One test, because it is about the process.
#![cfg(feature = "aws-sigv4")]

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use tower_outcome_sign::{AwsCredentials, AwsSigner, Draft, Fresh, Sign, SigningTime, Unit};

/// Keeps everything that is logged.
struct Log(Mutex<String>);

static LOG: Log = Log(Mutex::new(String::new()));

impl log::Log for Log {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.push_str(&format!("{}: {}\n", record.target(), record.args()));
    }

    fn flush(&self) {}
}

#[test]
fn the_log_of_a_process_is_as_it_was_after_a_signature() {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    // Without a subscriber, what is traced goes to the log.
    tracing::trace!("heard before");
    let credentials = AwsCredentials::new("AKIDEXAMPLE", "hunter2-secret").unwrap();
    let credentials = credentials.with_session_token("hunter2-token").unwrap();
    let signer = AwsSigner::new(credentials, "us-east-1", "s3").unwrap();
    let presigned = signer.clone().presigned(Duration::from_secs(60)).unwrap();
    let fresh = Fresh::new(SigningTime::from_unit(1_700_000_000, Unit::Seconds).unwrap());
    for signer in [signer, presigned] {
        // The second one cannot be signed.
        for (uri, works) in [("https://b.s3.test/a", true), ("/?a=%FF", false)] {
            let request = Request::get(uri).body(Bytes::new()).unwrap();
            let signed = signer.sign(&mut Draft::new(request), &fresh);
            assert_eq!(signed.is_ok(), works);
        }
    }
    tracing::trace!("heard after");
    assert!(!tracing::dispatcher::has_been_set());
    let text = LOG.0.lock().unwrap();
    assert!(text.contains("heard before"), "{text}");
    assert!(text.contains("heard after"), "{text}");
    for secret in ["hunter2", "AKIDEXAMPLE"] {
        assert!(!text.contains(secret), "{text}");
    }
}
