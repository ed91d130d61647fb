//! Writes the part of a configuration that can neither run a program nor give anything away: an allow-list
//! of keys, and of those no value that names a command or an address.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sandtable_store::wildcard::{Syntax, matches};
use serde::Deserialize;

use super::reader::Entry;
use crate::resolve::data::{Reasoned, policy};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    keys: Vec<Reasoned>,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| policy!("gitconfig"));

/// The text of a configuration file with the allowed entries in their order.
pub(super) fn written(entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut section = "";
    for entry in entries.iter().filter(|entry| is_allowed(entry)) {
        if section != entry.section {
            section = &entry.section;
            writeln!(text, "[{section}]").expect("writing to a string");
        }
        match &entry.value {
            None => writeln!(text, "\t{}", entry.key),
            Some(value) => writeln!(text, "\t{} = {}", entry.key, quoted(value)),
        }
        .expect("writing to a string");
    }
    text
}

fn is_allowed(entry: &Entry) -> bool {
    let name = format!("{}.{}", entry.section, entry.key);
    let value = entry.value.as_deref().unwrap_or_default();
    entry.subsection.is_none()
        && KEYS.keys.iter().any(|key| matches(&key.name, &name, Syntax::Path))
        && is_harmless(value)
        && (entry.section != "alias" || is_harmless_alias(value))
}

/// No address, which may hold a password, and no character that could not be written back.
fn is_harmless(value: &str) -> bool {
    !value.contains("://") && !value.contains(|c: char| c.is_control() && c != '\n' && c != '\t')
}

/// No command of a shell, no option of git itself, and no setting of a new repository: the last two could
/// carry any other key.
fn is_harmless_alias(value: &str) -> bool {
    let words: Vec<&str> = value.split_whitespace().collect();
    let sets = |word: &str| word.starts_with("--config") || word.starts_with("-c") && word.contains('=');
    !value.trim_start().starts_with(['!', '-'])
        && !words.iter().any(|word| sets(word))
        && !words.windows(2).any(|pair| pair[0] == "-c" && pair[1].contains('='))
}

pub(super) fn quoted(value: &str) -> String {
    let mut text = String::from("\"");
    for character in value.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::reader::parse;
    use super::*;
    use crate::model::path::HostPath;
    use crate::process::Cli;

    const NAMES: &[&str] = &[
        "user.name",
        "user.email",
        "alias.x",
        "core.editor",
        "core.autocrlf",
        "credential.helper",
        "http.proxy",
        "core.sshcommand",
        "diff.external",
        "pull.rebase",
        "user.signingkey",
        "gpg.program",
        "url.insteadof",
    ];

    fn entry() -> impl Strategy<Value = Entry> {
        let name = proptest::sample::select(NAMES);
        let value =
            prop_oneof!["\\PC{0,12}", "[ -~\n\t]{0,12}", "(!|-c |https://|\"|\\\\|\n\\[core\\]\nx=).{0,6}"];
        (name, proptest::option::weighted(0.1, "[ -~]{0,4}"), proptest::option::of(value)).prop_map(
            |(name, subsection, value)| {
                let (section, key) = name.split_once('.').expect("has a dot");
                Entry { section: section.to_owned(), subsection, key: key.to_owned(), value }
            },
        )
    }

    proptest! {
        #[test]
        fn nothing_outside_the_list_is_ever_written(entries in proptest::collection::vec(entry(), 0..8)) {
            let text = written(&entries);
            let kept: Vec<Entry> = entries.into_iter().filter(is_allowed).collect();
            prop_assert_eq!(parse(&text), Ok(kept.clone()));
            for entry in kept {
                let name = format!("{}.{}", entry.section, entry.key);
                prop_assert!(
                    ["user.name", "user.email", "alias.x", "core.autocrlf", "pull.rebase"].contains(&name.as_str())
                );
                prop_assert_eq!(entry.subsection, None);
                prop_assert!(!entry.value.unwrap_or_default().contains("://"));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[\\[\\]a-c \"=#;.\\\\\n\t!]{0,40}") {
            if let Ok(entries) = parse(&text) {
                prop_assert!(parse(&written(&entries)).is_ok());
            }
        }
    }

    /// Git itself reads what we write as we read it.
    #[test]
    fn git_agrees() {
        let text = "[user]\n name = \"a  \\\"b\\\\ # c\" ;d\n email = \\ta\\n \n[alias]\n x = log \\\n  -1\n[core]\n quotepath\n";
        let dir = tempfile::tempdir().unwrap();
        let listed = |name: &str, text: &str| {
            let file = dir.path().join(name);
            fs_err::write(&file, text).unwrap();
            let git = Cli::new(HostPath::new("/usr/bin/git").unwrap());
            let output = git.args(["config", "--list", "-z", "--file"]).arg(&file).output().unwrap();
            String::from_utf8(output).unwrap()
        };
        let entries = parse(text).unwrap();
        assert_eq!(entries.len(), 4);
        assert_eq!(listed("ours", &written(&entries)), listed("theirs", text));
    }
}
