use zeroize::ZeroizeOnDrop;

use super::*;

/// Compiles for what overwrites itself when it is dropped.
const fn erased<T: ZeroizeOnDrop>(_: &T) {}

/// The same for HMAC, whose type does not say so: all that it keeps of a key are two states of its
/// hash function.
#[cfg(feature = "hmac")]
const fn states_erased<D: hmac::EagerHash<Core: ZeroizeOnDrop>>(_: &Hmac<D>) {}

/// A key of a new kind has to be put into one of these arms.
#[test]
fn keys_are_overwritten_when_they_are_dropped() {
    let look = |kind: &Kind| match kind {
        #[cfg(feature = "hmac")]
        Kind::HmacSha1(mac) => states_erased(mac),
        #[cfg(feature = "hmac")]
        Kind::HmacSha256(mac) => states_erased(mac),
        #[cfg(feature = "hmac")]
        Kind::HmacSha384(mac) => states_erased(mac),
        #[cfg(feature = "hmac")]
        Kind::HmacSha512(mac) => states_erased(mac),
        #[cfg(feature = "ed25519")]
        Kind::Ed25519(key) => erased(&**key),
        #[cfg(feature = "ecdsa")]
        Kind::P256(key) => erased(&**key),
        // Not these: ring leaves what it made of a key. Only the bytes that it was made of are.
        #[cfg(feature = "rsa")]
        Kind::Rsa(_) => {}
        // Nothing to hide.
        #[cfg(feature = "ed25519")]
        Kind::Ed25519Public(_) => {}
        #[cfg(feature = "ecdsa")]
        Kind::P256Public(_) => {}
        #[cfg(feature = "rsa")]
        Kind::RsaPublic(_) => {}
    };
    // That it compiles is the proof.
    let _ = look;
    erased(&zeroize::Zeroizing::new(vec![0_u8]));
}
