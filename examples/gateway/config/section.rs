//! A table of the file, read key by key.

use std::{cell::RefCell, collections::HashSet, str::FromStr, time::Duration};

use toml::de::{DeTable, DeValue};
use tower_outcome::ConfigError;

use super::{super::span, Problems};

/// A table of the file. What is asked for is known; what is left over at the [end](Self::finish) is a
/// mistake. Whatever is wrong is added to the problems of the file, and reads as if it were not there.
#[derive(Debug)]
pub(crate) struct Section<'f> {
    table: &'f DeTable<'f>,
    /// The names that lead here, each with a dot after it.
    path: String,
    at: usize,
    known: RefCell<HashSet<&'static str>>,
    problems: &'f Problems,
}

// === impl Section ===

impl<'f> Section<'f> {
    pub(super) fn of_file(table: &'f DeTable<'f>, problems: &'f Problems) -> Self {
        Self::new(table, String::new(), 0, problems)
    }

    fn new(table: &'f DeTable<'f>, path: String, at: usize, problems: &'f Problems) -> Self {
        Self {
            table,
            path,
            at,
            known: RefCell::default(),
            problems,
        }
    }

    /// Says what is wrong with a field in here, such as `backoff.cap`; if it is not in the file, where it
    /// would be.
    pub(crate) fn wrong(&self, field: &str, what: impl std::fmt::Display) {
        let (mut at, mut table) = (self.at, self.table);
        for name in field.split('.') {
            let Some((key, value)) = table.get_key_value(name) else {
                break;
            };
            at = key.span().start;
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                _ => break,
            }
        }
        let field = format!("{}{field}", self.path);
        self.problems.add(at, field.trim_end_matches('.'), what);
    }

    /// Says what a builder found wrong, with a field of that name in here.
    pub(crate) fn refused(&self, error: &ConfigError) {
        self.refused_as(error.field(), error);
    }

    /// Says what a builder found wrong with a field that has another name here.
    pub(crate) fn refused_as(&self, field: &str, error: &ConfigError) {
        let (value, expected) = (error.value(), error.expected());
        self.wrong(field, format_args!("{value}, expected {expected}"));
    }

    /// Returns a text.
    pub(crate) fn text(&self, key: &'static str) -> Option<&'f str> {
        match self.get(key)? {
            DeValue::String(text) => Some(text),
            other => self.of_another_type(key, other, "a string"),
        }
    }

    /// Returns a text that has to be there.
    pub(crate) fn needed(&self, key: &'static str) -> Option<&'f str> {
        if !self.table.contains_key(key) {
            self.wrong(key, "missing");
        }
        self.text(key).filter(|text| {
            if text.is_empty() {
                self.wrong(key, "empty");
            }
            !text.is_empty()
        })
    }

    /// Returns a text that means something.
    pub(crate) fn parsed<T: FromStr>(&self, key: &'static str, expected: &str) -> Option<T> {
        let text = self.text(key)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            self.wrong(key, format_args!("{text:?}, expected {expected}"));
        }
        parsed
    }

    /// Returns what one of some words stands for.
    pub(crate) fn one_of<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(key)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let words = words.join(", ");
            self.wrong(key, format_args!("{text:?}, expected one of {words}"));
        }
        found.map(|(_, meaning)| *meaning)
    }

    /// Returns a span of time.
    pub(crate) fn span(&self, key: &'static str) -> Option<Duration> {
        let text = self.text(key)?;
        let span = span::parse(text);
        if span.is_none() {
            self.wrong(key, format_args!("{text:?}, expected {}", span::FORM));
        }
        span
    }

    /// Returns a span of time that has to be there.
    pub(crate) fn needed_span(&self, key: &'static str) -> Option<Duration> {
        self.needed(key)?;
        self.span(key)
    }

    /// Returns a span of time, or `None` for the word `off`.
    pub(crate) fn span_or_off(&self, key: &'static str) -> Option<Option<Duration>> {
        match self.get(key)? {
            DeValue::String(text) if text == "off" => Some(None),
            _ => self.span(key).map(Some),
        }
    }

    /// Returns a whole number.
    pub(crate) fn number<T: TryFrom<i64>>(&self, key: &'static str) -> Option<T> {
        let value = self.get(key)?;
        let DeValue::Integer(digits) = value else {
            return self.of_another_type(key, value, "a whole number");
        };
        let number = whole(value);
        if number.is_none() {
            self.wrong(key, format_args!("{digits}, which is out of range"));
        }
        number
    }

    /// Returns a whole number that has to be there.
    pub(crate) fn needed_number<T: TryFrom<i64>>(&self, key: &'static str) -> Option<T> {
        if !self.table.contains_key(key) {
            self.wrong(key, "missing");
        }
        self.number(key)
    }

    /// Returns yes or no; no if it is not there.
    pub(crate) fn flag(&self, key: &'static str) -> bool {
        match self.get(key) {
            None => false,
            Some(DeValue::Boolean(flag)) => *flag,
            Some(other) => self
                .of_another_type(key, other, "true or false")
                .unwrap_or(false),
        }
    }

    /// Returns a list of texts.
    pub(crate) fn texts(&self, key: &'static str) -> Vec<&'f str> {
        self.list(key, "a list of strings", |value| value.as_str())
    }

    /// Returns a list of whole numbers from 0 to 65535.
    pub(crate) fn numbers(&self, key: &'static str) -> Vec<u16> {
        self.list(key, "a list of whole numbers up to 65535", whole)
    }

    fn list<T>(
        &self,
        key: &'static str,
        expected: &str,
        read: impl Fn(&'f DeValue<'f>) -> Option<T>,
    ) -> Vec<T> {
        let items = match self.get(key) {
            None => return Vec::new(),
            Some(DeValue::Array(items)) => {
                let items = items.iter().map(|item| read(item.get_ref()));
                items.collect::<Option<Vec<T>>>()
            }
            Some(_) => None,
        };
        if items.is_none() {
            self.wrong(key, format_args!("expected {expected}"));
        }
        items.unwrap_or_default()
    }

    /// Returns the keys and values of a table whose keys the file chooses.
    pub(crate) fn entries(&self, key: &'static str) -> Vec<(&'f str, &'f DeValue<'f>)> {
        match self.get(key) {
            None => Vec::new(),
            Some(DeValue::Table(table)) => {
                let entries = table.iter();
                entries
                    .map(|(key, value)| (key.get_ref().as_ref(), value.get_ref()))
                    .collect()
            }
            Some(other) => self
                .of_another_type(key, other, "a table")
                .unwrap_or_default(),
        }
    }

    /// Returns a table below this one.
    pub(crate) fn section(&self, key: &'static str) -> Option<Self> {
        match self.get(key)? {
            DeValue::Table(table) => {
                let at = self.table.get_key_value(key)?.0.span().start;
                let path = format!("{}{key}.", self.path);
                Some(Self::new(table, path, at, self.problems))
            }
            other => self.of_another_type(key, other, "a table"),
        }
    }

    /// Returns the tables of an array of tables.
    pub(crate) fn sections(&self, key: &'static str) -> Vec<Self> {
        let Some(value) = self.get(key) else {
            return Vec::new();
        };
        let tables = value.as_array().into_iter().flatten().map(|item| {
            let table = item.get_ref().as_table()?;
            let path = format!("{}{key}.", self.path);
            Some(Self::new(table, path, item.span().start, self.problems))
        });
        let tables: Option<Vec<Self>> = tables.collect();
        match (value.is_array(), tables) {
            (true, Some(tables)) => tables,
            _ => self
                .of_another_type(
                    key,
                    value,
                    &format!("tables, each under [[{}{key}]]", self.path),
                )
                .unwrap_or_default(),
        }
    }

    /// Says of each section that has the same text under this key as one before it; returns whether none
    /// has.
    pub(crate) fn unique(&self, sections: &[Self], key: &'static str) -> bool {
        let mut seen = HashSet::new();
        let mut unique = true;
        for section in sections {
            let value = section.table.get(key);
            let value = value.and_then(|value| value.get_ref().as_str());
            if let Some(value) = value.filter(|value| !seen.insert(*value)) {
                section.wrong(key, format_args!("{value:?}, which another one has"));
                unique = false;
            }
        }
        unique
    }

    /// Says of each key that nobody has asked for that it means nothing.
    pub(crate) fn finish(&self) {
        let known = self.known.borrow();
        for (key, _) in self.table {
            let key = key.get_ref();
            if !known.contains(key.as_ref()) {
                let mut known: Vec<&str> = known.iter().copied().collect();
                known.sort_unstable();
                let known = known.join(", ");
                self.wrong(
                    key,
                    format_args!("nothing is known by this name, but: {known}"),
                );
            }
        }
    }

    fn get(&self, key: &'static str) -> Option<&'f DeValue<'f>> {
        self.known.borrow_mut().insert(key);
        self.table.get(key).map(|value| value.get_ref())
    }

    fn of_another_type<T>(&self, key: &str, value: &DeValue<'_>, expected: &str) -> Option<T> {
        let kind = value.type_str();
        self.wrong(key, format_args!("of type {kind}, expected {expected}"));
        None
    }
}

/// Reads a whole number, however it is written: `0x1ad` is one, too.
pub(crate) fn whole<T: TryFrom<i64>>(value: &DeValue<'_>) -> Option<T> {
    let digits = value.as_integer()?;
    let number = i64::from_str_radix(digits.as_str(), digits.radix()).ok()?;
    T::try_from(number).ok()
}
