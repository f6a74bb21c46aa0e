//! The text form of a fault: `name;key=value;...`, percent-encoded, fit for a header.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Fault, GrpcForm, Last, Point};

/// The text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseFaultError {
    field: &'static str,
    value: String,
}

/// The fields of a fault's text, taken out one by one.
struct Fields {
    values: BTreeMap<String, String>,
    headers: Vec<(String, String)>,
}

// === impl Fault ===

impl Fault {
    /// Returns the name of the variant as in its text, for example `reset-stream`; a label for
    /// reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::ErrorBody { .. } => "error-body",
            Self::EarlyAnswer { .. } => "early-answer",
            Self::Close { .. } => "close",
            Self::Reset { .. } => "reset",
            Self::Stall { .. } => "stall",
            Self::Drip { .. } => "drip",
            Self::RefuseStream => "refuse-stream",
            Self::ResetStream { .. } => "reset-stream",
            Self::GoAway { .. } => "goaway",
            Self::CloseIdle => "close-idle",
            Self::ResetIdle => "reset-idle",
            Self::StaleRequestTimeout => "stale-request-timeout",
            Self::Grpc { .. } => "grpc",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Status {
                code,
                applied,
                retry_after,
                headers,
                body,
            } => {
                write!(f, ";code={code};applied={applied}")?;
                optional(f, "retry-after", retry_after.as_deref())?;
                for (name, value) in headers {
                    write!(f, ";header={}:{}", encode(name), encode(value))?;
                }
                optional(f, "body", body.as_deref())
            }
            Self::ErrorBody { applied, body } => {
                write!(f, ";applied={applied};body={}", encode(body))
            }
            Self::EarlyAnswer { code, drain } => write!(f, ";code={code};drain={drain}"),
            Self::Close { at } | Self::Reset { at } | Self::Stall { at } => write!(f, ";at={at}"),
            Self::Drip { interval } => write!(f, ";us={}", interval.as_micros()),
            Self::ResetStream { code, at } => write!(f, ";code={code};at={at}"),
            Self::GoAway {
                last,
                code,
                applied,
                close,
            } => write!(
                f,
                ";last={last};code={code};applied={applied};close={close}"
            ),
            Self::Grpc {
                code,
                form,
                pushback,
                applied,
            } => {
                write!(f, ";code={code};form={form};applied={applied}")?;
                optional(f, "pushback", pushback.as_deref())
            }
            Self::RefuseStream | Self::CloseIdle | Self::ResetIdle | Self::StaleRequestTimeout => {
                Ok(())
            }
        }
    }
}

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, rest) = text.split_once(';').unwrap_or((text, ""));
        let mut fields = Fields::parse(rest)?;
        let fault = match name {
            "status" => Self::Status {
                code: fields.code()?,
                applied: fields.take("applied")?,
                retry_after: fields.optional("retry-after"),
                headers: std::mem::take(&mut fields.headers),
                body: fields.optional("body"),
            },
            "error-body" => Self::ErrorBody {
                applied: fields.take("applied")?,
                body: fields.take("body")?,
            },
            "early-answer" => Self::EarlyAnswer {
                code: fields.code()?,
                drain: fields.take("drain")?,
            },
            "close" => Self::Close {
                at: fields.take("at")?,
            },
            "reset" => Self::Reset {
                at: fields.take("at")?,
            },
            "stall" => Self::Stall {
                at: fields.take("at")?,
            },
            "drip" => Self::Drip {
                interval: Duration::from_micros(fields.take("us")?),
            },
            "refuse-stream" => Self::RefuseStream,
            "reset-stream" => Self::ResetStream {
                code: fields.take("code")?,
                at: fields.take("at")?,
            },
            "goaway" => Self::GoAway {
                last: fields.take("last")?,
                code: fields.take("code")?,
                applied: fields.take("applied")?,
                close: fields.take("close")?,
            },
            "close-idle" => Self::CloseIdle,
            "reset-idle" => Self::ResetIdle,
            "stale-request-timeout" => Self::StaleRequestTimeout,
            "grpc" => Self::Grpc {
                code: fields.take("code")?,
                form: fields.take("form")?,
                pushback: fields.optional("pushback"),
                applied: fields.take("applied")?,
            },
            _ => return Err(ParseFaultError::new("name", name)),
        };
        fields.finish()?;
        Ok(fault)
    }
}

// === impl Point ===

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Head => "head",
            Self::Body => "body",
            Self::Applied => "applied",
            Self::Response => "response",
        })
    }
}

impl FromStr for Point {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|point| point.to_string() == text)
            .ok_or_else(|| ParseFaultError::new("at", text))
    }
}

// === impl Last ===

impl fmt::Display for Last {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below => f.write_str("below"),
            Self::This => f.write_str("this"),
            Self::Max => f.write_str("max"),
            Self::Exactly(id) => write!(f, "{id}"),
        }
    }
}

impl FromStr for Last {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "below" => Ok(Self::Below),
            "this" => Ok(Self::This),
            "max" => Ok(Self::Max),
            _ => text
                .parse()
                .map(Self::Exactly)
                .map_err(|_| ParseFaultError::new("last", text)),
        }
    }
}

// === impl GrpcForm ===

impl fmt::Display for GrpcForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TrailersOnly => "trailers-only",
            Self::TrailersBeforeMessage => "trailers-before-message",
            Self::TrailersAfterMessage => "trailers-after-message",
        })
    }
}

impl FromStr for GrpcForm {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|form| form.to_string() == text)
            .ok_or_else(|| ParseFaultError::new("form", text))
    }
}

// === impl Fields ===

impl Fields {
    fn parse(text: &str) -> Result<Self, ParseFaultError> {
        let mut fields = Self {
            values: BTreeMap::new(),
            headers: Vec::new(),
        };
        for field in text.split(';').filter(|field| !field.is_empty()) {
            let bad = || ParseFaultError::new("field", field);
            let (key, value) = field.split_once('=').ok_or_else(bad)?;
            if key == "header" {
                let (name, value) = value.split_once(':').ok_or_else(bad)?;
                let pair = decode(name).zip(decode(value)).ok_or_else(bad)?;
                fields.headers.push(pair);
            } else {
                let value = decode(value).ok_or_else(bad)?;
                fields.values.insert(key.to_owned(), value);
            }
        }
        Ok(fields)
    }

    fn optional(&mut self, key: &str) -> Option<String> {
        self.values.remove(key)
    }

    fn take<T: FromStr>(&mut self, key: &'static str) -> Result<T, ParseFaultError> {
        let value = self
            .optional(key)
            .ok_or_else(|| ParseFaultError::new(key, ""))?;
        value.parse().map_err(|_| ParseFaultError::new(key, &value))
    }

    fn code(&mut self) -> Result<u16, ParseFaultError> {
        let code: u16 = self.take("code")?;
        if (200..=999).contains(&code) {
            Ok(code)
        } else {
            Err(ParseFaultError::new("code", &code.to_string()))
        }
    }

    fn finish(self) -> Result<(), ParseFaultError> {
        if let Some(key) = self.values.into_keys().next() {
            return Err(ParseFaultError::new("field", &key));
        }
        match self.headers.into_iter().next() {
            Some((name, _)) => Err(ParseFaultError::new("header", &name)),
            None => Ok(()),
        }
    }
}

// === impl ParseFaultError ===

impl ParseFaultError {
    fn new(field: &'static str, value: &str) -> Self {
        Self {
            field,
            value: value.to_owned(),
        }
    }

    /// Returns the field that could not be read.
    #[must_use]
    pub fn field(&self) -> &str {
        self.field
    }

    /// Returns the text of that field, empty when it is missing.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }
}

impl fmt::Display for ParseFaultError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad {} {:?} in a fault", self.field, self.value)
    }
}

impl Error for ParseFaultError {}

fn optional(f: &mut fmt::Formatter<'_>, key: &str, value: Option<&str>) -> fmt::Result {
    match value {
        Some(value) => write!(f, ";{key}={}", encode(value)),
        None => Ok(()),
    }
}

/// Escapes everything but letters, digits and a few marks that cannot end a field.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_survives_its_text() {
        let odd = Fault::Status {
            code: 429,
            applied: true,
            retry_after: Some("Fri, 31 Dec 1999; %".to_owned()),
            headers: vec![("x-a".to_owned(), "b;c=d:é".to_owned())],
            body: Some(String::new()),
        };
        for fault in Fault::all().chain([odd]) {
            let text = fault.to_string();
            assert_eq!(text.parse(), Ok(fault.clone()), "{text}");
            assert!(text.starts_with(fault.name()));
            assert_eq!(fault.header_value().as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn what_is_no_fault_names_the_field() {
        for (text, field) in [
            ("", "name"),
            ("explode", "name"),
            ("close", "at"),
            ("close;at=never", "at"),
            ("close;at=head;at2=x", "field"),
            ("close;at=head;header=a:b", "header"),
            ("status;code=99;applied=true", "code"),
            ("status;code=200;applied=perhaps", "applied"),
            ("error-body;applied=true;body=%zz", "field"),
            ("error-body;applied=true;body=%ff", "field"),
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            assert_eq!(error.field(), field, "{text}: {error}");
        }
    }
}
