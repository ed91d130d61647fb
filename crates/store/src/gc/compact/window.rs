//! The objects that were packed last: what comes next is likely to be like one of them.

use std::collections::VecDeque;

use crate::id::ObjectId;
use crate::object::ObjectKind;
use crate::pack::Base;

/// So many are tried; git does the same.
const WIDTH: usize = 10;
/// Deltas on deltas: each is one more step for whoever reads the object.
pub(super) const DEEPEST: usize = 20;
/// Below this a delta gains nothing.
pub(super) const SMALLEST: usize = 64;
/// Something so many times smaller or larger is not tried, unless it was at the same path.
const UNLIKE: usize = 8;

/// What is known of an object besides its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct About {
    pub(super) id: ObjectId,
    /// A delta makes an object of the kind of its base.
    pub(super) kind: ObjectKind,
    pub(super) path: u32,
    pub(super) ending: u32,
}

struct Held {
    about: About,
    base: Base,
    depth: usize,
}

/// By which object another is told, and how.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) base: ObjectId,
    pub(super) orders: Vec<u8>,
    /// How deep the new delta is.
    pub(super) depth: usize,
    index: usize,
}

pub(super) struct Window {
    held: VecDeque<Held>,
    weight: usize,
    /// How much memory it may take; one object is held in any case.
    most: usize,
}

impl Window {
    pub(super) fn new(most: usize) -> Self {
        Self { held: VecDeque::new(), weight: 0, most }
    }

    /// The shortest delta that makes `target`, if one is less than half as long. Depth counts against it: a
    /// delta on a deeper one must be shorter.
    pub(super) fn best(&self, about: &About, target: &[u8]) -> Option<Found> {
        let mut found: Option<Found> = None;
        for (index, held) in self.held.iter().enumerate().rev() {
            if held.depth >= DEEPEST || !held.is_like(about, target.len()) {
                continue;
            }
            let (best, depth) = match &found {
                Some(found) => (found.orders.len() - 1, found.depth),
                None => (target.len() / 2, 1),
            };
            let most = best * (DEEPEST - held.depth) / (DEEPEST + 1 - depth);
            if let Some(orders) = held.base.delta(target, most) {
                found = Some(Found { base: held.about.id, orders, depth: held.depth + 1, index });
            }
        }
        found
    }

    /// One that was of use is likely to be so again: it stays longest.
    pub(super) fn was_used(&mut self, found: &Found) {
        if let Some(held) = self.held.remove(found.index) {
            self.held.push_back(held);
        }
    }

    pub(super) fn push(&mut self, about: About, data: Vec<u8>, depth: usize) {
        let base = Base::new(data);
        self.weight += base.weight();
        self.held.push_back(Held { about, base, depth });
        while self.held.len() > WIDTH || self.weight > self.most && self.held.len() > 1 {
            let Some(oldest) = self.held.pop_front() else { break };
            self.weight -= oldest.base.weight();
        }
    }
}

impl Held {
    fn is_like(&self, other: &About, size: usize) -> bool {
        let own = self.base.data().len();
        let is_near = self.about.path == other.path
            || self.about.ending == other.ending
                && own <= size.saturating_mul(UNLIKE)
                && size <= own * UNLIKE;
        is_near && self.about.kind == other.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::HashKind;
    use crate::object::hash;

    fn about(number: u32, path: u32, ending: u32) -> About {
        let id = hash(HashKind::Sha1, ObjectKind::Blob, &number.to_be_bytes()).unwrap();
        About { id, kind: ObjectKind::Blob, path, ending }
    }

    fn text(number: u32, lines: u32) -> Vec<u8> {
        let line = |line| format!("{number} has in line {line} what it has {}\n", line * 7919 % 1000);
        (0..lines).map(line).collect::<String>().into_bytes()
    }

    #[test]
    fn what_is_alike_is_found() {
        let mut window = Window::new(1 << 20);
        let (one, other) = (about(1, 1, 1), about(2, 2, 2));
        window.push(one, text(1, 100), 0);
        window.push(other, text(2, 100), 0);
        let next = text(1, 101);
        let found = window.best(&about(3, 1, 1), &next).unwrap();
        assert_eq!((found.base, found.depth), (one.id, 1));
        assert!(found.orders.len() < 100);
        let tree = About { kind: ObjectKind::Tree, ..about(3, 1, 1) };
        assert_eq!(window.best(&tree, &next), None, "it would become a blob");
        assert_eq!(window.best(&about(3, 3, 3), &next), None, "neither path nor name is alike");
        assert_eq!(window.best(&about(3, 1, 1), b"something else altogether, and quite short as well"), None);
    }

    #[test]
    fn depth_counts_and_has_an_end() {
        let mut window = Window::new(1 << 20);
        let [deep, deeper, deepest] = [1, 2, 3].map(|number| about(number, 1, 1));
        window.push(deep, text(1, 100), 3);
        window.push(deeper, text(1, 100), DEEPEST - 1);
        window.push(deepest, text(1, 100), DEEPEST);
        let found = window.best(&about(4, 1, 1), &text(1, 100)).unwrap();
        assert_eq!((found.base, found.depth), (deep.id, 4));
        // A delta on the deepest is never made, even if it is the only way.
        let mut window = Window::new(1 << 20);
        window.push(deepest, text(1, 100), DEEPEST);
        assert_eq!(window.best(&about(4, 1, 1), &text(1, 100)), None);
    }

    #[test]
    fn memory_and_number_are_bounded() {
        let mut window = Window::new(10_000);
        for number in 0..100 {
            window.push(about(number, 1, 1), vec![0; 100], 0);
        }
        assert_eq!(window.held.len(), WIDTH);
        window.push(about(100, 1, 1), vec![0; 9000], 0);
        assert_eq!((window.held.len(), window.weight), (1, 13_500), "one is held however large it is");
        window.push(about(101, 1, 1), vec![0; 100], 0);
        assert_eq!((window.held.len(), window.weight), (1, 150));
    }

    #[test]
    fn what_was_of_use_stays() {
        let mut window = Window::new(1 << 20);
        window.push(about(0, 1, 1), text(1, 100), 0);
        for number in 1..50 {
            let found = window.best(&about(number, 1, 1), &text(1, 100)).unwrap();
            assert_eq!(found.base, about(0, 1, 1).id);
            window.was_used(&found);
            window.push(about(number, 2, 2), text(number, 100), 0);
        }
    }
}
