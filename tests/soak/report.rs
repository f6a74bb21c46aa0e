//! What is printed.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value, json};

use crate::{args::Args, audit::Audit, call::Protocol, tally::Tally};

/// What is printed.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    args: &'a Args,
    audit: &'a Audit,
    rescued: BTreeMap<(Protocol, &'static str), u64>,
    struck: BTreeMap<&'static str, u64>,
}

// === impl Report ===

impl<'a> Report<'a> {
    pub(crate) fn new(args: &'a Args, tally: &Tally, audit: &'a Audit) -> Self {
        // Both witnesses are listed for both protocols, also where one had nothing to do. A channel of
        // tonic's has no place for that of the connection.
        let mut rescued: BTreeMap<_, _> = [Protocol::Http1, Protocol::Http2]
            .into_iter()
            .flat_map(|protocol| [((protocol, "body"), 0), ((protocol, "connection"), 0)])
            .chain([((Protocol::Grpc, "body"), 0)])
            .collect();
        rescued.extend(&tally.told().rescued);
        Self {
            args,
            audit,
            rescued,
            struck: tally.told().struck.clone(),
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        let Audit {
            applied_twice,
            false_proofs,
            unclassified,
            altered,
            false_successes,
            false_failures,
            left_unknown,
            overdue,
            gave_up,
            ..
        } = self.audit;
        let bad = [
            applied_twice,
            false_proofs,
            unclassified,
            altered,
            false_successes,
            false_failures,
            left_unknown,
            overdue,
            gave_up,
        ];
        bad.iter().all(|count| **count == 0)
    }

    pub(crate) fn json(&self) -> Value {
        let mut rescued = Map::new();
        for ((protocol, witness), count) in &self.rescued {
            let of_protocol = rescued
                .entry(protocol.label())
                .or_insert_with(|| Value::Object(Map::new()));
            of_protocol[witness] = json!(count);
        }
        let audit = self.audit;
        json!({
            "calls": self.args.calls,
            "seed": self.args.seed,
            "requests": audit.requests,
            "by_protocol": audit.by_protocol,
            "by_fault": audit.by_fault,
            "applied_twice": audit.applied_twice,
            "false_proofs": audit.false_proofs,
            "unclassified": audit.unclassified,
            "altered": audit.altered,
            "false_successes": audit.false_successes,
            "false_failures": audit.false_failures,
            "left_unknown": audit.left_unknown,
            "gave_up": audit.gave_up,
            "overdue": audit.overdue,
            "latest_ms": audit.latest.as_secs_f64() * 1e3,
            "rescued": rescued,
            "struck": self.struck,
        })
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const OUTCOMES: [&str; 4] = ["success", "retryable", "permanent", "unknown"];
        let audit = self.audit;
        let width = audit.by_fault.keys().map(String::len).max().unwrap_or(0);
        write!(f, "{:width$}", "fault of the first request")?;
        for outcome in OUTCOMES {
            write!(f, " {outcome:>10}")?;
        }
        writeln!(f)?;
        let by_protocol = audit.by_protocol.iter();
        let by_protocol =
            by_protocol.map(|(protocol, outcomes)| (format!("all {protocol}"), outcomes));
        let by_fault = audit.by_fault.iter();
        let by_fault = by_fault.map(|(fault, outcomes)| (fault.clone(), outcomes));
        for (name, outcomes) in by_fault.chain(by_protocol) {
            write!(f, "{name:width$}")?;
            for outcome in OUTCOMES {
                write!(f, " {:>10}", outcomes.get(outcome).unwrap_or(&0))?;
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        writeln!(f, "calls           {:>10}", self.args.calls)?;
        writeln!(f, "requests        {:>10}", audit.requests)?;
        writeln!(f, "applied twice   {:>10}", audit.applied_twice)?;
        writeln!(f, "false proofs    {:>10}", audit.false_proofs)?;
        writeln!(f, "unclassified    {:>10}", audit.unclassified)?;
        writeln!(f, "altered bodies  {:>10}", audit.altered)?;
        writeln!(f, "false successes {:>10}", audit.false_successes)?;
        writeln!(f, "false failures  {:>10}", audit.false_failures)?;
        writeln!(f, "left unknown    {:>10}", audit.left_unknown)?;
        writeln!(f, "gave up waiting {:>10}", audit.gave_up)?;
        writeln!(f, "overdue         {:>10}", audit.overdue)?;
        let latest = audit.latest.as_secs_f64() * 1e3;
        writeln!(f, "latest, in ms   {latest:>10.1}")?;
        for (bound, count) in &self.struck {
            writeln!(f, "ended by the bound {bound}: {count}")?;
        }
        for ((protocol, witness), count) in &self.rescued {
            writeln!(
                f,
                "unknowns of {} proven by the {witness}: {count}",
                protocol.label()
            )?;
        }
        Ok(())
    }
}

// === impl Protocol ===

impl Protocol {
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Http1 => "http1",
            Self::Http2 => "http2",
            Self::Grpc => "grpc",
        }
    }
}
