//! What may be signed.

use http::{HeaderName, header::HOST};
use sfv::{BareItem, FieldType as _, Item};

/// Something of a request that is signed: a component of RFC 9421, section 2.
///
/// Those that begin with an at sign there are of the request itself; [`field`](Self::field) is a header.
/// Trailers, responses and the request of a response cannot be signed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Component(What);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    Method,
    TargetUri,
    Authority,
    Scheme,
    RequestTarget,
    Path,
    Query,
    /// The name as it is written, escaped.
    QueryParam(String),
    Field(HeaderName, Form),
}

/// In which form a field is signed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    Plain,
    Structured,
    Bytes,
    Key(String),
}

/// A component that a signature covers, and how it was written there.
#[derive(Clone, Debug)]
pub(super) struct Covered {
    pub(super) component: Component,
    pub(super) item: Item,
}

// === impl Component ===

impl Component {
    /// The method: `@method`.
    #[must_use]
    pub const fn method() -> Self {
        Self(What::Method)
    }

    /// The whole target: `@target-uri`. The server has to know by which scheme it was reached.
    #[must_use]
    pub const fn target_uri() -> Self {
        Self(What::TargetUri)
    }

    /// The host in lower case, with the port where it is not that of the scheme: `@authority`.
    #[must_use]
    pub const fn authority() -> Self {
        Self(What::Authority)
    }

    /// The scheme in lower case: `@scheme`. The server has to know by which it was reached.
    #[must_use]
    pub const fn scheme() -> Self {
        Self(What::Scheme)
    }

    /// The target as it is written in the first line of a request to the origin, which is path and query:
    /// `@request-target`. One through a proxy that is sent in another form does not verify.
    #[must_use]
    pub const fn request_target() -> Self {
        Self(What::RequestTarget)
    }

    /// The path, as it is sent: `@path`.
    #[must_use]
    pub const fn path() -> Self {
        Self(What::Path)
    }

    /// The query with its question mark, as it is sent; the mark alone where there is none: `@query`.
    #[must_use]
    pub const fn query() -> Self {
        Self(What::Query)
    }

    /// One parameter of the query, by its name without escapes: `@query-param`. It must be there once.
    #[must_use]
    pub fn query_param(name: &str) -> Self {
        Self(What::QueryParam(escaped(name.as_bytes())))
    }

    /// A header, with all its values.
    #[must_use]
    pub const fn field(name: HeaderName) -> Self {
        Self(What::Field(name, Form::Plain))
    }

    /// A structured header in the one form that it has, whatever is between its parts: `;sf`.
    ///
    /// The headers of the standards are known; for others see
    /// [`structured_field`](super::MessageSignerBuilder::structured_field).
    #[must_use]
    pub const fn structured_field(name: HeaderName) -> Self {
        Self(What::Field(name, Form::Structured))
    }

    /// A header with each of its values as bytes: `;bs`. For those that are not ASCII, or whose values
    /// contain commas.
    #[must_use]
    pub const fn field_bytes(name: HeaderName) -> Self {
        Self(What::Field(name, Form::Bytes))
    }

    /// One member of a header that is a dictionary: `;key`.
    ///
    /// A name that no member can have is refused when the signer is built.
    #[must_use]
    pub fn field_member(name: HeaderName, key: impl Into<String>) -> Self {
        Self(What::Field(name, Form::Key(key.into())))
    }

    pub(super) const fn what(&self) -> &What {
        &self.0
    }

    /// The header that it is of.
    pub(super) fn header(&self) -> Option<HeaderName> {
        match &self.0 {
            What::Field(name, _) => Some(name.clone()),
            What::Authority | What::TargetUri => Some(HOST),
            _ => None,
        }
    }

    /// Writes it as an item of a signature's input. `None` if a name cannot be.
    pub(super) fn item(&self) -> Option<Item> {
        let text = |text: &str| {
            Some(BareItem::String(
                sfv::String::from_string(text.to_owned()).ok()?,
            ))
        };
        let mut item = Item::new(text(match &self.0 {
            What::Method => "@method",
            What::TargetUri => "@target-uri",
            What::Authority => "@authority",
            What::Scheme => "@scheme",
            What::RequestTarget => "@request-target",
            What::Path => "@path",
            What::Query => "@query",
            What::QueryParam(_) => "@query-param",
            What::Field(name, _) => name.as_str(),
        })?);
        let (parameter, value) = match &self.0 {
            What::QueryParam(name) => ("name", text(name)?),
            What::Field(_, Form::Structured) => ("sf", BareItem::Boolean(true)),
            What::Field(_, Form::Bytes) => ("bs", BareItem::Boolean(true)),
            What::Field(_, Form::Key(key)) => {
                sfv::KeyRef::from_str(key).ok()?;
                ("key", text(key)?)
            }
            _ => return Some(item),
        };
        let parameter = sfv::Key::from_string(parameter.to_owned()).ok()?;
        item.params.insert(parameter, value);
        Some(item)
    }

    /// Reads it from an item of a signature's input. `None` if it is not one of a request, or not known:
    /// a parameter that is not understood changes what is signed.
    pub(super) fn read(item: &Item) -> Option<Self> {
        let name = item.bare_item.as_string()?.as_str();
        let mut form = Form::Plain;
        let mut query_param = None;
        for (parameter, value) in &item.params {
            match (parameter.as_str(), value) {
                ("name", BareItem::String(value)) => query_param = Some(value.as_str().to_owned()),
                ("sf", BareItem::Boolean(true)) => {
                    // A member of a dictionary is always in its one form.
                    if !matches!(form, Form::Key(_)) {
                        form = one(&form, Form::Structured)?;
                    }
                }
                ("bs", BareItem::Boolean(true)) => form = one(&form, Form::Bytes)?,
                ("key", BareItem::String(key)) => {
                    if form == Form::Structured {
                        form = Form::Plain;
                    }
                    form = one(&form, Form::Key(key.as_str().to_owned()))?;
                }
                _ => return None,
            }
        }
        let what = match (name, query_param, form) {
            ("@query-param", Some(name), Form::Plain) => What::QueryParam(name),
            (_, Some(_), _) => return None,
            ("@method", None, Form::Plain) => What::Method,
            ("@target-uri", None, Form::Plain) => What::TargetUri,
            ("@authority", None, Form::Plain) => What::Authority,
            ("@scheme", None, Form::Plain) => What::Scheme,
            ("@request-target", None, Form::Plain) => What::RequestTarget,
            ("@path", None, Form::Plain) => What::Path,
            ("@query", None, Form::Plain) => What::Query,
            (name, None, form) => {
                // Names are in lower case, or they could be written twice.
                let parsed = HeaderName::try_from(name).ok()?;
                if parsed.as_str() != name {
                    return None;
                }
                What::Field(parsed, form)
            }
        };
        Some(Self(what))
    }
}

// === impl Covered ===

impl Covered {
    pub(super) fn new(component: Component) -> Option<Self> {
        let item = component.item()?;
        Some(Self { component, item })
    }

    pub(super) fn read(item: &Item) -> Option<Self> {
        Some(Self {
            component: Component::read(item)?,
            item: item.clone(),
        })
    }

    pub(super) fn identifier(&self) -> String {
        self.item.serialize()
    }
}

/// Forms cannot be combined.
fn one(form: &Form, other: Form) -> Option<Form> {
    (*form == Form::Plain).then_some(other)
}

/// Writes a name or value of a query in the one form that RFC 9421 gives it in section 2.2.8.
pub(super) fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"*-._".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push('%');
            for digit in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(digit), 16).unwrap_or_default();
                text.push(digit.to_ascii_uppercase());
            }
        }
    }
    text
}
