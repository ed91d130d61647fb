//! Which lines of two texts differ, in bounded time.
//!
//! Texts of a usual length are compared by the histogram algorithm. Its time grows with the square of the length for
//! texts that are made for it, and the texts are a sandbox's. So a longer one is cut first at the lines that each text has
//! once, as *patience* does, and what lies between two of these is compared by itself if it is short enough. What is not,
//! or would take the whole beyond its effort, counts as replaced. The answer depends on the texts alone, never on a clock.

use std::collections::HashMap;
use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

use super::text::Lines;

/// Lines of both texts together that are compared directly.
const DIRECT: usize = 20_000;
/// What all comparisons of two texts may cost, each the square of its lines.
const EFFORT: usize = 2_000_000_000;
/// Lines that stay around a difference, so that a change can be shown where it reads best.
const MARGIN: u32 = 100;

/// Lines that went, and lines that came in their place.
pub(super) type Changed = (Range<u32>, Range<u32>);

/// Everything that differs, in order.
pub(super) fn changes(old: &Lines<'_>, new: &Lines<'_>) -> Vec<Changed> {
    let mut search = Search { old, new, effort: EFFORT, found: Vec::new() };
    let all = (old.all(), new.all());
    if length(&all) <= DIRECT {
        search.directly(all);
        return search.found;
    }
    let part = search.stripped(all, MARGIN);
    if length(&part) <= DIRECT {
        search.directly(part);
        return search.found;
    }
    let (mut from, end) = ((part.0.start, part.1.start), (part.0.end, part.1.end));
    let common = in_order(&search.unique(&part));
    for (old, new) in common.into_iter().chain([end]) {
        search.between((from.0..old, from.1..new));
        from = (old, new);
    }
    search.found
}

struct Search<'s, 'a> {
    old: &'s Lines<'a>,
    new: &'s Lines<'a>,
    effort: usize,
    found: Vec<Changed>,
}

impl Search<'_, '_> {
    /// Without the lines that both begin and end with, but for a margin.
    fn stripped(&self, (old, new): Changed, margin: u32) -> Changed {
        let same = |(one, two): &(u32, u32)| self.old.line(*one) == self.new.line(*two);
        let prefix = old.clone().zip(new.clone()).take_while(same).count();
        let prefix = u32::try_from(prefix).expect("it is part of a range");
        let (old, new) = (old.start + prefix..old.end, new.start + prefix..new.end);
        let suffix = old.clone().rev().zip(new.clone().rev()).take_while(same).count();
        let suffix = u32::try_from(suffix).expect("it is part of a range");
        let (before, after) = (prefix.min(margin), suffix.min(margin));
        let widened = |range: Range<u32>| range.start - before..range.end - suffix + after;
        (widened(old), widened(new))
    }

    /// The lines that are in both exactly once, by their place in the old text.
    fn unique(&self, (old, new): &Changed) -> Vec<(u32, u32)> {
        let mut places: HashMap<&[u8], [Option<Place>; 2]> = HashMap::new();
        let sides = [(self.old, old, 0), (self.new, new, 1)];
        for (lines, range, side) in sides {
            for number in range.clone() {
                let place = &mut places.entry(lines.line(number)).or_default()[side];
                *place = Some(if place.is_some() { Place::Several } else { Place::Once(number) });
            }
        }
        let mut found: Vec<(u32, u32)> = places
            .into_values()
            .filter_map(|places| match places {
                [Some(Place::Once(old)), Some(Place::Once(new))] => Some((old, new)),
                _ => None,
            })
            .collect();
        found.sort_unstable();
        found
    }

    /// What lies between two common lines, the first of them included.
    fn between(&mut self, part: Changed) {
        let part = self.stripped(part, 0);
        if part.0.is_empty() && part.1.is_empty() {
            return;
        }
        let length = length(&part);
        let left = self.effort.checked_sub(length * length).filter(|_| length <= DIRECT);
        match left {
            Some(left) if !part.0.is_empty() && !part.1.is_empty() => {
                self.effort = left;
                self.directly(part);
            }
            _ => self.found.push(part),
        }
    }

    fn directly(&mut self, (old, new): Changed) {
        let mut input = InternedInput::default();
        input.update_before(self.old.some(old.clone()));
        input.update_after(self.new.some(new.clone()));
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let moved = |range: Range<u32>, by: u32| range.start + by..range.end + by;
        let hunks = diff.hunks().map(|hunk| (moved(hunk.before, old.start), moved(hunk.after, new.start)));
        self.found.extend(hunks);
    }
}

#[derive(Clone, Copy)]
enum Place {
    Once(u32),
    Several,
}

fn length((old, new): &Changed) -> usize {
    old.len() + new.len()
}

/// The longest row of pairs, sorted by their first number, in which the second ones rise too.
fn in_order(pairs: &[(u32, u32)]) -> Vec<(u32, u32)> {
    // For each length, the pair that the best row of that length ends with; for each pair, the one before it.
    let (mut ends, mut before): (Vec<usize>, Vec<Option<usize>>) = (Vec::new(), Vec::new());
    for (index, (_, new)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *new);
        before.push(length.checked_sub(1).map(|last| ends[last]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut row: Vec<(u32, u32)> =
        std::iter::successors(ends.last().copied(), |at| before[*at]).map(|at| pairs[at]).collect();
    row.reverse();
    row
}

#[cfg(test)]
mod tests {
    use super::super::text::Comparison;
    use super::*;

    fn text(lines: impl Iterator<Item = u32>) -> Vec<u8> {
        lines.flat_map(|line| format!("{line}\n").into_bytes()).collect()
    }

    #[test]
    fn of_a_long_text_only_what_differs_is_named() {
        let old = text(0..50_000);
        let new = text(
            (0..50_000).filter(|line| *line != 7).map(|line| if line == 49_000 { 1 << 20 } else { line }),
        );
        let compared = Comparison::new(&old, &new);
        assert_eq!((compared.added(), compared.removed()), (1, 2));
    }

    /// Neighbours that change places, lines that are all alike, and no line in common: squares, each in its way.
    #[test]
    fn texts_made_to_take_long_are_replaced_where_it_would() {
        let many = 100_000;
        let random = |seed: u32| (0..many).map(move |at: u32| (at ^ seed).wrapping_mul(2_654_435_761) >> 31);
        let cases = [
            (text(random(1)), text(random(99))),
            (text(0..many), text((0..many).map(|line| line ^ 1))),
            (text(0..many), text((0..many).rev())),
            (vec![b'\n'; 1 << 17], vec![b'\n'; 1 << 16]),
        ];
        for (old, new) in cases {
            let compared = Comparison::new(&old, &new);
            let (lines, shown) = (compared.groups(3), compared.removed());
            assert!(!lines.is_empty() && shown <= 1 << 17);
        }
    }

    #[test]
    fn rows_are_the_longest() {
        assert_eq!(in_order(&[(0, 5), (1, 1), (2, 2), (3, 0), (4, 3)]), [(1, 1), (2, 2), (4, 3)]);
        assert_eq!(in_order(&[]), []);
    }
}
