//! What recorded states take on disk: the same edits recorded by us and by git, each after its maintenance.

use super::catalogue::Place;
use super::outcome::{EntryOutcome, Judged, State, at_most_times};
use super::row::OURS;
use super::stats::Summary;

const GIT: &str = "git, after gc";
/// Ours may take so many times what git takes.
const MOST: f64 = 1.3;

/// A copy of the tree in `$2/t`, then as many states of it as `$4` says, ten files edited before each. The
/// functions `begin`, `record`, `finish` and `weight` are the contender's.
const STATES: &str = "rm -rf \"$2\"; mkdir -p \"$2\"; cp -a \"$1\" \"$2/t\"; cd \"$2/t\"; rm -rf .git; begin; n=0; \
     while [ $n -lt \"$4\" ]; do n=$((n + 1)); \
     for f in part-000/module-0000$((n % 6))/file-*.c; do echo \"edit $n\" >> \"$f\"; k=$((k + 1)); \
     if [ $((k % 10)) = 0 ]; then break; fi; done; record; done; finish >&2";

/// Edits, records and weighs, on both sides.
pub(super) fn measure(place: &Place, snapshots: u32) -> (Vec<EntryOutcome>, Vec<Judged>) {
    let ours = weigh(
        place,
        snapshots,
        "begin() { \"$st\" onboard . > ../last; }; record() { \"$st\" snapshot . > ../last; }; \
         finish() { \"$st\" store gc; }; weight() { du -sk \"$(dirname \"$(\"$st\" store path)\")\"; }",
    );
    let git = weigh(
        place,
        snapshots,
        "begin() { git init -q; git add -A; git -c gc.auto=0 commit -q -m 0; }; \
         record() { git add -A; git -c gc.auto=0 commit -q -m x; }; finish() { git gc -q; }; \
         weight() { du -sk .git; }",
    );
    let ratio = ours.as_ref().ok().zip(git.as_ref().ok()).map(|(ours, git)| ours / git);
    let entries = [(OURS, ours), (GIT, git)].map(|(name, weight)| entry(name, weight));
    (entries.into(), vec![at_most_times(format!("≤ {MOST} × {GIT}"), ratio, MOST)])
}

fn entry(name: &str, weight: Result<f64, String>) -> EntryOutcome {
    let state = match weight {
        Ok(weight) => match Summary::of_values(&[weight]) {
            Some(summary) => State::Measured { summary, samples: vec![weight] },
            None => State::Failed { reason: "nothing was weighed".to_owned() },
        },
        Err(reason) => State::Failed { reason },
    };
    EntryOutcome { name: name.to_owned(), command: None, state }
}

/// KiB on disk.
fn weigh(place: &Place, snapshots: u32, how: &str) -> Result<f64, String> {
    let own = place.caller.area.join("size");
    let script = format!("set -e; st=$3; k=0; {how}; {STATES}; weight | cut -f 1; cd /; rm -rf \"$2\"");
    let [tree, own] = [&place.tree, &own].map(|path| path.display().to_string());
    let argv = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned(), tree, own];
    let answer =
        place.invoke(argv.into_iter().chain([place.ours.clone(), snapshots.to_string()])).output()?;
    answer.trim().parse().map_err(|_| format!("`du` said `{answer}`"))
}
