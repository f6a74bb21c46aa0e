//! Dates that are none.

use super::*;

const FIRST: &str = "Thu, 01 Jan 1970 00:00:00 GMT";
const LAST: &str = "Fri, 31 Dec 9999 23:59:59 GMT";
const LATER: &str = "Sun, 01 Jan 2090 00:00:00 GMT";

#[tokio::test(start_paused = true)]
async fn one_date_beyond_belief_leaves_the_last_good_offset() {
    for dates in [
        &[FIRST][..],
        &[LAST],
        &[LATER],
        &["Sun, 06 Nov 1994 08:49:37 GMT"],
        &[FIRST, "right"],
        &["right", LATER],
    ] {
        let client = Client::new(6_000);
        assert_eq!(client.came().await, RESIGNED);
        for _ in 0..20 {
            assert_eq!(client.came().await, FINE, "{dates:?}");
        }
        let before = client.offset.estimate().unwrap().millis();
        client.server.set(|state| state.dates = Dates::These(dates));
        assert_eq!(client.came().await, FINE, "{dates:?}");
        client.server.set(|state| state.dates = Dates::Missing);
        assert_eq!(client.came().await, FINE, "{dates:?}");
        near(&client.offset, before, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_a_date_beyond_belief_goes_to_the_caller() {
    for dates in [&[FIRST], &[LAST], &[LATER]] {
        let client = Client::new(0);
        client.server.set(|state| {
            state.window = (-1, -1);
            state.dates = Dates::These(dates);
        });
        assert_eq!(client.came().await, REFUSED, "{dates:?}");
        assert_eq!(client.offset.estimate(), None, "{dates:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_starts_in_1970_is_corrected_when_three_answers_agree() {
    // The local clock has no battery.
    let years = 50 * 365 * 86_400_000;
    let client = Client::new(years);
    assert_eq!(client.came().await, REFUSED);
    assert_eq!(client.offset.estimate(), None);
    assert_eq!(client.came().await, REFUSED);
    assert_eq!(client.came().await, RESIGNED);
    assert_eq!(client.came().await, FINE);
    // And repaired at once.
    client.server.set(|state| state.ahead = 0);
    assert_eq!(client.came().await, RESIGNED);
    assert_eq!(client.came().await, FINE);
}

#[tokio::test(start_paused = true)]
async fn answers_that_do_not_agree_do_not_confirm_each_other() {
    let offset = ClockOffset::new();
    for day in 0..20_u64 {
        let server = at_ms(START) + secs(86_400 * 365 * (1 + day));
        offset.observe(at_ms(START), ms(50), server, secs(1));
    }
    assert_eq!(offset.estimate(), None);
}

#[tokio::test(start_paused = true)]
async fn an_offset_can_be_forgotten() {
    let offset = ClockOffset::new();
    offset.observe(at_ms(START), ms(50), at_ms(START + 6_000), ms(1));
    assert!(offset.estimate().is_some());
    offset.reset();
    assert_eq!(offset.estimate(), None);
    assert_eq!(offset.correct(at_ms(START)), at_ms(START));
}

#[tokio::test(start_paused = true)]
async fn a_repair_is_seen_in_either_direction_and_nothing_else_is_one() {
    for ahead in [600_000_i64, 6_000, -6_000, -600_000] {
        let offset = ClockOffset::new();
        let plus = |millis: i64| at_ms(START.checked_add_signed(millis).unwrap());
        offset.observe(plus(0), ms(0), plus(ahead), ms(0));
        advance(secs(10)).await;
        let corrected = |jump: i64| offset.correct(plus(10_000 + jump));
        let near = |time: SystemTime, millis: i64| {
            let off = time
                .duration_since(plus(millis))
                .unwrap_or_else(|error| error.duration());
            assert!(off <= ms(2), "{ahead}: {off:?}");
        };
        near(corrected(0), 10_000 + ahead);
        near(corrected(ahead), 10_000 + ahead);
        // Slewed, asleep, or set to something else that is wrong.
        near(corrected(100), 10_100 + ahead);
        near(corrected(ahead + 3_600_000), 10_000 + 3_600_000 + 2 * ahead);
        near(corrected(-ahead), 10_000);
    }
}

#[test]
fn a_date_of_another_millennium_is_shifted_to_and_not_less() {
    // More nanoseconds than 64 bits hold: 584 years.
    let offset = ClockOffset::builder().max_offset(secs(1_000_000_000_000));
    let offset = offset.build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime.unwrap().block_on(async {
        let server = at_ms(START) + secs(3_000 * 365 * 86_400);
        offset.observe(at_ms(START), ms(0), server, ms(0));
        let near = server.duration_since(offset.correct(at_ms(START)));
        assert!(near.unwrap() < secs(1));
    });
}
