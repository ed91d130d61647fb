//! What would run on the user's machine, or is plainly dangerous, in a list of changes.
//!
//! A pure function of the changes and of what they contain. The rules are data (`review.toml`); this module knows
//! how to match a name and how to look into a file. What is *held* waits for an approval that names its path; what
//! is *refused* no approval lets through.

mod content;
mod name;
mod pattern;

use std::sync::LazyLock;

use sandtable_store::RelPath;
use serde::{Deserialize, Serialize};

use super::error::Error;
use super::outcome::PathText;
use super::request::Approvals;
use super::tree::{Change, Entry, Mode};
use pattern::Pattern;

/// Where the review finds what the changes contain.
pub trait Contents {
    /// At most `limit` bytes of a file or the text of a link, and how long it is.
    fn read(&self, entry: &Entry, limit: usize) -> Result<(Vec<u8>, u64), Error>;

    /// Whether the snapshot has anything at or below a path.
    fn has(&self, path: &RelPath) -> Result<bool, Error>;
}

/// A change that is not simply taken over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    #[serde(flatten)]
    pub path: PathText,
    pub group: &'static str,
    /// The rule: a pattern or a kind of content.
    pub rule: &'static str,
    pub reason: &'static str,
    #[serde(skip)]
    exact: RelPath,
}

impl Finding {
    fn new(change: &Change, rule: &'static str, line: &'static Described) -> Self {
        let exact = change.path.clone();
        Self { path: (&exact).into(), group: &line.group, rule, reason: &line.reason, exact }
    }

    /// The path as bytes.
    pub const fn rel_path(&self) -> &RelPath {
        &self.exact
    }
}

/// What became of the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Review {
    pub held: Vec<Finding>,
    pub refused: Vec<Finding>,
    /// Held, and approved.
    pub approved: Vec<Finding>,
}

/// Only what no approval lets through.
pub fn refusals(changes: &[Change], contents: &impl Contents) -> Result<Vec<Finding>, Error> {
    let mut refused = Vec::new();
    for change in changes {
        for kind in content::refused(change, contents)? {
            refused.push(Finding::new(change, kind, described(&RULES.refused, kind)));
        }
    }
    Ok(refused)
}

/// Looks over every change. A path may be held for several reasons and is listed with each.
pub fn review(changes: &[Change], contents: &impl Contents, approvals: &Approvals) -> Result<Review, Error> {
    let mut review = Review::default();
    for change in changes {
        let finding = |rule: &'static str, line: &'static Described| Finding::new(change, rule, line);
        for kind in content::refused(change, contents)? {
            review.refused.push(finding(kind, described(&RULES.refused, kind)));
        }
        let mut held: Vec<Finding> = by_path(change).map(|(rule, line)| finding(rule, line)).collect();
        for kind in content::held(change, contents)? {
            held.push(finding(kind, described(&RULES.content, kind)));
        }
        let approved = approvals.includes(&change.path);
        if approved { &mut review.approved } else { &mut review.held }.append(&mut held);
    }
    Ok(review)
}

/// The first pattern of each rule that fits.
fn by_path(change: &Change) -> impl Iterator<Item = (&'static str, &'static Described)> {
    let gone = change.new.is_none();
    let fitting = move |rule: &'static PathRule| {
        let pattern = rule.patterns.iter().find(|pattern| pattern.matches(&change.path))?;
        (!gone || rule.removed).then_some((pattern.text(), &rule.described))
    };
    RULES.path.iter().filter_map(fitting)
}

fn described(lines: &'static [KindRule], kind: &str) -> &'static Described {
    let line = lines.iter().find(|line| line.kind == kind);
    &line.expect("a test looks for every kind in the rules").described
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    path: Vec<PathRule>,
    content: Vec<KindRule>,
    refused: Vec<KindRule>,
}

#[derive(Debug, Deserialize)]
struct PathRule {
    patterns: Vec<Pattern>,
    #[serde(default)]
    removed: bool,
    #[serde(flatten)]
    described: Described,
}

#[derive(Debug, Deserialize)]
struct KindRule {
    kind: String,
    #[serde(flatten)]
    described: Described,
}

#[derive(Debug, Deserialize)]
struct Described {
    group: String,
    reason: String,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/review.json")))
        .expect("the build script read it, and a test does")
});

impl Mode {
    const fn is_executable(self) -> bool {
        matches!(self, Self::Executable)
    }
}

#[cfg(test)]
mod tests;
