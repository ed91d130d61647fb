//! What must be touched to turn one state into another, from the states alone: the same again at any later time.

use std::collections::HashSet;

use super::Move;
use super::spare::{Scope, Unknown};
use crate::diff::side_by_side;
use crate::object::ReadObjects;
use crate::object::name::git_refuses;
use crate::path::RelPath;
use crate::state::{Directory, Entry, Limits, Node, Own, StateError, What};

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) path: RelPath,
    pub(crate) pre: Option<Node>,
    pub(crate) post: Option<Node>,
}

/// A directory of the state to come with something in it, or in one below, that is touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) path: RelPath,
    pub(crate) own: Own,
    /// Whether names in the directory itself come, go or are exchanged: that moves its time.
    pub(crate) is_moved: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Each directory before what is in it.
    pub(crate) steps: Vec<Step>,
    /// Each directory before what is in it.
    pub(crate) holders: Vec<Holder>,
    /// Directories that keep even their owner from changing what is in them, each before those in it.
    pub(crate) locked: Vec<RelPath>,
    /// Files whose content is not in the store; they stay as they are.
    pub(crate) not_stored: Vec<RelPath>,
    /// What the state to come does not have and never spoke of; it stays as it is, and so do the directories above it.
    pub(crate) spared: Vec<RelPath>,
    /// A name that must not be written.
    pub(crate) refused: Option<RelPath>,
}

impl Plan {
    pub(crate) fn new(
        objects: &dyn ReadObjects,
        Move { from, to }: Move<'_>,
        unknown: Unknown,
        limits: Limits,
    ) -> Result<Self, StateError> {
        let mut plan = Self::default();
        let (old, new) = (from.root().read_root(objects)?, to.root().read_root(objects)?);
        if from.root().same(&to.root()) {
            return Ok(plan);
        }
        let mut left = limits.entries;
        let root = RelPath::root();
        if (old.own.bits, &old.own.attributes) != (new.own.bits, &new.own.attributes) {
            let node = |own: &Own| Some(Node { what: What::Directory(Box::default()), own: own.clone() });
            plan.steps.push(Step { path: root.clone(), pre: node(&old.own), post: node(&new.own) });
        }
        let scope = Scope::new(objects, (from, to), unknown);
        let mut maker =
            Making { objects, plan, waiting: Vec::new(), kept: HashSet::new(), going: Vec::new() };
        let top = Pair { path: root, old: Some(old.own), new: Some(new.own), scope };
        maker.pair(top, old.entries, new.entries);
        while let Some((pair, below)) = maker.waiting.pop() {
            let read = |side: Option<Directory>| side.map_or(Ok(Vec::new()), |one| one.read(objects));
            let (old, new) = (read(below.0)?, read(below.1)?);
            left = left.checked_sub(1 + old.len() as u64 + new.len() as u64).ok_or(StateError::TooMany)?;
            if pair.path.components().count() > limits.depth {
                return Err(StateError::TooMany);
            }
            maker.pair(pair, old, new);
        }
        let mut plan = maker.without_spared();
        plan.steps.sort_by(|one, two| one.path.components().cmp(two.path.components()));
        plan.holders.sort_by(|one, two| one.path.components().cmp(two.path.components()));
        plan.locked.sort_by(|one, two| one.components().cmp(two.components()));
        Ok(plan)
    }

    /// Whether the directory is on the way to something that is touched, and is there afterwards.
    pub(crate) fn holds(&self, path: &RelPath) -> bool {
        self.holders.binary_search_by(|holder| holder.path.components().cmp(path.components())).is_ok()
    }
}

struct Making<'a> {
    objects: &'a dyn ReadObjects,
    plan: Plan,
    waiting: Vec<(Pair, Sides)>,
    /// Directories that hold something that is spared.
    kept: HashSet<RelPath>,
    /// Directories that the state to come does not have.
    going: Vec<Holder>,
}

impl Making<'_> {
    /// One directory, with its entries on both sides.
    fn pair(&mut self, pair: Pair, old_entries: Vec<Entry>, new_entries: Vec<Entry>) {
        let Pair { path: at, old, new, scope } = pair;
        let before = self.plan.steps.len();
        let scope = scope.map(|scope| scope.with(self.objects, &at, (&old_entries, &new_entries)));
        for (name, pre, post) in side_by_side(old_entries, new_entries) {
            let path = at.join(&name).expect("a state has names only");
            if let (Some(pre), Some(post)) = (&pre, &post)
                && pre.same(post)
            {
                continue;
            }
            if let (Some(scope), Some(pre), None) = (&scope, &pre, &post)
                && scope.spares(&path, pre)
            {
                self.spare(path);
                continue;
            }
            let below = |node: &Option<Node>| node.as_ref().and_then(Node::as_directory).copied();
            let own = |node: &Option<Node>| {
                node.as_ref().filter(|node| node.as_directory().is_some()).map(|node| node.own.clone())
            };
            let sides = (below(&pre), below(&post));
            let (old, new) = (own(&pre), own(&post));
            if let (Some(own), None) = (&old, &post) {
                self.going.push(Holder { path: path.clone(), own: own.clone(), is_moved: true });
            }
            self.step(Step { path: path.clone(), pre, post });
            if sides.0.is_some() || sides.1.is_some() {
                let scope = scope.as_ref().map(|scope| scope.below(&path));
                self.waiting.push((Pair { path, old, new, scope }, sides));
            }
        }
        if let Some(own) = new {
            let moves = |step: &Step| {
                let both = step.pre.as_ref().and_then(Node::as_directory).is_some()
                    && step.post.as_ref().and_then(Node::as_directory).is_some();
                !both && step.path.parent().as_ref() == Some(&at)
            };
            let is_moved = self.plan.steps[before..].iter().any(moves);
            self.plan.holders.push(Holder { path: at.clone(), own, is_moved });
        }
        if old.is_some_and(|own| own.bits & 0o700 != 0o700) {
            self.plan.locked.push(at);
        }
    }

    fn spare(&mut self, path: RelPath) {
        let mut above = path.parent();
        // Whatever is above one that is known is known.
        while let Some(directory) = above.filter(|directory| self.kept.insert(directory.clone())) {
            above = directory.parent();
        }
        self.plan.spared.push(path);
    }

    /// A directory that must not go, for what is in it, is one like those that stay.
    fn without_spared(self) -> Plan {
        let Self { mut plan, kept, going, .. } = self;
        plan.steps.retain(|step| step.post.is_some() || !kept.contains(&step.path));
        plan.holders.extend(going.into_iter().filter(|holder| kept.contains(&holder.path)));
        plan
    }

    fn step(&mut self, step: Step) {
        if let Some(Node { what: What::File(id) | What::Symlink(id), .. }) = &step.post
            && !self.objects.contains(id)
        {
            self.plan.not_stored.push(step.path);
            return;
        }
        if step.post.is_some() && step.path.name().is_none_or(git_refuses) {
            self.plan.refused.get_or_insert(step.path);
            return;
        }
        // A directory on both sides is a step of its own only if it says something else of itself.
        if let (Some(pre), Some(post)) = (&step.pre, &step.post)
            && pre.as_directory().is_some()
            && post.as_directory().is_some()
            && (pre.own.bits, &pre.own.attributes) == (post.own.bits, &post.own.attributes)
        {
            return;
        }
        self.plan.steps.push(step);
    }
}

type Sides = (Option<Directory>, Option<Directory>);

/// A directory on either side, by what it says of itself there.
struct Pair {
    path: RelPath,
    old: Option<Own>,
    new: Option<Own>,
    /// The rules about ignored files; none if nothing is to be spared.
    scope: Option<Scope>,
}
