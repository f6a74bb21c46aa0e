//! Who gives up when.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::slab::Slab;

/// The instants at which waiters give up on their own account, the earliest first.
///
/// Who leaves the line stays in here until its turn comes, or until half of what is in here has
/// left.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: BinaryHeap<Reverse<(u64, u32, u32)>>,
    gone: usize,
}

/// Fewer are not worth sorting out.
const FEW: usize = 64;

// === impl Deadlines ===

impl Deadlines {
    pub(super) fn push(&mut self, at: u64, node: u32, arrival: u32) {
        self.heap.push(Reverse((at, node, arrival)));
    }

    /// The earliest, of those who still wait.
    pub(super) fn next(&mut self, slab: &Slab) -> Option<(u64, u32)> {
        while let Some(&Reverse((at, node, arrival))) = self.heap.peek() {
            if slab.is_waiting(node, arrival) {
                return Some((at, node));
            }
            self.heap.pop();
            self.gone = self.gone.saturating_sub(1);
        }
        None
    }

    /// Those who give up before an instant, in no particular order.
    pub(super) fn before<'a>(
        &'a self,
        until: u64,
        slab: &'a Slab,
    ) -> impl Iterator<Item = u32> + 'a {
        let all = self.heap.iter();
        all.filter(move |&&Reverse((at, node, arrival))| {
            at < until && slab.is_waiting(node, arrival)
        })
        .map(|&Reverse((_, node, _))| node)
    }

    /// Somebody has left the line, with a deadline or without one.
    pub(super) fn note_gone(&mut self, waiting: u32, slab: &Slab) {
        if self.heap.is_empty() {
            return;
        }
        self.gone += 1;
        if waiting == 0 {
            *self = Self::default();
        } else if self.gone > FEW && self.gone > self.heap.len() / 2 {
            self.heap
                .retain(|&Reverse((_, node, arrival))| slab.is_waiting(node, arrival));
            self.gone = 0;
        }
    }
}
