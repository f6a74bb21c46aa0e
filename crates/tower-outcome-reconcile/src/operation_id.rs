//! The name by which the server can be asked about an operation.

use http::{Extensions, HeaderValue, header::InvalidHeaderValue};

/// The name by which the server can be asked about an operation: a client order id, an idempotency key.
///
/// Put it into the extensions of a request whose id is in the body or nowhere at all; an id in a header
/// is found by its [name](crate::ReconcileLayerBuilder::id_header).
///
/// ```
/// use http::Request;
/// use tower_outcome_reconcile::OperationId;
///
/// let request = Request::post("https://venue.example/orders")
///     .extension(OperationId::from_static("order-17"))
///     .body(r#"{"clientOrderId":"order-17"}"#)
///     .unwrap();
/// # let _ = request;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperationId(HeaderValue);

// === impl OperationId ===

impl OperationId {
    /// Creates an id.
    ///
    /// # Errors
    ///
    /// If it has a control character, which no header and no log could carry.
    pub fn new(id: impl Into<String>) -> Result<Self, InvalidHeaderValue> {
        HeaderValue::try_from(id.into()).map(Self)
    }

    /// Creates an id from a text that is part of the program.
    ///
    /// # Panics
    ///
    /// If it has a character that is not visible ASCII.
    #[must_use]
    pub const fn from_static(id: &'static str) -> Self {
        Self(HeaderValue::from_static(id))
    }

    /// Returns the id that the extensions of a request carry, if any.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        extensions.get::<Self>()
    }

    /// Returns the id as text, if it is visible ASCII.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.to_str().ok()
    }

    /// Returns the bytes of the id.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The value of a header is one.
impl From<HeaderValue> for OperationId {
    fn from(value: HeaderValue) -> Self {
        Self(value)
    }
}

/// It goes into a header as it is.
impl From<OperationId> for HeaderValue {
    fn from(id: OperationId) -> Self {
        id.0
    }
}
