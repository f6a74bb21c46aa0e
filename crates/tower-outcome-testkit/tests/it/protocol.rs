//! The venue at byte level: what no well-behaved client sends.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use tower_outcome_testkit::raw::frame;
use tower_outcome_testkit::{Answer, Fault, Last, Point, Received, Venue};

const BOUND: Duration = Duration::from_secs(60);

/// Sends bytes and returns everything that comes back until the venue closes.
fn talk(venue: &Venue, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(venue.addr()).unwrap();
    // The venue may close or reset while this is written.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

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

fn http2(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = frame::PREFACE.to_vec();
    bytes.extend(frame::settings(&[]));
    bytes.extend(frames.concat());
    bytes
}

fn head(stream: u32, end_stream: bool, more: &[(&str, &str)]) -> Vec<u8> {
    let mut headers = vec![(":method", "POST"), (":path", "/"), (":scheme", "http")];
    headers.extend_from_slice(more);
    frame::headers(stream, &headers, end_stream)
}

/// The frames in what came back: type, stream, payload.
fn frames(mut bytes: &[u8]) -> Vec<(u8, u32, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<9>() {
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        frames.push((head[3], stream, rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    frames
}

fn kinds(bytes: &[u8], stream: u32) -> Vec<u8> {
    frames(bytes)
        .into_iter()
        .filter(|frame| frame.1 == stream)
        .map(|frame| frame.0)
        .collect()
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
fn a_client_that_leaves_within_the_preface_is_noticed() {
    let venue = Venue::start().unwrap();
    for length in [0, 1, 23] {
        assert_eq!(talk(&venue, &frame::PREFACE[..length]), b"");
    }
    assert!(venue.ledger().closed(BOUND));
    assert_eq!(venue.ledger().connections(), 3);
}

#[test]
fn a_preface_in_two_parts_is_understood() {
    let venue = Venue::start().unwrap();
    let mut stream = TcpStream::connect(venue.addr()).unwrap();
    let bytes = http2(&[head(1, true, &[("x-operation-id", "op")])]);
    stream.write_all(&bytes[..9]).unwrap();
    assert!(venue.ledger().settle(BOUND));
    stream.write_all(&bytes[9..]).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(venue.ledger().closed(BOUND));
    assert_eq!(venue.ledger().applied("op"), 1);
}

#[test]
fn a_client_that_has_finished_sending_still_gets_its_answers() {
    // The end of the input was taken for the end of the connection, by chance before the
    // answers were written.
    let (release, held) = std::sync::mpsc::channel();
    let (enter, entered) = std::sync::mpsc::channel();
    let held = std::sync::Mutex::new((enter, held));
    let venue = Venue::builder()
        .answer(move |request| {
            if request.path == "/hold" {
                let (enter, held) = &*held.lock().unwrap();
                enter.send(()).unwrap();
                held.recv().unwrap();
            }
            Answer::json(200, "{}")
        })
        .start()
        .unwrap();
    for _ in 0..30 {
        // While this is held the venue's thread sees nothing, then everything at once.
        let mut holder = TcpStream::connect(venue.addr()).unwrap();
        holder.write_all(b"GET /hold HTTP/1.1\r\n\r\n").unwrap();
        entered.recv().unwrap();
        let mut stream = TcpStream::connect(venue.addr()).unwrap();
        let bytes = http2(&[head(1, true, &[]), head(3, true, &[])]);
        stream.write_all(&bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        release.send(()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        for stream in [1, 3] {
            let kinds = kinds(&answer, stream);
            assert_eq!(kinds, [frame::HEADERS, frame::DATA, frame::DATA]);
        }
    }
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
fn continuation_padding_priority_and_trailers_are_understood() {
    let venue = Venue::start().unwrap();
    let whole = head(
        1,
        false,
        &[("x-operation-id", "op"), ("x-pad", &"v".repeat(90))],
    );
    let block = &whole[9..];
    let mut first = vec![3, 0, 0, 0, 0, 16];
    first.extend_from_slice(&block[..20]);
    first.extend_from_slice(&[0; 3]);
    let padded_with_priority = frame::PADDED | frame::WITH_PRIORITY;
    let mut data = vec![4];
    data.extend_from_slice(b"body");
    data.extend_from_slice(&[0; 4]);
    let bytes = http2(&[
        frame::frame(frame::HEADERS, padded_with_priority, 1, &first),
        frame::frame(frame::CONTINUATION, 0, 1, &block[20..50]),
        frame::frame(frame::CONTINUATION, frame::END_HEADERS, 1, &block[50..]),
        frame::frame(frame::DATA, frame::PADDED, 1, &data),
        frame::trailers(1, &[("x-end", "1")]),
    ]);
    let mut stream = TcpStream::connect(venue.addr()).unwrap();
    stream.write_all(&bytes).unwrap();
    let ledger = venue.ledger();
    while ledger.applied("op") == 0 {
        assert!(ledger.settle(BOUND));
    }
    assert_eq!(ledger.entries()[0].body_length, 4);
}

#[test]
fn answers_wait_for_the_window_of_the_client() {
    let venue = Venue::start().unwrap();
    let mut stream = TcpStream::connect(venue.addr()).unwrap();
    let mut bytes = frame::PREFACE.to_vec();
    bytes.extend(frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 4)]));
    bytes.extend(head(1, true, &[("x-operation-id", "op")]));
    stream.write_all(&bytes).unwrap();
    let mut next = || loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[2])];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == frame::DATA {
            return payload.len();
        }
    };
    assert_eq!(next(), 4);
    assert!(
        !venue.ledger().settle(Duration::ZERO),
        "the answer is not out"
    );
    let mut other = stream.try_clone().unwrap();
    other.write_all(&frame::window_update(1, 3)).unwrap();
    let mut next = || loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).unwrap();
        let mut payload = vec![0; usize::from(head[2])];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == frame::DATA {
            return payload.len();
        }
    };
    assert_eq!(next(), 3);
    other.write_all(&frame::window_update(1, 100)).unwrap();
    let rest = r#"{"status":"applied"}"#.len() - 7;
    assert_eq!(next(), rest);
    assert_eq!(next(), 0, "the end of the stream");
}

#[test]
fn settings_change_the_windows_of_open_streams() {
    let venue = Venue::start().unwrap();
    let answer = talk(
        &venue,
        &http2(&[
            head(1, false, &[]),
            frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 5)]),
            frame::data(1, b"", true),
        ]),
    );
    let sent: Vec<usize> = frames(&answer)
        .into_iter()
        .filter(|frame| frame.0 == frame::DATA)
        .map(|frame| frame.2.len())
        .collect();
    assert_eq!(sent, [5], "no more than the window and no end");
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
fn streams_above_the_announced_id_are_never_applied() {
    let venue = Venue::start().unwrap();
    let fault = Fault::GoAway {
        last: Last::Below,
        code: 0,
        applied: false,
        close: false,
    };
    let answer = talk(
        &venue,
        &http2(&[
            head(1, true, &[("x-operation-id", "1")]),
            // Open when the announcement is made, and above it.
            head(5, false, &[("x-operation-id", "5")]),
            head(
                7,
                true,
                &[("x-operation-id", "7"), (Fault::HEADER, &fault.to_string())],
            ),
            frame::data(5, b"late", true),
            head(9, true, &[("x-operation-id", "9")]),
        ]),
    );
    let ledger = venue.ledger();
    assert!(ledger.closed(BOUND));
    let goaway = frames(&answer)
        .into_iter()
        .find(|frame| frame.0 == frame::GOAWAY)
        .unwrap();
    let last = u32::from_be_bytes(goaway.2[..4].try_into().unwrap());
    assert_eq!(last, 5, "7 - 2: nothing above was applied");
    assert_eq!(ledger.applied("1"), 1);
    assert_eq!(ledger.applied("5"), 1, "5 is not above");
    assert_eq!(ledger.applied("7"), 0);
    assert_eq!(ledger.applied("9"), 0);
    assert_eq!(ledger.attempts("9"), 1, "it was seen all the same");
    assert_eq!(kinds(&answer, 9), []);
}

#[test]
fn announced_id_is_raised_to_what_was_applied() {
    let venue = Venue::start().unwrap();
    let fault = Fault::GoAway {
        last: Last::Exactly(1),
        code: 0,
        applied: true,
        close: false,
    };
    let answer = talk(
        &venue,
        &http2(&[
            head(
                3,
                false,
                &[("x-operation-id", "3"), (Fault::HEADER, &fault.to_string())],
            ),
            head(5, true, &[("x-operation-id", "5")]),
            frame::data(3, b"", true),
        ]),
    );
    let ledger = venue.ledger();
    assert!(ledger.closed(BOUND));
    let goaway = frames(&answer)
        .into_iter()
        .find(|frame| frame.0 == frame::GOAWAY)
        .unwrap();
    assert_eq!(goaway.2[..4], 5_u32.to_be_bytes());
    assert_eq!(ledger.applied("5"), 1);
    assert_eq!(ledger.applied("3"), 0);
    assert!(
        kinds(&answer, 3).contains(&frame::RST_STREAM),
        "3 is covered, so it is reset"
    );
}

#[test]
fn stalled_upload_is_not_read_further() {
    let venue = Venue::start().unwrap();
    let fault = Fault::Stall { at: Point::Head };
    let answer = talk(
        &venue,
        &http2(&[
            head(
                1,
                false,
                &[
                    ("x-operation-id", "op"),
                    (Fault::HEADER, &fault.to_string()),
                ],
            ),
            frame::data(1, b"body", false),
        ]),
    );
    assert!(venue.ledger().closed(BOUND));
    assert_eq!(kinds(&answer, 1), [], "neither an answer nor more window");
    let entry = venue.ledger().entries().remove(0);
    assert_eq!((entry.received, entry.body_length), (Received::Head, 0));
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
