//! HTTP/2 at frame level: windows, announcements, header blocks.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use tower_outcome_testkit::raw::frame;
use tower_outcome_testkit::{Answer, Fault, Last, Point, Received, Venue};

use crate::wire::{BOUND, frames, head, http2, kinds, talk};

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
fn a_client_may_not_grow_the_header_table() {
    let venue = Venue::start().unwrap();
    // Dynamic table size updates to 4096 and to 4097, then `:method: POST` and `:path: /`.
    for (update, accepted) in [([0x3f, 0xe1, 0x1f], true), ([0x3f, 0xe2, 0x1f], false)] {
        let block = [&update[..], &[0x83, 0x84]].concat();
        let flags = frame::END_HEADERS | frame::END_STREAM;
        let answer = talk(
            &venue,
            &http2(&[frame::frame(frame::HEADERS, flags, 1, &block)]),
        );
        assert_eq!(kinds(&answer, 1).contains(&frame::HEADERS), accepted);
        let goaway = frames(&answer)
            .into_iter()
            .find(|frame| frame.0 == frame::GOAWAY);
        let code = goaway.map(|frame| frame.2[4..8].to_vec());
        let expected = (!accepted).then(|| frame::COMPRESSION_ERROR.to_be_bytes().to_vec());
        assert_eq!(code, expected);
    }
    assert_eq!(venue.ledger().applied_total(), 1);
}

#[test]
fn the_window_of_the_connection_bounds_all_streams_together() {
    let venue = Venue::builder()
        .answer(|_| Answer::status(200).body(vec![7; 50_000]))
        .start()
        .unwrap();
    let bytes = http2(&[
        frame::settings(&[(frame::INITIAL_WINDOW_SIZE, 1 << 20)]),
        head(1, true, &[]),
        head(3, true, &[]),
    ]);
    let sent: usize = frames(&talk(&venue, &bytes))
        .into_iter()
        .filter(|frame| frame.0 == frame::DATA)
        .map(|frame| frame.2.len())
        .sum();
    assert_eq!(sent, 65_535);
}

#[test]
fn an_early_answer_to_an_upload_ends_the_stream_without_blame() {
    let venue = Venue::start().unwrap();
    let fault = Fault::EarlyAnswer {
        code: 413,
        drain: false,
    };
    let upload = head(1, false, &[(Fault::HEADER, &fault.to_string())]);
    let answer = talk(&venue, &http2(&[upload]));
    let expected = [frame::HEADERS, frame::DATA, frame::DATA, frame::RST_STREAM];
    assert_eq!(kinds(&answer, 1), expected);
    let reset = frames(&answer).pop().unwrap();
    assert_eq!(reset.2, frame::NO_ERROR.to_be_bytes());
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
