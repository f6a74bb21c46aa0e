use super::*;
use crate::answer::find;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn status(admission: &Admission) -> Option<u16> {
    admission.refusal.as_ref().map(|answer| answer.status)
}

fn retry_after(admission: &Admission) -> Option<&str> {
    find(&admission.refusal.as_ref()?.headers, "retry-after")
}

#[test]
fn sliding_window_frees_a_place_when_the_oldest_request_leaves_it() {
    let mut gate = Gate::new(Some(Limit::sliding(2, ms(1500))), None);
    assert_eq!(status(&gate.admit(None, ms(0))), None);
    assert_eq!(status(&gate.admit(None, ms(1000))), None);
    let refused = gate.admit(None, ms(1200));
    assert_eq!(status(&refused), Some(429));
    assert_eq!(retry_after(&refused), Some("1"), "0.3 s, rounded up");
    assert_eq!(status(&gate.admit(None, ms(1500))), None);
    assert_eq!(status(&gate.admit(None, ms(1501))), Some(429));
}

#[test]
fn fixed_window_takes_its_fill_again_at_the_edge() {
    let mut gate = Gate::new(Some(Limit::fixed(2, ms(1000))), None);
    for at in [900, 990, 1000, 1010] {
        assert_eq!(status(&gate.admit(None, ms(at))), None, "{at}");
    }
    assert_eq!(status(&gate.admit(None, ms(1999))), Some(429));
    assert_eq!(status(&gate.admit(None, ms(2000))), None);
}

#[test]
fn clients_have_budgets_of_their_own_and_those_without_a_name_share_one() {
    let mut gate = Gate::new(Some(Limit::sliding(1, ms(1000))), None);
    for client in [Some("a"), Some("b"), None] {
        assert_eq!(status(&gate.admit(client, ms(0))), None);
        assert_eq!(status(&gate.admit(client, ms(1))), Some(429));
    }
}

#[test]
fn headers_say_what_is_left() {
    let mut gate = Gate::new(Some(Limit::sliding(3, ms(2500))), None);
    let admission = gate.admit(None, ms(0));
    assert_eq!(find(&admission.headers, "x-ratelimit-limit"), Some("3"));
    assert_eq!(find(&admission.headers, "x-ratelimit-remaining"), Some("2"));
    assert_eq!(find(&admission.headers, "x-ratelimit-reset"), Some("3"));
}

#[test]
fn rejections_within_the_span_bring_a_ban_and_the_ban_ends() {
    let ban = Ban::new(2, ms(100), ms(5000));
    let mut gate = Gate::new(Some(Limit::sliding(1, ms(1000))), Some(ban));
    assert_eq!(status(&gate.admit(None, ms(0))), None);
    assert_eq!(status(&gate.admit(None, ms(10))), Some(429));
    assert_eq!(
        status(&gate.admit(None, ms(110))),
        Some(429),
        "too far apart"
    );
    let banned = gate.admit(None, ms(150));
    assert_eq!(status(&banned), Some(418));
    assert_eq!(retry_after(&banned), Some("5"));
    assert_eq!(gate.bans(None), 1);
    assert_eq!(status(&gate.admit(None, ms(5149))), Some(418));
    assert_eq!(gate.bans(None), 1, "calling while banned is no new ban");
    assert_eq!(status(&gate.admit(None, ms(5150))), None);
}
