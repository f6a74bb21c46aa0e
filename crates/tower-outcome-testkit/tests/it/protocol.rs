//! The venue at byte level: what no well-behaved client sends.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use tower_outcome_testkit::raw::frame;
use tower_outcome_testkit::{Answer, Fault, Point, Received, Venue};

use crate::wire::{BOUND, head, http2, kinds, talk};

fn answers_still(venue: &Venue) {
    let answer = talk(venue, b"GET /still HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 200 OK\r\n"), "{answer:?}");
}

/// A number generator good enough to make noise.
fn noise(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn random_bytes_do_not_kill_the_venue() {
    let venue = Venue::start().unwrap();
    let mut state = 0x5eed;
    for round in 0..400 {
        let length = usize::try_from(noise(&mut state) % 300).unwrap();
        let mut bytes: Vec<u8> = (0..length)
            .map(|_| noise(&mut state).to_le_bytes()[0])
            .collect();
        match round % 4 {
            // Noise, noise after a preface, noise as frames, noise in a head.
            0 => {}
            1 => bytes.splice(..0, http2(&[])).for_each(drop),
            2 => {
                let mut frames = http2(&[]);
                for chunk in bytes.chunks(20) {
                    let (kind, flags) = (chunk[0] % 11, *chunk.last().unwrap());
                    frames.extend(frame::frame(kind, flags, u32::from(chunk[0] % 5), chunk));
                }
                bytes = frames;
            }
            _ => bytes
                .splice(
                    ..0,
                    *b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n",
                )
                .for_each(drop),
        }
        talk(&venue, &bytes);
    }
    answers_still(&venue);
    assert!(venue.ledger().closed(BOUND));
}

#[test]
fn damaged_http2_requests_do_not_kill_the_venue() {
    let venue = Venue::start().unwrap();
    let mut state = 0xbad;
    let good = http2(&[
        head(1, false, &[("x-operation-id", "op")]),
        frame::data(1, b"body", false),
        frame::window_update(1, 10),
        frame::ping([1; 8]),
        frame::trailers(1, &[("x-end", "1")]),
    ]);
    for _ in 0..400 {
        let mut bytes = good.clone();
        for _ in 0..=noise(&mut state) % 3 {
            let at = usize::try_from(noise(&mut state)).unwrap() % (bytes.len() - 24) + 24;
            bytes[at] = noise(&mut state).to_le_bytes()[0];
        }
        talk(&venue, &bytes);
    }
    answers_still(&venue);
}

#[test]
fn a_request_over_the_body_limit_is_not_applied() {
    let venue = Venue::builder().body_limit(10).start().unwrap();
    let body = [b'x'; 11];
    talk(
        &venue,
        &[b"POST / HTTP/1.1\r\ncontent-length: 11\r\n\r\n", &body[..]].concat(),
    );
    let chunked =
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nb\r\nxxxxxxxxxxx\r\n0\r\n\r\n";
    talk(&venue, chunked);
    talk(
        &venue,
        &http2(&[head(1, false, &[]), frame::data(1, &body, true)]),
    );
    assert!(venue.ledger().closed(BOUND));
    assert_eq!(venue.ledger().len(), 3);
    assert_eq!(venue.ledger().applied_total(), 0);
}

#[test]
fn a_cut_off_request_is_not_applied() {
    let venue = Venue::start().unwrap();
    talk(&venue, b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhi");
    talk(
        &venue,
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
    );
    talk(
        &venue,
        &http2(&[head(1, false, &[]), frame::data(1, b"hi", false)]),
    );
    assert!(venue.ledger().closed(BOUND));
    for entry in venue.ledger().entries() {
        assert_eq!(
            (entry.received, entry.body_length),
            (Received::Part, 2),
            "{entry:?}"
        );
        assert!(!entry.applied);
    }
}

#[test]
fn chunked_requests_keep_alive_and_expectations_are_understood() {
    let venue = Venue::start().unwrap();
    let answer = talk(
        &venue,
        b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nexpect: 100-continue\r\n\r\n\
          3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nx-end: 1\r\n\r\nGET / HTTP/1.1\r\nconnection: close\r\n\r\n",
    );
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"),
        "{answer}"
    );
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 2, "{answer}");
    let entries = venue.ledger().entries();
    assert_eq!(entries[0].body_length, 5);
    assert_eq!((entries[0].connection, entries[1].connection), (0, 0));
}

#[test]
fn an_answer_that_cannot_have_a_body_has_none() {
    let venue = Venue::builder()
        .answer(|_| Answer::status(204).body("not sent"))
        .start()
        .unwrap();
    let answer = talk(&venue, &http2(&[head(1, true, &[])]));
    assert_eq!(kinds(&answer, 1), [frame::HEADERS]);
    let answer = talk(&venue, b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(answer, b"HTTP/1.1 204 No Content\r\n\r\n");
}

#[test]
fn reset_is_a_reset_and_close_is_an_orderly_end() {
    let venue = Venue::start().unwrap();
    for (at, points) in [(Point::Applied, "applied"), (Point::Response, "response")] {
        for (name, expected) in [("close", None), ("reset", Some(ErrorKind::ConnectionReset))] {
            let fault = format!("{name};at={points}");
            let one = format!("POST / HTTP/1.1\r\nx-fault: {fault}\r\n\r\n").into_bytes();
            let two = http2(&[head(1, true, &[(Fault::HEADER, &fault)])]);
            for bytes in [one, two] {
                let mut stream = TcpStream::connect(venue.addr()).unwrap();
                stream.write_all(&bytes).unwrap();
                let mut answer = Vec::new();
                let end = stream
                    .read_to_end(&mut answer)
                    .err()
                    .map(|error| error.kind());
                assert_eq!(end, expected, "{fault}");
                let answered = answer.windows(4).any(|four| four == b"\"sta");
                assert_eq!(answered, at == Point::Response, "{fault}: {answer:?}");
            }
        }
    }
}

#[test]
fn stale_request_timeout_follows_the_answer_unasked() {
    let venue = Venue::start().unwrap();
    let answer = talk(
        &venue,
        b"GET / HTTP/1.1\r\nx-fault: stale-request-timeout\r\n\r\n",
    );
    let answer = String::from_utf8(answer).unwrap();
    let mut lines = answer.lines().filter(|line| line.contains("HTTP/1.1"));
    assert_eq!(lines.next(), Some("HTTP/1.1 200 OK"));
    assert!(
        answer.contains("HTTP/1.1 408 Request Timeout\r\n"),
        "{answer}"
    );
    assert_eq!(venue.ledger().len(), 1);
}
