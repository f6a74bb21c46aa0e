//! What the upstream allows, and who goes first.

use http::Method;
use tower_outcome::{
    Class, HttpClassifier, Limit, Priority, RateBudget, RateLimitLayer, Routes, Scope, Ticket,
    rate_limit::RateLimitLayerBuilder,
};

use super::{super::config::whole, Section};

/// What an upstream allows.
#[derive(Debug, Default)]
pub(super) struct Limits {
    pub(super) budget: Option<RateBudget>,
    pub(super) priorities: Option<Priorities>,
    routes: Routes,
}

/// What callers may say, and what it means.
#[derive(Debug)]
pub(crate) struct Priorities {
    values: Vec<(String, Priority)>,
    otherwise: Priority,
}

// === impl Limits ===

impl Limits {
    /// Makes the step of the stack, if there are limits.
    pub(super) fn layer(&self) -> Option<RateLimitLayerBuilder<HttpClassifier>> {
        let scope = Scope::of(self.budget.clone()?).tickets(self.routes.clone());
        Some(RateLimitLayer::builder(scope))
    }
}

// === impl Priorities ===

impl Priorities {
    /// Returns what a caller gets who says this.
    pub(crate) fn of(&self, said: Option<&str>) -> Priority {
        let known = self.values.iter();
        let mut known = known.filter(|(value, _)| Some(value.as_str()) == said);
        known
            .next()
            .map_or(self.otherwise, |(_, priority)| *priority)
    }
}

/// Reads `[[upstream.limit]]`, `[[upstream.class]]`, `[[upstream.cost]]` and `[upstream.priority]`.
pub(super) fn read(section: &Section<'_>, name: &str) -> Limits {
    let limits = section.sections("limit");
    let classes = section.sections("class");
    let costs = section.sections("cost");
    let priority = section.section("priority");
    let unique = section.unique(&limits, "name") & section.unique(&classes, "name");
    let mut budget = RateBudget::builder(if name.is_empty() { "upstream" } else { name });
    let mut complete = unique && !limits.is_empty();
    for limit in &limits {
        match read_limit(limit) {
            Some(limit) => budget = budget.limit(limit),
            None => complete = false,
        }
        limit.finish();
    }
    for class in &classes {
        match read_class(class) {
            Some(class) => budget = budget.class(class),
            None => complete = false,
        }
        class.finish();
    }
    if priority.is_none() {
        if !limits.is_empty() && !classes.is_empty() {
            section.wrong("class", "of no use without [upstream.priority]");
        }
        // One for all, so that nothing is left to others: there are none.
        budget = budget.class(Class::new("all"));
    }
    let (wait, queue) = (section.span("max_wait"), section.number("max_queue"));
    if let Some(wait) = wait {
        budget = budget.max_wait(wait);
    }
    if let Some(requests) = queue {
        budget = budget.max_queue(requests);
    }
    if limits.is_empty() {
        let idle = [
            ("class", !classes.is_empty()),
            ("cost", !costs.is_empty()),
            ("priority", priority.is_some()),
            ("max_wait", wait.is_some()),
            ("max_queue", queue.is_some()),
        ];
        for (key, _) in idle.into_iter().filter(|(_, given)| *given) {
            section.wrong(key, "of no use without a limit");
        }
    }
    let budget = complete.then(|| budget.build());
    let budget = budget.and_then(|built| match built {
        Ok(budget) => Some(budget),
        Err(error) => {
            section.refused_as(
                if error.field() == "max_wait" {
                    "max_wait"
                } else {
                    "limit"
                },
                &error,
            );
            None
        }
    });
    let mut routes = Routes::new();
    for section in &costs {
        let cost = Cost::read(section);
        section.finish();
        if let Some(budget) = &budget {
            routes = cost.add(section, budget, routes);
        }
    }
    let priorities = priority.and_then(|section| read_priority(&section, budget.as_ref()));
    Limits {
        budget,
        priorities,
        routes,
    }
}

/// The ways in which a limit counts.
#[derive(Clone, Copy)]
enum Kind {
    Sliding,
    Aligned,
    TokenBucket,
}

fn read_limit(section: &Section<'_>) -> Option<Limit> {
    let name = section.needed("name");
    let words = [
        ("sliding", Kind::Sliding),
        ("aligned", Kind::Aligned),
        ("token-bucket", Kind::TokenBucket),
    ];
    section.needed("kind");
    let kind = section.one_of("kind", &words);
    let capacity: Option<u32> = section.needed_number("capacity");
    let window = section.needed_span("window");
    let burst: Option<u32> = section.number("burst");
    let (name, capacity, window) = (name?, capacity?, window?);
    let limit = match kind? {
        Kind::Sliding => Limit::sliding(name, capacity, window),
        Kind::Aligned => Limit::aligned(name, capacity, window),
        Kind::TokenBucket => Limit::token_bucket(name, capacity, window),
    };
    let limit = match burst {
        Some(burst) => limit.burst(burst),
        None => limit,
    };
    // By itself, so that what is wrong with it is told with its line.
    let alone = RateBudget::builder("one").limit(limit.clone()).build();
    match alone {
        Ok(_) => Some(limit),
        Err(error) => {
            let field = match error.field() {
                "limit.period" | "limit.per" => "window",
                "limit.tokens" => "capacity",
                field => field.strip_prefix("limit.").unwrap_or(field),
            };
            section.refused_as(field, &error);
            None
        }
    }
}

fn read_class(section: &Section<'_>) -> Option<Class> {
    let name = section.needed("name");
    let mut class = Class::new(name.unwrap_or("unnamed"));
    if let Some(percent) = section.number("leave_percent") {
        class = class.leave_percent(percent);
    }
    if let Some(percent) = section.number("floor_percent") {
        class = class.floor_percent(percent);
    }
    if let Some(wait) = section.span("max_wait") {
        class = class.max_wait(wait);
    }
    if section.flag("owes_nothing") {
        class = class.owes_nothing();
    }
    let any = Limit::sliding("any", 1, std::time::Duration::from_secs(1));
    let alone = RateBudget::builder("one")
        .limit(any)
        .class(class.clone())
        .build();
    if let Err(error) = alone {
        let field = error.field();
        section.refused_as(field.strip_prefix("class.").unwrap_or(field), &error);
        return None;
    }
    name.map(|_| class)
}

/// What requests with a path, and with a method if it is given, cost.
struct Cost<'f> {
    path: Option<&'f str>,
    method: Option<Method>,
    units: Vec<(&'f str, u32)>,
}

// === impl Cost ===

impl<'f> Cost<'f> {
    fn read(section: &Section<'f>) -> Self {
        let mut units = Vec::new();
        let entries = section.entries("units");
        if entries.is_empty() {
            section.wrong("units", "missing");
        }
        for (limit, value) in entries {
            match whole(value) {
                Some(number) => units.push((limit, number)),
                None => section.wrong(&format!("units.{limit}"), "expected a whole number"),
            }
        }
        Self {
            path: read_path(section),
            method: read_method(section),
            units,
        }
    }

    /// Adds it to those before it, if it fits the limits.
    fn add(self, section: &Section<'_>, budget: &RateBudget, routes: Routes) -> Routes {
        let cost = budget.cost(self.units.iter().copied());
        let (Ok(cost), Some(path)) = (&cost, self.path) else {
            if let Err(error) = cost {
                section.refused_as("units", &error);
            }
            return routes;
        };
        let ticket = Ticket::new().cost(*cost);
        let with = |routes: Routes| match &self.method {
            Some(method) => routes.route(method.clone(), path, ticket),
            None => routes.any(path, ticket),
        };
        let alone = Scope::of(budget.clone()).tickets(with(Routes::new()));
        if let Err(error) = RateLimitLayer::builder(alone).build() {
            section.refused_as("units", &error);
            return routes;
        }
        with(routes)
    }
}

/// Reads the path of a cost, if it is one that a request can have.
fn read_path<'f>(section: &Section<'f>) -> Option<&'f str> {
    let path = section.needed("path")?;
    let can_be = path == "*" || path.starts_with('/') && !path.contains(['?', '#']);
    if !can_be {
        let expected = "expected a path such as /orders/*, or * for all";
        section.wrong("path", format_args!("{path:?}, {expected}"));
    }
    can_be.then_some(path)
}

/// Reads the method of a cost. Methods are told apart by case (RFC 9110, section 9.1), and none that
/// anybody uses is in small letters.
fn read_method(section: &Section<'_>) -> Option<Method> {
    let expected = "a method in capitals, such as POST";
    let method: Method = section.parsed("method", expected)?;
    let small = method
        .as_str()
        .bytes()
        .any(|byte| byte.is_ascii_lowercase());
    if small {
        section.wrong("method", format_args!("{method}, expected {expected}"));
    }
    (!small).then_some(method)
}

/// Reads what callers may say; which classes there are is known of a budget that could be built.
fn read_priority(section: &Section<'_>, budget: Option<&RateBudget>) -> Option<Priorities> {
    let otherwise = section.needed("otherwise");
    let entries = section.entries("values");
    section.finish();
    let snapshot = budget?.snapshot();
    let classes: Vec<&str> = snapshot
        .classes
        .iter()
        .map(|class| class.name.as_str())
        .collect();
    let class = |field: &str, name: &str| {
        let place = classes.iter().position(|class| *class == name);
        if place.is_none() {
            let classes = classes.join(", ");
            section.wrong(field, format_args!("{name:?}, expected one of {classes}"));
        }
        place.map(|place| priority(place, classes.len()))
    };
    let otherwise = class("otherwise", otherwise?);
    let mut values = Vec::new();
    for (value, name) in entries {
        let field = format!("values.{value}");
        match name.as_str() {
            Some(name) => {
                let meaning = class(&field, name);
                values.extend(meaning.map(|meaning| (value.to_owned(), meaning)));
            }
            None => section.wrong(&field, "expected the name of a class"),
        }
    }
    Some(Priorities {
        values,
        otherwise: otherwise?,
    })
}

/// The highest priority of a class: they are divided evenly among the classes.
fn priority(place: usize, classes: usize) -> Priority {
    let number = (place * 256).div_ceil(classes.max(1));
    Priority::new(u8::try_from(number).unwrap_or(u8::MAX))
}
