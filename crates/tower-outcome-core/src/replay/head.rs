//! What is kept of a request's head so that it can be sent again.

use std::{fmt, mem::take};

use bytes::Bytes;
use http::{
    Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, request,
    uri::{Authority, PathAndQuery, Scheme},
};

use crate::{Attempt, Deadline, carried::Carried};

/// What is kept of a request's head so that it can be sent again.
///
/// A full clone of the head costs two allocations and a reference count per header. Nearly all
/// requests succeed, so everything that is text is copied into one piece of memory instead, and
/// parsed again only for a resend.
///
/// ```
/// use http::Request;
/// use tower_outcome_core::replay::HeadCopy;
///
/// let (head, body) = Request::put("https://venue.example/orders/1")
///     .header("x-client", "desk 7")
///     .body("buy 100")
///     .unwrap()
///     .into_parts();
/// let copy = HeadCopy::of(&head).unwrap();
/// let again = copy.restore(body).unwrap();
/// assert_eq!(again.headers(), &head.headers);
/// ```
pub struct HeadCopy {
    method: Method,
    scheme: Option<Scheme>,
    /// Pairs of texts: authority and path, then name and value of each header.
    packed: Vec<u8>,
    version: Version,
    extensions: Kept,
}

/// What is kept of a request's extensions. To clone a map takes three allocations, and mostly nobody but
/// the layers above has put anything into it.
enum Kept {
    Nothing,
    Ours {
        carried: Option<Carried>,
        deadline: Option<Deadline>,
    },
    All(Extensions),
}

/// Reads pairs in the order in which they were packed.
#[derive(Debug)]
struct Unpack {
    rest: Bytes,
}

/// Before each pair: the length of the first text, that of the second, and whether it is sensitive.
const PREFIX: usize = 4 + 4;

/// What a header takes by guess: its lengths, its name, and a value such as a key or a date.
const PER_HEADER: usize = PREFIX + 16 + 48;

/// The bit of the second length that says that the text is sensitive. Lengths stay below it.
const SENSITIVE: u32 = 1 << 31;

// === impl HeadCopy ===

impl HeadCopy {
    /// Copies a request's head, or returns `None` if it has 2 GiB.
    #[must_use]
    #[inline]
    pub fn of(head: &request::Parts) -> Option<Self> {
        Self::copy(head, Vec::with_capacity)
    }

    /// Copies a request's head into memory that an earlier copy has [left](Self::into_memory), as far
    /// as that suffices: for a layer that copies every request and needs nearly no copy.
    #[must_use]
    #[inline]
    pub fn within(head: &request::Parts, mut memory: Vec<u8>) -> Option<Self> {
        Self::copy(head, |room| {
            if memory.capacity() == 0 {
                Vec::with_capacity(room)
            } else {
                take(&mut memory)
            }
        })
    }

    #[inline]
    fn copy(head: &request::Parts, mut memory: impl FnMut(usize) -> Vec<u8>) -> Option<Self> {
        // An absent part is packed as an empty text, which no part can be.
        let path = head.uri.path_and_query().map_or("", PathAndQuery::as_str);
        let authority = head.uri.authority().map_or("", Authority::as_str);

        // Guessed and not summed up, which would be a second walk over the headers.
        let target = PREFIX + authority.len() + path.len();
        let mut room = target + head.headers.len() * PER_HEADER;
        let packed = loop {
            match pack_all(memory(room), room, authority, path, &head.headers) {
                Some(packed) => break packed,
                None => {
                    let exact = size(target, &head.headers)?;
                    if exact <= room {
                        return None;
                    }
                    room = exact;
                }
            }
        };
        Some(Self {
            method: head.method.clone(),
            scheme: head.uri.scheme().cloned(),
            packed,
            version: head.version,
            extensions: Kept::of(&head.extensions),
        })
    }

    /// Returns the memory that it took, for another copy. What was copied is still in there.
    #[must_use]
    pub fn into_memory(self) -> Vec<u8> {
        self.packed
    }

    /// Returns the deadline of the call, if it has one.
    #[must_use]
    pub fn deadline(&self) -> Option<Deadline> {
        match &self.extensions {
            Kept::Nothing => None,
            Kept::Ours { carried, deadline } => {
                deadline.or_else(|| carried.as_ref().and_then(Carried::deadline))
            }
            Kept::All(extensions) => Deadline::of(extensions),
        }
    }

    /// Returns which attempt the request was.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        match &self.extensions {
            Kept::Nothing | Kept::Ours { .. } => Attempt::FIRST,
            Kept::All(extensions) => Attempt::of(extensions),
        }
    }

    /// Makes the request again.
    ///
    /// What was packed was valid, so `None` is never returned in practice; it only spares a promise
    /// to the reader.
    #[must_use]
    pub fn restore<B>(&self, body: B) -> Option<Request<B>> {
        // One shared copy for all texts.
        let mut unpack = Unpack {
            rest: Bytes::copy_from_slice(&self.packed),
        };
        let mut request = Request::new(body);
        *request.version_mut() = self.version;
        *request.extensions_mut() = self.extensions.restore();

        *request.method_mut() = self.method.clone();
        let (authority, path, _) = unpack.pair()?;
        let mut target = http::uri::Parts::default();
        target.scheme.clone_from(&self.scheme);
        if !path.is_empty() {
            target.path_and_query = Some(PathAndQuery::from_maybe_shared(path).ok()?);
        }
        if !authority.is_empty() {
            target.authority = Some(Authority::from_maybe_shared(authority).ok()?);
        }
        *request.uri_mut() = Uri::from_parts(target).ok()?;

        let headers: &mut HeaderMap = request.headers_mut();
        while !unpack.rest.is_empty() {
            let (name, value, sensitive) = unpack.pair()?;
            let name = HeaderName::from_bytes(&name).ok()?;
            let mut value = HeaderValue::from_maybe_shared(value).ok()?;
            value.set_sensitive(sensitive);
            headers.append(name, value);
        }
        Some(request)
    }
}

/// Shows no header, which may be a secret.
impl fmt::Debug for HeadCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeadCopy")
            .field("method", &self.method)
            .field("size", &self.packed.len())
            .finish_non_exhaustive()
    }
}

// === impl Kept ===

impl Kept {
    #[inline]
    fn of(extensions: &Extensions) -> Self {
        if extensions.is_empty() {
            return Self::Nothing;
        }
        let carried = extensions.get::<Carried>();
        if let (Some(carried), 1) = (carried, extensions.len()) {
            let (carried, deadline) = (Some(carried.clone()), None);
            return Self::Ours { carried, deadline };
        }
        let deadline = extensions.get::<Deadline>().copied();
        if extensions.len() == usize::from(carried.is_some()) + usize::from(deadline.is_some()) {
            let carried = carried.cloned();
            Self::Ours { carried, deadline }
        } else {
            Self::All(extensions.clone())
        }
    }

    fn restore(&self) -> Extensions {
        match self {
            Self::Nothing => Extensions::new(),
            Self::Ours { carried, deadline } => {
                let mut extensions = Extensions::new();
                if let Some(carried) = carried {
                    extensions.insert(carried.clone());
                }
                if let Some(deadline) = deadline {
                    extensions.insert(*deadline);
                }
                extensions
            }
            Self::All(extensions) => extensions.clone(),
        }
    }
}

/// Packs everything into so many bytes, or returns `None` if it does not fit.
///
/// Into slices, which know their length, a pair goes with fewer checks than onto the end of a vector
/// that may have to grow. Memory comes by `with_capacity`, since `vec![0; room]` calls calloc, which passes
/// by glibc's cache of the thread: 450 instructions more.
#[inline]
fn pack_all(
    memory: Vec<u8>,
    room: usize,
    authority: &str,
    path: &str,
    headers: &HeaderMap,
) -> Option<Vec<u8>> {
    let mut packed = memory;
    // What is in there is written over, so only what is missing is filled.
    packed.resize(room, 0);
    let mut rest = pack(&mut packed, authority, path.as_bytes(), false)?;
    for (name, value) in headers {
        rest = pack(rest, name.as_str(), value.as_bytes(), value.is_sensitive())?;
    }
    let unused = rest.len();
    packed.truncate(room - unused);
    Some(packed)
}

/// Writes a pair to the front, and returns what is left.
#[inline]
fn pack<'a>(
    rest: &'a mut [u8],
    first: &str,
    second: &[u8],
    sensitive: bool,
) -> Option<&'a mut [u8]> {
    let (prefix, rest) = rest.split_first_chunk_mut::<PREFIX>()?;
    // A text of 2 GiB does not fit: neither into a guess nor into what `size` allows.
    let lengths = (first.len() as u64) | (second.len() as u64) << 32;
    *prefix = (lengths | u64::from(sensitive) << 63).to_le_bytes();
    let (to, rest) = rest.split_at_mut_checked(first.len())?;
    to.copy_from_slice(first.as_bytes());
    let (to, rest) = rest.split_at_mut_checked(second.len())?;
    to.copy_from_slice(second);
    Some(rest)
}

/// Returns how many bytes a head needs, or `None` if that is 2 GiB or more.
#[cold]
fn size(target: usize, headers: &HeaderMap) -> Option<usize> {
    let size = headers
        .iter()
        .map(|(name, value)| PREFIX + name.as_str().len() + value.len())
        .fold(target, usize::saturating_add);
    (size < SENSITIVE as usize).then_some(size)
}

// === impl Unpack ===

impl Unpack {
    /// Returns the next two texts, and whether the second is sensitive.
    fn pair(&mut self) -> Option<(Bytes, Bytes, bool)> {
        let prefix = self.take(PREFIX)?;
        let first = u32::from_le_bytes(prefix[..4].try_into().ok()?);
        let second = u32::from_le_bytes(prefix[4..].try_into().ok()?);
        let sensitive = second & SENSITIVE != 0;
        let first = self.take(first as usize)?;
        let second = self.take((second & !SENSITIVE) as usize)?;
        Some((first, second, sensitive))
    }

    fn take(&mut self, size: usize) -> Option<Bytes> {
        (size <= self.rest.len()).then(|| self.rest.split_to(size))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn again(request: Request<()>) -> Request<()> {
        let (head, ()) = request.into_parts();
        HeadCopy::of(&head).unwrap().restore(()).unwrap()
    }

    #[test]
    fn memory_that_was_used_before_changes_nothing() {
        let mut memory = vec![7; 3];
        for length in [2000, 10, 0, 5000, 300] {
            let request = Request::put("https://venue.example/orders/1")
                .header("x-long", "v".repeat(length))
                .body(())
                .unwrap();
            let (head, ()) = request.into_parts();
            let copy = HeadCopy::within(&head, memory).unwrap();
            assert_eq!(copy.restore(()).unwrap().headers(), &head.headers);
            memory = copy.into_memory();
        }
    }

    #[test]
    fn whatever_a_request_carries_is_kept() {
        let end = Deadline::at(tokio::time::Instant::now());
        let context = crate::CallContext::with_deadline(Some(end));
        let second = Attempt::FIRST.next(true);
        for mask in 0..16 {
            let mut request = Request::new(());
            let extensions = request.extensions_mut();
            if mask & 1 != 0 {
                context.put(extensions);
            }
            if mask & 2 != 0 {
                extensions.insert(end);
            }
            if mask & 4 != 0 {
                extensions.insert(second);
            }
            if mask & 8 != 0 {
                extensions.insert(7_u32);
            }
            let (head, ()) = request.into_parts();
            let copy = HeadCopy::of(&head).unwrap();
            assert_eq!(copy.deadline(), Deadline::of(&head.extensions));
            assert_eq!(copy.attempt(), Attempt::of(&head.extensions));
            let again = copy.restore(()).unwrap();
            let again = again.extensions();
            assert_eq!(Deadline::of(again), Deadline::of(&head.extensions));
            assert_eq!(
                crate::CallContext::of(again).is_some(),
                crate::CallContext::of(&head.extensions).is_some()
            );
            assert_eq!(Attempt::of(again), Attempt::of(&head.extensions));
            assert_eq!(again.get::<u32>(), head.extensions.get::<u32>());
            assert_eq!(again.len(), head.extensions.len());
        }
    }

    fn packed_again(headers: &HeaderMap) -> HeaderMap {
        let mut request = Request::new(());
        *request.headers_mut() = headers.clone();
        take(again(request).headers_mut())
    }

    #[test]
    fn every_form_of_target_is_kept() {
        for target in [
            "https://venue.example",
            "https://venue.example/",
            "https://venue.example?page=2",
            "http://user:secret@venue.example:8080/orders?a=b&c=%20#gone",
            "http://[::1]:80/",
            "custom+scheme://host/path",
            "/orders?dry=true",
            "/",
            "?query",
            "*",
            "venue.example:443",
            "venue.example",
            "/caf\u{e9}",
        ] {
            // Not every version of `http` takes every form.
            let Ok(target) = target.parse::<Uri>() else {
                continue;
            };
            let request = Request::builder().uri(target.clone()).body(()).unwrap();
            let again = again(request);
            assert_eq!(again.uri(), &target);
            assert_eq!(again.uri().to_string(), target.to_string());
            assert_eq!(again.uri().scheme(), target.scheme());
            assert_eq!(again.uri().authority(), target.authority());
            assert_eq!(again.uri().path_and_query(), target.path_and_query());
        }
        assert_eq!(again(Request::new(())).uri(), &Uri::default());
    }

    #[test]
    fn a_method_of_the_callers_own_is_kept() {
        for method in ["PURGE", "A-METHOD-LONGER-THAN-WHAT-IS-KEPT-INLINE"] {
            let request = Request::builder().method(method).body(()).unwrap();
            assert_eq!(again(request).method(), method);
        }
    }

    #[test]
    fn headers_longer_than_guessed_are_kept() {
        for length in [0, 100, 10_000] {
            let mut headers = HeaderMap::new();
            let value = "v".repeat(length);
            headers.insert("authorization", HeaderValue::from_str(&value).unwrap());
            headers.insert("x-short", HeaderValue::from_static("s"));
            assert_eq!(packed_again(&headers), headers);
        }
    }

    #[test]
    fn values_of_one_name_stay_apart_and_in_order() {
        let mut headers = HeaderMap::new();
        for value in ["one", "", "two"] {
            headers.append("x-many", HeaderValue::from_static(value));
        }
        assert_eq!(packed_again(&headers), headers);
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
        let again = again(request);
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
