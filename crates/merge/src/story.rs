//! The operations as their callers know them, from request to outcome.

use std::collections::BTreeSet;

use sandtable_sandbox::attention::Attention;
use sandtable_sandbox::model::causes::chained;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::random::random;
use sandtable_store::RelPath;

use super::approval::Shown;
pub use super::deliver::Recovery;
use super::deliver::{self, Delivery, Move, Rest, Standing, Stop};
use super::error::Error;
use super::halt::Halt;
use super::left_out::{LeftOut, LeftOutWhy};
use super::outcome::{Delivered, MergeOutcome, Note, Outcome, Recovered, SCHEMA};
use super::place::{MARK, Place};
use super::plan::{Concurrency, Plan};
use super::planning::plan;
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::request::{Effect, Means, MergeRequest, Mode, Way};
use super::target::Target;
use super::way_back::{Undo, turn};

/// Brings work over, or tells how it would be brought. Whatever the outcome, nothing of the work is lost, and unless
/// the outcome is a success the target is as it was.
pub fn merge(means: &Means, request: &MergeRequest) -> Result<MergeOutcome, Error> {
    merge_watched(means, request, &mut |_| {})
}

/// What is about to be delivered.
#[derive(Debug)]
pub struct Planned<'a> {
    /// What it would come to.
    pub outcome: &'a Outcome,
    pub changes: &'a [Delivered],
}

/// The same; `hears` is told what will be delivered before the first byte is.
pub fn merge_watched(
    means: &Means,
    request: &MergeRequest,
    hears: &mut dyn FnMut(&Planned<'_>),
) -> Result<MergeOutcome, Error> {
    let attention = Attention::hold();
    let place = Place::lock(&means.state, &request.target, &attention)?;
    let recovered = deliver::recover(&means.git, &place)?;
    let mut report = Report::default();
    report.notes.extend(recovered.as_ref().and_then(|found| left_alone(&found.left_alone)));
    let planned = plan(&heeding(means, &attention), &place, request, &mut report);
    if let Some(signal) = attention.signal() {
        return Err(Error::Interrupted(signal));
    }
    let (outcome, changes) = match planned {
        Ok(plan) => {
            let files = plan.delivery.iter().map(Delivered::from);
            let changes: Vec<Delivered> = files.chain(plan.whole.told()).collect();
            let planned = would_be(&plan, request);
            hears(&Planned { outcome: &planned, changes: &changes });
            let outcome = match request.effect {
                Effect::Plan => planned,
                Effect::Deliver => {
                    let id = new_id();
                    let (plan, spared) = (&plan, &*report.unrecorded);
                    let delivery =
                        Delivery { id: &id, means, place: &place, plan, spared, attention: &attention };
                    let (outcome, notes) = delivered(deliver::deliver(&delivery, request), &attention);
                    report.notes.extend(notes);
                    if let Some(work) = request.binding.work.as_deref().filter(|_| outcome.is_success()) {
                        Shown::forget(&place, work);
                    }
                    report.way_back = Some(id).filter(|_| outcome.is_success() && can_go_back(plan, request));
                    outcome
                }
            };
            (outcome, changes)
        }
        Err(halt) => (halted(halt)?, Vec::new()),
    };
    let recovered = recovered.map(|recovery| recovery.outcome);
    Ok(told(request, outcome, changes, (report, recovered, attention.signal())))
}

/// For the time before the first byte is written, when everything can end at once.
fn heeding(means: &Means, attention: &Attention) -> Means {
    Means { git: means.git.heeding(attention), ..means.clone() }
}

/// What somebody did since is not undone with a call that came to nothing.
fn left_alone(paths: &[RelPath]) -> Option<Note> {
    let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display_escaped())).collect();
    let text = format!("left as they are, because they were changed since: {}", paths.join(", "));
    (!paths.is_empty()).then_some(Note { code: "left-alone", text })
}

/// Finishes or undoes what an interrupted call on this target left.
pub fn recover(means: &Means, target: &HostPath) -> Result<Option<Recovery>, Error> {
    let attention = Attention::hold();
    let place = Place::lock(&means.state, target, &attention)?;
    deliver::recover(&means.git, &place)
}

/// The same for the place of a mark; nothing while somebody works there.
pub fn recover_marked(means: &Means, mark: &str) -> Result<Option<Recovery>, Error> {
    let Some(key) = mark.strip_prefix(MARK) else { return Ok(None) };
    let Some(place) = Place::try_lock(&means.state, key)? else { return Ok(None) };
    deliver::recover(&means.git, &place)
}

/// What came of taking something back, or of doing it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub outcome: Outcome,
    pub notes: Vec<Note>,
    /// The signal that ended it.
    pub interrupted: Option<i32>,
}

/// Takes a merge back, if the branch is still where the merge left it and nobody has changed its files since.
pub fn undo(means: &Means, request: &Undo) -> Result<Turn, Error> {
    turned(means, request, Way::Back)
}

/// Does a merge again that was taken back, under the same conditions.
pub fn redo(means: &Means, request: &Undo) -> Result<Turn, Error> {
    turned(means, request, Way::There)
}

fn turned(means: &Means, request: &Undo, way: Way) -> Result<Turn, Error> {
    let attention = Attention::hold();
    let place = Place::lock(&means.state, &request.target, &attention)?;
    let recovered = deliver::recover(&means.git, &place)?;
    let alone = recovered.as_ref().and_then(|found| left_alone(&found.left_alone));
    let mut notes: Vec<Note> = alone.into_iter().collect();
    let planned = turn(&heeding(means, &attention), &place, request, way);
    if let Some(signal) = attention.signal() {
        return Err(Error::Interrupted(signal));
    }
    let outcome = match planned {
        Err(halt) => halted(halt)?,
        Ok((plan, new)) => {
            let word = match way {
                Way::Back => "undo",
                Way::There => "redo",
            };
            let to = Move { new, message: format!("sandtable: {word} of {}", request.commit.short(12)) };
            let id = new_id();
            let (plan, spared) = (&plan, &[][..]);
            let delivery = Delivery { id: &id, means, place: &place, plan, spared, attention: &attention };
            let outcome = Outcome::FastForward { branch: branch_of(plan), commit: Some(new) };
            let moved = delivery.move_branch(&to, request.log.as_ref());
            let (outcome, told) = delivered(moved.map(|((), rest)| (outcome, rest)), &attention);
            notes.extend(told);
            outcome
        }
    };
    Ok(Turn { outcome, notes, interrupted: attention.signal() })
}

fn new_id() -> String {
    format!("{:016x}", random())
}

/// Whether `undo` will know it and can take it back. There is nothing before a first commit.
fn can_go_back(plan: &Plan, request: &MergeRequest) -> bool {
    let first = matches!(&plan.target, Target::Repository(repository) if repository.head.tip().is_none());
    let logged = request.log.as_ref().is_some_and(|log| log.over.is_none());
    logged
        && match request.mode {
            Mode::Merge => !first,
            Mode::Apply => true,
            Mode::Branch(_) | Mode::Patch(_) | Mode::Bundle { .. } => false,
        }
}

fn branch_of(plan: &Plan) -> String {
    match &plan.target {
        Target::Repository(repository) => repository.head.short(),
        Target::Plain { .. } => String::new(),
    }
}

fn would_be(plan: &Plan, request: &MergeRequest) -> Outcome {
    let branch = branch_of(plan);
    match (&request.mode, plan.concurrency) {
        (Mode::Merge, Concurrency::FastForward) => Outcome::FastForward { branch, commit: None },
        (Mode::Merge, Concurrency::Merged) => Outcome::Merged { branch, commit: None },
        (Mode::Apply, _) => Outcome::Applied,
        (Mode::Branch(name), _) => Outcome::Exported { branch: Some(name.clone()), file: None, commit: None },
        (Mode::Patch(file), _) => Outcome::Exported { branch: None, file: Some(file.clone()), commit: None },
        (Mode::Bundle { file, branch }, _) => {
            Outcome::Exported { branch: Some(branch.clone()), file: Some(file.clone()), commit: None }
        }
    }
}

/// Where to find what somebody wrote to a file that was replaced, and what is still to be done.
fn notes(Rest { beside, failed }: &Rest) -> Vec<Note> {
    let kept = beside.iter().map(|path| {
        let path = path.display_escaped();
        let text = format!("`{path}` has what was written meanwhile to a file that was replaced");
        Note { code: "kept-beside", text }
    });
    let incomplete = failed.iter().map(|error| {
        let text = format!("the work is there, but {}; the next command completes it", chained(error));
        Note { code: "incomplete", text }
    });
    kept.chain(incomplete).collect()
}

/// How it ended, and what there is to tell.
fn delivered(result: Result<Standing<Outcome>, Stop>, attention: &Attention) -> (Outcome, Vec<Note>) {
    let reason = |error: &Error| match attention.signal() {
        // Whatever failed then failed because of it.
        Some(signal) => format!("signal {signal} came"),
        None => chained(error),
    };
    let outcome = match result {
        Ok((outcome, rest)) => return (outcome, notes(&rest)),
        Err(Stop::LeftAlone(stop, paths)) => {
            let (outcome, told) = delivered(Err(*stop), attention);
            return (outcome, left_alone(&paths).into_iter().chain(told).collect());
        }
        Err(Stop::Refused(refusal)) => Outcome::Refused { refusal },
        Err(Stop::RolledBack(reason)) => Outcome::RolledBack { reason },
        Err(Stop::Interrupted) => {
            let signal = attention.signal().map(|signal| format!(" {signal}")).unwrap_or_default();
            Outcome::RolledBack { reason: format!("signal{signal} came") }
        }
        Err(Stop::Failed(error)) => Outcome::RolledBack { reason: reason(&error) },
        Err(Stop::Unfinished(error)) => Outcome::Unfinished { reason: chained(&error) },
    };
    (outcome, Vec::new())
}

fn halted(halt: Halt) -> Result<Outcome, Error> {
    Ok(match halt {
        Halt::UpToDate => Outcome::UpToDate,
        Halt::Held(held) => Outcome::Held { held },
        Halt::Conflicts(conflicts) => Outcome::Conflicts { conflicts },
        Halt::Refused(refusal) => Outcome::Refused { refusal },
        // A tree with a path that leaves it is no accident.
        Halt::Failed(error @ Error::Path { .. }) => {
            Outcome::Refused { refusal: Refusal::new(Reason::Unsafe, error.to_string()) }
        }
        Halt::Failed(error) => return Err(error),
    })
}

fn told(
    request: &MergeRequest,
    outcome: Outcome,
    changes: Vec<Delivered>,
    (report, recovered, interrupted): (Report, Option<Recovered>, Option<i32>),
) -> MergeOutcome {
    let back = report
        .way_back
        .as_ref()
        .map(|id| format!("`undo --merge {id}` takes it back, while nothing else has moved"));
    MergeOutcome {
        schema: SCHEMA,
        success: outcome.is_success(),
        conflict: matches!(outcome, Outcome::Conflicts { .. }),
        message: match &outcome {
            Outcome::UpToDate => nothing_to_bring(&report),
            done if done.is_success() && request.effect == Effect::Plan => {
                format!("dry run, nothing was touched; it would be: {}", done.message(changes.len()))
            }
            _ => outcome.message(changes.len()),
        },
        mode: request.mode.name(),
        effect: request.effect,
        target: request.target.clone(),
        base: request.base,
        snapshot: request.snapshot,
        next: if request.effect == Effect::Plan && outcome.is_success() {
            Vec::new()
        } else {
            outcome.next().into_iter().chain(back).collect()
        },
        undo: report.way_back,
        outcome,
        changes,
        left_out: report.left_out,
        approved: report.approved,
        flagged: report.flagged,
        plan: report.plan,
        recovered,
        interrupted,
        notes: report.notes,
        kept_at: request.store.clone(),
    }
}

/// Why nothing was delivered, in one sentence.
fn nothing_to_bring(report: &Report) -> String {
    let count = |is: &dyn Fn(&LeftOut) -> bool| report.left_out.iter().filter(|left| is(left)).count();
    let left = [
        (count(&|left| left.why == LeftOutWhy::Selection), "not asked for"),
        (count(&|left| left.why == LeftOutWhy::Ignored), "ignored by the repository"),
        (count(&LeftOut::is_beyond_git), "nothing that git keeps"),
    ];
    let left: Vec<String> =
        left.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("{count} {why}")).collect();
    match (left.is_empty(), report.compared) {
        (true, false) => "there is nothing to bring: no change is recorded".to_owned(),
        (true, true) => Outcome::UpToDate.message(0),
        (false, false) => format!("nothing was delivered: all changes are left out ({})", left.join(", ")),
        (false, true) => format!(
            "nothing was delivered: changes are left out ({}), and the target has the rest already",
            left.join(", ")
        ),
    }
}

impl Outcome {
    pub const fn is_success(&self) -> bool {
        matches!(
            self,
            Self::UpToDate
                | Self::FastForward { .. }
                | Self::Merged { .. }
                | Self::Applied
                | Self::Exported { .. }
        )
    }

    /// One sentence for people.
    pub fn message(&self, changes: usize) -> String {
        let files = match (self, changes) {
            (Self::Applied, 0) => "no files".to_owned(),
            (_, 0) => "commits that change no file".to_owned(),
            (_, 1) => "1 file".to_owned(),
            _ => format!("{changes} files"),
        };
        match self {
            Self::UpToDate => "the target has it all already".to_owned(),
            Self::FastForward { branch, .. } => format!("{files} on top of `{branch}`, which had not moved"),
            Self::Merged { branch, .. } => format!("{files} merged with what had changed on `{branch}`"),
            Self::Applied => format!("{files} changed"),
            Self::Exported { branch: Some(name), file: None, .. } => {
                format!("{files} on the new branch `{name}`")
            }
            Self::Exported { file, .. } => {
                let name = file.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{files} written to `{name}`")
            }
            Self::Conflicts { conflicts } => {
                let count = if conflicts.len() == 1 {
                    "1 conflict".to_owned()
                } else {
                    format!("{} conflicts", conflicts.len())
                };
                format!("{count}; nothing was touched")
            }
            Self::Held { held } => {
                let paths: BTreeSet<&RelPath> = held.iter().map(super::review::Finding::rel_path).collect();
                format!("held until approved: {} of the changes; nothing was touched", paths.len())
            }
            Self::Refused { refusal } => format!("{}; nothing was touched", refusal.text),
            Self::RolledBack { reason } => format!("{reason}; everything was put back"),
            Self::Unfinished { reason } => {
                format!("{reason}; not everything could be put back, which the next command does")
            }
        }
    }

    /// What to do now.
    pub fn next(&self) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Conflicts { .. } => &[
                "`--exclude` the conflicting paths, or",
                "`export --patch FILE` and apply it by hand with `git apply --3way FILE`",
            ],
            Self::Held { .. } => &[
                "look at them with `diff`, then `--approve PATH`, or `--exclude PATH`;",
                "scripts `--approve PATH@ID`, which lets exactly this content pass",
            ],
            Self::RolledBack { .. } => &["try again"],
            Self::Unfinished { .. } => &["`sandtable ls`, once the cause is gone: it puts everything back"],
            Self::Refused { refusal } if !refusal.next.is_empty() => return refusal.next.clone(),
            Self::Refused { refusal } => refusal.reason.next(),
            _ => &[],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }
}

impl Reason {
    const fn next(self) -> &'static [&'static str] {
        match self {
            Self::Dirty => &["commit or stash your changes first, or use `apply`, which merges with them"],
            Self::Detached => &["`export --branch NAME`, or `git switch` to a branch first"],
            Self::Operation => &["end it first, or `export --branch NAME`"],
            Self::Locked => &["wait for git to end; if none is running, remove the lock file yourself"],
            Self::Signing => &["`apply` and commit yourself, or `export --branch NAME`"],
            Self::Filtered => &["`apply`, then commit yourself: your git runs the filter"],
            Self::NotARepository | Self::Bare => &["`apply`, or name a repository with `--into DIR`"],
            Self::BranchExists | Self::BranchName | Self::FileExists => &["choose another name"],
            Self::Unsafe => &["`--exclude` these paths"],
            Self::CaseCollision => &["`--exclude` one of each pair"],
            Self::Approval => &[
                "the same without `--approve` shows what is there now; look at it with `diff`, then `--approve` it, or",
                "name the content that is to pass: `--approve PATH@ID`",
            ],
            Self::Mixed => &[
                "leave out `--history`: the files come without these changes, or",
                "make the commits again in a sandbox with `--base store`, which does not see them",
            ],
            Self::Reftable => &["leave out `--history`: the files come in one commit"],
            Self::NotWritable => &["again, once you may write there, or `export --patch FILE`"],
            Self::Missing => &["fetch the missing objects with git, or `export --patch FILE`"],
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_where_to_find_what_was_written_to_a_file_that_was_replaced() {
        let kept = RelPath::new("d/f.sandtable-1").unwrap();
        let failed = Some(Error::Interrupted(15));
        let rest = Rest { beside: vec![kept], failed };
        let (outcome, notes) = delivered(Ok((Outcome::Applied, rest)), &Attention::hold());
        assert!(outcome.is_success());
        let codes: Vec<_> = notes.iter().map(|note| note.code).collect();
        assert_eq!(codes, ["kept-beside", "incomplete"]);
        assert!(notes[0].text.contains("`d/f.sandtable-1`"), "{notes:?}");
    }
}
