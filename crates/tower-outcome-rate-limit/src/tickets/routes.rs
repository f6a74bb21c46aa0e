//! What the endpoints of an API cost, as a table.

use http::{Method, request};

use super::Tickets;
use crate::Ticket;

/// What the endpoints of an API cost, as a table of methods and paths.
///
/// The first route that matches counts. A request that matches none costs one unit of each limit,
/// and never nothing: an endpoint that was forgotten must not bypass the budget.
///
/// A path is matched segment by segment. `{}`, also with a name inside, and `*` stand for any one
/// segment, and a last `*` for whatever follows, nothing included, so that `*` alone is everything.
///
/// ```
/// use http::Method;
/// use tower_outcome_rate_limit::{Cost, Routes, Ticket};
///
/// let routes = Routes::new()
///     .route(Method::POST, "/api/v3/order", Ticket::new().cost(Cost::in_order([1, 1])))
///     .route(Method::GET, "/api/v3/depth/{symbol}", Ticket::new().cost(Cost::in_order([50])))
///     .any("/api/*", Ticket::new().cost(Cost::in_order([10])));
/// # let _ = routes;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Routes {
    routes: Vec<Route>,
    otherwise: Ticket,
}

#[derive(Clone, Debug)]
struct Route {
    method: Option<Method>,
    segments: Vec<Segment>,
    ticket: Ticket,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<str>),
    Any,
    Rest,
}

// === impl Routes ===

impl Routes {
    /// Creates a table without routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route for one method.
    pub fn route(mut self, method: Method, path: &str, ticket: Ticket) -> Self {
        self.routes.push(Route::new(Some(method), path, ticket));
        self
    }

    /// Adds a route for all methods.
    pub fn any(mut self, path: &str, ticket: Ticket) -> Self {
        self.routes.push(Route::new(None, path, ticket));
        self
    }

    /// Sets what a request asks that matches no route.
    pub const fn otherwise(mut self, ticket: Ticket) -> Self {
        self.otherwise = ticket;
        self
    }
}

impl Tickets for Routes {
    fn ticket(&self, head: &request::Parts) -> Ticket {
        let mut routes = self.routes.iter();
        routes
            .find(|route| route.matches(&head.method, head.uri.path()))
            .map_or(self.otherwise, |route| route.ticket)
    }

    fn known(&self) -> Vec<Ticket> {
        let routes = self.routes.iter().map(|route| route.ticket);
        routes.chain([self.otherwise]).collect()
    }
}

// === impl Route ===

impl Route {
    fn new(method: Option<Method>, path: &str, ticket: Ticket) -> Self {
        let mut segments: Vec<_> = split(path).map(Segment::of).collect();
        if split(path).last() == Some("*") {
            segments.pop();
            segments.push(Segment::Rest);
        }
        Self {
            method,
            segments,
            ticket,
        }
    }

    fn matches(&self, method: &Method, path: &str) -> bool {
        if self.method.as_ref().is_some_and(|own| own != method) {
            return false;
        }
        let mut path = split(path);
        for segment in &self.segments {
            match (segment, path.next()) {
                (Segment::Rest, _) => return true,
                (_, None) => return false,
                (Segment::Literal(own), Some(other)) if **own != *other => return false,
                (Segment::Literal(_) | Segment::Any, Some(_)) => {}
            }
        }
        path.next().is_none()
    }
}

/// The segments of a path, without empty ones: what a server makes of a doubled or a last slash is
/// its own business, and the cost is that of the endpoint.
fn split(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|segment| !segment.is_empty())
}

// === impl Segment ===

impl Segment {
    fn of(text: &str) -> Self {
        if text == "*" || text.starts_with('{') && text.ends_with('}') {
            Self::Any
        } else {
            Self::Literal(text.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::Cost;

    fn cost(routes: &Routes, method: Method, uri: &str) -> u32 {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        routes.ticket(&request.into_parts().0).cost.0[0]
    }

    fn table() -> Routes {
        let units = |units| Ticket::new().cost(Cost::in_order([units]));
        Routes::new()
            .route(Method::POST, "/orders", units(2))
            .any("/orders/{id}", units(3))
            .route(Method::GET, "/charts/*", units(4))
    }

    #[test]
    fn the_first_route_that_matches_counts() {
        let table = table().any("/orders", Ticket::new().cost(Cost::in_order([9])));
        assert_eq!(cost(&table, Method::POST, "https://venue.test/orders"), 2);
        assert_eq!(cost(&table, Method::GET, "https://venue.test/orders"), 9);
    }

    #[test]
    fn a_segment_in_braces_stands_for_any_one() {
        let table = table();
        assert_eq!(cost(&table, Method::DELETE, "/orders/17?now=1"), 3);
        assert_eq!(cost(&table, Method::DELETE, "/orders/17/fills"), 1);
    }

    #[test]
    fn a_last_star_stands_for_whatever_follows() {
        let table = table();
        assert_eq!(cost(&table, Method::GET, "/charts"), 4);
        assert_eq!(cost(&table, Method::GET, "/charts/EURUSD/1m"), 4);
        assert_eq!(cost(&table, Method::GET, "/charters"), 1);
    }

    #[test]
    fn a_star_alone_stands_for_everything_and_one_in_between_for_a_segment() {
        let units = |units| Ticket::new().cost(Cost::in_order([units]));
        let table = Routes::new().any("/a/*/b", units(2)).any("*", units(3));
        assert_eq!(cost(&table, Method::GET, "/a/x/b"), 2);
        assert_eq!(cost(&table, Method::GET, "/a/x/y/b"), 3);
        assert_eq!(cost(&table, Method::GET, "/"), 3);
    }

    #[test]
    fn slashes_too_many_change_no_cost() {
        assert_eq!(cost(&table(), Method::POST, "//orders/"), 2);
    }

    #[test]
    fn an_endpoint_that_was_forgotten_costs_one_of_each() {
        let head = Request::get("/new/endpoint")
            .body(())
            .unwrap()
            .into_parts()
            .0;
        assert_eq!(table().ticket(&head).cost, Cost::EACH);
    }
}
