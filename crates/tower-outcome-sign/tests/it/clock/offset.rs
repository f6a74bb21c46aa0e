//! What is learned of a server's clock, without a layer.

use super::*;

#[tokio::test(start_paused = true)]
async fn the_round_trip_is_taken_out() {
    let offset = ClockOffset::new();
    // Sent at 0, answered at 800 ms: the server is two seconds ahead if it says 2.4 s.
    offset.observe(at_ms(START), ms(800), at_ms(START + 2_400), ms(0));
    near(&offset, 2_000, 0);
    assert_eq!(offset.estimate().unwrap().error(), ms(400));
    // Its late end, by half a round trip.
    assert_eq!(offset.correct(at_ms(START)), at_ms(START + 1_600));
}

#[tokio::test(start_paused = true)]
async fn one_slow_answer_among_fast_ones_shifts_nothing() {
    let offset = ClockOffset::new();
    for time in [0, 100, 200] {
        let sent = START + time;
        offset.observe(at_ms(sent), ms(50), at_ms(sent + 25 + 2_000), ms(1));
    }
    near(&offset, 2_000, 1);
    // 3.9 s there, and a tenth back: half of it would be two seconds off.
    offset.observe(
        at_ms(START + 300),
        ms(4_000),
        at_ms(START + 300 + 3_900 + 2_000),
        ms(1),
    );
    near(&offset, 2_000, 1);
    assert!(offset.estimate().unwrap().error() < ms(30));
}

#[tokio::test(start_paused = true)]
async fn dates_of_whole_seconds_narrow_each_other_down() {
    let offset = ClockOffset::new();
    for step in 0..20_u64 {
        let sent = START + step * 190;
        let server = sent + 10 + 3_333;
        offset.observe(at_ms(sent), ms(20), at_ms(server / 1000 * 1000), secs(1));
    }
    near(&offset, 3_333, 100);
    assert!(offset.estimate().unwrap().error() <= ms(110));
}

#[tokio::test(start_paused = true)]
async fn what_is_known_fades_with_the_drift_of_clocks() {
    let offset = ClockOffset::builder().drift_ppm(100).build().unwrap();
    offset.observe(at_ms(START), ms(0), at_ms(START + 1_000), ms(0));
    assert_eq!(offset.estimate().unwrap().error(), ms(0));
    advance(secs(10_000)).await;
    assert_eq!(offset.estimate().unwrap().error(), secs(1));
    near(&offset, 1_000, 0);
}

#[tokio::test(start_paused = true)]
async fn a_time_endpoint_is_measured_and_its_failure_changes_nothing() {
    let offset = ClockOffset::new();
    let clock = ManualClock::new(at_ms(START));
    let ask = async {
        advance(ms(100)).await;
        Ok::<_, &str>(at_ms(START + 50 + 7_000))
    };
    offset.measure(&clock, ms(1), ask).await.unwrap();
    near(&offset, 7_000, 1);
    let down = async { Err::<SystemTime, _>("down") };
    assert_eq!(offset.measure(&clock, ms(1), down).await, Err("down"));
    near(&offset, 7_000, 1);
}

#[tokio::test(start_paused = true)]
async fn nonsense_neither_panics_nor_is_believed() {
    let offset = ClockOffset::new();
    let before = SystemTime::UNIX_EPOCH - secs(1);
    offset.observe(before, ms(1), at_ms(START), ms(1));
    offset.observe(at_ms(START), ms(1), before, ms(1));
    assert_eq!(offset.estimate(), None);
    offset.observe(at_ms(0), secs(1), at_ms(u64::MAX / 2), Duration::MAX);
    let _ = offset.correct(at_ms(START));
    let _ = offset.correct(before);
    assert!(
        ClockOffset::builder()
            .max_round_trip(ms(0))
            .build()
            .is_err()
    );
}
