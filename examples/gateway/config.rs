//! The file: what to listen on, and the upstreams.

use std::{fmt, net::SocketAddr, ops::Range, time::Duration};

use http::HeaderName;

use super::{caller::Names, headers, upstream::Upstream};

mod problems;
mod section;

pub(crate) use self::{
    problems::Problems,
    section::{Section, whole},
};

/// What the file says, checked and built.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    /// How long calls have to end once it was told to stop.
    pub(crate) drain: Duration,
    pub(crate) names: Names,
    pub(crate) upstreams: Vec<Upstream>,
}

/// What an upstream is read with.
pub(crate) struct Reading<'a> {
    /// Where secrets are, which have no business in a file.
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Where everything goes, whatever the file says.
    pub(crate) everything_to: Option<&'a str>,
}

/// Reads a file, with all that it means for the layers, so that everything that is wrong is told at once.
pub(crate) fn read(
    name: &str,
    text: &str,
    environment: &dyn Fn(&str) -> Option<String>,
    everything_to: Option<&str>,
) -> Result<Config, Problems> {
    let problems = Problems::new(name, text);
    let (document, errors) = toml::de::DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or_default();
        let field = match error.message() {
            "duplicate key" => field_at(text, &span),
            _ => String::new(),
        };
        problems.add(span.start, &field, error.message());
    }
    // What is not TOML says nothing: each guess would be one more message that leads nowhere.
    problems.check()?;
    let reading = Reading {
        environment,
        everything_to,
    };
    let file = Section::of_file(document.get_ref(), &problems);
    let listen = file.parsed("listen", "an address and a port, such as 127.0.0.1:8080");
    let drain = file.span("drain");
    let names = names(&file);
    let sections = file.sections("upstream");
    if sections.is_empty() {
        file.wrong("upstream", "there is none");
    }
    let upstreams: Vec<Upstream> = sections
        .iter()
        .filter_map(|section| Upstream::read(section, &reading))
        .collect();
    file.unique(&sections, "name");
    file.unique(&sections, "prefix");
    file.finish();
    problems.check()?;
    Ok(Config {
        listen: listen.unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
        drain: drain.unwrap_or(Duration::from_secs(10)),
        names,
        upstreams,
    })
}

/// Reads the name of a header that can mean something to this gateway or an upstream.
pub(crate) fn header(section: &Section<'_>, key: &'static str) -> Option<HeaderName> {
    let name: HeaderName = section.parsed(key, "the name of a header")?;
    let taken = headers::is_about_transport(&name);
    if taken {
        section.wrong(key, format_args!("{name}, which HTTP itself needs"));
    }
    (!taken).then_some(name)
}

/// Returns the name of what is at a place in a file that cannot be read as a whole: that of its key, after
/// that of the table whose head is the last one before.
fn field_at(text: &str, span: &Range<usize>) -> String {
    let key = text.get(span.clone()).unwrap_or_default();
    let line = text[..span.start].rfind('\n').map_or(0, |end| end + 1);
    let head = |line: &str| {
        let line = line.trim_start().strip_prefix('[')?;
        let name = line.trim_start_matches('[').split(']').next()?;
        Some(name.trim().to_owned())
    };
    if let Some(own) = text[line..].lines().next().and_then(head) {
        return own;
    }
    match text[..line].lines().rev().find_map(head) {
        Some(table) => format!("{table}.{key}"),
        None => key.to_owned(),
    }
}

/// Reads the headers by which callers ask.
fn names(file: &Section<'_>) -> Names {
    let own = HeaderName::from_static;
    let names = Names {
        timeout: header(file, "timeout_header").unwrap_or(own("x-request-timeout")),
        priority: header(file, "priority_header").unwrap_or(own("x-priority")),
    };
    if names.timeout == names.priority {
        let key = match file.text("priority_header") {
            Some(_) => "priority_header",
            None => "timeout_header",
        };
        let name = &names.priority;
        file.wrong(key, format_args!("{name}, which has the other meaning too"));
    }
    names
}

// === impl Config ===

/// Says what the file means, for `--check`.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { listen, drain, .. } = self;
        writeln!(f, "listens on {listen}, drains for {drain:?}")?;
        for upstream in &self.upstreams {
            writeln!(f, "{upstream}")?;
        }
        Ok(())
    }
}

// === impl Reading ===

impl Reading<'_> {
    /// Returns the environment variable whose name the file has under this key.
    pub(crate) fn secret(&self, section: &Section<'_>, key: &'static str) -> Option<String> {
        let variable = section.needed(key)?;
        let value = (self.environment)(variable).filter(|value| !value.is_empty());
        if value.is_none() {
            section.wrong(key, format_args!("the environment has no {variable}"));
        }
        value
    }
}
