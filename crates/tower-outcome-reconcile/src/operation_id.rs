//! The name by which the server can be asked about an operation.

use http::{Extensions, HeaderValue, header::InvalidHeaderValue};

/// The name by which the server can be asked about an operation: a client order id, an idempotency key.
///
/// Put it into the extensions of a request whose id is in the body or nowhere at all; an id in a header
/// is found by its [name](crate::ReconcileLayerBuilder::id_header). An empty one names nothing: such a
/// request is not asked about.
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
    ///
    /// Not for a URL: an id may hold a slash, a question mark or a hash, and then the question is about
    /// another operation; [`to_path_segment`](Self::to_path_segment) is.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.0.to_str().ok()
    }

    /// Returns the id for the path or the query of a URL: everything but ASCII letters, digits, `-`, `_`
    /// and `~` is percent-encoded (RFC 3986, section 2.1).
    ///
    /// So it is one segment whatever it holds, and none that means "here" or "above"; a server that decodes
    /// it has the same bytes. Only an empty id is empty, and the layer takes that for no name.
    ///
    /// ```
    /// use tower_outcome_reconcile::OperationId;
    ///
    /// let id = OperationId::from_static("a/../b?c#1");
    /// assert_eq!(id.to_path_segment(), "a%2F%2E%2E%2Fb%3Fc%231");
    /// ```
    #[must_use]
    pub fn to_path_segment(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
        let bytes = self.as_bytes();
        let mut segment = String::with_capacity(bytes.len());
        for &byte in bytes {
            if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~') {
                segment.push(char::from(byte));
            } else {
                segment.push('%');
                for digit in [byte >> 4, byte & 15] {
                    segment.push(char::from(DIGITS[usize::from(digit)]));
                }
            }
        }
        segment
    }

    /// Returns whether it names nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
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
