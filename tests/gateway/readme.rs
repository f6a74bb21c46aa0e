//! The lines of the README, as they are printed there.

use std::process::Output;

use tokio::process::Command;

use crate::running::{Gateway, send};

const README: &str = include_str!("../../README.md");

async fn shell(line: &str) -> Output {
    let output = Command::new("sh").args(["-c", line]).output();
    output.await.unwrap()
}

#[tokio::test]
async fn the_curl_lines_of_the_readme_answer_what_they_say() {
    if !shell("curl --version").await.status.success() {
        assert!(std::env::var_os("CI").is_none(), "there is no curl");
        eprintln!("skipped: there is no curl");
        return;
    }
    let (_, section) = README.split_once("\n## A gateway\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let start = "cargo run --example gateway -- --demo examples/gateway.toml";
    assert!(section.lines().any(|line| line == start));
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/gateway.toml");
    let gateway = Gateway::with(&["--demo", file, "--listen", "127.0.0.1:0"], &[]).await;
    let mut told = 0;
    for line in section.lines().filter(|line| line.starts_with("curl ")) {
        let (command, says) = line.split_once("   # ").unwrap_or((line, ""));
        let command = command.replace("127.0.0.1:8080", gateway.address());
        let output = shell(&format!("{command} --silent --show-error")).await;
        assert!(output.status.success(), "{line}\n{output:?}");
        let output = String::from_utf8(output.stdout).unwrap();
        if let Some((status, outcome)) = says.split_once(' ') {
            told += 1;
            assert!(
                output.starts_with(&format!("HTTP/1.1 {status} ")),
                "{line}\n{output}"
            );
            assert!(
                output.contains(&format!("\r\nx-outcome: {outcome}\r\n")),
                "{line}\n{output}"
            );
        }
    }
    assert_eq!(told, 4);
    let ledger = send(gateway.get("/demo/ledger"), "").await.json();
    let sent = |operation: &str| {
        let mut operations = ledger.as_array().unwrap().iter();
        let one = operations
            .find(|one| one["operation"] == operation)
            .unwrap();
        (
            one["sent"].as_u64().unwrap(),
            one["applied"].as_u64().unwrap(),
        )
    };
    for order in ["order-1", "order-2", "order-3"] {
        assert_eq!(sent(order), (1, 1), "{order}");
    }
    assert_eq!(sent("quote-1"), (3, 0));
}
