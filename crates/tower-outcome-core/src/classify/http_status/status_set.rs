//! A set of status codes.

use std::fmt;

use http::StatusCode;

/// A set of the status codes from 400 to 655, one bit each.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct StatusSet([u64; 4]);

// === impl StatusSet ===

impl StatusSet {
    pub(super) const fn contains(&self, status: StatusCode) -> bool {
        let Some(bit) = (status.as_u16() as usize).checked_sub(400) else {
            return false;
        };
        bit / 64 < 4 && self.0[bit / 64] >> (bit % 64) & 1 == 1
    }

    /// Adds a status; a success cannot be a member.
    pub(super) fn insert(&mut self, status: StatusCode) -> Result<(), StatusCode> {
        let bit = usize::from(status.as_u16())
            .checked_sub(400)
            .ok_or(status)?;
        *self.0.get_mut(bit / 64).ok_or(status)? |= 1 << (bit % 64);
        Ok(())
    }

    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}

impl FromIterator<StatusCode> for StatusSet {
    /// Leaves out what cannot be a member; for sets written down in this crate.
    fn from_iter<I: IntoIterator<Item = StatusCode>>(statuses: I) -> Self {
        let mut set = Self::default();
        for status in statuses {
            let _ = set.insert(status);
        }
        set
    }
}

impl fmt::Debug for StatusSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = (400..656)
            .filter(|&code| StatusCode::from_u16(code).is_ok_and(|status| self.contains(status)));
        f.debug_set().entries(members).finish()
    }
}
