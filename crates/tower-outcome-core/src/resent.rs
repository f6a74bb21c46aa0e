//! How often a layer has sent a request without asking those above.

use http::Extensions;

/// How often a layer has sent a request again without asking those above: in the extensions of the
/// response that came of it.
///
/// A layer that signs does so once where the server refused the time or the nonce, because the refusal
/// proves that nothing was done. A limiter above counts such a request as used when it sees this: it
/// had not waited its turn.
///
/// Where the second sending ends in an error there is no response to carry it; the attempts that the
/// [`CallContext`](crate::CallContext) of the call counts, if there is one, tell then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resent(u32);

// === impl Resent ===

impl Resent {
    /// Returns how often the request of this response was sent again; 0 where nobody says so.
    #[must_use]
    #[inline]
    pub fn times(extensions: &Extensions) -> u32 {
        // Mostly there are none, and then nothing is looked up.
        if extensions.is_empty() {
            return 0;
        }
        extensions.get::<Self>().map_or(0, |resent| resent.0)
    }

    /// Notes that the request of this response was sent once more than is noted so far.
    pub fn note(extensions: &mut Extensions) {
        let resent = extensions.get_or_insert_default::<Self>();
        resent.0 = resent.0.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_that_send_again_add_up() {
        let mut extensions = Extensions::new();
        assert_eq!(Resent::times(&extensions), 0);
        Resent::note(&mut extensions);
        Resent::note(&mut extensions);
        assert_eq!(Resent::times(&extensions), 2);
    }
}
