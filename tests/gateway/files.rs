//! Files, good and bad.

use crate::running::{Ended, file, run};

async fn check(text: &str, environment: &[(&str, &str)]) -> (String, Ended) {
    let path = file(text);
    let path = path.to_str().unwrap();
    let ended = run(&["--check", path], environment).await;
    (path.to_owned(), ended)
}

#[tokio::test]
async fn the_file_of_the_example_is_good() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/gateway.toml");
    let ended = run(&["--check", path], &[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.errors, "");
    let about = "venue: /venue to http://127.0.0.1:9000, at most 20s, limits: requests, orders\n";
    assert!(ended.output.contains(about), "{}", ended.output);
}

/// Everything that it shows in comments is known, too.
#[tokio::test]
async fn what_the_file_of_the_example_shows_in_comments_is_good() {
    let text = include_str!("../../examples/gateway.toml");
    let (mut shown, mut kinds) = (String::new(), 0);
    for line in text.lines() {
        let bare = line.strip_prefix("# ").unwrap_or(line);
        let is_key = bare.split_once(" = ").is_some_and(|(key, _)| {
            key.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        });
        let is_auth = bare == "[upstream.auth]";
        kinds += u32::from(is_auth);
        // Of three kinds of credentials the last is taken, and what only the first two have is left out.
        let is_other = (1..3).contains(&kinds) && line.starts_with('#');
        if (is_key || bare.starts_with('[')) && !is_other {
            shown += bare;
        }
        shown.push('\n');
    }
    assert_eq!(kinds, 3);
    let environment = [
        ("VENUE_LOGIN", "{}"),
        ("VENUE_KEY", "k"),
        ("VENUE_SECRET", "s"),
        ("VENUE_PASSPHRASE", "p"),
    ];
    let (_, ended) = check(&shown, &environment).await;
    assert_eq!(ended.code, Some(0), "{shown}\n{ended:?}");
    assert!(ended.output.contains("signed"), "{}", ended.output);
}

#[tokio::test]
async fn whatever_is_wrong_is_told_with_line_and_field() {
    let upstream = "[[upstream]]\nname = \"a\"\nprefix = \"/a\"\nbase = \"http://a.example\"\n";
    let limit =
        "[[upstream.limit]]\nname = \"l\"\nkind = \"sliding\"\ncapacity = 10\nwindow = \"1s\"\n";
    let mut untold = Vec::new();
    for (more, line, field) in [
        ("colour = 1", 5, "upstream.colour"),
        ("connection_limit = 0", 5, "upstream.connection_limit"),
        ("connection_limit = \"8\"", 5, "upstream.connection_limit"),
        ("connection_limit = -1", 5, "upstream.connection_limit"),
        ("tells_peer = 1", 5, "upstream.tells_peer"),
        (
            "[upstream.retry]\nmax_attempts = 0",
            6,
            "upstream.retry.max_attempts",
        ),
        (
            "[upstream.retry]\nelapsed = \"0s\"",
            6,
            "upstream.retry.elapsed",
        ),
        (
            "[upstream.retry]\nbackoff = { base = \"1h\" }",
            6,
            "upstream.retry.backoff.cap",
        ),
        (
            "[upstream.retry.backoff]\n\nfactor = 0",
            7,
            "upstream.retry.backoff.factor",
        ),
        (
            "[upstream.retry]\nbackoff = { jitter = \"some\" }",
            6,
            "upstream.retry.backoff.jitter",
        ),
        (
            "[upstream.retry]\nhints = { policy = 1 }",
            6,
            "upstream.retry.hints.policy",
        ),
        (
            "[upstream.timeouts]\ncall = \"1s\"\nattempt = \"2s\"",
            7,
            "upstream.timeouts.attempt",
        ),
        (
            "[upstream.timeouts]\ncall = \"off\"",
            6,
            "upstream.timeouts.call",
        ),
        (
            "[upstream.timeouts]\nconnect = \"1\"",
            6,
            "upstream.timeouts.connect",
        ),
        (
            "[upstream.timeouts]\nread_idle = \"0s\"",
            6,
            "upstream.timeouts.read_idle",
        ),
        (
            "[upstream.answers]\nrefused = [42]",
            6,
            "upstream.answers.refused",
        ),
        (
            "[upstream.answers]\nrefused = [200]",
            6,
            "upstream.answers.refused",
        ),
        (
            "[upstream.answers]\nrepeatable = \"all\"",
            6,
            "upstream.answers.repeatable",
        ),
        (
            "[upstream.idempotency_key]\nheader = \"a b\"",
            6,
            "upstream.idempotency_key.header",
        ),
        (
            "[[upstream.limit]]\nname = \"l\"\ncapacity = 1\nwindow = \"1s\"",
            5,
            "upstream.limit.kind",
        ),
        (
            "[[upstream.limit]]\nname = \"l\"\nkind = \"sliding\"\nwindow = \"0s\"\ncapacity = 1",
            8,
            "upstream.limit.window",
        ),
        (
            "[[upstream.limit]]\nname = \"l\"\nkind = \"aligned\"\nwindow = \"1s\"\ncapacity = 0",
            9,
            "upstream.limit.capacity",
        ),
        (
            "[[upstream.limit]]\nname = \"l\"\nkind = \"sliding\"\nwindow = \"1s\"\ncapacity = 1\nburst = 2",
            10,
            "upstream.limit.burst",
        ),
        ("LIMIT LIMIT", 11, "upstream.limit.name"),
        (
            "LIMIT[upstream.priority]\notherwise = \"c\"\n[[upstream.class]]\nname = \"c\"\nleave_percent = 100",
            14,
            "upstream.class.leave_percent",
        ),
        (
            "LIMIT[[upstream.cost]]\npath = \"/x\"\nunits = { l = 11 }",
            12,
            "upstream.cost.units",
        ),
        (
            "LIMIT[[upstream.cost]]\npath = \"/x\"\nunits = { m = 1 }",
            12,
            "upstream.cost.units",
        ),
        (
            "LIMIT[[upstream.cost]]\npath = \"/x\"\nunits = { l = \"1\" }",
            12,
            "upstream.cost.units.l",
        ),
        (
            "LIMIT[upstream.priority]\nvalues = { a = \"boss\" }\notherwise = \"query\"",
            11,
            "upstream.priority.values.a",
        ),
        (
            "LIMIT[upstream.priority]\nvalues = {}",
            10,
            "upstream.priority.otherwise",
        ),
        ("[[upstream.class]]\nname = \"c\"", 5, "upstream.class"),
        (
            "[upstream.sign]\ntemplate = \"nobody\"\nkey_env = \"K\"\nsecret_env = \"S\"",
            6,
            "upstream.sign.template",
        ),
        (
            "[upstream.sign]\ntemplate = \"bybit\"\nkey_env = \"K\"\nsecret_env = \"NONE\"",
            8,
            "upstream.sign.secret_env",
        ),
        (
            "[upstream.sign]\ntemplate = \"okx\"\nkey_env = \"K\"\nsecret_env = \"S\"",
            5,
            "upstream.sign.passphrase_env",
        ),
        (
            "[upstream.sign]\ntemplate = \"kraken\"\nkey_env = \"K\"\nsecret_env = \"S\"",
            8,
            "upstream.sign.secret_env",
        ),
        (
            "[upstream.sign]\ntemplate = \"bybit\"\nkey_env = \"K\"\nsecret_env = \"S\"\nwindow = \"0s\"",
            9,
            "upstream.sign.window",
        ),
        (
            "[upstream.auth]\nkind = \"bearer\"",
            5,
            "upstream.auth.token_env",
        ),
        (
            "[upstream.auth]\nkind = \"bearer\"\ntoken_env = \"K\"\nmin_interval = \"1h\"",
            8,
            "upstream.auth.min_interval",
        ),
        (
            "[upstream.auth]\nkind = \"oauth2\"\nclient_id = \"c\"\nclient_secret_env = \"S\"\ntoken_url = \"http://x.example\"",
            9,
            "upstream.auth.token_url",
        ),
        (
            "[upstream.auth]\nkind = \"oauth2\"\nclient_id = \"c\"\nclient_secret_env = \"S\"\ntoken_url = \"https://x.example/token\"",
            9,
            "upstream.auth.token_url",
        ),
        (
            "[upstream.auth]\nkind = \"login\"\nbody_env = \"S\"\nurl = \"https://x.example/token\"",
            8,
            "upstream.auth.url",
        ),
        (
            "[upstream.auth]\nkind = \"login\"\nbody_env = \"S\"\nurl = \"/session\"",
            8,
            "upstream.auth.url",
        ),
        (
            "[upstream.auth]\nkind = \"login\"\nbody_env = \"S\"\nurl = \"http://me@x.example\"",
            8,
            "upstream.auth.url",
        ),
        (
            "[upstream.auth]\nkind = \"login\"\nbody_env = \"S\"\nurl = \"http://x\"\ncontent_type = \"a\\nb\"",
            9,
            "upstream.auth.content_type",
        ),
        (
            "[upstream.answers]\nrefused = [0xc8]",
            6,
            "upstream.answers.refused",
        ),
        (
            "LIMIT[[upstream.cost]]\npath = \"/x\"\nunits = { l = -1 }",
            12,
            "upstream.cost.units.l",
        ),
        (
            "LIMIT[[upstream.cost]]\npath = \"/x\"\nmethod = \"post\"\nunits = { l = 1 }",
            12,
            "upstream.cost.method",
        ),
        (
            "LIMIT[[upstream.cost]]\nunits = { l = 1 }\npath = \"x\"",
            12,
            "upstream.cost.path",
        ),
        (
            "LIMIT[[upstream.cost]]\nunits = { l = 1 }\npath = \"/x?a=b\"",
            12,
            "upstream.cost.path",
        ),
        (
            "LIMIT[[upstream.class]]\nname = \"c\"",
            10,
            "upstream.class",
        ),
        ("max_wait = \"1s\"", 5, "upstream.max_wait"),
        ("max_queue = 5", 5, "upstream.max_queue"),
        (
            "[upstream.auth]\nkind = \"bearer\"\ntoken_env = \"K\"\nheader = \"connection\"",
            8,
            "upstream.auth.header",
        ),
        (
            "[upstream.auth]\nkind = \"bearer\"\ntoken_env = \"K\"\nheader = \"content-length\"",
            8,
            "upstream.auth.header",
        ),
        (
            "[upstream.idempotency_key]\nheader = \"te\"",
            6,
            "upstream.idempotency_key.header",
        ),
        (
            "[upstream.auth]\nkind = \"bearer\"\ntoken_env = \"L\"",
            7,
            "upstream.auth.token_env",
        ),
        (
            "[upstream.retry]\nmax_attempts = 2\nmax_attempts = 3",
            7,
            "upstream.retry.max_attempts",
        ),
        ("[upstream.retry]\n[upstream.retry]", 6, "upstream.retry"),
        (
            "[[upstream]]\nname = \"b\\u0007\"\nprefix = \"/b\"\nbase = \"http://b\"",
            6,
            "upstream.name",
        ),
        ("LIMITclass = 1", 10, "upstream.limit.class"),
        (
            "[[upstream]]\nname = \"a\"\nprefix = \"/b\"\nbase = \"http://b\"",
            6,
            "upstream.name",
        ),
        (
            "[[upstream]]\nname = \"b\"\nprefix = \"/a\"\nbase = \"http://b\"",
            7,
            "upstream.prefix",
        ),
        (
            "[[upstream]]\nname = \"b\"\nprefix = \"b\"\nbase = \"http://b\"",
            7,
            "upstream.prefix",
        ),
        (
            "[[upstream]]\nname = \"b\"\nprefix = \"/status\"\nbase = \"http://b\"",
            7,
            "upstream.prefix",
        ),
        (
            "[[upstream]]\nname = \"b\"\nprefix = \"/b\"\nbase = \"https://b\"",
            8,
            "upstream.base",
        ),
        (
            "[[upstream]]\nname = \"b\"\nprefix = \"/b\"\nbase = \"http://me@b\"",
            8,
            "upstream.base",
        ),
        (
            "[[upstream]]\nname = \"b\"\nprefix = \"/b\"",
            5,
            "upstream.base",
        ),
    ] {
        let more = more.replace("LIMIT ", limit).replace("LIMIT", limit);
        let (path, ended) = check(
            &format!("{upstream}{more}"),
            &[("K", "key"), ("S", "n0t.base64!"), ("L", "n0t\nbase64!")],
        )
        .await;
        let told = ended.errors.lines().any(|told| {
            let (place, what) = told.split_once(": ").unwrap();
            place.starts_with(&format!("{path}:{line}:")) && what.starts_with(&format!("{field}: "))
        });
        let alone = ended.errors.lines().count() == 1;
        // What is secret is not told.
        let secret = ended.errors.contains("n0t");
        if ended.code != Some(2) || !told || !alone || secret {
            let (code, errors) = (ended.code, ended.errors);
            untold.push(format!("{more}\n=> {line}, {field}\n{code:?}: {errors}"));
        }
    }
    assert!(untold.is_empty(), "{}", untold.join("\n"));
}

#[tokio::test]
async fn all_that_is_wrong_is_told_at_once() {
    let text = "listen = \"here\"\ndrain = 5\n\
                [[upstream]]\nname = \"\"\nprefix = \"/a\"\nbase = \"ftp://a\"\n\
                [upstream.retry]\nmax_attempts = 0\nelapsed = \"0s\"\n\
                [upstream.timeouts]\nattempt = \"1h\"\nread_idle = \"0s\"\n\
                [[upstream]]\nprefix = \"/b\"\nbase = \"http://b\"\nconnection_limit = 0\n";
    let (path, ended) = check(text, &[]).await;
    assert_eq!(ended.code, Some(2));
    let lines = ended.errors.lines().map(|line| {
        let rest = line.strip_prefix(&path).unwrap();
        rest.split(':').nth(1).unwrap().parse().unwrap()
    });
    let lines: Vec<u32> = lines.collect();
    assert_eq!(
        lines,
        [1, 2, 4, 6, 8, 9, 11, 12, 13, 16],
        "{}",
        ended.errors
    );
}

#[tokio::test]
async fn what_is_not_toml_is_told_with_its_line() {
    let (path, ended) = check("listen = \"a\"\nprefix = = 1\n[[upstream]\n", &[]).await;
    assert_eq!(ended.code, Some(2));
    for line in [2, 3] {
        let place = format!("{path}:{line}:");
        assert!(ended.errors.contains(&place), "{}", ended.errors);
    }
}

#[tokio::test]
async fn what_cannot_be_used_ends_with_2() {
    let (_, ended) = check("", &[]).await;
    assert_eq!(ended.code, Some(2));
    assert!(ended.errors.contains(":1:1: upstream: there is none"));
    let bad = file("listen = 1\n");
    // Without --check it does not begin to listen either.
    for args in [
        &[bad.to_str().unwrap()][..],
        &["--check", "/nowhere/gateway.toml"],
        &["--colour", bad.to_str().unwrap()],
        &[],
    ] {
        let ended = run(args, &[]).await;
        assert_eq!(ended.code, Some(2), "{args:?}");
        assert!(!ended.errors.is_empty(), "{args:?}");
        assert!(!ended.output.contains("listening"), "{args:?}");
    }
    assert_eq!(run(&["--help"], &[]).await.code, Some(0));
}

#[tokio::test]
async fn a_whole_number_may_be_written_in_any_way_of_toml() {
    let text = "[[upstream]]\nname = \"a\"\nprefix = \"/a\"\nbase = \"http://a.example\"\n\
                connection_limit = 0x8\n\
                [upstream.answers]\nrefused = [429, 0x1ad, 0o655, 0b110101101, 4_2_9]\n\
                [[upstream.limit]]\nname = \"l\"\nkind = \"sliding\"\ncapacity = 0x0a\nwindow = \"1s\"\n\
                [[upstream.cost]]\npath = \"/x\"\nunits = { l = UNITS }\n";
    for (units, code) in [
        ("0xa", 0),
        ("0b1010", 0),
        ("0o12", 0),
        ("0xb", 2),
        ("0o13", 2),
    ] {
        let (_, ended) = check(&text.replace("UNITS", units), &[]).await;
        assert_eq!(ended.code, Some(code), "{units}: {}", ended.errors);
    }
}

#[tokio::test]
async fn a_header_for_the_gateway_is_one_that_callers_can_use() {
    let upstream = "[[upstream]]\nname = \"a\"\nprefix = \"/a\"\nbase = \"http://a.example\"\n";
    for (text, field) in [
        ("priority_header = \"x-request-timeout\"", "priority_header"),
        ("priority_header = \"connection\"", "priority_header"),
        ("timeout_header = \"X-Priority\"", "timeout_header"),
        ("timeout_header = \"host\"", "timeout_header"),
        ("timeout_header = \"content-length\"", "timeout_header"),
        ("timeout_header = \"transfer-encoding\"", "timeout_header"),
    ] {
        let (path, ended) = check(&format!("{text}\n{upstream}"), &[]).await;
        assert_eq!(ended.code, Some(2), "{text}");
        let told = format!("{path}:1:1: {field}: ");
        assert!(ended.errors.starts_with(&told), "{text}\n{}", ended.errors);
        assert_eq!(ended.errors.lines().count(), 1, "{}", ended.errors);
    }
}
