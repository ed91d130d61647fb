//! An evaluator for profiles of Seatbelt, made independently of what writes them: it reads the text and its
//! parameters and says what is decided for a path. Only the part of the language that profiles here use is known;
//! anything else is an error, so that no rule is passed over.
//!
//! The last rule that fits decides; where none does, the default. Several filters of a rule are alternatives.

mod parse;
mod pattern;

use std::collections::BTreeMap;

pub use parse::{Form, forms};
pub use pattern::Pattern;

/// What is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    Deny,
}

/// A profile that was read, with its parameters filled in.
#[derive(Debug)]
pub struct Profile {
    default: Verdict,
    rules: Vec<Rule>,
}

#[derive(Debug)]
struct Rule {
    verdict: Verdict,
    operations: Vec<String>,
    /// Alternatives; none at all fits everything.
    filters: Vec<Filter>,
}

#[derive(Debug)]
enum Filter {
    Literal(String),
    Subpath(String),
    Regex(Pattern),
    All(Vec<Filter>),
    Any(Vec<Filter>),
    Not(Box<Filter>),
    /// About something that is no path: a service, a process, an address.
    NotAPath,
}

impl Profile {
    /// Reads a profile.
    pub fn new(text: &str, parameters: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut profile = Self { default: Verdict::Deny, rules: Vec::new() };
        let mut versions = 0;
        for form in forms(text)? {
            let Form::List(items) = form else { return Err(format!("no rule: {form:?}")) };
            match &items[..] {
                [Form::Word(word), Form::Word(number)] if word == "version" && number == "1" => versions += 1,
                [Form::Word(word), rest @ ..] if word == "allow" || word == "deny" => {
                    profile.rule(
                        if word == "allow" { Verdict::Allow } else { Verdict::Deny },
                        rest,
                        parameters,
                    )?;
                }
                _ => return Err(format!("unknown rule: {items:?}")),
            }
        }
        if versions == 1 { Ok(profile) } else { Err(format!("{versions} versions")) }
    }

    fn rule(
        &mut self,
        verdict: Verdict,
        rest: &[Form],
        parameters: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let mut rule = Rule { verdict, operations: Vec::new(), filters: Vec::new() };
        for item in rest {
            match item {
                Form::Word(word) if rule.filters.is_empty() => rule.operations.push(word.clone()),
                Form::List(items) => rule.filters.push(Filter::new(items, parameters)?),
                other => return Err(format!("neither an operation nor a filter: {other:?}")),
            }
        }
        match &rule.operations[..] {
            [] => return Err("a rule without an operation".to_owned()),
            [word] if word == "default" => self.default = verdict,
            words if words.iter().any(|word| word == "default") => {
                return Err("default is not alone".to_owned());
            }
            _ => self.rules.push(rule),
        }
        Ok(())
    }

    /// What is decided when `operation` is tried on `path`, which is a path without links.
    pub fn verdict(&self, operation: &str, path: &str) -> Verdict {
        let fits = |rule: &&Rule| {
            rule.operations.iter().any(|covers| covers_operation(covers, operation))
                && (rule.filters.is_empty() || rule.filters.iter().any(|filter| filter.fits(path)))
        };
        self.rules.iter().rfind(fits).map_or(self.default, |rule| rule.verdict)
    }
}

/// Whether a rule about `covers` is about `operation`: a star at the end stands for anything.
fn covers_operation(covers: &str, operation: &str) -> bool {
    covers == operation || covers.strip_suffix('*').is_some_and(|start| operation.starts_with(start))
}

impl Filter {
    fn new(items: &[Form], parameters: &BTreeMap<String, String>) -> Result<Self, String> {
        let [Form::Word(word), rest @ ..] = items else { return Err(format!("no filter: {items:?}")) };
        let several = || -> Result<Vec<Self>, String> {
            let one = |form: &Form| match form {
                Form::List(items) => Self::new(items, parameters),
                other => Err(format!("no filter: {other:?}")),
            };
            rest.iter().map(one).collect()
        };
        match (word.as_str(), rest) {
            ("literal", [path]) => Ok(Self::Literal(text(path, parameters)?)),
            ("subpath", [path]) => Ok(Self::Subpath(text(path, parameters)?)),
            ("regex", [Form::Pattern(pattern)]) => Ok(Self::Regex(Pattern::new(pattern)?)),
            ("require-all", _) => several().map(Self::All),
            ("require-any", _) => several().map(Self::Any),
            ("require-not", [Form::List(items)]) => Ok(Self::Not(Box::new(Self::new(items, parameters)?))),
            (
                "global-name" | "global-name-regex" | "target" | "remote" | "ipc-posix-name"
                | "preference-domain",
                [_, ..],
            ) => Ok(Self::NotAPath),
            _ => Err(format!("unknown filter: {items:?}")),
        }
    }

    fn fits(&self, path: &str) -> bool {
        match self {
            Self::Literal(literal) => path == literal,
            Self::Subpath(top) => {
                path == top
                    || path.strip_prefix(top.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
            }
            Self::Regex(pattern) => pattern.fits(path),
            Self::All(filters) => filters.iter().all(|filter| filter.fits(path)),
            Self::Any(filters) => filters.iter().any(|filter| filter.fits(path)),
            Self::Not(filter) => !filter.fits(path),
            Self::NotAPath => false,
        }
    }
}

fn text(form: &Form, parameters: &BTreeMap<String, String>) -> Result<String, String> {
    match form {
        Form::Text(text) => Ok(text.clone()),
        Form::List(items) => match &items[..] {
            [Form::Word(word), Form::Text(name)] if word == "param" => {
                parameters.get(name).cloned().ok_or_else(|| format!("no parameter `{name}`"))
            }
            _ => Err(format!("no text: {items:?}")),
        },
        other => Err(format!("no text: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Profile {
        let parameters = BTreeMap::from([("P".to_owned(), "/a b/\"c\\".to_owned())]);
        Profile::new(text, &parameters).unwrap()
    }

    #[test]
    fn the_last_rule_that_fits_decides() {
        let read = profile(
            "(version 1) ; a comment (deny default)\n(deny default) (allow file-read* (subpath \"/a\"))\n\
             (deny file-read* (subpath \"/a/b\")) (allow file-read-data (literal \"/a/b/c\"))",
        );
        let verdict = |path| read.verdict("file-read-data", path);
        assert_eq!(verdict("/a"), Verdict::Allow);
        assert_eq!(verdict("/a/x"), Verdict::Allow);
        assert_eq!(verdict("/ab"), Verdict::Deny);
        assert_eq!(verdict("/a/b/x"), Verdict::Deny);
        assert_eq!(verdict("/a/b/c"), Verdict::Allow);
        assert_eq!(read.verdict("file-read-metadata", "/a/b/c"), Verdict::Deny);
        assert_eq!(read.verdict("file-write-data", "/a"), Verdict::Deny);
    }

    #[test]
    fn the_default_holds_wherever_it_stands() {
        let open = profile("(version 1) (deny file* (subpath (param \"P\"))) (allow default)");
        assert_eq!(open.verdict("file-read-data", "/a b/\"c\\/d"), Verdict::Deny);
        assert_eq!(open.verdict("file-read-data", "/x"), Verdict::Allow);
    }

    #[test]
    fn filters_are_combined() {
        let text = "(version 1) (deny default) (allow file-read* (require-all (subpath \"/a\") (require-not \
                    (regex #\"^/a/.*\\.key$\"))) (literal \"/b\"))";
        let read = profile(text);
        assert_eq!(read.verdict("file-read-data", "/a/x"), Verdict::Allow);
        assert_eq!(read.verdict("file-read-data", "/a/x.key"), Verdict::Deny);
        assert_eq!(read.verdict("file-read-data", "/b"), Verdict::Allow);
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        for text in [
            "",
            "(version 2)",
            "(version 1) (version 1)",
            "(version 1) (import \"system.sb\")",
            "(version 1) (allow file-read* (subpath (param \"Q\")))",
            "(version 1) (allow file-read* (extension \"x\"))",
            "(version 1) (allow)",
            "(version 1",
            "(version 1))",
            "(version 1) (allow file-read* \"/a\")",
            "(version 1) (allow file-read* (regex #\"(\"))",
        ] {
            assert!(Profile::new(text, &BTreeMap::new()).is_err(), "{text}");
        }
    }
}
