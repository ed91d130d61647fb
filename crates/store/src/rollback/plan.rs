//! What must be touched to turn one state into another, from the states alone: the same again at any later time.

use crate::diff::side_by_side;
use crate::object::ReadObjects;
use crate::object::name::git_refuses;
use crate::path::RelPath;
use crate::state::{Directory, Entry, Limits, Node, Own, State, StateError, What};

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
    /// A name that must not be written.
    pub(crate) refused: Option<RelPath>,
}

impl Plan {
    pub(crate) fn new(
        objects: &dyn ReadObjects,
        from: &State,
        to: &State,
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
        let mut maker = Making { objects, plan, waiting: Vec::new() };
        maker.pair(Pair { path: root, old: Some(old.own), new: Some(new.own) }, old.entries, new.entries);
        while let Some((pair, below)) = maker.waiting.pop() {
            let read = |side: Option<Directory>| side.map_or(Ok(Vec::new()), |one| one.read(objects));
            let (old, new) = (read(below.0)?, read(below.1)?);
            left = left.checked_sub(1 + old.len() as u64 + new.len() as u64).ok_or(StateError::TooMany)?;
            if pair.path.components().count() > limits.depth {
                return Err(StateError::TooMany);
            }
            maker.pair(pair, old, new);
        }
        let mut plan = maker.plan;
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
}

impl Making<'_> {
    /// One directory, with its entries on both sides.
    fn pair(&mut self, pair: Pair, old_entries: Vec<Entry>, new_entries: Vec<Entry>) {
        let Pair { path: at, old, new } = pair;
        let before = self.plan.steps.len();
        for (name, pre, post) in side_by_side(old_entries, new_entries) {
            let path = at.join(&name).expect("a state has names only");
            if let (Some(pre), Some(post)) = (&pre, &post)
                && pre.same(post)
            {
                continue;
            }
            let below = |node: &Option<Node>| node.as_ref().and_then(Node::as_directory).copied();
            let own = |node: &Option<Node>| {
                node.as_ref().filter(|node| node.as_directory().is_some()).map(|node| node.own.clone())
            };
            let sides = (below(&pre), below(&post));
            let (old, new) = (own(&pre), own(&post));
            self.step(Step { path: path.clone(), pre, post });
            if sides.0.is_some() || sides.1.is_some() {
                self.waiting.push((Pair { path, old, new }, sides));
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
}
