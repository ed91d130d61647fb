//! Which tools an action implies: read from `implicit.toml`.

use std::sync::LazyLock;

use sandtable_sandbox::model::platform::Os;
use serde::Deserialize;

use super::super::plan::ToolName;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    implicit: Vec<Rule>,
}

/// One line: what an action implies there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    action: String,
    os: Option<Os>,
    /// Needed while the step runs.
    pub(super) tools: Vec<ToolName>,
    /// Needed when the finished tool is used.
    #[serde(default)]
    pub(super) needs: Vec<ToolName>,
    #[serde(rename = "reason")]
    _reason: String,
}

static RULES: LazyLock<Rules> =
    LazyLock::new(|| toml::from_str(include_str!("implicit.toml")).expect("a test reads it"));

/// What `action` implies on `os`.
pub(super) fn of(action: &str, os: Os) -> impl Iterator<Item = &'static Rule> {
    let applies = move |rule: &&Rule| rule.os.is_none_or(|only| only == os);
    RULES.implicit.iter().filter(move |rule| rule.action == action).filter(applies)
}

/// Whether `action` implies a tool of that name on `os`.
pub fn implies(action: &str, os: Os, name: &str) -> bool {
    of(action, os).any(|rule| rule.tools.iter().any(|tool| tool.as_str() == name))
}
