//! Sends random calls against a venue that fails in every way it knows, and holds what each call was
//! told against what the venue did.
//!
//! ```text
//! cargo run --release --bin soak -- --calls 200000 --seed 1 --json
//! ```
//!
//! The stack under test is everything that `Outbound` builds (Replay > Deadline > Retry > Reconcile >
//! AuthRefresh > RateLimit > ConnectionLimit > Sign > Timeout > Witness) over hyper-util's client with a
//! bounded and witnessed connector, on HTTP/1.1 and HTTP/2, and with GrpcStatus above it over tonic's
//! channels, for unary calls. Sessions die all the time. Some calls go to an address that answers nobody, and
//! some have little time. The program fails (exit 1) if a request that must not be repeated was applied
//! twice, if a claim that the server did not act is contradicted by the venue's ledger, if a call ended
//! without an outcome or long after its deadline, if one that had time was left unknown, or if a request
//! body arrived altered.

mod args;
mod audit;
mod black_hole;
mod body;
mod call;
mod client;
mod codec;
mod message;
mod observe;
mod report;
mod session;
mod signature;
mod stack;
mod tally;

use std::{
    process::ExitCode,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tower_outcome_testkit::{
    AtAccept, Entry, Fault, Index, Ledger, Logins, Plan, StartError, Venue,
};

use crate::{args::Args, call::Call, client::Clients, report::Report, stack::Shared, tally::Tally};

/// All sessions die after so many calls.
const SESSION: u64 = 500;

/// A quarter of all requests meets a fault.
const FAULT_RATE: f64 = 0.25;

#[expect(
    clippy::disallowed_methods,
    reason = "the progress and the duration that are printed are real time"
)]
fn main() -> ExitCode {
    let args = Args::from_command_line();
    let started = Instant::now();
    let venues = match Venues::start(args.seed) {
        Ok(venues) => venues,
        Err(error) => {
            eprintln!("soak: cannot start the venue: {error}");
            return ExitCode::FAILURE;
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("soak: cannot start the runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let tally = runtime.block_on(run(&args, &venues));
    // Sockets close with the clients; what is still in them belongs to the ledger.
    drop(runtime);
    let settled = venues.settle();
    let audit = audit::audit(&args, &tally, venues.entries());
    let report = Report::new(&args, &tally, &audit);
    if args.json {
        println!("{}", report.json());
    } else {
        print!("{report}");
        println!("took {:.1} s", started.elapsed().as_secs_f64());
    }
    if settled && report.is_clean() {
        ExitCode::SUCCESS
    } else {
        if !settled {
            eprintln!(
                "soak: the venue is still busy with {} connections, so its ledger is not complete",
                venues.open_connections()
            );
        }
        ExitCode::FAILURE
    }
}

async fn run(args: &Args, venues: &Venues) -> Tally {
    let tally = Arc::new(Tally::default());
    let [http, grpc] = [&venues.http, &venues.grpc].map(|venue| Shared::new(&venue.url("")));
    let clients = Clients::new(&http, &grpc, &tally);
    let next = Arc::new(AtomicU64::new(0));
    let workers: Vec<_> = (0..args.callers)
        .map(|_| {
            let (clients, next, tally) = (clients.clone(), Arc::clone(&next), Arc::clone(&tally));
            let (calls, seed, quiet) = (args.calls, args.seed, args.json);
            let logins = venues.logins.clone();
            tokio::spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= calls {
                        break;
                    }
                    if number % SESSION == SESSION - 1 {
                        logins.iter().for_each(Logins::expire_all);
                    }
                    let call = Call::random(seed, number);
                    let result = clients.send(&call).await;
                    tally.note(number, result);
                    if !quiet && number % 10_000 == 9_999 {
                        eprintln!("{} calls", number + 1);
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        if let Err(error) = worker.await {
            eprintln!("soak: a worker failed: {error}");
        }
    }
    drop(clients);
    Arc::try_unwrap(tally).unwrap_or_else(|shared| shared.copy())
}

/// The venues, each with a ledger of its own: they fail in different ways.
struct Venues {
    http: Venue,
    grpc: Venue,
    logins: [Logins; 2],
}

// === impl Venues ===

impl Venues {
    fn start(seed: u64) -> Result<Self, StartError> {
        let logins = [(); 2].map(|()| Logins::at(session::PATH));
        let start = |plan, logins: &Logins| {
            Venue::builder()
                .plan(plan)
                .index(Index::new(stack::INDEX))
                .demand(logins.clone())
                .demand(signature::demand())
                .start()
        };
        let of_http = plan(seed, |fault| !matches!(fault, Fault::Grpc { .. }));
        // JSON is no message: what a decoder above the stack makes of it nobody below can know.
        let of_grpc = plan(seed, |fault| !matches!(fault, Fault::ErrorBody { .. }));
        Ok(Self {
            http: start(of_http, &logins[0])?,
            grpc: start(of_grpc, &logins[1])?,
            logins,
        })
    }

    fn ledgers(&self) -> [Ledger; 2] {
        [self.http.ledger(), self.grpc.ledger()]
    }

    fn settle(&self) -> bool {
        let settle = |ledger: Ledger| ledger.settle(Duration::from_secs(30));
        self.ledgers().map(settle) == [true, true]
    }

    fn entries(&self) -> Vec<Entry> {
        self.ledgers().iter().flat_map(Ledger::entries).collect()
    }

    fn open_connections(&self) -> usize {
        self.ledgers().iter().map(Ledger::open_connections).sum()
    }
}

/// Every fault of a protocol, as long as it does not make the server a liar: a server that acts and then
/// answers "bad request" misleads anybody.
fn plan(seed: u64, of_protocol: impl Fn(&Fault) -> bool) -> Plan {
    let honest = Fault::all().filter(|fault| match fault {
        Fault::Status { code, applied, .. } => !(*applied && matches!(code, 400 | 418)),
        fault => of_protocol(fault),
    });
    Plan::new(seed)
        .rate(FAULT_RATE)
        .faults(honest)
        .at_accept(0.02, AtAccept::Close)
        .at_accept(0.02, AtAccept::Reset)
}
