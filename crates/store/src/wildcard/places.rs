//! The places in a pattern that a text can lead to.

use super::{SLASH, Step};

/// So many words are kept on the stack: enough for most patterns.
const WORDS: usize = 2;

/// A set of places, moved along one unit at a time. A place is the index of the step that comes next.
pub(super) struct Places<'a> {
    steps: &'a [Step],
    here: Row,
    next: Row,
}

impl<'a> Places<'a> {
    /// Before the first step.
    pub(super) fn new(steps: &'a [Step]) -> Self {
        let mut here = Row::new(steps.len() + 1);
        here.add(0);
        Self { steps, here, next: Row::new(steps.len() + 1) }
    }

    /// Goes on by one unit; whether any place is left.
    pub(super) fn read(&mut self, unit: u32) -> bool {
        let Self { steps, here, next } = self;
        next.words().fill(0);
        visit(steps, here, |at| match &steps.get(at) {
            Some(Step::Unit(wanted)) if *wanted == unit => next.add(at + 1),
            Some(Step::One) => next.add(at + 1),
            Some(Step::OneFlat) if unit != SLASH => next.add(at + 1),
            Some(Step::Set(set)) if set.has(unit) => next.add(at + 1),
            Some(Step::Stars) => next.add(at),
            Some(Step::Star) if unit != SLASH => next.add(at),
            _ => {}
        });
        std::mem::swap(here, next);
        here.words().iter().any(|word| *word != 0)
    }

    /// Whether the text may end here.
    pub(super) fn is_at_end(&mut self) -> bool {
        let mut ends = false;
        visit(self.steps, &mut self.here, |at| ends |= at == self.steps.len());
        ends
    }
}

/// Calls `each` for every place, with those that are reached from it without reading anything: all of them lie further on.
fn visit(steps: &[Step], row: &mut Row, mut each: impl FnMut(usize)) {
    for index in 0..row.words().len() {
        let mut seen = 0;
        loop {
            let fresh = row.words()[index] & !seen;
            if fresh == 0 {
                break;
            }
            let bit = fresh.trailing_zeros();
            seen |= 1 << bit;
            let at = index * 64 + bit as usize;
            match steps.get(at) {
                Some(Step::Star | Step::Stars) => row.add(at + 1),
                Some(Step::MayPass) => {
                    row.add(at + 1);
                    row.add(at + 3);
                }
                _ => {}
            }
            each(at);
        }
    }
}

/// A set of small numbers.
enum Row {
    Short([u64; WORDS]),
    Long(Vec<u64>),
}

impl Row {
    fn new(count: usize) -> Self {
        if count <= WORDS * 64 { Self::Short([0; WORDS]) } else { Self::Long(vec![0; count.div_ceil(64)]) }
    }

    fn words(&mut self) -> &mut [u64] {
        match self {
            Self::Short(words) => words,
            Self::Long(words) => words,
        }
    }

    fn add(&mut self, number: usize) {
        self.words()[number / 64] |= 1 << (number % 64);
    }
}
