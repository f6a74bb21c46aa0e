//! A list that is nearly always short.

/// A list of which the first few are not allocated.
#[derive(Debug)]
pub(crate) struct Few<T, const N: usize> {
    /// Filled from the front.
    few: [Option<T>; N],
    more: Vec<T>,
}

// === impl Few ===

impl<T, const N: usize> Few<T, N> {
    pub(crate) fn push(&mut self, item: T) {
        match self.few.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(item),
            None => self.more.push(item),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.few.iter().flatten().chain(&self.more)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.few.first().is_none_or(Option::is_none) && self.more.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        if !self.is_empty() {
            *self = Self::default();
        }
    }
}

impl<T, const N: usize> Default for Few<T, N> {
    fn default() -> Self {
        Self {
            few: [const { None }; N],
            more: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept_however_many_there_are() {
        let mut few = Few::<u32, 2>::default();
        assert!(few.is_empty());
        for count in 0..5 {
            assert!(few.iter().copied().eq(0..count));
            few.push(count);
            assert!(!few.is_empty());
        }
        few.clear();
        assert!(few.is_empty());
        assert_eq!(few.iter().count(), 0);
        few.push(7);
        assert!(few.iter().copied().eq([7]));
    }
}
