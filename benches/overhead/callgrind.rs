//! Counting instructions, by running this program again under callgrind.

use std::{
    env, io,
    process::{Command, Stdio},
};

/// Counts instructions of whole runs of this program.
#[derive(Debug)]
pub(crate) struct Callgrind {
    calls: u32,
}

// === impl Callgrind ===

impl Callgrind {
    /// Returns `None`, having said so, where valgrind is not installed.
    pub(crate) fn find(calls: u32) -> Option<Self> {
        let found = Command::new("valgrind")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        match found {
            Ok(status) if status.success() => Some(Self { calls }),
            _ => {
                eprintln!("valgrind is not installed: instructions are not counted");
                None
            }
        }
    }

    /// Counts the instructions of one call of a case, or of its bare loop.
    ///
    /// The difference between a long and a short run is of calls only: start-up, set-up and the
    /// first call are in both.
    pub(crate) fn per_call(&self, case: &str, bare: bool) -> Option<f64> {
        let short = self.count(case, bare, self.calls);
        let long = self.count(case, bare, self.calls * 2);
        match (short, long) {
            (Ok(short), Ok(long)) => Some((long - short) / f64::from(self.calls)),
            (Err(error), _) | (_, Err(error)) => {
                eprintln!("{case}: instructions are not counted: {error}");
                None
            }
        }
    }

    fn count(&self, case: &str, bare: bool, calls: u32) -> io::Result<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(env::current_exe()?)
            .args(["--calls", &calls.to_string(), case])
            .args(bare.then_some("--bare"))
            .stdin(Stdio::null())
            .output()?;
        let log = String::from_utf8_lossy(&output.stderr);
        // "==123== Collected : 456"
        let collected = log
            .lines()
            .filter_map(|line| line.split_once("Collected :"))
            .find_map(|(_, count)| count.trim().parse().ok());
        match collected {
            Some(count) if output.status.success() => Ok(count),
            _ => {
                let last = log.lines().last().unwrap_or("it said nothing");
                Err(io::Error::other(format!("{}: {last}", output.status)))
            }
        }
    }
}
