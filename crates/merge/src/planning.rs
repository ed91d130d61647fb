//! The whole result, before anything of the user's is written.

use std::collections::BTreeSet;

use sandtable_store::RelPath;
use sandtable_store::id::ObjectId;

use super::approval::{self, Shown};
use super::around::surroundings;
use super::conflict::{Conflict, ConflictKind, Merged, Stages, merged};
use super::convert::Conversion;
use super::error::Error;
use super::git::{GitError, Version};
use super::halt::Halt;
use super::history::{Commits, Ground};
use super::lookup::lookup;
use super::named::{Named, PathText};
use super::place::Place;
use super::plan::{Concurrency, Plan};
use super::preflight;
use super::refusal::{Reason, Refusal};
use super::report::Report;
use super::request::{Approvals, Come, History, Means, MergeRequest, Mode};
use super::review::Finding;
use super::scratch::Scratch;
use super::select::{Selection, Selector};
use super::target::{self, Repository, Target};
use super::tree::Change;
use super::union::union;
use super::whole::Whole;

/// The oldest git that merges trees rather than commits.
const MERGES_TREES: Version = Version(2, 45, 0);

/// As many paths are named that could have been approved.
const SHOWN: usize = 10;

/// How often what is on disk is taken into account anew. Each round can only bring in paths that a rename led to.
const ROUNDS: usize = 8;

/// Makes the plan.
pub(super) fn plan(
    means: &Means,
    place: &Place,
    request: &MergeRequest,
    report: &mut Report,
) -> Result<Plan, Halt> {
    let target = target::read(means, &request.target)??;
    preflight::state(&target, request)?;
    let scratch = scratch(means, place, request, &target)?;
    let head = match &target {
        Target::Repository(repository) => Some(head_tree(&scratch, repository)?),
        Target::Plain { .. } => None,
    };
    let base = scratch.tree_of(&request.base)?;
    let mut around = surroundings(means, &scratch, &target, (&base, head.as_ref()))?;
    let commits = commits((request, &scratch, &target), &base, report)?;
    let moved = match &commits {
        Some((history, commits)) => commits.submodules(&scratch, (history, &base))?,
        None => Vec::new(),
    };
    let commits = commits.filter(|(history, _)| history.come == Come::Commits);
    let selector = Selector { means, request, scratch: &scratch, target: &target, head };
    let selection = selector.select(&moved, &mut around, report)?;
    let is_whole = request.mode == Mode::Apply && !target.is_repository() && !request.beyond_git.is_empty();
    if !is_whole {
        let beyond = request.beyond_git.iter().filter(|beyond| !beyond.git_is_near);
        for beyond in beyond.filter(|beyond| request.asks_for(&beyond.path)) {
            report.leave_out(std::iter::once(&beyond.path), beyond.why);
        }
    }
    if selection.changes.is_empty() && !is_whole && commits.is_none() {
        return Err(Halt::UpToDate);
    }
    report.compared = true;
    let mut plan = started(scratch, target, request, (head, selection));
    match request.mode {
        Mode::Patch(_) => {}
        Mode::Apply => plan.against_files()?,
        Mode::Merge | Mode::Branch(_) | Mode::Bundle { .. } => plan.against_branch(request)?,
    }
    if is_whole {
        plan.whole = Whole::of(&plan.files, request, &plan.worktree()?)?;
        for (path, why) in &plan.whole.left {
            report.leave_out(std::iter::once(path), *why);
        }
    }
    if plan.delivery.is_empty() && plan.whole.is_empty() && commits.is_none() {
        return Err(Halt::UpToDate);
    }
    refuse_drifted(&plan.delivery, request)?;
    let selector = Selector { means, request, scratch: &plan.scratch, target: &plan.target, head };
    selector.look_over((&plan.delivery, &plan.result), &mut around, report)?;
    plan.whole.look_over((&plan.files, request), &around, report)?;
    if let Some((history, commits)) = commits {
        commits.look_over(&selector, (history, &mut around), report)?;
        plan.history = Some(commits);
    }
    report.plan = Some(around.seal.plan(&plan.delivery, &plan.besides()));
    unmatched((request, &plan), report)?;
    settle(place, request, report)?;
    preflight::case(&plan)?;
    preflight::writable(&plan, &request.mode)?;
    preflight::notes(&plan, request, report);
    Ok(plan)
}

/// The commits made inside, as far as something of them comes along. They are refused where they cannot be used, if they were
/// asked for; otherwise nothing is known of submodules.
fn commits<'a>(
    (request, scratch, target): (&'a MergeRequest, &Scratch, &Target),
    base: &ObjectId,
    report: &mut Report,
) -> Result<Option<(&'a History, Commits)>, Halt> {
    let (Some(history), Target::Repository(repository)) = (&request.history, target) else { return Ok(None) };
    let ground = Ground { scratch, repository };
    let found = match history.come {
        Come::Commits => Commits::read(ground, history, report)?,
        Come::Submodules if !has_submodules(scratch, base)? => None,
        Come::Submodules => {
            let mut aside = Report::default();
            let read = Commits::read(ground, history, &mut aside);
            report.compared |= aside.compared;
            match read {
                Err(Halt::Refused(_)) => None,
                read => read?,
            }
        }
    };
    Ok(found.map(|commits| (history, commits)))
}

fn has_submodules(scratch: &Scratch, tree: &ObjectId) -> Result<bool, Halt> {
    let file = RelPath::new(".gitmodules").expect("a path");
    Ok(!lookup(scratch, tree, [&file])?.is_empty())
}

/// An approval of what is neither held nor a change of the work was meant for something else. What is left out on purpose may
/// be approved too.
fn unmatched((request, plan): (&MergeRequest, &Plan), report: &Report) -> Result<(), Halt> {
    let Approvals::Paths(paths) = &request.approvals else { return Ok(()) };
    let findings = || report.held.iter().chain(&report.approved).map(Finding::rel_path);
    let known: BTreeSet<&RelPath> =
        findings().chain(plan.delivery.iter().map(|change| &change.path)).collect();
    let is_chosen = |path: &RelPath| request.asks_for(path) && !request.hunks.contains_key(path);
    let unknown = paths.iter().filter(|path| !known.contains(path) && is_chosen(path));
    let mut unknown: BTreeSet<&RelPath> = unknown.collect();
    if unknown.is_empty() {
        return Ok(());
    }
    // The target may have it already.
    for change in plan.scratch.changes(&plan.base, &plan.theirs)? {
        unknown.remove(&change.path);
    }
    let wrong: Vec<Named> =
        unknown.into_iter().map(|path| Named::new(path, "nothing is held there")).collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let held: BTreeSet<&RelPath> = findings().collect();
    let names: Vec<String> =
        held.iter().take(SHOWN).map(|path| format!("`{}`", path.display_escaped())).collect();
    let more = if held.len() > SHOWN { format!(" and {} more", held.len() - SHOWN) } else { String::new() };
    let next = match names.as_slice() {
        [] => "leave out `--approve`: nothing is held".to_owned(),
        names => format!("`--approve` one of these: {}{more}", names.join(", ")),
    };
    let text = "a path was approved that nothing changed";
    Err(Refusal::of(Reason::Selection, text, wrong).with(next).into())
}

/// Whether what must be approved is, in the contents that were told. What is told now is remembered; a refusal names the
/// contents and tells none of them, so that the same words are refused again.
fn settle(place: &Place, request: &MergeRequest, report: &mut Report) -> Result<(), Halt> {
    let work = request.binding.work.as_deref();
    let shown = work.and_then(|work| Shown::read(place, work));
    let plan = report.plan.as_deref().unwrap_or_default();
    let checked = approval::check(&request.binding, &report.approved, (plan, shown.as_ref()));
    if checked.is_ok() && report.held.is_empty() {
        return Ok(());
    }
    checked?;
    if let Some(work) = work {
        Shown::of(report.held.iter().chain(&report.approved)).write(place, work)?;
    }
    Err(Halt::Held(std::mem::take(&mut report.held)))
}

/// A plan that knows what is to be merged, but not yet with what result.
fn started(
    scratch: Scratch,
    target: Target,
    request: &MergeRequest,
    (head, selection): (Option<ObjectId>, Selection),
) -> Plan {
    let Selection { base, theirs, changes } = selection;
    let start = head.unwrap_or(base);
    let conversion = Conversion::new(target.autocrlf());
    let concurrency = concurrency(&target, request, (&base, head.as_ref()));
    Plan {
        scratch,
        target,
        base,
        theirs,
        ours: start,
        result: theirs,
        concurrency,
        delivery: changes,
        files: Vec::new(),
        conversion,
        attributes: start,
        index: None,
        unshown: BTreeSet::new(),
        history: None,
        whole: Whole::default(),
    }
}

impl Plan {
    /// The result on top of the branch; files must be as the branch has them.
    fn against_branch(&mut self, request: &MergeRequest) -> Result<(), Halt> {
        preflight::untracked(self, request)?;
        self.merge(self.ours)?;
        if request.mode == Mode::Merge {
            preflight::files(self)?;
        }
        Ok(())
    }

    /// The result on top of the files as they are, committed or not.
    fn against_files(&mut self) -> Result<(), Halt> {
        let worktree = self.worktree()?;
        let mut looked_at: BTreeSet<RelPath> = BTreeSet::new();
        let mut wanted: BTreeSet<RelPath> = self.delivery.iter().map(|change| change.path.clone()).collect();
        for _ in 0..ROUNDS {
            let fresh: Vec<RelPath> = wanted.difference(&looked_at).cloned().collect();
            let ours = preflight::as_on_disk(self, &worktree, &fresh)?;
            looked_at.extend(fresh);
            self.ours = ours;
            self.merge(ours)?;
            wanted = self.delivery.iter().map(|change| change.path.clone()).collect();
            if wanted.is_subset(&looked_at) {
                return preflight::disk_steps(self, &worktree);
            }
        }
        let text = "the files are renamed in a way that does not settle";
        Err(Refusal::new(Reason::Dirty, text).into())
    }

    /// What is delivered besides the difference of two trees. The newest commit made inside names all that come along, with
    /// every content in them.
    fn besides(&self) -> Vec<u8> {
        let tip = self.history.as_ref().map(|commits| format!("commits {}\0", commits.tip));
        [tip.unwrap_or_default().into_bytes(), self.whole.encoded()].concat()
    }

    fn merge(&mut self, ours: ObjectId) -> Result<(), Halt> {
        let Merged { tree, conflicts } = self.merged(&ours)?;
        if !conflicts.is_empty() {
            return Err(Halt::Conflicts(conflicts));
        }
        self.result = tree;
        self.delivery = self.scratch.changes(&ours, &tree)?;
        Ok(())
    }

    /// Three trees become one, in the scratch repository.
    fn merged(&self, ours: &ObjectId) -> Result<Merged, Halt> {
        if *ours == self.base {
            return Ok(Merged { tree: self.theirs, conflicts: Vec::new() });
        }
        if let Some(tree) = union(&self.scratch, &self.base, (ours, &self.theirs))? {
            return Ok(Merged { tree, conflicts: Vec::new() });
        }
        // Git tells people of the sides by the names it was given for them.
        for (name, tree) in [("ours", ours), ("theirs", &self.theirs)] {
            self.scratch.name(name, &self.mergeable(tree)?)?;
        }
        let base = self.mergeable(&self.base)?;
        let call = self.scratch.call().attributes(ours).args(["merge-tree", "--write-tree", "-z"]);
        let call = call.arg(format!("--merge-base={base}")).args(["ours", "theirs"]);
        match call.finished(None, &[0, 1]) {
            Ok(finished) => Ok(merged(&finished.stdout)?),
            Err(GitError::Call(error)) if self.is_partial() => {
                let text = format!("the repository is a partial clone and lacks objects: {error}");
                Err(Refusal::new(Reason::Missing, text).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// A tree, or a commit of it where git wants one.
    fn mergeable(&self, tree: &ObjectId) -> Result<ObjectId, Error> {
        if self.scratch.git().version() >= MERGES_TREES {
            return Ok(*tree);
        }
        let line = "Sandtable <sandtable@localhost> 0 +0000";
        let text = format!("tree {tree}\nauthor {line}\ncommitter {line}\n\n");
        let call = self.scratch.call().args(["hash-object", "-t", "commit", "-w", "--stdin"]);
        Ok(call.object_with(text.as_bytes())?)
    }

    fn is_partial(&self) -> bool {
        matches!(&self.target, Target::Repository(repository) if repository.history == target::History::Partial)
    }
}

fn scratch(means: &Means, place: &Place, request: &MergeRequest, target: &Target) -> Result<Scratch, Halt> {
    let store = request.store.as_path().join("objects");
    let format = request.base.kind();
    match target {
        Target::Plain { .. } => Ok(Scratch::new(&means.git, place.scratch("plan"), format, &[&store])?),
        Target::Repository(repository) => {
            let objects = repository.objects();
            let scratch = Scratch::new(&means.git, place.scratch("plan"), format, &[&objects, &store])?;
            Ok(scratch.with_settings(repository.settings.passed_on()))
        }
    }
}

fn head_tree(scratch: &Scratch, repository: &Repository) -> Result<ObjectId, Error> {
    match repository.head.tip() {
        Some(tip) => scratch.tree_of(tip),
        None => scratch.empty_tree(),
    }
}

fn concurrency(
    target: &Target,
    request: &MergeRequest,
    (base, head): (&ObjectId, Option<&ObjectId>),
) -> Concurrency {
    let Target::Repository(repository) = target else { return Concurrency::Merged };
    let unmoved = request.base_head.is_some() && request.base_head.as_ref() == repository.head.tip();
    if unmoved || head == Some(base) { Concurrency::FastForward } else { Concurrency::Merged }
}

fn refuse_drifted(changes: &[Change], request: &MergeRequest) -> Result<(), Halt> {
    let drifted = changes.iter().filter(|change| request.drifted.contains(&change.path));
    let conflicts: Vec<Conflict> = drifted
        .map(|change| Conflict {
            path: PathText::from(&change.path),
            kind: ConflictKind::SourceChangedDuringRun,
            others: Vec::new(),
            stages: Stages::default(),
            text: "it was changed in the source while the sandbox ran".to_owned(),
        })
        .collect();
    if conflicts.is_empty() { Ok(()) } else { Err(Halt::Conflicts(conflicts)) }
}
