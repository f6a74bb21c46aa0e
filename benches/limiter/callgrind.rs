//! Counting instructions, by running this program again under callgrind.

use std::{
    env, io,
    process::{Command, Stdio},
};

/// Counts instructions of calls in another run of this program.
#[derive(Debug)]
pub(crate) struct Callgrind {
    calls: u32,
}

// === impl Callgrind ===

impl Callgrind {
    /// Returns `None` where no calls are wanted, or, having said so, where valgrind is not
    /// installed.
    pub(crate) fn find(calls: u32) -> Option<Self> {
        if calls == 0 {
            return None;
        }
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

    /// Counts the instructions of one call of a case.
    pub(crate) fn per_call(&self, case: &str) -> Option<f64> {
        match self.count(case) {
            Ok(count) => Some(count / f64::from(self.calls)),
            Err(error) => {
                eprintln!("{case}: instructions are not counted: {error}");
                None
            }
        }
    }

    fn count(&self, case: &str) -> io::Result<f64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            // Only these: governor's clock is calibrated for as long as that takes.
            .arg("--toggle-collect=*counted_calls*")
            .arg(env::current_exe()?)
            .args(["--calls", &self.calls.to_string(), case])
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

/// Makes the calls that are counted, after as many that are not.
pub(crate) fn run(burst: &dyn Fn(u32), calls: u32) {
    burst(calls);
    counted_calls(burst, calls);
}

// A function that callgrind finds by its name.
#[inline(never)]
fn counted_calls(burst: &dyn Fn(u32), calls: u32) {
    burst(calls);
}
