//! Where all connections of a venue meet: the book of requests and the fate of each.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::answer::find;
use crate::index::Applied;
use crate::ledger::{FNV_START, fnv1a_more};
use crate::limit::Gate;
use crate::{
    Answer, AtAccept, Demand, Entry, Fault, Index, Ledger, Plan, Protocol, Received, Request,
};

/// Answers applied requests.
pub(crate) type Handler = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// What all connections share. Only the venue's own thread acts on requests; others read.
pub(crate) struct Desk {
    start: Instant,
    plan: Option<Plan>,
    handler: Option<Handler>,
    index: Option<Index>,
    duplicate: Option<Answer>,
    pub(crate) latency: Duration,
    pub(crate) body_limit: usize,
    /// Called without the book locked, so that a demand may ask the ledger.
    demands: Mutex<Vec<Box<dyn Demand>>>,
    /// Written by the venue's thread, read by ledgers; never locked across an await.
    book: Mutex<Book>,
    changed: Condvar,
    settled: Notify,
    /// Asks the venue's thread to turn its reactor. Closed when the venue is gone.
    turns: mpsc::UnboundedSender<u64>,
    asked: AtomicUsize,
}

pub(crate) struct Book {
    pub(crate) entries: Vec<Entry>,
    pub(crate) gate: Gate,
    pub(crate) connections: u64,
    pub(crate) open: usize,
    /// The places in `entries` of each operation.
    operations: HashMap<String, Vec<usize>>,
    /// How often each operation was seen, over all clears.
    attempts: HashMap<String, u64>,
    arrivals: u64,
    /// Answers by idempotency key.
    stored: HashMap<String, Answer>,
    applied: Applied,
    /// Counts clears, so that a request from before does not touch the entries after.
    edition: u64,
    busy: usize,
    turned: u64,
    stopped: bool,
}

/// The head of a request as a protocol read it; names of headers in lower case.
pub(crate) struct Head {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
}

/// A request in progress and what is to become of it.
pub(crate) struct Order {
    place: usize,
    edition: u64,
    head: Head,
    key: Option<String>,
    body: BytesMut,
    hash: u64,
    gate: Vec<(String, String)>,
    refusal: Option<Answer>,
    pub(crate) fault: Option<Fault>,
    grpc: bool,
}

/// Keeps a venue from looking idle while something is in progress.
pub(crate) struct Busy(Arc<Desk>);

/// Counts a connection as open.
pub(crate) struct Open {
    desk: Arc<Desk>,
    pub(crate) number: u64,
}

/// The settings of a desk.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) plan: Option<Plan>,
    pub(crate) handler: Option<Handler>,
    pub(crate) index: Option<Index>,
    pub(crate) duplicate: Option<Answer>,
    pub(crate) latency: Duration,
    pub(crate) body_limit: usize,
    pub(crate) demands: Vec<Box<dyn Demand>>,
    pub(crate) gate: Gate,
}

// === impl Desk ===

impl Desk {
    pub(crate) fn new(settings: Settings, turns: mpsc::UnboundedSender<u64>) -> Self {
        Self {
            start: Instant::now(),
            plan: settings.plan,
            handler: settings.handler,
            index: settings.index,
            duplicate: settings.duplicate,
            latency: settings.latency,
            body_limit: settings.body_limit,
            demands: Mutex::new(settings.demands),
            book: Mutex::new(Book {
                entries: Vec::new(),
                gate: settings.gate,
                connections: 0,
                open: 0,
                operations: HashMap::new(),
                attempts: HashMap::new(),
                arrivals: 0,
                stored: HashMap::new(),
                applied: Applied::default(),
                edition: 0,
                busy: 0,
                turned: 0,
                stopped: false,
            }),
            changed: Condvar::new(),
            settled: Notify::new(),
            turns,
            asked: AtomicUsize::new(0),
        }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Book) -> T) -> T {
        read(&self.lock())
    }

    pub(crate) fn clear(&self) {
        let mut book = self.lock();
        book.entries.clear();
        book.operations.clear();
        book.stored.clear();
        book.applied.clear();
        book.edition += 1;
    }

    /// Counts a connection and draws what befalls it.
    pub(crate) fn accept(self: &Arc<Self>) -> (Open, Option<AtAccept>) {
        let number = self.change(|book| {
            book.open += 1;
            book.connections += 1;
            book.connections - 1
        });
        let fate = self.plan.as_ref().and_then(|plan| plan.draw_accept(number));
        let open = Open {
            desk: Arc::clone(self),
            number,
        };
        (open, fate)
    }

    pub(crate) fn busy(self: &Arc<Self>) -> Busy {
        self.change(|book| book.busy += 1);
        Busy(Arc::clone(self))
    }

    /// Writes a request down and draws its fate.
    pub(crate) fn arrive(&self, head: Head, protocol: Protocol, connection: u64) -> Order {
        let at = self.start.elapsed();
        let asked = find(&head.headers, Fault::HEADER).map(Fault::from_str);
        let mut entry = head.entry(protocol, connection, at);

        let mut guard = self.lock();
        let book = &mut *guard;
        let admission = book.gate.admit(entry.client.as_deref(), at);
        let arrival = book.arrivals;
        book.arrivals += 1;
        let plan = self.plan.as_ref();
        let drawn = match &entry.operation {
            Some(operation) => {
                let attempts = book.attempts.entry(operation.clone()).or_default();
                *attempts += 1;
                plan.and_then(|plan| plan.draw(operation, *attempts - 1))
            }
            None => plan.and_then(|plan| plan.draw_arrival(arrival)),
        };
        // The limiter stands in front of everything, faults included.
        let (refusal, fault) = match (admission.refusal, asked) {
            (Some(refusal), _) => (Some(refusal), None),
            (None, Some(Ok(fault))) => (None, Some(fault)),
            // A test that asks for what does not exist should hear of it.
            (None, Some(Err(error))) => (Some(Answer::status(400).body(error.to_string())), None),
            (None, None) => (None, drawn.cloned()),
        };
        entry.fault.clone_from(&fault);
        let key = entry.key.clone();
        let grpc = find(&head.headers, "content-type")
            .is_some_and(|kind| kind.starts_with("application/grpc"));
        let place = book.push(entry);
        Order {
            place,
            edition: book.edition,
            head,
            key,
            body: BytesMut::new(),
            hash: FNV_START,
            gate: admission.headers,
            refusal,
            fault,
            grpc,
        }
    }

    /// Writes a request down that nothing will ever happen to.
    ///
    /// It counts neither for the limiter nor for the plan: whether a client still sends on a
    /// connection that was called off is a matter of timing, and fates are not.
    pub(crate) fn ignore(&self, head: Head, protocol: Protocol, connection: u64) {
        let at = self.start.elapsed();
        self.lock().push(head.entry(protocol, connection, at));
    }

    /// Takes a piece of the body; false when the body is longer than the venue takes.
    pub(crate) fn body(&self, order: &mut Order, bytes: &[u8]) -> bool {
        if order.body.len().saturating_add(bytes.len()) > self.body_limit {
            return false;
        }
        order.body.extend_from_slice(bytes);
        order.hash = fnv1a_more(order.hash, bytes);
        let length = u64::try_from(order.body.len()).unwrap_or(u64::MAX);
        self.note(order, |entry, order| {
            entry.received = Received::Part;
            entry.body_length = length;
            entry.body_hash = order.hash;
        });
        true
    }

    pub(crate) fn complete(&self, order: &Order) {
        self.note(order, |entry, _| entry.received = Received::Complete);
    }

    /// Acts on a complete request, unless the limiter, a demand or its key forbids it.
    pub(crate) fn act(&self, order: &mut Order) -> Answer {
        let answer = match order.refusal.take() {
            Some(refusal) => refusal,
            None => self.demand_and_apply(order),
        };
        order.sign(answer)
    }

    fn demand_and_apply(&self, order: &Order) -> Answer {
        let request = Request {
            method: order.head.method.clone(),
            path: order.head.path.clone(),
            headers: order.head.headers.clone(),
            body: Bytes::copy_from_slice(&order.body),
            at: self.start.elapsed(),
        };
        {
            let mut demands = self.demands.lock().unwrap_or_else(PoisonError::into_inner);
            for demand in demands.iter_mut() {
                if let Err(answer) = demand.check(&request) {
                    return answer;
                }
            }
        }
        if let Some(index) = &self.index {
            if let Some(answer) = index.answer(&request, &mut self.lock().applied) {
                return answer;
            }
        }
        let operation = find(&order.head.headers, Ledger::OPERATION_HEADER);
        if let (Some(duplicate), Some(operation)) = (&self.duplicate, operation) {
            if self.lock().applied.has(operation) {
                return duplicate.clone();
            }
        }
        let stored = order
            .key
            .as_ref()
            .and_then(|key| self.lock().stored.get(key).cloned());
        if let Some(answer) = stored {
            self.note(order, |entry, _| entry.replayed = true);
            return answer;
        }
        // Not under the lock: the handler may ask the ledger. Nobody else acts meanwhile.
        let answer = match &self.handler {
            Some(handler) => handler(&request),
            None => Answer::applied(order.grpc),
        };
        if let Some(key) = &order.key {
            self.lock().stored.insert(key.clone(), answer.clone());
        }
        if let Some(operation) = operation {
            self.lock().applied.note(operation, request.at);
        }
        self.note(order, |entry, _| entry.applied = true);
        answer
    }

    pub(crate) fn answered(&self, order: &Order, status: u16) {
        self.note(order, |entry, _| entry.answered = Some(status));
    }

    fn note(&self, order: &Order, write: impl FnOnce(&mut Entry, &Order)) {
        let mut book = self.lock();
        if book.edition != order.edition {
            return;
        }
        if let Some(entry) = book.entries.get_mut(order.place) {
            write(entry, order);
        }
    }

    /// Says that the reactor was turned for this ticket.
    pub(crate) fn turned(&self, ticket: u64) {
        self.change(|book| book.turned = book.turned.max(ticket));
    }

    /// Says that the venue is gone: nothing more will happen.
    pub(crate) fn stop(&self) {
        self.change(|book| book.stopped = true);
    }

    fn ask_turn(&self) -> u64 {
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let ticket = u64::try_from(asked).unwrap_or(u64::MAX);
        // A closed channel means that the venue has stopped, which the book says too.
        let _ = self.turns.send(ticket);
        ticket
    }

    pub(crate) fn settle(&self, bound: Duration, closed: bool) -> bool {
        let ticket = self.ask_turn();
        let book = self.lock();
        let (book, _) = self
            .changed
            .wait_timeout_while(book, bound, |book| !book.is_settled(ticket, closed))
            .unwrap_or_else(PoisonError::into_inner);
        book.is_settled(ticket, closed)
    }

    pub(crate) async fn settled(&self) {
        let ticket = self.ask_turn();
        loop {
            let changed = self.settled.notified();
            if self.read(|book| book.is_settled(ticket, false)) {
                return;
            }
            changed.await;
        }
    }

    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = self.lock();
        let result = change(&mut book);
        drop(book);
        self.changed.notify_all();
        self.settled.notify_waiters();
        result
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Desk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

// === impl Book ===

impl Book {
    pub(crate) fn of_operation(&self, operation: &str) -> impl Iterator<Item = &Entry> {
        self.operations
            .get(operation)
            .into_iter()
            .flatten()
            .filter_map(|place| self.entries.get(*place))
    }

    pub(crate) fn operations(&self) -> impl Iterator<Item = &str> {
        self.operations.keys().map(String::as_str)
    }

    /// Writes an entry down and returns its place.
    fn push(&mut self, entry: Entry) -> usize {
        let place = self.entries.len();
        if let Some(operation) = &entry.operation {
            let places = self.operations.entry(operation.clone()).or_default();
            places.push(place);
        }
        self.entries.push(entry);
        place
    }

    fn is_settled(&self, ticket: u64, closed: bool) -> bool {
        self.stopped || self.turned >= ticket && self.busy == 0 && (!closed || self.open == 0)
    }
}

// === impl Head ===

impl Head {
    /// The entry of a request of which nothing but the head was read.
    fn entry(&self, protocol: Protocol, connection: u64, at: Duration) -> Entry {
        let header = |name| find(&self.headers, name).map(str::to_owned);
        Entry {
            operation: header(Ledger::OPERATION_HEADER),
            key: header(Ledger::KEY_HEADER),
            client: header(Ledger::CLIENT_HEADER),
            method: self.method.clone(),
            path: self.path.clone(),
            protocol,
            connection,
            at,
            received: Received::Head,
            body_length: 0,
            body_hash: FNV_START,
            applied: false,
            replayed: false,
            answered: None,
            fault: None,
        }
    }
}

// === impl Busy ===

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|book| book.busy -= 1);
    }
}

// === impl Open ===

impl Drop for Open {
    fn drop(&mut self) {
        self.desk.change(|book| book.open -= 1);
    }
}

// === impl Order ===

impl Order {
    pub(crate) fn is_head_request(&self) -> bool {
        self.head.method == "HEAD"
    }

    /// Puts the headers of the limiter on an answer.
    pub(crate) fn sign(&self, mut answer: Answer) -> Answer {
        answer.headers.extend(self.gate.iter().cloned());
        answer
    }
}
