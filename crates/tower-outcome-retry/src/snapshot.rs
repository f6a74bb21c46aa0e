//! What is kept of a request so that it can be sent again.

use bytes::Bytes;
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, request,
};

/// What is kept of a request so that it can be sent again.
///
/// A full clone of the head costs two allocations and a reference count per header. Nearly all
/// requests succeed, so the names and values are copied into one piece of memory instead, and
/// parsed again only for a resend.
#[derive(Debug)]
pub(crate) struct Snapshot {
    method: Method,
    uri: Uri,
    version: Version,
    headers: Headers,
    extensions: Extensions,
}

/// Names and values, each with its lengths before it.
#[derive(Debug)]
struct Headers {
    count: usize,
    packed: Vec<u8>,
}

/// The lengths of a name and a value, and whether the value is sensitive.
const PREFIX: usize = 2 + 4 + 1;

// === impl Snapshot ===

impl Snapshot {
    /// Copies a request's head, or returns `None` if it has a header of 4 GiB.
    pub(crate) fn of(head: &request::Parts) -> Option<Self> {
        Some(Self {
            headers: Headers::pack(&head.headers)?,
            method: head.method.clone(),
            uri: head.uri.clone(),
            version: head.version,
            extensions: head.extensions.clone(),
        })
    }

    /// Makes the request again.
    pub(crate) fn restore<B>(&self, body: B) -> Option<Request<B>> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers.unpack()?;
        *request.extensions_mut() = self.extensions.clone();
        Some(request)
    }
}

// === impl Headers ===

impl Headers {
    fn pack(headers: &HeaderMap) -> Option<Self> {
        let size = headers
            .iter()
            .map(|(name, value)| PREFIX + name.as_str().len() + value.len())
            .sum();
        let mut packed = Vec::with_capacity(size);
        for (name, value) in headers {
            let (name, bytes) = (name.as_str().as_bytes(), value.as_bytes());
            packed.extend_from_slice(&u16::try_from(name.len()).ok()?.to_le_bytes());
            packed.extend_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
            packed.push(u8::from(value.is_sensitive()));
            packed.extend_from_slice(name);
            packed.extend_from_slice(bytes);
        }
        Some(Self {
            count: headers.len(),
            packed,
        })
    }

    /// What was packed were names and values, so `None` is never returned in practice; it only
    /// spares a promise to the reader.
    fn unpack(&self) -> Option<HeaderMap> {
        let mut headers = HeaderMap::with_capacity(self.count);
        // One shared copy for all values.
        let packed = Bytes::copy_from_slice(&self.packed);
        let mut at = 0;
        while at < packed.len() {
            let prefix = packed.get(at..at + PREFIX)?;
            let name_len = usize::from(u16::from_le_bytes(prefix[..2].try_into().ok()?));
            let value_len = u32::from_le_bytes(prefix[2..6].try_into().ok()?);
            let sensitive = prefix[6] == 1;
            let name_at = at + PREFIX;
            let value_at = name_at + name_len;
            at = value_at + usize::try_from(value_len).ok()?;
            let name = HeaderName::from_bytes(packed.get(name_at..value_at)?).ok()?;
            let mut value = HeaderValue::from_maybe_shared(packed.slice(value_at..at)).ok()?;
            value.set_sensitive(sensitive);
            headers.append(name, value);
        }
        Some(headers)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packed_again(headers: &HeaderMap) -> HeaderMap {
        Headers::pack(headers).unwrap().unpack().unwrap()
    }

    #[test]
    fn sensitive_values_stay_sensitive() {
        let mut headers = HeaderMap::new();
        let mut secret = HeaderValue::from_static("secret");
        secret.set_sensitive(true);
        headers.insert("authorization", secret);
        headers.insert("x-plain", HeaderValue::from_static("plain"));
        let again = packed_again(&headers);
        assert!(again["authorization"].is_sensitive());
        assert!(!again["x-plain"].is_sensitive());
    }

    #[test]
    fn extensions_method_target_and_version_are_kept() {
        let request = Request::put("https://venue.example/orders/1?dry=true")
            .version(Version::HTTP_2)
            .extension(7_u32)
            .body(())
            .unwrap();
        let (head, ()) = request.into_parts();
        let again = Snapshot::of(&head).unwrap().restore(()).unwrap();
        assert_eq!(again.method(), Method::PUT);
        assert_eq!(again.uri(), "https://venue.example/orders/1?dry=true");
        assert_eq!(again.version(), Version::HTTP_2);
        assert_eq!(again.extensions().get::<u32>(), Some(&7));
    }

    proptest! {
        #[test]
        fn headers_come_back_as_they_were(
            pairs in proptest::collection::vec(
                ("[a-z][a-z0-9-]{0,40}", proptest::collection::vec(any::<u8>(), 0..100)),
                0..20,
            )
        ) {
            let mut headers = HeaderMap::new();
            for (name, value) in &pairs {
                if let Ok(value) = HeaderValue::from_bytes(value) {
                    headers.append(HeaderName::from_bytes(name.as_bytes()).unwrap(), value);
                }
            }
            prop_assert_eq!(packed_again(&headers), headers);
        }
    }
}
