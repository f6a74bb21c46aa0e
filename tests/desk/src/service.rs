//! The methods.

use std::{pin::Pin, sync::Arc};

use futures_util::{Stream, StreamExt, stream};
use tonic::{Request, Response, Status, Streaming};

use crate::{
    Event, GetRequest, Order, PlaceRequest, Summary, WatchRequest,
    ledger::{Ledger, Trouble},
    orders::orders_server::Orders,
    path,
};

#[derive(Debug)]
pub(crate) struct Service {
    ledger: Arc<Ledger>,
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

// === impl Service ===

impl Service {
    pub(crate) fn new(ledger: &Arc<Ledger>) -> Self {
        Self {
            ledger: Arc::clone(ledger),
        }
    }

    /// Notes a call, and returns what goes wrong with it once the desk has acted.
    fn enter<T>(
        &self,
        method: &'static str,
        request: &Request<T>,
    ) -> Result<Option<Trouble>, Status> {
        match self.ledger.see(method, request.metadata()) {
            Some(Trouble::Before(status)) => Err(status),
            later => Ok(later),
        }
    }
}

fn order(request: PlaceRequest) -> Order {
    let PlaceRequest {
        id,
        symbol,
        quantity,
    } = request;
    Order {
        id,
        symbol,
        quantity,
    }
}

async fn answer<T>(answer: T, trouble: Option<Trouble>) -> Result<Response<T>, Status> {
    match trouble {
        Some(Trouble::Silent) => std::future::pending().await,
        Some(Trouble::After(status) | Trouble::Before(status)) => Err(status),
        None => Ok(Response::new(answer)),
    }
}

/// A stream's end: as it should be, with a status, or none.
fn end<T: Send + 'static>(trouble: Option<Trouble>) -> Answers<T> {
    match trouble {
        Some(Trouble::Silent) => stream::pending().boxed(),
        Some(Trouble::After(status) | Trouble::Before(status)) => {
            stream::iter([Err(status)]).boxed()
        }
        None => stream::empty().boxed(),
    }
}

#[tonic::async_trait]
impl Orders for Service {
    type WatchStream = Answers<Event>;
    type TradeStream = Answers<Order>;

    async fn place(&self, request: Request<PlaceRequest>) -> Result<Response<Order>, Status> {
        let trouble = self.enter(path::PLACE, &request)?;
        let order = order(request.into_inner());
        self.ledger.place(order.clone());
        answer(order, trouble).await
    }

    async fn get(&self, request: Request<GetRequest>) -> Result<Response<Order>, Status> {
        let trouble = self.enter(path::GET, &request)?;
        let found = self.ledger.find(&request.get_ref().id);
        let order = found.ok_or_else(|| Status::not_found("no such order"))?;
        answer(order, trouble).await
    }

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let trouble = self.enter(path::WATCH, &request)?;
        let WatchRequest { id, events } = request.into_inner();
        let event = move |number| {
            let id = id.clone();
            Ok(Event { id, number })
        };
        let events = stream::iter((1..=events).map(event)).chain(end(trouble));
        Ok(Response::new(events.boxed()))
    }

    async fn place_all(
        &self,
        request: Request<Streaming<PlaceRequest>>,
    ) -> Result<Response<Summary>, Status> {
        let trouble = self.enter(path::PLACE_ALL, &request)?;
        let mut basket = request.into_inner();
        let mut orders = 0;
        while let Some(request) = basket.message().await? {
            self.ledger.place(order(request));
            orders += 1;
        }
        answer(Summary { orders }, trouble).await
    }

    async fn trade(
        &self,
        request: Request<Streaming<PlaceRequest>>,
    ) -> Result<Response<Self::TradeStream>, Status> {
        let trouble = self.enter(path::TRADE, &request)?;
        let ledger = Arc::clone(&self.ledger);
        let orders = request.into_inner().map(move |request| {
            let order = order(request?);
            ledger.place(order.clone());
            Ok(order)
        });
        Ok(Response::new(orders.chain(end(trouble)).boxed()))
    }
}
