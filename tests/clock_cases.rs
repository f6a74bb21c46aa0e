//! What clocks that differ have done to others, and where each of these situations is shown here.

/// The files in which tests are looked for.
const FILES: &[(&str, &str)] = &[
    (
        "clock",
        concat!(
            include_str!("../crates/tower-outcome-sign/tests/it/clock.rs"),
            include_str!("../crates/tower-outcome-sign/tests/it/clock/dates.rs"),
            include_str!("../crates/tower-outcome-sign/tests/it/clock/offset.rs"),
            include_str!("../crates/tower-outcome-sign/tests/it/clock/source.rs"),
        ),
    ),
    (
        "layer",
        concat!(
            include_str!("../crates/tower-outcome-sign/tests/it/layer.rs"),
            include_str!("../crates/tower-outcome-sign/tests/it/layer/slow.rs"),
        ),
    ),
    ("resent", include_str!("resent.rs")),
    ("signing", include_str!("signing.rs")),
    ("validity", include_str!("signing/validity.rs")),
];

/// A situation, what is right there, and the tests that show it, by file.
struct Case {
    /// The number in the list of failures that were found in the field; 0 for the table of ten by which
    /// AWS clients are tested.
    number: u8,
    situation: &'static str,
    right: &'static str,
    shown: &'static [(&'static str, &'static str)],
}

const CASES: &[Case] = &[
    Case {
        number: 46,
        situation: "one slow time-sync reply among fast ones",
        right: "it shifts nothing: the shortest round trip counts most",
        shown: &[("clock", "one_slow_answer_among_fast_ones_shifts_nothing")],
    },
    Case {
        number: 47,
        situation: "a round trip of 800 ms",
        right: "it is taken out: the server's time was that of the middle",
        shown: &[("clock", "the_round_trip_is_taken_out")],
    },
    Case {
        number: 49,
        situation: "an offset measured once, and refused for its time a day later",
        right: "not applied, learned again at once for all, signed and sent once more",
        shown: &[
            ("clock", "a_drift_is_found_when_it_matters"),
            ("resent", "one_rejection_cures_those_that_follow"),
            (
                "resent",
                "what_is_sent_again_for_its_time_is_counted_by_the_limiter",
            ),
        ],
    },
    Case {
        number: 50,
        situation: "a clock that is six seconds slow",
        right: "the same",
        shown: &[(
            "clock",
            "a_clock_that_is_off_is_corrected_by_the_refusal_itself",
        )],
    },
    Case {
        number: 52,
        situation: "signed, then queued behind the throttler",
        right: "signed after the wait; the wrong order is refused",
        shown: &[
            ("layer", "the_time_is_that_of_sending_and_not_of_the_call"),
            (
                "signing",
                "a_signature_above_the_limiter_is_refused_for_it_would_age_in_the_queue",
            ),
        ],
    },
    Case {
        number: 53,
        situation: "signed before an outage, sent after it",
        right: "a signature that went stale is not sent",
        shown: &[
            ("layer", "a_signer_that_blocks_too_long_is_found_out"),
            (
                "signing",
                "no_signature_is_stale_below_everything_that_waits",
            ),
        ],
    },
    Case {
        number: 55,
        situation: "an offset that was kept after the clock was repaired",
        right: "every answer teaches, and the offset vanishes with its cause",
        shown: &[("clock", "a_clock_that_was_repaired_is_believed_at_once")],
    },
    Case {
        number: 56,
        situation: "wrong credentials that are reported with the code of a wrong time",
        right: "final, unless the date proves that the time of that attempt was wrong",
        shown: &[("clock", "a_refusal_that_the_date_does_not_explain_is_final")],
    },
    Case {
        number: 58,
        situation: "a wrong time that is reported with the code of wrong credentials, twenty minutes off",
        right: "learned, signed and sent once more",
        shown: &[("clock", "a_refusal_that_the_date_does_not_explain_is_final")],
    },
    Case {
        number: 59,
        situation: "an offset that was measured and not signed with",
        right: "the second signature has it, and all that follow",
        shown: &[(
            "clock",
            "a_clock_that_is_off_is_corrected_by_the_refusal_itself",
        )],
    },
    Case {
        number: 61,
        situation: "an attempt that took longer than its signature was good for",
        right: "the time-out of an attempt is below the validity",
        shown: &[("validity", "a_stuck_attempt_ends_before_its_signature_does")],
    },
    Case {
        number: 62,
        situation: "a server time that cannot be read, or signed with",
        right: "the last good offset stays, and nothing invalid is signed",
        shown: &[
            ("clock", "bad_dates_leave_the_last_good_offset"),
            (
                "clock",
                "one_date_beyond_belief_leaves_the_last_good_offset",
            ),
            ("clock", "nonsense_neither_panics_nor_is_believed"),
        ],
    },
    Case {
        number: 74,
        situation: "refused for being ahead of the server, time after time",
        right: "the text says by how much, and how long the answer took",
        shown: &[("clock", "a_server_that_always_refuses_is_asked_twice")],
    },
    Case {
        number: 0,
        situation: "clocks that agree",
        right: "nothing is applied",
        shown: &[("clock", "clocks_that_agree_are_left_alone")],
    },
    Case {
        number: 0,
        situation: "a refusal that is about the time for certain",
        right: "signed and sent once more",
        shown: &[(
            "clock",
            "a_clock_that_is_off_is_corrected_by_the_refusal_itself",
        )],
    },
    Case {
        number: 0,
        situation: "a refusal after which nothing is sent again",
        right: "the offset is learned all the same",
        shown: &[
            ("clock", "a_refusal_that_the_date_does_not_explain_is_final"),
            ("clock", "a_server_that_always_refuses_is_asked_twice"),
        ],
    },
    Case {
        number: 0,
        situation: "an answer that took longer than a quarter of an hour",
        right: "it teaches nothing",
        shown: &[("clock", "an_answer_that_took_too_long_teaches_nothing")],
    },
    Case {
        number: 0,
        situation: "a success after the clock was repaired",
        right: "it teaches as much as a refusal",
        shown: &[("clock", "a_clock_that_was_repaired_is_believed_at_once")],
    },
    Case {
        number: 0,
        situation: "off by less, and by more, than explains the refusal",
        right: "final; signed and sent once more",
        shown: &[("clock", "a_refusal_that_the_date_does_not_explain_is_final")],
    },
    Case {
        number: 0,
        situation: "no date, or an age, on a refusal",
        right: "final, and nothing is learned",
        shown: &[("clock", "a_refusal_without_a_date_to_prove_it_is_final")],
    },
    Case {
        number: 0,
        situation: "no date, or an age, on a success",
        right: "the last good offset stays",
        shown: &[("clock", "bad_dates_leave_the_last_good_offset")],
    },
];

#[test]
fn every_situation_is_shown_by_a_test_that_exists() {
    for case in CASES {
        let Case {
            number,
            situation,
            right,
            shown,
        } = case;
        assert!(!shown.is_empty(), "{number}: {situation}");
        for (file, name) in *shown {
            let source = FILES.iter().find(|(known, _)| known == file).unwrap().1;
            let test = format!("async fn {name}()");
            let plain = format!("\nfn {name}()");
            assert!(
                source.contains(&test) || source.contains(&plain),
                "{number}: nobody shows for \"{situation}\" that {right}: {file} has no {name}",
            );
        }
    }
    let numbers = CASES.iter().map(|case| case.number);
    let field = [46, 47, 49, 50, 52, 53, 55, 56, 58, 59, 61, 62, 74];
    for number in field {
        assert!(numbers.clone().any(|known| known == number), "{number}");
    }
}
