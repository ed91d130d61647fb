//! The rules of `review.toml`, as they are matched.

use std::sync::LazyLock;

use serde::Deserialize;

use super::pattern::{Beginnings, Index, Pattern};

pub(super) static RULES: LazyLock<Rules> = LazyLock::new(|| {
    serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/review.json")))
        .expect("the build script read it, and a test does")
});

/// The patterns of all rules about paths, each with the number of its rule and its own in there.
pub(super) static PATTERNS: LazyLock<Index<(usize, usize)>> = LazyLock::new(|| {
    let of_rule = |(number, rule): (usize, &'static PathRule)| {
        rule.patterns.iter().enumerate().map(move |(at, pattern)| ((number, at), pattern))
    };
    Index::new(RULES.path.iter().enumerate().flat_map(of_rule))
});

/// The patterns that say where a file is held by more than its name.
pub(super) static PARTED: LazyLock<Beginnings> = LazyLock::new(|| {
    let held = RULES.path.iter().filter(|rule| rule.level == Level::Held && rule.when != When::Removed);
    Beginnings::new(held.flat_map(|rule| &rule.patterns))
});

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rules {
    pub(super) path: Vec<PathRule>,
    pub(super) setting: Vec<SettingRule>,
    pub(super) host: Vec<HostRule>,
    pub(super) content: Vec<KindRule>,
    pub(super) refused: Vec<KindRule>,
    pub(super) token: Vec<Token>,
}

/// Names of files.
#[derive(Debug, Deserialize)]
pub(super) struct PathRule {
    pub(super) patterns: Vec<Pattern>,
    #[serde(default)]
    pub(super) when: When,
    #[serde(default)]
    pub(super) level: Level,
    #[serde(flatten)]
    pub(super) described: Described,
}

/// Settings of the user's git that name files.
#[derive(Debug, Deserialize)]
pub(super) struct SettingRule {
    /// Names of settings, in lower case, `*` for anything.
    pub(super) settings: Vec<String>,
    pub(super) names: Names,
    #[serde(flatten)]
    pub(super) described: Described,
}

/// What outside of the worktree can lead into it.
#[derive(Debug, Deserialize)]
pub(super) struct HostRule {
    pub(super) kind: String,
    /// Where, from the home directory. A `*` in the last name stands for links only.
    #[serde(default)]
    pub(super) names: Vec<String>,
    #[serde(flatten)]
    pub(super) described: Described,
}

/// What only a look at the change tells.
#[derive(Debug, Deserialize)]
pub(super) struct KindRule {
    pub(super) kind: String,
    #[serde(flatten)]
    pub(super) described: Described,
}

/// How a secret begins.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Token {
    pub(super) start: String,
    /// How many characters follow at least.
    pub(super) least: usize,
    #[serde(default)]
    pub(super) alphabet: Alphabet,
    /// Whose it is.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table, and a test"))]
    pub(super) reason: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Described {
    pub(super) group: String,
    pub(super) reason: String,
}

/// What must happen to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum When {
    /// It is new or changed.
    #[default]
    Written,
    New,
    Removed,
    Either,
}

/// How much is made of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Level {
    #[default]
    Held,
    Flagged,
}

/// What the value of a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Names {
    /// A path from the top of the worktree; everything below it too.
    Path,
    /// A path from the directory that the configuration is in.
    FromGit,
    /// A command line whose words may be paths.
    Command,
    /// The same where it begins with `!`, and a word of git's where it does not.
    Alias,
}

/// What the rest of a token is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Alphabet {
    /// Letters and digits.
    #[default]
    Plain,
    /// These, `-` and `_`.
    Dashed,
}

impl Rules {
    /// The line about a kind of content.
    pub(super) fn content(&'static self, kind: &str) -> &'static Described {
        described(&self.content, kind)
    }

    /// The line about a kind of place on the host from which a way leads here.
    pub(super) fn host(&'static self, kind: &str) -> &'static HostRule {
        let line = self.host.iter().find(|line| line.kind == kind);
        line.expect("a test looks for every kind in the rules")
    }

    /// The line about a kind that is refused.
    pub(super) fn refused(&'static self, kind: &str) -> &'static Described {
        described(&self.refused, kind)
    }
}

fn described(lines: &'static [KindRule], kind: &str) -> &'static Described {
    let line = lines.iter().find(|line| line.kind == kind);
    &line.expect("a test looks for every kind in the rules").described
}
