//! The file: what to listen on, and the upstreams.

use std::{fmt, net::SocketAddr, time::Duration};

use http::HeaderName;

use super::{caller::Names, upstream::Upstream};

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
        let at = error.span().map_or(0, |span| span.start);
        problems.add(at, "", error.message());
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
    let names = Names {
        timeout: header(&file, "timeout_header", "x-request-timeout"),
        priority: header(&file, "priority_header", "x-priority"),
    };
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

/// Reads the name of a header.
pub(crate) fn header(
    section: &Section<'_>,
    key: &'static str,
    default: &'static str,
) -> HeaderName {
    let name = section.parsed(key, "the name of a header");
    name.unwrap_or(HeaderName::from_static(default))
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
