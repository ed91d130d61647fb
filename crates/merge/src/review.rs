//! What would run on the user's machine, or is plainly dangerous, in a list of changes.
//!
//! A pure function of the changes, of what they contain, and of what is around them: links that give a path another name,
//! and settings of the user's that name it. The rules are data (`review.toml`); this module knows how to match a name and
//! how to look into a file. What is *held* waits for an approval that names its path; what is *flagged* is told and passes;
//! what is *refused* no approval lets through.

mod alias;
mod content;
mod git_dir;
mod home;
mod leads;
mod name;
mod named;
mod other_names;
mod pattern;
mod rules;
mod secret;
mod steps;
mod text;
mod words;

use std::borrow::Cow;
use std::collections::BTreeMap;

use sandtable_sandbox::attention::Attention;
use sandtable_sandbox::repository::shown;
use sandtable_store::RelPath;
use serde::Serialize;

use super::error::Error;
use super::named::PathText;
use super::request::Approvals;
use super::seal::Seal;
use super::tree::{Change, Entry, Mode};
pub use alias::Links;
use alias::{Amount, Thing};
pub use named::{Place, places};
pub use other_names::OtherNames;
use pattern::{Folded, Pattern};
use rules::{Described, Level, PARTED, PATTERNS, PathRule, RULES, When};
pub use sandtable_sandbox::repository::Parts;

/// The longest name of a file that the system takes, with its end.
pub const LONGEST: usize = 4096;
/// As many names all changed paths have together at most. Each of them is compared with the rules, and in a deep directory a
/// few files have millions. Honest work has about ten for each of the paths that a merge takes.
const NAMES: usize = 3_000_000;
/// The kind of a path that is longer.
const LONG: &str = "long-path";

/// Where the review finds what the changes contain.
pub trait Contents {
    /// At most `limit` bytes of a file or the text of a link, and how long it is.
    fn read(&self, entry: &Entry, limit: usize) -> Result<(Vec<u8>, u64), Error>;

    /// Whether a path is a regular file, without a link on its way.
    fn is_file(&self, path: &RelPath) -> Result<bool, Error>;

    /// What of a git directory each directory above a path has, from the top.
    fn levels(&self, path: &RelPath) -> Result<Vec<Parts>, Error>;
}

/// What gives a path a meaning besides its name.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    pub links: Links,
    /// Places that the user's configuration names, or something in the home or git directory leads to.
    pub places: Vec<Place>,
    pub seal: Seal,
    /// Looked at between one change and the next.
    pub(crate) attention: Attention,
}

/// A change that is not simply taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    #[serde(flatten)]
    pub path: PathText,
    /// The content that was looked at: an approval can name it.
    pub id: String,
    /// The name by which it matters, where that is the name of a link to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<PathText>,
    pub group: &'static str,
    /// The rule: a pattern, a setting or a kind of content.
    pub rule: Cow<'static, str>,
    pub reason: &'static str,
    #[serde(skip)]
    exact: RelPath,
    /// What it is, where the difference of the states does not show it: a content of a commit made inside.
    #[serde(skip)]
    text: Option<String>,
}

impl Finding {
    /// The path as bytes.
    pub const fn rel_path(&self) -> &RelPath {
        &self.exact
    }

    /// What it is, where the difference of the states does not show it.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    pub(super) fn with_text(&mut self, text: &str) {
        self.text = Some(text.to_owned());
    }
}

/// What became of the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    pub held: Vec<Finding>,
    pub refused: Vec<Finding>,
    /// Held, and approved.
    pub approved: Vec<Finding>,
    /// Worth a look, and not held.
    pub flagged: Vec<Finding>,
}

/// Refuses more than can be looked over in time.
pub fn takes(changes: &[Change]) -> Result<(), Error> {
    let mut left = NAMES;
    for Change { path, .. } in changes {
        left = left.checked_sub(path.components().count()).ok_or_else(|| {
            let limit = format!("{NAMES} names in all paths together");
            Error::TooMuch { limit, path: shown(path.as_bytes()) }
        })?;
    }
    Ok(())
}

/// Only what no approval lets through.
pub fn refusals(
    changes: &[Change],
    contents: &impl Contents,
    around: &Surroundings,
) -> Result<Vec<Finding>, Error> {
    takes(changes)?;
    let mut refused = Vec::new();
    for change in changes {
        around.attention.heed()?;
        refused.extend(Subject::new(change, around).refused(contents)?);
    }
    Ok(refused)
}

/// Looks over every change. A path may be held for several reasons and is listed with each.
pub fn review(
    changes: &[Change],
    contents: &impl Contents,
    around: &Surroundings,
    approvals: &Approvals,
) -> Result<Review, Error> {
    takes(changes)?;
    let mut review = Review::default();
    for change in changes {
        around.attention.heed()?;
        if is_too_long(change) {
            // A merge takes none of it, so there is nothing more to find out. It may have thousands of names.
            let subject = Subject::of_one_name(change, around);
            review.refused.push(subject.finding(None, Cow::Borrowed(LONG), RULES.refused(LONG)));
            continue;
        }
        let subject = Subject::new(change, around);
        let refused = subject.refused(contents)?;
        let mut held = subject.by_path(Level::Held);
        held.extend(subject.by_setting());
        held.extend(subject.by_link(contents)?);
        held.extend(subject.by_content(contents)?);
        if held.is_empty() && refused.is_empty() {
            review.flagged.extend(subject.by_path(Level::Flagged));
        }
        review.refused.extend(refused);
        let approved = approvals.includes(&change.path);
        if approved { &mut review.approved } else { &mut review.held }.append(&mut held);
    }
    Ok(review)
}

/// Permissions that something has and gets, where git's trees have no words for them.
#[derive(Clone, Copy, Debug)]
pub struct Permissions {
    /// None for what is new.
    pub before: Option<u16>,
    pub after: u16,
    pub is_directory: bool,
}

/// Permissions that let others in, or start a program, wait for an approval.
pub fn wider(path: &RelPath, mode: &Permissions, around: &Surroundings) -> Vec<Finding> {
    // Of what is new only that counts which nobody gives without a reason.
    let before = mode.before.unwrap_or(if mode.is_directory { 0o775 } else { 0o664 });
    let added = mode.after & !before;
    let started = !mode.is_directory && added & 0o111 != 0;
    let let_in = added & 0o077 & !(if mode.is_directory { 0 } else { 0o011 }) != 0;
    let kinds = [started.then_some("executable"), let_in.then_some("wider-permissions")];
    let finding = |kind: &'static str| Finding {
        path: path.into(),
        id: around.seal.permissions(mode.after),
        alias: None,
        group: &RULES.content(kind).group,
        rule: Cow::Borrowed(kind),
        reason: &RULES.content(kind).reason,
        exact: path.clone(),
        text: None,
    };
    kinds.into_iter().flatten().map(finding).collect()
}

/// Whether a text has characters in it that are not seen, where they do not belong.
pub(super) fn hides(text: &str) -> bool {
    text::hides(text, || None)
}

/// Why a directory without files may not be made, under any of its names.
pub fn refused_directory(path: &RelPath, around: &Surroundings) -> Vec<Finding> {
    let names = std::iter::once(path.clone()).chain(around.links.aliases(path, Thing::Other).paths);
    // Of CVS a directory is known by what is in it, or by its name in capitals.
    let kinds = |name: RelPath| {
        let mut kinds = content::refused_name(&name);
        kinds.extend((name.name() == Some(b"CVS")).then_some("version-control"));
        kinds
    };
    let finding = |kind: &'static str| Finding {
        path: path.into(),
        id: around.seal.permissions(0),
        alias: None,
        group: &RULES.refused(kind).group,
        rule: Cow::Borrowed(kind),
        reason: &RULES.refused(kind).reason,
        exact: path.clone(),
        text: None,
    };
    names.flat_map(kinds).map(finding).collect()
}

/// Whether a path is brought that no program can open: git's `status` would fail on it from then on.
pub fn is_too_long(change: &Change) -> bool {
    change.new.is_some() && change.path.as_bytes().len() >= LONGEST
}

/// The kind of a link that gives what is there already a name that is held.
const LINK_ABOVE: &str = "link-above";

/// Whether a link arrives that was not there, or with another text.
fn is_link(change: &Change) -> bool {
    change.new.is_some_and(|new| new.mode == Mode::Symlink)
}

/// A change under all its names.
struct Subject<'a> {
    change: &'a Change,
    around: &'a Surroundings,
    /// Its own name first.
    names: Vec<(Option<RelPath>, Folded)>,
    amount: Amount,
    id: String,
}

impl<'a> Subject<'a> {
    fn new(change: &'a Change, around: &'a Surroundings) -> Self {
        let thing = if is_link(change) { Thing::Link } else { Thing::Other };
        let aliases = around.links.aliases(&change.path, thing);
        let own = (None, Folded::new(&change.path));
        let others = aliases.paths.into_iter().map(|alias| (Some(alias.clone()), Folded::new(&alias)));
        let names = [own].into_iter().chain(others).collect();
        Self { change, around, names, amount: aliases.amount, id: around.seal.id(change) }
    }

    /// Under its own name alone, for what needs no other.
    fn of_one_name(change: &'a Change, around: &'a Surroundings) -> Self {
        Self { change, around, names: Vec::new(), amount: Amount::All, id: around.seal.id(change) }
    }

    fn finding(&self, alias: Option<&RelPath>, rule: Cow<'static, str>, line: &'static Described) -> Finding {
        let exact = self.change.path.clone();
        Finding {
            path: (&exact).into(),
            id: self.id.clone(),
            alias: alias.map(PathText::from),
            group: &line.group,
            rule,
            reason: &line.reason,
            exact,
            text: None,
        }
    }

    fn refused(&self, contents: &impl Contents) -> Result<Vec<Finding>, Error> {
        let own = content::refused(self.change, contents)?;
        let mut found: Vec<Finding> =
            own.iter().map(|kind| self.finding(None, Cow::Borrowed(*kind), RULES.refused(kind))).collect();
        let unknown = self.around.links.forbidden().filter(|_| self.amount == Amount::TooMany);
        for alias in self.names.iter().filter_map(|(alias, _)| alias.as_ref()).chain(unknown) {
            let kinds = content::refused_name(alias).into_iter().filter(|kind| !own.contains(kind));
            found.extend(
                kinds.map(|kind| self.finding(Some(alias), Cow::Borrowed(kind), RULES.refused(kind))),
            );
        }
        Ok(found)
    }

    /// Of each rule the first pattern that fits the first name.
    fn by_path(&self, level: Level) -> Vec<Finding> {
        let gone = self.change.new.is_none();
        let applies = |rule: &&'static PathRule| {
            let when = match rule.when {
                When::Written => !gone,
                When::New => !gone && self.change.old.is_none(),
                When::Removed => gone,
                When::Either => true,
            };
            when && rule.level == level
        };
        // Of each rule, the first name that it fits.
        let mut found = BTreeMap::new();
        for (alias, name) in &self.names {
            for ((rule, _), pattern) in PATTERNS.matching(name) {
                found.entry(rule).or_insert((alias, pattern));
            }
        }
        let fitting = |(rule, (alias, pattern)): (usize, (&Option<RelPath>, &'static Pattern))| {
            let rule = RULES.path.get(rule).filter(applies)?;
            Some(self.finding(alias.as_ref(), Cow::Borrowed(pattern.text()), &rule.described))
        };
        found.into_iter().filter_map(fitting).collect()
    }

    /// Named by the user's configuration, also where it goes: what was there was in force. For each reason once.
    fn by_setting(&self) -> Vec<Finding> {
        let mut found: Vec<Finding> = Vec::new();
        for place in &self.around.places {
            let line = place.described();
            if found.iter().any(|known| known.reason == line.reason) {
                continue;
            }
            if let Some((alias, _)) = self.names.iter().find(|(_, name)| place.covers(name)) {
                found.push(self.finding(alias.as_ref(), Cow::Owned(place.setting().to_owned()), line));
            }
        }
        found
    }

    /// A link above what is held, one of each sort: nothing below it need be changed to get its name.
    fn by_link(&self, contents: &impl Contents) -> Result<Vec<Finding>, Error> {
        if !is_link(self.change) {
            return Ok(Vec::new());
        }
        let line = RULES.content(LINK_ABOVE);
        let pattern = self.names.iter().find_map(|(alias, name)| {
            let pattern = PARTED.at(name)?;
            Some(self.finding(alias.as_ref(), Cow::Borrowed(pattern.text()), line))
        });
        let place = self.names.iter().find_map(|(alias, name)| {
            let place = self.around.places.iter().find(|place| place.is_below(name))?;
            Some(self.finding(alias.as_ref(), Cow::Owned(place.setting().to_owned()), line))
        });
        let found: Vec<Finding> = pattern.into_iter().chain(place).collect();
        // Nothing is below a file.
        let is_above = !found.is_empty() && !content::leads_to_file(self.change, contents)?;
        Ok(if is_above { found } else { Vec::new() })
    }

    fn by_content(&self, contents: &impl Contents) -> Result<Vec<Finding>, Error> {
        let mut kinds = content::held(self.change, contents)?;
        kinds.extend((self.amount == Amount::TooMany).then_some("many-links"));
        let finding = |kind: &'static str| self.finding(None, Cow::Borrowed(kind), RULES.content(kind));
        Ok(kinds.into_iter().map(finding).collect())
    }
}

#[cfg(test)]
mod table_tests;
#[cfg(test)]
mod tests;
