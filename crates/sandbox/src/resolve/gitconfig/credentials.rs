//! Passwords in a git configuration: which variables have one, and the same configuration without them.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::LazyLock;

use sandtable_store::wildcard::{Syntax, matches};
use serde::Deserialize;

use super::filter::quoted;
use super::reader::{Entry, parse};
use crate::resolve::data::{Reasoned, policy};

/// A user name of this length in an address is a token.
const TOKEN: usize = 20;
/// Options by which programs take a user with a password, as `curl` does.
const USER_OPTIONS: &[&str] = &["-u", "-U", "--user", "--proxy-user"];
/// Schemes with which a user name is worth nothing without a password, unless it is a token itself.
const WEB: &[&str] = &["http", "https", "ftp", "ftps"];
/// Addresses that are command lines.
const RUN: &str = "ext::";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    keys: Vec<Reasoned>,
    /// Variables that hold a command line.
    commands: Vec<Reasoned>,
    /// What in a command line gives a password away.
    signs: Vec<Reasoned>,
    /// The same where the program is asked for a password.
    answers: Vec<Reasoned>,
}

static POLICY: LazyLock<Policy> = LazyLock::new(|| policy!("gitcredentials"));

/// Which user names in addresses count as passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Users {
    /// Those that look like one. To warn of more would be noise.
    Likely,
    /// All of the web, since a token can look like any word.
    Every,
}

/// The names of the variables that hold a password, never the passwords. A text that git would refuse has none.
pub(super) fn found(text: &str) -> Vec<String> {
    let entries = parse(text).unwrap_or_default();
    let mut names: Vec<String> =
        entries.iter().filter(|entry| has_password(entry, Users::Likely)).map(name).collect();
    names.dedup();
    names
}

/// The text of a repository's configuration without passwords, if it has any. Addresses stay, without user and query in them.
/// Of a text that git would refuse nothing is left.
pub fn without_passwords(text: &[u8]) -> Option<Vec<u8>> {
    let Ok(entries) = parse(&String::from_utf8_lossy(text)) else { return Some(Vec::new()) };
    entries.iter().any(|entry| has_password(entry, Users::Every)).then(|| written(&entries))
}

fn written(entries: &[Entry]) -> Vec<u8> {
    let mut text = String::new();
    let mut section = None;
    for entry in entries.iter().filter(|entry| !is_password(entry, Users::Every)) {
        let here = (&entry.section, &entry.subsection);
        if section != Some(here) {
            section = Some(here);
            let subsection =
                entry.subsection.as_ref().map_or(String::new(), |name| format!(" {}", quoted_name(name)));
            writeln!(text, "[{}{subsection}]", entry.section).expect("writing to a string");
        }
        match &entry.value {
            None => writeln!(text, "\t{}", entry.key),
            Some(value) => writeln!(text, "\t{} = {}", entry.key, quoted(&cleaned(value))),
        }
        .expect("writing to a string");
    }
    text.into_bytes()
}

fn has_password(entry: &Entry, users: Users) -> bool {
    is_password(entry, users) || entry.value.as_deref().is_some_and(|value| secret(value, users).is_some())
}

/// Whether nothing of an entry can be shown.
fn is_password(entry: &Entry, users: Users) -> bool {
    let key = format!("{}.{}", entry.section, entry.key);
    let value = entry.value.as_deref().unwrap_or_default();
    // What stands before the addresses of others is there for what it adds: that is seldom a name.
    let users = if entry.section == "url" { Users::Every } else { users };
    known(&POLICY.keys, &key)
        || entry.subsection.as_deref().is_some_and(|address| secret(address, users).is_some())
        || (is_command(entry, &key) && gives_away(value))
        || (entry.section == "core" && known(&POLICY.commands, &key) && has_sign(&POLICY.answers, value))
        // A helper that is a line of shell with the answer in it.
        || (entry.section == "credential" && value.contains("password="))
        // An address without its scheme, as a proxy may have.
        || (!value.contains("://") && key.contains("proxy") && value.contains(':') && value.contains('@'))
}

fn is_command(entry: &Entry, key: &str) -> bool {
    let value = entry.value.as_deref().unwrap_or_default().trim_start();
    let is_listed =
        known(&POLICY.commands, key) && (entry.section != "alias" || value.starts_with(['!', '-']));
    is_listed || value.starts_with(RUN)
}

fn gives_away(command: &str) -> bool {
    has_sign(&POLICY.signs, command) || names_user(command)
}

fn has_sign(signs: &[Reasoned], command: &str) -> bool {
    let command = command.to_ascii_lowercase();
    signs.iter().any(|sign| command.contains(&sign.name))
}

/// Whether an option of a command has a user with a password, as in `curl -u ann:hunter2`.
fn names_user(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect();
    let pairs = words.windows(2).map(|pair| (pair[0], pair[1]));
    let joined = words.iter().flat_map(|word| {
        USER_OPTIONS.iter().filter_map(|option| word.strip_prefix(option).map(|rest| (*option, rest)))
    });
    pairs.chain(joined).any(|(option, user)| USER_OPTIONS.contains(&option) && user.contains(':'))
}

fn known(list: &[Reasoned], text: &str) -> bool {
    list.iter().any(|known| matches(&known.name, text, Syntax::Path))
}

fn name(entry: &Entry) -> String {
    match entry.subsection.as_deref().filter(|address| secret(address, Users::Every).is_none()) {
        Some(subsection) => format!("{}.{subsection}.{}", entry.section, entry.key),
        None => format!("{}.{}", entry.section, entry.key),
    }
}

/// Where in a text an address has a user that gives something away, or a query, which may.
fn secret(text: &str, users: Users) -> Option<Range<usize>> {
    let mut from = 0;
    while let Some(at) = text[from..].find("://") {
        let start = from + at + 3;
        let rest = &text[start..];
        let end =
            |ends: &[char]| rest.find(|c: char| ends.contains(&c) || c.is_whitespace()).unwrap_or(rest.len());
        if let Some(length) = rest[..end(&['/', '?', '#'])].rfind('@') {
            let scheme = text[..start - 3].rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
            if tells(&rest[..length], scheme.unwrap_or_default(), users) {
                return Some(start..start + length + 1);
            }
        }
        let address = &rest[..end(&['#', '"', '\''])];
        if let Some(query) = address.find('?').filter(|query| address[*query..].contains('=')) {
            return Some(start + query..start + address.len());
        }
        from = start;
    }
    None
}

fn tells(user: &str, scheme: &str, users: Users) -> bool {
    let is_web = WEB.iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let password = user.split_once(':').is_some_and(|(_, password)| !password.is_empty());
    password || user.len() >= TOKEN || (users == Users::Every && is_web)
}

fn cleaned(value: &str) -> String {
    let mut value = value.to_owned();
    while let Some(range) = secret(&value, Users::Every) {
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
        let text = "[remote \"o\"]\n url = ssh://git@example.invalid/r\n pushurl = git@example.invalid:r\n[user]\n email = a@b\n\
            [alias]\n tokens = log --grep token\n say = !echo hello\n[filter \"lfs\"]\n clean = git-lfs clean -- %f\n\
            [diff]\n algorithm = histogram\n[gpg \"ssh\"]\n program = /opt/1Password/op-ssh-sign\n\
            [credential]\n helper = /usr/lib/git-core/git-credential-libsecret --verbose\n";
        assert_eq!(found(text), [""; 0]);
        assert_eq!(without_passwords(text.as_bytes()), None);
        assert_eq!(without_passwords(b"https://u:p@h"), Some(Vec::new()));
    }

    /// A name in an address is nothing to warn of. It goes with the passwords, since a token can look like one.
    #[test]
    fn a_user_name_is_taken_out_and_not_warned_of() {
        let text = "[remote \"o\"]\n\turl = https://ann@example.invalid/r\n";
        assert_eq!(found(text), [""; 0]);
        let cleaned = String::from_utf8(without_passwords(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(cleaned, "[remote \"o\"]\n\turl = \"https://example.invalid/r\"\n");
    }

    #[test]
    fn queries_command_lines_and_prefixes_are_passwords_too() {
        for text in [
            "[remote \"o\"]\n url = https://example.invalid/r?access_token=hunter2\n",
            "[remote \"o\"]\n pushurl = \"https://example.invalid/r?private_token=hunter2#x\"\n",
            "[remote \"o\"]\n url = ext::ssh-to --token hunter2 %S\n",
            "[remote \"o\"]\n uploadpack = PASSWORD=hunter2 git-upload-pack\n",
            "[remote \"o\"]\n receivepack = auth --secret hunter2 git-receive-pack\n",
            "[core]\n gitproxy = connect --password hunter2\n",
            "[lfs \"customtransfer.x\"]\n args = --token hunter2\n",
            "[alias]\n up = !curl -u ann:hunter2 https://example.invalid\n",
            "[alias]\n up = !curl -uann:hunter2 https://example.invalid\n",
            "[alias]\n up = \"!curl --user 'ann:hunter2' https://example.invalid\"\n",
            "[alias]\n up = -c http.extraHeader='Authorization: hunter2' fetch\n",
            "[filter \"x\"]\n clean = crypt --password hunter2\n",
            "[url \"https://hunter2@example.invalid/\"]\n insteadOf = https://example.invalid/\n",
            "[url \"https://example.invalid/?t=hunter2\"]\n insteadOf = x:\n",
            "[lfs]\n url = https://example.invalid/lfs?t=hunter2\n",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
            assert!(!found(text)[0].contains("hunter2"), "{text}");
            let cleaned = String::from_utf8(without_passwords(text.as_bytes()).unwrap()).unwrap();
            assert!(!cleaned.contains("hunter2"), "{cleaned}");
        }
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
