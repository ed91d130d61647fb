//! Passwords in a git configuration: which variables have one, and the same configuration without them.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sandtable_store::wildcard::{Syntax, matches};
use serde::Deserialize;

use super::filter::quoted;
use super::reader::{Entry, parse};
use crate::resolve::data::{Reasoned, policy};

/// A user name of this length in an address is a token.
const TOKEN: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    keys: Vec<Reasoned>,
    /// Variables that hold a command line.
    commands: Vec<Reasoned>,
    /// What in a command line gives a password away.
    signs: Vec<Reasoned>,
}

static POLICY: LazyLock<Policy> = LazyLock::new(|| policy!("gitcredentials"));

/// The names of the variables that hold a password, never the passwords. A text that git would refuse has none.
pub(super) fn found(text: &str) -> Vec<String> {
    let entries = parse(text).unwrap_or_default();
    let mut names: Vec<String> = entries.iter().filter(|entry| has_password(entry)).map(name).collect();
    names.dedup();
    names
}

/// The text of a repository's configuration without passwords, if it has any. Addresses stay, without the user in them. Of a
/// text that git would refuse nothing is left.
pub fn without_passwords(text: &[u8]) -> Option<Vec<u8>> {
    let Ok(entries) = parse(&String::from_utf8_lossy(text)) else { return Some(Vec::new()) };
    entries.iter().any(has_password).then(|| written(&entries))
}

fn written(entries: &[Entry]) -> Vec<u8> {
    let mut text = String::new();
    let mut section = None;
    for entry in entries.iter().filter(|entry| !is_password(entry)) {
        let here = (&entry.section, &entry.subsection);
        if section != Some(here) {
            section = Some(here);
            let subsection =
                entry.subsection.as_ref().map_or(String::new(), |name| format!(" {}", quoted_name(name)));
            writeln!(text, "[{}{subsection}]", entry.section).expect("writing to a string");
        }
        match &entry.value {
            None => writeln!(text, "\t{}", entry.key),
            Some(value) => writeln!(text, "\t{} = {}", entry.key, quoted(&without_user(value))),
        }
        .expect("writing to a string");
    }
    text.into_bytes()
}

fn has_password(entry: &Entry) -> bool {
    is_password(entry) || entry.value.as_deref().is_some_and(|value| user(value).is_some())
}

/// Whether nothing of an entry can be shown.
fn is_password(entry: &Entry) -> bool {
    let key = format!("{}.{}", entry.section, entry.key);
    let value = entry.value.as_deref().unwrap_or_default();
    known(&POLICY.keys, &key)
        || entry.subsection.as_deref().is_some_and(|address| user(address).is_some())
        || (known(&POLICY.commands, &key) && gives_away(value))
        // A helper that is a line of shell with the answer in it.
        || (entry.section == "credential" && value.contains("password="))
        // An address without its scheme, as a proxy may have.
        || (!value.contains("://") && key.contains("proxy") && value.contains(':') && value.contains('@'))
}

fn gives_away(command: &str) -> bool {
    let command = command.to_ascii_lowercase();
    POLICY.signs.iter().any(|sign| command.contains(&sign.name))
}

fn known(list: &[Reasoned], text: &str) -> bool {
    list.iter().any(|known| matches(&known.name, text, Syntax::Path))
}

fn name(entry: &Entry) -> String {
    match entry.subsection.as_deref().filter(|address| user(address).is_none()) {
        Some(subsection) => format!("{}.{subsection}.{}", entry.section, entry.key),
        None => format!("{}.{}", entry.section, entry.key),
    }
}

/// Where in a text the user of an address is that gives something away.
fn user(text: &str) -> Option<std::ops::Range<usize>> {
    let mut from = 0;
    while let Some(at) = text[from..].find("://") {
        let start = from + at + 3;
        let rest = &text[start..];
        let end =
            rest.find(|c: char| matches!(c, '/' | '?' | '#') || c.is_whitespace()).unwrap_or(rest.len());
        if let Some(length) = rest[..end].rfind('@') {
            let user = &rest[..length];
            let password = user.split_once(':').is_some_and(|(_, password)| !password.is_empty());
            if password || user.len() >= TOKEN {
                return Some(start..start + length + 1);
            }
        }
        from = start;
    }
    None
}

fn without_user(value: &str) -> String {
    let mut value = value.to_owned();
    while let Some(range) = user(&value) {
        value.replace_range(range, "");
    }
    value
}

/// In the name of a section only two characters are escaped.
fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXT: &str = "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://ann:hunter2@example.invalid/r.git\n\
        \tfetch = +refs/heads/*:refs/remotes/origin/*\n[remote \"up\"]\n\turl = ssh://git@example.invalid/r\n\
        [http \"https://example.invalid/\"]\n\textraheader = AUTHORIZATION: basic c2VjcmV0\n\
        [url \"https://0123456789abcdef0123@example.invalid/\"]\n\tinsteadOf = https://example.invalid/\n\
        [http]\n\tproxy = ann:hunter2@proxy.invalid:3128\n[credential]\n\thelper = \"!f() { echo password=hunter2; }; f\"\n\
        [lab]\n\ttoken = hunter2\n[branch \"a\\\"b\"]\n\tmerge = refs/heads/main\n";

    #[test]
    fn passwords_are_found_by_name_and_taken_out() {
        assert_eq!(
            found(TEXT),
            [
                "remote.origin.url",
                "http.https://example.invalid/.extraheader",
                "url.insteadof",
                "http.proxy",
                "credential.helper",
                "lab.token",
            ]
        );
        let cleaned = String::from_utf8(without_passwords(TEXT.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            cleaned,
            "[core]\n\tbare = \"false\"\n[remote \"origin\"]\n\turl = \"https://example.invalid/r.git\"\n\
             \tfetch = \"+refs/heads/*:refs/remotes/origin/*\"\n[remote \"up\"]\n\turl = \"ssh://git@example.invalid/r\"\n\
             [branch \"a\\\"b\"]\n\tmerge = \"refs/heads/main\"\n"
        );
    }

    #[test]
    fn command_lines_can_hold_a_password() {
        for line in [
            "sshCommand = sshpass -p hunter2 ssh",
            "askPass = sh -c 'echo hunter2'",
            "sshCommand = SSHPASS=x /usr/bin/y",
            "sshCommand = /usr/bin/sshpass -f /etc/p ssh",
        ] {
            let text = format!("[core]\n\t{line}\n\tbare = true\n");
            assert_eq!(found(&text).len(), 1, "{line}");
            let cleaned = without_passwords(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(cleaned).unwrap(), "[core]\n\tbare = \"true\"\n");
        }
        assert_eq!(
            found("[core]\n\tsshCommand = ssh -i ~/.ssh/work\n\taskPass = /usr/bin/ksshaskpass\n"),
            [""; 0]
        );
    }

    #[test]
    fn an_ordinary_configuration_has_none() {
        let text = "[remote \"o\"]\n url = https://ann@example.invalid/r\n pushurl = git@example.invalid:r\n[user]\n email = a@b\n";
        assert_eq!(found(text), [""; 0]);
        assert_eq!(without_passwords(text.as_bytes()), None);
        assert_eq!(without_passwords(b"https://u:p@h"), Some(Vec::new()));
    }

    proptest! {
        #[test]
        fn what_is_left_has_no_password(
            lines in proptest::collection::vec("(x|url|proxy|token|helper) = \"?(a|https?://|u:p@|h/|[ -~]){0,6}\"?", 0..6),
            section in "\\[(core|http|credential|remote \"(https://u:p@h/|a|\\\\\\\\)\")\\]",
        ) {
            let text = format!("{section}\n{}\n", lines.join("\n"));
            let cleaned = without_passwords(text.as_bytes()).unwrap_or_else(|| text.clone().into_bytes());
            let cleaned = String::from_utf8(cleaned).unwrap();
            prop_assert_eq!(found(&cleaned), Vec::<String>::new(), "{}", cleaned);
            prop_assert!(parse(&cleaned).is_ok());
        }
    }
}
