//! Fields whose structure is known.

use http::{HeaderMap, HeaderName};
use sfv::{Dictionary, FieldType as _, Item, List, ListEntry, Parser};

/// The type of a structured field (RFC 9651, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FieldType {
    /// One item.
    Item,
    /// A list.
    List,
    /// A dictionary.
    Dictionary,
}

/// Which fields are structured, and how.
#[derive(Clone, Debug)]
pub(super) struct Fields(Vec<(HeaderName, FieldType)>);

/// Those of the standards; the others are for the caller to say.
const KNOWN: &[(&str, FieldType)] = &[
    ("accept-signature", FieldType::Dictionary),
    ("cache-status", FieldType::List),
    ("client-cert", FieldType::Item),
    ("client-cert-chain", FieldType::List),
    ("content-digest", FieldType::Dictionary),
    ("priority", FieldType::Dictionary),
    ("proxy-status", FieldType::List),
    ("repr-digest", FieldType::Dictionary),
    ("signature", FieldType::Dictionary),
    ("signature-input", FieldType::Dictionary),
    ("want-content-digest", FieldType::Dictionary),
    ("want-repr-digest", FieldType::Dictionary),
];

// === impl Fields ===

impl Fields {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, name: HeaderName, field_type: FieldType) {
        self.0.push((name, field_type));
    }

    fn find(&self, name: &HeaderName) -> Option<FieldType> {
        let own = self.0.iter().rev().find(|(own, _)| own == name);
        let known = || KNOWN.iter().find(|(known, _)| name == known);
        own.map(|(_, found)| *found)
            .or_else(|| known().map(|(_, found)| *found))
    }

    /// Writes a field in the one form that it has (RFC 9421, section 2.1.1), if it is known to be
    /// structured and is.
    pub(super) fn strict(&self, name: &HeaderName, text: &str) -> Option<String> {
        let parser = Parser::new(text);
        match self.find(name)? {
            FieldType::Item => Some(parser.parse::<Item>().ok()?.serialize()),
            // What is empty is not written at all, and as a value is nothing.
            FieldType::List => Some(parser.parse::<List>().ok()?.serialize().unwrap_or_default()),
            FieldType::Dictionary => {
                let dictionary = parser.parse::<Dictionary>().ok()?;
                Some(dictionary.serialize().unwrap_or_default())
            }
        }
    }
}

/// All values of a field, joined as RFC 9421 does in section 2.1. `None` if there are none, or if one is
/// not ASCII: then what is signed would not be a text.
pub(super) fn combined(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut text: Option<String> = None;
    for value in headers.get_all(name) {
        // Neither line breaks nor control characters but tabs.
        let value = value.to_str().ok()?.trim_matches([' ', '\t']);
        match &mut text {
            Some(text) => {
                text.push_str(", ");
                text.push_str(value);
            }
            None => text = Some(value.to_owned()),
        }
    }
    text
}

/// A field that is a dictionary, of all its values.
pub(super) fn dictionary(headers: &HeaderMap, name: &HeaderName) -> Option<Dictionary> {
    Parser::new(&combined(headers, name)?).parse().ok()
}

/// Writes a member of a dictionary without its name (RFC 9421, section 2.1.2).
pub(super) fn member(entry: &ListEntry) -> String {
    match entry {
        ListEntry::Item(item) => item.serialize(),
        ListEntry::InnerList(list) => {
            let list = vec![ListEntry::InnerList(list.clone())];
            list.serialize().unwrap_or_default()
        }
    }
}
