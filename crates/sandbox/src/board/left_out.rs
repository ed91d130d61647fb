//! What a state does not hold, in words: whoever is shown a state is told what is missing in it.

use std::collections::BTreeSet;

use sandtable_store::id::ObjectId;
use sandtable_store::path::RelPath;
use sandtable_store::snapshot::Skipped;
use sandtable_store::state::LeftOut;
use sandtable_store::store::Store;

use super::{BoardError, Found};

/// How many entries a sentence names.
const NAMED: usize = 5;

/// What a state does not hold, as far as that is known.
pub fn left_out(found: &Found) -> Result<LeftOut, BoardError> {
    match &found.left_out {
        Some(left) => Ok(left.clone()),
        None => left_out_of(&found.store, &found.snapshot.id),
    }
}

/// The same for a snapshot by its id.
pub fn left_out_of(store: &Store, snapshot: &ObjectId) -> Result<LeftOut, BoardError> {
    let state = store.state(snapshot)?;
    Ok(state.left_out.and_then(|id| LeftOut::read(store.objects(), &id)).unwrap_or_default())
}

/// The same with what the state of the source that it was made on does not hold: all that a copy of it would lack.
pub fn left_out_of_all(found: &Found) -> Result<LeftOut, BoardError> {
    let all = left_out(found)?;
    match found.base() {
        Ok(base) if base != found.snapshot.id => Ok(joined(all, left_out_of(&found.store, &base)?)),
        _ => Ok(all),
    }
}

/// What the one or the other does not hold.
pub(crate) fn joined(one: LeftOut, other: LeftOut) -> LeftOut {
    let mut all = one;
    let known: BTreeSet<RelPath> = all.skipped.iter().map(|entry| entry.path.clone()).collect();
    all.skipped.extend(other.skipped.into_iter().filter(|entry| !known.contains(&entry.path)));
    all.skipped.sort_unstable();
    all.count = all.count.max(other.count).max(all.skipped.len() as u64);
    all
}

/// The entries in a sentence, the first few by name; nothing if there are none.
pub fn told(count: u64, skipped: &[Skipped]) -> Option<String> {
    let name = |entry: &Skipped| format!("`{}` {}", entry.path.display_escaped(), entry.why);
    let mut names: Vec<String> = skipped.iter().take(NAMED).map(name).collect();
    if names.is_empty() {
        return None;
    }
    let more = count.max(skipped.len() as u64).saturating_sub(names.len() as u64);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    Some(format!("not in the state: {}", names.join("; ")))
}

#[cfg(test)]
mod tests {
    use sandtable_store::snapshot::SkipReason;

    use super::*;

    #[test]
    fn a_few_are_named_and_the_rest_is_counted() {
        let one = |number: u32| Skipped {
            path: RelPath::new(format!("p{number}")).expect("a name"),
            why: SkipReason::Fifo,
        };
        let all: Vec<Skipped> = (0..9).map(one).collect();
        assert_eq!(told(0, &[]), None);
        assert_eq!(told(1, &all[..1]).as_deref(), Some("not in the state: `p0` is a named pipe"));
        assert!(told(30, &all).is_some_and(|text| text.ends_with("`p4` is a named pipe; and 25 more")));
    }

    #[test]
    fn of_two_lists_the_larger_count_is_kept_where_neither_names_everything() {
        let named = |count: u64, names: &[&str]| {
            let entry =
                |name: &&str| Skipped { path: RelPath::new(*name).expect("a name"), why: SkipReason::Fifo };
            LeftOut { count, skipped: names.iter().map(entry).collect(), ..LeftOut::default() }
        };
        for (one, other, expected) in [
            (named(2, &["a", "b"]), named(2, &["b", "c"]), 3),
            (named(50, &["a"]), named(1, &["b"]), 50),
            (named(1, &["a"]), named(50, &["b"]), 50),
        ] {
            assert_eq!(joined(one, other).count, expected);
        }
    }
}
