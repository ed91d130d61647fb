//! What must be touched to turn one state into another, from the states alone: the same again at any later time.
//!
//! A state may be very deep, so nothing here has a path of its own: a step knows its name and the way to its directory.
//! Every directory has one way, which its step, its holder and all that is in it share; so it is known by its address.

use std::collections::HashSet;
use std::sync::Arc;

use super::Move;
use super::spare::{Scope, Unknown};
use crate::checkout::Way;
use crate::diff::side_by_side;
use crate::object::ReadObjects;
use crate::object::name::git_refuses;
use crate::path::RelPath;
use crate::state::{Directory, Entry, Limits, Node, Own, StateError, What};

/// One path that differs.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) way: Arc<Way>,
    pub(crate) pre: Option<Node>,
    pub(crate) post: Option<Node>,
}

/// A directory of the state to come with something in it, or in one below, that is touched.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) way: Arc<Way>,
    pub(crate) own: Own,
    /// Whether names in the directory itself come, go or are exchanged: that moves its time.
    pub(crate) is_moved: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Each directory before what is in it, in the order of names.
    pub(crate) steps: Vec<Step>,
    /// In the same order.
    pub(crate) holders: Vec<Holder>,
    /// Directories that keep even their owner from changing what is in them, in the same order.
    pub(crate) locked: Vec<Arc<Way>>,
    /// Files whose content is not in the store; they stay as they are.
    pub(crate) not_stored: Vec<Arc<Way>>,
    /// What the state to come does not have and never spoke of; it stays as it is, and so do the directories above it.
    pub(crate) spared: Vec<Arc<Way>>,
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
        let root = Way::root();
        if (old.own.bits, &old.own.attributes) != (new.own.bits, &new.own.attributes) {
            let node = |own: &Own| Some(Node { what: What::Directory(Box::default()), own: own.clone() });
            plan.steps.push(Step { way: Arc::clone(&root), pre: node(&old.own), post: node(&new.own) });
        }
        let scope = Scope::new(objects, (from, to), unknown);
        let mut making = Making {
            objects,
            plan,
            levels: Vec::new(),
            path: RelPath::root(),
            kept: HashSet::new(),
            going: HashSet::new(),
            limits,
        };
        let top = Pair { way: root, old: Some(old.own), new: Some(new.own), goes: false, scope };
        making.enter(top, (old.entries, new.entries))?;
        while let Some(level) = making.levels.last_mut() {
            match level.entries.next() {
                Some(entry) => making.entry(entry)?,
                None => making.leave(),
            }
        }
        Ok(making.without_spared())
    }
}

struct Making<'a> {
    objects: &'a dyn ReadObjects,
    plan: Plan,
    /// The directories on the way down to the one that is looked at.
    levels: Vec<Level>,
    /// Where that is.
    path: RelPath,
    /// Directories that hold something that is spared.
    kept: HashSet<*const Way>,
    /// Directories that the state to come does not have, among the holders.
    going: HashSet<*const Way>,
    limits: Limits,
}

/// What a name is on either side.
type Both = (Box<[u8]>, Option<Node>, Option<Node>);

/// A directory that is being looked at.
struct Level {
    way: Arc<Way>,
    entries: std::vec::IntoIter<Both>,
    scope: Option<Scope>,
    /// Its place among the holders.
    holder: Option<usize>,
}

/// A directory on either side, by what it says of itself there.
struct Pair {
    way: Arc<Way>,
    old: Option<Own>,
    new: Option<Own>,
    /// Whether nothing comes in its place.
    goes: bool,
    /// The rules about ignored files; none if nothing is to be spared.
    scope: Option<Scope>,
}

impl Making<'_> {
    /// Begins with a directory, whose path is the current one.
    fn enter(&mut self, pair: Pair, (old, new): (Vec<Entry>, Vec<Entry>)) -> Result<(), StateError> {
        let Pair { way, old: own_before, new: own_after, goes, scope } = pair;
        let many = 1 + old.len() as u64 + new.len() as u64;
        self.limits.entries = self.limits.entries.checked_sub(many).ok_or(StateError::TooMany)?;
        if way.depth() > self.limits.depth {
            return Err(StateError::TooMany);
        }
        if own_before.as_ref().is_some_and(|own| own.bits & 0o700 != 0o700) {
            self.plan.locked.push(Arc::clone(&way));
        }
        let own = own_after.or(own_before.filter(|_| goes));
        let holder = own.map(|own| {
            self.plan.holders.push(Holder { way: Arc::clone(&way), own, is_moved: goes });
            self.plan.holders.len() - 1
        });
        if goes {
            self.going.insert(Arc::as_ptr(&way));
        }
        let scope = scope.map(|scope| scope.with(self.objects, &self.path, (&old, &new)));
        let entries: Vec<Both> = side_by_side(old, new).collect();
        self.levels.push(Level { way, entries: entries.into_iter(), scope, holder });
        Ok(())
    }

    fn leave(&mut self) {
        self.levels.pop();
        self.path.pop();
    }

    /// One name of the directory that was entered last.
    fn entry(&mut self, (name, pre, post): Both) -> Result<(), StateError> {
        let Some(level) = self.levels.last() else { return Ok(()) };
        if let (Some(pre), Some(post)) = (&pre, &post)
            && pre.same(post)
        {
            return Ok(());
        }
        let way = level.way.below(&name);
        self.path.push(&name).expect("a state has names only");
        if let (Some(scope), Some(pre), None) = (&level.scope, &pre, &post)
            && scope.spares(&self.path, pre)
        {
            self.spare(way);
            self.path.pop();
            return Ok(());
        }
        let below = |node: &Option<Node>| node.as_ref().and_then(Node::as_directory).copied();
        let own = |node: &Option<Node>| {
            node.as_ref().filter(|node| node.as_directory().is_some()).map(|node| node.own.clone())
        };
        let (sides, goes) = ((below(&pre), below(&post)), below(&pre).is_some() && post.is_none());
        let (old, new) = (own(&pre), own(&post));
        let holder = level.holder;
        let scope = level.scope.as_ref().filter(|_| sides != (None, None));
        let scope = scope.map(|scope| scope.below(&self.path));
        if self.step(Step { way: Arc::clone(&way), pre, post })
            && (sides.0.is_none() || sides.1.is_none())
            && let Some(holder) = holder
        {
            self.plan.holders[holder].is_moved = true;
        }
        if sides == (None, None) {
            self.path.pop();
            return Ok(());
        }
        let read = |side: Option<Directory>| side.map_or(Ok(Vec::new()), |one| one.read(self.objects));
        let entries = (read(sides.0)?, read(sides.1)?);
        self.enter(Pair { way, old, new, goes, scope }, entries)
    }

    fn spare(&mut self, way: Arc<Way>) {
        let mut above = way.parent();
        // Whatever is above one that is known is known.
        while let Some(directory) = above.filter(|directory| self.kept.insert(Arc::as_ptr(directory))) {
            above = directory.parent();
        }
        self.plan.spared.push(way);
    }

    /// A directory that must not go, for what is in it, is one like those that stay.
    fn without_spared(self) -> Plan {
        let Self { mut plan, kept, going, .. } = self;
        plan.steps.retain(|step| step.post.is_some() || !kept.contains(&Arc::as_ptr(&step.way)));
        plan.holders.retain(|holder| {
            let way = Arc::as_ptr(&holder.way);
            !going.contains(&way) || kept.contains(&way)
        });
        plan
    }

    /// Notes what is to be done about a name; says whether anything is.
    fn step(&mut self, step: Step) -> bool {
        if let Some(Node { what: What::File(id) | What::Symlink(id), .. }) = &step.post
            && !self.objects.contains(id)
        {
            self.plan.not_stored.push(step.way);
            return false;
        }
        if step.post.is_some() && step.way.name().is_none_or(git_refuses) {
            self.plan.refused.get_or_insert_with(|| step.way.path());
            return false;
        }
        // A directory on both sides is a step of its own only if it says something else of itself.
        if let (Some(pre), Some(post)) = (&step.pre, &step.post)
            && pre.as_directory().is_some()
            && post.as_directory().is_some()
            && (pre.own.bits, &pre.own.attributes) == (post.own.bits, &post.own.attributes)
        {
            return false;
        }
        self.plan.steps.push(step);
        true
    }
}
